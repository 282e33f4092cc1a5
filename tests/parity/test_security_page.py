#!/usr/bin/env python3
"""Each cell of the table of docs/security.md, attackers against what they cannot do, names tests
that show it, and there are such tests.

A name is SCRIPT.TEST, of a script or a Check program that runs with all tests, or a fuzz target's.
"""

import glob
import json
import os
import re

from _here import ROOT, Failure, check, run_tests

PAGE = "docs/security.md"
HEADING = "| who | cannot | can |"
NAME = re.compile(r"`(fuzz_\w+|[a-z]\w*\.[a-z]\w+)`")
SETTINGS = re.compile(r"(transport|membership|security|monitor|topology)\.")
ATTACKERS = ("stranger", "on the way", "another user", "roster", "run's key", "one node's pair")
ATTACKERS += ("watches a monitor", "wrote an experiment or a checkpoint")
ALL_POWERFUL = "root"


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def rows_of(text):
    """[who, cannot, can] of each attacker."""
    check(text.count(HEADING) == 1, f"there is no table, or more than one, that begins {HEADING}")
    lines = text.split(HEADING + "\n")[1].split("\n")[1:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def names_in(cell):
    return [name for name in NAME.findall(cell) if not SETTINGS.match(name)]


def tests_of(build):
    """The names under which the build runs tests, and its fuzz targets."""
    with open(os.path.join(build, "meson-info", "intro-tests.json")) as file:
        names = {test["name"] for test in json.load(file)}
    targets = re.findall(r"^  '(\w+)': \[", read("tests/fuzz/meson.build"), re.M)
    return names, {f"fuzz_{target}" for target in targets}


def check_name(name, names, targets):
    if name.startswith("fuzz_"):
        check(name in targets and os.path.exists(f"{ROOT}/tests/fuzz/{name}.c"), "no such target")
        return
    script, test = name.split(".")
    check(script in names or re.sub("^test_", "", script) in names, f"no test is called {script}")
    found = glob.glob(f"tests/*/{script}.[cp]*", root_dir=ROOT)
    check(len(found) == 1, f"{script} is {found or 'no file of tests'}")
    text = read(found[0])
    here = re.search(rf"def {test}\(|START_(LOOP_)?TEST\({test}\b", text)
    check(here, f"{found[0]} has no {test}")


def check_row(row, names, targets):
    check(len(row) == 3, f"{row[0]}: {len(row)} cells")
    who, cannot, can = row
    if who.startswith(ALL_POWERFUL):
        return
    check(names_in(cannot), f"{who}: what it cannot is shown by no test")
    check(can, f"{who}: what it can is not said")
    for name in names_in(cannot) + names_in(can):
        try:
            check_name(name, names, targets)
        except Failure as wrong:
            raise Failure(f"{who}: `{name}`: {wrong}") from None


def check_page(text, names, targets):
    rows = rows_of(text)
    for words in ATTACKERS:
        check(any(words in row[0] for row in rows), f"nothing is said of {words!r}")
    for row in rows:
        check_row(row, names, targets)


def each_name_is_a_tests(scene):
    names, targets = tests_of(os.path.dirname(os.path.dirname(scene.starling)))
    check_page(read(PAGE), names, targets)


if __name__ == "__main__":
    run_tests()
