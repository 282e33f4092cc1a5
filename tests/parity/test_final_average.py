#!/usr/bin/env python3
"""final_average: after the last round all nodes have the mean of what they would have had without
it, with the same bits, and the run says how far apart they were."""
import json
import os
import sys
import tempfile

import numpy as np

import _simulate
from _simulate import main, read_lines, write

ROUNDS, NODES = 24, 6
RING = {"nodes": NODES, "family": "ring"}
PUSH = {
    "nodes": NODES,
    "directed": True,
    "edges": [[i, (i + 1) % NODES] for i in range(NODES)] + [[0, 3], [4, 1]],
    "weights": "push-sum",
}
CASES = {
    "gossip": ({"name": "d-psgd", "local_steps": 5}, RING),
    "push-sum": ({"name": "sgp"}, PUSH),
    "between two averages": ({"name": "local-sgd", "period": 10}, RING),
    "through a server": ({"name": "easgd", "period": 5}, RING),
    "compressed": ({"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 0.2}}, RING),
    "everybody equal": ({"name": "all-reduce"}, RING),
    "of those who are left": ({"name": "d-psgd"}, RING, [{"round": 9, "kill": [0, 3]}]),
    "push-sum of those who are left": (
        {"name": "sgp"},
        PUSH,
        [{"round": 5, "kill": [1]}, {"round": 9, "leave": [4]}, {"round": 15, "join": [1]}],
    ),
}


def experiment(settings, topology, **more):
    return {
        "name": "final-average",
        "rounds": ROUNDS,
        "topology": topology,
        "algorithm": settings,
        "optimizer": {"learning_rate": 0.1},
        "model": "softmax",
        "data": {"name": "digits", "train_samples": 240, "test_samples": 20, "partition": "shards"},
        "record": {"every": ROUNDS, "parameters_at": [ROUNDS]},
        **more,
    }


def call(starling, command, content, *words):
    """What it said, and the run folder, as (models, push-sum weights, summary); None: it failed."""
    with tempfile.TemporaryDirectory(prefix="starling-average-") as folder:
        write(folder, "experiment.json", content)
        out = ["--out", os.path.join(folder, "out")] if command != "check" else []
        path = os.path.join(folder, "experiment.json")
        ended = _simulate.call(starling, command, path, *out, *words)
        said = ended.stdout + ended.stderr
        if ended.returncode != 0 or not out:
            return said, None
        rows = read_lines(out[1], "parameters.jsonl")
        with open(os.path.join(out[1], "summary.json")) as file:
            summary = json.load(file)
    models = np.array([row["parameters"] for row in rows], np.float32)
    return said, (models, np.array([row["push_sum_weight"] for row in rows]), summary)


def check_mean(starling, settings, topology, faults=()):
    more = {"faults": faults} if faults else {}
    said, before = call(starling, "sim", experiment(settings, topology, **more))
    if before is None:
        return said, None
    said, after = call(starling, "sim", experiment(settings, topology, final_average=True, **more))
    if after is None:
        return said, None
    models, weights, summary = before
    mean = (models.astype(np.float64) * weights[:, None]).sum(axis=0) / weights.sum()
    worst = float(abs(after[0][0] - mean).max())
    if worst > 1e-6:
        return f"the mean differs by {worst:.1e}", worst
    if not (after[0] == after[0][0]).all():
        return "the nodes have different bits", worst
    distance = np.sqrt(((models - mean) ** 2).sum(axis=1).mean())
    said_distance = after[2]["final_average"]["distance_before"]
    if abs(said_distance - distance) > 1e-5 * max(1, distance):
        return f"{said_distance} is not the distance, {distance}", worst
    if after[2]["consensus_distance"] != 0 or "final_average" in summary:
        return f"the summary says {after[2]['consensus_distance']}", worst
    if f"final average       of models at consensus distance {said_distance:.6g}" not in said:
        return f"the table does not say it: {said}", worst
    return None, worst


def check_said(starling, expected, content, *words):
    said, _ = call(starling, "check", content, *words)
    found = " ".join(expected.split()) in " ".join(said.split())
    return (None if found else f"no {expected!r} in {said!r}"), 0


def words():
    settings, topology = CASES["gossip"]
    whole = experiment({"name": "d-psgd"}, topology, final_average=True)
    yield "check says it", "final average       of all models", whole
    yield "a number is refused", "final_average: 1 is not", {**whole, "final_average": 1}
    pga = experiment({"name": "gossip-pga", "average_period": 25}, topology)
    text = "algorithm.average_period: 25, but the run has 24 exchanges"
    yield "a period beyond the run", text, pga
    switch = experiment({"name": "local-sgd", "switch_round": 24}, topology)
    text = "algorithm.switch_round: 24, and the run has 24 rounds: all are all-reduce's"
    yield "a switch beyond the run", text, switch
    local = experiment({**pga["algorithm"], "average_period": 5, "local_steps": 5}, topology)
    adam = {"name": "one-bit-adam", "warmup_ratio": 0.96, "compressor": {"name": "scaled-sign"}}
    text = "warmup_ratio: can end the warm-up after round 1040 at the earliest, and rounds are 24"
    yield "a warm-up that never rests", text, experiment(adam, topology)
    text = "warm-up             ends after round 6 at the earliest, after round 9 at the latest"
    soon = {**adam, "beta2": 0.8, "warmup_rounds": 9}
    yield "a warm-up that may rest", text, experiment(soon, topology)
    yield "a period beyond the exchanges", "average_period: 5, but the run has 4 exchanges", local


def all_checks(starling):
    for name, case in CASES.items():
        yield name, lambda case=case: check_mean(starling, *case)
    for name, *rest in words():
        yield name, lambda rest=rest: check_said(starling, *rest)
    text = "final_average has no effect in a session"
    session = {"topology": RING, "final_average": True}
    yield "sessions", lambda: check_said(starling, text, session, "--session", "mix")


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks))
