#!/usr/bin/env python3
"""Eight real agents, one of them four times slower: who waits for it? First it is always the same
one, then another one every 200 ms, by turns.

Gradients sleep, so cores do not decide. Of each algorithm: seconds from the first round until the
mean held-out loss of all models is at the target, and the gradients a second of those that are not
always slow, as a share of d-psgd's without a slow one. The tables are Markdown
(docs/benchmarks.md).

usage: stragglers.py [--build BUILD] [--rounds N] [--target LOSS]
"""
import tempfile

import _bench
from _links import Loopback, agents, slow_gradients

NODES, PAUSE_US, SLOWER, TURN_MS = 8, 4000, 4, 200
VARIANTS = [
    ("d-psgd", "d-psgd"),
    ("staleness 4", {"name": "d-psgd", "staleness": 4}),
    ("ad-psgd", "ad-psgd"),
    ("ad-psgd, beside", {"name": "ad-psgd", "average": "beside"}),
    ("ssp, 3", {"name": "ssp", "staleness": 3, "server": 1}),
    ("ssp, 3 to 15", {"name": "ssp", "staleness": 3, "staleness_max": 15, "server": 1}),
    ("ssp, unbounded", {"name": "ssp", "staleness": "unbounded", "server": 1}),
]
SLOW = {  # what a rank's environment says
    "one 4 times slower": lambda rank: {"STARLING_PAUSE_US": str(PAUSE_US * SLOWER ** (rank == 0))},
    "one by turns": lambda rank: {"STARLING_TURNS": f"{rank} {NODES} {TURN_MS} {SLOWER}"},
}


def run(build, folder, algorithm, slow, rounds):
    """Of each agent its lines of metrics. slow: what a rank's environment says of its speed."""
    experiment = {
        "rounds": rounds,
        "topology": {"nodes": NODES, "family": "ring"},
        "algorithm": algorithm,
        "optimizer": {"learning_rate": 0.1},
        "model": "softmax",
        "data": {"name": "digits", "batch": 8},
        "record": {"every": 20, "models": "none"},
    }
    pause = slow_gradients(build, PAUSE_US)
    return agents(build, Loopback(), experiment, folder, lambda rank: {**pause, **slow(rank)})


def seconds_to(lines, target):
    """When the mean over agents of their last losses so far is at the target."""
    last = [float("inf")] * NODES
    events = sorted((line["seconds"]["total"], i, line["test_loss"])
                    for i, own in enumerate(lines) for line in own)
    for seconds, rank, loss in events:
        last[rank] = loss
        if sum(last) / NODES <= target:
            return seconds
    return float("nan")


def rate_of(lines):
    """Gradients a second of an agent, mean over all but the first one, while they have some to
    do."""
    return sum(own[-2]["round"] / own[-2]["seconds"]["total"] for own in lines[1:]) / (NODES - 1)


def measure(build, algorithm, slow, arguments):
    """Seconds to the target, and the rate."""
    with tempfile.TemporaryDirectory() as folder:
        lines = run(build, folder, algorithm, slow, arguments.rounds)
    return seconds_to(lines, arguments.target), rate_of(lines)


def main():
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--target", type=float, default=1.2)
    arguments = parser.parse_args()
    build = arguments.build
    seconds, best = measure(build, "d-psgd", lambda rank: {}, arguments)
    for what, slow in SLOW.items():
        _bench.print_heads(f"8 agents, {what}", "s to the loss", "gradients/s of the other 7")
        _bench.print_row("d-psgd, none slow", f"{seconds:.2f}", "100 %")
        for name, algorithm in VARIANTS:
            took, rate = measure(build, algorithm, slow, arguments)
            _bench.print_row(name, f"{took:.2f}", f"{100 * rate / best:.0f} %")
        print()


if __name__ == "__main__":
    main()
