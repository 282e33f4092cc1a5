#!/usr/bin/env python3
"""Strangers at the listening ports, and bad days, while agents open: the run trains all the same.

usage: strangers.py STARLING [TEST ...]
"""

import json
import os
import signal
import socket
import subprocess
import time

from _scene import Failure, check, run_tests
from _greetings import GREETING, greeting, message
from _ports import free_ports
from by_hand import PAIR

MODES = ["silent", "garbage", "half", "abort", "hello", "run"]
TRIO = {"rounds": 30, "record__every": 10, "topology": {"nodes": 3, "family": "ring"}}


def start(scene, experiment, rank, roster, out, *extra, wrapper=()):
    command = ["agent", experiment, "--rank", str(rank), "--roster", roster]
    command += ["--run-id", "1"]  # which stranger.c knows
    return scene.start(*command, "--out", scene.path(out), *extra, wrapper=wrapper)


def roster_of(scene, ports):
    return scene.write("roster", "".join(f"127.0.0.1:{port}\n" for port in ports))


def wait_listening(port, seconds=120):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise Failure(f"nobody listens on port {port}")


class Strangers:
    """Processes that misbehave at a port; ended with the test."""

    def __init__(self, scene):
        build = os.path.dirname(os.path.dirname(scene.starling))
        self.program = os.path.join(build, "tests", "stranger")
        self.processes = []

    def send(self, port, mode, rank, to, *key):
        """key: a run's key file, and its id."""
        command = [self.program, str(port), mode, str(rank), str(to), *key]
        self.processes.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return self.processes[-1]

    def end(self):
        for process in self.processes:
            process.kill()
            process.communicate()


def check_models(scene, experiment, outs):
    simulated = scene.call("sim", experiment, "--out", scene.path("sim"))
    check(simulated.code == 0, f"sim: exit code {simulated.code}: {simulated.err!r}")
    for rank, out in enumerate(outs):
        name = f"model-{rank}.npy"
        with open(scene.path(f"{out}/{name}"), "rb") as real:
            with open(scene.path(f"sim/{name}"), "rb") as sim:
                check(real.read() == sim.read(), f"{name} differs from the simulator's")


def strangers_while_one_agent_waits(scene):
    """Each way to misbehave costs the stranger its connection, and the agent a line."""
    ports = free_ports(2)
    roster = roster_of(scene, ports)
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=60)
    first = start(scene, experiment, 0, roster, "out0")
    wait_listening(ports[0])
    strangers = Strangers(scene)
    try:
        for mode in MODES:
            strangers.send(ports[0], mode, 1, 0)
        strangers.send(ports[0], "abort", 5, 0)
        strangers.send(ports[0], "hello", 1, 3)
        for process in strangers.processes:
            said, why = process.communicate(timeout=120)
            check("down" in said, f"{process.args[2:]} was not ended: {said!r} {why!r}")
        check(first.process.poll() is None, f"the agent ended: {first.err!r}")
        second = start(scene, experiment, 1, roster, "out1")
        for running in (second.wait(60), first.wait(60)):
            check(running.code == 0, f"exit code {running.code}: {running.err!r}")
    finally:
        strangers.end()
    lines = [line for line in first.said.splitlines() if "was refused" in line]
    check(0 < len(lines) <= 10, f"{len(lines)} lines of refusals: {first.out!r}")
    check_models(scene, experiment, ["out0", "out1"])
    with open(scene.path("out0/summary.json")) as file:
        refused = json.load(file)["per_node"][0]["refused"]
    check(refused["greeting"] > 0 and refused["hello"] >= len(MODES), f"refused: {refused}")
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


def strangers_come_first_at_a_run(scene):
    """A process that watches for listening ports connects before the neighbours do."""
    experiment = scene.experiment(rounds=60)
    running = scene.start("run", experiment, "--out", scene.path("run"))
    strangers = Strangers(scene)
    until = time.monotonic() + 120
    while len(agents := scene.agents()) < 8:
        check(time.monotonic() < until, "no agents")
    os.kill(agents[7], signal.SIGSTOP)  # no roster until it goes on
    try:
        for rank in (0, 2, 4):
            while not (ports := listening_ports(agents[rank])):
                check(time.monotonic() < until, f"agent {rank} does not listen")
                time.sleep(0.02)
            for mode in MODES:
                strangers.send(ports[0], mode, rank + 1, rank)
        time.sleep(2)
        os.kill(agents[7], signal.SIGCONT)
        running.wait(60)
    finally:
        strangers.end()
    check(running.code == 0, f"exit code {running.code}: {running.err!r}")


def restart_while_opening(scene, rank, number):
    """Agents 0 and 1 of three have found each other; one is started again before the third."""
    ports = free_ports(3)
    roster, experiment = roster_of(scene, ports), scene.experiment(
        **TRIO, transport__connect_timeout_s=60
    )
    pair = [start(scene, experiment, i, roster, f"out{i}") for i in (0, 1)]
    for running in pair:
        running.wait_for("come up: 2 (")
    pair[rank].process.send_signal(number)
    pair[rank].wait(10)
    pair[rank] = start(scene, experiment, rank, roster, f"again{rank}")
    pair[rank].wait_for("come up: 2 (")
    third = start(scene, experiment, 2, roster, "out2")
    for running in (*pair, third):
        running.wait(60)
        check(running.code == 0, f"exit code {running.code}: {running.err!r}")
    outs = [f"{'again' if i == rank else 'out'}{i}" for i in (0, 1)]
    check_models(scene, experiment, [*outs, "out2"])


def who_connects_is_killed_and_started_again(scene):
    restart_while_opening(scene, 1, signal.SIGKILL)


def who_is_connected_to_is_killed_and_started_again(scene):
    restart_while_opening(scene, 0, signal.SIGKILL)


