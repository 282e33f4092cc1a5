#!/usr/bin/env python3
"""Every form of Starling's all-reduce beside Open MPI's own algorithms (btl tcp,self; its tuned
collectives forced in turn) and what it takes by itself, on one host. In one run, in turns.

The tables are Markdown (docs/benchmarks.md).

usage: all_reduce_forms.py ...     meson compile -C BUILD gossip_agents peer_mpi
"""
import statistics
import sys

import _bench
from all_reduce import AVERAGE

FORMS = (
    *("ring", "tree", "recursive-doubling", "halving-doubling"),
    *("hierarchical", "torus-2d", "two-rings", "double-tree", "star"),
)
# coll_tuned_allreduce_algorithm, from 1 on
TUNED = ("linear", "non-overlapping", "recursive doubling", "ring", "segmented ring")
TUNED += ("Rabenseifner",)
SIZES = {"1 KB": (256, 200), "1 MB": (262_144, 40), "100 MB": (26_214_400, 3)}  # floats, rounds


def programs_for(build, nodes, dimension, rounds, keys):
    size = [str(dimension), str(rounds)]
    by_form = [_bench.needed(build, "gossip_agents"), str(nodes), *size, *AVERAGE, *keys]
    found = {f"Starling {form}": [*by_form, f"algorithm.all_reduce={form}"] for form in FORMS}
    found["Open MPI by itself"] = _bench.mpi(build, nodes, *size, "allreduce", ways=())
    for number, name in enumerate(TUNED, 1):
        forced = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        forced += ["--mca", "coll_tuned_allreduce_algorithm", str(number)]
        found[f"Open MPI {name}"] = _bench.mpi(build, nodes, *size, "allreduce", forced=forced)
    return found


def main():
    parser = _bench.parser_of(__doc__, repetitions=3)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE", help="of Starling's experiment"
    )
    options = parser.parse_args()
    if not _bench.has_mpi(options.build):
        sys.exit("needs mpirun and meson compile -C BUILD gossip_agents peer_mpi")
    for size in options.sizes:
        programs = programs_for(options.build, options.nodes, *SIZES[size], options.set)
        times = _bench.in_turns(programs, options.repetitions)
        print(f"\nAll-reduce of {size}, N = {options.nodes}\n")
        _bench.print_heads("program", "median ms", "least")
        for name in sorted(times, key=lambda name: statistics.median(times[name])):
            _bench.print_row(
                name, f"{statistics.median(times[name]):.3g}", f"{min(times[name]):.3g}"
            )


if __name__ == "__main__":
    main()
