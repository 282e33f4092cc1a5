#!/usr/bin/env python3
"""Gossip rounds of two builds, in turns: medians, and the ratio of the second to the first.

usage: builds.py BEFORE NOW [--turns N]     each a build folder with `meson compile gossip_agents`
"""
import argparse
import json
import os
import statistics
import subprocess

CASES = [(4, 1_000_000, 200), (8, 1_000_000, 100), (4, 25_500_000, 8)]  # nodes, d, rounds


def round_ms(build, sizes):
    program = os.path.join(build, "tests", "bench", "gossip_agents")
    words = [program, *map(str, sizes)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("--turns", type=int, default=5)
    o = parser.parse_args()
    print("| nodes | d | before | now | ratio |\n|---|---|---|---|---|")
    for sizes in CASES:
        found = {o.before: [], o.now: []}
        for _ in range(o.turns):
            for build, times in found.items():
                times.append(round_ms(build, sizes))
        before, now = (statistics.median(times) for times in found.values())
        print(
            f"| {sizes[0]} | {sizes[1]:,} | {before:.2f} ms | {now:.2f} ms | {now / before:.3f} |"
        )


if __name__ == "__main__":
    main()
