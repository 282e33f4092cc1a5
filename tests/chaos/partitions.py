#!/usr/bin/env python3
"""A network in parts, under membership.on_loss "continue": each part trains on by itself, and they
are one again when they reach each other. Agents in network namespaces, and walls of nftables
between them; needs root.

usage: partitions.py STARLING [TEST ...]
"""
import shutil
import time

from _scene import check, run_tests, wait_until
from _walls import Net, why_no_walls
from losses import events
from replay import is_repeated

NODES, PAUSE_US = 4, 1500


class Parted:
    """Four agents by hand, whose rounds take some milliseconds."""

    def __init__(self, scene, net, **changes):
        self.scene, self.net = scene, net
        scene.take_time(PAUSE_US)
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
        return events(self.scene, rank, kind, f"out{rank}")

    def wait_for_members(self, wanted):
        """wanted: members of the newest view of each rank."""
        for rank, members in enumerate(wanted):

            def has():
                check(self.agents[rank].process.poll() is None, self.agents[rank].err)
                return [v["members"] for v in self.events(rank, "view")][-1:] == [members]

            wait_until(has, f"agent {rank} comes to a view of {members}", 20)

    def part(self, side, seconds):
        """These and the others go on apart, for so long at least."""
        rest = [rank for rank in range(NODES) if rank not in side]
        self.net.part(side)
        self.wait_for_members([side if rank in side else rest for rank in range(NODES)])
        time.sleep(seconds)
        self.net.heal(side)
        self.wait_for_members([list(range(NODES))] * NODES)

    def check_end(self):
        """All end well, in a view of all that they begin with the same round."""
        lasts = set()
        for rank, agent in enumerate(self.agents):
            agent.wait(60).check_well()
            view = self.events(rank, "view")[-1]
            lasts.add((view["round"], tuple(view["members"])))
        check(len(lasts) == 1, f"they end in different views: {lasts}")

    def check_repeated(self):
        """The simulator has the same bits, from the logs of all agents in one folder."""
        for rank in range(1, NODES):
            for name in ("events-%d.jsonl", "metrics-%d.jsonl", "model-%d.npy"):
                shutil.copy(self.scene.path(f"out{rank}/{name % rank}"), self.scene.path("out0"))
        is_repeated(self.scene, self.scene.path("out0"))


def parts_become_one(scene):
    """Twice: the second time with a part of one. loss_world parts all algorithms."""
    why = why_no_walls()
    if why is not None:
        return why
    with Net(NODES) as net:
        net.add_walls()
        parted = Parted(scene, net, rounds=2000)
        for side in ([0, 1], [3]):
            parted.part(side, 0.3)
        parted.check_end()
    parted.check_repeated()
    return None


if __name__ == "__main__":
    run_tests()
