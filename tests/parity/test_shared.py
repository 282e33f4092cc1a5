#!/usr/bin/env python3
"""What all nodes share. A scale, of terngrad: steps are multiples of it, by gradients that numpy
computes, and its bytes; test_algorithms.py has the steps of one server, and of all. A mask, of
shared-mask: the same coordinates are mixed on all nodes, by its own formula, of whatever mask a
round had; test_algorithms.py has masks that go in order."""
import functools
import sys

import numpy as np

from _simulate import all_models, dpsgd, irregular, main, matchings, of, simulate, within
from algorithms import Quadratic
from expect import exponential, ring

N, ROWS, MATRIX, D = 5, 6, [4, 9], 41
RATE, ROUNDS, HEADER = 0.01, 8, 64
PLAIN = {"learning_rate": RATE}
ROUTES = {
    "one server": of("parameter-server", server=3),
    "shards": of("parameter-server", server="sharded"),
    "both ways": of("parameter-server", directions="both"),
    "all": of("all-reduce"),
}
PROBLEM = dpsgd.problem(N, ROWS, D, True, 7)


def shared(route, yes=True, **more):
    terngrad = {"name": "terngrad", "bucket": 0, "share_scale": yes, **more}
    return {**ROUTES[route], "compressor": terngrad}


def levels(found, parts):
    """Of each round, in units of the scale: by how much the sum of gradients moved the model."""
    quadratic = Quadratic(*PROBLEM[:2])
    for x, after in zip(found, found[1:]):
        g = quadratic.gradient(x)
        for begin, end in zip([0, *parts], [*parts, D]):
            scale = abs(g[:, begin:end]).max()
            yield (x - after)[0, begin:end] * N / RATE / scale, g[:, begin:end].sum(axis=0) / scale


def check_multiples(starling, route, tensors):
    """Steps are whole numbers of scales, at most one a node, next to the sum of gradients."""
    parts, more = ([MATRIX[0] * MATRIX[1]], {"per": "tensor"}) if tensors else ([], {})
    what = ring(N), shared(route, **more), PLAIN, PROBLEM, ROUNDS
    found = all_models(starling, *what, matrix=MATRIX if tensors else [])
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


def check_bytes(starling, route):
    """A scale goes up and down before the messages, or to all: four bytes each, and a header."""
    runs = [
        simulate(starling, ring(N), shared(route, yes), PLAIN, *PROBLEM, ROUNDS, [])
        for yes in (True, False)
    ]
    sent = [sum(node["bytes_sent"] for node in run.traffic) for run in runs]
    messages = {"one server": 2 * (N - 1), "all": N * (N - 1)}[route]
    expected = sent[1] + ROUNDS * messages * (HEADER + 4)
    return (None if sent[0] == expected else f"{sent[0]} bytes, not {expected}"), 0


# ---- masks ----

FRACTION, STILL = 0.25, {"learning_rate": 0}
GRAPHS = {"irregular": irregular(), "matchings": matchings(), "exponential": exponential(8)}


def check_mask(starling, graph):
    """Without gradients each coordinate of a round is W x, or x: on all nodes alike. Where nodes
    agree, W x is x."""
    masked = of("d-psgd", compressor=of("shared-mask", fraction=FRACTION))
    problem, worst, masks = dpsgd.problem(graph.n, 30, D, False, 3), 0, []
    found = all_models(starling, graph, masked, STILL, problem, ROUNDS)
    for t, (x, after) in enumerate(zip(found, found[1:])):
        mixed = graph.slots[t % len(graph.slots)] @ x
        mask = (after != x).any(axis=0)
        if mask.sum() > round(FRACTION * D) or (t == 0 and mask.sum() < round(FRACTION * D)):
            return f"round {t + 1} mixes {mask.sum()} coordinates of {D}", 0
        worst = max(worst, abs(after - np.where(mask, mixed, x)).max())
        masks.append(tuple(mask))
    if len(set(masks)) < ROUNDS - 1:
        return "the masks repeat themselves", worst
    return within(worst, 1e-5)


def all_checks(starling):
    for route in ("shards", "both ways"):
        yield f"multiples, {route}", functools.partial(check_multiples, starling, route, False)
    for route in ("one server", "all"):
        name = f"multiples of tensors, {route}"
        yield name, functools.partial(check_multiples, starling, route, True)
        yield f"bytes, {route}", functools.partial(check_bytes, starling, route)
    for name, graph in GRAPHS.items():
        yield f"mask, {name}", functools.partial(check_mask, starling, graph)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
