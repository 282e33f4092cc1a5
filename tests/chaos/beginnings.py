#!/usr/bin/env python3
"""Runs that begin, or go on from a checkpoint, and whose members change soon after.

usage: beginnings.py STARLING [TEST ...]
"""
import os
import signal
import time

from _ports import free_ports
from _scene import SLOWER, check, run_tests
from losses import Hands, events, leave, wait_for_return, wait_for_views

SAVES = {"rounds": 2000000, "checkpoint": {"every": 100, "keep": 3}}


def wait_until(holds, what):
    until = time.monotonic() + SLOWER * 60
    while not holds():
        check(time.monotonic() < until, f"{what}: not in time")
        time.sleep(0.02)


def save_and_end(running, *others):
    """SIGUSR2 to the first: all end after a checkpoint."""
    running.process.send_signal(signal.SIGUSR2)
    for each in (running, *others):
        each.wait(60)
        check(each.code == 75, f"exit code {each.code}: {each.err!r}")


def trains_again(scene, rank, folder):
    starts = [event["time"] for event in events(scene, rank, "start", folder)]
    saved = [event["time"] for event in events(scene, rank, "checkpoint", folder)]
    return len(starts) == 2 and saved[-1] > starts[1]


def resume_by_hand(scene, hands):
    for rank, running in enumerate(hands.agents):
        words = ["--resume", running.folder, "--rank", str(rank), "--roster", hands.roster]
        hands.agents[rank] = scene.start("agent", *words)
        hands.agents[rank].folder = running.folder
    watched = hands.agents[1].folder
    wait_until(lambda: trains_again(scene, 1, watched), "a checkpoint after the resume")


def agents_by_hand_lose_one_after_a_resume(scene):
    """It joins again, and another one leaves."""
    hands = Hands(scene, **SAVES)
    save_and_end(*hands.agents)
    resume_by_hand(scene, hands)
    watched = hands.agents[1].folder
    hands.kill(3)
    wait_for_views(scene, 1, 1, watched)
    hands.agents[3] = hands.start(3, "--join")
    wait_for_views(scene, 1, 2, watched)
    hands.agents[2].process.send_signal(signal.SIGTERM)
    wait_for_views(scene, 1, 3, watched)
    hands.agents[2].wait(60)
    check(hands.agents[2].code == 75, f"{hands.agents[2].code}: {hands.agents[2].err!r}")
    views = [view["members"] for view in events(scene, 1, "view", watched)]
    check(views == [[0, 1, 2], [0, 1, 2, 3], [0, 1, 3]], f"{views}")
    save_and_end(hands.agents[0], hands.agents[1], hands.agents[3])


def a_run_loses_one_after_a_resume(scene):
    membership = {"on_loss": "continue", "grace_s": 30, "restart": "on-failure"}
    changes = {**SAVES, "topology__nodes": 4, "membership": membership}
    running = scene.start("run", scene.experiment(**changes), "--out", scene.path("run"))
    running.wait_for("round 40/")
    running.process.send_signal(signal.SIGTERM)
    check(running.wait(60).code == 75, f"exit code {running.code}: {running.err!r}")
    running = scene.start("run", "--resume", scene.path("run"))
    wait_until(lambda: trains_again(scene, 0, "run"), "a checkpoint after the resume")
    os.kill(scene.agents()[2], signal.SIGKILL)
    wait_for_return(scene, running, 2)
    leave(scene.agents(), 3)
    wait_for_views(scene, 0, 3)
    running.process.send_signal(signal.SIGTERM)
    check(running.wait(60).code == 75, f"exit code {running.code}: {running.err!r}")
    again = scene.call("sim", scene.path("run"), "--replay", "--out", scene.path("again"))
    again.check_refused("a run that has lost members is repeated if it came to its end")


def nobody_trains_before_all_have_come(scene):
    """Rank 2 of a ring is never started: 0, which has both its neighbours, has begun. So have all
    others on a path but its neighbour, and they end with it."""
    for nodes, family, missing in ((4, "ring", 2), (5, "path", 4)):
        transport = {"connect_timeout_s": 3, "round_timeout_s": 60}
        path = scene.experiment(
            topology={"nodes": nodes, "family": family},
            membership={"on_loss": "continue", "grace_s": 30},
            transport=transport,
        )
        lines = "".join(f"127.0.0.1:{port}\n" for port in free_ports(nodes))
        roster = scene.write("roster", lines)
        agents = {
            rank: scene.start("agent", path, "--rank", str(rank), "--roster", roster)
            for rank in range(nodes)
            if rank != missing
        }
        for rank, running in agents.items():
            running.wait(30).check_refused(f"agent {missing} (127.0.0.1:", "come up", code=1)


TESTS = [
    nobody_trains_before_all_have_come,
    agents_by_hand_lose_one_after_a_resume,
    a_run_loses_one_after_a_resume,
]
if __name__ == "__main__":
    run_tests(TESTS)
