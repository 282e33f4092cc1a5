#!/usr/bin/env python3
"""The exact average, against NumPy: that of `starling average`, of final models, of checkpoints,
and of both; and that of final_average, which all nodes have after the last round: the mean of what
they would have had without it, with the same bits. The run says how far apart they were."""
import functools
import glob
import os
import sys
import tempfile

import numpy as np

from _here import read_lines
from _simulate import Result, call, main, of, run_experiment, write
from _tensors import read

ROUNDS, NODES = 24, 6
RING = {"nodes": NODES, "family": "ring"}
PUSH = {
    "nodes": NODES,
    "directed": True,
    "edges": [[i, (i + 1) % NODES] for i in range(NODES)] + [[0, 3], [4, 1]],
    "weights": "push-sum",
}
TOP = of("top-k", fraction=0.2)
CASES = {
    "gossip": (of("d-psgd", local_steps=5), RING),
    "push-sum": (of("sgp"), PUSH),
    "between two averages": (of("local-sgd", period=10), RING),
    "through a server": (of("easgd", period=5), RING),
    "compressed": (of("choco-sgd", compressor=TOP), RING),
    "everybody equal": (of("all-reduce"), RING),
    "of those who are left": (of("d-psgd"), RING, [{"round": 9, "kill": [0, 3]}]),
    "push-sum of those who are left": (
        of("sgp"),
        PUSH,
        [{"round": 5, "kill": [1]}, {"round": 9, "leave": [4]}, {"round": 15, "join": [1]}],
    ),
}


def experiment(settings, topology, **more):
    return {
        "rounds": ROUNDS,
        "topology": topology,
        "algorithm": settings,
        "optimizer": {"learning_rate": 0.1},
        "model": "softmax",
        "data": {"name": "digits", "train_samples": 240, "test_samples": 20, "partition": "shards"},
        "record": {"every": ROUNDS, "parameters_at": [ROUNDS]},
        **more,
    }


def mean_of(models, weights):
    return (np.array(models, float) * np.array(weights)[:, None]).sum(axis=0) / np.sum(weights)


# ---- the key ----


def check_mean(starling, settings, topology, faults=()):
    more, runs = {"faults": faults} if faults else {}, []
    with tempfile.TemporaryDirectory(prefix="starling-average-") as folder:
        for how in ({}, {"final_average": True}):
            write(folder, "experiment.json", experiment(settings, topology, **more, **how))
            out = os.path.join(folder, f"out{len(runs)}")
            ended = call(starling, "sim", os.path.join(folder, "experiment.json"), "--out", out)
            if ended.returncode != 0:
                return ended.stderr, None
            runs.append(Result(out, ended.stdout))
    before, after = runs
    models = np.float32(before.models[ROUNDS])
    mean = mean_of(models, before.weights[ROUNDS])
    found = np.float32(after.models[ROUNDS])
    worst = float(abs(found[0] - mean).max())
    if worst > 1e-6:
        return f"the mean differs by {worst:.1e}", worst
    if not (found == found[0]).all():
        return "the nodes have different bits", worst
    distance = np.sqrt(((models - mean) ** 2).sum(axis=1).mean())
    told = after.summary["final_average"]["distance_before"]
    if abs(told - distance) > 1e-5 * max(1, distance):
        return f"{told} is not the distance, {distance}", worst
    if after.summary["consensus_distance"] != 0 or "final_average" in before.summary:
        return f"the summary says {after.summary['consensus_distance']}", worst
    if f"final average       of models at consensus distance {told:.6g}" not in after.said:
        return f"the table does not say it: {after.said}", worst
    return None, worst


# ---- the command ----


def saved_model(run, rank):
    """Of its newest checkpoint, which is a safetensors file: the model, and its push-sum weight."""
    rounds = f"{run}/checkpoints/round-*-rank-{rank}.safetensors"
    newest = max(glob.glob(rounds), key=lambda path: int(path.split("-")[-3]))
    tensors, metadata, _ = read(newest)
    return tensors["model"].ravel(), float(metadata["state.push_sum_weight"])


def final_model(run, rank):
    weight = read_lines(run, f"metrics-{rank}.jsonl")[-1]["push_sum_weight"]
    return np.load(os.path.join(run, f"model-{rank}.npy")), weight


def check_command(starling, settings, topology, lost=()):
    """lost: ranks that have no final model."""
    with tempfile.TemporaryDirectory(prefix="starling-average-") as folder:
        saved = experiment(settings, topology, checkpoint={"every": 10})
        run, _ = run_experiment(starling, folder, saved)
        for rank in lost:
            os.remove(os.path.join(run, f"model-{rank}.npy"))
        rows = [(saved_model if i in lost else final_model)(run, i) for i in range(NODES)]
        ended = call(starling, "average", run)
        if f"average of {NODES} models: loss" not in ended.stdout:
            return ended.stderr + ended.stdout, None
        twice = call(starling, "average", run, run)
        if twice.returncode != 2 or "rank 0 has a model in" not in twice.stderr:
            return f"twice the same: {twice.returncode}: {twice.stderr}", None
        worst = abs(np.load(os.path.join(run, "model-average.npy")) - mean_of(*zip(*rows))).max()
        return (None if worst < 1e-6 else f"differs by {worst:.1e}"), worst


def all_checks(starling):
    for name, case in CASES.items():
        yield f"at the end, {name}", functools.partial(check_mean, starling, *case)
    for name, *case in (
        ("final models", of("d-psgd"), RING),
        ("final models of push-sum", of("sgp"), PUSH),
        ("some from checkpoints", of("sgp"), PUSH, (1, 4)),
    ):
        yield name, functools.partial(check_command, starling, *case)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
