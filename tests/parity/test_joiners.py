#!/usr/bin/env python3
"""Ranks beyond the first topology join a simulated run: against the float64 program of
test_faults.py, and what is refused."""
import functools
import sys

from _simulate import apart_by_rank, dpsgd, main
import algorithms as A
from test_faults import CASES, D, N, RECORDED, SEED, TOLERANCE
from test_faults import Members, check_refusal, held, regroup, ring, simulate

# Two ranks come that the run did not begin with; then the lowest and one of them die.
GROWN = [
    {"round": 10, "join": [N]},
    {"round": 20, "kill": [0]},
    {"round": 28, "join": [N + 1]},
    {"round": 34, "kill": [N]},
]


def train_grown(kind, settings, compress, slots_of, rate, a, b, x0):
    """round -> {rank: model}"""
    make = functools.partial(Members, kind, settings, compress)
    now, history = make(range(N), x0, slots_of(range(N))), {}
    members = {10: ([], [N]), 20: ([0], []), 28: ([], [N + 1]), 34: ([N], [])}
    for r in RECORDED:
        if r in members:
            gone, come = members[r]
            now.lose(gone)
            ranks = sorted(now.ranks + come)
            now = regroup(now, ranks, come, make, lambda count: slots_of(ranks))
        now.step(r, rate, now.gradients(a, b))
        history[r] = {n: now.state.models()[k] for k, n in enumerate(now.ranks)}
    return history


def cube(ranks):
    """Of 8 a hypercube. Else it is what is left of it, and newcomers hang on the lowest member."""
    if len(ranks) == N:
        ranks = list(range(N))
    old = [r for r in ranks if r < N]
    edges = [(i, j) for i in old for j in old if i < j and bin(i ^ j).count("1") == 1]
    edges += [(ranks[0], r) for r in ranks[1:] if r >= N]
    places = [[ranks.index(i), ranks.index(j)] for i, j in edges]
    return [dpsgd.metropolis(len(ranks), places)]


def check_grown(starling, name, family="ring"):
    algorithm, kind, _ = CASES[name]
    a, b, x0 = dpsgd.problem(N + 2, 12, D, False, SEED)
    slots_of = cube if family == "hypercube" else lambda ranks: ring(len(ranks))
    compress = A.compressor(algorithm.get("compressor", "identity"))
    expected = train_grown(kind, algorithm, compress, slots_of, 0.05, a, b, x0[:N])
    topology = {"nodes": N, "family": family, "weights": "metropolis"}
    run = starling, topology, algorithm, 0.05, GROWN, (a, b, x0)
    found, _ = simulate(*run, membership={"joiners": 2})
    return apart_by_rank(found, expected)


def refusals():
    one = {"membership": {"joiners": 1}}
    text = "faults[0].join: [9] is not allowed; it must be a list of ranks, 0 to 8"
    yield "a joiner too many", [{"round": 5, "join": [9]}], one, text
    listed = {"nodes": N, "edges": [[i, (i + 1) % N, 0.3] for i in range(N)]}
    text = "membership.joiners: 1: listed weights say nothing of a node that joins"
    yield "a joiner beside listed weights", [], {**one, "topology": listed}, text
    stop = {"membership": {"joiners": 1, "on_loss": "stop"}}
    text = "membership.joiners: 1, but nobody joins where membership.on_loss is"
    yield "joiners where a loss ends the run", [], stop, text


def checks(starling):
    for name in ("d-psgd", "choco-sgd", "dcd-psgd", "gradient-tracking"):
        yield name, TOLERANCE, lambda name=name: check_grown(starling, name)
    yield "a hypercube", TOLERANCE, lambda: check_grown(starling, "d-psgd", "hypercube")
    for name, *case in refusals():
        yield f"refused: {name}", 0.0, lambda case=case: check_refusal(starling, *case)


if __name__ == "__main__":
    sys.exit(main(__doc__, functools.partial(held, checks)))
