#!/usr/bin/env python3
"""Runs that begin, or go on from a checkpoint, and whose members change soon after: what is said,
and how they end."""
import re
import shutil
import signal

from _ports import free_ports
from _tap import Tap
from _scene import check, read_json, run_tests, wait_until
from losses import PAUSE_US, Hands, events, wait_for_views

SAVES = {"rounds": 2000000, "checkpoint": {"every": 100, "keep": 3}}


def save_and_end(running, *others):
    """SIGUSR2 to the first: all end after a checkpoint."""
    running.process.send_signal(signal.SIGUSR2)
    for each in (running, *others):
        each.ends(75, 60)
        check("ended on request, after a checkpoint" in each.all_err, f"{each.all_err!r}")


class Units:
    """Agents as unit files call them, again and again: by one command, with one option of a folder,
    and none of how. `ranks` begin, and more may join."""

    def __init__(self, scene, ranks, name="own", more=0, **changes):
        self.scene, self.name, self.ranks = scene, name, range(ranks)
        membership = {"on_loss": "continue", "grace_s": 5, "joiners": more}
        changes = {"topology__nodes": ranks, "membership": membership, **changes}
        self.path = scene.experiment(**{**SAVES, **changes})
        self.roster = scene.roster(free_ports(ranks + more))
        self.agents = {}
        scene.take_time(PAUSE_US)
        self.start(*self.ranks)

    def folder(self, rank):
        return self.scene.path(f"{self.name}{rank}")

    def start(self, *ranks):
        for rank in ranks:
            words = ["--rank", str(rank), "--roster", self.roster, "--out", self.folder(rank)]
            self.agents[rank] = self.scene.start("agent", self.path, *words)

    def kill(self, *ranks):
        for rank in ranks:
            self.agents[rank].process.kill()
            self.agents[rank].process.wait()

    def events(self, rank, kind):
        return events(self.scene, rank, kind, self.folder(rank))

    def views(self):
        return [view["members"] for view in self.events(0, "view")]

    def wait_for_views(self, count):
        wait_for_views(self.scene, 0, count, self.folder(0))

    def wait_for_checkpoint(self, rank):
        """Since it was started last."""

        def has():
            starts, saved = self.events(rank, "start"), self.events(rank, "checkpoint")
            return saved and saved[-1]["time"] > starts[-1]["time"]

        wait_until(has, f"a checkpoint of agent {rank}")

    def end(self, *ranks):
        save_and_end(*(self.agents[rank] for rank in ranks or self.ranks))


def the_same_command_begins_joins_and_goes_on(scene):
    units = Units(scene, 3, membership={"on_loss": "continue", "grace_s": 30})
    units.agents[1].wait_for("round 40/")
    units.wait_for_checkpoint(1)
    for rank in (2, 0):  # whom the others dial, and who dials them
        units.kill(rank)
        views = len(units.events(1, "view"))
        units.start(rank)
        wait_until(lambda: len(units.events(1, "view")) > views + 1, "its return")
        units.agents[rank].wait_for("trains already, and this one joins it")
    units.end()
    units.start(*units.ranks)
    for running in units.agents.values():
        running.wait_for("goes on from the checkpoint of round")
    units.end()


def who_is_left_goes_on_after_a_stop(scene):
    """Rank 1 and its disk are lost for good. The others are stopped, and go on without it, several
    times; a new process of its rank joins them, from an empty folder."""
    left = (0, 2, 3)
    for algorithm in ("choco-sgd", "all-reduce"):
        units = Units(scene, 4, algorithm, algorithm=algorithm)
        units.agents[0].wait_for("round 40/")
        units.kill(1)
        shutil.rmtree(units.folder(1))
        units.wait_for_views(1)
        for times in (1, 2):
            units.end(*left)
            units.start(*left)
            units.wait_for_views(1 + times)
            units.wait_for_checkpoint(0)
        units.start(1)
        units.wait_for_views(4)
        views = units.views()
        check(views == [[0, 2, 3]] * 3 + [[0, 1, 2, 3]], f"{algorithm}: {views}")
        units.end()


def who_is_left_goes_on_after_a_power_cut(scene):
    """Right after a loss, long before the next checkpoint is due."""
    units = Units(scene, 4, checkpoint={"every": 1000000, "keep": 3})
    units.agents[0].wait_for("round 40/")
    units.kill(1)
    left = (0, 2, 3)
    for rank in left:
        units.wait_for_checkpoint(rank)
    units.kill(*left)
    units.start(*left)
    units.wait_for_views(2)
    saved = units.events(0, "checkpoint")[0]["round"]
    first, second = units.events(0, "view")
    check(saved == first["round"] and second["round"] == saved + 1, f"{first}, {saved}, {second}")
    units.end(*left)


