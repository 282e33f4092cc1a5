#!/usr/bin/env python3
"""The simulator with 1,000 nodes on a random 4-regular graph: CHOCO-SGD top-1 % on softmax with
101,000 parameters, 20 rounds.

Generates its data (LIBSVM text, sparse, from a fixed seed). To reach: 60 s on two cores, at most 4
vectors of d floats a node (x, x^ and the sum of the neighbours'; one gradient serves all).

usage: simulator_choco.py [STARLING]
"""
import json
import os
import random
import sys
import tempfile

import simulator

NODES, ROUNDS, FEATURES, CLASSES, ACTIVE = 1000, 20, 10099, 10, 20
DIMENSION = (FEATURES + 1) * CLASSES


def write_samples(path, count):
    """Each class has a range of features of its own; the first sample names the last feature."""
    draw = random.Random(1)
    with open(path, "w") as file:
        for i in range(count):
            label = i % CLASSES
            chosen = {
                draw.randrange(label * 900 + 1, label * 900 + 2000) for _ in range(ACTIVE)
            } | ({FEATURES} if i == 0 else set())
            file.write(
                f"{label} " + " ".join(f"{k}:{draw.random():.3f}" for k in sorted(chosen)) + "\n"
            )


def main():
    starling = os.path.abspath(
        sys.argv[1]
        if len(sys.argv) > 1
        else os.path.join(simulator.HERE, "..", "..", "build", "tools", "starling")
    )
    with tempfile.TemporaryDirectory(prefix="starling-simulator-") as folder:
        write_samples(os.path.join(folder, "train.txt"), 2 * NODES)
        write_samples(os.path.join(folder, "test.txt"), 20)
        path = os.path.join(folder, "experiment.json")
        with open(path, "w") as file:
            json.dump(
                {
                    "name": "simulator",
                    "rounds": ROUNDS,
                    "topology": {
                        "nodes": NODES,
                        "family": "random-regular",
                        "degree": 4,
                        "seed": 1,
                    },
                    "algorithm": {
                        "name": "choco-sgd",
                        "compressor": {"name": "top-k", "fraction": 0.01},
                    },
                    "optimizer": {"learning_rate": 0.1},
                    "model": "softmax",
                    "data": {
                        "name": "libsvm",
                        "path": "train.txt",
                        "test_path": "test.txt",
                        "batch": 2,
                    },
                    "record": {"every": ROUNDS},
                },
                file,
            )
        seconds, busy, memory = simulator.run_on_one_core(
            [starling, "sim", path, "--out", os.path.join(folder, "out")]
        )
    print(
        f"{NODES:,} nodes, d = {DIMENSION:,}, {ROUNDS} rounds of CHOCO-SGD top-1 %: {seconds:.1f} s"
        f" ({busy:.1f} s of one core), peak memory {memory / 1e6:.0f} MB ="
        f" {memory / (4 * NODES * DIMENSION):.2f} vectors a node, data included"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
