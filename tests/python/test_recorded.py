#!/usr/bin/env python3
"""simulate(out=): the run folder of a prototype is the one that `starling sim` writes of the same
algorithm."""
import json
import os

import _package  # noqa: F401: finds the package
import numpy

import starling
from _package import refused
from _scene import check, read_json, read_lines, run_tests

NODES, D, ROUNDS, RATE = 5, 4, 23, 0.05
RNG = numpy.random.default_rng(0)
A, B = RNG.normal(size=(NODES, 8, D)), RNG.normal(size=(NODES, 8))
PROTOTYPE = {
    "name": "prototype",
    "topology": {"nodes": NODES, "family": "ring", "weights": "lazy"},
    "algorithm": {"name": "d-psgd", "variant": "adapt-then-combine"},
    "record": {"every": 5, "parameters_at": [0, 3], "tensorboard": True},
    "network": {"bandwidth_mbit": 5, "latency_ms": 2, "gradient_ms": 3},
}
BUILT_IN = {
    **PROTOTYPE,
    "rounds": ROUNDS,
    "model": {"name": "quadratic", "path": "problem.json"},
    "optimizer": {"learning_rate": RATE},
}


def loss(x):
    return float(numpy.mean([((A[i] @ x - B[i]) ** 2).sum() / 2 for i in range(NODES)]))


def train(rank):
    x = numpy.zeros(D, "f4")
    with starling.join(None, x) as peer:
        for _ in range(ROUNDS):
            x -= (RATE * A[rank].T @ (A[rank] @ x - B[rank])).astype("f4")
            peer.mix(x)


def same(ours, theirs, what):
    if isinstance(theirs, float) or isinstance(ours, float):
        close = numpy.isclose(ours, theirs, rtol=1e-4, atol=1e-6)
        check(close, f"{what}: {ours}, and sim has {theirs}")
    elif isinstance(theirs, list):
        check(len(ours) == len(theirs), what)
        for a, b in zip(ours, theirs):
            same(a, b, what)
    elif isinstance(theirs, dict):
        check(ours.keys() == theirs.keys(), f"{what}: {ours.keys()}, and sim has {theirs.keys()}")
        for key in theirs.keys() - {"seconds", "time", "loss", "learning_rate", "driver"}:
            same(ours[key], theirs[key], f"{what}.{key}")
    else:
        check(ours == theirs, f"{what}: {ours}, and sim has {theirs}")


def test_the_folder_is_that_of_sim(scene):
    problem = {"A": A.tolist(), "b": B.tolist(), "x0": [[0.0] * D] * NODES}
    scene.write("problem.json", json.dumps(problem))
    path = scene.write("built-in.json", json.dumps(BUILT_IN))
    scene.call("sim", path, "--out", scene.path("sim")).check_well()
    starling.simulate(NODES, train, PROTOTYPE, out=scene.path("own"), evaluate=loss)
    for name in ("consensus.jsonl", "parameters.jsonl", "metrics-0.jsonl", "metrics-4.jsonl"):
        same(*(read_lines(scene.path(run), name) for run in ("own", "sim")), name)
    same(*(read_json(scene.path(run), "summary.json") for run in ("own", "sim")), "summary")
    for run in ("own", "sim"):
        boards = sorted(os.listdir(scene.path(f"{run}/tensorboard")))
        check(boards == ["mean", *(f"node-{rank}" for rank in range(NODES))], boards)
    for name in ("model.npy", "model-3.npy", "model-best.npy"):
        ours, theirs = (numpy.load(scene.path(f"{run}/{name}")) for run in ("own", "sim"))
        check(numpy.allclose(ours, theirs, atol=1e-6), f"{name}: {ours}, {theirs}")
    check(set(starling.load(scene.path("own"))) == {"x"}, "the model's tensors")
    ran, theirs = (read_json(scene.path(run), "run.json") for run in ("own", "sim"))
    check(ran["outcome"] == "done" and ran["bytes_sent"] == theirs["bytes_sent"], ran)
    config = read_json(scene.path("own"), "config.json")
    check(config["rounds"] == ROUNDS and config["record"]["every"] == 5, config)
    scene.call("check", scene.path("own/config.json")).check_well()


def test_what_fails_says_so(scene):
    def wrong(x):
        raise ValueError("no such data")

    def again(work=train, **more):
        starling.simulate(NODES, work, PROTOTYPE, **more)

    run = scene.path("run")
    refused(lambda: again(out=run, evaluate=wrong), "no such data", kind=ValueError)
    check(read_json(run, "run.json")["outcome"] == "failed", "run.json")
    refused(lambda: again(out=run), "already holds")
    refused(lambda: again(evaluate=loss), "out= say where")

    def twice(rank):
        train(rank)
        train(rank)

    refused(lambda: again(twice, out=scene.path("twice")), "is the folder of one run")


if __name__ == "__main__":
    run_tests()
