"""Four agents with keys that reach each other through a wire only, and what they promise whatever
happens on it: none ends by a signal, all end well, with the simulator's bits. And how that is tried
as often as somebody wants, by hand."""

import os
import sys
import time

from _cutter import QUICK
from _keyed import SEALED, make_keys, make_nodes, with_key, with_pair
from _ports import free_ports
from _scene import Failure, Scene, check

COUNT = 4
WAYS = ("key", "certificates")
RECORD = 20  # rounds, after which agents say where they are
RING = {**QUICK, **SEALED, "topology": {"nodes": COUNT, "family": "ring"}}
RING["record"] = {"every": RECORD}
RING["transport__memory"] = "off"  # else there is little on the wire


class Four:
    """way: how they prove who they are. `ports` are their own; `wire` forwards to them."""

    def __init__(self, scene, way, make_wire, **changes):
        self.scene, self.agents = scene, {}  # by rank
        self.ports = free_ports(COUNT)
        self.path = scene.experiment(**{**RING, **changes})
        if way == "key":
            make_keys(scene, "run.key")
            self.pins, self.extra = [""] * COUNT, [with_key("run.key")] * COUNT
        else:
            self.pins = make_nodes(scene, COUNT)
            self.extra = [with_pair(f"node-{rank}") for rank in range(COUNT)]
        self.wire = make_wire(self.ports)
        self.roster = scene.roster(self.wire.ports, "roster", self.pins)

    def start(self, rank):
        options = ("--listen", f"127.0.0.1:{self.ports[rank]}", "--run-id", "1")
        self.agents[rank] = self.scene.agent(
            self.path, rank, self.roster, *options, *self.extra[rank]
        )
        return self.agents[rank]

    def start_all(self):
        self.wire.start()
        for rank in range(COUNT):
            self.start(rank)

    def end_well(self, seconds):
        """Waits for all, and holds them to their promise."""
        try:
            codes = {rank: agent.wait(seconds).code for rank, agent in self.agents.items()}
        finally:
            self.wire.stop()
        check(min(codes.values()) >= 0, f"ended by a signal: {codes}")
        for rank, agent in self.agents.items():
            check(agent.code == 0, f"agent {rank} ended with {agent.code}: {agent.err[-800:]!r}")
        self.scene.check_models([f"out{rank}" for rank in range(COUNT)], experiment=self.path)


FAILURES_MAX = 10


def by_hand(what, train):
    """With --many NUMBER [SEED]: runs until that much was done, tells, and ends the process.
    train(scene, number, seed) returns how much it did of each kind."""
    if sys.argv[2:3] != ["--many"]:
        return
    wanted, seed = int(sys.argv[3]), int((sys.argv[4:] or ["1"])[0])
    made, failures, runs, began_s = {}, [], 0, time.monotonic()
    while sum(made.values()) < wanted and len(failures) < FAILURES_MAX:
        scene = Scene(os.path.abspath(sys.argv[1]))
        try:
            for kind, count in train(scene, runs, seed + runs).items():
                made[kind] = made.get(kind, 0) + count
            scene.check_clean()
        except Failure as failure:
            failures.append(failure)
            print(f"# seed {seed + runs}: {failure}", flush=True)
        finally:
            scene.close()
        runs += 1
    print(f"{runs} runs of four agents, {time.monotonic() - began_s:.0f} s")
    print(f"{sum(made.values())} {what}: {made}")
    print(f"{len(failures)} runs did not hold" if failures else "all bit-equal to the simulator")
    sys.exit(1 if failures else 0)
