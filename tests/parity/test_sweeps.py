#!/usr/bin/env python3
"""`starling compare` with sweeps: every choice is run once, whatever ends it; the table follows
from the folder alone."""
import glob
import itertools
import json
import math
import os
import random
import shutil
import signal
import time

from _here import check, read_json, read_lines, run_tests
from test_compare import BASE, CHOCO, GOSSIP, NODES, WILD, close, compare, rows_of

RATES, ALPHAS, SEEDS = [0.05, 0.2], [0.1, 10], [1, 2, 3]
MEASURED = ("gradient_s", "encode_s", "combine_s", "wait_s", "predicted_s", "target_s", "pays_")
SWEEP = {"optimizer.learning_rate": RATES, "data.partition.alpha": ALPHAS, "seed": SEEDS}


def write(scene, variants, sweep, file="sweep.json", **changes):
    base = {**BASE, "rounds": 20, **changes, "variants": variants, "sweep": sweep}
    base["data"] = {**base["data"], "partition": {"name": "dirichlet", "alpha": 1}}
    return scene.write(file, json.dumps(base))


def lasting(rows):
    """What no clock has measured."""
    return [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in rows]


def call(scene, *arguments, out="out"):
    return compare(scene, *arguments, out=out)[1]


def test_every_choice_is_a_variant(scene):
    ended = call(scene, write(scene, [GOSSIP, CHOCO], SWEEP), "--jobs", "2", "--wide")
    rows, choices = rows_of(scene), list(itertools.product(["gossip", "choco"], RATES, ALPHAS))
    found = [
        (r["method"], float(r["optimizer.learning_rate"]), float(r["data.partition.alpha"]))
        for r in rows
    ]
    check(found == choices, f"{found}")
    check(all(row["n"] == "3" and row["seeds"] == "1 2 3" for row in rows), f"{rows}")
    for row, (method, rate, alpha), seed in itertools.product(rows, choices, SEEDS):
        name = f"{method},learning_rate={rate:g},alpha={alpha:g}"
        if row["name"] == name:
            config = read_json(scene.path(f"out/{name}/seed-{seed}/config.json"))
            said = config["optimizer"]["learning_rate"], config["data"]["partition"]["alpha"]
            check(said == (rate, alpha) and config["seed"] == seed, f"{name}: {said}")
    check("best of each" in ended.out and "differences seed by seed" in ended.out, ended.out)
    check(ended.out.count("time of a round") == 0, "models of a round without an all-reduce")


def test_rows_of_runs_and_records_say_what_the_folders_say(scene):
    call(scene, write(scene, [GOSSIP, CHOCO], {"seed": [4, 5]}), "--link", "5:20")
    runs, records = rows_of(scene, name="runs"), rows_of(scene, name="records")
    check([(r["name"], r["seed"]) for r in runs] == [
        ("gossip", "4"), ("gossip", "5"), ("choco", "4"), ("choco", "5")
    ], f"{runs}")
    for run in runs:
        folder = scene.path(f"out/{run['name']}/seed-{run['seed']}")
        lines = read_lines(f"{folder}/consensus.jsonl")
        mine = [r for r in records if (r["name"], r["seed"]) == (run["name"], run["seed"])]
        check([int(r["round"]) for r in mine] == [line["round"] for line in lines], f"{mine}")
        for row, line in zip(mine, lines):
            close(row["loss"], line["test_loss"], f"{folder}: loss")
            close(row["mb"], line["bytes_sent"] / 1e6, f"{folder}: MB")
        metrics = [read_lines(f"{folder}/metrics-{i}.jsonl")[-1] for i in range(NODES)]
        close(mine[-1]["mb"], sum(m["bytes_sent"] for m in metrics) / NODES / 1e6, "MB at the end")
        seconds = [float(r["predicted_s_5_mbit_20_ms"]) for r in mine]
        check(seconds == sorted(seconds) and seconds[0] > 0, f"{seconds}")
        close(seconds[-1], float(run["predicted_s_5_mbit_20_ms"]), "seconds at the end")
        close(seconds[0] / seconds[-1], 5 / 20, "rounds take equally long", 0.05)
        if run["rounds_to_target"]:
            at = next(r for r in mine if r["round"] == run["rounds_to_target"])
            close(run["target_s_5_mbit_20_ms"], float(at["predicted_s_5_mbit_20_ms"]), "to target")
    for name in ("compare", "runs", "records"):
        rows, objects = rows_of(scene, name=name), read_lines(scene.path(f"out/{name}.jsonl"))
        check(len(rows) == len(objects) and list(rows[0]) == list(objects[0]), f"{name}: {objects}")
        for row, line in zip(rows, objects):
            for key, value in line.items():
                same = row[key] == "" if value is None else row[key] == str(value) or math.isclose(
                    float(row[key]), value, rel_tol=1e-8
                )
                check(same, f"{name}: {key}: {row[key]!r} and {value!r}")


