#!/usr/bin/env python3
"""What tools/plot draws: of a run, of an agent's folder and of a compare's, with a legend that
tells
runs apart and lies outside the axes.

usage: test_plot.py STARLING [TEST ...]
"""
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as tree

from _here import ROOT, check, run_tests

PLOT = os.path.join(ROOT, "tools", "plot")

SVG = "{http://www.w3.org/2000/svg}"
PYTHONS = [sys.executable, "/usr/bin/python3"]


def python():
    """A Python that has matplotlib; None: there is none."""
    for path in filter(os.path.exists, PYTHONS):
        if subprocess.run([path, "-c", "import matplotlib"], capture_output=True).returncode == 0:
            return path
    return None


def missing(scene):
    return "matplotlib is not installed"


def plot(scene, *arguments, code=0):
    """The picture, and all that it says."""
    out = scene.path("picture.svg")
    ended = subprocess.run(
        [python(), PLOT, *arguments, "-o", out], capture_output=True, text=True, timeout=120
    )
    check(ended.returncode == code, f"exit code {ended.returncode}: {ended.stderr}")
    check("Traceback" not in ended.stderr, ended.stderr)
    if code != 0:
        return ended.stderr, []
    root = tree.parse(out).getroot()
    return root, ["".join(element.itertext()).strip() for element in root.iter(SVG + "text")]


def simulate(scene, out, **changes):
    path = scene.experiment(out.replace("/", "-") + ".json", rounds=40, record__every=10, **changes)
    ended = scene.call("sim", path, "--out", scene.path(out))
    check(ended.code == 0, f"{ended.err!r}")
    return scene.path(out)


def group(root, name):
    return next((e for e in root.iter(SVG + "g") if e.get("id") == name), None)


def bounds(element):
    """(left, top, right, bottom) of the paths in it."""
    text = " ".join(path.get("d") for path in element.iter(SVG + "path"))
    points = re.findall(r"(-?[\d.]+) (-?[\d.]+)", text)
    xs, ys = [float(x) for x, _ in points], [float(y) for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def test_equal_names_are_told_apart(scene):
    folders = [simulate(scene, f"seed{seed}/out", seed=seed) for seed in (1, 2, 3)]
    _, texts = plot(scene, *folders)
    check({"seed1/out", "seed2/out", "seed3/out"} <= set(texts), f"{texts}")


def test_the_legend_is_outside_the_axes(scene):
    root, _ = plot(scene, simulate(scene, "one"), simulate(scene, "two", seed=4))
    legend, axes = bounds(group(root, "legend_1")), bounds(group(root, "patch_2"))
    check(legend[1] > axes[3], f"the legend {legend} lies over the axes {axes}")


def test_axes_of_megabytes_and_seconds(scene):
    folder = simulate(scene, "run")
    for kind, label in (("rounds", "round"), ("mb", "MB sent by a node"), ("seconds", "seconds")):
        _, texts = plot(scene, folder, "--x", kind)
        check(any(text.startswith(label) for text in texts), f"--x {kind}: {texts}")


def test_folders_of_compare(scene):
    variants = [{"name": "d-psgd"}, {"name": "slow", "set": {"optimizer.learning_rate": 0.001}}]
    path = scene.experiment(rounds=20, record__every=5, variants=variants)
    for arguments, names in (
        ([], {"d-psgd", "slow"}),
        (["--seeds", "1..2"], {"d-psgd (2 seeds)", "slow (2 seeds)"}),
    ):
        out = scene.path("compare" + "".join(arguments))
        ended = scene.call("compare", path, *arguments, "--out", out)
        check(ended.code == 0, f"{ended.err!r}")
        _, texts = plot(scene, out)
        check(names <= set(texts), f"{arguments}: {texts}")


def test_folder_of_an_agent(scene):
    folder = simulate(scene, "run")
    os.mkdir(scene.path("agent"))
    for name in ("config.json", "metrics-3.jsonl"):
        shutil.copy(os.path.join(folder, name), scene.path("agent"))
    _, texts = plot(scene, scene.path("agent"))
    check("not known to an agent alone" in texts, f"{texts}")


def test_many_nodes(scene):
    data = {"name": "digits", "train_samples": 960, "test_samples": 50, "batch": 4}
    plot(scene, simulate(scene, "many", topology__nodes=120, model="softmax", data=data))


def test_what_is_no_run_is_refused(scene):
    os.mkdir(scene.path("empty"))
    text, _ = plot(scene, scene.path("empty"), code=1)
    check("tools/plot: " in text and "neither a run folder" in text, text)
    text, _ = plot(scene, scene.path("none"), code=1)
    check("none" in text, text)


if __name__ == "__main__":
    tests = [value for name, value in list(globals().items()) if name.startswith("test_")]
    run_tests(tests if python() else [missing])