def who_connects_is_interrupted_and_started_again(scene):
    restart_while_opening(scene, 1, signal.SIGINT)


def who_has_begun_to_train_is_started_again(scene):
    """Its neighbours, which wait for the fourth agent, hold parts that it sent before."""
    ports = free_ports(4)
    roster = roster_of(scene, ports)
    transport = {"connect_timeout_s": 60, "timeout_s": 60, "chunk_bytes": 4096, "window_chunks": 2}
    topology = {"nodes": 4, "family": "ring"}
    experiment = scene.experiment(**{**TRIO, "topology": topology, "transport": transport})
    agents = [start(scene, experiment, i, roster, f"out{i}") for i in (0, 1, 2)]
    for rank in (0, 2):
        agents[rank].wait_for("come up: 3 (")
    agents[1].process.kill()
    agents[1].wait(10)
    agents[1] = start(scene, experiment, 1, roster, "again1")
    agents[1].wait_for("waiting: edge")
    agents.append(start(scene, experiment, 3, roster, "out3"))
    for running in agents:
        running.wait(60)
        check(running.code == 0, f"exit code {running.code}: {running.err!r}")
    check_models(scene, experiment, ["out0", "again1", "out2", "out3"])


def seconds_of_processor(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connect_silently(port, count):
    sockets = []
    for _ in range(count):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", port))
        sockets.append(s)
    return sockets


def silent_connections_take_all_descriptors(scene):
    """At the limit the agent does not spin, and its neighbour still gets in."""
    ports = free_ports(2)
    roster = roster_of(scene, ports)
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=120)
    limited = ["prlimit", "--nofile=96:96"]
    first = start(scene, experiment, 0, roster, "out0", wrapper=limited)
    wait_listening(ports[0])
    silent = connect_silently(ports[0], 300)
    try:
        time.sleep(1)
        before = seconds_of_processor(first.process.pid)
        time.sleep(3)
        spent = seconds_of_processor(first.process.pid) - before
        check(spent < 1, f"{spent:.2f} s of processor time in 3 s of waiting")
        second = start(scene, experiment, 1, roster, "out1")
        for running in (second.wait(60), first.wait(60)):
            check(running.code == 0, f"exit code {running.code}: {running.err!r}")
    finally:
        for s in silent:
            s.close()


def silent_connections_are_closed(scene):
    ports = free_ports(2)
    roster = roster_of(scene, ports)
    first = start(scene, scene.experiment(**PAIR), 0, roster, "out0")
    wait_listening(ports[0])
    with socket.create_connection(("127.0.0.1", ports[0])) as silent:
        silent.settimeout(120)
        check(silent.recv(1) == b"", "a connection that says nothing was not closed")
    check(first.process.poll() is None, f"the agent ended: {first.err!r}")
    first.process.kill()
    first.wait(10)


def frames_of_every_type_change_nothing(scene):
    """As first messages, from before the neighbour comes until both have ended: any type."""
    ports = free_ports(2)
    roster = roster_of(scene, ports)
    long = {"rounds": 4000, "record__every": 1000, "transport__timeout_s": 60}
    experiment = scene.experiment(**{**PAIR, **long})
    first = start(scene, experiment, 0, roster, "out0")
    wait_listening(ports[0])
    strangers = Strangers(scene)
    try:
        sent = [strangers.send(ports[0], "frames", 1, 0)]
        check(sent[0].stdout.readline() == "connected\n", "the agent does not let greet")
        time.sleep(0.5)
        second = start(scene, experiment, 1, roster, "out1")
        wait_listening(ports[1])
        sent.append(strangers.send(ports[1], "frames", 0, 1))
        for running in (second.wait(120), first.wait(120)):
            running.check_well()
        for process in sent:
            said, why = process.communicate(timeout=120)
            check(" frames" in said, f"{said!r} {why!r}")
    finally:
        strangers.end()
    check_models(scene, experiment, ["out0", "out1"])


def half_a_greeting_stops_nobody(scene):
    """The first bytes of a greeting, and then none: they stay open while the agents train."""
    ports = free_ports(2)
    roster = roster_of(scene, ports)
    experiment = scene.experiment(**PAIR, transport__connect_timeout_s=60)
    first = start(scene, experiment, 0, roster, "out0")
    wait_listening(ports[0])
    whole = message(GREETING, greeting(1, 0))
    parts = [whole[:1], whole[:3], whole[:-1], message(GREETING, bytes(4000))[:2000]]
    silent = [socket.create_connection(("127.0.0.1", ports[0])) for _ in parts]
    try:
        for s, part in zip(silent, parts):
            s.sendall(part)
        second = start(scene, experiment, 1, roster, "out1")
        for running in (second.wait(60), first.wait(60)):
            running.check_well()
    finally:
        for s in silent:
            s.close()


def who_waits_says_for_whom(scene):
    ports = free_ports(2)
    roster = roster_of(scene, ports)
    first = start(scene, scene.experiment(**PAIR), 0, roster, "out0")
    first.wait_for(f"come up: 1 (127.0.0.1:{ports[1]})")
    check("s left (transport.connect_timeout_s)" in first.said, f"how long still: {first.said!r}")
    first.process.kill()
    first.wait(10)


if __name__ == "__main__":
    run_tests(
        [
            strangers_while_one_agent_waits,
            strangers_come_first_at_a_run,
            who_connects_is_killed_and_started_again,
            who_is_connected_to_is_killed_and_started_again,
            who_connects_is_interrupted_and_started_again,
            who_has_begun_to_train_is_started_again,
            silent_connections_take_all_descriptors,
            silent_connections_are_closed,
            half_a_greeting_stops_nobody,
            frames_of_every_type_change_nothing,
            who_waits_says_for_whom,
        ]
    )