def test_the_best_is_of_each_method_under_each_condition(scene):
    """Tuned keys are chosen from, conditions are not; a seed that diverges counts against it."""
    sweep = {**SWEEP, "optimizer.learning_rate": [0.05, 0.2, 1e5], "seed": [1, 2]}
    path = write(scene, [GOSSIP, CHOCO], sweep, loss_limit=1000)
    ended = call(scene, path, "--best-by", "accuracy")
    rows = rows_of(scene)
    begin = ended.out.index("best of each")
    told = [line.split() for line in ended.out[begin:].splitlines()[1:5]]
    expected = []
    for method, alpha in itertools.product(["gossip", "choco"], ALPHAS):
        mine = [
            r for r in rows
            if r["method"] == method and float(r["data.partition.alpha"]) == alpha and r["n"] == "2"
        ]
        best = max(mine, key=lambda r: float(r["accuracy"]))
        expected.append([method, best["optimizer.learning_rate"], f"{alpha:g}", "2"])
    found = sorted(row[:4] for row in told)
    check(found == sorted(expected), f"{found}, expected {sorted(expected)}")


def test_differences_are_of_pairs(scene):
    ended = call(scene, write(scene, [GOSSIP, CHOCO], {"seed": SEEDS}), "--against", "choco")
    runs = {(r["name"], r["seed"]): float(r["loss"]) for r in rows_of(scene, name="runs")}
    apart = [runs["gossip", str(s)] - runs["choco", str(s)] for s in SEEDS]
    mean = sum(apart) / 3
    deviation = math.sqrt(sum((x - mean) ** 2 for x in apart) / 2)
    decimals = max(0, 1 - math.floor(math.log10(deviation)))
    told = f"{mean:+.{decimals}f} ± {deviation:.{decimals}f}"
    check(told in ended.out[ended.out.index("minus") :], f"{told} is not in {ended.out}")


def test_few_seeds_that_reach_the_target_are_told(scene):
    path = write(scene, [GOSSIP, CHOCO], {"seed": SEEDS})
    call(scene, path)
    folders = [scene.path(f"out/gossip/seed-{seed}/summary.json") for seed in SEEDS]
    losses = sorted(read_json(folder)["mean_model"]["loss"] for folder in folders)
    ended = scene.call("compare", scene.path("out"), "--target-loss", str(losses[0] * (1 + 1e-9)))
    row = next(r for r in rows_of(scene) if r["name"] == "gossip")
    check(row["reached"] == "1" and row["n"] == "3" and row["rounds_to_target"] == "20", f"{row}")
    check("20 (1 of 3)" in ended.out, ended.out)
    ended = scene.call("compare", scene.path("out"), "--target-loss", str(losses[0] / 2))
    told = " ".join(ended.out.split())
    check(f"no run has reached it; the least loss at an end is {losses[0]:.6g}" in told, ended.out)
    ended = scene.call("compare", scene.path("out"), "--over", "median")
    check("[" in ended.out and "median [quartiles]" in ended.out, ended.out)


