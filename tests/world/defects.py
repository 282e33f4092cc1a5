#!/usr/bin/env python3
"""Plants defects in the agent, one at a time, and asks the virtual world, or a test of what agents
prove and seal, to find each.

A defect is a change of one source: that is compiled as the build compiles it, though in less time,
and linked before the library's archive. Nothing in the tree changes. A text that is not there any
more is a failure: the guard has moved, and its defect has to move with it.

usage: defects.py STARLING [--only NAME] [--seeds N]
"""

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile

from _planted import FINDERS

QUICKLY = ["-O1", "-Wno-error", "-w"]  # compiled for one run of a few seeds
LINKER = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []  # a third of the time of the other
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEEDS = 8000
BLOCK = 100  # seeds in one run of the world
MEMORY = 4 << 30  # bytes at most: a defect may let a world take all that there is
SECONDS = 300  # for a block, which takes some 10; a seed that never ends is found, too


def command_of(build, source):
    """How the build compiles a source, without its input and output."""
    with open(os.path.join(build, "compile_commands.json")) as file:
        entries = json.load(file)
    wanted = os.path.join(ROOT, source)
    for entry in entries:
        if os.path.realpath(os.path.join(entry["directory"], entry["file"])) == wanted:
            words = shlex.split(entry["command"])
            drop = {"-o", "-MF", "-MQ", "-c"}
            kept, skip = [], False
            for word in words:
                if not skip and word not in drop and word != "-MD":
                    kept.append(word)
                skip = word in drop
            return kept, entry["directory"]
    raise SystemExit(f"not ok defects: {source} is not in {build}/compile_commands.json")


def link_command(build, program):
    """How the build links a program of tests/."""
    rules = subprocess.run(
        ["ninja", "-C", build, "-t", "commands", f"tests/{program}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return shlex.split(rules.strip().splitlines()[-1])


def plant(build, folder, finder, source, before, after):
    """The program with the defect, or why there is none."""
    with open(os.path.join(ROOT, source)) as file:
        text = file.read()
    if text.count(before) != 1:
        return None, f"{source} has this text {text.count(before)} times: {before}"
    changed, program = os.path.join(folder, os.path.basename(source)), os.path.join(folder, "world")
    with open(changed, "w") as file:
        file.write(text.replace(before, after))
    command, place = command_of(build, source)
    compiled = subprocess.run(
        [*command, *QUICKLY, "-c", changed, "-o", changed + ".o"],
        cwd=place,
        capture_output=True,
        text=True,
    )
    if compiled.returncode != 0:
        return None, compiled.stderr
    words = link_command(build, finder)
    words[words.index("-o") + 1] = program
    words.insert(words.index(program) + 1, changed + ".o")
    linked = subprocess.run([*words, *LINKER], cwd=build, capture_output=True, text=True)
    return (program, "") if linked.returncode == 0 else (None, linked.stderr)


def search(program, first, seeds):
    """(found, what was said) of one block."""
    try:
        run = subprocess.run(
            [program, str(first), str(seeds)], capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return True, f"a seed from {first} on that never ended"
    said = [line for line in run.stderr.splitlines() if line.strip()]
    said = said or run.stdout.splitlines()[-1:]
    return run.returncode != 0, said[0] if said else f"ended with {run.returncode}"


def hunt(program, first, seeds):
    """(found, what was said) of the first block that finds it."""
    found, said = False, "no seeds"
    for block in range(first, first + seeds, BLOCK):
        found, said = search(program, block, min(BLOCK, first + seeds - block))
        if found:
            break
    return found, said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("starling")
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    o = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ.pop("CK_TAP_LOG_FILE_NAME", None)  # that file is this script's
    build = os.path.dirname(os.path.dirname(os.path.abspath(o.starling)))
    missed = 0
    planted = [(finder, *row) for finder, rows in FINDERS.items() for row in rows.items()]
    for finder, name, defect in planted:
        if o.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            program, why = plant(build, folder, finder, *defect[:3])
            found, said = hunt(program, defect[3], o.seeds) if program else (False, why)
        missed += not found
        print(f"{'ok' if found else 'not ok'} {name}: {re.sub(' *$', '', said)[:160]}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
