#!/usr/bin/env python3
"""Sixteen agents in a storm: they are killed, stopped, asked to leave, their connections are cut,
their disk is full; `starling run` starts those again that have ended (membership.restart), and the
run ends well.

usage: storm.py STARLING                             a short one, for tests
       storm.py STARLING EVENTS SECONDS [SEED]       so many events, evenly, in so many seconds

Held: no process ends but whom the storm has hit; the run ends with 0; nobody waits for longer than
its deadline; the averaged model is about as accurate as that of the same experiment without a
storm. The long form also takes the goodput, which is to be 75 %: the rounds of all agents beside
those of as many agents in the same time in the calm before the storm.
"""
import json
import os
import random
import re
import signal
import sys
import time

import _sockets
from _scene import SLOWER, Failure, Scene, check

AGENTS, GRACE_S, CALM_S = 16, 2, 30
PAUSE_US = 20000  # a gradient has five products of matrices
ABSENT_MAX = 4  # agents at once
RECORD = 5  # rounds
KINDS = {"kill": 5, "stop": 3, "pause": 2, "cut": 6, "leave": 2, "disk": 2}
LOST = re.compile(r"agent (\d+) (?:is lost, the others go on: (.*)|has left, the others go on)")
BACK = re.compile(r"agent (\d+) has returned in round (\d+)")
OUT = re.compile(r"agent (\d+) was started again, and has not joined the others: (.*)")
CAUSES = {
    "kill": "killed by signal 9",
    "stop": "was stopped by a signal for longer than membership.grace_s",
}
CUT_OFF = "cut off; it returns"  # it lives


