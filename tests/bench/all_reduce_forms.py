#!/usr/bin/env python3
"""Every form of Starling's all-reduce beside Open MPI's own algorithms (btl tcp,self; its tuned
collectives forced in turn), on loopback. In one run, in turns.

Builds nothing: meson compile -C BUILD gossip_agents peer_mpi. The tables are Markdown
(docs/benchmarks.md).
"""
import argparse
import os
import shutil
import statistics
import sys

import gossip
from all_reduce import AVERAGE, all_in_turns

FORMS = (
    *("ring", "tree", "recursive-doubling", "halving-doubling"),
    *("hierarchical", "torus-2d", "two-rings", "double-tree", "star"),
)
TUNED = {  # coll_tuned_allreduce_algorithm
    "linear": 1,
    "non-overlapping": 2,
    "recursive doubling": 3,
    "ring": 4,
    "segmented ring": 5,
    "Rabenseifner": 6,
}
SIZES = {"1 KB": 256, "1 MB": 262_144, "100 MB": 26_214_400}  # floats


def programs_for(agents, mpi, nodes, dimension, keys):
    rounds = 200 if dimension < 10_000 else 40 if dimension < 1_000_000 else 3
    size = [str(dimension), str(rounds)]
    by_form = [agents, str(nodes), *size, *AVERAGE, *keys]
    found = {f"Starling {form}": [*by_form, f"algorithm.all_reduce={form}"] for form in FORMS}
    for name, number in TUNED.items():
        forced = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        forced += ["--mca", "coll_tuned_allreduce_algorithm", str(number)]
        found[f"Open MPI {name}"] = [
            *gossip.MPIRUN,
            *forced,
            *("-n", str(nodes), mpi, *size, "allreduce"),
        ]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--build",
        default=os.path.join(gossip.HERE, "..", "..", "build"),
        help="build folder (default build)",
    )
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE", help="of Starling's experiment"
    )
    options = parser.parse_args()
    agents = os.path.join(options.build, "tests", "bench", "gossip_agents")
    mpi = os.path.join(options.build, "tests", "bench", "peer_mpi")
    if not os.access(agents, os.X_OK) or not os.access(mpi, os.X_OK) or not shutil.which("mpirun"):
        sys.exit("needs mpirun and meson compile -C BUILD gossip_agents peer_mpi")
    for size in options.sizes:
        programs = programs_for(agents, mpi, options.nodes, SIZES[size], options.set)
        times = all_in_turns(programs, options.repetitions)
        print(f"\nAll-reduce of {size}, N = {options.nodes}\n")
        print("| program | median ms | least |\n|---|--:|--:|")
        for name in sorted(times, key=lambda name: statistics.median(times[name])):
            print(f"| {name} | {statistics.median(times[name]):.3g} | {min(times[name]):.3g} |")


if __name__ == "__main__":
    main()
