#!/usr/bin/env python3
"""d-psgd with the compressor shared-mask: it is D-PSGD at fraction 1, keeps the mean, and mixes the
same coordinates on all nodes: by its own formula, of whatever mask a round had.

usage: test_masked.py [--starling] STARLING [--only TEXT]
"""
import functools
import os
import sys
import tempfile

import numpy as np

from _simulate import all_models, call, check_refusal, check_same, dpsgd, irregular, main
from _simulate import matchings, within, write
from expect import exponential

D, ROWS, ROUNDS, FRACTION = 40, 30, 12, 0.25
GRAPHS = {"irregular": irregular(), "matchings": matchings(), "exponential": exponential(8)}
MOMENTUM = {"learning_rate": 0.03, "momentum": 0.9}
STILL = {"learning_rate": 0}
ALGORITHM = {"algorithm": {"name": "d-psgd", "compressor": "shared-mask"}}


def masked(fraction=FRACTION, **more):
    return {"name": "d-psgd", "compressor": {"name": "shared-mask", "fraction": fraction}, **more}


def models(starling, graph, settings, optimizer):
    problem = dpsgd.problem(graph.n, ROWS, D, False, 3)
    return all_models(starling, graph, settings, optimizer, problem, ROUNDS)


def check_whole(starling, graph):
    """Fraction 1 is D-PSGD, of each form of step."""
    ours = models(starling, graph, masked(1, local_steps=2), MOMENTUM)
    other = models(starling, graph, {"name": "d-psgd", "local_steps": 2}, MOMENTUM)
    return check_same(ours, other, 1e-4)


def check_formula(starling, graph):
    """Without gradients each coordinate of a round is W x, or x: on all nodes alike. Where nodes
    agree, W x is x."""
    found, worst, masks = models(starling, graph, masked(), STILL), 0, []
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


def check_mean(starling, graph):
    found = models(starling, graph, masked(), STILL)
    worst = max(abs(x.mean(axis=0) - found[0].mean(axis=0)).max() for x in found)
    return within(worst, 1e-6, "the mean moves by")


def check_order(starling, graph):
    """Block after block: each coordinate is mixed once in as many rounds as there are blocks."""
    settings = masked()
    settings["compressor"] = {**settings["compressor"], "order": "cyclic"}
    found = models(starling, graph, settings, STILL)
    for t, (x, after) in enumerate(zip(found, found[1:])):
        mask = (after != x).any(axis=0)
        expected = np.arange(D) // (D * FRACTION) == t % round(1 / FRACTION)
        if (mask & ~expected).any() or (t == 0 and (mask != expected).any()):
            return f"round {t + 1} mixes {np.flatnonzero(mask)}", 0
    return None, 0


def check_overlap(starling):
    """A session that overlaps sends its own vector."""
    with tempfile.TemporaryDirectory(prefix="starling-masked-") as folder:
        write(folder, "session.json", {"topology": GRAPHS["irregular"].topology, **ALGORITHM})
        path = os.path.join(folder, "session.json")
        ended = {
            form: call(starling, "check", path, "--session", form) for form in ("mix", "overlap")
        }
    said = ended["overlap"].stderr
    good = ended["mix"].returncode == 0 and "sends vectors as they are" in said
    return (None if good else f"{said!r}"), 0


def all_checks(starling):
    for name, graph in GRAPHS.items():
        for check in (check_whole, check_formula, check_mean, check_order):
            what = check.__name__.removeprefix("check_")
            yield f"{what} {name}", functools.partial(check, starling, graph)
    settings = masked(variant="combine-while-adapt")
    run = functools.partial(models, starling, GRAPHS["irregular"], settings, STILL)
    yield "refused", lambda: check_refusal(run, "sends vectors as they are")
    yield "overlap", lambda: check_overlap(starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
