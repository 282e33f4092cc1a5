#!/usr/bin/env python3
"""terngrad with a scale that all nodes share: the steps are multiples of it, by gradients that
numpy computes, and their mean is C-SGD's; its bytes, and what is refused.

usage: test_shared_scale.py [--starling] STARLING [--only TEXT]
"""
import sys

import numpy as np

from _simulate import Refused, arguments, dpsgd, run_all, simulate
from algorithms import Quadratic
from expect import ring

N, ROWS, MATRIX, D = 5, 6, [4, 9], 41
RATE, ROUNDS, HEADER = 0.01, 8, 64
PLAIN = {"learning_rate": RATE}
ROUTES = {
    "one server": {"name": "parameter-server", "server": 3},
    "shards": {"name": "parameter-server", "server": "sharded"},
    "both ways": {"name": "parameter-server", "directions": "both"},
    "all": {"name": "all-reduce"},
}


def shared(route, yes=True, **more):
    terngrad = {"name": "terngrad", "bucket": 0, "share_scale": yes, **more}
    return {**ROUTES[route], "compressor": terngrad}


def models(starling, settings, problem, optimizer=PLAIN, rounds=ROUNDS, **more):
    recorded = list(range(rounds + 1))
    found = simulate(starling, ring(N), settings, optimizer, *problem, rounds, recorded, **more)
    return [found.models[r] for r in recorded], found


def levels(problem, found, parts):
    """Of each round, in units of the scale: by how much the sum of gradients moved the model."""
    quadratic = Quadratic(*problem[:2])
    for x, after in zip(found, found[1:]):
        g = quadratic.gradient(x)
        for begin, end in zip([0, *parts], [*parts, D]):
            scale = abs(g[:, begin:end]).max()
            yield (x - after)[0, begin:end] * N / RATE / scale, g[:, begin:end].sum(axis=0) / scale


def check_multiples(starling, route, tensors):
    """Steps are whole numbers of scales, at most one a node, next to the sum of gradients."""
    problem = dpsgd.problem(N, ROWS, D, True, 7)
    parts, more = ([MATRIX[0] * MATRIX[1]], {"per": "tensor"}) if tensors else ([], {})
    found, _ = models(starling, shared(route, **more), problem, matrix=MATRIX if tensors else [])
    worst = 0
    for moved, mean in levels(problem, found, parts):
        if route == "both ways":  # the server's own messages have a scale of their own
            sizes = abs(moved[abs(moved) > 1e-3])
            worst = max(worst, np.ptp(sizes) / sizes.max())
            continue
        worst = max(worst, abs(moved - np.round(moved)).max())
        if abs(moved - mean).max() > N:
            return f"moves by {moved}, and the gradients' sum is {mean}", worst
    return (None if worst < 1e-3 else f"{worst:.1e} from a multiple of the scale"), worst


def check_unbiased(starling):
    """What rounding adds to a step is as often more as less: a node's variance is at most 1/4."""
    problem = dpsgd.problem(N, ROWS, D, True, 7)
    found, _ = models(starling, shared("all"), problem, rounds=200)
    off = abs(np.mean([moved - mean for moved, mean in levels(problem, found, [])]))
    bound = 5 * np.sqrt(N / 4 / (200 * D))
    return (None if off < bound else f"{off:.2e} off, allowed {bound:.2e}"), off


def check_bytes(starling, route):
    """A scale goes up and down before the messages, or to all: four bytes each, and a header."""
    problem = dpsgd.problem(N, ROWS, D, True, 7)
    sent = [
        sum(node["bytes_sent"] for node in models(starling, shared(route, yes), problem)[1].traffic)
        for yes in (True, False)
    ]
    messages = {"one server": 2 * (N - 1), "all": N * (N - 1)}[route]
    expected = sent[1] + ROUNDS * messages * (HEADER + 4)
    return (None if sent[0] == expected else f"{sent[0]} bytes, not {expected}"), 0


def check_refused(starling):
    problem = dpsgd.problem(N, ROWS, D, True, 7)
    local = {**shared("all"), "name": "local-sgd", "period": 2}
    for settings, said in (
        (shared("all", bucket=16), "algorithm.compressor.bucket is 16; set it to 0"),
        (local, "share_scale: true, but the nodes of algorithm 'local-sgd' do not agree on one"),
    ):
        try:
            models(starling, settings, problem)
            return f"{settings} was taken", 0
        except Refused as error:
            if said not in str(error):
                return f"{error}; it should say {said!r}", 0
    return None, 0


def main():
    starling, only = arguments(__doc__)
    checks = [("refused", check_refused, ()), ("unbiased", check_unbiased, ())]
    for route in ROUTES:
        checks.append((f"multiples, {route}", check_multiples, (route, False)))
    for route in ("one server", "all"):
        checks.append((f"multiples of tensors, {route}", check_multiples, (route, True)))
        checks.append((f"bytes, {route}", check_bytes, (route,)))
    return run_all(
        [
            (name, lambda check=check, what=what: check(starling, *what))
            for name, check, what in checks
            if only in name
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
