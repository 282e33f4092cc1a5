#!/usr/bin/env python3
"""The simulator's D-PSGD against goldens that an independent float64 program wrote
(tests/reference/dpsgd.py).

usage: test_goldens.py [--starling] STARLING [--only TEXT]
"""
import functools
import glob
import json
import os
import sys
import tempfile

import numpy as np

import _simulate

GOLDENS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "reference", "dpsgd"
)
TOLERANCE = 1e-4  # of the largest parameter of the same node; single precision keeps about 1e-6


def parameters(lines):
    """(round, node) -> parameters; null is not finite"""
    rows = {(line["round"], line["node"]): line["parameters"] for line in lines}
    return {key: np.array(row, dtype=float) for key, row in rows.items()}


def compare(starling, case):
    """(None, worst difference) when the case holds, else (reason, None)."""
    with open(os.path.join(GOLDENS, case + ".expected.json")) as file:
        expected = parameters(json.load(file))
    with tempfile.TemporaryDirectory(prefix="starling-goldens-") as folder:
        path = os.path.join(GOLDENS, case + ".json")
        out = _simulate.run_file(starling, folder, path)[0]
        found = parameters(_simulate.read_lines(out, "parameters.jsonl"))
    if found.keys() != expected.keys():
        return f"recorded (round, node) {sorted(found)[:4]}..., not {sorted(expected)[:4]}...", None
    for key, row in expected.items():
        if found[key].shape != row.shape or not np.isfinite(found[key]).all():
            return f"round {key[0]}, node {key[1]}: {found[key]}", None
    apart = {key: abs(found[key] - row).max() / abs(row).max() for key, row in expected.items()}
    where = max(apart, key=apart.get)
    return _simulate.within(
        apart[where], TOLERANCE, f"round {where[0]}, node {where[1]} differs by"
    )


def all_checks(starling):
    for path in sorted(glob.glob(os.path.join(GOLDENS, "*.expected.json"))):
        case = os.path.basename(path).removesuffix(".expected.json")
        yield f"golden {case}", functools.partial(compare, starling, case)


if __name__ == "__main__":
    sys.exit(_simulate.main(__doc__, all_checks))
