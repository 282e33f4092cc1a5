#!/usr/bin/env python3
"""Strangers at the listening ports while agents open: the run trains all the same."""

import os
import socket

from _greetings import ABORT, HELLO, REFUSAL, WELCOME, frame, visit
from _ports import free_ports
from _scene import check, run_tests, wait_until, read_json
from by_hand import PAIR


def start(scene, experiment, rank, roster, out, *extra, wrapper=()):
    words = ("--run-id", "1", *extra)
    return scene.agent(experiment, rank, roster, *words, out=out, wrapper=wrapper)


def wait_listening(port):
    def listens():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, f"somebody listens on port {port}", 12, pause_s=0.05)


def strangers_while_one_agent_waits(scene):
    """Each way to misbehave costs the stranger its connection, and the agent a line."""
    ports = free_ports(2)
    roster = scene.roster(ports)
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=60)
    first = start(scene, experiment, 0, roster, "out0")
    wait_listening(ports[0])
    for says in (b"", b"\xa5" * 300, frame(HELLO)[:40], frame(HELLO), frame(ABORT)):
        check(visit(ports[0], 1, 0, says)[0] == WELCOME, "who calls itself the neighbour is heard")
    for rank, to in ((5, 0), (1, 3)):
        check(visit(ports[0], rank, to)[0] == REFUSAL, f"agent {rank} for {to} is let in")
    check(first.process.poll() is None, f"the agent ended: {first.err!r}")
    second = start(scene, experiment, 1, roster, "out1")
    for running in (second.wait(60), first.wait(60)):
        running.check_well()
    lines = [line for line in first.said.splitlines() if "was refused" in line]
    check(0 < len(lines) <= 10, f"{len(lines)} lines of refusals: {first.out!r}")
    scene.check_models(["out0", "out1"], experiment=experiment)
    refused = read_json(scene.path("out0/summary.json"))["per_node"][0]["refused"]
    check(refused["greeting"] > 0 and refused["hello"] > 1, f"refused: {refused}")
    said = f"{sum(refused.values())} connections: {refused['silent']} said nothing"
    check(f"refused             {said}" in first.out, f"{said!r} is missing in {first.out!r}")


def listening_ports(pid):
    """Ports that a process listens on."""
    inodes = set()
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{entry}"))
        except OSError:
            pass
    ports = []
    with open("/proc/net/tcp") as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                ports.append(int(fields[1].split(":")[1], 16))
    return ports


if __name__ == "__main__":
    run_tests()
