#!/usr/bin/env python3
"""How algorithms whose nodes all keep the same model begin a view, against an independent float64
program: two nodes are lost, later one returns.

The view's first exchange averages models and gradients, as src/algorithm/restate.c says; before it
and after it the reference is a new run of tests/reference/algorithms.py, of the members and from
their models. Of algorithms that neither this nor test_faults.py knows by number the mean model's
loss falls without those who are lost."""
import sys
import tempfile

import numpy as np

import _listed
import _simulate
from _edge import Edge
from _here import read_lines
from _simulate import Graph, apart_by_rank, dpsgd, simulate, within
import algorithms
import test_faults

N, ROWS, D, SEED, ROUNDS = 8, 12, 20, 5, 40
LOST, RETURNED = (13, [2, 5]), (25, [2])  # the round, and who
FAULTS = [{"round": LOST[0], "kill": LOST[1]}, {"round": RETURNED[0], "join": RETURNED[1]}]
MEMBERS = [
    (1, list(range(N))),
    (LOST[0], [0, 1, 3, 4, 6, 7]),
    (RETURNED[0], [0, 1, 2, 3, 4, 6, 7]),
    (ROUNDS + 1, []),
]
TOLERANCE = 1e-4  # relative to max(1, |x|)
TOP = {"compressor": {"name": "top-k", "k": 4}}
FEW = {"compressor": {"name": "top-k", "fraction": 0.4}}
SIGN = {"compressor": {"name": "scaled-sign"}}
BOTH = {"directions": "both", "error_feedback": True}
CASES = {
    "all-reduce": {"name": "all-reduce"},
    "all-reduce top-k": {"name": "all-reduce", **TOP},
    "all-reduce of sparse sums": {"name": "all-reduce", "all_reduce": "tree", **TOP},
    "all-reduce delayed": {"name": "all-reduce", "delay": 2},
    "parameter-server sign both": {"name": "parameter-server", "server": 2, **BOTH, **SIGN},
    "parameter-server sharded": {"name": "parameter-server", "server": "sharded", **FEW},
    "local-sgd": {"name": "local-sgd", "period": 4},
    "local-sgd sign": {"name": "local-sgd", "period": 4, **SIGN},
    "local-sgd after a while": {"name": "local-sgd", "period": 4, "switch_round": 8},
    "local-sgd adaptive": {"name": "local-sgd", "period": 4, "period_schedule": "adaptive"},
    "local-sgd growing": {"name": "local-sgd", "period": 4, "period_schedule": "growing"},
    "ecq-sgd": {"name": "ecq-sgd", "alpha": 0.4, "beta": 0.7, **TOP},
    "gmc": {"name": "gmc", **TOP},
    "dgc": {"name": "dgc", "clip": 2, **TOP},
    "gtop-k": {"name": "gtop-k", **TOP},
    "sign-vote": {"name": "sign-vote", "beta": 0.5},
    "ef21": {"name": "ef21", "server": "sharded", **FEW},
    "lag-3pc": {"name": "lag-3pc", "trigger": 5},
    "clag": {"name": "clag", "trigger": 5, **TOP},
    "lag-wk": {"name": "lag-wk", "depth": 3, "xi": 0.1},
    "laq": {"name": "laq", "depth": 3},
    "diana": {"name": "diana", "alpha": 0.7, "beta": 0.5, **TOP},
    "slowmo": {"name": "slowmo", "period": 4},
    "diloco": {"name": "diloco", "period": 4},
    "fedavg": {"name": "fedavg", "clients": 1.0, "local_steps": 4},
    "fedavg top-k": {"name": "fedavg", "clients": 1.0, "local_steps": 4, **TOP},
    "easgd": {"name": "easgd", "period": 4},
    "one-bit-adam": {"name": "one-bit-adam", "warmup_rounds": 6, **SIGN},
    "double-squeeze": {"name": "double-squeeze", **TOP},
    "relaysum": {"name": "relaysum"},
    "choco-sgd by link": {
        "name": "choco-sgd",
        "budget": {"round_ms": 12, "fraction_min": 0.05},
        **TOP,
        "network": {"bandwidth_mbit": 0.5, "links": [[3, 4, 0.3], [6, 1, 0.4], [2, 3, 0.35]]},
    },
}
WITHOUT_RESTATING = ("relaysum", "choco-sgd by link")
RATE = {"one-bit-adam": 0.003, "sign-vote": 0.003, "dgc": 0.05}
# What is due at once when all begins anew, in place of at the next multiple of the period.
AT_ONCE = ("local-sgd adaptive", "local-sgd growing")


def among(ranks, network):
    """The links between these, by their places."""
    links = [row for row in network["links"] if set(row[:2]) <= set(ranks)]
    return {**network, "links": [[*map(ranks.index, row[:2]), *row[2:]] for row in links]}


