#!/usr/bin/env python3
"""Gossip rounds of two builds, in turns: medians, and the ratio of the second to the first.

usage: builds.py BEFORE NOW [--turns N]     each a build folder with `meson compile gossip_agents`
"""
import argparse

import _bench

CASES = [(4, 1_000_000, 200), (8, 1_000_000, 100), (4, 25_500_000, 8)]  # nodes, d, rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("--turns", type=int, default=5)
    o = parser.parse_args()
    _bench.print_heads("nodes", "d", "before", "now", "ratio", texts=0)
    for sizes in CASES:
        commands = {
            which: [_bench.needed(build, "gossip_agents"), *map(str, sizes)]
            for which, build in (("before", o.before), ("now", o.now))
        }
        found = _bench.medians(commands, o.turns)
        cells = [f"{found[which]:.2f} ms" for which in commands]
        _bench.print_row(sizes[0], f"{sizes[1]:,}", *cells, _bench.ratio(found, "now", "before", 3))


if __name__ == "__main__":
    main()
