#!/usr/bin/env python3
"""Two jobs at one port: each mixes its own models only, or says in one sentence that they are two.
"""
import os
import random
import subprocess
import time

import _package  # noqa: F401: finds the package
import _peers
from _scene import SLOWER, check, run_tests
from strangers import wait_listening

# A job's models hold its number. What tells a job of its own number is an argument, or a variable.
PEER = """
import os, sys
import numpy
import starling

value = float(os.environ.get("VALUE") or sys.argv[1])
x = numpy.full(1, value, "f4")
experiment = {"topology": {"family": "ring"}, "transport": {"connect_timeout_s": TIMEOUT}}
try:
    with starling.join(experiment, x) as peer:
        print("joined", flush=True)
        peer.mix()
    print("ok" if x[0] == value else f"WRONG: {value:g} became {x[0]:g}", flush=True)
except starling.Error as error:
    print("refused:", error, flush=True)
"""


class Jobs:
    """Processes of jobs of two that share a port."""

    def __init__(self, scene, by_variable=False, timeout_s=60, port=None):
        text = PEER.replace("TIMEOUT", str(timeout_s))
        self.path, self.by_variable = scene.write("peer.py", text), by_variable
        self.port, self.started = port or _peers.free_ports(1)[0], []

    def start(self, value, rank, size=2, **more):
        variables = {"VALUE": str(value)} if self.by_variable else {}
        process = subprocess.Popen(
            [_peers.PYTHON, self.path, *([] if self.by_variable else [str(value)])],
            env={
                **os.environ,
                **variables,
                "RANK": str(rank),
                "WORLD_SIZE": str(size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(self.port),
                **more,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def ended(self):
        """What each said at its end."""
        said = []
        for process in self.started:
            out, err = process.communicate(timeout=SLOWER * 120)
            check(process.returncode == 0, f"{out!r} {err[-800:]!r}")
            said.append(out.strip().splitlines()[-1])
        return said


def end_of(process):
    """Its last line, once it has ended."""
    out = process.communicate(timeout=SLOWER * 120)[0]
    return out.strip().splitlines()[-1]


def check_refused(said, *words):
    check(said.startswith("refused: "), said)
    for word in (*words, "MASTER_PORT", "STARLING_RUN_ID"):
        check(word in said, f"{word!r} is missing in {said!r}")


def test_who_comes_second_is_refused(scene):
    """As two launchers do that begin after one another: the first job trains all the same."""
    for by_variable in (False, True):
        jobs = Jobs(scene, by_variable)
        first = jobs.start(1, 0)
        wait_listening(jobs.port)
        check_refused(end_of(jobs.start(100, 0)), "another job of 2", f"port {jobs.port}")
        check_refused(end_of(jobs.start(100, 1)), "another job of 2", f"port {jobs.port}")
        last = jobs.start(1, 1)
        check((end_of(first), end_of(last)) == ("ok", "ok"), "the first job has not trained")


def test_who_has_taken_a_place_gives_it_back(scene):
    """Rank 1 of the second job is there before that of the first."""
    jobs = Jobs(scene)
    first = jobs.start(1, 0)
    wait_listening(jobs.port)
    stray = jobs.start(100, 1)
    time.sleep(0.5)
    last = jobs.start(1, 1)
    check((end_of(first), end_of(last)) == ("ok", "ok"), "the first job has not trained")
    check_refused(end_of(stray), "another job of 2")


def test_two_of_a_rank_of_which_none_is_surely_right(scene):
    jobs = Jobs(scene)
    first = jobs.start(1, 0)
    wait_listening(jobs.port)
    ends = [end_of(each) for each in (jobs.start(2, 1), jobs.start(3, 1), first)]
    check(not any("WRONG" in end for end in ends), ends)
    check_refused(ends[2], "rank 1 of 2", "two jobs")


def test_all_at_once_never_mix(scene):
    """In any order: right values, or one clear error, and one job trains at least."""
    for turn in range(3):
        jobs = Jobs(scene, by_variable=turn == 1, timeout_s=6)
        processes = [(value, rank) for value in (1, 100) for rank in (0, 1)]
        random.SystemRandom().shuffle(processes)
        for value, rank in processes:
            jobs.start(value, rank)
        said = jobs.ended()
        check(not any("WRONG" in each for each in said), f"{processes}: {said}")
        check(all(each == "ok" or each.startswith("refused: ") for each in said), said)


def test_another_size_is_refused(scene):
    jobs = Jobs(scene)
    first = jobs.start(1, 0)
    wait_listening(jobs.port)
    check_refused(end_of(jobs.start(1, 0, size=3)), "another job of 2")
    check_refused(end_of(jobs.start(1, 2, size=3)), "one of 3", "one of 2")
    check((end_of(jobs.start(1, 1)), end_of(first)) == ("ok", "ok"), "the first job")


def test_a_run_id_tells_them_apart(scene):
    """Both train, at neighbouring ports."""
    jobs = Jobs(scene)
    for rank in (0, 1):
        for value in (1, 100):
            jobs.start(value, rank, STARLING_RUN_ID=str(value))
    check(jobs.ended() == ["ok"] * 4, "with run ids of their own")


def test_one_job_after_the_other(scene):
    """The port is free again once all have met; one that is alone takes none."""
    jobs = Jobs(scene)
    for value in (1, 100):
        for rank in (0, 1):
            jobs.start(value, rank)
        check([end_of(each) for each in jobs.started[-2:]] == ["ok", "ok"], value)
    waiting = jobs.start(7, 0)
    wait_listening(jobs.port)
    check(end_of(jobs.start(8, 0, size=1)) == "ok", "alone")
    check((end_of(jobs.start(7, 1)), end_of(waiting)) == ("ok", "ok"), "who waited")


if __name__ == "__main__":
    run_tests()