class Views:
    """A run of the reference for each view, and each half of one."""

    def __init__(self, name, problem, edge):
        self.settings, self.edge, self.problem = CASES[name], edge, problem
        self.optimizer = {"learning_rate": RATE.get(self.settings["name"], 0.05)}
        whole = self.settings.get("period", self.settings.get("local_steps", 1))
        self.period = 1 if name in AT_ONCE else whole
        self.restates = name not in WITHOUT_RESTATING
        self.history = {}

    def begin(self, ranks, x, settings):
        part = algorithms.Quadratic(*(each[ranks] for each in self.problem[:2]))
        if "network" in settings:
            settings = {**settings, "network": among(ranks, settings["network"])}
        what = test_faults.ring(ranks), settings, self.optimizer, part, x
        return algorithms.Run(*what, watch=self.edge.watch, exceeds=self.edge.exceeds)

    def train(self, run, ranks, rounds):
        for r in rounds:
            run.step()
            self.history[r] = dict(zip(ranks, run.models().copy()))
        return run.models()

    def restate(self, run, ranks, r):
        g = run.problem.gradient(run.state.at()).mean(axis=0)
        x = run.models().mean(axis=0) - self.optimizer["learning_rate"] * g
        self.history[r] = {rank: x for rank in ranks}
        return np.tile(x, (len(ranks), 1))

    def go(self):
        x = self.problem[2]
        for (first, ranks), (end, others) in zip(MEMBERS, MEMBERS[1:]):
            settings, begun = self.settings, first
            if first > 1:  # rounds of a view are not the run's first ones
                settings = {k: v for k, v in settings.items() if k != "switch_round"}
            run = self.begin(ranks, x, settings)
            run.state.dense = first > 1
            if self.restates and first > 1:
                begun = first + self.period
                self.train(run, ranks, range(first, begun - 1))
                x = self.restate(run, ranks, begun - 1)
                run = self.begin(ranks, x, settings)
            x = self.train(run, ranks, range(begun, end))
            # A newcomer takes the model of its lowest neighbour, in these rings the lower one.
            rows = dict(zip(ranks, x))
            x = np.array([rows[k] if k in rows else rows[k - 1] for k in others])
        return self.history


def expected(name):
    """A problem on which rounding decides nothing, and the models after each round."""
    for seed in range(SEED, SEED + 100):
        edge = Edge(1e-6)
        problem = dpsgd.problem(N, ROWS, D, True, seed)
        views = Views(name, problem, edge)
        history = views.go()
        if not edge.near:
            return problem, views.optimizer, history
    raise RuntimeError(f"{name}: every problem has a close call")


def check_case(starling, name):
    problem, optimizer, history = expected(name)
    graph = Graph({"nodes": N, "family": "ring"}, [])
    algorithm = {key: value for key, value in CASES[name].items() if key != "network"}
    what = graph, algorithm, optimizer, *problem, ROUNDS, list(range(1, ROUNDS + 1))
    found = simulate(starling, *what, CASES[name].get("network"), faults=FAULTS)
    worst = apart_by_rank(found.by_rank, history)
    return (worst, None) if isinstance(worst, str) else within(worst, TOLERANCE)


SMALL = {
    "model": {"name": "mlp", "hidden": [8]},
    "data": {"name": "digits", "train_samples": 800, "test_samples": 100, "batch": 8},
    "rounds": 3 * ROUNDS,
    "topology": {"nodes": N, "family": "ring"},
    "record": {"every": ROUNDS // 2},
    "faults": FAULTS,
}
SLOWLY = ("d-adam", "d-amsgrad")  # each step has the rate's length
NEEDS = {"noloco": {"period": 4}}  # of a view, too


def check_goes_on(starling, name):
    """All go on, and the mean model's loss falls."""
    with tempfile.TemporaryDirectory(prefix="starling-views-") as folder:
        algorithm = {"name": name, **NEEDS.get(name, {})}
        rate = 0.001 if name in SLOWLY else 0.05
        more = {"algorithm": algorithm, "optimizer": {"learning_rate": rate}}
        out, _ = _simulate.run_experiment(starling, folder, {**SMALL, **more})
        lines = read_lines(out, "consensus.jsonl")
        losses = [line["test_loss"] for line in lines if line.get("test_loss") is not None]
        return None if losses[-1] < 0.9 * losses[0] else f"losses {losses}", 0.0


def all_checks(starling):
    for name in CASES:
        yield name, lambda name=name: check_case(starling, name)
    known = [*CASES.values(), *(algorithm for algorithm, *_ in test_faults.CASES.values())]
    for name in _listed.unnamed(starling, known):
        yield f"{name} goes on", lambda name=name: check_goes_on(starling, name)


if __name__ == "__main__":
    sys.exit(_simulate.main(__doc__, all_checks))