def nobody_trains_before_all_have_come(scene):
    """Rank 2 of a ring is never started: 0, which has both its neighbours, has begun. So have all
    others on a path but its neighbour, and they end with it."""
    for nodes, family, missing in ((4, "ring", 2), (5, "path", 4)):
        path = scene.experiment(
            topology={"nodes": nodes, "family": family},
            membership={"on_loss": "continue", "grace_s": 30},
            transport={"connect_timeout_s": 3, "round_timeout_s": 60},
        )
        roster = scene.roster(free_ports(nodes))
        agents = [
            scene.start("agent", path, "--rank", str(rank), "--roster", roster)
            for rank in range(nodes)
            if rank != missing
        ]
        for running in agents:
            running.wait(30).check_refused(f"agent {missing} (127.0.0.1:", "come up", code=1)


def a_part_below_half_says_so(scene):
    """At each loss, and at the end, whose exit code is 3."""
    hands = Hands(scene, rounds=2000)
    left = hands.agents[1]
    for views, rank in enumerate((3, 0, 2), 1):
        hands.kill(rank)
        wait_for_views(scene, 1, views, left.folder)
    left.ends(3, 60)
    for words in (
        r"warning: round \d+: agent 0 is lost: ",
        r"warning: round \d+: 3 of 4 nodes go on, .*; lost: 3; a new process may take",
        r"warning: round \d+: 1 of 4 nodes go on, .*; lost: 0, 2, 3; a new process",
        "warning: 3 of the 4 agents that the run began with did not come to its end.*exit code 3",
    ):
        found = re.findall(words, left.err)
        check(len(found) == 1, f"{words}: {len(found)} times in {left.err!r}")
    summary = read_json(left.folder, "summary.json")
    check(summary["members"] == [1] and summary["minority"] is True, f"{summary}")


def who_exchanges_nothing_is_told(scene):
    """Its period is longer than the run."""
    algorithm = {"name": "local-sgd", "period": 50}
    ended = scene.call("run", scene.experiment(algorithm=algorithm, rounds=20, topology__nodes=3))
    ended.check_well()
    said = re.findall("warning: agent .: no exchange took place in 20 rounds: .*", ended.err)
    check(len(said) == 1 and "one each 50 rounds" in said[0], f"{ended.err!r}")


def a_wait_is_a_warning_once(scene):
    """For who is not there, and for who is stopped; what follows of the same is none."""
    hands = Hands(scene, rounds=2000000)
    hands.agents[2].process.send_signal(signal.SIGSTOP)
    hands.agents[1].wait_for("waiting: edge 2->1", 30)
    said = [line for line in hands.agents[1].all_err.splitlines() if "waiting: edge" in line]
    check(len(said) == 1 and "is its host reachable?" in said[0], f"{said}")
    check("s left (transport.round_timeout_s)" in said[0], f"how long still: {said}")
    hands.end()


class Spoiler(Tap):
    """Of each connection a bit of data is flipped now and then."""

    FIRST, APART = 300000, 30000

    def passes_on(self, heard, data):
        if len(heard) > self.FIRST and len(heard) % self.APART < len(data):
            data = bytearray(data)
            data[-1] ^= 1
        return data


def who_is_lost_for_wrong_frames_is_lost_for_that(scene):
    """Wires flip bits between rank 0 and all others."""
    ports = free_ports(3)
    taps = [Spoiler(ports[0]) for _ in range(2)]
    changes = {"topology__nodes": 3, "rounds": 2000000, "transport__reconnect_s": 1}
    path = scene.experiment(membership={"on_loss": "continue", "grace_s": 4}, **changes)
    for tap in taps:
        tap.start()
    agents = []
    for rank, port in enumerate((ports[0], taps[0].port, taps[1].port)):
        roster = scene.roster((port, *ports[1:]), f"roster{rank}")
        options = ["--roster", roster, "--rank", str(rank), "--run-id", "7"]
        agents.append(scene.start("agent", path, *options, "--out", scene.path(f"out{rank}")))
    true = re.compile(r"warning: .*agent \d is lost: .*agent \d sent a malformed frame: ")
    wait_until(lambda: any(true.search(each.said) for each in agents), "the reason")
    said = "".join(each.said for each in agents)
    check("silent for longer than" not in said, f"nobody was silent: {said[-2000:]!r}")
    for running in agents:
        running.process.kill()
        running.process.wait()
    for tap in taps:
        tap.stop()


if __name__ == "__main__":
    run_tests()
