#!/usr/bin/env python3
"""Starling's exchanges beside its peers', on one host, in turns: the tables of docs/benchmarks.md.

    gossip       a gossip round beside OpenMPI's (memory, tcp), and beside what memory allows
    all-reduce   the ring all-reduce beside MPI_Allreduce, and Gloo's through PyTorch
    forms        every form of all-reduce beside Open MPI's own algorithms, forced in turn
    compressed   a CHOCO-SGD round beside a dense one; with --mbit on links of that rate (root)

A cell is the median over the repetitions of each run's median round. A round lasts from the first
agent's start to the last one's end.

usage: gossip.py TABLE [--nodes N ...] ...     meson compile -C BUILD peer_mpi gossip_agents links
"""
import contextlib
import importlib.util
import os
import sys

import _bench
from _links import Links

# Of the models themselves, at learning rate 0.
AVERAGE = ["algorithm.name=local-sgd", "algorithm.period=1"]
TOP = ["algorithm.compressor.name=top-k", "algorithm.compressor.fraction=0.01"]
CHOCO = ["algorithm.name=choco-sgd", *TOP]
FORMS = (
    *("ring", "tree", "recursive-doubling", "halving-doubling"),
    *("hierarchical", "torus-2d", "two-rings", "double-tree", "star"),
)
# coll_tuned_allreduce_algorithm, from 1 on
TUNED = ("linear", "non-overlapping", "recursive doubling", "ring", "segmented ring")
TUNED += ("Rabenseifner",)
FEW = {"gossip": (1_000_000, _bench.RESNET50), "forms": (256, 262_144, 26_214_400)}


def ours(options, nodes, size, *keys):
    program = _bench.needed(options.build, "gossip_agents")
    return [program, str(nodes), *size, *keys, *options.set]


def gossip(options, nodes, size):
    """name -> command"""
    found = {"Starling": ours(options, nodes, size)}
    if _bench.has_mpi(options.build) and not options.beside:
        found["OpenMPI"] = _bench.mpi(options.build, nodes, *size, ways=())
        found["OpenMPI, tcp"] = _bench.mpi(options.build, nodes, *size)
        found["memory"] = _bench.mpi(options.build, nodes, *size, "memory", ways=())
    return found


def all_reduce(options, nodes, size):
    found = {"Starling": ours(options, nodes, size, *AVERAGE)}
    if _bench.has_mpi(options.build):
        found["OpenMPI"] = _bench.mpi(options.build, nodes, *size, "allreduce")
    if importlib.util.find_spec("torch"):
        found["Gloo"] = [sys.executable, f"{_bench.HERE}/peer_gloo.py", str(nodes), *size]
    return found


def forms(options, nodes, size):
    keys = {form: [*AVERAGE, f"algorithm.all_reduce={form}"] for form in FORMS}
    found = {f"Starling {form}": ours(options, nodes, size, *keys[form]) for form in FORMS}
    if _bench.has_mpi(options.build):
        found["OpenMPI"] = _bench.mpi(options.build, nodes, *size, "allreduce", ways=())
    for number, name in enumerate(TUNED if _bench.has_mpi(options.build) else (), 1):
        forced = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        forced += ["--mca", "coll_tuned_allreduce_algorithm", str(number)]
        found[f"OpenMPI {name}"] = _bench.mpi(
            options.build, nodes, *size, "allreduce", forced=forced
        )
    return found


def compressed(options, nodes, size):
    found = {}
    for name, rounds, keys in (("CHOCO top-1 %", "8", CHOCO), ("D-PSGD", "1", [])):
        slow = [size[0], rounds] if options.mbit else size
        found[name] = ours(options, nodes, slow, *keys)
    return found


TABLES = {"gossip": gossip, "all-reduce": all_reduce, "forms": forms, "compressed": compressed}


def tell_forms(dimension, repetitions, cases):
    for nodes, programs in cases:
        times = _bench.medians(programs, repetitions)
        _bench.print_heads(f"all-reduce of {4 * dimension} bytes, N = {nodes}", "median ms")
        for name in sorted(times, key=times.get):
            _bench.print_row(name, f"{times[name]:.3g}")


def main():
    parser = _bench.parser_of(__doc__, repetitions=3)
    parser.add_argument("table", choices=list(TABLES))
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--dimension", type=int, nargs="+")
    parser.add_argument("--mbit", type=float, help="of each agent's link; default: loopback")
    parser.add_argument("--beside", metavar="BUILD", help="another Starling, without what is set")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    links = contextlib.nullcontext()
    if options.mbit:
        links = Links(options.build, options.nodes[-1], options.mbit, 0)
        os.environ["GOSSIP_NETNS"] = links.prefix
    with links:
        for d in options.dimension or FEW.get(options.table, (_bench.RESNET50,)):
            cases = []
            for nodes in options.nodes[-1:] if options.mbit else options.nodes:
                size = [str(d), str(_bench.rounds_for(nodes, d))]
                programs = TABLES[options.table](options, nodes, size)
                if options.beside and "Starling" in programs:
                    keys = [key for key in programs["Starling"][1:] if key not in options.set]
                    programs["the other"] = [_bench.needed(options.beside, "gossip_agents"), *keys]
                cases.append((nodes, programs))
            if options.table == "forms":
                tell_forms(d, options.repetitions, cases)
            else:
                _bench.print_table(options.table, d, options.repetitions, cases)


if __name__ == "__main__":
    main()
