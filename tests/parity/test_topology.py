#!/usr/bin/env python3
"""What `starling topology analyse` says, against runs of gossip averaging in the simulator:
learning rate 0, so that models are only averaged. tests/unit/test_analysis.c holds what else it
finds, and of 50 graphs the same errors, against numpy; test_spectrum.c eigenvalues against LAPACK.

Started from the identity matrix the models of round k are W(k) ... W(1) itself, from which errors
and exactness can be read off. The contraction per round is measured as a power method whose
products are runs: each begins where the one before ended, blown up again. Nothing is taken from the
analysis but the numbers that are compared; single precision and the tolerance of 2 % are the
simulator's and the task's."""
import functools
import os
import sys
import tempfile

import numpy as np

from _here import check
from _simulate import QUICK, main, simulate, told, write

TOLERANCE = 0.02
FLOOR = 3e-6  # of an error that single precision shows
ROUNDS = 200
BLOCK = 12  # rounds, a multiple of all periods here
EPSILON = 1e-3
SGP, DPSGD = {"name": "sgp"}, {"name": "d-psgd"}


class Case:
    def __init__(self, name, topology):
        self.name, self.topology, self.n = name, topology, topology["nodes"]
        self.push_sum = topology.get("weights") == "push-sum"
        self.algorithm = SGP if self.push_sum else DPSGD


NOT_NORMAL = [[0, 1, 0.5], [1, 2, 0.3], [2, 0, 0.3], [1, 0, 0.2], [2, 3, 0.25], [3, 2, 0.25]]
CASES = [
    Case("ring", {"nodes": 16, "family": "ring"}),
    Case("star", {"nodes": 10, "family": "star"}),
    Case("torus", {"nodes": 20, "family": "torus", "sides": [4, 5]}),
    Case("doubly stochastic, not normal", {"nodes": 4, "edges": NOT_NORMAL}),
    Case(
        "push-sum",
        {
            "nodes": 6,
            "directed": True,
            "edges": [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 0], [1, 4]],
            "weights": "push-sum",
        },
    ),
    Case("one-peer exponential of 16", {"nodes": 16, "family": "one-peer-exponential"}),
    Case("MATCHA", {"nodes": 10, "family": "matcha", "base": "ring", "period": 12}),
    Case(
        "clusters with seldom bridges",
        {"nodes": 12, "family": "clusters", "clusters": 3, "bridge_every": 4},
    ),
    Case(
        "push-sum schedule",
        {
            "nodes": 5,
            "directed": True,
            "weights": "push-sum",
            "schedule": [{"edges": [[0, 1], [2, 3], [3, 4]]}, {"edges": [[1, 2], [4, 0], [1, 3]]}],
        },
    ),
]


class Averaging:
    """A gossip run: models[k] is what round k left of x0; weights[k] are push-sum's."""

    def __init__(self, starling, case, x0, rounds, recorded=None):
        n, d = x0.shape
        self.case = case
        problem = np.zeros((n, 1, d)), np.zeros((n, 1)), x0
        recorded = list(recorded or range(0, rounds + 1))
        still = {"learning_rate": 0}
        run = simulate(starling, case, case.algorithm, still, *problem, rounds, recorded)
        self.models, self.weights = run.models, run.weights

    def product(self, k):
        """W(k) ... W(1), from the identity: push-sum's models are divided by their weights."""
        return self.models[k] * self.weights[k][:, None]

    def error(self, k):
        return np.linalg.norm(self.models[k] - 1 / self.case.n, 2)


def analyse(starling, topology, *options):
    with tempfile.TemporaryDirectory(prefix="starling-topology-") as folder:
        write(folder, "topology.json", topology)
        path = os.path.join(folder, "topology.json")
        return told(starling, "analyse", path, "--json", *options)


def contraction(starling, case, seed=5):
    """Per round, in the long run: of random models whose sum is 0, again and again from what is
    left of them. Push-sum's models are taken times their weights, so that
    it is W alone that acts. The geometric mean over the later runs, since complex eigenvalues come
    and go. None where nothing is left.
    """
    x = np.random.default_rng(seed).standard_normal((case.n, 4))
    settling = 60 if QUICK else 100
    rounds, logarithm, measured = 0, 0.0, 0
    while measured < settling:
        x -= x.mean(axis=0)
        x /= np.linalg.norm(x)
        run = Averaging(starling, case, x, 8 * BLOCK, range(0, 8 * BLOCK + 1, BLOCK))
        left = {k: np.linalg.norm(run.product(k) - run.product(k).mean(axis=0)) for k in run.models}
        last = max((k for k in left if left[k] > 1e-4), default=0) or BLOCK
        if left[last] < 1e-5:
            return None
        if rounds >= settling:
            logarithm += np.log(left[last])
            measured += last
        rounds += last
        x = run.product(last)
    return np.exp(logarithm / measured)


