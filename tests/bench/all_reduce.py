#!/usr/bin/env python3
"""Starling's ring all-reduce beside OpenMPI's MPI_Allreduce and Gloo's through PyTorch; and a
CHOCO-SGD round beside a dense one. In one run, in turns.

Builds nothing: meson compile -C BUILD gossip_agents peer_mpi. The tables are Markdown
(docs/benchmarks.md).
"""
import argparse
import importlib.util
import os
import shutil
import statistics
import sys

import gossip

AVERAGE = [
    "algorithm.name=local-sgd",
    "algorithm.period=1",
]  # of the models themselves, at learning rate 0
CHOCO = [
    "algorithm.name=choco-sgd",
    "algorithm.compressor.name=top-k",
    "algorithm.compressor.fraction=0.01",
]


def all_in_turns(programs, repetitions):
    """name -> medians in ms, one of each repetition"""
    times = {name: [] for name in programs}
    for _ in range(repetitions):
        for name, command in programs.items():
            ms = gossip.measure(command)
            if ms is not None:
                times[name].append(ms)
    return {name: values for name, values in times.items() if values}


def in_turns(programs, repetitions):
    """name -> median of medians in ms"""
    found = all_in_turns(programs, repetitions)
    return {name: statistics.median(values) for name, values in found.items()}


def print_table(title, dimension, node_counts, repetitions, programs_for):
    print(
        f"\n{title}, d = {dimension:,}: median ms per round, {os.cpu_count()} cores,"
        f" {repetitions} repetitions in turns\n"
    )
    first = True
    for nodes in node_counts:
        programs = programs_for(nodes, gossip.rounds_for(nodes, dimension))
        result = in_turns(programs, repetitions)
        names = [name for name in programs if name in result]
        ours, others = names[0], names[1:]
        if first:
            print(
                "| N | "
                + " | ".join(names)
                + " | "
                + " | ".join(f"{ours} / {name}" for name in others)
                + " |"
            )
            print("|--:|" + "--:|" * (len(names) + len(others)))
            first = False
        cells = [f"{result[name]:.1f}" for name in names] + [
            f"{result[ours] / result[name]:.2f}" for name in others
        ]
        print(f"| {nodes} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--build",
        default=os.path.join(gossip.HERE, "..", "..", "build"),
        help="build folder (default build)",
    )
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--dimension", type=int, default=gossip.DIMENSIONS[1])
    options = parser.parse_args()
    agents = os.path.join(options.build, "tests", "bench", "gossip_agents")
    mpi = os.path.join(options.build, "tests", "bench", "peer_mpi")
    if not os.access(agents, os.X_OK):
        sys.exit(f"{agents} is not built (meson compile -C BUILD gossip_agents peer_mpi)")

    def averages(nodes, rounds):
        size = [str(nodes), str(options.dimension), str(rounds)]
        programs = {"Starling": [agents, *size, *AVERAGE]}
        if shutil.which("mpirun") and os.access(mpi, os.X_OK):
            programs["OpenMPI"] = [*gossip.MPIRUN, "-n", str(nodes), mpi, *size[1:], "allreduce"]
        if importlib.util.find_spec("torch"):
            programs["Gloo"] = [sys.executable, os.path.join(gossip.HERE, "peer_gloo.py"), *size]
        else:
            print(
                "Gloo: this Python has no torch (apt-get install python3-torch, and run with"
                " /usr/bin/python3)"
            )
        return programs

    def rounds_of_gossip(nodes, rounds):
        size = [str(nodes), str(options.dimension), str(rounds)]
        return {"CHOCO top-1 %": [agents, *size, *CHOCO], "D-PSGD": [agents, *size]}

    print_table("All-reduce", options.dimension, options.nodes, options.repetitions, averages)
    print_table(
        "Compressed beside dense gossip on a ring",
        options.dimension,
        options.nodes[-1:],
        options.repetitions,
        rounds_of_gossip,
    )


if __name__ == "__main__":
    main()
