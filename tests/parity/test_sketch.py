#!/usr/bin/env python3
"""fetch-sgd on quadratics: its formulas from an independent float64 program, that all models stay
alike, that what it knows of them is forgotten where it was sent, and what is refused.

usage: test_sketch.py [--starling] STARLING [--only TEXT]
"""
import sys

import numpy as np

from _simulate import Refused, arguments, dpsgd, irregular, run_all, simulate
from algorithms import Quadratic, Run
from expect import ring

D, ROWS, ROUNDS, MARGIN = 120, 130, 50, 1e-5
GRAPHS = {"irregular": irregular(), "ring": ring(4)}
OPTIMIZERS = {"sgd": {"learning_rate": 0.02}, "decay": {"learning_rate": 0.01, "weight_decay": 0.1}}
SKETCHES = {
    "five rows": {"rows": 5, "columns": 8, "k": 6},
    "one row": {"rows": 1, "columns": 40, "k": 9},
    "four rows": {"rows": 4, "columns": 10, "k": 1},
}
FORMS = ("ring", "tree", "recursive-doubling", "double-tree")


def settings(sketch, **more):
    return {"name": "fetch-sgd", "sketch": sketch, **more}


def reference(graph, algorithm, optimizer):
    """A problem on which rounding decides nothing, and all its models."""
    for seed in range(100):
        problem = dpsgd.problem(graph.n, ROWS, D, True, seed)
        run = Run(graph.slots, algorithm, optimizer, Quadratic(*problem[:2]), problem[2])
        models = [run.models().copy()]
        for _ in range(ROUNDS):
            run.step()
            models.append(run.models().copy())
        if run.state.margin > MARGIN:
            return problem, models
    raise RuntimeError("every problem has a close call")


def check(starling, graph, algorithm, optimizer):
    problem, expected = reference(graph, algorithm, optimizer)
    recorded = list(range(ROUNDS + 1))
    found = simulate(starling, graph, algorithm, optimizer, *problem, ROUNDS, recorded)
    worst = 0
    for r in recorded:
        theirs, ours = expected[r], found.models[r]
        if r > 0 and (ours != ours[0]).any():
            return f"models differ in round {r}", worst
        moved = r == 0 or (ours[0] != found.models[r - 1][0]).sum()
        if r > 0 and moved > algorithm["sketch"]["k"]:
            return f"round {r} moves {moved} parameters", worst
        worst = max(worst, abs(ours - theirs).max())
    return (None if worst < 1e-4 else f"differs by {worst:.1e}"), worst


def check_refused(starling, graph, algorithm, optimizer, text):
    problem = dpsgd.problem(graph.n, ROWS, D, True, 1)
    try:
        simulate(starling, graph, algorithm, optimizer, *problem, 1, [1])
    except Refused as error:
        return (None if text in str(error) else str(error)), 0
    return f"was not refused: {text}", 0


def refusals():
    sketch, plain = SKETCHES["five rows"], {"learning_rate": 0.1}
    heavy, adam = {**plain, "momentum": 0.9}, {**plain, "name": "adamw"}
    yield settings({**sketch, "columns": 9}), plain, "9 in 5 rows"
    yield settings({**sketch, "columns": 9}), plain, "120 parameters; take at most 8 columns"
    yield settings({**sketch, "k": 121}), plain, "algorithm.sketch.k: 121, but the model has 120"
    yield settings({**sketch, "rows": 16}), plain, "algorithm.sketch.rows"
    yield settings(sketch), heavy, "has a momentum of its own, algorithm.beta"
    yield settings(sketch), adam, 'takes "sgd" only'
    packed = settings(sketch, compressor={"name": "top-k", "k": 4})
    yield packed, plain, "sends vectors as they are"


def main():
    starling, only = arguments(__doc__)
    checks = []
    for what, sketch in SKETCHES.items():
        for name, graph in GRAPHS.items():
            for how, optimizer in OPTIMIZERS.items():
                for beta in (0, 0.9):
                    form = FORMS[len(checks) % len(FORMS)]
                    algorithm = settings(sketch, beta=beta, all_reduce=form)
                    label = f"{what} {name} {how} {beta} {form}"
                    checks.append(
                        (label, lambda g=graph, a=algorithm, o=optimizer: check(starling, g, a, o))
                    )
    for case in refusals():
        checks.append(
            (f"refused: {case[2]}", lambda c=case: check_refused(starling, GRAPHS["ring"], *c))
        )
    return run_all([(name, one) for name, one in checks if only in name])


if __name__ == "__main__":
    sys.exit(main())
