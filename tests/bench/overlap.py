#!/usr/bin/env python3
"""A round whose messages leave beside the backward pass, in each way of transport.overlap, next to
one whose message waits for the whole gradient, on a slow link.

Two agents train ResNet-18's table, each in a network namespace, with slow links between them
(links.c; root, iproute2). A gradient is said to take 3/2 of what a message takes on the link:
a third forward, and backward as long as the exchange. Turns alternate. A round is the median of all
but the first; the table has medians over the turns, in Markdown (docs/benchmarks.md).

usage: overlap.py [--build BUILD] [--mbit R] [--rounds N] [--turns N]
                                                          meson compile -C BUILD links
"""
import os
import statistics
import tempfile

import _bench
from _links import Links, agents

NODES, HEADERS = 2, 1.04
DIMENSION = 11_689_512
OPERATIONS = 6 * 1.814e9  # of a sample's gradient
WAYS = ("none", "layers", "merged", "partitioned")
CASES = {
    "d-psgd": {"topology": {"nodes": NODES, "family": "path"}, "algorithm": "d-psgd"},
    "all-reduce, recursive doubling": {
        "topology": {"nodes": NODES, "family": "path"},
        "algorithm": {"name": "all-reduce", "all_reduce": "recursive-doubling"},
    },
    "all-reduce, ring": {
        "topology": {"nodes": NODES, "family": "path"},
        "algorithm": {"name": "all-reduce", "all_reduce": "ring"},
    },
}


def experiment_of(case, way, options):
    exchange_s = HEADERS * 32 * DIMENSION / (1e6 * options.mbit)
    return {
        **CASES[case],
        "rounds": options.rounds,
        "model": {
            "name": "synthetic",
            "table": "resnet18",
            "gflops": OPERATIONS / (1.5 * exchange_s) / 1e9,
        },
        "data": {"batch": 1},
        "optimizer": {"learning_rate": 0.01},
        "record": {"every": 1, "models": "none"},
        "transport": {"overlap": way, "connect_timeout_s": 60},
        "network": {"bandwidth_mbit": options.mbit, "latency_ms": 0.1},
        "security": {"mode": "none", "trusted_network": True},
    }


def run(links, case, way, options, folder):
    """The median round, in seconds."""
    rounds = []
    for lines in agents(options.build, links, experiment_of(case, way, options), folder):
        ends = [line["seconds"]["total"] for line in lines]
        rounds += [after - before for before, after in zip(ends, ends[1:])]
    return statistics.median(rounds)


def main():
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--mbit", type=float, default=100, help="of the link (default 100)")
    parser.add_argument("--rounds", type=int, default=4, help="of a run (default 4)")
    parser.add_argument("--turns", type=int, default=3, help="of each way (default 3)")
    options = parser.parse_args()
    took = {(case, way): [] for case in CASES for way in WAYS}
    with Links(options.build, NODES, options.mbit, 0) as links:
        for _ in range(options.turns):
            for case, way in took:
                with tempfile.TemporaryDirectory(prefix="starling-overlap-") as folder:
                    took[case, way].append(run(links, case, way, options, folder))
    print(
        f"ResNet-18's table, d = {DIMENSION:,}, {NODES} agents, {options.mbit:g} Mbit/s, "
        f"{os.cpu_count()} cores, {options.turns} turns of {options.rounds} rounds\n"
    )
    _bench.print_heads("", "none ms", *(f"{way} ms, ratio" for way in WAYS[1:]))
    for case in CASES:
        cells = [f"{1e3 * statistics.median(took[case, WAYS[0]]):.0f}"]
        for way in WAYS[1:]:
            ratio = statistics.median(b / a for a, b in zip(took[case, "none"], took[case, way]))
            cells.append(f"{1e3 * statistics.median(took[case, way]):.0f}, {ratio:.2f}")
        _bench.print_row(case, *cells)


if __name__ == "__main__":
    main()
