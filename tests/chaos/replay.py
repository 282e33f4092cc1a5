#!/usr/bin/env python3
"""`starling sim RUN --replay` repeats runs of real agents that were cut, killed, asked to end and
gone on with, bit for bit; and what it says of logs of events that are damaged.

By hand, stories of seeds: replay.py STARLING --stories SEED COUNT
"""
import glob
import json
import os
import platform
import random
import shutil
import signal
import sys

from _ports import free_ports
from _scene import Failure, Scene, check, run_tests, read_lines, wait_until
from resume import end_saved, rounds_saved, start_by_hand, wait_beyond

EVERY = 20
RUN = {
    "rounds": 800,
    "topology": {"nodes": 4, "family": "ring"},
    "algorithm": {"name": "d-psgd"},
    "optimizer__momentum": 0.9,
    "model": "softmax",
    "data": {"name": "digits", "train_samples": 400, "test_samples": 50, "batch": 8},
    "record": {"every": 50},
    "checkpoint": {"every": EVERY, "keep": 3},
    "transport__connect_timeout_s": 60,
}
RANDOM = {"name": "choco-sgd", "compressor": {"name": "random-k", "fraction": 0.05}}
FOREVER = 2000000
RESUME = {"event": "resume", "node": 1, "round": 20, "passed_over": [], "time": 1}


def events(folder, rank):
    return read_lines(folder, f"events-{rank}.jsonl")


def kinds(folder, rank):
    return [event["event"] for event in events(folder, rank)]


def replay(scene, folder, *more):
    out = scene.path(f"again{getattr(scene, 'count', 0)}")
    return scene.call("sim", folder, "--replay", "--out", out, *more, timeout=120)


def is_repeated(scene, folder, *words):
    ended = replay(scene, folder)
    ended.check_well()
    for word in (f"same bits as {folder}: ", *words):
        check(word in ended.out, f"{word!r} is missing in {ended.out!r}")


def a_run_that_is_ended_and_killed(scene):
    """SIGTERM ends it, it goes on, is killed, and goes on to its end; with a random compressor."""
    scene.take_time()
    path = scene.experiment(**{**RUN, "rounds": FOREVER, "algorithm": RANDOM})
    out = scene.path("out")
    running = scene.start("run", path, "--out", out)
    wait_beyond(scene, running, out, [])
    os.kill(running.process.pid, signal.SIGTERM)
    running.ends(75, 30)
    first = rounds_saved(out)[-1]
    is_repeated(scene, out, f"rounds 1 to {first} (", "0 final models, 4 checkpoints")
    running = scene.start("run", "--resume", out)
    wait_beyond(scene, running, out, [first])
    scene.kill_run(running)
    rounds = rounds_saved(out)[-1] + 70
    scene.call("run", "--resume", out, "--set", f"rounds={rounds}", timeout=120).check_well()
    seen = kinds(out, 2)
    check(seen.count("start") == 3 and seen.count("resume") == 2, f"events {seen}")
    check({"request", "end"} <= set(seen), f"events {seen}")
    is_repeated(scene, out, f"going on from round {first}", "4 final models")


def rates_that_were_changed(scene):
    """By agents twice, with other rounds recorded, and by a simulation."""
    scene.take_time()
    path, out = scene.experiment(**{**RUN, "rounds": FOREVER}), scene.path("out")
    changes = [
        ("optimizer.learning_rate=0.02", "record.every=7"),
        ('optimizer.schedule={"name":"step","milestones":[0.00001],"factor":0.3}',),
    ]
    running = scene.start("run", path, "--out", out)
    firsts = [1]
    for change in changes:
        wait_beyond(scene, running, out, [firsts[-1]])
        os.kill(running.process.pid, signal.SIGTERM)
        running.ends(75, 30)
        firsts.append(rounds_saved(out)[-1] + 1)
        sets = [word for value in change for word in ("--set", value)]
        running = scene.start("run", "--resume", out, *sets)
    wait_beyond(scene, running, out, [firsts[-1]])
    scene.kill_run(running)
    is_repeated(scene, out, f"going on from round {firsts[1] - 1}, {firsts[2] - 1} (3 starts")
    rounds = rounds_saved(out)[-1] + 70
    sets = ("--set", f"rounds={rounds}", "--set", "optimizer.schedule=cosine")
    scene.call("sim", "--resume", out, *sets).check_well()
    is_repeated(scene, out, "(4 starts", "4 final models")
    told = [event for event in events(out, 2) if event["event"] == "settings"]
    found = [(event["round"], event["settings"]["optimizer.learning_rate"]) for event in told]
    check(found == list(zip(firsts, (0.01, 0.02, 0.02))), found)
    steps = [event["settings"]["optimizer.schedule.milestones"] for event in told]
    check(steps == [[], [], [0.00001]], steps)


