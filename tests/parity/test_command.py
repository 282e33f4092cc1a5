#!/usr/bin/env python3
"""What a user sees of the command: tables and the live view fit the terminal, run folders say what
made them, and a wrong word is answered with the right one."""
import calendar
import os
import re
import shutil
import signal
import subprocess
import time

from _here import ROOT, check, read_json, read_lines, run_tests
from _terminal import ESCAPE, Terminal

LINKS = {"bandwidth_mbit": 100, "latency_ms": 2}


def on_terminal(scene, columns, *arguments):
    """All lines that the command writes on a terminal this wide."""
    code, text = Terminal(
        [scene.starling, *arguments], columns=columns, cwd=scene.folder
    ).read_all()
    check(code == 0, f"exit code {code}: {text[-600:]!r}")
    return [line for line in ESCAPE.sub("", text).replace("\r", "\n").split("\n") if line]


def longest(lines, but="run folder"):
    return max((line for line in lines if but not in line), key=len)


def test_live_view_and_tables_fit_a_terminal(scene):
    path = scene.experiment(rounds=200, record__every=10, topology__nodes=4)
    for columns, command in ((120, "sim"), (50, "run")):
        lines = on_terminal(scene, columns, command, path, "--out", scene.path(command))
        check(any(line.startswith("[###") for line in lines), f"no live view: {lines}")
        check(any("round 200/200" in line for line in lines), f"no last round: {lines[-30:]}")
        check(len(longest(lines)) <= columns, f"beyond {columns}: {longest(lines)!r}")
    lines = on_terminal(scene, 50, "sim", path, "--wide", "--out", scene.path("wide"))
    head = next(line for line in lines if line.startswith("node "))
    columns = "accuracy loss sent received gradient encode wait combine exchange other total"
    for column in columns.split():
        check(column in head.split(), f"--wide without {column}: {head!r}")


def test_output_in_files_takes_80_columns(scene):
    path = scene.experiment(rounds=40, network=LINKS)
    for arguments in (
        ["sim", path, "--out", scene.path("sim")],
        ["topology", "rank", "--nodes", "16"],
        ["topology", "analyse", path],
        ["topology", "analyse", os.path.join(ROOT, "topologies", "base-k-12.json")],
    ):
        ended = scene.call(*arguments)
        check(ended.code == 0, f"{arguments}: {ended.err!r}")
        lines = ended.out.splitlines()
        check(len(longest(lines)) <= 80, f"{arguments}: beyond 80: {longest(lines)!r}")
    wide = scene.call("topology", "rank", "--nodes", "16", "--wide").out
    for column in ("weights", "gap", "degree", "why"):
        check(column in wide.splitlines()[1].split(), f"--wide without {column}: {wide[:300]!r}")


def test_many_nodes_are_sampled_into_one_file(scene):
    nodes = 120
    path = scene.experiment(
        rounds=4,
        topology__nodes=nodes,
        model={"name": "softmax"},
        record__every=2,
        data={"name": "digits", "train_samples": 960, "test_samples": 50, "batch": 4},
    )
    ended = scene.call("sim", path, "--out", scene.path("out"))
    check(ended.code == 0, f"{ended.err!r}")
    check("evaluates the models of 32 of 120 nodes" in ended.out, f"{ended.out[:400]!r}")
    files = [name for name in os.listdir(scene.path("out")) if name.startswith("metrics")]
    check(files == ["metrics.jsonl"], f"{files}")
    metrics = read_lines(scene.path("out/metrics.jsonl"))
    found = [(line["round"], line["node"]) for line in metrics]
    expected = [(r, i) for r in (2, 4) for i in range(nodes)]
    check(found == expected, "not a line for each round and node")
    sampled = [line["node"] for line in metrics if line["test_loss"] is not None]
    check(len(sampled) == 64 and sampled[:32] == sampled[32:], f"sampled {sampled}")
    gaps = {b - a for a, b in zip(sampled[:31], sampled[1:32])}
    check(gaps <= {3, 4}, f"not spread evenly: {sampled[:32]}")
    check(all(line["accuracy"] is None for line in metrics if line["test_loss"] is None), "")
    every = scene.call("sim", path, "--set", "record.evaluate=120", "--out", scene.path("every"))
    check("evaluates" not in every.out, f"{every.out[:400]!r}")
    full = read_lines(scene.path("every/metrics.jsonl"))
    for a, b in zip(metrics, full):
        check(b["test_loss"] is not None, f"not evaluated: {b}")
        check(a["test_loss"] in (None, b["test_loss"]) and a["loss"] == b["loss"], f"{a} {b}")


