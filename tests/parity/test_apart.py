#!/usr/bin/env python3
"""Agents whose nodes go at their own times. What they did is in their logs of acts; done again in
that order, in the simulator, it has the same bits. So the tests of the simulator
(test_asynchronous.py) hold for agents, whatever the order in which their messages came.

usage: test_apart.py STARLING [TEST ...]
"""
import json
import os
import shutil
import signal

from _here import check, read_lines, run_tests, wait_until
from _scene import read_bytes
from _simulate import of

SMALL = {"transport": {"chunk_bytes": 4096}}
HEAVY = {"optimizer": {"learning_rate": 0.05, "momentum": 0.9}}
COMPLETE = {"topology": {"family": "complete", "nodes": 6}, "final_average": False}
ONE_PEER = {"topology": {"family": "one-peer-exponential", "nodes": 4}, "final_average": False}
BIPARTITE = of("ad-psgd", initiators="bipartite", local_steps=3, pairing="cyclic")
LATE = [
    (of("sgp", overlap_rounds=2), {"topology": {"family": "static-exponential", "nodes": 5}}),
    (of("sgp", overlap_rounds=1), ONE_PEER),
]
ALL = [
    (of("ad-psgd"), {}),
    (of("ad-psgd", average="beside"), SMALL),
    (BIPARTITE, HEAVY),
    (of("ad-psgd"), COMPLETE),
    (
        of("ad-psgd", bits=6, theta=1, local_steps=2),
        {"model": {"name": "mlp", "hidden": [64]}, **SMALL},
    ),
    (of("d-psgd", staleness=2), SMALL),
    (of("d-psgd", staleness=1, local_steps=2), {"final_average": False}),
    *LATE,
    (of("ssp", staleness=3), SMALL),
    (of("ssp", staleness=1, staleness_max=8), SMALL),
    (of("ssp", staleness=2, local_steps=2, compressor={"name": "top-k", "fraction": 0.05}), SMALL),
    (of("parameter-server", backup=1, compressor="scaled-sign"), SMALL),
    (
        of("round-robin", compressor={"name": "qsgd", "per": "tensor"}),
        {"model": {"name": "mlp", "hidden": [64]}, **SMALL},
    ),
    (of("ssp", staleness=2, server="sharded"), SMALL),
    (of("ssp", staleness=1, staleness_max=4, server="sharded", compressor="qsgd"), SMALL),
    (of("ssp", staleness="unbounded", server=2), {}),
    (of("ssp", staleness=2, local_steps=3), SMALL),
    (of("parameter-server", backup=2), SMALL),
    (of("round-robin"), {"model": {"name": "mlp", "hidden": [64]}, **SMALL}),
]


def experiment(algorithm, more, rounds=60):
    return {
        "rounds": rounds,
        "seed": 7,
        "algorithm": algorithm,
        "model": "softmax",
        "topology": {"family": "ring", "nodes": 4},
        "data": {"name": "digits", "batch": 8},
        "optimizer": {"learning_rate": 0.1},
        "final_average": True,
        "record": {"every": 10},
        **more,
    }


def run(scene, algorithm, more, out="run"):
    scene.write("e.json", json.dumps(experiment(algorithm, more)))
    ended = scene.call("run", "e.json", "--out", out)
    check(ended.code == 0, f"{algorithm}: {ended.err}")
    return out


def comes_again(scene, algorithm, out):
    ended = scene.call("sim", out, "--replay", "--out", f"{out}-again")
    check(ended.code == 0 and "same bits as" in ended.out, f"{algorithm}: {ended.err}")


def test_acts_come_again(scene):
    for i, (algorithm, more) in enumerate(ALL):
        comes_again(scene, algorithm, run(scene, algorithm, more, f"run{i}"))


def test_a_fixed_delay_needs_no_log(scene):
    """Same bits in any order: as the simulator has them without one."""
    for i, (algorithm, more) in enumerate(LATE):
        out = run(scene, algorithm, more, f"run{i}")
        ended = scene.call("sim", "e.json", "--out", f"sim{i}")
        check(ended.code == 0, ended.err)
        for rank in range(more["topology"]["nodes"]):
            models = [read_bytes(scene.path(f"{f}/model-{rank}.npy")) for f in (out, f"sim{i}")]
            check(models[0] == models[1], f"{algorithm}: model-{rank}.npy differs")


