#!/usr/bin/env python3
"""What membership.on_loss "continue" costs a run that loses nobody, beside "stop".

Agents on a ring exchange vectors (gossip_agents.c), and a run of the built-in learner trains. Both
settings take turns, so that whatever else the machine does meets them alike. The table has, of the
turns of "stop", the median of a round, and the ratios of "continue" to it: of medians, of the
fastest rounds, and of processor time. It is Markdown (docs/reliability.md).

usage: healthy.py [--build BUILD] [--turns N]     meson compile -C BUILD starling gossip_agents
"""
import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
STOP, CONTINUE = "stop", "continue"
CASES = [(4, 1_000_000, 400), (8, 1_000_000, 200), (4, 25_500_000, 20), (8, 25_500_000, 10)]
TRAINING = {
    "name": "healthy",
    "rounds": 300,
    "topology": {"nodes": 4, "family": "ring"},
    "model": {"name": "mlp", "hidden": [256]},
    "data": {"name": "digits"},
    "optimizer": {"learning_rate": 0.05, "momentum": 0.9},
}


def timed(*command):
    """What it writes, and the processor's time, of all its processes, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, spent


def gossip(build, nodes, dimension, rounds, setting):
    """The median and the fastest round, in ms, and the processor's time of a run."""
    program = os.path.join(build, "tests", "bench", "gossip_agents")
    sizes = (str(nodes), str(dimension), str(rounds))
    out, spent = timed(program, *sizes, f"membership.on_loss={setting}")
    found = json.loads(out)
    return found["median_ms"], found["min_ms"], spent


def training(build, folder, setting):
    """The same of a run that trains: its rounds last what the whole took, by round."""
    starling = os.path.join(build, "tools", "starling")
    path, out = (os.path.join(folder, name) for name in ("experiment.json", "out"))
    with open(path, "w") as file:
        json.dump({**TRAINING, "membership": {"on_loss": setting}}, file)
    _, spent = timed(starling, "run", path, "--out", out)
    with open(os.path.join(out, "summary.json")) as file:
        round_ms = 1e3 * json.load(file)["seconds"] / TRAINING["rounds"]
    shutil.rmtree(out)
    return round_ms, round_ms, spent


def line(name, turns, measure):
    found = {STOP: [], CONTINUE: []}
    for _ in range(turns):
        for setting, results in found.items():
            results.append(measure(setting))
    stops, goes_on = (list(zip(*found[setting])) for setting in (STOP, CONTINUE))
    median = statistics.median(stops[0])
    ratios = (
        statistics.median(goes_on[0]) / median,
        min(goes_on[1]) / min(stops[1]),
        statistics.median(goes_on[2]) / statistics.median(stops[2]),
    )
    cells = [name, f"{median:.3g} ms", *(f"{ratio:.2f}" for ratio in ratios)]
    print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    print("| agents, numbers | a round, stop | median | fastest | processor |")
    print("|:--|--:|--:|--:|--:|", flush=True)
    for nodes, dimension, rounds in CASES:
        line(
            f"{nodes}, {dimension / 1e6:g} M",
            options.turns,
            lambda setting: gossip(build, nodes, dimension, rounds, setting),
        )
    with tempfile.TemporaryDirectory(prefix="starling-healthy-") as folder:
        line(
            f"{TRAINING['topology']['nodes']}, training",
            options.turns,
            lambda setting: training(build, folder, setting),
        )


if __name__ == "__main__":
    main()
