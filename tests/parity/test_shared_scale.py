#!/usr/bin/env python3
"""terngrad with a scale that all nodes share: the steps are multiples of it, by gradients that
numpy computes, and their mean is C-SGD's; its bytes, and what is refused.

usage: test_shared_scale.py [--starling] STARLING [--only TEXT]
"""
import functools
import sys

import numpy as np

from _simulate import all_models, check_refusal, dpsgd, main, simulate, within
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


def problem_of():
    return dpsgd.problem(N, ROWS, D, True, 7)


def models(starling, settings, rounds=ROUNDS, **more):
    return all_models(starling, ring(N), settings, PLAIN, problem_of(), rounds, **more)


def levels(found, parts):
    """Of each round, in units of the scale: by how much the sum of gradients moved the model."""
    quadratic = Quadratic(*problem_of()[:2])
    for x, after in zip(found, found[1:]):
        g = quadratic.gradient(x)
        for begin, end in zip([0, *parts], [*parts, D]):
            scale = abs(g[:, begin:end]).max()
            yield (x - after)[0, begin:end] * N / RATE / scale, g[:, begin:end].sum(axis=0) / scale


def check_multiples(starling, route, tensors):
    """Steps are whole numbers of scales, at most one a node, next to the sum of gradients."""
    parts, more = ([MATRIX[0] * MATRIX[1]], {"per": "tensor"}) if tensors else ([], {})
    found = models(starling, shared(route, **more), matrix=MATRIX if tensors else [])
    worst = 0
    for moved, mean in levels(found, parts):
        if route == "both ways":  # the server's own messages have a scale of their own
            sizes = abs(moved[abs(moved) > 1e-3])
            worst = max(worst, np.ptp(sizes) / sizes.max())
            continue
        worst = max(worst, abs(moved - np.round(moved)).max())
        if abs(moved - mean).max() > N:
            return f"moves by {moved}, and the gradients' sum is {mean}", worst
    return within(worst, 1e-3, "from a multiple of the scale by")


def check_unbiased(starling):
    """What rounding adds to a step is as often more as less: a node's variance is at most 1/4."""
    found = models(starling, shared("all"), rounds=200)
    off = abs(np.mean([moved - mean for moved, mean in levels(found, [])]))
    return within(off, 5 * np.sqrt(N / 4 / (200 * D)), "off by")


def check_bytes(starling, route):
    """A scale goes up and down before the messages, or to all: four bytes each, and a header."""
    runs = [
        simulate(starling, ring(N), shared(route, yes), PLAIN, *problem_of(), ROUNDS, [])
        for yes in (True, False)
    ]
    sent = [sum(node["bytes_sent"] for node in run.traffic) for run in runs]
    messages = {"one server": 2 * (N - 1), "all": N * (N - 1)}[route]
    expected = sent[1] + ROUNDS * messages * (HEADER + 4)
    return (None if sent[0] == expected else f"{sent[0]} bytes, not {expected}"), 0


def refusals():
    yield shared("all", bucket=16), "algorithm.compressor.bucket is 16; set it to 0"
    alone = "share_scale: true, but the nodes of algorithm 'local-sgd' do not agree on one"
    yield {**shared("all"), "name": "local-sgd", "period": 2}, alone


def all_checks(starling):
    yield "unbiased", lambda: check_unbiased(starling)
    for route in ROUTES:
        yield f"multiples, {route}", functools.partial(check_multiples, starling, route, False)
    for route in ("one server", "all"):
        name = f"multiples of tensors, {route}"
        yield name, functools.partial(check_multiples, starling, route, True)
        yield f"bytes, {route}", functools.partial(check_bytes, starling, route)
    for settings, text in refusals():
        run = functools.partial(models, starling, settings)
        yield f"refused: {text}", functools.partial(check_refusal, run, text)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
