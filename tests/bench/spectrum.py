#!/usr/bin/env python3
"""Spectra of large topologies beside scipy's ARPACK, and graphs beside networkx, in one run.

Every program is a process of its own on one core. Seconds are seconds of that core (user and
system), so that other work on the machine disturbs less; memory is the peak of the process.
Starling's are those of whole commands: reading the file, drawing the graph, checking it. scipy's
are those of eigsh alone, on the matrix of the same graph; its memory is with the matrix. A peer
that is not done after --limit seconds is stopped; one that is not installed is not measured. The
table is Markdown (docs/benchmarks.md).

usage: spectrum.py [STARLING] [--limit SECONDS] [--only TEXT]
"""
import argparse
import importlib.util
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

import _bench

ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
TOLERANCE, OURS_LIMIT_S = 1e-9, 600


# ---- one process at a time ----


def run(command, limit):
    """(seconds of a core, peak MB, standard output) or (None, None, "") past the limit, in seconds
    of a core too."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            env=ENVIRONMENT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
        )
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status) == -signal.SIGXCPU:
            return None, None, ""
        if status != 0:
            sys.exit(f"{' '.join(command)}: exit code {os.waitstatus_to_exitcode(status)}")
        output.seek(0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output.read()


class Starling:
    def __init__(self, program, folder, limit):
        self.program, self.folder, self.limit = program, folder, limit

    def call(self, *arguments):
        """(seconds, MB, output)"""
        return run([self.program, *map(str, arguments)], OURS_LIMIT_S)

    def make(self, family, nodes, *options):
        """(path of the topology file, seconds)"""
        path = os.path.join(self.folder, "topology.json")
        done = self.call("topology", "make", family, "--nodes", nodes, *options, "-o", path)
        return path, done[0]

    def analyse(self, path):
        """(seconds, MB, findings), which are more than the spectrum"""
        seconds, megabytes, output = self.call("topology", "analyse", "--json", path)
        return seconds, megabytes, json.loads(output)

    def peer(self, name, *arguments):
        """What it printed, with its peak MB; {} past the limit; None where it is not installed."""
        modules = PEERS[name][1]
        if not all(importlib.util.find_spec(module) for module in modules):
            return None
        command = [sys.executable, os.path.abspath(__file__), "--peer", name]
        _, megabytes, output = run([*command, *map(str, arguments)], self.limit)
        return {**json.loads(output), "megabytes": megabytes} if output else {}

    def peer_on(self, name, family, nodes, *options):
        """A peer on the matrix of this topology."""
        matrix = os.path.join(self.folder, "matrix.npz")
        listed, _ = self.make(family, nodes, *options, "--expand")
        return None if self.peer("save", listed, matrix) is None else self.peer(name, matrix)


# ---- what runs in the peers' processes ----


def save_matrix(topology, path):
    """From a file that lists all edges with their weights, own ones included."""
    import numpy
    import scipy.sparse

    with open(topology) as file:
        content = json.load(file)
    columns, rows, weights = numpy.array(content["edges"]).T
    places = (rows.astype(int), columns.astype(int))
    matrix = scipy.sparse.csr_matrix((weights, places), shape=(content["nodes"],) * 2)
    scipy.sparse.save_npz(path, matrix, compressed=False)
    return {}


def both_ends(path):
    """lambda_2 and lambda_n by eigsh."""
    import scipy.sparse
    from scipy.sparse.linalg import eigsh

    w = scipy.sparse.load_npz(path)
    began = time.process_time()
    upper = eigsh(w, k=2, which="LA", tol=TOLERANCE, return_eigenvectors=False)
    least = eigsh(w, k=1, which="SA", tol=TOLERANCE, return_eigenvectors=False)
    seconds = time.process_time() - began
    return {"seconds": seconds, "lambda_2": min(upper), "lambda_n": least[0]}


def networkx_regular(degree, nodes):
    import networkx

    began = time.process_time()
    networkx.random_regular_graph(int(degree), int(nodes), seed=1)
    return {"seconds": time.process_time() - began}


PEERS = {
    "save": (save_matrix, ("scipy", "numpy")),
    "scipy eigsh": (both_ends, ("scipy", "numpy")),
    "networkx": (networkx_regular, ("networkx",)),
}


# ---- the table ----


def number(value, digits=3):
    return "-" if value is None else f"{value:.{digits}g}"


def row(case, seconds, megabytes, name="-", other=None, limit=0, difference="-"):
    """other: None where there is none, or it is not installed; {} where it was stopped."""
    stopped = other == {}
    other = other or {}
    theirs = f"not after {limit} s" if stopped else number(other.get("seconds"))
    memory = number(other.get("megabytes"))
    _bench.print_row(case, f"{seconds:.2f}", number(megabytes), name, theirs, memory, difference)


def difference(found, other):
    """Of the eigenvalues."""
    if not other:
        return "-"
    return f"{max(abs(found[key] - other[key]) for key in ('lambda_2', 'lambda_n')):.1g}"


def regular_1e6(starling):
    """`check` finds the spectrum and little else; `analyse` says whether it has converged."""
    case, graph = "random 4-regular, n = 10⁶: λ₂, λₙ", ("random-regular", 1_000_000, "--degree", 4)
    path, _ = starling.make(*graph)
    seconds, megabytes, _ = starling.call("check", path)
    _, _, found = starling.analyse(path)
    if not found["spectrum"]["converged"]:
        sys.exit(f"{case}: not converged")
    other = starling.peer_on("scipy eigsh", *graph)
    apart = difference(found, other)
    row(case, seconds, megabytes, "scipy eigsh", other, starling.limit, apart)


def drawing_1e6(starling):
    _, seconds = starling.make("random-regular", 1_000_000, "--degree", 4)
    other = starling.peer("networkx", 4, 1_000_000)
    case = "drawing a random 4-regular graph, n = 10⁶"
    row(case, seconds, None, "networkx", other, starling.limit)


def ring_1e6(starling):
    path, _ = starling.make("ring", 1_000_000)
    seconds, megabytes, found = starling.analyse(path)
    known = 4 / 3 * math.sin(math.pi / 1_000_000) ** 2
    case = f"ring, n = 10⁶: 1 − ρ = {found['gap']:.17g}"
    apart = f"{abs(found['gap'] / known - 1):.1g}, relative"
    row(case, seconds, megabytes, "4/3 sin²(π/n)", None, 0, apart)


CASES = {case.__name__: case for case in (ring_1e6, drawing_1e6, regular_1e6)}


def main():
    if sys.argv[1:2] == ["--peer"]:
        print(json.dumps(PEERS[sys.argv[2]][0](*sys.argv[3:])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    command = os.path.join(_bench.ROOT, "build", "tools", "starling")
    parser.add_argument("starling", nargs="?", default=command)
    parser.add_argument("--limit", type=int, default=200, help="seconds of a core of a peer")
    parser.add_argument("--only", default="", help=f"cases with this text: {', '.join(CASES)}")
    asked = parser.parse_args()
    if not any(asked.only in name for name in CASES):
        parser.error(f"--only {asked.only}: no case's name contains this")
    _bench.print_heads("case", "Starling s", "MB", "peer", "s", "MB", "difference")
    with tempfile.TemporaryDirectory() as folder:
        starling = Starling(os.path.abspath(asked.starling), folder, asked.limit)
        for name, case in CASES.items():
            if asked.only in name:
                case(starling)


if __name__ == "__main__":
    main()
