"""A wire in front of each agent that is cut: after bytes that a seed chooses, in either direction,
by a reset, by an orderly end, or by forwarding no more without a word."""

import random

from _wire import Wire

KINDS = ("reset", "end", "silence")


class Cutter(Wire):
    """Makes `cuts` cuts, each after up to 2 * `mean` bytes of a connection."""

    def __init__(self, seed, targets, cuts, mean, kinds=KINDS):
        super().__init__(*targets)
        self.random = random.Random(seed)
        self.left, self.mean, self.kinds = cuts, mean, kinds
        self.made = dict.fromkeys(kinds, 0)

    def begins(self, pair):
        pair.budget = self.random.randrange(2 * self.mean)  # bytes until it is cut

    def passes(self, pair, end, data):
        if self.left == 0 or len(data) < pair.budget:
            pair.budget -= len(data)
            return data
        self.cut(pair, end, data[: pair.budget])
        return b""

    def cut(self, pair, end, last):
        """Some of what came goes on before the cut."""
        kind = self.random.choice(self.kinds)
        self.made[kind] += 1
        self.left -= 1
        self.pass_last(pair, end, last)
        if kind == "silence":
            pair.silent = True
        else:
            self.drop(pair, reset=kind == "reset")