def test_run_folder_says_what_made_it(scene):
    path = scene.experiment(rounds=20, record__every=10)
    for command in ("sim", "run"):
        before = time.time()
        scene.call(command, path, "--set", "seed=4", "--out", scene.path(command))
        about = read_json(scene.path(f"{command}/run.json"))
        words = about["command"][1:]
        check(words == [command, path, "--set", "seed=4", "--out", scene.path(command)], words)
        check(about["driver"] == command and about["outcome"] == "done", f"{about}")
        check(about["host"] == os.uname().nodename and about["version"], f"{about}")
        started, ended = (
            calendar.timegm(time.strptime(about[key], "%Y-%m-%dT%H:%M:%SZ"))
            for key in ("started", "ended")
        )
        check(int(before) <= started <= ended <= time.time(), f"{about}")
        lines = read_lines(scene.path(f"{command}/metrics-0.jsonl"))
        times = [line["time"] for line in lines]
        check(times == sorted(times) and 0 < times[0] <= time.time() - before, f"{times}")


def test_failed_and_stopped_runs_say_so(scene):
    wild = scene.experiment("wild.json", optimizer__learning_rate=1e6, loss_limit=10, rounds=50)
    check(scene.call("sim", wild, "--out", scene.path("wild")).code == 1, "it did not diverge")
    running = scene.start("sim", scene.experiment(), "--out", scene.path("long"))
    running.wait_for("round 20/")
    about = read_json(scene.path("long/run.json"))
    check(about["outcome"] == "running" and about["ended"] is None, f"{about}")
    running.process.send_signal(signal.SIGTERM)
    running.wait(20)
    for folder, outcome in (("wild", "diverged"), ("long", "stopped")):
        about = read_json(scene.path(f"{folder}/run.json"))
        check(about["outcome"] == outcome and about["ended"], f"{about}")


def make_script(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("#!/bin/bash\n" + text + "\n")
    os.chmod(path, 0o755)


def demo(scene, plugin_builds=True):
    """tools/demo in a tree whose tools only pretend; what it writes."""
    tree, tools = scene.path("tree"), scene.path("bin")
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(os.path.join(tree, "tools"))
    shutil.copy(os.path.join(ROOT, "tools", "demo"), os.path.join(tree, "tools"))
    make_script(os.path.join(tree, "tools", "setup"), ":")
    make_script(os.path.join(tree, "build-demo", "tools", "starling"), 'echo "starling $*"')
    make_script(os.path.join(tools, "meson"), 'mkdir -p "$2"; touch "$2/build.ninja"')
    wait = f"sleep {6.5 if plugin_builds else 0}"  # progress is told every five seconds
    building = f'echo "[3 of 7] Compiling"; {wait}; echo "[7 of 7] Linking"; echo "$@" >>built'
    refusing = "[[ $* != *cuda* ]] || exit 1" if not plugin_builds else ":"
    ninja = f"[[ $* == *cuda* ]] || {{ {building}; }}; {refusing}"
    make_script(os.path.join(tools, "ninja"), ninja)
    make_script(os.path.join(tools, "nvcc"), ":")
    return subprocess.run(
        ["tools/demo", "--out", "here"],
        cwd=tree,
        env={**os.environ, "PATH": tools + ":" + os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_demo_tells_what_it_builds_and_how_to_go_on(scene):
    ended = demo(scene)
    check(ended.returncode == 0 and not ended.stderr, f"{ended}")
    check("demo: building: 3 of 7 steps\n" in ended.stdout, f"no progress: {ended.stdout}")
    check("examples/digits.json --set epochs=8 --out here" in ended.stdout, f"{ended.stdout}")
    commands = re.findall(r"^  (build-demo/tools/starling .*)", ended.stdout, re.M)
    check(len(commands) == 3, f"{ended.stdout}")
    for words in map(str.split, commands):
        called = scene.call(*words[1:2], "--help")
        check(called.code == 0, f"{words}: {called.err}")
        for file in (word for word in words if word.endswith(".json")):
            check(os.path.exists(os.path.join(ROOT, file)), f"{file} is not there")
    ended = demo(scene, plugin_builds=False)
    check(ended.returncode == 0 and "plug-in does not build" in ended.stderr, f"{ended}")


def test_scripts_have_help(scene):
    for script in ("demo", "gpu-check", "gpu-steps", "topologies", "plot"):
        command = [os.path.join(ROOT, "tools", script), "--help"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if "matplotlib is missing" in ended.stderr:
            continue
        named = f"tools/{script}" in ended.stdout or "usage: plot" in ended.stdout
        check(ended.returncode == 0 and named, f"{ended}")


if __name__ == "__main__":
    run_tests()
