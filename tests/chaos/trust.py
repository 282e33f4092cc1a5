#!/usr/bin/env python3
"""Trust that changes while a run goes on: hosts are replaced, added and shut out, and keys rotated.
"""
import os
import shutil
import signal
import time

from _keyed import SEALED, make_keys, make_nodes, with_key, with_pair
from _ports import free_ports
from _scene import check, run_tests
from strangers import start

THREE = {
    "rounds": 2000000,
    "record__every": 50,
    "topology": {"nodes": 3, "family": "complete"},
    "membership__on_loss": "continue",
    "membership__grace_s": 3,
    "transport__connect_timeout_s": 60,
    **SEALED,
}


class Run:
    """Agents by hand, each with a folder, and a roster that they share."""

    def __init__(self, scene, pins, **changes):
        self.scene, self.pins = scene, list(pins)
        self.ports = free_ports(len(pins) + 1)
        self.experiment = scene.experiment(**{**THREE, **changes})
        self.agents = {}
        scene.take_time(2000)
        self.write(self.pins)

    def write(self, pins):
        return self.scene.roster(self.ports, "roster", pins)

    def start(self, rank, extra, *more, out=None):
        roster, options = self.scene.path("roster"), ("--run-id", "77", *extra, *more)
        out = out or f"out{rank}"
        self.agents[rank] = start(self.scene, self.experiment, rank, roster, out, *options)
        return self.agents[rank]

    def begin(self):
        """Three, each with its own pair."""
        for rank in range(3):
            self.start(rank, with_pair(f"node-{rank}"))
        self.train(range(3))

    def reload(self, out):
        return self.scene.call("reload", self.scene.path(out))

    def train(self, ranks, rounds=1):
        for rank in ranks:
            self.agents[rank].wait_for(f"round {50 * rounds}/")

    def end(self, ranks):
        for rank in ranks:
            self.agents[rank].process.send_signal(signal.SIGINT)
        for rank in ranks:
            ended = self.agents[rank].wait(60)
            check(ended.code == 130, f"rank {rank}: exit code {ended.code}: {ended.err!r}")


def check_reloaded(ended, *words):
    ended.check_well()
    for word in words:
        check(word in ended.out, f"{word!r} is missing in {ended.out!r}")


def other_hosts_join(scene):
    """One takes a rank, with another certificate. One has a new line."""
    pins = make_nodes(scene, 5)
    run = Run(scene, pins[:3], membership__joiners=1)
    run.begin()
    run.agents[2].kill()
    pins = [pins[0], pins[1], pins[3], pins[4]]
    run.write(pins[:3])
    for rank in (0, 1):
        check_reloaded(run.reload(f"out{rank}"), "the certificate of rank 2 is another one")
    run.start(2, with_pair("node-3"), "--join", out="again")
    run.agents[0].wait_for("3 of 3 nodes go on")
    run.write(pins)
    for out in ("out0", "out1", "again"):
        check_reloaded(run.reload(out), "rank 3 is new")
    run.start(3, with_pair("node-4"), "--join")
    run.agents[0].wait_for("4 of 4 nodes go on")
    run.end(range(4))


def who_is_revoked_is_out_at_once(scene):
    pins = make_nodes(scene, 3)
    run = Run(scene, pins, membership__grace_s=60)
    run.begin()
    run.write([pins[0], pins[1], "revoked"])
    for rank in (0, 1):
        check_reloaded(run.reload(f"out{rank}"), "rank 2 is revoked")
    for rank in (0, 1):
        run.agents[rank].wait_for("2 of 3 nodes go on", 20)  # much less than grace_s
    ended = run.agents[2]
    ended.wait_for("revoked", 20)
    ended.interrupt().wait(60)
    run.end((0, 1))


def a_run_key_is_rotated(scene):
    make_keys(scene, "run.key", "new.key")
    shutil.copy(scene.path("run.key"), scene.path("old.key"))
    run = Run(
        scene, ["", "", ""], security__overlap_s=4, membership__grace_s=30, membership__joiners=1
    )
    for rank in range(3):
        run.start(rank, with_key("run.key"))
    run.train(range(3))
    os.replace(scene.path("new.key"), scene.path("run.key"))
    for rank in range(3):
        check_reloaded(
            run.reload(f"out{rank}"), "the run's key is another one", "holds for 4 s more"
        )
    for rank in range(3):
        run.agents[rank].wait_for("the run's key before holds no longer")
    for rank in range(3):
        run.agents[rank].wait_for("is back after")
        check("lost" not in run.agents[rank].said, run.agents[rank].said)
    run.write([""] * 4)
    impatient = ("--join", "--set", "transport.connect_timeout_s=12")
    ended = run.start(3, with_key("old.key"), *impatient).wait(60)
    for text in (ended.err, run.agents[0].said):
        check("agent 0 has another run's key since" in text, repr(text))
    words = "waiting: agent 0 to let this one in: "
    check(words in ended.said and "(transport.connect_timeout_s)" in ended.said, ended.said)
    check(ended.code == 1, f"exit code {ended.code}")
    for rank in range(3):
        lines = run.agents[rank].said.count("that calls itself agent 3 was refused")
        check(lines <= 1, f"rank {rank} tells {lines} times of one that knocks")
    run.end(range(3))


def what_is_wrong_changes_nothing(scene):
    """Of a roster, and of a key; test_roster has the other mistakes."""
    pins = make_nodes(scene, 4)
    run = Run(scene, pins[:3], membership__joiners=1)
    run.begin()
    for text, word in (
        ([pins[0], pins[1], "sha256:12"], "roster:3: 'sha256:12' is not a certificate's"),
        ([pins[3], pins[1], pins[2]], f"names the certificate {pins[3]} for agent 0"),
        ([pins[0], pins[1]], "3 nodes"),
        (["revoked", pins[1], pins[2]], "roster:1: revokes the certificate of agent 0"),
    ):
        run.write(text)
        ended = run.reload("out0")
        check(ended.code == 1 and ended.out == "", f"exit code {ended.code}: {ended.out!r}")
        check(ended.err.count("\n") == 1 and word in ended.err, f"{word!r}, not {ended.err!r}")
    run.write(pins[:3])
    os.remove(scene.path("node-0.key"))
    ended = run.reload("out0")
    check(ended.code == 1 and "node-0.key" in ended.err, repr(ended.err))
    check("lost" not in run.agents[0].said, run.agents[0].said)
    run.end(range(3))


def a_run_passes_it_on(scene):
    make_keys(scene, "run.key")
    path = scene.experiment(**{**THREE, "record__every": 500}, security__key=scene.path("run.key"))
    run = scene.start("run", path, "--out", scene.path("out"))
    run.wait_for("round 500/")
    os.remove(scene.path("run.key"))
    make_keys(scene, "run.key")
    ended = scene.call("reload", scene.path("out"))
    ended.check_well()
    for rank in range(3):
        check(f"rank {rank}: " in ended.out, ended.out)
    time.sleep(1.5)  # one notice a second is shown
    run.process.send_signal(signal.SIGHUP)
    run.wait_for("the key is as before")
    run.interrupt().ends(130, 60)


if __name__ == "__main__":
    run_tests()
