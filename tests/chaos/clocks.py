#!/usr/bin/env python3
"""Clocks are wrong, and are set, before a run and in it: nobody is kept out for it."""

import contextlib
import itertools
import os
import threading
import time

from _forger import CUTS, Forger
from _keyed import make_keys
from _limits import set_clock
from _ports import free_ports
from _scene import check, run_tests
from losses import Hands
from taps import QUICK

HOUR_S, COUNT = 3600, 6
AHEAD, RIGHT, BEHIND = 2 * HOUR_S, 0, -2 * HOUR_S


@contextlib.contextmanager
def turned(scene, pause_s=0.3):
    """Clocks are set to and fro."""
    over = threading.Event()

    def turn():
        for seconds in itertools.cycle((AHEAD, RIGHT, BEHIND, RIGHT)):
            if over.wait(pause_s):
                return
            set_clock(scene, seconds)

    set_clock(scene, AHEAD)
    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def who_connects_anew_is_let_in(scene):
    """With a key, while connections, which all goes by, are cut: one clock is set."""
    make_keys(scene, "run.key")
    pair = {"topology": {"nodes": 2, "family": "ring"}, "transport__memory": "off"}
    path = scene.experiment(**{**QUICK, **pair, "security__key": "run.key", "rounds": 40})
    ports = free_ports(2)
    cutter = Forger(7, ports, COUNT, 20000, 5000, CUTS)
    roster = scene.roster(cutter.ports)
    cutter.start()

    def start_agent(rank):
        return scene.agent(path, rank, roster, "--listen", f"127.0.0.1:{ports[rank]}")

    first = start_agent(0)
    with turned(scene):
        for agent in (first, start_agent(1)):
            agent.wait(60).check_well()
    cutter.stop()
    check(sum(cutter.made.values()) == COUNT, f"{cutter.made} cuts were made")
    scene.check_models(["out0", "out1"], experiment=path)


def a_gradient_that_stands_still_is_not_waited_for(scene):
    """By an agent that is asked to end, longer than time limits say, which are of another clock."""
    set_clock(scene, AHEAD)
    os.mkdir(scene.path("stalls"))
    scene.preload("wrong_clock", "slow_gradient")
    scene.environment["STARLING_STALLS"] = scene.path("stalls")
    hands = Hands(scene, rounds=2000000, membership__grace_s=2, transport={"timeout_s": 2})
    stands = hands.agents[2]
    scene.write(f"stalls/{stands.process.pid}", "")
    time.sleep(0.5)  # a round, and more
    stands.interrupt().ends(130, 6)
    hands.end()


if __name__ == "__main__":
    run_tests()
