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

from _here import check, read_json, run_tests
from _scene import read_bytes, read_lines, wait_until

PAIRS = [
    ("ad-psgd", {}),
    ({"name": "ad-psgd", "average": "beside"}, {"transport": {"chunk_bytes": 4096}}),
    (
        {"name": "ad-psgd", "initiators": "bipartite", "local_steps": 3, "pairing": "cyclic"},
        {"optimizer": {"learning_rate": 0.05, "momentum": 0.9}},
    ),
    ("ad-psgd", {"topology": {"family": "complete", "nodes": 6}, "final_average": False}),
    (
        {"name": "ad-psgd", "bits": 6, "theta": 1, "local_steps": 2},
        {"transport": {"chunk_bytes": 4096}, "model": {"name": "mlp", "hidden": [64]}},
    ),
]
VERSIONS = [
    ({"name": "d-psgd", "staleness": 2}, {"transport": {"chunk_bytes": 4096}}),
    ({"name": "d-psgd", "staleness": 1, "local_steps": 2}, {"final_average": False}),
    (
        {"name": "sgp", "overlap_rounds": 2},
        {"topology": {"family": "static-exponential", "nodes": 5}},
    ),
    (
        {"name": "sgp", "overlap_rounds": 1},
        {"topology": {"family": "one-peer-exponential", "nodes": 4}, "final_average": False},
    ),
]
COMMITS = [
    ({"name": "ssp", "staleness": 3}, {"transport": {"chunk_bytes": 4096}}),
    ({"name": "ssp", "staleness": "unbounded", "server": 2}, {}),
    ({"name": "ssp", "staleness": 2, "local_steps": 3}, {"transport": {"chunk_bytes": 4096}}),
    ({"name": "parameter-server", "backup": 2}, {"transport": {"chunk_bytes": 4096}}),
    (
        {"name": "round-robin"},
        {"model": {"name": "mlp", "hidden": [64]}, "transport": {"chunk_bytes": 4096}},
    ),
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


def repeat(scene, out):
    return scene.call("sim", out, "--replay", "--out", f"{out}-again")


def repeats(scene, listed):
    for i, (algorithm, more) in enumerate(listed):
        ended = repeat(scene, run(scene, algorithm, more, f"run{i}"))
        check(ended.code == 0 and "same bits as" in ended.out, f"{algorithm}: {ended.err}")


def test_averages_of_two_come_again(scene):
    repeats(scene, PAIRS)


def test_versions_come_again(scene):
    repeats(scene, VERSIONS)


def test_commits_come_again(scene):
    repeats(scene, COMMITS)


def test_a_fixed_delay_needs_no_log(scene):
    """Same bits in any order: as the simulator has them without one."""
    for i, (algorithm, more) in enumerate(VERSIONS[2:]):
        out = run(scene, algorithm, more, f"run{i}")
        ended = scene.call("sim", "e.json", "--out", f"sim{i}")
        check(ended.code == 0, ended.err)
        for rank in range(more["topology"]["nodes"]):
            models = [read_bytes(scene.path(f"{f}/model-{rank}.npy")) for f in (out, f"sim{i}")]
            check(models[0] == models[1], f"{algorithm}: model-{rank}.npy differs")


def disturbed(scene, algorithm, at, out, number=signal.SIGKILL, rounds=300):
    """Agents get a signal, each when the one beside it has done so many acts; the others go on.
    Where one had ended before, there are more rounds."""
    more = {
        "topology": {"family": "ring", "nodes": 5},
        "model": {"name": "mlp", "hidden": [32]},
        "transport": {"chunk_bytes": 4096},
        "membership": {"grace_s": 20},
    }
    path = scene.write("e.json", json.dumps(experiment(algorithm, more, rounds)))
    running = scene.start("run", path, "--out", scene.path(out))
    for rank, acts in at:
        log = scene.path(f"{out}/acts-{(rank + 1) % 5}.jsonl")
        has_come = lambda: os.path.exists(log) and len(read_lines(log)) > acts
        wait_until(has_come, f"{algorithm}: {acts} acts")
        process = scene.agents().get(rank)
        if process is None:
            running.wait(60)
            return disturbed(scene, algorithm, at, f"{out}-longer", number, 4 * rounds)
        os.kill(process, number)
    return out, running.wait(60)


def comes_again(scene, algorithm, out):
    ended = repeat(scene, out)
    check(ended.code == 0 and "same bits as" in ended.out, f"{algorithm}: {ended.err}")


def test_those_who_are_left_go_on_and_come_again(scene):
    """What was cut holds on both sides, or on none: else the bits of a replay differ."""
    listed = [
        ("ad-psgd", [(2, 100), (0, 300)]),
        ({"name": "ad-psgd", "average": "beside"}, [(2, 100), (0, 300)]),
        ({"name": "d-psgd", "staleness": 2}, [(2, 100)]),
        ({"name": "sgp", "overlap_rounds": 2}, [(2, 100)]),
        ({"name": "ssp", "staleness": 3}, [(2, 100)]),
        ({"name": "ssp", "staleness": 1}, [(0, 100)]),  # the server
        ({"name": "round-robin"}, [(2, 100)]),
        ({"name": "round-robin"}, [(0, 100)]),
    ]
    for i, (algorithm, at) in enumerate(listed):
        out, ended = disturbed(scene, algorithm, at, f"run{i}")
        lost = f"{len(at)} of the 5 agents"
        check(ended.code == 3 and lost in ended.err, f"{algorithm}: {ended.code} {ended.err}")
        comes_again(scene, algorithm, out)


def test_who_leaves_is_let_go(scene):
    listed = ["ad-psgd", {"name": "d-psgd", "staleness": 2}, {"name": "ssp", "staleness": 3}]
    for i, algorithm in enumerate(listed):
        out, ended = disturbed(scene, algorithm, [(2, 100)], f"run{i}", signal.SIGTERM)
        check(ended.code == 0, f"{algorithm}: {ended.code} {ended.err}")
        last = read_lines(scene.path(f"{out}/events-2.jsonl"))[-1]
        check(last["event"] == "end" and last["outcome"] == "left", f"{algorithm}: {last}")
        comes_again(scene, algorithm, out)


def test_each_does_its_own_rounds(scene):
    out = run(scene, "ad-psgd", {})
    summary = read_json(scene.path(f"{out}/summary.json"))
    for rank in range(4):
        acts = read_lines(scene.path(f"{out}/acts-{rank}.jsonl"))
        own = [a["number"] for a in acts if a["act"] == "gradient"]
        check(own == list(range(1, 61)), f"node {rank}: {own}")
        asked = [a["number"] for a in acts if a["act"] in ("average", "refused")]
        check(asked == list(range(1, 61)), f"node {rank} has asked {asked}")
    check(summary["rounds"] == 60, summary)


def test_a_log_with_a_hole_is_found_out(scene):
    out = run(scene, "ad-psgd", {})
    path = scene.path(f"{out}/acts-1.jsonl")
    lines = open(path).read().splitlines(True)
    at = next(i for i, line in enumerate(lines) if '"answer"' in line)
    for wrong, expected in [
        (lines[:at] + lines[at + 1:], "cannot be done: "),
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
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
