"""Experiments on quadratic problems for `starling sim`, and what came out. Shared by tests of this
folder."""
import argparse
import concurrent.futures
import json
import os
import subprocess
import tempfile

import numpy as np

from _here import Failure, outcome, read_json, read_lines
import dpsgd
from expect import Graph

QUICK = "STARLING_QUICK" in os.environ  # with sanitizers, or OpenBLAS of another processor


class Refused(Failure):
    """Starling did not run the experiment; the text is what it said."""


def of(name, **more):
    """Settings of what is chosen by name."""
    return {"name": name, **more}


def irregular():
    """Seven nodes with one to four neighbours."""
    edges = [[0, 1], [0, 2], [0, 3], [0, 4], [1, 2], [2, 5], [3, 5], [5, 6]]
    return Graph(
        {"nodes": 7, "edges": edges, "weights": "metropolis"}, [dpsgd.metropolis(7, edges)]
    )


def schedule(n, *slots):
    """Metropolis weights of each slot's edges."""
    topology = {"nodes": n, "schedule": [{"edges": edges} for edges in slots]}
    weights = [dpsgd.metropolis(n, edges) for edges in slots]
    return Graph({**topology, "weights": "metropolis"}, weights)


def matchings():
    """Six nodes in pairs, other pairs in each of three rounds: symmetric in every round."""
    return schedule(6, *dpsgd.MATCHINGS)


def family(name, edges, nodes=8, **more):
    topology = {"nodes": nodes, "family": name, "weights": "metropolis", **more}
    return Graph(topology, [dpsgd.metropolis(nodes, edges)])


class Result:
    """What a run left. models: round -> (n, d); weights: round -> (n) push-sum weights; by_rank and
    weight_of: the same as round -> {rank: ...} of those who are there; seconds: predicted on the
    links of network; traffic: of each node, what its last line says; said: on standard error."""

    def __init__(self, folder, said=""):
        self.by_rank, self.weight_of, self.said = {}, {}, said
        path = os.path.join(folder, "parameters.jsonl")
        for line in read_lines(path) if os.path.exists(path) else []:
            row = np.array([np.nan if value is None else value for value in line["parameters"]])
            self.by_rank.setdefault(line["round"], {})[line["node"]] = row
            self.weight_of.setdefault(line["round"], {})[line["node"]] = line["push_sum_weight"]
        self.models = {r: np.array(list(rows.values())) for r, rows in self.by_rank.items()}
        self.weights = {r: np.array(list(rows.values())) for r, rows in self.weight_of.items()}
        self.summary = read_json(folder, "summary.json")
        self.seconds = self.summary.get("predicted_seconds")
        self.traffic = self.summary["per_node"]


def apart_by_rank(found, expected):
    """The largest difference; nodes must be the same in every round."""
    worst = 0.0
    for r, rows in expected.items():
        if sorted(rows) != sorted(found[r]):
            return f"round {r}: nodes {sorted(found[r])}, and the reference has {sorted(rows)}"
        for rank, x in rows.items():
            worst = max(worst, abs(found[r][rank] - x).max() / max(1, abs(x).max()))
    return worst


def run_experiment(starling, folder, experiment, command="sim"):
    """Runs it in the folder: (its --out, what was said). Raises Refused when it does not end
    well."""
    write(folder, "experiment.json", experiment)
    out = os.path.join(folder, "out" if command == "sim" else command)
    ended = call(starling, command, os.path.join(folder, "experiment.json"), "--out", out)
    if ended.returncode != 0:
        raise Refused(f"starling {command} ended with {ended.returncode}: {ended.stderr.strip()}")
    return out, ended.stderr


def write_problem(folder, a, b, x0):
    """A quadratic problem; returns the model of an experiment."""
    write(folder, "problem.json", {"A": a.tolist(), "b": b.tolist(), "x0": x0.tolist()})
    return {"name": "quadratic", "path": "problem.json"}


def call(starling, *words, env=None):
    """The command, at its end."""
    return subprocess.run(
        [starling, *words],
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    )


def simulate(
    starling, graph, algorithm, optimizer, a, b, x0, rounds, recorded, network=None, **more
):
    """The Result of the experiment on this problem. more: keys of its own; of `model` what the
    problem's has beside."""
    with tempfile.TemporaryDirectory(prefix="starling-quadratic-") as folder:
        experiment = {
            "name": "quadratic",
            "rounds": rounds,
            "topology": graph.topology,
            "algorithm": algorithm,
            "optimizer": optimizer,
            "record": {"every": rounds, "parameters_at": recorded},
            **({"network": network} if network else {}),
            **more,
            "model": {**write_problem(folder, a, b, x0), **more.get("model", {})},
        }
        return Result(*run_experiment(starling, folder, experiment))


def told(starling, *words):
    """What `starling topology WORDS` prints, of JSON."""
    ended = call(starling, "topology", *words)
    if ended.returncode != 0:
        raise AssertionError(f"{words[0]} ended with {ended.returncode}: {ended.stderr.strip()}")
    return json.loads(ended.stdout)


def all_models(starling, graph, algorithm, optimizer, problem, rounds, **model):
    """Those of the start and of every round."""
    recorded = list(range(rounds + 1))
    what = graph, algorithm, optimizer, *problem, rounds, recorded
    found = simulate(starling, *what, model=model)
    return [found.models[r] for r in recorded]


def within(worst, allowed, what="differs by"):
    """(reason or None, worst)"""
    return (None if worst <= allowed else f"{what} {worst:.1e}, allowed {allowed}"), worst


def check_same(ours, other, allowed):
    """Of two runs, the models of each round."""
    return within(max(abs(x - y).max() for x, y in zip(ours, other)), allowed)


def write(folder, name, content):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(content, file)


def arguments(description):
    """The path of the program, and the names that cases must contain."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("starling", metavar="STARLING")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name has this text")
    given = parser.parse_args()
    return os.path.abspath(given.starling), given.only


def run_all(wanted, workers=8):
    """wanted: [(name, function)]. 1: one fails, or there is none."""
    failed = not wanted
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for (name, _), (how, said) in zip(wanted, pool.map(lambda item: outcome(item[1]), wanted)):
            failed = failed or how == "not ok"
            print(f"{how} {name}{said}", flush=True)
    return 1 if failed else 0


def main(description, checks, workers=8):
    """Of checks(starling), those whose name has the text of --only."""
    starling, only = arguments(description)
    return run_all([(name, check) for name, check in checks(starling) if only in name], workers)
