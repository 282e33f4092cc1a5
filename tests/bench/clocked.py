#!/usr/bin/env python3
"""AD-PSGD of many nodes in the simulator, with gradients of O(d): seconds of a core, and messages
a second.

The whole command is timed: reading the problem, opening the nodes, all events. The table is
Markdown (docs/benchmarks.md).

usage: clocked.py [--build BUILD]
"""
import json
import os
import subprocess
import tempfile

import numpy as np

import _bench

CASES = [(1000, 1000, 1000), (10_000, 100, 100), (1000, 2000, 1)]  # nodes, gradients each, d


def write(folder, nodes, rounds, d):
    draws = np.random.default_rng(1)
    problem = {
        "A": (draws.standard_normal((nodes, 1, d)) / d**0.5).round(4).tolist(),
        "b": draws.standard_normal((nodes, 1)).round(4).tolist(),
        "x0": np.zeros((nodes, d)).tolist(),
    }
    experiment = {
        "rounds": rounds,
        "topology": {"nodes": nodes, "family": "torus", "sides": [nodes // 50, 50]},
        "algorithm": "ad-psgd",
        "optimizer": {"learning_rate": 0.05},
        "model": {"name": "quadratic", "path": "problem.json"},
        "record": {"every": rounds, "models": "none"},
        "network": {"gradient_ms": 10, "jitter": 0.5, "latency_ms": 0.5},
    }
    for name, content in (("problem", problem), ("experiment", experiment)):
        with open(os.path.join(folder, name + ".json"), "w") as file:
            json.dump(content, file)


def main():
    build = _bench.parser_of(__doc__).parse_args().build
    starling = os.path.join(os.path.abspath(build), "tools", "starling")
    heads = "nodes", "gradients each", "d", "s of a core", "million messages a second"
    _bench.print_heads(*heads, texts=0)
    for nodes, rounds, d in CASES:
        with tempfile.TemporaryDirectory() as folder:
            write(folder, nodes, rounds, d)
            command = [starling, "sim", "experiment.json", "--out", "out"]
            child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
            _, _, usage = os.wait4(child.pid, 0)
            seconds = usage.ru_utime + usage.ru_stime
            with open(os.path.join(folder, "out", "summary.json")) as file:
                all_nodes = json.load(file)["per_node"]
            messages = sum(n["messages_sent"] + n["messages_silent"] for n in all_nodes)
            rate = 1e-6 * messages / seconds
            _bench.print_row(nodes, rounds, d, f"{seconds:.1f}", f"{rate:.2f}")


if __name__ == "__main__":
    main()
