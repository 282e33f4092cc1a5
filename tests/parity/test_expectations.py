#!/usr/bin/env python3
"""What theory and experience say that the algorithms do (tests/reference/expect.py), of the
simulator; test_said.py has what it refuses for that reason."""
import functools
import sys

import _simulate
from _simulate import QUICK
import expect


def simulate(starling, graph, settings, optimizer, problem, rounds, recorded):
    what = graph, settings, optimizer, *problem, rounds, recorded
    return _simulate.simulate(starling, *what).models


def derived_steps(simulate, graph):
    """Gossip with the default consensus_step: the nodes come together from the first rounds on,
    whatever the compressor and the graph."""
    x0, recorded = expect.vectors(8, 1000, seed=2), [0, 20, 100, 500, 1000, 1500]
    for compressor in (
        expect.TOP_PERCENT,
        expect.PLAIN_RANDOM,
        {"name": "scaled-sign"},
        {"name": "1-bit"},
        {**expect.ONE_LEVEL, "contractive": True},
        {"name": "qsgd", "levels": 7, "bucket": 64},
        {"name": "terngrad"},
        {"name": "natural"},
        {"name": "random-dropping", "probability": 0.1},
    ):
        settings = {"name": "choco-sgd", "compressor": compressor}
        models = simulate(graph, settings, expect.STILL, x0, 1500, recorded)
        apart = [expect.distance(models[r]) for r in recorded]
        yield (
            f"choco-sgd's own step contracts: {compressor['name']}",
            max(apart) <= 1.02 * apart[0] and apart[-1] < 0.8 * apart[0],
            ", ".join(f"{value:.2g}" for value in apart),
        )


LONG = "derived steps"  # left out under sanitizers


def hold(check, starling):
    """All that the check expects."""
    found = list(check(functools.partial(simulate, starling)))
    wrong = [f"{name}: {seen}" for name, holds, seen in found if not holds]
    return ("; ".join(wrong) or None), None


def all_checks(starling):
    checks = {"exact": expect.exact}
    star = expect.Graph({"nodes": 8, "family": "star"}, [])
    for where, graph in ("a ring", expect.ring(8)), ("a star", star):
        checks[f"derived steps on {where}"] = functools.partial(derived_steps, graph=graph)
    for name, check in checks.items():
        if not (QUICK and name.startswith(LONG)):
            yield name, functools.partial(hold, check, starling)


if __name__ == "__main__":
    sys.exit(_simulate.main(__doc__, all_checks))
