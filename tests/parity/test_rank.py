#!/usr/bin/env python3
"""What `starling topology rank` says, against the simulator: gossip averaging from the identity
matrix, whose models are the products W(k) ... W(1), comes to epsilon in the
round that is named and not in the one before; the time that the simulator predicts for those rounds
is that of the ranking, and so is the order."""
import functools
import os
import subprocess
import sys
import tempfile

import numpy as np

from _here import check
from _simulate import Graph, main, simulate, told, write

EPSILON = 1e-3
PARAMETERS = 1250  # 5 kB a message: headers are about one in a hundred
ROUNDS_MAX = 100  # of a simulation
# Of the ranking's seconds: the simulator lets each link in take messages in the order in which they
# come, and the ranking knows of no order.
SLACK = 0.25
# The ranking lets all nodes wait for each round's slowest: in schedules and directed graphs not all
# do.
NOT_ALL_WAIT = 0.5


def rank(starling, *options):
    numbers = "--parameters", str(PARAMETERS), "--epsilon", str(EPSILON)
    return told(starling, "rank", *options, "--json", *numbers)


def averaged(starling, topology, rounds, mbit, latency, links=(), compute=None):
    """Errors after the rounds before the last and after the last; predicted seconds of all of
    them."""
    graph = Graph(topology, [])
    x0 = np.eye(graph.n, PARAMETERS)
    nothing = np.zeros((graph.n, 1, PARAMETERS)), np.zeros((graph.n, 1))
    recorded = [rounds - 1, rounds] if rounds > 1 else [rounds]
    network = {"bandwidth_mbit": mbit, "latency_ms": latency, "gradient_ms": 1e-9, "links": links}
    if compute is not None:
        network["compute_ms"] = compute
    what = graph, {"name": "d-psgd"}, {"learning_rate": 0}, *nothing, x0
    run = simulate(starling, *what, rounds, recorded, network)
    errors = {k: np.linalg.norm(x[:, : graph.n] - 1 / graph.n, 2) for k, x in run.models.items()}
    return errors.get(rounds - 1, 1.0), errors[rounds], run.seconds


def check_seconds(candidate, predicted, below=SLACK, above=SLACK):
    """Against what the simulator predicts."""
    ratio = candidate["seconds"] / predicted
    check(1 - below <= ratio <= 1 + above, f"{candidate}, but {predicted:.4g} s are predicted")


def check_candidate(starling, candidate, mbit, latency):
    name, rounds = candidate["name"], int(candidate["rounds"])
    before, after, seconds = averaged(starling, candidate["topology"], rounds, mbit, latency)
    reached = after <= EPSILON * (1 + 1e-3) + 1e-6
    first = rounds == 1 or before > EPSILON * (1 - 1e-3)
    why = f"{name}: the error is {before:.4g} before the last of {rounds} rounds, then {after:.4g}"
    check(reached and first, why)
    check(candidate["exact_after"] != rounds or after <= 1e-6, f"exact? {why}")
    check_seconds(candidate, seconds)
    return seconds


def check_ranking(starling, nodes, mbit, latency):
    said = rank(starling, "--nodes", str(nodes), "--link", f"{mbit}:{latency}")["candidates"]
    times = [c["seconds"] for c in said]
    check(times == sorted(times), "not in order of time")
    chosen = [c for c in said if c["rounds"] <= ROUNDS_MAX]
    seconds = [check_candidate(starling, c, mbit, latency) for c in chosen]
    for i, first in enumerate(chosen):
        for j in range(i):
            why = f"{chosen[j]['name']} stands before {first['name']}, but of times {seconds}"
            check(seconds[j] <= (1 + SLACK) * seconds[i], why)
    check(len(chosen) >= 4, f"only {len(chosen)} candidates to compare")


def rank_links(starling, n, **links):
    with tempfile.TemporaryDirectory(prefix="starling-links-") as folder:
        write(folder, "links.json", {"nodes": n, **links})
        path = os.path.join(folder, "links.json")
        return rank(starling, "--nodes", str(n), "--links", path)["candidates"]


