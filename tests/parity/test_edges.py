#!/usr/bin/env python3
"""Gossip whose messages are not models: against an independent float64 program
(tests/reference/algorithms.py), on quadratic problems; then how long messages are, and what is
warned of or refused."""
import functools
import json
import os
import sys
import tempfile

import _simulate
from _simulate import check_refusal, family
from test_algorithms import COSINE, D, EXPONENTIAL, FIXED, GRAPHS, MATCHINGS, NESTEROV
from test_algorithms import OWN, PATH, PLAIN, RING, SAME, STAR, STILL
from test_algorithms import Case, cases, compare

STEPS = {"sgd": PLAIN, "nesterov": NESTEROV, "cosine": COSINE}
FAR = 16  # no two elements of these problems' models are ever so far apart
HEADER = 64  # bytes of a frame


BINARY = "binary tree"
GRAPHS[BINARY] = family("k-ary-tree", [[(i - 1) // 2, i] for i in range(1, 7)], 7, arity=2)
SLOW = {
    "sgd": {"learning_rate": 0.03},
    "nesterov": {**NESTEROV, "learning_rate": 0.003},
    "still": STILL,
}  # gradients come as late as they are far


def moniqua(**more):
    return {"name": "moniqua", "theta": FAR, **more}


def all_cases():
    both = [SAME, OWN]
    for bits in (2, 6, 8, 20, 24):  # between, rounding decides too often
        graphs = [*FIXED, MATCHINGS, EXPONENTIAL]
        settings = moniqua(bits=bits)
        yield from cases(f"moniqua {bits} bits", settings, None, graphs, STEPS, both)
    settings = moniqua(bits=8, local_steps=3)
    yield from cases("moniqua H=3", settings, None, [RING, MATCHINGS], STEPS, [OWN])
    graphs = [*FIXED, PATH, STAR, BINARY]
    yield from cases("relaysum", {"name": "relaysum"}, None, graphs, SLOW, both)
    tree = {"name": "relaysum", "tree": "topology"}
    yield from cases("relaysum on a tree", tree, None, [PATH, STAR, BINARY], SLOW, [SAME])


# ---- a run, and what it says ----


def run(starling, case, rounds=6):
    """(summary, what was said, models)"""
    with tempfile.TemporaryDirectory(prefix="starling-edges-") as folder:
        experiment = {
            "rounds": rounds,
            "topology": case.graph.topology,
            "algorithm": case.settings,
            "optimizer": case.optimizer,
        }
        out, said = _simulate.sim(starling, folder, case.problem(), experiment)
        with open(os.path.join(out, "summary.json")) as file:
            return json.load(file), said


def check_bytes(starling, settings, payload):
    """Each of six rounds of a ring sends two messages of so many bytes, a frame each."""
    summary, _ = run(starling, Case("", settings, RING, PLAIN, SAME))
    sent = {node["bytes_sent"] for node in summary["per_node"]}
    expected = 6 * 2 * (HEADER + payload)
    return (None if sent == {expected} else f"{sent}, expected {expected}"), 0


def check_doubts(starling, theta, doubted):
    """Elements that lie too far apart are counted, and warned of once a node."""
    case = Case("", moniqua(theta=theta), RING, STILL, OWN)
    summary, said = run(starling, case)
    counts = [node["doubtful"] for node in summary["per_node"]]
    warnings = said.count("raise algorithm.theta")
    expected = sum(count > 0 for count in counts)
    good = warnings == expected and (expected == 8 if doubted else expected == 0)
    return (None if good else f"counts {counts}, {warnings} warnings"), 0


def refusals():
    yield "25 bits are too many", RING, moniqua(bits=25), "algorithm.bits"
    yield "theta is above 0", RING, moniqua(theta=0), "algorithm.theta"
    compressor = {"compressor": {"name": "qsgd"}}
    yield "moniqua has a compressor of its own", RING, moniqua(**compressor), "modular"
    tree = {"name": "relaysum", "tree": "topology"}
    yield "a tree has no cycle", RING, tree, "algorithm.tree"
    yield "relaysum takes no schedule", MATCHINGS, {"name": "relaysum"}, "schedule"
    other = {"name": "choco-sgd", "compressor": {"name": "modular"}}
    yield "nobody else has it", RING, other, "algorithm.compressor.name"


def all_checks(starling):
    for case in all_cases():
        yield case.name, lambda case=case: compare(starling, case)
    for bits in (1, 7, 8, 20):
        size = (bits * D + 7) // 8
        what = moniqua(bits=bits), size
        yield f"moniqua of {bits} bits: bytes", lambda what=what: check_bytes(starling, *what)
    for theta, doubted in ((0.2, True), (FAR, False)):
        what = theta, doubted
        yield f"moniqua counts, theta {theta}", lambda what=what: check_doubts(starling, *what)
    for name, graph, settings, text in refusals():
        case = Case("", settings, graph, PLAIN, SAME)
        found = functools.partial(case.found, starling)
        yield name, functools.partial(check_refusal, found, text)


if __name__ == "__main__":
    sys.exit(_simulate.main(__doc__, all_checks))
