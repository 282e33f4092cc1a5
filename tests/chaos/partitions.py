#!/usr/bin/env python3
"""A network in parts, under membership.on_loss "continue": each part trains on by itself, and they
are one again when they reach each other. Agents in network namespaces, and walls of nftables
between them; needs root.

usage: partitions.py STARLING [TEST ...]
"""
import json
import os
import shutil
import time

from _scene import SLOWER, check, run_tests
from _walls import Net, why_not

NODES, PAUSE_US = 4, "1500"
CHOCO = {"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 0.1}}


class Parted:
    """Four agents by hand, whose rounds take some milliseconds."""

    def __init__(self, scene, net, **changes):
        self.scene, self.net = scene, net
        library = os.path.dirname(os.path.dirname(scene.starling))
        scene.environment["LD_PRELOAD"] = os.path.join(library, "tests", "libslow_gradient.so")
        scene.environment["STARLING_PAUSE_US"] = PAUSE_US
        security = {"mode": "none", "trusted_network": True}
        membership = {"on_loss": "continue", "grace_s": 30}
        changes = {"topology__nodes": NODES, "membership": membership, **changes}
        file = scene.experiment(security=security, **changes)
        lines = "".join(f"{net.address(rank)}:7000\n" for rank in range(NODES))
        roster = scene.write("roster", lines)
        self.agents = [
            scene.start(
                *("agent", file, "--rank", str(rank), "--roster", roster),
                *("--out", scene.path(f"out{rank}")),
                wrapper=net.wrapper(rank),
            )
            for rank in range(NODES)
        ]
        self.agents[0].wait_for("round 40/")

    def events(self, rank, kind):
        with open(self.scene.path(f"out{rank}/events-{rank}.jsonl")) as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [line for line in lines if line["event"] == kind]

    def wait_for_members(self, wanted):
        """wanted: members of the newest view of each rank."""
        until = time.monotonic() + SLOWER * 20
        for rank, members in enumerate(wanted):
            while [v["members"] for v in self.events(rank, "view")][-1:] != [members]:
                check(self.agents[rank].process.poll() is None, self.agents[rank].err)
                check(time.monotonic() < until, f"agent {rank} comes to no view of {members}")
                time.sleep(0.05)

    def part(self, side, seconds):
        """These and the others go on apart, for so long at least."""
        rest = [rank for rank in range(NODES) if rank not in side]
        self.net.part(side)
        self.wait_for_members([side if rank in side else rest for rank in range(NODES)])
        time.sleep(seconds)
        self.net.heal(side)
        self.wait_for_members([list(range(NODES))] * NODES)

    def check_end(self, merges):
        """All end well, and tell of so many merges, of which this is the last."""
        lasts = set()
        for rank, agent in enumerate(self.agents):
            agent.wait(60).check_well()
            found = self.events(rank, "merge")
            check(len(found) == merges, f"agent {rank} tells of {found}")
            views = [v["round"] for v in self.events(rank, "view")]
            told = self.summary(rank)["merged"]
            check([m["after"] for m in told] == [m["round"] for m in found], f"{told}, {found}")
            check(all(m["parts"] == 2 and m["round"] in views for m in told), f"{told}, {views}")
            check(agent.said.count("parts of the network are one again") == merges, agent.said)
            line = f"merged              2 parts of the network in round {told[-1]['round']}"
            check(line in agent.out, f"no line {line!r} of the table: {agent.out}")
            lasts.add((told[-1]["round"], told[-1]["after"]))
        check(len({first for first, _ in lasts}) == 1, f"they merge apart: {lasts}")
        check(len(lasts) == 2, f"both parts came to the same round: {lasts}")

    def summary(self, rank):
        with open(self.scene.path(f"out{rank}/summary.json")) as file:
            return json.load(file)

    def check_repeated(self):
        """The simulator has the same bits, from the logs of all agents in one folder."""
        del self.scene.environment["LD_PRELOAD"]
        run = self.scene.path("out0")
        for rank in range(1, NODES):
            for name in ("events-%d.jsonl", "metrics-%d.jsonl", "model-%d.npy"):
                shutil.copy(self.scene.path(f"out{rank}/{name % rank}"), run)
        ended = self.scene.call("sim", run, "--replay", "--out", self.scene.path("again"))
        ended.check_well()
        check(f"same bits as {run}: " in ended.out, f"{ended.out!r}")


def run_parted(scene, sides, seconds, **changes):
    why = why_not()
    if why is not None:
        return why
    with Net(NODES) as net:
        parted = Parted(scene, net, **changes)
        for side in sides:
            parted.part(side, seconds)
        parted.check_end(len(sides))
    parted.check_repeated()
    return None


def halves_train_on_and_become_one(scene):
    """Twice: the second time with a part of one."""
    return run_parted(scene, [[0, 1], [3]], 0.3, rounds=2000)


def replicas_of_the_other_part_begin_anew(scene):
    momentum = {"learning_rate": 0.01, "momentum": 0.9}
    return run_parted(scene, [[0]], 0.3, rounds=1200, algorithm=CHOCO, optimizer=momentum)


def who_reaches_no_neighbour_is_told(scene):
    """On a ring agent 1 reaches agent 3 only, which all reach: nobody is lost. It trains alone,
    says so, and mixes again once its edges are back."""
    why = why_not()
    if why is not None:
        return why
    with Net(NODES) as net:
        parted = Parted(scene, net, rounds=1500)
        one = parted.agents[1]
        net.part([1], but=[3])
        one.wait_for("no connection to agent 0, 2; until it is back, this agent, which")
        parted.agents[0].wait_for("no connection to agent 1; until it is back, its weight stays")
        net.heal([1], but=[3])
        for agent in parted.agents:
            agent.wait(60).check_well()
        views = parted.events(1, "view")
        check(len(views) >= 2, f"its edges are back in no view: {views}")
        check(all(v["members"] == [0, 1, 2, 3] for v in views), f"somebody is lost: {views}")
        last = f"round {views[-1]['round']}: no connection"
        check(last not in one.out, f"{last!r} in {one.out!r}")
    parted.check_repeated()
    return None


run_tests(
    [
        halves_train_on_and_become_one,
        replicas_of_the_other_part_begin_anew,
        who_reaches_no_neighbour_is_told,
    ]
)
