#!/usr/bin/env python3
"""fetch-sgd on quadratics: its formulas from an independent float64 program, that all models stay
alike, and that what it knows of them is forgotten where it was sent."""
import functools
import sys

from _cases import in_turns
from _simulate import all_models, check_same, dpsgd, irregular, main, of
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
    found = all_models(starling, graph, algorithm, optimizer, problem, ROUNDS)
    for r, (before, ours) in enumerate(zip(found, found[1:]), 1):
        if (ours != ours[0]).any():
            return f"models differ in round {r}", 0
        moved = (ours[0] != before[0]).sum()
        if moved > algorithm["sketch"]["k"]:
            return f"round {r} moves {moved} parameters", 0
    return check_same(found, expected, 1e-4)


def all_checks(starling):
    factors = (list(factor.items()) for factor in (SKETCHES, GRAPHS, OPTIMIZERS))
    for i, factor in enumerate(in_turns(*factors, (0, 0.9))):
        (what, sketch), (name, graph), (how, optimizer), beta = factor
        form = FORMS[i % len(FORMS)]
        algorithm = of("fetch-sgd", sketch=sketch, beta=beta, all_reduce=form)
        label = f"{what} {name} {how} {beta} {form}"
        yield label, functools.partial(check, starling, graph, algorithm, optimizer)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
