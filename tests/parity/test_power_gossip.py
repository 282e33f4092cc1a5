#!/usr/bin/env python3
"""power-gossip on quadratics whose first parameters are a matrix: its formulas from an independent
float64 program, what it is at full rank, that the mean stays and models agree, and its bytes. What
is refused is as in test_low_rank.py.

usage: test_power_gossip.py [--starling] STARLING [--only TEXT]
"""
import functools
import sys

import numpy as np

import test_low_rank
from _simulate import check_same, main, matchings, schedule, simulate
from expect import ring
from test_low_rank import GRAPHS, NESTEROV, SHAPES, check_formula, models, problem_of


PAIRS = [[0, 1], [2, 3], [4, 5]], [[1, 2], [3, 4], [5, 0]]
# Three slots; two; four of which some have an edge of others, and one leaves nodes alone.
SCHEDULES = {
    "matchings": matchings(),
    "two": schedule(6, *PAIRS),
    "four": schedule(6, PAIRS[0], [*PAIRS[1], [0, 3]], [[0, 1], [1, 2], [0, 2]], PAIRS[1]),
}
STILL = {"learning_rate": 0}
HEADER = 64  # bytes of a frame


def settings(rank, **more):
    return {"name": "power-gossip", "rank": rank, **more}


def check_full(starling, graph):
    """A square matrix at full rank is D-PSGD."""
    matrix, d = [5, 5], 27
    gossip = {"name": "d-psgd", "variant": "adapt-then-combine"}
    problem = problem_of(graph, d)
    ours = models(starling, graph, settings(5), NESTEROV, problem, matrix)
    other = models(starling, graph, gossip, NESTEROV, problem, matrix)
    return check_same(ours, other, 3e-5)


def check_agreement(starling, graph):
    """Without gradients models agree, at rank 1, and their mean stays."""
    matrix, d = SHAPES["a matrix and a vector"]
    a, b, _ = problem_of(graph, d)
    x0 = np.random.default_rng(3).standard_normal((graph.n, d))
    found = models(starling, graph, settings(1), STILL, (a, b, x0), matrix, 800)
    apart = abs(found[-1] - found[-1].mean(axis=0)).max()
    drift = max(abs(x.mean(axis=0) - x0.mean(axis=0)).max() for x in found)
    why = f"{apart:.1e} apart, their mean moved by {drift:.1e}"
    return (None if apart < 1e-5 and drift < 1e-5 else why), apart


def check_bytes(starling):
    """Odd exchanges send rank * rows numbers of a matrix, even ones rank * columns."""
    graph, (matrix, d) = ring(4), SHAPES["a matrix and a vector"]
    found = simulate(
        starling, graph, settings(2), STILL, *problem_of(graph, d), 5, [], matrix=matrix
    )
    rows, columns = matrix
    rest = d - rows * columns
    numbers = 3 * (2 * rows + rest) + 2 * (2 * columns + rest)
    expected = 2 * (5 * HEADER + 4 * numbers)
    sent = {node["bytes_sent"] for node in found.traffic}
    return (None if sent == {expected} else f"{sent} bytes, not {expected}"), 0


def formulas():
    start = np.random.default_rng(4).standard_normal((10, 2)).tolist()
    given = settings(2, start=start, local_steps=2)
    yield "given factors, local steps", GRAPHS["ring"], SHAPES["wide"], NESTEROV, given
    yield "whole", GRAPHS["ring"], ([2, 9], 20), NESTEROV, settings(2)
    for where, graph in SCHEDULES.items():
        for rank in (1, 2):
            name = f"rank {rank}, {where}"
            yield name, graph, SHAPES["wide"], NESTEROV, settings(rank)
    for name, graph, shape, optimizer, rank in test_low_rank.formulas():
        yield name, graph, shape, optimizer, settings(rank)


def all_checks(starling):
    for name, *case in formulas():
        yield name, functools.partial(check_formula, starling, *case, alike=False)
    for where, graph in {**SCHEDULES, "irregular": GRAPHS["irregular"]}.items():
        yield f"full rank {where}", functools.partial(check_full, starling, graph)
        yield f"agreement {where}", functools.partial(check_agreement, starling, graph)
    yield "bytes", lambda: check_bytes(starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
