"""A wire in front of agents, held by somebody who alters any byte of what goes by: in either
direction, from the first byte on or once frames are sealed, in heads as in data. A seed says where
and how."""

import math
import random
import re

from _heads import HEADER, heads
from _wire import Wire

PIECE = 48  # bytes at most that are put in, doubled or left out
BELOW = 16  # bytes of a head of libfabric's own
BEGINS = re.compile(b"STLG|starling")  # a frame, a greeting
FLAGS = bytes(flags for flags in range(256) if flags & 2)  # of what is sealed
SEALED = re.compile(b"STLG..\2[" + re.escape(FLAGS) + b"]", re.DOTALL)  # a frame of data


def flip(chance, data, at):
    data[at] ^= 1 << chance.randrange(8)
    return data


def double(chance, data, at):
    piece = data[at : at + chance.randint(1, PIECE)]
    return data[:at] + piece + data[at:]


def leave_out(chance, data, at):
    return data[:at] + data[at + chance.randint(1, PIECE) :]


def invent(chance, data, at):
    return data[:at] + chance.randbytes(chance.randint(1, PIECE)) + data[at:]


def fill(chance, data, at):
    """The same byte instead of some others: lengths of zero, and as long as can be."""
    count = len(data[at : at + chance.randint(1, PIECE)])
    return data[:at] + bytes([chance.choice((0, 255))]) * count + data[at + count :]


def change_head(chance, data, at):
    """Some bytes of the next message's head; None, if it is not here."""
    begins = BEGINS.search(data, at)
    if begins is None:
        return None
    at = chance.randrange(begins.start(), min(len(data), begins.start() + HEADER))
    return chance.choice((flip, invent, fill, leave_out, double))(chance, data, at)


def put_head_in(chance, data, at):
    """Where the next message begins; libfabric's tcp has its own head before it."""
    begins = BEGINS.search(data, at + BELOW)
    if begins is None:
        return None
    at = begins.start() - chance.choice((0, BELOW))
    return data[:at] + heads(chance, 1) + data[at:]


# What comes of bytes that go by, from one place on; None: nothing yet.
CHANGES = {
    "flipped": flip,
    "doubled": double,
    "left out": leave_out,
    "put in": invent,
    "filled": fill,
    "a head changed": change_head,
    "a head put in": put_head_in,
    "cut": lambda chance, data, at: data[:at],
}


class Forger(Wire):
    """Makes `count` changes, one each connection and `reach` bytes of it: a place near the
    beginning is as likely as one far from it. once_sealed: counted from the first sealed frame of
    data."""

    def __init__(self, seed, targets, count, reach=1 << 16, once_sealed=False, kinds=CHANGES):
        super().__init__(*targets)
        self.random = random.Random(seed)
        self.left, self.reach, self.once_sealed = count, reach, once_sealed
        self.kinds = list(kinds)
        self.made = dict.fromkeys(self.kinds, 0)

    def begins(self, pair):
        self.plan(pair, 0)

    def plan(self, pair, after):
        pair.altered = self.random.choice(pair.ends)  # what comes from this end
        pair.kind = self.random.choice(self.kinds)
        pair.at = after + int(math.exp(self.random.uniform(0, math.log(self.reach))))
        pair.waits_for_seal = self.once_sealed and after == 0

    def passes(self, pair, end, data):
        if end is not pair.altered or self.left == 0:
            return data
        if pair.waits_for_seal:
            sealed = SEALED.search(data)
            if sealed is None:
                return data
            pair.waits_for_seal = False
            pair.at += sealed.start()
        if pair.at >= len(data):
            pair.at -= len(data)
            return data
        return self.change(pair, end, data)

    def change(self, pair, end, data):
        changed = CHANGES[pair.kind](self.random, bytearray(data), pair.at)
        if changed is None:
            pair.at = 0
            return data
        self.made[pair.kind] += 1
        self.left -= 1
        kind = pair.kind
        self.plan(pair, self.reach)
        if kind == "cut":
            self.pass_last(pair, end, changed)
            self.drop(pair)
            return b""
        return bytes(changed)
