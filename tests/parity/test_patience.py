#!/usr/bin/env python3
"""What takes longer than a second has a bar on a terminal, with the time that is left; it goes when
the work is done, and in a file there is nothing of it."""
import json
import re

from _here import check, run_tests
from _terminal import Terminal

COLUMNS = 60
BAR = re.compile(r"\[(#*)(-*)\] left \d+:\d\d(:\d\d)?  (.*)\x1b\[K")
FREE = r"this host has .*"
SPENT = re.compile(r"\d+:\d\d  (.*)\x1b\[K")
AVERAGING = {"nodes": 300, "family": "erdos-renyi", "probability": 0.025, "weights": "fmmc"}


def call(scene, *words, **variables):
    """What it prints, and what its terminal sees of standard error."""
    with open(scene.path("out"), "w+", encoding="utf-8") as out:
        words = [scene.starling, *words]
        code, said = Terminal(words, 24, COLUMNS, variables, stdout=out).read_all()
        out.seek(0)
        return code, out.read(), said


def check_bar(scene, what, *words):
    code, out, said = call(scene, *words)
    *drawn, last = said.split("\r")[1:]
    check(code == 0 and last == "\x1b[K" and "\n" not in said, (code, said[-300:]))
    bars = [found for found in map(BAR.fullmatch, drawn) if found]
    check(bars and all(BAR.fullmatch(line) or SPENT.fullmatch(line) for line in drawn), drawn)
    for found in bars:
        check(len(found[1] + found[2]) == 20 and what.startswith(found[4]), found[0])
    check(all(len(line) - len("\x1b[K") < COLUMNS for line in drawn), drawn)
    full = [len(found[1]) for found in bars]
    check(full == sorted(full), full)
    silent = scene.call(*words)
    same = re.sub(FREE, "", silent.out) == re.sub(FREE, "", out)
    check(silent.code == 0 and same and silent.err == "", silent.out + silent.err)


def test_a_ranking_has_a_bar(scene):
    words = ("topology", "rank", "--nodes", "256")
    check_bar(scene, "ranking topologies of 256 nodes", *words)


def test_optimizing_weights_has_a_bar(scene):
    file = scene.write("averaging.json", json.dumps(AVERAGING))
    check_bar(scene, f"analysing {file}", "topology", "analyse", file)
    check_bar(scene, f"checking {file}", "check", file)
    experiment = scene.write("experiment.json", json.dumps({"rounds": 1, "topology": AVERAGING}))
    check_bar(scene, f"checking {experiment}", "check", experiment)
    words = "erdos-renyi --nodes 300 --probability 0.025 --weights fmmc".split()
    check_bar(scene, "making the topology", "topology", "make", *words)


def test_what_is_quick_or_no_terminal_has_none(scene):
    ring = scene.write("ring.json", json.dumps({"nodes": 8, "family": "ring"}))
    for words in (("check", ring), ("topology", "analyse", ring)):
        code, out, said = call(scene, *words)
        check(code == 0 and out and not said, said)
    code, _, said = call(scene, "topology", "rank", "--nodes", "200", TERM="dumb")
    check(code == 0 and not said, said)


if __name__ == "__main__":
    run_tests()
