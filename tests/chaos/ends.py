#!/usr/bin/env python3
"""How a run has ended is in its files, whatever ended it: without a quorum, by a signal that ends a
program at once, on a full disk. Where a process could write nothing any more, readers find that it
is gone."""
import calendar
import contextlib
import os
import signal
import time

from _ports import free_ports
from _scene import check, read_json, run_tests
from disks import mounted
from losses import Hands

CRASHES = {"SIGABRT": "Aborted", "SIGSEGV": "Segmentation fault"}
ALONE = {"topology": {"nodes": 1, "family": "complete"}, "checkpoint": {"every": 20, "keep": 2}}
GONE = "ended without a word"


def start_alone(scene, folder):
    """A run of one agent, by hand, that does not end by itself."""
    scene.take_time()
    roster = scene.roster(free_ports(1))
    running = scene.agent(scene.experiment(**ALONE), 0, roster, out=folder)
    running.wait_for("round 40/")
    about = read_json(folder, "run-0.json")
    check((about["outcome"], about["ended"], about["why"]) == ("running", None, None), f"{about}")
    return running


def who_reaches_no_quorum_says_so(scene):
    """Three of four stand still: for the fourth the network is broken."""
    hands = Hands(scene, membership__grace_s=2, membership__minority_s=1)
    left, *others = hands.agents
    for running in others:
        running.process.send_signal(signal.SIGSTOP)
    left.wait(60)
    hands.end()
    check(left.code == 75, f"exit code {left.code}: {left.err!r}")
    about = read_json(left.folder, "run-0.json")
    check(about["outcome"] == "cut off" and "membership.quorum" in about["why"], f"{about}")
    check(not os.path.exists(f"{left.folder}/summary.json"), "a summary of a run that may go on")


def check_crashed(scene, folder, file, name):
    number = getattr(signal, name)
    about, words = read_json(folder, file), f"killed by signal {int(number)} ({CRASHES[name]})"
    check((about["outcome"], about["why"]) == ("crashed", words), f"{name}: {about}")
    ended = calendar.timegm(time.strptime(about["ended"], "%Y-%m-%dT%H:%M:%SZ"))
    check(abs(time.time() - ended) < 60, f"{name}: {about}")
    for command in ("checkpoint", "status"):
        said = scene.call(command, folder).out
        check(f"crashed: {words}" in said, f"{command}: {said!r}")


def a_signal_that_ends_a_program_is_in_its_file(scene):
    """And ends it as it would without."""
    for name in CRASHES:
        folder = scene.path(name)
        running = start_alone(scene, folder)
        running.process.send_signal(getattr(signal, name))
        running.ends(-getattr(signal, name), 20)
        check_crashed(scene, folder, "run-0.json", name)
    path = scene.experiment(**{**ALONE, "topology": {"nodes": 3, "family": "ring"}})
    for command in ("sim", "run"):
        folder = scene.path(command)
        running = scene.start(command, path, "--out", folder)
        running.wait_for("round 40/")
        running.process.send_signal(signal.SIGABRT)
        running.wait(20)
        scene.wait_gone(20)
        check_crashed(scene, folder, "run.json", "SIGABRT")


def whoever_is_killed_is_missed_by_readers(scene):
    """Not while it lives."""
    folder = scene.path("out")
    running = start_alone(scene, folder)
    for said in (scene.call("checkpoint", folder).out, scene.call("status", folder).out):
        check(GONE not in said, f"it lives: {said!r}")
    running.process.kill()
    running.wait(20)
    check(read_json(folder, "run-0.json")["outcome"] == "running", "SIGKILL lets nobody write")
    for command in ("checkpoint", "status"):
        said = scene.call(command, folder).out
        check(f"agent 0 {GONE}" in said, f"{command}: {said!r}")


def a_full_disk_is_in_its_files(scene):
    """The agent's last words need no room."""
    with mounted(scene, "-t", "tmpfs", "-o", "size=4m", "starling-test") as disk:
        running = start_alone(scene, f"{disk}/out")
        with open(f"{disk}/rest", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        running.ends(1, 60)
        about = read_json(f"{disk}/out", "run-0.json")
        check(about["outcome"] == "failed" and about["ended"], f"{about}")
        check("No space left" in about["why"], f"{about}")


if __name__ == "__main__":
    run_tests()
