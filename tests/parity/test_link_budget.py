#!/usr/bin/env python3
"""choco-sgd whose messages follow the links, on two clusters with 1 Gbit/s inside and 10 Mbit/s
between them: a round takes what the budget says, `check` says so before, the mean stays, and nodes
agree as fast as with equal messages of as many bytes, or as few as the slow links carry in the same
time. test_algorithms.py has the formulas, test_said.py what is refused."""
import re

import numpy as np

from _here import check, run_tests
from _simulate import Graph, call, of, simulate, write
import dpsgd

D, ROUNDS, GRADIENT_MS, HEADER = 2000, 400, 0.25, 64
SLOW = [[3, 4, 10], [0, 7, 10]]
NETWORK = {"bandwidth_mbit": 1000, "links": SLOW, "gradient_ms": GRADIENT_MS}
RING = {"nodes": 8, "family": "ring"}
INSIDE = [[a, b] for o in (0, 4) for a in range(o, o + 4) for b in range(a + 1, o + 4)]
CLUSTERS = {"nodes": 8, "edges": INSIDE + [[3, 4], [0, 7]], "weights": "metropolis"}
START = np.random.default_rng(1).standard_normal((8, D)).round(3)
NEAR = 0.01  # of the first distance


def run(scene, topology, rounds=ROUNDS, **algorithm):
    """Averages START: the Result."""
    nothing = np.zeros((8, 1, D)), np.zeros((8, 1))
    what = Graph(topology, []), of("choco-sgd", **algorithm), {"learning_rate": 0}, *nothing, START
    return simulate(scene.starling, *what, rounds, list(range(0, rounds + 1, 4)), NETWORK)


def distance(x):
    return np.sqrt(((x - x.mean(axis=0)) ** 2).sum(axis=1).mean())


def ms_to_agree(result, rounds=ROUNDS):
    """Virtual milliseconds until NEAR, gradients aside."""
    far = distance(START)
    round_ms = 1e3 * result.seconds / rounds - GRADIENT_MS
    near = (r * round_ms for r, x in result.models.items() if distance(x) < NEAR * far)
    return next(near, np.inf)


def kept_in(size):
    """Entries of top-k in a message of at most so many bytes."""
    return max(k for k in range(1, D) if min(43 * k, D + 32 * k) <= 8 * size)


def test_a_round_takes_what_the_budget_says(scene):
    for topology in (RING, CLUSTERS):
        for round_ms in (1, 3):
            result = run(scene, topology, 20, budget={"round_ms": round_ms}, compressor="top-k")
            took = 1e3 * result.seconds / 20 - GRADIENT_MS
            check(0.85 * round_ms < took <= round_ms, f"{took} ms of {round_ms}")
            mean = result.models[20].mean(axis=0)
            check(abs(mean - START.mean(axis=0)).max() < 1e-5, "the mean has moved")


def test_check_says_it_before(scene):
    problem = {"A": [[[0.0] * D]] * 8, "b": [[0.0]] * 8, "x0": START.tolist()}
    write(scene.folder, "problem.json", problem)
    choco = of("choco-sgd", compressor="top-k", budget={"round_ms": 2})
    model = {"model": {"name": "quadratic", "path": "problem.json"}, "network": NETWORK}
    experiment = {"rounds": 20, "topology": CLUSTERS, "algorithm": choco, **model}
    write(scene.folder, "experiment.json", {**experiment, "optimizer": {"learning_rate": 0}})
    said = call(scene.starling, "check", scene.folder + "/experiment.json", "--all").stdout
    edges = re.findall(r"nodes (\d) and (\d), (\S+) (.)bit/s: top-k k = (\d+), (\d+) bytes", said)
    check(len(edges) == 2 + len(CLUSTERS["edges"]), said)  # the shortest and the longest, too
    slow = {(int(i), int(j)) for i, j, speed, unit, *_ in edges if (speed, unit) == ("10", "M")}
    check(slow == {(0, 7), (3, 4)} and int(edges[0][4]) < int(edges[1][4]), said)
    (ms,) = map(float, re.findall(r"a round's messages +(\S+) ms", said))
    result = run(scene, CLUSTERS, 20, budget={"round_ms": 2}, compressor="top-k")
    took = 1e3 * result.seconds / 20 - GRADIENT_MS
    check(abs(took / ms - 1) < 2e-2, f"{said}\nsays {ms}, and it took {took}")


def test_nodes_agree_no_later_than_with_equal_messages(scene):
    for topology, round_ms in ((RING, 1), (RING, 2), (CLUSTERS, 2)):
        by_link = run(scene, topology, budget={"round_ms": round_ms}, compressor="top-k")
        took = ms_to_agree(by_link)
        check(took < np.inf, "never")
        messages = ROUNDS * 2 * len(topology.get("edges", dpsgd.ring(8)))
        sent = sum(node["bytes_sent"] for node in by_link.traffic) / messages - HEADER
        for k in (kept_in(sent), kept_in(1250 * round_ms - HEADER)):
            other = run(scene, topology, compressor=of("top-k", k=k))
            least = ms_to_agree(other)
            check(took <= least, f"{topology}: {took} ms, with k = {k} {least} ms")


if __name__ == "__main__":
    run_tests()
