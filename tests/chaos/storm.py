#!/usr/bin/env python3
"""Sixteen agents in a storm, eight in a short one: they are killed, stopped, asked to leave, their
connections are cut, bytes are put into these and taken out, all between two parts of them break for
a while, their disk is full; `starling run` starts those again that have ended (membership.restart),
and the run ends well.

usage: storm.py STARLING                             a short one, for tests
       storm.py STARLING EVENTS SECONDS [SEED]       so many events, evenly, in so many seconds

Held: no process ends but whom the storm has hit; the run ends with 0, or with 3 without somebody;
nobody waits for longer than its deadline; the averaged model is about as accurate as that of the
same experiment without a storm. At its end it prints a summary, and all that failed.
"""
import os
import random
import re
import signal
import sys
import time

import _sockets
from _scene import Failure, Scene, check, read_json

AGENTS = 16 if sys.argv[2:] else 8
GRACE_S = 2
PAUSE_US, GRADIENT_S = 20000, 0.1  # it has five products of matrices
ABSENT_MAX = 4  # agents at once
RECORD = 5  # rounds
KINDS = {"kill": 5, "stop": 3, "pause": 2, "cut": 6, "tap": 6, "leave": 2, "disk": 2, "part": 1}
LOST = re.compile(r"agent (\d+) (?:is lost, the others go on: (.*)|has left, the others go on)")
BACK = re.compile(r"agent (\d+) has returned in round (\d+)")
OUT = re.compile(r"agent (\d+) was started again, and has not joined the others: (.*)")
CAUSES = {
    "kill": "killed by signal 9",
    "stop": "was stopped by a signal for longer than membership.grace_s",
}
CUT_OFF = "the others have gone on without this agent"  # it lives
LATE = "in time"  # whoever has waited until its deadline says that something did not come


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

    def tap(self, _, pid):
        return _sockets.tap_one_of(pid, self.chance)

    def part(self, rank, _):
        """Some and the others reach each other no more for a while."""
        agents = self.scene.agents()
        if len(self.absent() | set(self.busy)) > 0 or len(agents) < AGENTS:
            return False
        side = {(rank + i) % AGENTS for i in range(self.chance.randint(1, AGENTS // 2))}
        seconds = self.chance.uniform(0.5, 3) * GRACE_S
        self.at(seconds, _sockets.Parting(agents, side).heal)
        self.busy = dict.fromkeys(range(AGENTS), time.monotonic() + seconds + 2)
        return True

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
        self.later = []
        return made

    def faults(self):
        """Who has ended, or was left out, though nothing has hit it."""
        told, faults = {}, []
        for line in self.running.err.splitlines():
            if found := LOST.search(line):
                why = found[2] or "left"
                if CUT_OFF in why:
                    self.cut_off += 1
                    continue
                kind = next((kind for kind, cause in CAUSES.items() if cause in why), why)
                kind = "leave" if kind == "left" else kind
                told[kind, int(found[1])] = told.get((kind, int(found[1])), 0) + 1
            if OUT.search(line):
                faults.append(line)
        for (kind, rank), count in told.items():
            hits = self.struck.get((kind, rank), 0)
            if count > hits:
                faults.append(f"agent {rank}: {count} times {kind!r}, and was hit {hits} times")
        return faults


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
        security={"seal": "on"},
        transport={"connect_timeout_s": 60, "round_timeout_s": 60},
    )


def start(scene, path):
    scene.preload("slow_gradient", "failing_disk")
    scene.environment |= {
        "STARLING_PAUSE_US": str(PAUSE_US),
        "STARLING_DISK_FILE": scene.path("full"),
        "STARLING_DISK_CALL": "any",
        "STARLING_DISK_AT": "1+",
        "STARLING_DISK_WHY": "28",
    }
    running = scene.start("run", path, "--out", scene.path("run"))
    scene.environment = {}
    return running


def find_accuracy(scene):
    path, sim = scene.path("experiment.json"), scene.path("sim")
    scene.call("sim", path, "--out", sim, timeout=900).check_well()
    summaries = [read_json(folder, "summary.json") for folder in (scene.path("run"), sim)]
    return [summary["mean_model"]["accuracy"] for summary in summaries]


def summarize(scene, storm, made, events, is_long):
    """All that was seen, and what of it is not as it is to be."""
    running, faults = storm.running, storm.faults()
    late = [line for line in running.err.splitlines() if LATE in line]
    back = len(BACK.findall(running.err))
    print(f"events: {made}: {storm.made}; connections cut {storm.cuts}")
    print(f"survivors that ended: {len(faults)}; waits that came to their deadline: {len(late)}")
    print(f"left out and alive: {storm.cut_off} times; returned: {back} times")
    code = 3 if storm.absent() else 0  # who is away at the end
    if running.code != code:
        faults.append(f"exit code {running.code}: {running.err[-500:]!r}")
    if made < events:
        faults.append(f"the run ended after {made} of {events} events")
    faults += late
    if running.code == code:
        most = 0.02 if is_long else 0.06  # so few rounds have not settled
        storms, clean = find_accuracy(scene)
        print(f"accuracy of the averaged model {100 * storms:.2f} %, clean {100 * clean:.2f} %")
        if abs(storms - clean) > most:
            faults.append(f"the accuracy is more than {100 * most:.0f} % away")
    check(not faults, "; ".join(faults))


def tell(scene, numbers):
    events, seconds, seed = (numbers + [10, 20, 1][len(numbers) :])[:3]
    rounds = int(seconds / GRADIENT_S)  # which take as long at least
    running = start(scene, experiment(scene, rounds))
    running.wait_for(f"round {2 * RECORD}/")
    storm = Storm(scene, running, seed)
    made = storm.rage(events, seconds)
    running.wait(120 + rounds)
    summarize(scene, storm, made, events, len(numbers) > 0)
    scene.check_clean()


def main():
    why = _sockets.why_not()
    if why is not None:
        for kind in ("cut", "tap", "part"):
            KINDS.pop(kind)
        print(f"without cuts, taps and parts: {why}")
    scene = Scene(os.path.abspath(sys.argv[1]))
    failure = None
    try:
        tell(scene, [int(word) for word in sys.argv[2:]])
    except Failure as why:
        failure = why
    finally:
        scene.close()
    print(f"not ok a storm: {failure}" if failure else "ok a storm")
    sys.exit(1 if failure else 0)


if __name__ == "__main__":
    main()
