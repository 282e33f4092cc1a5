#!/usr/bin/env python3
"""`starling sim RUN --replay` repeats runs of real agents that were cut, killed, asked to end and
gone on with, bit for bit; and what it says of logs of events that are damaged."""
import glob
import json
import os
import platform
import re
import shutil
import signal

from _ports import free_ports
from _scene import check, needs, read_lines, run_tests, wait_until
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
STEP = {"name": "step", "milestones": [0.00001], "factor": 0.3}
FOREVER = 2000000


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


def resume(scene, out, *values):
    """Starts a run that goes on, with these keys changed."""
    return scene.start("run", "--resume", out, *(w for value in values for w in ("--set", value)))


def end_after(scene, running, out, last):
    """It is asked to end once it has saved a round after that; its last round."""
    wait_beyond(scene, running, out, [last])
    os.kill(running.process.pid, signal.SIGTERM)
    running.ends(75, 30)
    return rounds_saved(out)[-1]


def a_run_that_is_ended_changed_and_killed(scene):
    """With a random compressor. It goes on with other rates and other rounds recorded, twice; it is
    killed while it trains, and goes on to its end."""
    scene.take_time()
    path, out = scene.path("experiment.json"), scene.path("out")
    scene.experiment(**{**RUN, "rounds": FOREVER, "algorithm": RANDOM})
    first = end_after(scene, scene.start("run", path, "--out", out), out, 1)
    is_repeated(scene, out, f"rounds 1 to {first} (", "0 final models, 4 checkpoints")
    changed = resume(scene, out, "optimizer.learning_rate=0.02", "record.every=7")
    second = end_after(scene, changed, out, first)
    running = resume(scene, out, f"optimizer.schedule={json.dumps(STEP)}")
    wait_beyond(scene, running, out, [second])
    replay(scene, out).check_refused("a process still writes to it")
    scene.kill_run(running)
    check_cut_short(scene, out)
    rounds = f"rounds={rounds_saved(out)[-1] + 70}"
    resume(scene, out, rounds, "optimizer.schedule=cosine").wait(120).check_well()
    is_repeated(scene, out, f"from round {first}, {second}, ", "(4 starts", "4 final models")
    check({"request", "resume", "end"} <= set(kinds(out, 2)), f"events {kinds(out, 2)}")
    check("end" in kinds(out, 1), f"the line that was torn is no line: {kinds(out, 1)}")
    told = [event for event in events(out, 2) if event["event"] == "settings"][:3]
    found = [(event["round"], event["settings"]["optimizer.learning_rate"]) for event in told]
    check(found == [(1, 0.01), (first + 1, 0.02), (second + 1, 0.02)], found)
    steps = [event["settings"]["optimizer.schedule.milestones"] for event in told]
    check(steps == [[], [], STEP["milestones"]], steps)


def check_cut_short(scene, out):
    """Whoever was killed has written whole lines; of one that another file system tore, the rest is
    repeated."""
    for name in (*(f"metrics-{rank}.jsonl" for rank in range(4)), "consensus.jsonl"):
        with open(os.path.join(out, name)) as file:
            check(all(json.loads(line) for line in file), name)
    with open(os.path.join(out, "events-1.jsonl"), "a") as file:
        file.write('{"event":"down","no')
    ended = replay(scene, out)
    ended.check_well()
    for word in ("same bits", "(3 starts", "0 final models"):
        check(word in ended.out, f"{word!r} is missing in {ended.out!r}")
    check("its last line has no end" in ended.err, ended.err)


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
    needs(platform.machine() == "x86_64", "kernels of x86-64")
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
        (edited(lambda e: e.pop(0)), at + '1: event: must be "start"'),
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


