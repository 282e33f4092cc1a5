#!/usr/bin/env python3
"""MNIST: eight agents on a ring beside one process that trains with the same total batch. MLP
784-256-10, 3 epochs.

MNIST's four IDX files (plain or .gz) are looked for in $STARLING_DATA/mnist, by default
../shared/data/mnist beside the project.

usage: mnist.py [STARLING] [--epochs E] [--rate G]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = os.path.join(
    os.environ.get("STARLING_DATA", os.path.join(ROOT, "..", "shared", "data")), "mnist"
)
AGENTS, BATCH = 8, 32
ACCURACY, DIFFERENCE = 0.97, 0.003  # to reach


def train(starling, folder, name, topology, batch, options, command):
    path, out = os.path.join(folder, name + ".json"), os.path.join(folder, name)
    with open(path, "w") as file:
        json.dump(
            {
                "name": name,
                "epochs": options.epochs,
                "topology": topology,
                "algorithm": {"name": "d-psgd"},
                "optimizer": {"learning_rate": options.rate, "momentum": 0.9},
                "model": {"name": "mlp", "hidden": [256]},
                "data": {"name": "mnist", "path": os.path.abspath(DATA), "batch": batch},
                "record": {"every": 1000000},
            },
            file,
        )
    ended = subprocess.run(
        [starling, command, path, "--out", out],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=1800,
    )
    if ended.returncode != 0:
        raise SystemExit(f"starling {command} {path}: {ended.stderr.strip()}")
    with open(os.path.join(out, "summary.json")) as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "starling", nargs="?", default=os.path.join(ROOT, "build", "tools", "starling")
    )
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--rate", type=float, default=0.1)
    options = parser.parse_args()
    if not os.path.isdir(DATA):
        print(
            (
                f"mnist.py: {os.path.abspath(DATA)}: no such folder; set STARLING_DATA to the"
                " folder that holds mnist/"
            ),
            file=sys.stderr,
        )
        return 1
    starling = os.path.abspath(options.starling)
    with tempfile.TemporaryDirectory(prefix="starling-mnist-") as folder:
        ring = {"nodes": AGENTS, "family": "ring"}
        agents = train(starling, folder, "agents", ring, BATCH, options, "run")
        alone = train(
            starling,
            folder,
            "alone",
            {"nodes": 1, "family": "complete"},
            AGENTS * BATCH,
            options,
            "sim",
        )
    nodes = [node["accuracy"] for node in agents["per_node"]]
    mean, single = agents["mean_model"]["accuracy"], alone["per_node"][0]["accuracy"]
    print(
        f"MNIST test accuracy, MLP 784-256-10, {options.epochs:g} epochs, learning rate"
        f" {options.rate:g}, momentum 0.9"
    )
    print(
        f"8 agents on a ring, batch {BATCH} each   averaged model {mean:.2%}, nodes"
        f" {min(nodes):.2%} to {max(nodes):.2%}, consensus distance"
        f" {agents['consensus_distance']:.3g}, {agents['rounds']} rounds in"
        f" {agents['seconds']:.1f} s"
    )
    print(
        f"one process, batch {AGENTS * BATCH}             {single:.2%}, {alone['rounds']} rounds in"
        f" {alone['seconds']:.1f} s"
    )
    print(
        f"difference {100 * (mean - single):+.2f} points (to reach: averaged model above"
        f" {ACCURACY:.0%}, not more than {100 * DIFFERENCE:.1f} points below one process)"
    )
    return 0 if mean > ACCURACY and mean >= single - DIFFERENCE else 1


if __name__ == "__main__":
    sys.exit(main())
