#!/usr/bin/env python3
"""`starling average` against NumPy: final models, checkpoints, and both; with push-sum's weights.
"""
import glob
import json
import os
import sys
import tempfile

import numpy as np

import _simulate

ROUNDS, NODES = 30, 5
EXPERIMENT = {
    "rounds": ROUNDS,
    "topology": {"nodes": NODES, "family": "ring"},
    "optimizer": {"learning_rate": 0.1},
    "model": "softmax",
    "data": {"name": "digits", "train_samples": 200, "test_samples": 20, "partition": "shards"},
    "record": {"every": ROUNDS},
    "checkpoint": {"every": 10},
}
PUSH = {
    "algorithm": {"name": "sgp"},
    "topology": {
        "nodes": NODES,
        "directed": True,
        "edges": [[i, (i + 1) % NODES] for i in range(NODES)] + [[0, 2], [3, 1]],
        "weights": "push-sum",
    },
}


def train(starling, folder, **more):
    return _simulate.run_experiment(starling, folder, {**EXPERIMENT, **more})[0]


def saved_model(path):
    """Of a checkpoint, which is a safetensors file: the model, and its push-sum weight."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        head = json.loads(file.read(length))
        begin, end = head["model"]["data_offsets"]
        file.seek(8 + length + begin)
        model = np.frombuffer(file.read(end - begin), np.float32)
    return model.astype(np.float64), float(head["__metadata__"]["state.push_sum_weight"])


def final_model(run, rank):
    with open(os.path.join(run, f"metrics-{rank}.jsonl")) as file:
        weight = json.loads(file.readlines()[-1])["push_sum_weight"]
    return np.load(os.path.join(run, f"model-{rank}.npy")).astype(np.float64), weight


def newest(run, rank):
    rounds = f"{run}/checkpoints/round-*-rank-{rank}.safetensors"
    return max(glob.glob(rounds), key=lambda path: int(path.split("-")[-3]))


def compare(starling, run, rows, *words):
    ended = _simulate.call(starling, "average", run, *words)
    if ended.returncode != 0:
        return ended.stderr, None
    models, weights = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    mean = (models * weights[:, None]).sum(axis=0) / weights.sum()
    worst = float(abs(np.load(os.path.join(run, "model-average.npy")) - mean).max())
    if f"average of {len(rows)} models: loss" not in ended.stdout:
        return ended.stdout, worst
    return (None if worst < 1e-6 else f"differs by {worst:.1e}"), worst


def check_final(starling, **more):
    with tempfile.TemporaryDirectory(prefix="starling-average-") as folder:
        run = train(starling, folder, **more)
        return compare(starling, run, [final_model(run, rank) for rank in range(NODES)])


def check_saved(starling):
    """Two ranks have no final model."""
    with tempfile.TemporaryDirectory(prefix="starling-average-") as folder:
        run = train(starling, folder, **PUSH)
        for rank in (1, 4):
            os.remove(os.path.join(run, f"model-{rank}.npy"))
        rows = [
            saved_model(newest(run, rank)) if rank in (1, 4) else final_model(run, rank)
            for rank in range(NODES)
        ]
        return compare(starling, run, rows)


def check_refused(starling):
    with tempfile.TemporaryDirectory(prefix="starling-average-") as folder:
        run = train(starling, folder, checkpoint={"every": 0})
        for words, text in (
            ((run, run), "rank 0 has a model in"),
            ((os.path.join(folder, "none"),), "config.json: No such file"),
            ((run, folder), "holds no model-RANK.npy, and no good checkpoint"),
        ):
            ended = _simulate.call(starling, "average", *words)
            if ended.returncode != 2 or text not in ended.stderr:
                return f"{words}: {ended.returncode}: {ended.stderr}", None
    return None, 0.0


def all_checks(starling):
    yield "final models", lambda: check_final(starling)
    yield "final models of push-sum", lambda: check_final(starling, **PUSH)
    yield "some from checkpoints", lambda: check_saved(starling)
    yield "refused", lambda: check_refused(starling)


if __name__ == "__main__":
    sys.exit(_simulate.main(__doc__, all_checks))
