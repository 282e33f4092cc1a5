#!/usr/bin/env python3
"""An agent as a service: what it tells a supervisor, as systemd's, and the files with which it is
run by one."""
import ctypes
import os
import socket
import time

from _ports import free_ports
from _scene import check, needs, run_tests, wait_until

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
libc = ctypes.CDLL(None, use_errno=True)


class Supervisor:
    """The socket at NOTIFY_SOCKET; an abstract one, too."""

    def __init__(self, scene, name, watchdog_s):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name.replace("@", "\0", 1))
        self.socket.setblocking(False)
        self.lines = []
        scene.environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": str(int(1e6 * watchdog_s))}

    def hear(self):
        new = []
        while True:
            try:
                new += self.socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                self.lines += new
                return new

    def has(self, line):
        self.hear()
        return any(line in each for each in self.lines)


def start(scene, name="", watchdog_s=0.3, **keys):
    """Agent 0, watched, and what starts agent 1."""
    scene.take_time()
    roster = scene.roster(free_ports(2))
    path = scene.experiment(topology={"nodes": 2, "family": "ring"}, **keys)
    supervisor = Supervisor(scene, name or scene.path("notify"), watchdog_s)
    agent = scene.agent(path, 0, roster)
    scene.environment = {}
    return supervisor, agent, lambda: scene.agent(path, 1, roster)


def it_says_how_it_does(scene):
    """That it listens, before the others have come; what it is at; that it ends."""
    name = f"@starling-test-{os.getpid()}"
    supervisor, agent, start_other = start(scene, name, rounds=1500, record={"every": 500})
    wait_until(lambda: supervisor.has("READY=1"), "it listens")
    wait_until(lambda: supervisor.has("WATCHDOG=1"), "its loop goes round")
    wait_until(lambda: supervisor.has("STATUS=round 0 of 1500, "), "it waits")
    usec = [line for line in supervisor.lines if line.startswith("WATCHDOG_USEC=")]
    check(int(usec[0][14:]) > 6e8 and usec[1:] == ["WATCHDOG_USEC=300000"], f"{usec}")
    other = start_other()
    wait_until(lambda: supervisor.has("STOPPING=1"), "it ends")
    agent.ends(0, 60)
    other.ends(0, 60)
    check(supervisor.has(" of 1500, computes") or supervisor.has(" of 1500, ex"), supervisor.lines)
    check(supervisor.lines[-1] == "STOPPING=1", supervisor.lines[-3:])
    check(supervisor.lines.count("READY=1") == 1, supervisor.lines)


def the_watchdog_is_its_loop(scene):
    """A gradient may take long; when the loop stands still, nothing else in the process, as the
    thread that answers /status, says that it lives."""
    stalls = scene.path("stalls")
    os.mkdir(stalls)
    supervisor, agent, start_other = start(scene)
    os.environ["STARLING_STALLS"] = stalls
    try:
        other = start_other()
    finally:
        del os.environ["STARLING_STALLS"]
    agent.wait_for("round 20/")
    scene.write(f"stalls/{other.process.pid}", "")
    wait_until(lambda: supervisor.has("waits: "), "it says for whom it waits")
    supervisor.hear()
    wait_until(lambda: "WATCHDOG=1" in supervisor.hear(), "it lives while it waits")
    traced = libc.ptrace(PTRACE_ATTACH, agent.process.pid, None, None) == 0
    needs(traced, "no process may be traced here")
    os.waitpid(agent.process.pid, 0x40000000)  # __WALL: the thread of the loop stands still
    supervisor.hear()
    time.sleep(1)
    got = scene.call("status", scene.path("out0"))
    check("exchanges" in got.out, f"it does not answer: {got.out}")
    check(supervisor.hear() == [], "it says that it lives")
    libc.ptrace(PTRACE_DETACH, agent.process.pid, None, None)
    wait_until(lambda: "WATCHDOG=1" in supervisor.hear(), "it lives again")
    os.remove(os.path.join(stalls, str(other.process.pid)))
    for each in (agent, other):
        each.kill()


def a_wrong_socket_is_a_warning(scene):
    scene.environment["NOTIFY_SOCKET"] = "relative"
    path = scene.experiment(rounds=2, topology={"nodes": 1, "family": "ring"})
    got = scene.agent(path, 0, scene.roster(free_ports(1))).wait(30)
    check("NOTIFY_SOCKET=relative: is no socket" in got.err, got.err)


if __name__ == "__main__":
    run_tests()
