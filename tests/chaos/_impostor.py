"""Somebody has the port where an agent is expected: before it is there, or after it has gone. It
takes connections, and answers in any manner but the true one."""

import random

from _greetings import CHALLENGE, HEAD, REFUSAL, WELCOME, message
from _heads import heads
from _tap import Tap
from _wire import Pair

CHALLENGE_BYTES = 32
TERMINAL = b"\x1b]0;taken\x07\x1b[31m" + bytes(range(256))


def answer(visit, said):
    """The agent's own, as it was heard at another time, piece by piece."""
    if visit.heard is None:
        visit.heard = list(visit.wire.random.choice(visit.wire.answers() or [[]]))
    return bytes(visit.heard.pop(0)) if visit.heard else b""


def challenge(visit, said):
    return message(CHALLENGE, visit.wire.random.randbytes(CHALLENGE_BYTES))


def challenge_and_welcome(visit, said):
    """With what proof it can make; then heads of messages."""
    if visit.challenge is None:
        visit.greeted, visit.challenge = said[HEAD.size :], challenge(visit, said)
        return visit.challenge
    proof = visit.wire.pretender.prove(visit.greeted, visit.challenge[HEAD.size :], dials=False)
    return message(WELCOME, proof) + heads(visit.wire.random)


# What is said at first (said: nothing), and whenever something has come; None: it closes.
MANNERS = {
    "says nothing": lambda visit, said: b"",
    "closes": lambda visit, said: None,
    "closes once it was greeted": lambda visit, said: None if said else b"",
    "garbage": lambda visit, said: visit.wire.random.randbytes(300),
    "sends back what comes": lambda visit, said: said,
    "an answer that was heard": lambda visit, said: answer(visit, said) if said else b"",
    "an answer that was heard, and heads": lambda visit, said: (
        answer(visit, said) + heads(visit.wire.random) if said else b""
    ),
    "heads": lambda visit, said: heads(visit.wire.random),
    "challenges": lambda visit, said: challenge(visit, said) if said else b"",
    "a challenge and a welcome": lambda visit, said: (
        challenge_and_welcome(visit, said) if said else b""
    ),
    "a welcome": lambda visit, said: message(WELCOME) + heads(visit.wire.random),
    "another length": lambda visit, said: b"\2\xff\xff" + bytes(70000) if said else b"",
    "a refusal for the terminal": lambda visit, said: message(REFUSAL, TERMINAL) if said else b"",
}


class Visit(Pair):
    """One that nobody forwards."""

    def __init__(self, target, client, wire, manner):
        super().__init__(target, client, client)
        self.ends = (client,)
        self.wire, self.manner = wire, manner
        self.heard = self.challenge = None

    def other(self, end):
        return end


class Impostor(Tap):
    """A wire; but the next connections to a target that is taken are its own."""

    def __init__(self, seed, targets, pretender):
        super().__init__(*targets)
        self.random, self.pretender = random.Random(seed), pretender
        self.left = dict.fromkeys(targets, 0)
        self.met = dict.fromkeys(MANNERS, 0)
        self.taken = []  # by the thread that asks; the wire's own does it

    def answers(self):
        """Of true connections: what came from whoever was dialed."""
        found = [[data for is_answer, data in talk.said if is_answer] for talk in self.talks]
        return [one for one in found if one]

    def take(self, target, count):
        """As if its process had died, and somebody else were there first."""
        self.taken.append((target, count))

    def leave(self, target):
        """The true one is let in."""
        self.left[target] = 0

    def is_free(self):
        return not self.taken and not any(self.left.values())

    def turn(self):
        while self.taken:
            target, count = self.taken.pop()
            self.left[target] += count
            for pair in {pair for pair in self.pairs.values() if pair.target == target}:
                self.drop(pair, reset=True)
        super().turn()

    def accept(self, listener):
        target = self.listeners[listener]
        if self.left[target] == 0:
            super().accept(listener)
            return
        try:
            client, _ = listener.accept()
        except OSError:
            return
        self.left[target] -= 1
        manner = list(MANNERS)[sum(self.met.values()) % len(MANNERS)]
        self.met[manner] += 1
        client.setblocking(False)
        visit = Visit(target, client, self, MANNERS[manner])
        self.pairs[client] = visit
        self.speak(visit, b"")

    def passes(self, pair, end, data):
        if not isinstance(pair, Visit):
            return super().passes(pair, end, data)
        self.speak(pair, data)
        return b""

    def speak(self, visit, said):
        words = visit.manner(visit, said)
        if words is None:
            self.drop(visit)
        else:
            visit.waiting[visit.ends[0]] += words
