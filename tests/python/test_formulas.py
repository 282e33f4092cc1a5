#!/usr/bin/env python3
"""Loops of a user's own in sessions, beside the float64 reference (tests/reference/algorithms.py).
session_world and test_saving.py hold processes against simulations."""
import _package  # noqa: F401: finds the package
import numpy

import starling
from _scene import check, run_tests
from _simulate import dpsgd, of
import algorithms
import families

N, D, ROUNDS = 8, 300, 30
RANK, I = numpy.meshgrid(numpy.arange(N), numpy.arange(D), indexing="ij")
START = (RANK * 31 + I * 17) % 23 / 8 - 1.25
CENTER = (RANK * 13 + I * 7) % 19 / 16  # of f_i(x) = 1/2 |x - c_i|^2
DIRECTED = dpsgd.ring(N) + [[0, 3], [4, 1]]
W = dpsgd.metropolis(N, dpsgd.ring(N))
LAZY = (numpy.eye(N) + W) / 2
RING = {"nodes": N, "family": "ring"}
METROPOLIS = {**RING, "weights": "metropolis"}
PUSH = {"nodes": N, "edges": DIRECTED, "directed": True, "weights": "push-sum"}
TOP_K = of("top-k", fraction=0.25)
WHILE_ADAPTING = of("d-psgd", variant="combine-while-adapt")


def mixed(peer, x, center):
    x -= numpy.float32(0.1) * (x - center)
    peer.mix()


def overlapped(peer, x, center):
    peer.begin()
    at = x.copy()
    peer.end()
    x -= numpy.float32(0.1) * (at - center)


def trained(step, algorithm, topology):
    def train(rank):
        x, center = START[rank].astype("f4"), CENTER[rank].astype("f4")
        with starling.join(None, x) as peer:
            for _ in range(ROUNDS):
                step(peer, x, center)
            average = peer.average()
            final = x.copy()
        return final, average

    experiment = {"seed": 5, "algorithm": algorithm, "topology": topology}
    models, averages = zip(*starling.simulate(N, train, experiment))
    check(all((average == averages[0]).all() for average in averages), "averages differ")
    return numpy.array(models)


def reference(algorithm, w):
    problem = algorithms.Quadratic(numpy.tile(numpy.eye(D), (N, 1, 1)), CENTER)
    models, _ = algorithms.history(ROUNDS, [w], algorithm, {"learning_rate": 0.1}, problem, START)
    return models[-1]


def test_loops_are_the_formulas(scene):
    push = families.evenly(N, DIRECTED, axis=0)
    for step, algorithm, topology, w in (
        (mixed, of("d-psgd"), RING, LAZY),  # no weights are named
        (mixed, WHILE_ADAPTING, RING, LAZY),
        (mixed, of("dcd-psgd", compressor="identity"), METROPOLIS, W),
        (mixed, of("choco-sgd", compressor=TOP_K, consensus_step=0.3), METROPOLIS, W),
        (mixed, of("deep-squeeze", compressor=TOP_K, eta=0.2), METROPOLIS, W),
        (mixed, of("gradient-tracking"), METROPOLIS, W),
        (mixed, of("sgp"), PUSH, push),
        (overlapped, of("d-psgd"), RING, LAZY),
    ):
        formula = WHILE_ADAPTING if step is overlapped else algorithm
        far = abs(trained(step, algorithm, topology) - reference(formula, w)).max()
        check(far < 1e-4, f"{step.__name__}, {algorithm}: {far:g} from the reference")


if __name__ == "__main__":
    run_tests()
