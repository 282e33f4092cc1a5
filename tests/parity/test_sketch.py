#!/usr/bin/env python3
"""fetch-sgd on quadratics: its formulas from an independent float64 program, that all models stay
alike, that what it knows of them is forgotten where it was sent, and what is refused."""
import functools
import sys

from _simulate import all_models, check_refusal, check_same, dpsgd, irregular, main, simulate
from algorithms import Quadratic, Run
from expect import ring
from test_algorithms import in_turns

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
    found = all_models(starling, graph, algorithm, optimizer, problem, ROUNDS)
    for r, (before, ours) in enumerate(zip(found, found[1:]), 1):
        if (ours != ours[0]).any():
            return f"models differ in round {r}", 0
        moved = (ours[0] != before[0]).sum()
        if moved > algorithm["sketch"]["k"]:
            return f"round {r} moves {moved} parameters", 0
    return check_same(found, expected, 1e-4)


def check_refused(starling, algorithm, optimizer, text):
    graph = GRAPHS["ring"]
    problem = dpsgd.problem(graph.n, ROWS, D, True, 1)
    run = functools.partial(simulate, starling, graph, algorithm, optimizer, *problem, 1, [1])
    return check_refusal(run, text)


def refusals():
    sketch, plain = SKETCHES["five rows"], {"learning_rate": 0.1}
    heavy, adam = {**plain, "momentum": 0.9}, {**plain, "name": "adamw"}
    yield settings({**sketch, "columns": 9}), plain, "9 in 5 rows"
    yield settings({**sketch, "columns": 9}), plain, "120 parameters; take at most 8 columns"
    yield settings({**sketch, "k": 121}), plain, "algorithm.sketch.k: 121, but the model has 120"
    yield settings(sketch), heavy, "has a momentum of its own, algorithm.beta"
    yield settings(sketch), adam, 'takes "sgd" only'


def all_checks(starling):
    factors = (list(factor.items()) for factor in (SKETCHES, GRAPHS, OPTIMIZERS))
    for i, factor in enumerate(in_turns(*factors, (0, 0.9))):
        (what, sketch), (name, graph), (how, optimizer), beta = factor
        form = FORMS[i % len(FORMS)]
        algorithm = settings(sketch, beta=beta, all_reduce=form)
        label = f"{what} {name} {how} {beta} {form}"
        yield label, functools.partial(check, starling, graph, algorithm, optimizer)
    for case in refusals():
        yield f"refused: {case[-1]}", functools.partial(check_refused, starling, *case)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