class Story:
    """Agents of one folder, started by one command again and again, to whom things happen. Rank 4
    joins."""

    RANKS, JOINERS = 4, 1

    def __init__(self, scene):
        changes = {
            **RUN,
            "rounds": FOREVER,
            "algorithm": RANDOM,
            "optimizer__momentum": 0,
            "record": {"every": 10},
            "checkpoint": {"every": FOREVER, "keep": 30},
            "membership": {"on_loss": "continue", "grace_s": 6, "joiners": self.JOINERS},
        }
        scene.take_time(1500)
        self.scene = scene
        self.path, self.out = scene.experiment(**changes), scene.path("out")
        self.roster = scene.roster(free_ports(self.RANKS + self.JOINERS))
        self.running, self.starts = {}, [0] * (self.RANKS + self.JOINERS)
        self.start(*range(self.RANKS))
        self.settle()

    def start(self, *ranks):
        for rank in ranks:
            self.running[rank] = self.scene.agent(self.path, rank, self.roster, out="out")
            self.starts[rank] += 1

    def settle(self, saves=False):
        """All who run are in the last view of all, or in the first; saves: and have saved a round
        since it began."""

        def has(rank):
            name = os.path.join(self.out, f"events-{rank}.jsonl")
            lines = events(self.out, rank) if os.path.exists(name) else []
            began = [e for e in lines if e["event"] in ("start", "join", "view")]
            saved = [e for e in lines if e["event"] == "checkpoint"]
            starts = sum(event["event"] == "start" for event in began)
            if starts < self.starts[rank] or began[-1]["event"] == "join":
                return False
            members = began[-1].get("members", range(self.RANKS))
            has_saved = saved and saved[-1]["time"] > began[-1]["time"]
            return sorted(members) == sorted(self.running) and (has_saved or not saves)

        for rank in self.running:
            wait_until(lambda rank=rank: has(rank), f"agent {rank} takes part", 6)

    def lose(self, *ranks):
        for rank in ranks:
            process = self.running.pop(rank).process
            process.kill()
            process.wait()

    def come(self, rank):
        """It joins, and says so where it might have begun."""
        self.start(rank)
        if rank < self.RANKS:
            self.running[rank].wait_for("trains already, and this one joins it")

    def rest(self, rank):
        """It is stopped until the others have gone on without it."""
        other = next(iter(set(self.running) - {rank}))
        before = kinds(self.out, other).count("view")
        os.kill(self.running[rank].process.pid, signal.SIGSTOP)
        wait_until(lambda: kinds(self.out, other).count("view") > before, "they go on", 6)
        os.kill(self.running[rank].process.pid, signal.SIGCONT)

    def end(self):
        """All end after a checkpoint, and go on from it; a rank beyond the first joins again."""
        end_saved(list(self.running.values()), -1)
        self.start(*self.running)
        for rank in set(self.running) & set(range(self.RANKS)):
            self.running[rank].wait_for("goes on from the checkpoint of round")

    def lose_power(self):
        ranks = list(self.running)
        self.lose(*ranks)
        self.start(*ranks)

    def check(self):
        end_saved(list(self.running.values()), -1)
        is_repeated(self.scene, self.out, " views begun)")


def a_run_that_lost_members_and_went_on(scene):
    """Rank 1 dies, and all go on without it from a checkpoint; it joins them, the leader dies, all
    are killed, and go on; it joins, too, and a rank beyond the first, which `starling status`
    shows; one is stopped, and returns. No checkpoint is due: a loss is saved, and a wish."""
    story = Story(scene)
    for act, *ranks in (
        (story.lose, 1),
        (story.end,),
        (story.come, 1),
        (story.lose, 0),
        (story.lose_power,),
        (story.come, 0),
        (story.come, 4),
        (story.end,),
        (story.rest, 1),
    ):
        act(*ranks)
        story.settle(saves=act == story.lose)
    shown = scene.call("status", story.out)
    check(shown.code == 0 and re.search(r"^ +4 +\d+ ", shown.out, re.M), f"{shown.out!r}")
    story.check()


if __name__ == "__main__":
    run_tests()
