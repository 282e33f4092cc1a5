#!/usr/bin/env python3
"""Starling's gossip round beside the same round in OpenMPI and in plain sockets, on this machine,
in one run.

Builds nothing: meson compile -C BUILD peer_mpi peer_sockets gossip_agents. The programs run in
turns, several times over, so that whatever else the machine does meets them all alike; a cell is
the median over the repetitions of each run's median round. A round lasts from the first agent's
start to the last one's end. The tables are Markdown (docs/benchmarks.md).
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DIMENSIONS = (1_000_000, 25_557_032)  # the second is ResNet-50's size
MPIRUN = [
    "mpirun",
    "--oversubscribe",
    "--allow-run-as-root",
    "--mca",
    "pml",
    "ob1",
    "--mca",
    "btl",
    "tcp,self",
    "--mca",
    "btl_tcp_if_include",
    "lo",
]
MPI, SOCKETS, STARLING, ALLREDUCE = "mpi", "sockets", "starling", "mpi-allreduce"
HEADINGS = {
    STARLING: "Starling",
    MPI: "OpenMPI Isend/Irecv",
    SOCKETS: "plain sockets",
    ALLREDUCE: "OpenMPI Allreduce",
}


def commands(build, nodes, dimension, rounds, overrides):
    """program -> command line, for the programs that have been built."""

    def built(name):
        path = os.path.join(build, "tests", "bench", name)
        return path if os.access(path, os.X_OK) else None

    size = [str(dimension), str(rounds)]
    found = {}
    if built("gossip_agents"):
        found[STARLING] = [built("gossip_agents"), str(nodes), *size, *overrides]
    if built("peer_mpi") and shutil.which("mpirun"):
        mpi = [*MPIRUN, "-n", str(nodes), built("peer_mpi"), *size]
        found[MPI] = mpi
        found[ALLREDUCE] = [*mpi, "allreduce"]
    if built("peer_sockets"):
        found[SOCKETS] = [built("peer_sockets"), str(nodes), *size]
    return found


def measure(command):
    """Median round in ms of one run; None, with the reason on stderr, when it fails."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        print(f"{command}: still running after 600 s", file=sys.stderr)
        return None
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode != 0 or not lines:
        print(
            f"{' '.join(command)}: exit code {ended.returncode}\n{ended.stderr.strip()}",
            file=sys.stderr,
        )
        return None
    return json.loads(lines[-1])["median_ms"]


def rounds_for(nodes, dimension):
    """About three seconds of rounds."""
    return max(6, min(80, int(3e9 / (dimension * 2.5 * nodes))))


def case(build, nodes, dimension, repetitions, overrides):
    """program -> median of medians in ms."""
    programs = commands(build, nodes, dimension, rounds_for(nodes, dimension), overrides)
    times = {name: [] for name in programs}
    names = list(programs)
    for repetition in range(repetitions):
        shift = repetition % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            ms = measure(programs[name])
            if ms is not None:
                times[name].append(ms)
    return {name: statistics.median(values) for name, values in times.items() if values}


def cell(result, name):
    return f"{result[name]:.2f}" if name in result else "-"


def ratio(result, name):
    return (
        f"{result[STARLING] / result[name]:.2f}" if STARLING in result and name in result else "-"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--build",
        default=os.path.join(HERE, "..", "..", "build"),
        help="build folder (default build)",
    )
    parser.add_argument("--repetitions", type=int, default=3)
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

    have = commands(options.build, 2, 1, 1, [])
    for name in HEADINGS:
        if name not in have:
            print(
                f"{HEADINGS[name]}: not built in {options.build} (meson compile -C BUILD peer_mpi"
                " peer_sockets gossip_agents)"
            )
    if not have:
        return 1
    print(
        f"median ms per gossip round on a ring, loopback, {os.cpu_count()} cores,"
        f" {options.repetitions} repetitions in turns\n"
    )
    print(
        "| d | N | "
        + " | ".join(HEADINGS.values())
        + " | Starling / OpenMPI | Starling / sockets |"
    )
    print("|--:|--:|" + "--:|" * (len(HEADINGS) + 2))
    for dimension in options.dimension:
        for nodes in options.nodes:
            result = case(options.build, nodes, dimension, options.repetitions, options.set)
            cells = [
                f"{dimension:,}",
                str(nodes),
                *(cell(result, name) for name in HEADINGS),
                ratio(result, MPI),
                ratio(result, SOCKETS),
            ]
            print("| " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
