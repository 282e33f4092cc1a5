#!/usr/bin/env python3
"""Peers that are killed while the others train, average and leave: those go on without them, and
other processes join in their place, and beside them."""

import json
import signal

import _package  # noqa: F401: finds the package
import numpy

import starling
from _package import refused
from _peers import EXPERIMENT, Peers, read_line, roster
from _scene import check, run_tests

NODES, LOST = 5, 2
RING = {**EXPERIMENT, "topology": {"nodes": NODES, "family": "ring"}, "membership": {"grace_s": 3}}
STEPS = 300
TRAIN = f"""
import numpy
x = numpy.sin(numpy.arange(3000, dtype="f4") + 100 * RANK)
with join(x) as peer:
    print("began", flush=True)
    for step in range({STEPS}):
        peer.mix()
        if step % 2:
            peer.average()
    mean = peer.average()
    report = dict(members=peer.members, epoch=peer.epoch, round=peer.round)
    report.update(mean=float(mean.mean()), apart=float(numpy.abs(mean - x).max()))
print(json.dumps(report))
"""


def test_rounds_and_averages_go_on(scene):
    peers = Peers(scene, TRAIN, RING)
    for process in peers.processes:
        read_line(process)
    peers.processes[LOST].send_signal(signal.SIGKILL)
    ended = peers.wait(120)
    check(ended[LOST][0] == -signal.SIGKILL, ended[LOST])
    left = [rank for rank in range(NODES) if rank != LOST]
    said = [json.loads(ended[rank][1]) for rank in left]
    for rank in left:  # with Python's logging as it is
        errors = ended[rank][2]
        check(("agent 2 is lost: " in errors) == (rank in (1, 3)), errors)
        check(errors.count("4 of 5 nodes go on") == 1 and "lost: 2" in errors, errors)
    for report in said:
        check(report["members"] == [0, 1, 3, 4] and report["epoch"] == 2, report)
        check(report["mean"] == said[0]["mean"], said)
        check(report["round"] >= STEPS and report["apart"] < 1e-3, said)


GROWS = {**RING, "membership": {"grace_s": 3, "joiners": 1}}
JOIN = f"""
import numpy
x = numpy.full(3000, RANK, "f4")
late = len(sys.argv) > 4
if not late:
    ROSTER = ROSTER[:{NODES}]
with join(x, joins=late) as peer:
    print("began", peer.round, float(abs(x).max()), flush=True)
    left = 20
    while left > 0:
        peer.mix()
        if not late:
            time.sleep(0.002)
        left -= peer.members == list(range({NODES + 1}))
    mean = peer.average()
    report = dict(members=peer.members, mean=mean.tolist(), round=peer.round)
    report.update(apart=float(numpy.abs(mean - x).max()))
print(json.dumps(report))
"""


def test_processes_join_in_the_place_of_a_lost_one_and_beside_it(scene):
    addresses = roster(NODES + 1)
    peers = Peers(scene, JOIN, GROWS, addresses=addresses)
    for process in peers.processes:
        read_line(process)
    peers.processes[LOST].send_signal(signal.SIGKILL)
    peers.processes.pop(LOST).communicate()
    for rank in (LOST, NODES):
        peers.start(rank, "joins")
    began = [read_line(process).split() for process in peers.processes[-2:]]
    for _, round, largest in began:  # in a round of theirs, with a mean of their numbers
        check(int(round) > 1 and 0 < float(largest) < NODES, began)
    said = [json.loads(out.splitlines()[-1]) for out in peers.all_well(120)]
    for report in said:
        check(report["members"] == list(range(NODES + 1)), report["members"])
        check(report["mean"] == said[0]["mean"] and report["apart"] < 1, report["apart"])


def test_who_cannot_join_is_told_why(scene):
    x = numpy.zeros(4, "f4")
    addresses = roster(NODES + 1)
    for experiment, more, words in (
        (RING, {"rank": 1}, ("options.roster", "others were started")),
        ({**RING, "membership": {"on_loss": "stop"}}, {}, ("on_loss", '"stop"', '"continue"')),
        (RING, {"rank": NODES, "roster": addresses}, ("6 ranks", "5 nodes")),
        (GROWS, {"rank": NODES, "joins": False}, ("the 5 nodes", "options.joins")),
        (GROWS, {"rank": NODES, "roster": addresses[:NODES]}, ("0 to 4", "up to 5")),
    ):
        options = {"rank": 1, "joins": True, "start": False, **more}
        if words[0] != "options.roster":
            options.setdefault("roster", addresses[: NODES + (experiment is GROWS)])
        refused(lambda: starling.join(experiment, x, **options), *words)


if __name__ == "__main__":
    run_tests()
