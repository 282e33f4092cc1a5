#!/usr/bin/env python3
"""Somebody else has the port where an agent is expected, before it is up and after it has gone:
whoever dials says what it met, lives, and goes on once the true one is there.

usage: taken_ports.py STARLING [TEST ...]
       taken_ports.py STARLING --many VISITS [SEED]     until somebody else was met so often
"""
import time

from _four import COUNT, RECORD, WAYS, Four, by_hand
from _impostor import MANNERS, Impostor
from _pretender import Pretender
from _scene import SLOWER, check, run_tests

DIALED = (0, 1, 2)  # by whoever has a higher rank


def wait_until(holds, agents, what, seconds=60):
    until = time.monotonic() + SLOWER * seconds
    while not holds():
        codes = {rank: agent.process.poll() for rank, agent in agents.items()}
        check(not any(codes.values()), f"{what}: ended with {codes}")
        check(time.monotonic() < until, f"{what}: not within {seconds} s")
        time.sleep(0.02)


def make_impostor(scene, way, seed):
    def make(ports):
        known = [scene.path(f"node-{rank}.crt") for rank in range(COUNT) if way != "key"]
        return Impostor(seed, ports, Pretender(known, run_id=1, seed=seed))

    return make


def train(scene, way, seed, visits, rounds):
    """At first somebody else is where agent 0 is expected, and then, while all train, where others
    were. So often each time."""
    patience = {"transport__connect_timeout_s": 600, "transport__reconnect_s": 600}
    four = Four(scene, way, make_impostor(scene, way, seed), rounds=rounds, **patience)
    wire = four.wire
    wire.take(four.ports[0], visits)
    wire.start()
    for rank in range(1, COUNT):
        four.start(rank)
    wait_until(wire.is_free, four.agents, "somebody else answers for agent 0")
    four.start(0).wait_for(f"round {RECORD}/")
    for rank in DIALED:
        wire.take(four.ports[rank], visits)
    wait_until(wire.is_free, four.agents, "somebody else answers for agents that train")
    four.end_well(300)
    check_words(four.agents)
    return wire.met


def check_words(agents):
    """They are told whom they did not reach and why, and nothing for the terminal."""
    said = "".join(agent.said for agent in agents.values())
    check("agent 0" in agents[1].said and "prove" in said, f"what was met: {agents[1].said!r}")
    check("\x1b" not in said and "\x07" not in said, f"control characters: {said!r}")


def an_agent_with_a_key_is_awaited(scene):
    train(scene, "key", 1, len(MANNERS), 400)


def an_agent_with_a_certificate_is_awaited(scene):
    train(scene, "certificates", 2, len(MANNERS), 400)


if __name__ == "__main__":
    by_hand(
        "connections to somebody else",
        lambda scene, number, seed: train(scene, WAYS[number % 2], seed, 2 * len(MANNERS), 600),
    )
    run_tests([an_agent_with_a_key_is_awaited, an_agent_with_a_certificate_is_awaited])
