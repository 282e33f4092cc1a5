"""What the benchmarks share: programs of a build, turns, medians, tables in Markdown.

Programs run in turns, several times over, so that whatever else the machine does meets them all
alike. None of the scripts builds anything: meson compile -C BUILD NAME ...
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RESNET50 = 25_557_032  # numbers of its model
LIMIT_S = 600
MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root"]
MPI_TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]


def parser_of(about, repetitions=None):
    """With the options that most have."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="default build")
    if repetitions is not None:
        parser.add_argument("--repetitions", type=int, default=repetitions)
    return parser


def program_of(build, name):
    """Its path, or None where it is not built."""
    path = os.path.join(os.path.abspath(build), "tests", "bench", name)
    return path if os.access(path, os.X_OK) else None


def needed(build, name):
    path = program_of(build, name)
    if path is None:
        sys.exit(f"{name} is not built in {build} (meson compile -C BUILD {name})")
    return path


def has_mpi(build):
    return shutil.which("mpirun") is not None and program_of(build, "peer_mpi") is not None


def mpi(build, nodes, *arguments, forced=(), ways=MPI_TCP):
    """A command of peer_mpi. forced: more options of mpirun's. ways: those of its transport; none:
    what it takes by itself."""
    program = program_of(build, "peer_mpi")
    return [*MPIRUN, *ways, *forced, "-n", str(nodes), program, *arguments]


def package_environment(build):
    """For scripts that import the Python package of this tree."""
    return {
        **os.environ,
        "STARLING_LIBRARY": os.path.join(os.path.abspath(build), "src", "libstarling.so.0"),
        "PYTHONPATH": os.path.join(ROOT, "src", "python"),
        "OMP_NUM_THREADS": "1",
    }


def rounds_for(nodes, dimension):
    """About three seconds of rounds."""
    return max(6, min(80, int(3e9 / (dimension * 2.5 * nodes))))


def measure(command, env=None):
    """Median round in ms of one run; None, with the reason on stderr, when it fails."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=env)
    except subprocess.TimeoutExpired:
        print(f"{command}: still running after {LIMIT_S} s", file=sys.stderr)
        return None
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode != 0 or not lines:
        said = f"{' '.join(command)}: exit code {ended.returncode}\n{ended.stderr.strip()}"
        print(said, file=sys.stderr)
        return None
    return json.loads(lines[-1])["median_ms"]


def in_turns(works, turns):
    """name -> what each turn gave, without failures. works: name -> function, or a command to
    measure. Each turn begins with another one."""
    found, names = {name: [] for name in works}, list(works)
    for turn in range(turns):
        shift = turn % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            work = works[name]
            value = work() if callable(work) else measure(work)
            if value is not None:
                found[name].append(value)
    return {name: values for name, values in found.items() if values}


def medians(programs, turns):
    """name -> median of medians in ms"""
    return {name: statistics.median(values) for name, values in in_turns(programs, turns).items()}


def print_row(*cells):
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def print_heads(*heads, texts=1):
    """The first `texts` columns are of text, the others of numbers."""
    print_row(*heads)
    print("|" + ":--|" * texts + "--:|" * (len(heads) - texts), flush=True)


def ratio(found, ours, other, digits=2):
    """ "-" where one of the two was not measured."""
    if ours not in found or other not in found:
        return "-"
    return f"{found[ours] / found[other]:.{digits}f}"


def print_table(title, dimension, repetitions, cases):
    """cases: [(nodes, {name: command})], ours first."""
    print(
        f"\n{title}, d = {dimension:,}: median ms per round, {os.cpu_count()} cores,"
        f" {repetitions} repetitions in turns\n"
    )
    ours, *others = cases[0][1]
    ratios = [f"{ours} / {name}" for name in others]
    print_heads("N", ours, *others, *ratios, texts=0)
    for nodes, programs in cases:
        found = medians(programs, repetitions)
        cells = [f"{found[name]:.4g}" if name in found else "-" for name in programs]
        ratios = [ratio(found, ours, name, 3) for name in others]
        print_row(nodes, *cells, *ratios)
