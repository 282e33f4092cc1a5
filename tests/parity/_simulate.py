"""Experiments on quadratic problems for `starling sim`, and what came out. Shared by tests of this
folder."""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "reference")
)
import dpsgd  # noqa: E402
from expect import Graph  # noqa: E402

QUICK = "STARLING_QUICK" in os.environ  # with sanitizers, or OpenBLAS of another processor


class Refused(Exception):
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
    """models: round -> (n, d); weights: round -> (n) push-sum weights; seconds: predicted on the
    links of network; traffic: of each node, what its last line says."""

    def __init__(self, folder):
        self.models, self.weights = {}, {}
        for line in read_lines(folder, "parameters.jsonl"):
            row = [np.nan if value is None else value for value in line["parameters"]]
            self.models.setdefault(line["round"], []).append(row)
            self.weights.setdefault(line["round"], []).append(line["push_sum_weight"])
        with open(os.path.join(folder, "summary.json")) as file:
            summary = json.load(file)
        self.seconds, self.traffic = summary.get("predicted_seconds"), summary["per_node"]
        self.models = {r: np.array(rows) for r, rows in self.models.items()}
        self.weights = {r: np.array(rows) for r, rows in self.weights.items()}


def read_lines(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


def models_by_rank(out):
    """round -> {rank: model}, and round -> {rank: push-sum weight}, of those who are there."""
    models, weights = {}, {}
    for line in read_lines(out, "parameters.jsonl"):
        models.setdefault(line["round"], {})[line["node"]] = np.array(line["parameters"])
        weights.setdefault(line["round"], {})[line["node"]] = line["push_sum_weight"]
    return models, weights


def apart_by_rank(found, expected):
    """The largest difference; nodes must be the same in every round."""
    worst = 0.0
    for r, rows in expected.items():
        if sorted(rows) != sorted(found[r]):
            return f"round {r}: nodes {sorted(found[r])}, and the reference has {sorted(rows)}"
        for rank, x in rows.items():
            worst = max(worst, abs(found[r][rank] - x).max() / max(1, abs(x).max()))
    return worst


def sim(starling, folder, problem, experiment, **model):
    """Runs the quadratic problem (A, b, x0) in the folder, with more settings of its model: (its
    --out, what was said). Raises Refused when it does not end well."""
    a, b, x0 = problem
    write(folder, "problem.json", {"A": a.tolist(), "b": b.tolist(), "x0": x0.tolist()})
    model = {"name": "quadratic", "path": "problem.json", **model}
    return run_experiment(starling, folder, {**experiment, "model": model})


def run_experiment(starling, folder, experiment):
    """The same, of any experiment."""
    write(folder, "experiment.json", experiment)
    return run_file(starling, folder, os.path.join(folder, "experiment.json"))


def run_file(starling, folder, path):
    """The same, of an experiment in a file."""
    out = os.path.join(folder, "out")
    ended = call(starling, "sim", path, "--out", out)
    if ended.returncode != 0:
        raise Refused(f"starling sim ended with {ended.returncode}: {ended.stderr.strip()}")
    return out, ended.stderr


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
    starling, graph, algorithm, optimizer, a, b, x0, rounds, recorded, network=None, **model
):
    """Runs the experiment, with more settings of its model, and raises Refused when it does not end
    well."""
    with tempfile.TemporaryDirectory(prefix="starling-quadratic-") as folder:
        experiment = {
            "name": "quadratic",
            "rounds": rounds,
            "topology": graph.topology,
            "algorithm": algorithm,
            "optimizer": optimizer,
            "record": {"every": rounds, "parameters_at": recorded},
            **({"network": network} if network else {}),
        }
        out, _ = sim(starling, folder, (a, b, x0), experiment, **model)
        return Result(out)


def told(starling, *words):
    """What `starling topology WORDS` prints, of JSON."""
    ended = call(starling, "topology", *words)
    if ended.returncode != 0:
        raise AssertionError(f"{words[0]} ended with {ended.returncode}: {ended.stderr.strip()}")
    return json.loads(ended.stdout)


def all_models(starling, graph, algorithm, optimizer, problem, rounds, **model):
    """Those of the start and of every round."""
    recorded = list(range(rounds + 1))
    found = simulate(starling, graph, algorithm, optimizer, *problem, rounds, recorded, **model)
    return [found.models[r] for r in recorded]


def within(worst, allowed, what="differs by"):
    """(reason or None, worst)"""
    return (None if worst <= allowed else f"{what} {worst:.1e}, allowed {allowed}"), worst


def check_same(ours, other, allowed):
    """Of two runs, the models of each round."""
    return within(max(abs(x - y).max() for x, y in zip(ours, other)), allowed)


def check_refusal(run, text):
    """What is said of it; text None: it is taken."""
    try:
        run()
    except Refused as error:
        return (None if text and text in str(error) else f"{error}; it should say {text!r}"), 0
    return (f"it was taken, without {text!r}" if text else None), 0


def write(folder, name, content):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(content, file)


def arguments(description):
    """The path of the program, and the names that cases must contain."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("path", nargs="?", metavar="STARLING")
    parser.add_argument("--starling", metavar="STARLING")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name has this text")
    given = parser.parse_args()
    if not (given.starling or given.path):
        parser.error("where is starling?")
    return os.path.abspath(given.starling or given.path), given.only


class Skipped(Exception):
    """The text is why."""


PROBLEMS = (Refused, AssertionError, OSError, RuntimeError, ValueError, LookupError)
PROBLEMS += (subprocess.SubprocessError,)


def run(check):
    """(ok, not ok or skip, what is said of it); check returns nothing, or (reason or None, by how
    much it differs)."""
    try:
        reason, worst = check() or (None, None)
    except Skipped as why:
        return "skip", f": {why}"
    except PROBLEMS as error:
        reason, worst = f"{type(error).__name__}: {error}", None
    if reason:
        return "not ok", f": {reason}"
    return "ok", "" if worst is None else f" (differs by {worst:.1e})"


def run_all(wanted, workers=8):
    """wanted: [(name, function)]. 1: one fails, or there is none."""
    failed = not wanted
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for (name, _), (how, said) in zip(wanted, pool.map(lambda item: run(item[1]), wanted)):
            failed = failed or how == "not ok"
            print(f"{how} {name}{said}", flush=True)
    return 1 if failed else 0


def main(description, checks, workers=8):
    """Of checks(starling), those whose name has the text of --only."""
    starling, only = arguments(description)
    return run_all([(name, check) for name, check in checks(starling) if only in name], workers)
