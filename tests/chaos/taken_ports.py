#!/usr/bin/env python3
"""Somebody else has the port where an agent is expected, before it is up and after it has gone:
whoever dials says what it met, lives, and goes on once the true one is there.

usage: taken_ports.py STARLING [TEST ...]
       taken_ports.py STARLING --many VISITS [SEED]     until somebody else was met so often
"""

from _four import COUNT, RECORD, WAYS, Four, by_hand
from _impostor import MANNERS, Impostor
from _pretender import Pretender
from _scene import check, run_tests, wait_until

DIALED = (0, 1, 2)  # by whoever has a higher rank
FOR_EVER = 1 << 30  # connections


def wait_among(agents, holds, what):
    def has():
        codes = {rank: agent.process.poll() for rank, agent in agents.items()}
        check(not any(codes.values()), f"{what}: ended with {codes}")
        return holds()

    wait_until(has, what)


def make_impostor(scene, way, seed):
    def make(ports):
        known = [scene.path(f"node-{rank}.crt") for rank in range(COUNT) if way != "key"]
        return Impostor(seed, ports, Pretender(known, run_id=1, seed=seed))

    return make


def train(scene, way, seed, visits, rounds):
    """At first somebody else is where agent 0 is expected, and then, while all train, where others
    were. So often each time."""
    scene.take_time(2000)
    patience = {"transport__connect_timeout_s": 600, "transport__reconnect_s": 600}
    four = Four(scene, way, make_impostor(scene, way, seed), rounds=rounds, **patience)
    wire, agents = four.wire, four.agents
    wire.take(four.ports[0], FOR_EVER)
    wire.start()
    for rank in range(1, COUNT):
        four.start(rank)
    place = f"0 (127.0.0.1:{wire.ports[0]}): "  # behind it they say what they have met
    for rank in (1, 3):
        wait_among(agents, lambda: place in agents[rank].said, f"agent {rank} says what it has met")
    wait_among(agents, lambda: sum(wire.met.values()) >= visits, "somebody else answers")
    wire.leave(four.ports[0])
    four.start(0).wait_for(f"round {RECORD}/")
    for rank in DIALED:
        wire.take(four.ports[rank], visits)
    wait_among(agents, wire.is_free, "somebody else answers those that train")
    four.end_well(300)
    said = "".join(agent.said for agent in agents.values())
    check("\x1b" not in said and "\x07" not in said, f"control characters: {said!r}")
    return wire.met


def an_agent_with_a_key_is_awaited(scene):
    train(scene, "key", 1, len(MANNERS), 100)


def an_agent_with_a_certificate_is_awaited(scene):
    train(scene, "certificates", 2, 5, 100)


if __name__ == "__main__":
    by_hand(
        "connections to somebody else",
        lambda scene, number, seed: train(scene, WAYS[number % 2], seed, 2 * len(MANNERS), 600),
    )
    run_tests()
