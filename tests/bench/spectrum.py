#!/usr/bin/env python3
"""Spectra of large topologies beside scipy's ARPACK, all eigenvalues beside numpy's LAPACK, and
graphs beside networkx, in one run.

Every program is a process of its own on one core. Seconds are seconds of that core (user and
system), so that other work on the machine disturbs less; memory is the peak of the process.
Starling's are those of whole commands: reading the file, drawing the graph, checking it. scipy's
are those of eigsh alone, on the matrix of the same graph; its memory is with the matrix. Residuals
are ||Wv - lambda v|| with |v| = 1, computed from the vectors. A peer that is not done after --limit
seconds is stopped; one that is not installed is not measured. The table is Markdown
(docs/benchmarks.md).

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

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
TOLERANCE = 1e-9


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
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def make(self, name, family, nodes, *options):
        """(path of the topology file, seconds)"""
        path = os.path.join(self.folder, name + ".json")
        seconds, _, _ = run(
            [self.program, "topology", "make", family, "--nodes", str(nodes), *options, "-o", path],
            600,
        )
        return path, seconds

    def spectrum(self, path, *options):
        """(seconds, MB, findings) of `topology analyse`, which finds more than the spectrum"""
        seconds, megabytes, output = run(
            [self.program, "topology", "analyse", "--json", *options, path], 600
        )
        return seconds, megabytes, json.loads(output)

    def check(self, path):
        """(seconds, MB) of `check`, which finds the spectrum and little else"""
        return run([self.program, "check", path], 600)[:2]


# ---- what runs in the peers' processes ----


def save_matrix(topology, path):
    """From a file that lists all edges with their weights, own ones included."""
    import numpy
    import scipy.sparse

    with open(topology) as file:
        content = json.load(file)
    columns, rows, weights = numpy.array(content["edges"]).T
    matrix = scipy.sparse.csr_matrix(
        (weights, (rows.astype(int), columns.astype(int))), shape=(content["nodes"],) * 2
    )
    scipy.sparse.save_npz(path, matrix, compressed=False)


def both_ends(path, shift):
    """lambda_2 and lambda_n by eigsh: of W, or with a shift by a factor of I - W near 0 (upper end)
    and by W (lower end)."""
    import numpy
    import scipy.sparse
    from scipy.sparse.linalg import eigsh

    w = scipy.sparse.load_npz(path)
    began = time.process_time()
    if shift:
        value, vector = eigsh(
            scipy.sparse.identity(w.shape[0], format="csc") - w.tocsc(),
            k=2,
            sigma=-1e-6,
            which="LM",
            tol=TOLERANCE,
        )
        value = 1 - value
    else:
        value, vector = eigsh(w, k=2, which="LA", tol=TOLERANCE)
    second = numpy.argsort(value)[-2]
    upper = time.process_time()
    least, last = eigsh(w, k=1, which="SA", tol=TOLERANCE)
    ended = time.process_time()
    pairs = [(value[second], vector[:, second]), (least[0], last[:, 0])]
    residual = max(float(numpy.linalg.norm(w @ v - x * v)) for x, v in pairs)
    print(
        json.dumps(
            {
                "seconds": ended - began,
                "upper": upper - began,
                "lambda_2": float(pairs[0][0]),
                "lambda_n": float(pairs[1][0]),
                "residual": residual,
            }
        )
    )


def all_eigenvalues(path):
    import numpy
    import scipy.sparse

    w = scipy.sparse.load_npz(path).toarray()
    began = time.process_time()
    values = numpy.linalg.eigvalsh(w)
    print(
        json.dumps(
            {"seconds": time.process_time() - began, "lambda_2": values[-2], "lambda_n": values[0]}
        )
    )


def networkx_regular(degree, nodes):
    import networkx

    began = time.process_time()
    networkx.random_regular_graph(int(degree), int(nodes), seed=1)
    print(json.dumps({"seconds": time.process_time() - began}))


PEERS = {
    "save": save_matrix,
    "eigsh": lambda path: both_ends(path, False),
    "eigsh-shift": lambda path: both_ends(path, True),
    "eigvalsh": all_eigenvalues,
    "networkx": networkx_regular,
}


def peer(limit, name, *arguments):
    """What it printed, with its peak MB; {} past the limit."""
    _, megabytes, output = run(
        [sys.executable, os.path.abspath(__file__), "--peer", name, *map(str, arguments)], limit
    )
    return {**json.loads(output), "megabytes": megabytes} if output else {}


def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


# ---- the table ----


def number(value, digits=3):
    return "-" if value is None else f"{value:.{digits}g}"


def row(case, seconds, megabytes, residual, name, other, limit, digits=""):
    """other: None where it is not installed, {} where it was stopped."""
    if other:
        theirs, ratio = number(other["seconds"]), f"{other['seconds'] / seconds:.1f}"
    else:
        theirs, ratio = (
            ("not measured", "-")
            if other is None
            else (f"not after {limit} s", f"> {limit / seconds:.0f}")
        )
    other = other or {}
    print(
        (
            f"| {case} | {seconds:.2f} | {number(megabytes)} | {number(residual, 2)} | {name} |"
            f" {theirs} | {number(other.get('megabytes'))} | {number(other.get('residual'), 2)} |"
            f" {ratio} | {digits or '-'} |"
        ),
        flush=True,
    )


def difference(found, other):
    if not other:
        return ""
    return f"{max(abs(found[key] - other[key]) for key in ('lambda_2', 'lambda_n')):.1g}"


def both_ends_case(starling, limit, case, peers, family, nodes, *options):
    path, _ = starling.make(family, family, nodes, *options)
    seconds, megabytes = starling.check(path)
    whole, _, found = starling.spectrum(path)
    if not found["spectrum"]["converged"]:
        sys.exit(f"{case}: not converged")
    matrix = os.path.join(starling.folder, "matrix.npz")
    if has("scipy", "numpy"):
        listed, _ = starling.make("listed", family, nodes, *options, "--expand")
        run([sys.executable, os.path.abspath(__file__), "--peer", "save", listed, matrix], 600)
    for name, label in peers:
        other = peer(limit, name, matrix) if has("scipy", "numpy") else None
        row(
            case,
            seconds,
            megabytes,
            found["spectrum"]["residual"],
            label,
            other,
            limit,
            difference(found, other),
        )
    print(
        f"| {case}, all that `analyse` finds | {whole:.2f} | - | - | - | - | - | - | - | - |",
        flush=True,
    )


EIGSH = [("eigsh", "scipy eigsh")]


def regular_1e5(starling, limit):
    both_ends_case(
        starling,
        limit,
        "random 4-regular, n = 10⁵: λ₂, λₙ",
        EIGSH,
        "random-regular",
        100000,
        "--degree",
        "4",
    )


def regular_1e6(starling, limit):
    both_ends_case(
        starling,
        limit,
        "random 4-regular, n = 10⁶: λ₂, λₙ",
        EIGSH,
        "random-regular",
        1000000,
        "--degree",
        "4",
    )


def grid_500(starling, limit):
    both_ends_case(
        starling,
        limit,
        "grid 500 × 500: λ₂, λₙ",
        [("eigsh-shift", "scipy eigsh, shift-invert for λ₂")],
        "grid",
        250000,
        "--sides",
        "500,500",
    )


def dense_2000(starling, limit):
    case = "random 6-regular, n = 2,000: all eigenvalues"
    path, _ = starling.make("dense", "random-regular", 2000, "--degree", "6")
    seconds, megabytes, found = starling.spectrum(path, "--spectrum")
    other = None
    if has("scipy", "numpy"):
        matrix = os.path.join(starling.folder, "dense.npz")
        listed, _ = starling.make("listed", "random-regular", 2000, "--degree", "6", "--expand")
        run([sys.executable, os.path.abspath(__file__), "--peer", "save", listed, matrix], 600)
        other = peer(limit, "eigvalsh", matrix)
    row(
        case,
        seconds,
        megabytes,
        found["spectrum"]["residual"],
        "numpy eigvalsh",
        other,
        limit,
        difference(found, other),
    )


def drawing_1e6(starling, limit):
    _, seconds = starling.make("made", "random-regular", 1000000, "--degree", "4")
    other = peer(limit, "networkx", 4, 1000000) if has("networkx") else None
    row("drawing a random 4-regular graph, n = 10⁶", seconds, None, None, "networkx", other, limit)


def ring_1e6(starling, limit):
    del limit
    path, _ = starling.make("ring", "ring", 1000000)
    seconds, megabytes, found = starling.spectrum(path)
    known = 4 / 3 * math.sin(math.pi / 1000000) ** 2
    print(
        (
            f"| ring, n = 10⁶: 1 − ρ = {found['gap']:.17g} | {seconds:.2f} | {number(megabytes)} |"
            f" - | 4/3 sin²(π/n) | - | - | - | - | {abs(found['gap'] / known - 1):.1g}, relative |"
        ),
        flush=True,
    )


def fastest_64(starling, limit):
    del limit
    path, _ = starling.make("fastest", "random-regular", 64, "--degree", "6", "--weights", "fmmc")
    seconds, megabytes, found = starling.spectrum(path)
    print(
        (
            f"| fastest mixing weights, n = 64, {found['edges']} edges: ρ = {found['rho']:.9f} |"
            f" {seconds:.2f} | {number(megabytes)} | - | - | - | - | - | - | - |"
        ),
        flush=True,
    )


CASES = {
    case.__name__: case
    for case in (ring_1e6, fastest_64, dense_2000, drawing_1e6, regular_1e5, grid_500, regular_1e6)
}


def main():
    if sys.argv[1:2] == ["--peer"]:
        PEERS[sys.argv[2]](*sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "starling", nargs="?", default=os.path.join(HERE, "..", "..", "build", "tools", "starling")
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=200,
        help="seconds of a core that a peer may take (default 200)",
    )
    parser.add_argument(
        "--only", default="", help=f"cases whose names contain this text: {', '.join(CASES)}"
    )
    asked = parser.parse_args()
    if not any(asked.only in name for name in CASES):
        parser.error(f"--only {asked.only}: no case's name contains this")
    print(
        "| case | Starling s | MB | residual | peer | s | MB | residual | peer / Starling |"
        " difference |"
    )
    print("|:--|--:|--:|--:|:--|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if asked.only in name:
                case(Starling(os.path.abspath(asked.starling), folder), asked.limit)


if __name__ == "__main__":
    main()
