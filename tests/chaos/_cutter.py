"""A wire in front of each agent that is cut: after bytes that a seed chooses, in either direction,
by a reset, by an orderly end, or by forwarding no more without a word."""

import random

from _ports import free_ports
from _scene import check
from _wire import Wire

KINDS = ("reset", "end", "silence")
QUICK = {
    "model": {"name": "mlp", "hidden": [32]},
    "data": {"name": "digits", "train_samples": 200, "test_samples": 50, "batch": 8},
    "record": {"every": 1000000},
    "optimizer": {"learning_rate": 0.02},
    "transport__chunk_bytes": 4096,
    "transport__window_chunks": 3,
    "transport__timeout_s": 1,
    "transport__connect_timeout_s": 60,
    "transport__reconnect_s": 60,
}


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


def start_cutter(scene, nodes, seed, cuts, mean):
    """A cutter, the roster that goes through it, and the ports behind it."""
    ports = free_ports(nodes)
    cutter = Cutter(seed, ports, cuts, mean)
    cutter.start()
    return cutter, scene.roster(cutter.ports), ports


def wait_for_all(cutter, agents, cuts, seconds):
    """All end well, and all cuts were made."""
    try:
        for agent in agents:
            agent.wait(seconds).check_well()
    finally:
        cutter.stop()
    made = sum(cutter.made.values())
    check(made == cuts, f"{made} cuts were made, wanted {cuts}")
