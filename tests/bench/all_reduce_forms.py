#!/usr/bin/env python3
"""Every form of Starling's all-reduce beside Open MPI's own algorithms (btl tcp,self; its tuned
collectives forced in turn), on loopback. In one run, in turns.

Builds nothing: meson compile -C BUILD gossip_agents peer_mpi. The tables are Markdown
(docs/benchmarks.md).
"""
import argparse
import os
import shutil
import sys

import gossip
from all_reduce import AVERAGE, in_turns

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


def programs_for(agents, mpi, nodes, dimension):
    rounds = 200 if dimension < 10_000 else 40 if dimension < 1_000_000 else 3
    size = [str(dimension), str(rounds)]
    found = {
        f"Starling {form}": [agents, str(nodes), *size, *AVERAGE, f"algorithm.all_reduce={form}"]
        for form in FORMS
    }
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
    options = parser.parse_args()
    agents = os.path.join(options.build, "tests", "bench", "gossip_agents")
    mpi = os.path.join(options.build, "tests", "bench", "peer_mpi")
    if not os.access(agents, os.X_OK) or not os.access(mpi, os.X_OK) or not shutil.which("mpirun"):
        sys.exit("needs mpirun and meson compile -C BUILD gossip_agents peer_mpi")
    for size in options.sizes:
        times = in_turns(programs_for(agents, mpi, options.nodes, SIZES[size]), options.repetitions)
        print(
            f"\nAll-reduce of {size}, N = {options.nodes}: median ms\n\n| program | ms |\n|---|--:|"
        )
        for name in sorted(times, key=times.get):
            print(f"| {name} | {times[name]:.3g} |", flush=True)


if __name__ == "__main__":
    main()