def test_killed_anywhere_the_same_command_goes_on(scene):
    """Runs that were over are not run again, and the table is that of a run without kills."""
    moments = random.Random(11)
    wild = {**WILD, "sweep": {"optimizer.learning_rate": [1e5]}}
    sweep = {**SWEEP, "seed": [1, 2]}
    path = write(scene, [GOSSIP, CHOCO, wild], sweep, loss_limit=1000, rounds=60)
    call(scene, path, out="whole")
    expected = lasting(rows_of(scene, "whole"))
    for number in range(8):
        out = scene.path("killed")
        command = scene.start("compare", path, "--jobs", "2", "--out", out)
        while command.process.poll() is None and command.said.count("/20 ") < number % 5:
            time.sleep(0.01)  # so many have begun, beside those that were there already
        time.sleep(moments.uniform(0, 0.1))
        command.process.send_signal((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[number % 3])
        over = {
            os.path.dirname(p): os.stat(p).st_mtime_ns
            for p in glob.glob(f"{out}/**/summary.json", recursive=True)
            if read_json(os.path.join(os.path.dirname(p), "run.json"))["outcome"] == "done"
        }
        command.process.wait()
        command.wait(20)
    check(over, "no run came to its end in all of this time")
    ended = call(scene, path, "--jobs", "2", out="killed")
    for folder, when in over.items():
        check(os.stat(f"{folder}/summary.json").st_mtime_ns == when, f"{folder} was run again")
    found = lasting(rows_of(scene, "killed"))
    different = [
        f"{a['name']}: {k}: {a[k]!r}, {b[k]!r}"
        for a, b in zip(expected, found) for k in a if a[k] != b[k]
    ]
    check(found == expected, f"expected and found: {different}")
    names = [sorted(os.listdir(scene.path(out))) for out in ("whole", "killed")]
    check(names[0] == names[1], f"{names}")
    check("runs are there already" in ended.out, ended.out)


def test_a_folder_tells_what_is_there(scene):
    path = write(scene, [GOSSIP, CHOCO], {"seed": [1, 2]})
    call(scene, path)
    before = rows_of(scene)
    again = scene.call("compare", scene.path("out"))
    check(again.code == 0 and rows_of(scene) == before, f"{again.err} {rows_of(scene)}")
    shutil.rmtree(scene.path("out/choco/seed-2"))
    partly = scene.call("compare", scene.path("out"))
    row = next(r for r in rows_of(scene) if r["name"] == "choco")
    check("3 of 4 runs done, 1 not begun" in partly.out and row["n"] == "1", partly.out)
    ended = call(scene, path)
    check("3 of 4 runs are there already" in ended.out, ended.out)
    check(lasting(rows_of(scene)) == lasting(before), "another table")
    more = write(scene, [GOSSIP, CHOCO], {"seed": [1, 2, 3]})
    ended = call(scene, more)
    check("4 of 6 runs are there already" in ended.out, ended.out)


def test_progress_is_watched(scene):
    """Of agents that last until they are stopped, and of runs that are over."""
    out = scene.path("out")
    path = write(scene, [GOSSIP], {"seed": [1, 2]}, rounds=2000000)
    running = scene.start("compare", path, "--agents", "--out", out)
    running.wait_for("1/2 gossip")
    while not os.path.exists(f"{out}/gossip/seed-1/metrics-7.jsonl"):
        time.sleep(0.02)
    second = scene.call("compare", path, "--out", out)
    second.check_refused("another `starling compare` is at work")
    watching = scene.start("compare", out, "--watch")
    watching.wait_for("gossip, seed 1: round")
    running.interrupt().wait(60).check_refused("stopped on request", code=130)
    scene.wait_gone(2)
    check(not os.path.exists(f"{out}/gossip/seed-2"), "the next one was started")
    watching.wait(60)
    check("0 of 2 runs done, 1 stopped" in watching.said, watching.said)
    short = write(scene, [GOSSIP], {"seed": [1, 2]}, file="short.json")
    call(scene, short, out="short")
    watched = scene.call("compare", scene.path("short"), "--watch")
    check("2 of 2 runs done" in watched.out, watched.out)


def test_check_and_sim_know_sweeps(scene):
    fractions = {"algorithm.compressor.fraction": [0.01, 0.1]}
    path = write(scene, [GOSSIP, {**CHOCO, "sweep": fractions}], SWEEP)
    ended = scene.call("check", path)
    check(ended.code == 0 and "12 variants" in ended.out, f"{ended.err} {ended.out}")
    lines = [line.split()[0] for line in ended.out.splitlines() if line.endswith("goes on")]
    check(lines == ["gossip", "choco", "choco"], f"one line for equal ones: {ended.out}")
    alone = scene.write("alone.json", json.dumps({**BASE, "sweep": SWEEP}))
    for command in ("sim", "run"):
        scene.call(command, alone).check_refused("sweep", "starling compare")


def test_tables_for_papers(scene):
    call(scene, write(scene, [GOSSIP, CHOCO], {"optimizer.learning_rate": RATES, "seed": [1, 2]}))
    with open(scene.path("out/compare.md")) as file:
        lines = [line for line in file.read().splitlines() if line.startswith("|")]
    check(len({line.replace("\\|", "").count("|") for line in lines[:6]}) == 1, f"{lines}")
    check("learning\\_rate" in lines[0] and " ± " in lines[2], f"{lines[:3]}")
    with open(scene.path("out/compare.tex")) as file:
        text = file.read()
    rows = [line for line in text.splitlines() if line.endswith("\\\\")]
    check(len({row.count("&") for row in rows[:5]}) == 1 and "$\\pm$" in rows[1], f"{rows}")
    check("±" not in text and "accuracy \\%" in text, text)


def test_wrong_sweeps_are_refused(scene):
    compressor = {"algorithm.compressor.fraction": [0.01, 0.02]}
    for variants, sweep, words in (
        ([GOSSIP], [], "sweep: must be an object"),
        ([GOSSIP], {}, "sweep: must be an object"),
        ([GOSSIP], {"rounds": 3}, '"rounds": must be a list'),
        ([GOSSIP], {"rounds": []}, '"rounds": must be a list'),
        ([GOSSIP], {"rounds": [3, 3]}, '"rounds": must be a list of different values'),
        ([GOSSIP], {"round": [3, 4]}, "round"),
        ([GOSSIP], {"seed": [1, 1]}, '"seed": must be a list'),
        ([GOSSIP], {"seed": [1.5]}, '"seed": must be a list'),
        ([GOSSIP], {"optimizer.learning_rate": [0.1, "high"]}, "optimizer.learning_rate"),
        ([{**GOSSIP, "sweep": {"seed": [1]}}], {"rounds": [3, 4]}, "all variants run with the"),
        ([{**GOSSIP, "run": 3}], {"rounds": [3, 4]}, '"run" must be the folder'),
        ([{"name": "x", "run": "nowhere"}], {"rounds": [3, 4]}, "no folder of a run"),
        ([GOSSIP], {"network.gradient_ms": [1, 2], "algorithm.period": [2, 3]}, "period"),
        ([{"name": "g", "set": {"algorithm": "d-psgd"}}], compressor, "nothing reads the key"),
        ([GOSSIP], {f"k{i}": [1, 2] for i in range(13)}, "more than 12 keys"),
        ([GOSSIP], {"optimizer.learning_rate": [i / 1e4 for i in range(1, 200)],
                    "optimizer.momentum": [i / 1e3 for i in range(100)]}, "more than 10000"),
    ):
        ended = scene.call("compare", write(scene, variants, sweep), "--out", scene.path("out"))
        ended.check_refused("sweep.json", words)
    path = write(scene, [GOSSIP], {"seed": [1]})
    for arguments, words in (
        (("--watch",), "no folder of `compare`"),
        (("--jobs", "0"), "--jobs 0"),
        (("--over", "all"), "--over all"),
        (("--best-by", "speed"), "--best-by speed"),
        (("--against", "nobody"), "--against nobody"),
    ):
        scene.call("compare", path, *arguments, "--out", scene.path("out")).check_refused(words)
    check(not os.path.exists(scene.path("out")), "something was started")


if __name__ == "__main__":
    run_tests()
