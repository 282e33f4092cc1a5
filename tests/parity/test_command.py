#!/usr/bin/env python3
"""What a user sees of the command: tables and the live view fit the terminal, run folders say what
made them, and a wrong word is answered with the right one.

usage: test_command.py STARLING [TEST ...]
"""
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "chaos"))
from _scene import check, run_tests  # noqa: E402

ESCAPE = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")
LINKS = {"bandwidth_mbit": 100, "latency_ms": 2}


def on_terminal(scene, columns, *arguments, timeout=60):
    """All lines that the command writes on a terminal this wide."""
    mine, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        [scene.starling, *arguments],
        cwd=scene.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=subprocess.STDOUT,
    )
    os.close(its)
    text, end = b"", time.monotonic() + timeout
    while time.monotonic() < end:
        if not select.select([mine], [], [], 1)[0]:
            continue
        try:
            text += os.read(mine, 65536)
        except OSError:  # the other end is closed
            break
    os.close(mine)
    check(process.wait(10) == 0, f"exit code {process.returncode}: {text[-600:]!r}")
    return [line for line in ESCAPE.sub("", text.decode()).replace("\r", "\n").split("\n") if line]


def longest(lines, but="run folder"):
    return max((line for line in lines if but not in line), key=len)


def test_live_view_and_tables_fit_a_terminal(scene):
    path = scene.experiment(rounds=200, record__every=10)
    for columns in (50, 80, 120):
        for number, command in enumerate(("sim", "run")):
            out = scene.path(f"{command}{columns}")
            lines = on_terminal(scene, columns, command, path, "--out", out)
            check(any(line.startswith("[###") for line in lines), f"no live view: {lines}")
            check(any("round 200/200" in line for line in lines), f"no last round: {lines[-30:]}")
            check(len(longest(lines)) <= columns, f"beyond {columns}: {longest(lines)!r}")
    lines = on_terminal(scene, 50, "sim", path, "--wide", "--out", scene.path("wide"))
    head = next(line for line in lines if line.startswith("node "))
    for (
        column
    ) in "accuracy loss sent received gradient encode wait combine exchange other total".split():
        check(column in head.split(), f"--wide without {column}: {head!r}")


def test_output_in_files_takes_80_columns(scene):
    path = scene.experiment(rounds=40, network=LINKS)
    for arguments in (
        ["sim", path, "--out", scene.path("sim")],
        ["topology", "rank", "--nodes", "16"],
        ["topology", "analyse", path],
        ["topology", "analyse", os.path.join(ROOT, "topologies", "base-k-12.json")],
    ):
        ended = scene.call(*arguments)
        check(ended.code == 0, f"{arguments}: {ended.err!r}")
        lines = ended.out.splitlines()
        check(len(longest(lines)) <= 80, f"{arguments}: beyond 80: {longest(lines)!r}")
    wide = scene.call("topology", "rank", "--nodes", "16", "--wide").out
    for column in ("weights", "gap", "degree", "why"):
        check(column in wide.splitlines()[1].split(), f"--wide without {column}: {wide[:300]!r}")


if __name__ == "__main__":
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
