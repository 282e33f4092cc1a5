#!/usr/bin/env python3
"""d-psgd with the compressor shared-mask: it is D-PSGD at fraction 1, keeps the mean, and mixes the
same coordinates on all nodes: by its own formula, of whatever mask a round had.

usage: test_masked.py [--starling] STARLING [--only TEXT]
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

from _simulate import Refused, arguments, dpsgd, irregular, matchings, run_all, simulate, write
from expect import exponential

D, ROWS, ROUNDS, FRACTION = 40, 30, 12, 0.25
GRAPHS = {"irregular": irregular(), "matchings": matchings(), "exponential": exponential(8)}
MOMENTUM = {"learning_rate": 0.03, "momentum": 0.9}
STILL = {"learning_rate": 0}
ALGORITHM = {"algorithm": {"name": "d-psgd", "compressor": "shared-mask"}}


def masked(fraction=FRACTION, **more):
    return {"name": "d-psgd", "compressor": {"name": "shared-mask", "fraction": fraction}, **more}


def models(starling, graph, settings, optimizer, seed=3):
    problem = dpsgd.problem(graph.n, ROWS, D, False, seed)
    recorded = list(range(ROUNDS + 1))
    found = simulate(starling, graph, settings, optimizer, *problem, ROUNDS, recorded)
    return [found.models[r] for r in recorded]


def check_whole(starling, graph):
    """Fraction 1 is D-PSGD, of each form of step."""
    ours = models(starling, graph, masked(1, local_steps=2), MOMENTUM)
    other = models(starling, graph, {"name": "d-psgd", "local_steps": 2}, MOMENTUM)
    worst = max(abs(x - y).max() for x, y in zip(ours, other))
    return (None if worst < 1e-4 else f"differs from D-PSGD by {worst:.1e}"), worst


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
    return (None if worst < 1e-5 else f"differs by {worst:.1e}"), worst


def check_mean(starling, graph):
    found = models(starling, graph, masked(), STILL)
    worst = max(abs(x.mean(axis=0) - found[0].mean(axis=0)).max() for x in found)
    return (None if worst < 1e-6 else f"the mean moves by {worst:.1e}"), worst


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


def check_refused(starling):
    settings = masked(variant="combine-while-adapt")
    try:
        models(starling, GRAPHS["irregular"], settings, STILL)
    except Refused as error:
        return (None if "sends vectors as they are" in str(error) else str(error)), 0
    return "combine-while-adapt took it", 0


def check_overlap(starling):
    """A session that overlaps sends its own vector."""
    with tempfile.TemporaryDirectory(prefix="starling-masked-") as folder:
        write(folder, "session.json", {"topology": GRAPHS["irregular"].topology, **ALGORITHM})
        command = [starling, "check", os.path.join(folder, "session.json"), "--session"]
        ended = {
            form: subprocess.run([*command, form], capture_output=True, text=True)
            for form in ("mix", "overlap")
        }
    said = ended["overlap"].stderr
    good = ended["mix"].returncode == 0 and "sends vectors as they are" in said
    return (None if good else f"{said!r}"), 0


def main():
    starling, only = arguments(__doc__)
    whats = {
        "whole": check_whole,
        "formula": check_formula,
        "mean": check_mean,
        "order": check_order,
    }
    checks = [
        (f"{what} {name}", lambda check=check, graph=graph: check(starling, graph))
        for name, graph in GRAPHS.items()
        for what, check in whats.items()
    ]
    checks.append(("refused", lambda: check_refused(starling)))
    checks.append(("overlap", lambda: check_overlap(starling)))
    return run_all([(name, check) for name, check in checks if only in name])


if __name__ == "__main__":
    sys.exit(main())
