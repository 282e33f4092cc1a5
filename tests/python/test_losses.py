#!/usr/bin/env python3
"""Peers that are killed while the others train, average and leave: those go on without them.

usage: test_losses.py STARLING [TEST ...]
"""

import json
import signal
import sys

import _package  # noqa: F401: finds the package
from _peers import EXPERIMENT, Peers, read_line
from _scene import check, run_tests

NODES, LOST = 5, 2
RING = {
    **EXPERIMENT,
    "topology": {"nodes": NODES, "family": "ring"},
    "membership": {"grace_s": 3},
}
STEPS = 300
TRAIN = f"""
import numpy
x = numpy.sin(numpy.arange(3000, dtype="f4") + 100 * RANK)
with join(x) as peer:
    print("began", flush=True)
    for _ in range({STEPS}):
        peer.mix()
        if AVERAGES:
            peer.average()
    mean = peer.average()
    report = dict(members=peer.members, epoch=peer.epoch, round=peer.round)
    report.update(mean=float(mean.mean()), apart=float(numpy.abs(mean - x).max()))
print(json.dumps(report))
"""


def survive(scene, averages):
    peers = Peers(scene, TRAIN.replace("AVERAGES", str(averages)), RING)
    for process in peers.processes:
        read_line(process)
    peers.processes[LOST].send_signal(signal.SIGKILL)
    ended = peers.wait(120)
    check(ended[LOST][0] == -signal.SIGKILL, ended[LOST])
    said = [json.loads(out) for rank, (code, out, _) in enumerate(ended) if rank != LOST]
    for report in said:
        check(report["members"] == [0, 1, 3, 4] and report["epoch"] == 2, report)
        check(report["mean"] == said[0]["mean"], said)
        check(report["round"] >= STEPS and report["apart"] < 1e-3, said)


def test_rounds_and_the_last_average_go_on(scene):
    survive(scene, False)


def test_averages_go_on(scene):
    survive(scene, True)


if __name__ == "__main__":
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