def a_run_that_was_cut_short(scene):
    """As far as it was recorded. Its last line may be torn, and a later process makes it whole."""
    scene.take_time()
    path, out = scene.experiment(**{**RUN, "rounds": FOREVER}), scene.path("out")
    running = scene.start("run", path, "--out", out)
    running.wait_for("round 50/")
    ended = replay(scene, out)
    ended.check_refused("a process still writes to it")
    scene.kill_run(running)
    with open(os.path.join(out, "events-1.jsonl"), "a") as file:
        file.write('{"event":"down","no')
    ended = replay(scene, out)
    ended.check_well()
    check("same bits" in ended.out and "0 final models" in ended.out, ended.out)
    check("its last line has no end" in ended.err, ended.err)
    last = rounds_saved(out)[-1]
    scene.call("run", "--resume", out, "--set", f"rounds={last + 30}", timeout=60).check_well()
    check(kinds(out, 1)[-1:] == ["end"] or "end" in kinds(out, 1), f"{kinds(out, 1)}")
    is_repeated(scene, out, "4 final models")


def agents_by_hand_with_folders_of_their_own(scene):
    """They pass over a round that one lacks, and say so. Their files are copied into one folder."""
    path = scene.experiment(**RUN)
    agents = start_by_hand(scene, path)
    wait_beyond(scene, agents[1], scene.path("out1"), [EVERY], 1)
    end_saved(agents, 1)
    *_, before, last = rounds_saved(scene.path("out3"), 3)
    os.unlink(scene.path(f"out3/checkpoints/round-{last}-rank-3.safetensors"))
    agents = start_by_hand(scene, path, resume=range(4))
    for agent in agents:
        agent.wait(120).check_well()
    said = f"going on from round {before}: agent 3 has none of {last}"
    check(said in agents[0].said, agents[0].said)
    resume = next(event for event in events(scene.path("out0"), 0) if event["event"] == "resume")
    check((resume["round"], resume["passed_over"]) == (before, [last]), str(resume))
    out = scene.path("out0")
    replay(scene, out).check_refused("missing are those of ranks 1, 2, 3; ")
    for rank in range(1, 4):
        for name in glob.glob(scene.path(f"out{rank}/[em]*-{rank}.*")):
            shutil.copy(name, out)
    is_repeated(scene, out, f"going on from round {before} (2 starts", "4 final models")


def kernels_are_those_of_the_run(scene):
    if platform.machine() != "x86_64":
        return "kernels of x86-64"
    path, out = scene.experiment(**{**RUN, "rounds": 60}), scene.path("out")
    scene.environment = {"OPENBLAS_CORETYPE": "Nehalem", "STARLING_KERNELS": "plain"}
    scene.call("run", path, "--out", out).check_well()
    scene.environment = {}
    start = events(out, 0)[0]
    check((start["kernels"], start["blas"]) == ("plain", "Nehalem"), str(start))
    is_repeated(scene, out)
    for rank in range(4):
        edited(lambda e: e[0].update(kernels="x86-64-v9"))(f"{out}/events-{rank}.jsonl")
    ended = replay(scene, out)
    for word in (
        'STARLING_KERNELS=x86-64-v9 is not allowed; it must be "plain"',
        "after round 0 the run had kernels x86-64-v9 and BLAS Nehalem, and x86-64-",
    ):
        check(f"the bits may differ: {word}" in ended.err, ended.err)
    return None


