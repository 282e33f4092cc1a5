#!/usr/bin/env python3
"""The listings of docs/own-algorithm.md, as they stand there, against Starling's own algorithms."""
import json
import os
import re
import subprocess

import _package  # noqa: F401: finds the package
import numpy

from _here import ROOT
from _scene import check, run_tests

with open(os.path.join(ROOT, "docs", "own-algorithm.md")) as file:
    BLOCKS = dict(re.findall(r"^```python (\S+)\n(.*?)^```$", file.read(), re.M | re.S))


def run(*names):
    """Its names, after these listings."""
    found = {}
    for name in names:
        exec(compile(BLOCKS[name], f"own-algorithm.md, {name}", "exec"), found)
    return found


def built_in(scene, page, algorithm):
    """The models of Starling's own algorithm on the page's problem."""
    n, d = page["N"], page["D"]
    problem = {"A": page["A"].tolist(), "b": page["b"].tolist(), "x0": [[0.0] * d] * n}
    scene.write("problem.json", json.dumps(problem))
    experiment = {
        "rounds": page["ROUNDS"],
        "topology": {**page["EXPERIMENT"]["topology"], "nodes": n},
        "algorithm": algorithm,
        "optimizer": {"learning_rate": page["STEP"]},
        "model": {"name": "quadratic", "path": "problem.json"},
    }
    path = scene.write("built-in.json", json.dumps(experiment))
    scene.call("sim", path, "--out", scene.path("sim")).check_well()
    return numpy.array([numpy.load(scene.path(f"sim/model-{i}.npy")) for i in range(n)])


def same(ours, theirs):
    apart = abs(numpy.array(ours) - theirs).max()
    check(abs(theirs).max() > 0.05 and apart < 1e-5, f"models are {apart} apart")


def test_gradient_tracking(scene):
    page = run("setup", "gradient-tracking", "run")
    algorithm = {"name": "gradient-tracking", "variant": "combine-while-adapt"}
    same(page["models"], built_in(scene, page, algorithm))


def test_choco(scene):
    page = run("setup", "choco")
    compressor = {"name": "top-k", "k": page["KEPT"]}
    algorithm = {"name": "choco-sgd", "consensus_step": page["GAMMA"], "compressor": compressor}
    models = page["starling"].simulate(page["N"], page["choco"], page["EXPERIMENT"])
    same(models, built_in(scene, page, algorithm))


def test_d_psgd_with_a_run_folder(scene):
    os.chdir(scene.folder)
    page = run("setup", "recorded")
    same(page["models"], built_in(scene, page, {"name": "d-psgd"}))
    with open("runs/prototype/consensus.jsonl") as lines:
        last = json.loads(lines.readlines()[-1])
    mean = numpy.mean(page["models"], axis=0)
    check(abs(last["test_loss"] - page["loss"](mean)) < 1e-3, last)


def test_an_algorithm_in_c_outside_the_tree(scene):
    """In sessions; parity/test_library.py has runs."""
    with open(os.path.join(ROOT, "docs", "your-algorithm.md")) as page:
        source = re.search(r"^```c outside\n(.*?)^```$", page.read(), re.M | re.S)[1]
    built = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-I", f"{ROOT}/include"]
    subprocess.run([*built, scene.write("mine.c", source), "-o", scene.path("mine.so")], check=True)
    page = run("setup")
    algorithm = {"name": "mine", "library": scene.path("mine.so")}

    def mix(rank):
        x = numpy.full(4, rank, "f4")
        with page["starling"].join(None, x) as peer:
            for _ in range(3):
                peer.mix(x)
        return x

    topology = {"family": "ring", "weights": "lazy"}
    models = [
        page["starling"].simulate(4, mix, {"topology": topology, "algorithm": each})
        for each in (algorithm, {"name": "d-psgd", "variant": "adapt-then-combine"})
    ]
    check((numpy.array(models[0]) == numpy.array(models[1])).all(), f"in sessions: {models}")


def test_no_listing_is_left_out(scene):
    known = {"setup", "gradient-tracking", "run", "choco", "recorded"}
    check(set(BLOCKS) == known, f"listings without a test: {set(BLOCKS) ^ known}")


if __name__ == "__main__":
    run_tests()
