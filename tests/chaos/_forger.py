"""A wire in front of agents, held by somebody who alters any byte of what goes by, or cuts it: in
either direction, from the first byte on. A seed says where and how. fuzz_provider and fuzz_channel
have heads and frames that are made up whole."""

import math
import random

from _wire import Wire

PIECE = 48  # bytes at most that are put in or left out


def length(chance):
    return chance.randint(1, PIECE)


def flip(chance, data, at):
    data[at] ^= 1 << chance.randrange(8)
    return data


# What comes of bytes that go by, from one place on.
CHANGES = {
    "flipped": flip,
    "left out": lambda chance, data, at: data[:at] + data[at + length(chance) :],
    "put in": lambda chance, data, at: data[:at] + chance.randbytes(length(chance)) + data[at:],
    "cut": lambda chance, data, at: data[:at],
}
CUTS = {"cut": CHANGES["cut"], "silence": CHANGES["cut"]}  # silence: nothing more goes by


class Forger(Wire):
    """Makes `count` changes, one each connection and `reach` bytes of it, behind the first ones: a
    place near the beginning is as likely as one far from it."""

    def __init__(self, seed, targets, count, reach=1 << 16, first=0, changes=CHANGES):
        super().__init__(*targets)
        self.random, self.changes = random.Random(seed), changes
        self.left, self.first, self.reach = count, first, reach
        self.made = dict.fromkeys(changes, 0)

    def begins(self, pair):
        self.plan(pair, self.first)

    def plan(self, pair, after):
        pair.altered = self.random.choice(pair.ends)  # what comes from this end
        pair.kind = self.random.choice(list(self.changes))
        pair.at = after + int(math.exp(self.random.uniform(0, math.log(self.reach))))

    def passes(self, pair, end, data):
        if end is not pair.altered or self.left == 0:
            return data
        if pair.at >= len(data):
            pair.at -= len(data)
            return data
        return self.change(pair, end, data)

    def change(self, pair, end, data):
        changed = self.changes[pair.kind](self.random, bytearray(data), pair.at)
        self.made[pair.kind] += 1
        self.left -= 1
        kind = pair.kind
        self.plan(pair, self.reach)
        if kind not in CUTS:
            return bytes(changed)
        self.pass_last(pair, end, changed)
        pair.silent = kind == "silence"
        if not pair.silent:
            self.drop(pair)
        return b""
