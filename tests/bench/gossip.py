#!/usr/bin/env python3
"""Starling's gossip round beside the same round in OpenMPI and in plain sockets, on this machine,
in one run.

A cell is the median over the repetitions of each run's median round. A round lasts from the first
agent's start to the last one's end. The tables are Markdown (docs/benchmarks.md).

usage: gossip.py [--nodes N ...] ...     meson compile -C BUILD peer_mpi peer_sockets gossip_agents
"""
import sys

import _bench

DIMENSIONS = (1_000_000, _bench.RESNET50)
STARLING, MPI, SOCKETS = "Starling", "OpenMPI Isend/Irecv", "plain sockets"
MPI_TCP, ALLREDUCE = MPI + ", tcp", "OpenMPI Allreduce, tcp"
HEADINGS = (STARLING, MPI, MPI_TCP, SOCKETS, ALLREDUCE)


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
        found[MPI] = _bench.mpi(build, nodes, *size, ways=())
        found[MPI_TCP] = _bench.mpi(build, nodes, *size)
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
    missing = [name for name in HEADINGS if name not in commands(options.build, 2, 1, [])]
    for name in missing:
        print(f"{name}: not built in {options.build}")
    if len(missing) == len(HEADINGS):
        return 1
    for dimension in options.dimension:
        cases = [
            (nodes, commands(options.build, nodes, dimension, options.set))
            for nodes in options.nodes
        ]
        _bench.print_table("Gossip on a ring, loopback", dimension, options.repetitions, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