def test_who_comes_back_comes_again(scene):
    """One of each pattern of messages, as a new process, with another's model; apart_world has
    all, who leave, too, and at any moment."""
    more = {
        "topology": {"family": "ring", "nodes": 5},
        "model": {"name": "mlp", "hidden": [32]},
        "transport": {"chunk_bytes": 4096},
        "membership": {"grace_s": 20, "restart": "on-failure"},
    }
    for i, algorithm in enumerate([
        of("ad-psgd"),
        of("sgp", overlap_rounds=1),
        of("d-psgd", staleness=2),
        of("ssp", staleness=2, server="sharded"),
    ]):
        out = f"run{i}"
        path = scene.write("e.json", json.dumps(experiment(algorithm, more, 3000)))
        running = scene.start("run", path, "--out", scene.path(out))
        log = scene.path(f"{out}/acts-3.jsonl")
        wait_until(lambda: os.path.exists(log) and len(read_lines(log)) > 200, f"{algorithm}: acts")
        os.kill(scene.agents()[2], signal.SIGKILL)
        running.ends(0, 60)
        acts = read_lines(scene.path(f"{out}/acts-2.jsonl"))
        check(any(act["act"] == "joins" for act in acts), f"{algorithm}: it has not joined")
        comes_again(scene, algorithm, out)


def newest_whole(folder, nodes):
    """All have it, or a later one; 0: not all have one."""
    has = [0] * nodes
    for name in filter(lambda name: name.endswith(".safetensors"), os.listdir(folder)):
        _, number, _, rank = name.split(".")[0].split("-")
        has[int(rank)] = max(has[int(rank)], int(number))
    return min(has)


def test_runs_go_on_from_their_checkpoints(scene):
    """Killed, then asked to save and to end, then to the end; one of each pattern."""
    more = {"checkpoint": {"every": 20}, "transport": {"chunk_bytes": 4096}}
    for i, algorithm in enumerate([
        of("ad-psgd"),
        of("d-psgd", staleness=2),
        of("sgp", overlap_rounds=1),
        of("ssp", staleness=2, server=1),
        of("ssp", staleness=2, server="sharded"),
        of("parameter-server", backup=1),
    ]):
        out, folder = f"run{i}", scene.path(f"run{i}/checkpoints")
        path = scene.write("e.json", json.dumps(experiment(algorithm, more, 1200)))
        newest = lambda: newest_whole(folder, 4)
        running = scene.start("run", path, "--out", scene.path(out))
        wait_until(lambda: os.path.isdir(folder) and newest() > 0, f"{algorithm}: a checkpoint")
        agents = scene.agents()
        for pid in [running.process.pid, *agents.values()]:
            os.kill(pid, signal.SIGKILL)
        running.wait(60)
        wait_until(lambda: not scene.agents(), "all have ended")
        before = newest()
        running = scene.start("run", "--resume", scene.path(out))
        wait_until(lambda: newest() > before, f"{algorithm}: a checkpoint after that")
        os.kill(running.process.pid, signal.SIGUSR1)
        running.wait_for("saved on request: the checkpoint of round ")
        os.kill(running.process.pid, signal.SIGTERM)
        running.ends(75, 60)
        listed = scene.call("checkpoint", out)
        check(listed.code == 0 and ", in rounds " in listed.out, f"{listed.code} {listed.out}")
        ended = scene.call("run", "--resume", out, "--set", "rounds=3")
        check(ended.code == 2 and "give more with --set rounds" in ended.err, f"{ended.err}")
        ended = scene.call("run", "--resume", out, timeout=120)
        check(ended.code == 0 and "goes on from checkpoint" in ended.out, f"{ended.err}")
        comes_again(scene, algorithm, out)


def test_a_log_with_a_hole_is_found_out(scene):
    out = run(scene, "ad-psgd", {})
    path = scene.path(f"{out}/acts-1.jsonl")
    lines = open(path).read().splitlines(True)
    at = next(i for i, line in enumerate(lines) if '"answer"' in line)
    for wrong, expected in [
        (lines[:at] + lines[at + 1:], "cannot be done: "),
        (lines[:at], ", of node 1, whose log ends before it, is missing"),
        (lines[:at] + ["{}\n"] + lines[at:], f"acts-1.jsonl:{at + 1}: act: is none"),
        (lines[:at] + ["{\n"] + lines[at:], f"acts-1.jsonl:{at + 1}"),
        (lines[:at] + [lines[at].replace('"peer":', '"peer":9')] + lines[at + 1:], "no such node"),
    ]:
        with open(path, "w") as file:
            file.writelines(wrong)
        ended = scene.call("sim", out, "--replay", "--out", "again")
        check(ended.code != 0 and expected in ended.err, f"{expected}: {ended.err}")
        shutil.rmtree(scene.path("again"), ignore_errors=True)


if __name__ == "__main__":
    run_tests()
