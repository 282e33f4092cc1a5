#!/usr/bin/env python3
"""The table of overlap.sh: where a round's time went, from the agents' metrics.

usage: overlap.py FOLDER     FOLDER holds VARIANT-RANK/metrics-RANK.jsonl of two agents, for both
variants
"""
import json
import os
import sys

OVERLAPPED, ONE_AFTER_THE_OTHER = "combine-while-adapt", "adapt-then-combine"
TARGET = 1.10


def per_round(folder, variant, rank):
    """ms of an average round: total, gradient, exchange"""
    with open(os.path.join(folder, f"{variant}-{rank}", f"metrics-{rank}.jsonl")) as file:
        last = json.loads(file.readlines()[-1])
    return [
        1e3 * last["seconds"][part] / last["round"] for part in ("total", "gradient", "exchange")
    ]


def main():
    folder = sys.argv[1]
    # Of the slower agent: a round is over when both are done.
    times = {
        variant: list(map(max, zip(*(per_round(folder, variant, rank) for rank in (0, 1)))))
        for variant in (OVERLAPPED, ONE_AFTER_THE_OTHER)
    }
    print(f"{'':22}{'round ms':>10}{'gradient':>10}{'exchange':>10}{'round / longer':>16}")
    for variant, (total, gradient, exchange) in times.items():
        print(
            f"{variant:22}{total:10.2f}{gradient:10.2f}{exchange:10.2f}"
            f"{total / max(gradient, exchange):16.3f}"
        )
    # Side by side the two share cores and memory, and each may take longer than alone.
    alone = max(times[ONE_AFTER_THE_OTHER][1:])
    print(
        f"target of {OVERLAPPED}: {TARGET:.2f} x the longer of its own; against the longer of the"
        f" two alone: {times[OVERLAPPED][0] / alone:.3f}"
    )


if __name__ == "__main__":
    main()