def check_computing(starling):
    """A round lasts as long as its slowest node computes and exchanges."""
    compute = [20, 20, 50, 20, 20, 20, 20, 20]
    asked = ["--nodes", "8", "--link", "1000:0.1", "--compute"]
    said = rank(starling, *asked, ",".join(map(str, compute)))["candidates"]
    for candidate in said[:4]:
        topology, rounds = candidate["topology"], int(candidate["rounds"])
        seconds = averaged(starling, topology, rounds, 1000, 0.1, compute=compute)[2]
        check_seconds(candidate, seconds)
    fewest = rank(starling, *asked[:-1])["candidates"][0]["rounds"]
    check(said[0]["rounds"] <= fewest, "more rounds where computing decides")
    for wrong in "20,50", "20x", "-1", "20,,50", "":
        command = [starling, "topology", "rank", *asked, wrong]
        ended = subprocess.run(command, capture_output=True, text=True)
        check(ended.returncode == 2 and "--compute" in ended.stderr, ended)


def check_slow_links(starling):
    """Three racks of four, and one pair that is slower still: the ranking and the simulator have
    one model of a link that is slower than its nodes' ports."""
    racks = [(i, j) for i in range(12) for j in range(i + 1, 12) if i // 4 != j // 4]
    links = [[i, j, 10 if (i, j) == (0, 11) else 100, 20] for i, j in racks]
    found = rank_links(starling, 12, bandwidth_mbit=1000, latency_ms=0.1, links=links)
    for candidate in found:
        if candidate["rounds"] > 20:
            continue
        topology, rounds = candidate["topology"], int(candidate["rounds"])
        seconds = averaged(starling, topology, rounds, 1000, 0.1, links)[2]
        all_wait = candidate["name"].startswith(("complete", "torus", "random", "symmetric"))
        check_seconds(candidate, seconds, SLACK / 5, SLACK / 5 if all_wait else NOT_ALL_WAIT)


def in_racks(starling, n, racks):
    """Of nodes that take turns in their racks, with slow links between these. test_rank.c has what
    is found and how nodes are numbered."""
    fast = [[i, j, 1000, 0.1] for i in range(n) for j in range(i + 1, n) if (j - i) % racks == 0]
    found = rank_links(starling, n, bandwidth_mbit=10, latency_ms=5, links=fast)
    return {candidate["name"]: candidate for candidate in found}


def check_racks(starling):
    """A round waits for its slowest link; a bridge of every fourth round costs a quarter."""
    slow, quick = PARAMETERS * 32 / 10e6, PARAMETERS * 32 / 1000e6
    inside, bridged = 1e-4 + 3 * quick, 5e-3 + slow
    three = in_racks(starling, 12, 3)
    for candidate, seconds in (
        (in_racks(starling, 8, 2)["ring"], bridged),
        (three["clusters 3 of 4"], bridged),
        (three["clusters 3 of 4, every 4"], (3 * inside + bridged) / 4),
    ):
        check(abs(candidate["round_seconds"] - seconds) < 1e-9, f"{candidate}, not {seconds}")


def check_notes(starling):
    """A way out where a family does not suit the number of nodes."""
    said = rank(starling, "--nodes", "12", "--link", "100:0.01")["notes"]
    named = ("hyper-cuboid 2x2x3 (3 rounds)" in note and "base-k" in note for note in said)
    check(any(named), f"no way out is named: {said}")


def all_checks(starling):
    for network in (8, 100, 0.1), (12, 1000, 20), (15, 10, 1):
        name = "rank: {} nodes at {} Mbit/s and {} ms".format(*network)
        yield name, functools.partial(check_ranking, starling, *network)
    for what in (check_computing, check_racks, check_slow_links, check_notes):
        yield f"rank: {what.__name__[6:]}", functools.partial(what, starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 1))