class Storm:
    def __init__(self, scene, running, seed):
        self.scene, self.running = scene, running
        self.chance = random.Random(seed)
        self.made = dict.fromkeys(KINDS, 0)
        self.kills = {rank: [] for rank in range(AGENTS)}  # when, of processes that end
        self.struck = {(kind, rank): 0 for kind in KINDS for rank in range(AGENTS)}
        self.later = []  # (when, what)
        self.busy = {}  # rank: until when nothing else happens to it
        self.full = scene.path("full")
        self.cuts = dict.fromkeys(_sockets.CUTS, 0)
        self.cut_off = 0  # how often an agent was left out that lives

    def absent(self):
        away = set()
        for line in self.running.err.splitlines():
            if found := LOST.search(line):
                away.add(int(found[1]))
            elif found := BACK.search(line):
                away.discard(int(found[1]))
        return away

    def tick(self):
        now = time.monotonic()
        for when, what in [one for one in self.later if one[0] <= now]:
            what()
            self.later.remove((when, what))

    def at(self, seconds, what):
        self.later.append((time.monotonic() + seconds, what))

    def send(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def strike(self):
        """One event, if there is an agent that it can happen to."""
        now = time.monotonic()
        away, agents = self.absent(), self.scene.agents()
        self.busy = {rank: until for rank, until in self.busy.items() if until > now}
        free = [rank for rank in agents if rank not in away and rank not in self.busy]
        kind = self.chance.choices(list(KINDS), KINDS.values())[0]
        takes = kind in ("kill", "stop", "leave")
        if takes and len(away | set(self.busy)) >= ABSENT_MAX:
            return False
        if takes:  # not so often that it is not started again
            free = [rank for rank in free if sum(now - at < 60 for at in self.kills[rank]) < 4]
        if not free:
            return False
        rank = self.chance.choice(sorted(free))
        if not getattr(self, kind)(rank, agents[rank]):
            return False
        self.made[kind] += 1
        self.struck[kind, rank] += 1
        return True

    def end(self, rank, pid, number):
        self.send(pid, number)
        self.kills[rank].append(time.monotonic())
        self.busy[rank] = time.monotonic() + 2
        return True

    def kill(self, rank, pid):
        return self.end(rank, pid, signal.SIGKILL)

    def leave(self, rank, pid):
        self.end(rank, pid, signal.SIGTERM)
        self.busy[rank] += 8  # it may take a while
        return True

    def halt(self, rank, pid, seconds):
        self.send(pid, signal.SIGSTOP)
        self.at(seconds, lambda: self.send(pid, signal.SIGCONT))
        self.busy[rank] = time.monotonic() + seconds + 1
        return True

    def stop(self, rank, pid):
        return self.halt(rank, pid, GRACE_S + self.chance.uniform(1, 4))

    def pause(self, rank, pid):
        return self.halt(rank, pid, GRACE_S * self.chance.uniform(0.05, 0.4))

    def cut(self, _, pid):
        kind = _sockets.cut_one_of(pid, self.chance)
        if kind is not None:
            self.cuts[kind] += 1
        return kind is not None

    def disk(self, rank, _):
        """Its checkpoints cannot be written for a while."""
        if os.path.exists(self.full):
            return False
        self.scene.write("full.new", f"rank-{rank}.")
        os.rename(self.scene.path("full.new"), self.full)
        self.at(self.chance.uniform(1, 5), lambda: os.unlink(self.full))
        return True

    def rage(self, events, seconds):
        """Events at even times; one that cannot be now comes a little later."""
        began = time.monotonic()
        made = 0
        while self.running.process.poll() is None:
            self.tick()
            due = began + seconds * made / events
            if made < events and time.monotonic() >= due:
                made += self.strike()
            elif made == events and not self.later:
                break
            time.sleep(0.05)
        for _, what in self.later:
            what()
        return made

    def check_ends(self):
        """Nobody has ended, or was left out, but those that were hit."""
        told = {}
        for line in self.running.err.splitlines():
            if found := LOST.search(line):
                why = found[2] or "left"
                if CUT_OFF in why:
                    self.cut_off += 1
                    continue
                kind = next((kind for kind, cause in CAUSES.items() if cause in why), why)
                kind = "leave" if kind == "left" else kind
                told[kind, int(found[1])] = told.get((kind, int(found[1])), 0) + 1
            check(not OUT.search(line), line)
        for (kind, rank), count in told.items():
            hits = self.struck.get((kind, rank), 0)
            check(count <= hits, f"agent {rank}: {count} times {kind!r}, and was hit {hits} times")


def experiment(scene, rounds):
    return scene.experiment(
        rounds=rounds,
        topology={"nodes": AGENTS, "family": "ring"},
        data={
            "name": "digits",
            "train_samples": 4000,
            "test_samples": 1000,
            "batch": 16,
            "partition": {"name": "dirichlet", "alpha": 0.5},
        },
        optimizer={"learning_rate": 0.1},
        record={"every": RECORD},
        checkpoint={"every": 20, "keep": 3},
        membership={"on_loss": "continue", "grace_s": GRACE_S, "restart": "always"},
        security={"mode": "none"},
        transport={"connect_timeout_s": 60, "round_timeout_s": 60},
    )


def start(scene, path, folder):
    library = os.path.join(os.path.dirname(os.path.dirname(scene.starling)), "tests")
    names = ("slow_gradient", "failing_disk")
    preloaded = [os.path.join(library, f"lib{name}.so") for name in names]
    for name in preloaded:
        check(os.path.exists(name), f"{name} is not built")
    scene.environment = {
        "LD_PRELOAD": ":".join(preloaded),
        "STARLING_PAUSE_US": str(PAUSE_US),
        "STARLING_DISK_FILE": scene.path("full"),
        "STARLING_DISK_CALL": "any",
        "STARLING_DISK_AT": "1+",
        "STARLING_DISK_WHY": "28",
    }
    running = scene.start("run", path, "--out", scene.path(folder))
    scene.environment = {}
    return running


def records(scene, folder):
    """rank -> {round: time}"""
    found = {}
    for rank in range(AGENTS):
        with open(scene.path(f"{folder}/metrics-{rank}.jsonl")) as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        found[rank] = {line["round"]: line["time"] for line in lines}
    return found


def wait_for_round(scene, running, round_number, folder):
    until = time.monotonic() + SLOWER * 60
    while True:
        try:
            all_of_them = records(scene, folder)
            if all(max(times, default=0) >= round_number for times in all_of_them.values()):
                return
        except FileNotFoundError:
            pass
        check(running.process.poll() is None, f"ended: {running.err!r}")
        check(time.monotonic() < until, f"round {round_number} does not come: {running.err!r}")
        time.sleep(0.1)


def last_round(scene, folder):
    return max(max(times, default=0) for times in records(scene, folder).values())


def members_by_round(scene):
    """The views that agents have begun: round -> how many are in it."""
    views = {1: AGENTS}
    for rank in range(AGENTS):
        with open(scene.path(f"run/events-{rank}.jsonl")) as file:
            for line in file:
                if '"event":"view"' in line and line.endswith("\n"):
                    view = json.loads(line)
                    views[view["round"]] = len(view["members"])
    return views


def rounds_of_all(views, first, last):
    """Over all agents, from round `first` up to `last`."""
    begins = sorted(views)
    total = 0
    for begin, end in zip(begins, [*begins[1:], last]):
        total += views[begin] * max(0, min(end, last) - max(begin, first))
    return total


def accuracy(scene, folder):
    with open(scene.path(f"{folder}/summary.json")) as file:
        return json.load(file)["mean_model"]["accuracy"]


def longest_pause(scene):
    """Between two records of anybody."""
    times = sorted(time for one in records(scene, "run").values() for time in one.values())
    return max(after - before for before, after in zip(times, times[1:]))


def measure_pace(scene):
    """Rounds a second, of agents without a storm."""
    running = start(scene, experiment(scene, 2000000), "calm")
    wait_for_round(scene, running, 2 * RECORD, "calm")
    began_s, first = time.monotonic(), last_round(scene, "calm")
    time.sleep(CALM_S)
    pace = (last_round(scene, "calm") - first) / (time.monotonic() - began_s)
    scene.kill_run(running)
    print(f"calm: {pace:.2f} rounds a second", flush=True)
    return pace


def weather(scene, events, seconds, seed, rounds):
    """The useful rounds of an agent, on average, a second."""
    running = start(scene, experiment(scene, rounds), "run")
    wait_for_round(scene, running, 2 * RECORD, "run")
    began_s, first = time.monotonic(), last_round(scene, "run")
    storm = Storm(scene, running, seed)
    made = storm.rage(events, seconds)
    took_s, last = time.monotonic() - began_s, last_round(scene, "run")
    running.wait(120 + rounds)
    running.check_well()
    storm.check_ends()
    views = members_by_round(scene)
    useful = rounds_of_all(views, first, last) / AGENTS
    print(f"seed {seed}: {made} events in {took_s:.0f} s: {storm.made}, cuts {storm.cuts}")
    print(
        f"{last - first} rounds of {useful / (last - first) * AGENTS:.2f} agents, "
        f"{len(views) - 1} views; living agents left out {storm.cut_off} times; longest pause "
        f"of all {longest_pause(scene):.1f} s"
    )
    check(made == events, f"the run ended after {made} of {events} events")
    return useful / took_s


def compare(scene, most):
    path, folder = scene.path("experiment.json"), scene.path("sim")
    clean = scene.call("sim", path, "--out", folder, timeout=900)
    clean.check_well()
    storm, calm = accuracy(scene, "run"), accuracy(scene, "sim")
    print(f"accuracy of the averaged model {100 * storm:.2f} %, without a storm {100 * calm:.2f} %")
    check(abs(storm - calm) <= most, f"it is more than {100 * most:.0f} % away")


def tell(scene, numbers):
    events, seconds, seed = (numbers + [10, 20, 1][len(numbers) :])[:3]
    if len(numbers) == 0:
        weather(scene, events, seconds, seed, 300)
    else:
        pace = measure_pace(scene)
        goodput = weather(scene, events, seconds, seed, int(0.95 * pace * seconds)) / pace
        print(f"goodput {100 * goodput:.1f} %")
        check(goodput >= 0.75, "goodput is below 75 %")
    compare(scene, 0.02 if numbers else 0.06)  # so few rounds have not settled
    scene.check_clean()


def main():
    why = _sockets.why_not()
    if why is not None:
        KINDS.pop("cut")
        print(f"without cuts: {why}")
    scene = Scene(os.path.abspath(sys.argv[1]))
    failure = None
    try:
        tell(scene, [int(word) for word in sys.argv[2:]])
    except Failure as why:
        failure = why
        if "STARLING_KEEP" in os.environ:
            os.rename(scene.folder, os.environ["STARLING_KEEP"])
    finally:
        scene.close()
    print(f"not ok a storm: {failure}" if failure else "ok a storm")
    sys.exit(1 if failure else 0)


if __name__ == "__main__":
    main()
