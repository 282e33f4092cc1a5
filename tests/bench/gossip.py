#!/usr/bin/env python3
"""Starling's gossip round beside the same round in OpenMPI and in plain sockets, on this machine,
in one run.

A cell is the median over the repetitions of each run's median round. A round lasts from the first
agent's start to the last one's end. The tables are Markdown (docs/benchmarks.md).

usage: gossip.py [--nodes N ...] ...     meson compile -C BUILD peer_mpi peer_sockets gossip_agents
"""
import os
import sys

import _bench

DIMENSIONS = (1_000_000, _bench.RESNET50)
STARLING, MPI, SOCKETS = "Starling", "OpenMPI Isend/Irecv", "plain sockets"
ALLREDUCE = "OpenMPI Allreduce"
HEADINGS = (STARLING, MPI, SOCKETS, ALLREDUCE)


def commands(build, nodes, dimension, overrides):
    """program -> command line, for the programs that have been built."""
    rounds = _bench.rounds_for(nodes, dimension)
    size, found = [str(dimension), str(rounds)], {}
    for name, program, more in (
        (STARLING, "gossip_agents", overrides),
        (SOCKETS, "peer_sockets", ()),
    ):
        path = _bench.program_of(build, program)
        if path is not None:
            found[name] = [path, str(nodes), *size, *more]
    if _bench.has_mpi(build):
        found[MPI] = _bench.mpi(build, nodes, *size)
        found[ALLREDUCE] = _bench.mpi(build, nodes, *size, "allreduce")
    return found


def main():
    parser = _bench.parser_of(__doc__, repetitions=3)
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--dimension", type=int, nargs="+", default=list(DIMENSIONS))
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="overrides of our experiment",
    )
    options = parser.parse_args()
    have = commands(options.build, 2, 1, [])
    for name in HEADINGS:
        if name not in have:
            print(f"{name}: not built in {options.build}")
    if not have:
        return 1
    print(
        f"median ms per gossip round on a ring, loopback, {os.cpu_count()} cores,"
        f" {options.repetitions} repetitions in turns\n"
    )
    _bench.print_heads("d", "N", *HEADINGS, "Starling / OpenMPI", "Starling / sockets", texts=0)
    for dimension in options.dimension:
        for nodes in options.nodes:
            programs = commands(options.build, nodes, dimension, options.set)
            found = _bench.medians(programs, options.repetitions)
            cells = [f"{found[name]:.2f}" if name in found else "-" for name in HEADINGS]
            ratios = [_bench.ratio(found, STARLING, other) for other in (MPI, SOCKETS)]
            _bench.print_row(f"{dimension:,}", nodes, *cells, *ratios)
    return 0


if __name__ == "__main__":
    sys.exit(main())