def expect(what, found, measured, tolerance=TOLERANCE, floor=0.0):
    why = f"{what}: said to be {found:.6g}, measured {measured:.6g}"
    check(abs(found - measured) <= tolerance * abs(measured) + floor, why)


# ---- findings ----


def check_errors(said, run):
    errors = said.get("product_error") or [said["rho"] ** k for k in range(1, 17)]
    for k, error in enumerate(errors, 1):
        expect(f"error after {k} rounds", error, run.error(k), floor=FLOOR)
    if "product_error" not in said:
        expect("||W - J||", said["singular_2"], run.error(1), floor=FLOOR)


def check_exact(said, run):
    exact = next(
        (k for k in range(1, 17) if run.error(k) < FLOOR and run.error(k - 1) > 0.05), None
    )
    check(exact == said["exact_after"], f"exact after {said['exact_after']}, measured {exact}")


def check_rounds(said, run):
    measured = next(k for k in range(1, ROUNDS + 1) if run.error(k) <= EPSILON * (1 + 1e-6))
    expect("rounds to 0.001", said["rounds_to_epsilon"], measured, floor=1)


def check_case(starling, case):
    said = analyse(starling, case.topology, "--epsilon", str(EPSILON))
    run = Averaging(starling, case, np.eye(case.n), ROUNDS)
    for finding in (check_errors, check_exact, check_rounds):
        finding(said, run)
    measured = contraction(starling, case)
    if measured is None:
        rho = said["effective_rho"]
        check(rho**BLOCK <= 1e-4, f"rho is said to be {rho:.6g}; nothing was left to measure")
        return
    expect("contraction per round", said["effective_rho"], measured)
    expect("gap", said["effective_gap"], 1 - measured)


# ---- cost ----


def check_cost(starling, case):
    """Bytes and predicted time of a run with 30,000 parameters beside the formulas."""
    d, rounds = 30000, 12
    with tempfile.TemporaryDirectory(prefix="starling-topology-") as folder:
        zeros = np.zeros((case.n, 1, d)), np.zeros((case.n, 1)), np.zeros((case.n, d))
        links = {"bandwidth_mbit": 80, "latency_ms": 2}
        write(folder, "links.json", {"nodes": case.n, **links})
        what = case, case.algorithm, {"learning_rate": 0}, *zeros, rounds, []
        network = {**links, "gradient_ms": 1e-6, "coding": False}
        run = simulate(starling, *what, network)
        options = "--parameters", str(d), "--links", os.path.join(folder, "links.json")
        said = analyse(starling, case.topology, *options)["cost"]
    seconds, sent = run.seconds, [node["bytes_sent"] for node in run.traffic]
    dense = said["per_round"][0]
    expect("bytes of a node", dense["node_bytes"], np.mean(sent) / rounds)
    expect("bytes of the busiest node", dense["busiest_node_bytes"], max(sent) / rounds)
    least, found = dense["serial_s"], seconds / rounds
    if case.name != "torus":
        expect("seconds of a round", least, found)
    else:  # messages meet at a port that is busy, which the formula leaves out
        check(least <= found <= 1.25 * least, f"a round lasts {found:.6g} s, not {least:.6g} s")


def check_without(starling):
    """A family is made again; of a W that is given, the stochastic complement is left."""
    n, lost, left = 7, [3, 5], [0, 1, 2, 4, 6]
    w = np.random.default_rng(4).random((n, n)) * (1 - np.eye(n))
    w = (w + w.T) / 20
    w += np.diag(1 - w.sum(1))
    part = w[np.ix_(left, lost)] @ np.linalg.inv(np.eye(2) - w[np.ix_(lost, lost)])
    rest = w[np.ix_(left, left)] + part @ w[np.ix_(lost, left)]
    ring = {"nodes": 8, "family": "ring"}
    for topology, rho in ((ring, 2 / 3), ({"W": w.tolist()}, np.linalg.eigvalsh(rest)[-2])):
        said = analyse(starling, topology, "--without", "3,5")
        expect("rho of those who are left", said["rho"], rho)
        check(said["notes"][0].startswith("Without 3,5"), f"no word of it: {said['notes']}")


COSTS = ("ring", "torus", "star", "one-peer exponential of 16")


def all_checks(starling):
    for case in CASES[:: 4 if QUICK else 1]:
        yield f"gossip: {case.name}", functools.partial(check_case, starling, case)
    for case in [case for case in CASES if case.name in COSTS][: 1 if QUICK else None]:
        yield f"cost: {case.name}", functools.partial(check_cost, starling, case)
    yield "without some nodes", functools.partial(check_without, starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 1))
