#!/usr/bin/env python3
"""Rounds of agents on slow links beside what `starling sim` predicts of them.

Each agent runs in a network namespace; links.c joins them (root). The rate that is predicted with
is what plain sockets get there, where nodes send to as many others at once, both ways at once or
one after the other.
Agents compute for as long as a pause says, so cores do not decide; how long that was goes into the
prediction. A round is the run's time after its first rounds, through their number; predicted
likewise. The table is in Markdown (docs/benchmarks.md).

usage: predicted.py [--build BUILD] [--rounds N] [--only TEXT]     meson compile -C BUILD
"""
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import _bench
from _links import Links, agents, slow_gradients

PORT, EVERY, PAUSE_US = 7500, 5, 10000
PAYLOAD, TURNS = 1_628_200, 15  # of plain sockets: bytes to each neighbour, as the model has
AND_BACK = ("server", "ad-psgd")  # who get an answer
RING = {"family": "ring", "nodes": 4}
TORUS = {"family": "torus", "nodes": 9}
STAR = {"family": "star", "nodes": 5}
CASES = [  # name, topology, algorithm, Mbit/s, ms one way
    ("ring", RING, "d-psgd", 100, 0),
    ("ring", RING, "d-psgd", 100, 20),
    ("ring", RING, "d-psgd", 200, 5),
    ("torus 3x3", TORUS, "d-psgd", 50, 0),
    ("torus 3x3", TORUS, "d-psgd", 50, 20),
    ("star", STAR, "d-psgd", 100, 0),
    ("star", STAR, "d-psgd", 300, 0),
    ("star", STAR, "d-psgd", 1000, 5),
    ("all-reduce", RING, "all-reduce", 100, 0),
    ("all-reduce", RING, "all-reduce", 100, 20),
    ("all-reduce", RING, "all-reduce", 200, 5),
    ("server", RING, "parameter-server", 100, 0),
    ("server", RING, "parameter-server", 300, 5),
    ("ad-psgd", RING, "ad-psgd", 100, 0),
    ("ad-psgd", RING, "ad-psgd", 100, 5),
    ("ad-psgd", RING, "ad-psgd", 200, 20),
]


# ---- plain sockets ----


def peers_of(name, count, rank):
    """With whom a node exchanges at once."""
    if name in ("star", "server"):
        return [*range(1, count)] if rank == 0 else [0]
    if name == "ad-psgd":
        return [1 - rank] if rank < 2 else []
    beside = {(rank + 1) % count, (rank - 1) % count}
    if name == "torus 3x3":
        row = rank // 3 * 3
        beside = {row + (rank + 1) % 3, row + (rank + 2) % 3, (rank + 3) % 9, (rank + 6) % 9}
    return sorted(beside - {rank})


def connect(addresses, rank, peers):
    sockets, listener = [], socket.create_server((addresses[rank], PORT))
    for peer in peers:
        while peer > rank:
            try:
                sockets.append(socket.create_connection((addresses[peer], PORT)))
                break
            except OSError:
                time.sleep(0.02)
    return sockets + [listener.accept()[0] for peer in peers if peer < rank]


def take(one):
    left, room = PAYLOAD, bytearray(1 << 20)
    while left > 0:
        left -= one.recv_into(room, min(left, len(room)))


def exchange(addresses, rank, name):
    """Writes the median milliseconds of a turn."""
    peers = peers_of(name, len(addresses), rank)
    sockets, payload, took = connect(addresses, rank, peers), bytes(PAYLOAD), []
    for _ in range(TURNS):
        began = time.monotonic()
        takes = [threading.Thread(target=take, args=[one]) for one in sockets]
        sends = [threading.Thread(target=one.sendall, args=[payload]) for one in sockets]
        steps = [takes + sends]
        if name in AND_BACK:
            steps = [takes, sends] if rank == 0 else [sends, takes]
        for threads in steps:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        took.append(1e3 * (time.monotonic() - began))
    print(statistics.median(took[3:]))


def rate_of(links, name, count, ms):
    """Mbit/s of the busiest node's port; a turn takes the way there, too."""
    addresses = ",".join(links.address(rank) for rank in range(count))
    command = [sys.executable, __file__, "--exchange", addresses]
    nodes = [
        subprocess.Popen(
            [*links.wrapper(rank), *command, str(rank), name], stdout=subprocess.PIPE, text=True
        )
        for rank in range(count)
    ]
    turn_ms = max(float(node.communicate()[0]) for node in nodes)
    ways = 2 if name in AND_BACK else 1
    return ways * len(peers_of(name, count, 0)) * 8e-3 * PAYLOAD / (turn_ms - ways * ms)


# ---- agents, and their prediction ----


def experiment_of(topology, algorithm, rounds):
    return {
        "rounds": rounds,
        "topology": topology,
        "algorithm": algorithm,
        "model": {"name": "mlp", "hidden": [512]},
        "data": {"name": "digits", "batch": 1, "test_samples": 10},
        "optimizer": {"learning_rate": 0.01},
        "record": {"every": EVERY, "evaluate": 1, "models": "none"},
        "transport": {"connect_timeout_s": 60},
        "security": {"mode": "none", "trusted_network": True},
    }


def measure(build, links, experiment, folder):
    """Milliseconds of a round, and of a gradient: medians over the agents."""
    environment = {**slow_gradients(build, PAUSE_US), "OPENBLAS_NUM_THREADS": "1"}
    rounds, gradients = [], []
    for first, *_, last in agents(build, links, experiment, folder, lambda rank: environment):
        between = last["round"] - first["round"]
        took = {key: last["seconds"][key] - first["seconds"][key] for key in ("total", "gradient")}
        rounds.append(1e3 * took["total"] / between)
        gradients.append(1e3 * took["gradient"] / between)
    return statistics.median(rounds), statistics.median(gradients)


def predict(build, experiment, network, folder):
    """Milliseconds of a round."""
    path = os.path.join(folder, "p.json")
    with open(path, "w") as file:
        json.dump({**experiment, "network": network}, file)
    command = [os.path.join(build, "tools", "starling"), "sim", path, "--out", f"{folder}/sim"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    with open(os.path.join(folder, "sim", "summary.json")) as file:
        return 1e3 * json.load(file)["predicted_seconds"] / experiment["rounds"]


def main():
    if sys.argv[1:2] == ["--exchange"]:
        exchange(sys.argv[2].split(","), int(sys.argv[3]), sys.argv[4])
        return
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="of a run (default 30)")
    parser.add_argument("--only", default="", help="of cases whose name holds this")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    print(f"{options.rounds} rounds, {os.cpu_count()} cores\n")
    heads = "Mbit/s", "ms", "sockets Mbit/s", "measured ms", "predicted ms", "ratio"
    _bench.print_heads("", "nodes", *heads)
    for name, topology, algorithm, mbit, ms in CASES:
        if options.only not in name:
            continue
        experiment = experiment_of(topology, algorithm, options.rounds)
        count = topology["nodes"]
        with Links(build, count, mbit, ms) as links, tempfile.TemporaryDirectory() as folder:
            rate = rate_of(links, name, count, ms)
            measured, gradient = measure(build, links, experiment, folder)
            network = {"bandwidth_mbit": rate, "latency_ms": ms, "gradient_ms": gradient}
            predicted = predict(build, experiment, network, folder)
        row = f"{rate:.0f}", f"{measured:.1f}", f"{predicted:.1f}", f"{predicted / measured:.2f}"
        _bench.print_row(name, count, mbit, ms, *row)


if __name__ == "__main__":
    main()
