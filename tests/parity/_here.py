"""Where the project is, and what the scripts of chaos/ share: for the scripts of this folder."""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "chaos"))
from _scene import check, run_tests  # noqa: E402,F401


def read_json(path):
    with open(path) as file:
        return json.load(file)


def read_lines(path):
    """JSON in each line."""
    with open(path) as file:
        return [json.loads(line) for line in file]


class Wrong(Exception):
    """Something in a page; the text is what."""


def expect(holds, why):
    if not holds:
        raise Wrong(why)
