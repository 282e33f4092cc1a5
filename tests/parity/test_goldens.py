#!/usr/bin/env python3
"""The simulator's D-PSGD against goldens that an independent float64 program wrote
(tests/reference/dpsgd.py).

usage: test_goldens.py STARLING [CASE ...]
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

GOLDENS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "reference", "dpsgd"
)
TOLERANCE = (
    1e-4  # relative to the largest parameter of the same node; single precision keeps about 1e-6
)


def read_parameters(path):
    """(round, node) -> parameters"""
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    return {(line["round"], line["node"]): line["parameters"] for line in lines}


def difference(found, expected):
    """Largest difference of two vectors, relative to the largest expected value."""
    if len(found) != len(expected):
        return float("inf")
    scale = max(abs(value) for value in expected)
    worst = 0.0
    for a, b in zip(found, expected):
        worst = max(worst, abs(a - b) if a is not None else float("inf"))  # null: not finite
    return worst / scale


def compare(starling, case):
    """(None, worst difference) when the case holds, else (reason, None)."""
    with open(os.path.join(GOLDENS, case + ".expected.json")) as file:
        expected = {(line["round"], line["node"]): line["parameters"] for line in json.load(file)}
    with tempfile.TemporaryDirectory(prefix="starling-goldens-") as folder:
        out = os.path.join(folder, "out")
        ended = subprocess.run(
            [starling, "sim", os.path.join(GOLDENS, case + ".json"), "--out", out],
            capture_output=True,
            text=True,
            timeout=120,
        )
        if ended.returncode != 0:
            return f"starling sim ended with {ended.returncode}: {ended.stderr.strip()}", None
        found = read_parameters(os.path.join(out, "parameters.jsonl"))
    if found.keys() != expected.keys():
        return (
            f"recorded (round, node) {sorted(found)[:4]}..., expected {sorted(expected)[:4]}...",
            None,
        )
    worst, where = max((difference(found[key], expected[key]), key) for key in expected)
    if not worst <= TOLERANCE:
        return (
            f"round {where[0]}, node {where[1]} differs by {worst:.2e}, allowed {TOLERANCE}",
            None,
        )
    return None, worst


def main():
    starling = os.path.abspath(sys.argv[1])
    cases = sys.argv[2:] or sorted(
        os.path.basename(path)[: -len(".expected.json")]
        for path in glob.glob(os.path.join(GOLDENS, "*.expected.json"))
    )
    failed = not cases
    for case in cases:
        reason, worst = compare(starling, case)
        failed = failed or reason is not None
        print(
            f"not ok golden {case}: {reason}"
            if reason
            else f"ok golden {case} (differs by {worst:.1e})",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
