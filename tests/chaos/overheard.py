#!/usr/bin/env python3
"""What was heard between two agents is said again by somebody else: to the same agent, to others,
to another rank, to agents that were started again. Nobody who says it, or knows all that is public,
is taken for an agent.

usage: overheard.py STARLING [TEST ...]
       overheard.py STARLING --many GREETINGS [SEED]     until so many were said again
"""
import random
import shutil
import socket
import struct

from _four import COUNT, RECORD, WAYS, Four, by_hand
from _greetings import CHALLENGE, GREETING, HEAD, PROOF, WELCOME, greeting, hear, message
from _heads import heads
from _pretender import Pretender, to_another
from _scene import check, run_tests, read_json
from _tap import Tap

HEARD_MAX = 8192  # bytes of a talk: greetings, proofs, and the handshake behind them
PATIENCE_S = 0.3
REPEATED = ("as it was", "to another", "readdressed", "the beginning")
PRETENDED = "pretended"  # with all that is public


def connect(port):
    s = socket.create_connection(("127.0.0.1", port))
    s.settimeout(PATIENCE_S)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return s


def take(s, count):
    """What is answered within a moment."""
    try:
        return s.recv(count)
    except OSError:
        return b""


def kinds_of(answer):
    """Of the messages in it."""
    kinds = []
    while len(answer) >= HEAD.size:
        kind, count = HEAD.unpack(answer[: HEAD.size])
        kinds.append(kind)
        answer = answer[HEAD.size + count :]
    return kinds


def repeat(port, talk, to, chance, whole):
    """Says what whoever dialed has said, each time after the answer for which that has waited."""
    left, answer = HEARD_MAX, b""
    with connect(port) as s:
        try:
            for is_answer, data in talk.said:
                if is_answer:
                    answer += take(s, len(data))
                else:
                    s.sendall(data if to is None else to_another(bytes(data), to))
                left -= len(data)
                if left < 0 or not whole:
                    break
            s.sendall(heads(chance))
            answer += take(s, 1 << 16)
        except OSError:
            pass  # it was ended
    check(WELCOME not in kinds_of(answer), f"who repeats was welcome: {answer[:100]!r}")


def pretend(port, to, pretender, chance):
    said = greeting(chance.randrange(COUNT), to, kind=pretender.kind)
    with connect(port) as s:
        try:
            s.sendall(message(GREETING, said))
            kind, challenge = hear(s)
            if kind == CHALLENGE:
                s.sendall(message(PROOF, pretender.prove(said, challenge)))
                s.sendall(heads(chance))
                kind, _ = hear(s)
        except OSError:
            return  # it was ended
    check(kind != WELCOME, "a pretender was welcome")


class Attack:
    """One after the other, at agents that listen."""

    def __init__(self, four, seed):
        self.four, self.chance = four, random.Random(seed)
        known = [four.scene.path(f"node-{rank}.crt") for rank in range(COUNT) if any(four.pins)]
        self.pretender = Pretender(known, run_id=1, seed=seed)
        self.made = dict.fromkeys((*REPEATED, PRETENDED), 0)

    def strike(self, count):
        for _ in range(count):
            codes = {rank: agent.process.poll() for rank, agent in self.four.agents.items()}
            check(set(codes.values()) == {None}, f"ended: {codes}, after {self.made}")
            self.strike_once(self.chance.choice(list(self.made)))

    def strike_once(self, manner):
        ports, chance = self.four.ports, self.chance
        to = chance.choice(list(self.four.agents))
        self.made[manner] += 1
        if manner == PRETENDED:
            pretend(ports[to], to, self.pretender, chance)
            return
        talk = chance.choice(self.talks)
        if manner == "as it was":
            to = ports.index(talk.target)
        readdressed = to if manner == "readdressed" else None
        repeat(ports[to], talk, readdressed, chance, manner != "the beginning")

    def listen(self):
        """What was heard until now."""
        talks = list(self.four.wire.talks)
        self.talks = [talk for talk in talks if sum(len(data) for _, data in talk.said) > 2000]


def check_refused(four, count):
    """Their logs count who was refused at the door."""
    refused = 0
    for rank in range(COUNT):
        refused += read_json(four.scene.path(f"out{rank}/summary.json"))["per_node"][0]["refused"][
            "greeting"
        ]
    check(refused >= count // 2, f"{refused} of {count} were refused")


def train(scene, way, seed, strikes, rounds):
    """What agents that train say is said again to them, and to those that come after them, as they
    open and as they train. A third of all strikes each time."""
    scene.take_time(10000)  # as long as all strikes
    four = Four(scene, way, lambda ports: Tap(*ports), rounds=rounds)
    attack, third = Attack(four, seed), strikes // 3
    four.start_all()
    four.agents[0].wait_for(f"round {RECORD}/")
    attack.listen()
    attack.strike(third)
    for rank, agent in four.agents.items():
        agent.ends(0, 120)
    check_refused(four, third)
    attack.listen()
    for rank in range(COUNT):
        shutil.rmtree(scene.path(f"out{rank}"))
    four.agents.clear()
    for rank in range(COUNT - 1):
        four.start(rank).wait_for("listening")
    attack.strike(third)
    four.start(COUNT - 1)
    four.agents[0].wait_for(f"round {RECORD}/")
    attack.strike(third)
    four.end_well(120)
    check_refused(four, 2 * third)
    return attack.made


def who_heard_a_key_says_it_again(scene):
    train(scene, "key", 1, 30, 100)


def who_heard_certificates_says_it_again(scene):
    train(scene, "certificates", 2, 30, 100)


if __name__ == "__main__":
    by_hand(
        "said again",
        lambda scene, number, seed: train(scene, WAYS[number % 2], seed, 120, 400),
    )
    run_tests()