def numbers_that_differ_are_named(scene):
    path, out = scene.experiment(**{**RUN, "rounds": 100}), scene.path("out")
    scene.call("run", path, "--out", out).check_well()
    with open(os.path.join(out, "model-2.npy"), "r+b") as file:
        file.seek(128 + 4 * 77)
        file.write(b"\0\0\0\0")
    ended = replay(scene, out)
    check(ended.code == 1, f"exit code {ended.code}")
    check("model-2.npy: element 77 of 7850 is 0, and " in ended.err, ended.err)
    name = os.path.join(out, "metrics-3.jsonl")
    edited(lambda lines: lines[1].update(loss=0.5))(name)
    ended = replay(scene, out)
    check(ended.code == 1, f"exit code {ended.code}")
    check("node 3, round 100: loss is 0.5, and " in ended.err, ended.err)


def edited(change):
    """Applies `change` to the objects of a log."""

    def apply(path):
        lines = read_lines(path)
        change(lines)
        with open(path, "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    return apply


def goes_on_alone(lines):
    del lines[1:-1]
    lines[0]["round"] = 41


def logs_are_refused(scene):
    """Of a run as a whole; test_event_log has what is wrong in a line."""
    path, out = scene.experiment(**{**RUN, "rounds": 60}), scene.path("out")
    scene.call("run", path, "--out", out).check_well()
    other = scene.path("other")
    scene.call("run", path, "--out", other).check_well()
    foreign = os.path.join(other, "events-1.jsonl")
    at = "events-1.jsonl:"
    for change, *words in (
        (os.unlink, "missing are those of ranks 1;"),
        (lambda p: open(p, "w").close(), "the log of rank 1 holds no whole line"),
        (lambda p: shutil.copy(foreign, p), at + "1: run_id: ", "is another run's"),
        (edited(goes_on_alone), "the log of rank 1 begins after round 40"),
        (edited(lambda e: e[0].pop("blas")), at + "1: blas: is missing"),
        (edited(lambda e: e[1].update(node=0)), at + "2: node: 0 is not allowed"),
        (edited(lambda e: e[1].update(round=900)), at + "2: round: 900 is not allowed"),
        (edited(lambda e: e.pop(0)), at + '1: event: must be "start"'),
        (edited(lambda e: e.insert(2, RESUME)), at + '3: event: "resume" is not'),
    ):
        broken = scene.path("broken")
        shutil.copytree(out, broken)
        change(os.path.join(broken, "events-1.jsonl"))
        ended = replay(scene, broken)
        ended.check_refused(*words)
        shutil.rmtree(broken)
    for name in glob.glob(os.path.join(out, "events-*")):
        os.unlink(name)
    replay(scene, out).check_refused("holds no log of events")
    replay(scene, scene.path("nowhere")).check_refused("nowhere/config.json: No such file")
    scene.call("sim", "--replay").check_refused("--replay: which RUN?")


def which(agents):
    return ", ".join(map(str, sorted(agents)))


class Story:
    """Agents of one folder, started by one command again and again, to whom things happen in an
    order that is drawn from a seed: they die, come back, are stopped until the others have gone on
    without them, end together, or are all killed, and go on. Rank 4 joins."""

    RANKS, JOINERS = 4, 1
    KINDS = {"die": 4, "come": 4, "rest": 1, "end": 2, "cut": 2}

    def __init__(self, scene, seed):
        self.scene, self.chance = scene, random.Random(seed)
        algorithms = ("d-psgd", RANDOM, "all-reduce", "gradient-tracking", "sgp")
        changes = {
            **RUN,
            "rounds": FOREVER,
            "algorithm": self.chance.choice(algorithms),
            "optimizer__momentum": 0,
            "record": {"every": 10},
            "checkpoint": {"every": EVERY, "keep": 30},
            "data__on_change": self.chance.choice(("keep", "share")),
            "membership": {"on_loss": "continue", "grace_s": 6, "joiners": self.JOINERS},
        }
        scene.take_time(1500)
        self.path, self.out = scene.experiment(**changes), scene.path("out")
        self.roster = scene.roster(free_ports(self.RANKS + self.JOINERS))
        self.running, self.told = {}, [f"seed {seed}: {changes['algorithm']}"]
        self.starts = [0] * (self.RANKS + self.JOINERS)
        self.start(range(self.RANKS))
        self.settle()

    def start(self, ranks):
        for rank in ranks:
            words = ("--rank", str(rank), "--roster", self.roster, "--out", self.out)
            self.running[rank] = self.scene.start("agent", self.path, *words)
            self.starts[rank] += 1

    def settle(self):
        """All who run are in the last view of all, or in the first, and have saved a round since
        they and it began."""

        def has(rank):
            name = os.path.join(self.out, f"events-{rank}.jsonl")
            lines = events(self.out, rank) if os.path.exists(name) else []
            began = [e for e in lines if e["event"] in ("start", "join", "view")]
            saved = [e for e in lines if e["event"] == "checkpoint"]
            starts = sum(event["event"] == "start" for event in began)
            if starts < self.starts[rank] or not saved or began[-1]["event"] == "join":
                return False
            members = began[-1].get("members", range(self.RANKS))
            return sorted(members) == sorted(self.running) and saved[-1]["time"] > began[-1]["time"]

        for rank in self.running:
            wait_until(lambda rank=rank: has(rank), f"{self.told}: agent {rank} takes part", 6)

    def die(self):
        rank = self.chance.choice(sorted(self.running))
        if len(self.running) > 2:
            self.kill([rank])
            return rank
        return None

    def kill(self, ranks):
        for rank in list(ranks):
            process = self.running.pop(rank).process
            process.kill()
            process.wait()

    def come(self):
        away = sorted(set(range(self.RANKS + self.JOINERS)) - set(self.running))
        if not away:
            return None
        rank = self.chance.choice(away)
        self.start([rank])
        return rank

    def rest(self):
        rank = self.chance.choice(sorted(self.running))
        other = next(iter(set(self.running) - {rank}))
        before = kinds(self.out, other).count("view")
        os.kill(self.running[rank].process.pid, signal.SIGSTOP)
        wait_until(lambda: kinds(self.out, other).count("view") > before, "they go on", 6)
        os.kill(self.running[rank].process.pid, signal.SIGCONT)
        return rank

    def go_on(self):
        """Who was a member of those that began; rank 4 joins."""
        ranks = sorted(self.running)
        self.running = {}
        self.start(ranks)
        return which(ranks)

    def end(self):
        end_saved(list(self.running.values()), 0)
        return self.go_on()

    def cut(self):
        ranks = list(self.running)
        self.kill(ranks)
        self.start(ranks)
        return which(ranks)

    def tell(self, count):
        for _ in range(count):
            kind = self.chance.choices(list(self.KINDS), self.KINDS.values())[0]
            done = getattr(self, kind)()
            if done is not None:
                self.told.append(f"{kind} {done}")
                self.settle()
        end_saved(list(self.running.values()), 0)
        try:
            is_repeated(self.scene, self.out, " views begun)")
        except Failure as failure:
            raise Failure(f"{self.told}: {failure}") from None


def a_run_that_lost_members_and_went_on(scene):
    """Rank 1 dies, and all go on without it from a checkpoint; it joins them, 3 dies, all are
    killed, and go on; it joins, too, and a rank beyond the first."""
    story = Story(scene, 1)
    story.KINDS = {}
    for step in ("die 1", "end", "come 1", "die 3", "cut", "come 3", "come 4", "end", "rest"):
        kind, *rank = step.split()
        if kind == "die":
            story.kill([int(rank[0])])
        elif kind == "come":
            story.start([int(rank[0])])
        else:
            getattr(story, kind)()
        story.told.append(step)
        story.settle()
    story.tell(0)


def tell_stories(starling, seed, count):
    failed = 0
    for number in range(seed, seed + count):
        scene = Scene(os.path.abspath(starling))
        try:
            story = Story(scene, number)
            story.tell(8)
            print(f"ok {story.told}", flush=True)
        except Failure as failure:
            failed += 1
            print(f"not ok seed {number}: {failure}", flush=True)
            if "KEEP" in os.environ:
                shutil.move(scene.folder, f"{os.environ['KEEP']}/{number}")
        finally:
            scene.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[2:3] == ["--stories"]:
        tell_stories(sys.argv[1], int(sys.argv[3]), int(sys.argv[4]))
    run_tests()
