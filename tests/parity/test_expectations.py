#!/usr/bin/env python3
"""What theory and experience say that the algorithms do (tests/reference/expect.py), of the
simulator; and what it refuses for that reason."""
import concurrent.futures
import functools
import sys
import tempfile

import _simulate
from _simulate import QUICK, Refused
import expect


def simulate(starling, graph, settings, optimizer, problem, rounds, recorded):
    try:
        return _simulate.simulate(
            starling, graph, settings, optimizer, *problem, rounds, recorded
        ).models
    except Refused as error:
        if "diverge" in str(error):
            raise expect.Diverged(str(error)) from error
        raise


def results(starling, check):
    """[(name, holds, numbers seen)]"""
    try:
        return list(check(functools.partial(simulate, starling)))
    except Refused as error:
        return [(check.__name__, False, str(error))]


# ---- what does not fit ----


def misfits():
    """(name, graph, algorithm, a word that the reason must have)"""
    ring, digraph = expect.ring(8), expect.digraph()
    for compressor in (
        expect.SCALED_RANDOM,
        {"name": "random-k", "fraction": 0.5, "scaled": True},
        expect.ONE_LEVEL,
        {**expect.ONE_LEVEL, "levels": 3},
    ):
        text = " ".join(f"{key}={value}" for key, value in compressor.items())
        for name in ("choco-sgd", "deep-squeeze", "beer"):
            settings = {"name": name, "compressor": compressor}
            yield f"{name} takes no {text}", ring, settings, "contractive"
    symmetric = "d-psgd choco-sgd deep-squeeze dcd-psgd ecd-psgd gradient-tracking exact-diffusion"
    symmetric += " qgm decentlam gossip-pga beer lead moniqua relaysum d-adam d-amsgrad"
    for name in symmetric.split():
        what = f"{name} takes no directed graph whose rows do not sum to 1"
        yield what, digraph, {"name": name}, "doubly stochastic"
    to_all = {"name": "all-reduce", "directions": "both", "compressor": expect.TOP_PERCENT}
    yield "compressed all-reduce has no server to compress", ring, to_all, "algorithm.directions"
    late = {"name": "all-reduce", "delay": 1, "compressor": expect.TOP_PERCENT}
    yield "late gradients are not compressed", ring, late, "algorithm.delay"
    scaled = {"name": "parameter-server", "compressor": expect.SCALED_RANDOM}
    feedback = {**scaled, "error_feedback": True}
    yield "error feedback takes no scaled random-1 %", ring, feedback, "contractive"
    d2 = {"name": "exact-diffusion", "matrix": "plain"}
    yield "D2 takes no ring of eight, whose lambda_n is -1/3", ring, d2, "lambda_n is above -0.3333"
    trimmed = {"name": "clipped-gossip", "variant": "trimmed-mean", "trim": 2}
    yield "who cuts off all is refused", ring, trimmed, "set it to 1 or less"
    yield "D2 takes no schedule", _simulate.matchings(), d2, "schedule"


def doubtful():
    """(name, settings, what a run is warned of)"""
    server, biased = {"name": "parameter-server"}, {"compressor": expect.TOP_PERCENT}
    lossy = {**server, **biased, "error_feedback": False}
    yield "a biased compressor without error feedback", lossy, "an error that no learning rate"
    unbiased = {"compressor": {"name": "qsgd", "levels": 127, "bucket": 64}}
    kept = {**server, **unbiased, "error_feedback": True}
    yield "error feedback of an unbiased compressor", kept, "error feedback is for biased"
    yield "diana with a biased compressor", {"name": "diana", **biased}, "top-k is biased, and the"
    yield "votes do not reach the optimum", {"name": "sign-vote"}, "counts signs, not sizes"
    hasty = {"name": "one-bit-adam", "warmup_rounds": 5, "compressor": {"name": "scaled-sign"}}
    yield "a warm-up too short for 1-bit Adam", hasty, "v needs about 1/(1 - beta2) = 1000 rounds"


def warns(starling, name, settings, words):
    experiment = {
        "rounds": 2,
        "topology": {"nodes": 8, "family": "ring"},
        "algorithm": settings,
        "optimizer": {"learning_rate": 0.01},
    }
    with tempfile.TemporaryDirectory(prefix="starling-warned-") as folder:
        problem = _simulate.dpsgd.problem(8, 12, 1000, True, seed=1)
        _, said = _simulate.sim(starling, folder, problem, experiment)
    return [(name, words in said, said.strip())]


def refuses(starling, name, graph, settings, word):
    problem = expect.vectors(graph.n, 1000, seed=1)
    try:
        _simulate.simulate(starling, graph, settings, expect.STILL, *problem, 2, [2])
    except Refused as error:
        return [(name, word in str(error), str(error))]
    return [(name, False, "it was taken")]


# ---- the steps that Starling derives ----


def derived_steps(simulate):
    """Gossip with the default consensus_step: the nodes come together from the first rounds on,
    whatever the compressor and the graph."""
    compressors = [
        expect.TOP_PERCENT,
        expect.PLAIN_RANDOM,
        {"name": "scaled-sign"},
        {"name": "1-bit"},
        {**expect.ONE_LEVEL, "contractive": True},
        {"name": "qsgd", "levels": 7, "bucket": 64},
        {"name": "terngrad"},
        {"name": "natural"},
        {"name": "random-dropping", "probability": 0.1},
    ]
    x0 = expect.vectors(8, 1000, seed=2)
    star = expect.Graph({"nodes": 8, "family": "star"}, [])
    for graph in (expect.ring(8), star):
        for compressor in compressors:
            recorded = [0, 20, 100, 500, 1000, 1500]
            settings = {"name": "choco-sgd", "compressor": compressor}
            models = simulate(graph, settings, expect.STILL, x0, 1500, recorded)
            apart = [expect.distance(models[r]) for r in recorded]
            yield (
                f"choco-sgd's own step contracts: {compressor['name']}, {graph.topology['family']}",
                max(apart) <= 1.02 * apart[0] and apart[-1] < 0.8 * apart[0],
                ", ".join(f"{value:.2g}" for value in apart),
            )


LONG = [expect.choco_gossip, expect.variance, derived_steps]  # left out under sanitizers


def main():
    starling, only = _simulate.arguments(__doc__)
    checks = [
        functools.partial(results, starling, check)
        for check in [*expect.CHECKS, derived_steps]
        if not (QUICK and check in LONG)
    ]
    checks += [functools.partial(refuses, starling, *misfit) for misfit in misfits()]
    checks += [functools.partial(warns, starling, *case) for case in doubtful()]
    failed = False
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda check: check(), checks):
            for name, holds, seen in found:
                if only in name:
                    failed = failed or not holds
                    print(
                        f"{'ok' if holds else 'not ok'} {name}{': ' + seen if seen else ''}",
                        flush=True,
                    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
