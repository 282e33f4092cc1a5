#!/usr/bin/env python3
"""What `starling topology analyse` says: how fast nodes agree, against numpy
(tests/reference/analysis.py, whose graphs these are); what a round costs, against the simulator;
and what is left without some nodes. tests/unit/test_analysis.c has structure and the worst loss of
the same graphs, test_spectrum.c eigenvalues against LAPACK, test_rank.py rounds of the simulator.
"""
import functools
import os
import sys
import tempfile

import numpy as np

from _here import check
from _simulate import QUICK, Graph, main, simulate, told, write
import analysis

TOLERANCE = 0.02  # of costs, which headers are not in
ROUNDS, SHOWN, EPSILON = 400, 16, 1e-3
COSTS = (
    {"nodes": 16, "family": "ring"},
    {"nodes": 20, "family": "torus", "sides": [4, 5]},
    {"nodes": 10, "family": "star"},
    {"nodes": 16, "family": "one-peer-exponential"},
)


def analyse(starling, topology, *options):
    with tempfile.TemporaryDirectory(prefix="starling-topology-") as folder:
        write(folder, "topology.json", topology)
        path = os.path.join(folder, "topology.json")
        return told(starling, "analyse", path, "--json", *options)


def expect(what, found, known, tolerance=TOLERANCE, floor=0.0):
    why = f"{what}: said to be {found:.6g}, and is {known:.6g}"
    check(abs(found - known) <= tolerance * abs(known) + floor, why)


def check_agreement(starling, topology, ws):
    said = analyse(starling, topology, "--epsilon", str(EPSILON))
    known = analysis.product_errors(ws, ROUNDS)
    errors = said.get("product_error") or [said["rho"] ** k for k in range(1, SHOWN + 1)]
    for k, (error, numpys) in enumerate(zip(errors, known), 1):
        expect(f"error after {k} rounds", error, numpys, 1e-8, 1e-14)
    before = [1, *known]
    at_once = (k for k in range(1, SHOWN + 1) if before[k] < 1e-12 and before[k - 1] > 0.05)
    check(said["exact_after"] == next(at_once, None), f"exact after {said['exact_after']}: {known}")
    rounds = next((k for k, error in enumerate(known, 1) if error <= EPSILON * (1 + 1e-9)), None)
    check(said["rounds_to_epsilon"] == rounds, f"{said['rounds_to_epsilon']} rounds, not {rounds}")
    product = functools.reduce(lambda product, w: w @ product, ws)
    rho = analysis.second_modulus(product) ** (1 / len(ws))
    # Of a product with a defective eigenvalue 0 only a root of the rounding error is known.
    expect("rho of a round", said["effective_rho"], rho, 1e-8, 1e-3 if rho < 1e-3 else 0)
    shares = analysis.perron(ws)
    check(np.allclose(said["perron"]["shares"], shares, 0, 1e-12), f"{said['perron']}, {shares}")
    mixing = analysis.mixing_time(ws) or None
    check(said["mixing_time"] == mixing, f"mixes in {said['mixing_time']}, not {mixing}")
    found, neighbours = said["effective_neighbours"][0], analysis.effective_neighbours(ws)
    check(found["decay"] == analysis.DECAY, f"{found}")
    check((found["neighbours"] is None) == (neighbours is None), f"{found}, not {neighbours}")
    expect("effective neighbours", found["neighbours"] or 0, neighbours or 0, 1e-10)


# ---- cost ----


def check_cost(starling, graph):
    """Bytes and predicted time of a run with 30,000 parameters beside the formulas."""
    d, rounds = 30000, 12
    with tempfile.TemporaryDirectory(prefix="starling-topology-") as folder:
        zeros = np.zeros((graph.n, 1, d)), np.zeros((graph.n, 1)), np.zeros((graph.n, d))
        links = {"bandwidth_mbit": 80, "latency_ms": 2}
        write(folder, "links.json", {"nodes": graph.n, **links})
        what = graph, {"name": "d-psgd"}, {"learning_rate": 0}, *zeros, rounds, []
        network = {**links, "gradient_ms": 1e-6, "coding": False}
        run = simulate(starling, *what, network)
        options = "--parameters", str(d), "--links", os.path.join(folder, "links.json")
        said = analyse(starling, graph.topology, *options)["cost"]
    seconds, sent = run.seconds, [node["bytes_sent"] for node in run.traffic]
    dense = said["per_round"][0]
    expect("bytes of a node", dense["node_bytes"], np.mean(sent) / rounds)
    expect("bytes of the busiest node", dense["busiest_node_bytes"], max(sent) / rounds)
    least, found = dense["serial_s"], seconds / rounds
    if graph.topology["family"] != "torus":
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


def all_checks(starling):
    for i, (topology, ws) in list(enumerate(analysis.with_matrices()))[:: 4 if QUICK else 1]:
        yield f"agreement {i}", functools.partial(check_agreement, starling, topology, ws)
    for topology in COSTS[: 1 if QUICK else None]:
        graph = Graph(topology, [])
        yield f"cost: {topology['family']}", functools.partial(check_cost, starling, graph)
    yield "without some nodes", functools.partial(check_without, starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 1))
