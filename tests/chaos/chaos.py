#!/usr/bin/env python3
"""Agents and their parent are killed, stopped, interrupted: all end in time, and say why."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from _limits import little_memory
from _scene import check, needs, read_json, run_tests, wait_until

NODES = 5


def start_run(scene, command="run"):
    """Of agents, or simulated: it has trained for some rounds."""
    scene.take_time(1500)
    path = scene.experiment(topology__nodes=NODES)
    running = scene.start(command, path, "--out", scene.path("run"))
    running.wait_for("round 40/")
    return running


def lines_of_agents(running):
    """rank -> its error line; none may have two."""
    lines = {}
    for line in running.err.splitlines():
        match = re.match(r"[\d:]{8} error rank (\d+): (.*)", line)
        if match:
            check(
                int(match[1]) not in lines, f"agent {match[1]} has two error lines: {running.err!r}"
            )
            lines[int(match[1])] = match[2]
    return lines


def agent_killed(scene):
    """The run fails; each survivor names its edge and round, and the victim's edge."""
    running, victim = start_run(scene), 3
    os.kill(scene.agents()[victim], signal.SIGKILL)
    running.wait(20)
    lines = lines_of_agents(running)
    check(running.code == 1, f"exit code {running.code}, expected 1: {running.err!r}")
    check(
        sorted(lines) == list(range(NODES)),
        f"expected one error line for each agent, got {running.err!r}",
    )
    victims = rf"edge {victim}->\d|edge \d+->{victim}\b"
    for rank in set(range(NODES)) - {victim}:
        for words in (r"edge \d+->\d+", r"round \d+", victims):
            check(re.search(words, lines[rank]), f"agent {rank} names no {words!r}: {lines[rank]}")
    check("killed by signal 9" in lines[victim], f"the killed agent's line: {lines[victim]!r}")
    about = read_json(scene.path("run/run.json"))
    check(about["outcome"] == "failed", f"{about}")
    check(re.match(rf"agent \d: .*agent {victim}|agent {victim}: killed by", about["why"]), about)
    check_partial_results(scene.path("run"))


def check_partial_results(folder):
    for rank in range(NODES):
        path = f"{folder}/metrics-{rank}.jsonl"
        check(os.path.getsize(path) > 0, f"{path} is empty")
    found = os.listdir(folder)
    check("model.npy" not in found, "a run that failed has written a final model")
    check("model-last.npy" in found, "a run that failed has not kept the model recorded last")


GREEDY = """
import time
taken = []
while True:
    taken.append(bytearray(b"x") * (16 << 20))
    time.sleep(0.01)
"""


def out_of_memory(scene):
    """What there is suffices, as `run` finds first; then somebody else takes it."""
    with open("/proc/swaps") as file:
        needs(len(file.readlines()) < 2, "there is swap: it would be slow instead")
    big = {"topology__nodes": 4, "model__hidden": [4000, 2000], "rounds": 10000}
    with little_memory(2500) as wrapper:
        words = ("run", scene.experiment(**big), "--out", scene.path("run"))
        ended = scene.start(*words, wrapper=wrapper)
        ended.wait_for("round 20/")
        with open(f"/proc/{scene.agents()[1]}/oom_score_adj", "w") as file:
            file.write("1000")  # the kernel takes this one
        greedy = subprocess.Popen([*wrapper, sys.executable, "-c", GREEDY])
        ended.wait(60)
        greedy.kill()
        greedy.wait()
    why = "killed by signal 9 (Killed), probably by the kernel, which was out of memory"
    check(ended.code == 1 and why in ended.err, f"{ended.code}: {ended.err!r}")


def interrupted(scene):
    """Alone, and as from the keyboard: Ctrl-C reaches every process of the terminal's group."""
    for command, send in (("run", os.kill), ("run", os.killpg), ("sim", os.kill)):
        running = start_run(scene, command)
        send(running.process.pid, signal.SIGINT)
        running.wait(15)
        running.check_refused("stopped", code=130)
        check_partial_results(scene.path("run"))
        shutil.rmtree(scene.path("run"))


def parent_killed(scene):
    """Its agents end, one that is stopped too."""
    running = start_run(scene)
    os.kill(scene.agents()[1], signal.SIGSTOP)
    running.kill()
    scene.wait_gone(3)


def ended_at_the_start(scene):
    """By Ctrl-C, or while libraries load, whose handlers would make it an exit with code 1, if it
    does not hang."""
    path = scene.experiment(topology__nodes=NODES)
    for command, number, delays in (
        ("run", signal.SIGINT, (0.0, 0.05, 0.2, 0.5)),
        ("sim", signal.SIGTERM, [0.04 * k for k in range(8)]),
    ):
        for delay in delays:
            running = scene.start(command, path, "--out", scene.path(f"{command}{delay}"))
            time.sleep(delay)
            running.process.send_signal(number)
            running.wait(15)
            # Before main, the loader or a library of libfabric's ends the process.
            unborn = (1, -number) if command == "run" and not running.said else ()
            good = running.code in (130, *(unborn if command == "run" else (-number,)))
            check(good, f"exit code {running.code} after {delay} s: {running.err!r}")
            scene.wait_gone(5)


def interrupted_while_processes_become_agents(scene):
    """A signal that comes before a new process is an agent is not lost."""
    scene.preload("slow_exec")
    path = scene.experiment(topology__nodes=NODES)
    running = scene.start("run", path, "--out", scene.path("run"))
    wait_until(lambda: len(scene.processes()) > NODES, "all processes are there", pause_s=0.01)
    os.kill(running.process.pid, signal.SIGINT)
    running.wait(15)
    running.check_refused("stopped", code=130)
    scene.wait_gone(3)


if __name__ == "__main__":
    run_tests()
