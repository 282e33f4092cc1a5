#!/usr/bin/env python3
"""The simulator with 10,000 nodes on a random 4-regular graph: D-PSGD on softmax with 1,000
parameters, 50 rounds, one core.

Generates its data (LIBSVM text: 99 features, 10 classes, from a fixed seed), pins the simulator to
one core, and prints wall time, where it went and the memory.

usage: simulator.py [STARLING] [--nodes N ...] [--rounds R]
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FEATURES, CLASSES = 99, 10
DIMENSION = (FEATURES + 1) * CLASSES
BATCH, TEST_SAMPLES = 2, 20
TARGET_S = 10


def write_samples(path, count, centres, seed):
    """Classes are clouds around different centres. A few values serve all samples: the text is made
    fast."""
    draw = random.Random(seed)
    with open(path, "w") as file:
        for _ in range(count):
            label = draw.randrange(CLASSES)
            values = (
                f"{j + 1}:{centre + draw.random():.3f}" for j, centre in enumerate(centres[label])
            )
            file.write(f"{label} {' '.join(values)}\n")


def experiment(folder, nodes, rounds):
    draw = random.Random(7)
    centres = [[draw.random() for _ in range(FEATURES)] for _ in range(CLASSES)]
    write_samples(os.path.join(folder, "train.txt"), BATCH * nodes, centres, 8)
    write_samples(os.path.join(folder, "test.txt"), TEST_SAMPLES, centres, 9)
    path = os.path.join(folder, "experiment.json")
    with open(path, "w") as file:
        json.dump(
            {
                "name": "simulator",
                "rounds": rounds,
                "topology": {"nodes": nodes, "family": "random-regular", "degree": 4, "seed": 1},
                "algorithm": {"name": "d-psgd"},
                "optimizer": {"learning_rate": 0.01},
                "model": {"name": "softmax"},
                "data": {
                    "name": "libsvm",
                    "path": "train.txt",
                    "test_path": "test.txt",
                    "batch": BATCH,
                },
                "record": {"every": rounds},
            },
            file,
        )
    return path


def run_on_one_core(command):
    """(seconds, seconds on the core, peak resident bytes) of this child alone"""
    began = time.monotonic()
    pid = os.posix_spawn(
        command[0],
        command,
        {**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measure(starling, nodes, rounds, folder):
    out = os.path.join(folder, "out")
    seconds, busy, memory = run_on_one_core(
        [starling, "sim", experiment(folder, nodes, rounds), "--out", out]
    )
    with open(os.path.join(out, "summary.json")) as file:
        summary = json.load(file)
    assert summary["rounds"] == rounds and summary["nodes"] == nodes
    spent = {
        part: sum(node["seconds"][part] for node in summary["per_node"])
        for part in ("gradient", "encode", "combine")
    }
    return {"wall": seconds, "busy": busy, "rounds": summary["seconds"], "memory": memory, **spent}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "starling", nargs="?", default=os.path.join(HERE, "..", "..", "build", "tools", "starling")
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[2500, 5000, 10000])
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(
        f"d = {DIMENSION}, random 4-regular graph, {options.rounds} rounds, one core; target at"
        f" 10,000 nodes: {TARGET_S} s\n"
    )
    print(
        "| nodes | whole command s | of it on the core s | rounds s | gradient s | encode s |"
        " combine s | peak memory MB | in units of n d floats |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    # All run folders stay until the end: ext4 is slow to make files where many have just been
    # deleted.
    with tempfile.TemporaryDirectory(prefix="starling-simulator-") as folder:
        for nodes in options.nodes:
            own = os.path.join(folder, str(nodes))
            os.mkdir(own)
            r = measure(os.path.abspath(options.starling), nodes, options.rounds, own)
            cells = [
                f"{nodes:,}",
                *(
                    f"{r[key]:.2f}"
                    for key in ("wall", "busy", "rounds", "gradient", "encode", "combine")
                ),
                f"{r['memory'] / 1e6:.0f}",
                f"{r['memory'] / (4 * nodes * DIMENSION):.2f}",
            ]
            print("| " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
