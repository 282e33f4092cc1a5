#!/usr/bin/env python3
"""Sessions: loops in processes end with the simulation's bits and near the float64 reference, and
examples/embed.c learns."""
import functools
import json
import os
import re
import subprocess
import sys

import numpy as np

from _here import ROOT, check, free_ports
from _simulate import call, dpsgd, main, of
import algorithms

N, D, ROUNDS = 8, 300, 30
RING = [[i, (i + 1) % N] for i in range(N)]
DIRECTED = RING + [[0, 3], [4, 1]]
W = dpsgd.metropolis(N, RING)
LAZY = (np.eye(N) + W) / 2
TOP_K = {"name": "top-k", "fraction": 0.25}

# name: (form, algorithm, edges, matrix; LAZY: weights are not named; 0: random messages, which the
# reference draws otherwise)
LOOPS = {
    "d-psgd mix": ("mix", of("d-psgd"), None, LAZY),
    "d-psgd offer": ("offer", of("d-psgd"), None, W),
    "d-psgd begin": ("begin", of("d-psgd"), None, LAZY),
    "d-psgd while adapting": ("mix", of("d-psgd", variant="combine-while-adapt"), None, LAZY),
    "dcd-psgd": ("mix", of("dcd-psgd", compressor=of("qsgd", levels=64)), None, 0),
    "dcd-psgd uncompressed": ("mix", of("dcd-psgd", compressor="identity"), None, W),
    "choco-sgd": ("mix", of("choco-sgd", compressor=TOP_K, consensus_step=0.3), None, W),
    "deep-squeeze": ("mix", of("deep-squeeze", compressor=TOP_K, eta=0.2), None, W),
    "sgp": ("mix", of("sgp"), DIRECTED, algorithms.push_sum_weights(N, DIRECTED)),
    "gradient-tracking": ("mix", of("gradient-tracking"), None, W),
}


def run_processes(command, n):
    """The output lines of n processes that find each other by a roster."""
    roster = ",".join(f"127.0.0.1:{port}" for port in free_ports(n))
    running = []
    for rank in range(n):
        env = {**os.environ, "STARLING_RANK": str(rank), "STARLING_SIZE": str(n)}
        env["STARLING_ROSTER"] = roster
        running.append(
            subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
    lines = []
    for process in running:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error.decode()
        lines += out.decode().splitlines()
    return sorted(lines)


def run_simulated(command, n):
    """The same of all of them in one process: the same bits."""
    out = call(*command, str(n))
    check(out.returncode == 0, out.stderr)
    simulated = sorted(out.stdout.splitlines())
    check(run_processes(command, n) == simulated, f"processes and simulation differ: {simulated}")
    return simulated


def experiment_of(algorithm, edges, w):
    graph = {"edges": edges, "directed": True, "weights": "push-sum"} if edges else None
    if w is W:
        graph = {"family": "ring", "weights": "metropolis"}
    return {
        "seed": 5,
        "algorithm": algorithm,
        "topology": {"nodes": N, **(graph or {"family": "ring"})},
        "transport": {"chunk_bytes": 4096},
    }


def models_of(lines, what):
    found = [line.split() for line in lines if line.split()[1] == what]
    rows = sorted((int(rank), bytes.fromhex(bits)) for rank, _, bits in found)
    return np.array([np.frombuffer(bits, "<f4") for _, bits in rows], float)


def reference(form, algorithm, w):
    rank, i = np.meshgrid(np.arange(N), np.arange(D), indexing="ij")
    x0 = (rank * 31 + i * 17) % 23 / 8 - 1.25
    center = (rank * 13 + i * 7) % 19 / 16
    if form == "begin":
        algorithm = {"name": "d-psgd", "variant": "combine-while-adapt"}
    problem = algorithms.Quadratic(np.tile(np.eye(D), (N, 1, 1)), center)
    models, _ = algorithms.history(
        ROUNDS, [w], algorithm, {"learning_rate": 0.1}, problem, x0.astype(float)
    )
    return models[-1]


def test_loop(folder, name):
    form, algorithm, edges, w = LOOPS[name]
    program = os.path.join(folder, "session_loop")
    experiment = json.dumps(experiment_of(algorithm, edges, w))
    command = [program, experiment, form, str(ROUNDS), str(D)]
    simulated = run_simulated(command, N)
    models, averages = models_of(simulated, "model"), models_of(simulated, "average")
    assert models.shape == (N, D)
    assert (averages == averages[0]).all(), "the peers' averages differ"
    if not isinstance(w, int):
        expected = reference(form, algorithm, w)
        far = abs(models - expected).max()
        assert far < 1e-4, f"{far:g} from the reference"


def test_embed(folder):
    """The example learns from all peers' data, and is the same in processes."""
    command = [os.path.join(folder, "embed"), os.path.join(ROOT, "examples", "session.json")]
    simulated = run_simulated(command, 4)
    found = re.findall(r"average ([\d.]+), models are ([\d.e-]+) apart", "\n".join(simulated))
    assert len(found) == 4 and len(set(found)) == 1, f"{simulated}"
    assert float(found[0][0]) > 0.9, f"{simulated}"


def test_check(starling):
    """What a session's user should know is said before anything runs."""
    example = os.path.join(ROOT, "examples", "session.json")

    def said(form, *keys):
        sets = [word for key in ("topology.nodes=8", *keys) for word in ("--set", key)]
        return call(starling, "check", example, *sets, "--session", form)

    masked = 'algorithm={"name": "d-psgd", "compressor": "shared-mask"}'
    data = "data.name=mnist", "model.name=mlp"
    lazy, linear = 'no weights are named: "lazy', "linear in the gradient"
    unread = [f"warning: {key} has no effect in a session" for key in ("data.name", "model.name")]
    stable = "stable for          learning rate * curvature < 2 min W_ii = 1\n"
    for form, keys, code, words in (
        ("overlap", [], 0, ["1 + lambda_n = 1.333", lazy]),
        ("mix", [], 0, [lazy]),
        ("other", [], 2, ["mix"]),
        ("overlap", ["topology.family=one-peer-exponential"], 0, [stable]),
        ("mix", ["algorithm.name=gradient-tracking", *data], 0, [linear, *unread]),
        ("mix", ["algorithm.name=exact-diffusion", *data], 0, [linear, *unread]),
        ("mix", [masked], 0, []),
        ("overlap", ["optimizer.momentum=0.9"], 2, ["momentum"]),
        ("overlap", ["algorithm.name=sgp"], 2, ["d-psgd"]),
        ("overlap", [masked], 2, ["sends vectors as they are"]),
    ):
        ended = said(form, *keys)
        text = ended.stdout + ended.stderr
        check(ended.returncode == code and all(word in text for word in words), f"{keys}: {text}")
        check(form == "overlap" or "1 + lambda_n" not in text, text)


def all_checks(starling):
    folder = os.path.join(os.path.dirname(os.path.dirname(starling)), "tests")
    for name in LOOPS:
        yield f"session {name}", functools.partial(test_loop, folder, name)
    yield "session embed", functools.partial(test_embed, folder)
    yield "session check", functools.partial(test_check, starling)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 1))
