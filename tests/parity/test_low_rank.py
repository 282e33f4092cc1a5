#!/usr/bin/env python3
"""powersgd and power-gossip on quadratics whose first parameters are a matrix: their formulas from
an independent float64 program, that powersgd keeps all models alike, and bytes."""
import functools
import sys

import numpy as np

from _cases import NESTEROV, in_turns
from _simulate import all_models, check_same, dpsgd, irregular, main, matchings, schedule, simulate
from algorithms import Quadratic, history
from expect import ring

ROWS, ROUNDS, EARLY = 40, 50, 8
GRAPHS = {"irregular": irregular(), "ring": ring(4)}
SHAPES = {"a matrix and a vector": ([6, 5], 34), "tall": ([9, 4], 36), "wide": ([4, 10], 41)}
OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1},
    "nesterov": NESTEROV,
    "adamw": {"name": "adamw", "learning_rate": 0.02, "weight_decay": 0.01},
    "clipped": {"learning_rate": 0.1, "clip_norm": 2},
}
FORMS = ("ring", "tree", "recursive-doubling", "double-tree")
PAIRS = [[0, 1], [2, 3], [4, 5]], [[1, 2], [3, 4], [5, 0]]
# Three slots; two; four of which some have an edge of others, and one leaves nodes alone.
SCHEDULES = {
    "matchings": matchings(),
    "two": schedule(6, *PAIRS),
    "four": schedule(6, PAIRS[0], [*PAIRS[1], [0, 3]], [[0, 1], [1, 2], [0, 2]], PAIRS[1]),
}
HEADER = 64  # bytes of a frame


def settings(rank, form="ring", **more):
    return {"name": "powersgd", "rank": rank, "all_reduce": form, **more}


def gossip(rank, **more):
    return {"name": "power-gossip", "rank": rank, **more}


def models(starling, graph, algorithm, optimizer, problem, matrix, rounds=ROUNDS):
    return all_models(starling, graph, algorithm, optimizer, problem, rounds, matrix=matrix)


def problem_of(graph, d, seed=5):
    return dpsgd.problem(graph.n, ROWS, d, True, seed)


def reference(graph, algorithm, matrix, optimizer, problem, moved=0):
    """All models of all rounds, from x0 that is moved by so much."""
    a, b, x0 = problem
    wanted = {**algorithm, "matrix": matrix}
    return np.array(history(ROUNDS, graph.slots, wanted, optimizer, Quadratic(a, b), x0 + moved)[0])


def spread(theirs, *of, problem, alike):
    """How far apart two runs are in each round that differ by a rounding at the start. The power
    iteration of small matrices turns its factors far for little, and errors are fed back."""
    random, shape = np.random.default_rng(1), problem[2].shape
    moved = (1e-6 * random.standard_normal(shape[1:] if alike else shape) for _ in range(6))
    return np.max([abs(reference(*of, problem, by) - theirs).max(axis=(1, 2)) for by in moved], 0)


def check_formula(starling, graph, shape, optimizer, algorithm, alike=True):
    """alike: all nodes have one model."""
    (matrix, d), worst = shape, 0
    of = graph, algorithm, matrix, optimizer
    for seed in (5, 6, 7):
        problem = problem_of(graph, d, seed)
        ours = np.array(models(starling, graph, algorithm, optimizer, problem, matrix))
        theirs = reference(*of, problem)
        apart = abs(ours - theirs).max(axis=(1, 2))
        worst = max(worst, apart[:EARLY].max())
        most = 30 * spread(theirs, *of, problem=problem, alike=alike)
        if apart[:EARLY].max() > 2e-5 or (apart > most).any():
            return f"differs by {apart[:EARLY].max():.1e} early, {apart.max():.1e} in all", worst
        if alike and (ours != ours[:, :1]).any():
            return "models of two nodes differ", worst
    return None, worst


def check_given(starling):
    """The first factors, after a warm-up; and of a matrix that is as long as its factors."""
    random = np.random.default_rng(4)
    for shape, rank in ((SHAPES["wide"], 2), (([6, 3], 20), 2)):
        start = random.standard_normal((shape[0][1], rank)).tolist()
        algorithm = settings(rank, start=start, warmup_rounds=3)
        why, worst = check_formula(starling, GRAPHS["ring"], shape, NESTEROV, algorithm)
        if why:
            return f"{shape}: {why}", worst
    return None, worst


def check_zero(starling):
    """A gradient of rank 1 leaves the second columns 0, and then they are drawn anew: it is the
    same step, and nothing but finite."""
    graph, d = GRAPHS["ring"], 30
    a, b = np.zeros((graph.n, 1, d)), np.ones((graph.n, 1))
    a[:, 0, :6] = np.arange(1, 7) / 10  # the first row of the matrix
    problem = a, b, np.zeros((graph.n, d))
    ours = models(starling, graph, settings(2), {"learning_rate": 0.1}, problem, [5, 6])
    plain = {"name": "all-reduce"}
    other = models(starling, graph, plain, {"learning_rate": 0.1}, problem, [5, 6])
    return check_same(ours, other, 1e-5)


def check_bytes(starling):
    """Odd exchanges of power-gossip send rank * rows numbers of a matrix, even ones rank *
    columns."""
    graph, (matrix, d), still = ring(4), SHAPES["a matrix and a vector"], {"learning_rate": 0}
    problem = problem_of(graph, d)
    what = graph, gossip(2), still, *problem, 5, []
    found = simulate(starling, *what, model={"matrix": matrix})
    rows, columns = matrix
    rest = d - rows * columns
    numbers = 3 * (2 * rows + rest) + 2 * (2 * columns + rest)
    expected = 2 * (5 * HEADER + 4 * numbers)
    sent = {node["bytes_sent"] for node in found.traffic}
    return (None if sent == {expected} else f"{sent} bytes, not {expected}"), 0


def formulas():
    factors = (list(factor.items()) for factor in (GRAPHS, SHAPES, OPTIMIZERS))
    for (where, graph), (what, shape), (how, optimizer), rank in in_turns(*factors, (1, 2)):
        yield f"rank {rank}, {what}, {how}, {where}", graph, shape, optimizer, rank


def gossip_formulas():
    start = np.random.default_rng(4).standard_normal((10, 2)).tolist()
    given = gossip(2, start=start, local_steps=2)
    yield "given factors, local steps", GRAPHS["ring"], SHAPES["wide"], NESTEROV, given
    yield "whole", GRAPHS["ring"], ([2, 9], 20), NESTEROV, gossip(2)
    for where, graph in SCHEDULES.items():
        for rank in (1, 2):
            yield f"rank {rank}, {where}", graph, SHAPES["wide"], NESTEROV, gossip(rank)
    for name, *case, rank in formulas():
        yield name, *case, gossip(rank)


def all_checks(starling):
    for name, *case, rank in formulas():
        algorithm = settings(rank, FORMS[rank % len(FORMS)])
        yield name, functools.partial(check_formula, starling, *case, algorithm)
    for name, *case in gossip_formulas():
        run = functools.partial(check_formula, starling, *case, alike=False)
        yield f"power-gossip {name}", run
    yield "bytes", lambda: check_bytes(starling)
    yield "given factors", lambda: check_given(starling)
    yield "zero columns", lambda: check_zero(starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
