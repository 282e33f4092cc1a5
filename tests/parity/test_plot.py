#!/usr/bin/env python3
"""What tools/plot draws: of a run, of an agent's folder and of a compare's: each figure shows the
numbers of records.csv, and what cannot be drawn is refused with one sentence."""
import atexit
import csv
import itertools
import json
import math
import os
import runpy
import shutil
import statistics
import sys
import tempfile
import traceback

from _here import ROOT, check, needs, read_lines, run_tests
from _svg import Picture, bounds, texts_of
from test_compare import BASE, CHOCO, GOSSIP, REDUCE

PLOT = os.path.join(ROOT, "tools", "plot")
sys.path.insert(0, os.path.dirname(PLOT))
try:
    from figures import kinds as figures, style
except ImportError:
    figures = None  # matplotlib is not installed
ALPHAS, NODES, SEEDS = [0.1, 10], [4, 8], ["1", "2", "3"]
METHODS = ["gossip", "choco", "reduce"]
NEAR = 0.02  # points of the page


def missing(scene):
    needs(figures, "matplotlib is not installed")


def run_plot(words, said):
    """In a process that has forked: matplotlib, which takes most of the time, is there already."""
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.argv, code = [PLOT, *words], 0
    try:
        runpy.run_path(PLOT, run_name="__main__")
    except SystemExit as end:
        code = 1 if isinstance(end.code, str) else end.code or 0
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)


def draw(scene, *arguments, code=0, out="picture.svg"):
    """What it said; what it drew is in `out`."""
    words = [*map(str, arguments), "-o", scene.path(out)]
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        run_plot(words, scene.path("said"))
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(scene.path("said")) as file:
        said = file.read()
    check(ended == code, f"{arguments}: exit code {ended}: {said}")
    check("Traceback" not in said and "Warning" not in said, said)
    return said


def plot(scene, *arguments):
    draw(scene, *arguments)
    return Picture(scene.path("picture.svg"))


def simulate(scene, out, **changes):
    path = scene.experiment(out.replace("/", "-") + ".json", rounds=40, record__every=10, **changes)
    scene.call("sim", path, "--out", scene.path(out)).check_well()
    return scene.path(out)


# ---- a comparison, made once ----

_made = []


def study(scene):
    """The folder of one with three methods, two alphas, two numbers of nodes and three seeds."""
    if not _made:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)
        base = {**BASE, "rounds": 20, "variants": [GOSSIP, CHOCO, REDUCE]}
        base["data"] = {**base["data"], "partition": {"name": "dirichlet", "alpha": 1}}
        base["sweep"] = {"data.partition.alpha": ALPHAS, "topology.nodes": NODES, "seed": [1, 2, 3]}
        path = scene.write("study.json", json.dumps(base))
        out = f"{folder}/out"
        scene.call("compare", path, "--jobs", "2", "--out", out, timeout=600).check_well()
        _made.append(out)
    return _made[0]


def records(folder, name, seed):
    """Its rows, as numbers."""
    with open(os.path.join(folder, "records.csv"), newline="") as file:
        rows = [r for r in csv.DictReader(file) if (r["name"], r["seed"]) == (name, seed)]
    keys = ("round", "accuracy", "loss", "consensus_distance", "mb", "predicted_s_5_mbit_20_ms")
    return [{key: float(row[key]) for key in keys} for row in rows]


def column(folder, name, key, scale=1):
    """[(mean, deviation)] over the seeds, by record."""
    runs = [[scale * row[key] for row in records(folder, name, seed)] for seed in SEEDS]
    return [(statistics.mean(at), statistics.stdev(at)) for at in zip(*runs)]


def name_of(method, alpha, nodes):
    return f"{method},alpha={alpha:g},nodes={nodes}"


def near(found, expected, what):
    check(abs(found - expected) < NEAR, f"{what}: at {found}, expected at {expected}")


def check_band(panel, number, x, low, high, what):
    """The ends of this band at x: two values."""
    ends = [y for at, y in panel.bands()[number] if abs(at - x) < NEAR]
    near(min(ends), panel.place("y", high), f"{what}: above")
    near(max(ends), panel.place("y", low), f"{what}: below")


# ---- curves ----


def test_a_comparison_is_a_line_a_variant_with_its_band(scene):
    folder = study(scene)
    for x, key, label in (
        ("rounds", "round", "rounds"),
        ("mb", "mb", "MB sent by a node"),
        ("seconds:5:20", "predicted_s_5_mbit_20_ms", "seconds at 5 Mbit/s, 20 ms"),
    ):
        picture = plot(scene, folder, "--y", "accuracy", "--x", x, "--only", "*alpha=0.1*nodes=4")
        (panel,) = picture.panels
        names = [name_of(method, 0.1, 4) for method in METHODS]
        check(picture.legend() == METHODS, f"{picture.legend()}")
        check({label, "held-out accuracy (%)"} <= set(picture.texts), f"{picture.texts}")
        check(len(panel.lines()) == len(panel.bands()) == 3, f"{len(panel.lines())} lines")
        for i, (name, line) in enumerate(zip(names, panel.lines())):
            across, up = column(folder, name, key), column(folder, name, "accuracy", 100)
            for (x_at, y_at), (at, _), (middle, apart) in zip(line, across, up, strict=True):
                near(x_at, panel.place("x", at), f"{name}: {key}")
                near(y_at, panel.place("y", middle), f"{name}: accuracy")
                check_band(panel, i, x_at, middle - apart, middle + apart, name)


def test_the_median_has_quartiles(scene):
    folder, name = study(scene), name_of("gossip", 0.1, 8)
    panel = plot(scene, folder, "--y", "loss", "--over", "median", "--only", name).panels[0]
    ends = [records(folder, name, seed)[-1]["loss"] for seed in SEEDS]
    low, middle, high = statistics.quantiles(ends, n=4, method="inclusive")
    x, y = panel.lines()[0][-1]
    near(y, panel.place("y", middle), "median")
    check_band(panel, 0, x, low, high, "quartiles")


def test_a_distance_of_0_is_on_the_logarithmic_panel(scene):
    picture = plot(scene, study(scene), "--only", "*alpha=0.1,nodes=8")
    panel = picture.panels[1]
    check(panel.labels("y")[0] == "0", f"{panel.labels('y')}")
    zero = dict(panel.ys)["0"]
    reduce = panel.lines()[2]
    for _, y in reduce:
        near(y, zero, "all-reduce")
    values = column(study(scene), name_of("gossip", 0.1, 8), "consensus_distance")
    for (_, y), (middle, _) in zip(panel.lines()[0], values, strict=True):
        near(y, panel.place("y", middle, log=True), "gossip")


def test_what_is_chosen_comes_in_its_order(scene):
    folder = study(scene)
    first, second = name_of("reduce", 10, 4), name_of("gossip", 0.1, 8)
    labels = ["reduce, Dirichlet alpha 10, nodes 4", "gossip, Dirichlet alpha 0.1, nodes 8"]
    for only in ([first, "--only", second], ["reduce*=10?nodes=4,gossip*1?nodes=8"]):
        legend = plot(scene, folder, "--only", *only).legend()
        check(legend == labels, f"{only}: {legend}")
    check(len(plot(scene, folder, "--only", "choco").legend()) == 4, "a method")


def test_panels_title_target_and_limits(scene):
    picture = plot(
        scene, study(scene), "--y", "loss,accuracy,distance", "--only", "gossip", "--title",
        "Three panels", "--target", "1.9", "--ylim", "0.5:2.5",
    )
    check(len(picture.panels) == 3 and "Three panels" in picture.texts, f"{picture.texts}")
    check(picture.legend()[-1] == "target", f"{picture.legend()}")
    panel = picture.panels[0]
    ((_, y), _), = panel.lines("guide")
    near(y, panel.place("y", 1.9), "target")
    near(panel.place("y", 0.5), bounds(picture.named["patch_2"])[3], "the lower limit")
    check(picture.panels[1].lines("guide") == [], "a target of the loss among accuracies")
    for panel in picture.panels:
        check(picture.legend_top() > bounds(picture.named["patch_2"])[3], "legend over the data")


def test_ticks_of_logarithmic_axes(scene):
    table = [
        ((0.8, 2.2), "1 2"), ((0.61, 2.1), "0.7 1 2"), ((2, 2.9), "2 2.2 2.4"), ((30, 90), ""),
        ((0.003, 40), "0.01 0.1 1 10"), ((1e-9, 1), "10^{-8} 10^{0}"), ((1, 9.9), "1 2 5"),
        ((5e5, 6e8), "10^{6} 10^{7} 10^{8}"),
    ]
    for (low, high), words in table:
        ticks = style.log_ticks(low, high)
        check(2 <= len(ticks) <= 8 and low <= min(ticks) <= max(ticks) <= high, f"{ticks}")
        labels = style.tick_labels(ticks)
        plain = all(word in " ".join(labels) for word in words.split())
        check(plain and not any("times" in label for label in labels), f"{low, high}: {labels}")


# ---- the other figures ----


def to_target(folder, name, seed, key, accuracy):
    """None: it does not get there."""
    rows = records(folder, name, seed)
    return next((row[key] for row in rows if 100 * row["accuracy"] >= accuracy), None)


def aim(folder):
    """An accuracy that all runs come to."""
    names = [name_of(*choice) for choice in itertools.product(METHODS, ALPHAS, NODES)]
    best = [
        max(100 * row["accuracy"] for row in records(folder, name, seed))
        for name in names for seed in SEEDS
    ]
    return math.floor(min(best))


def test_lines_and_bars_over_a_swept_key(scene):
    folder = study(scene)
    arguments = [folder, "--by", "alpha", "--only", "*nodes=8", "--y", "accuracy"]
    picture = plot(scene, *arguments, "--figure", "lines")
    panel = picture.panels[0]
    check(panel.labels("x") == ["0.1", "10"], f"{panel.labels('x')}")
    check({"Dirichlet alpha", "held-out accuracy (%)"} <= set(picture.texts), f"{picture.texts}")
    drawn = plot(scene, *arguments, "--figure", "bars")
    bars, boxes = drawn.panels[0], drawn.panels[0].boxes()
    check(len(boxes) == 6, f"{len(boxes)} bars")
    check(drawn.legend() == picture.legend() == METHODS, f"{picture.legend()}")
    ends = iter(panel.error_bars())
    for i, method in enumerate(METHODS):
        for k, alpha in enumerate(ALPHAS):
            name = name_of(method, alpha, 8)
            middle, apart = column(folder, name, "accuracy", 100)[-1]
            x, y = panel.lines()[i][k]
            near(x, panel.place("x", alpha, log=True), name)
            near(y, panel.place("y", middle), name)
            (_, low), (_, high) = next(ends)
            near(low, panel.place("y", middle - apart), f"{name}: below")
            near(high, panel.place("y", middle + apart), f"{name}: above")
            near(boxes[2 * i + k][1], bars.place("y", middle), f"{name}: bar")
    boxes = [boxes[2 * i] for i in range(3)] + [boxes[2 * i + 1] for i in range(3)]
    for one, other in zip(boxes, boxes[1:]):
        check(one[2] <= other[0], "bars of a group stand in each other")


def test_seeds_that_do_not_come_so_far_are_told(scene):
    """Seed 2 ends early; of seed 3 the accuracy stays at 0."""
    folder, name = scene.path("edited"), name_of("gossip", 0.1, 4)
    shutil.copytree(study(scene), folder)
    with open(f"{folder}/records.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    cut = [r for r in rows if (r["name"], r["seed"], r["round"]) != (name, "2", "20")]
    for row in cut:
        row["accuracy"] = "0" if (row["name"], row["seed"]) == (name, "3") else row["accuracy"]
    with open(f"{folder}/records.csv", "w", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows(cut)
    arguments = (folder, "--only", name)
    said = draw(scene, *arguments, "--y", "accuracy")
    check("drawn as far as all its seeds came" in said, said)
    check(len(Picture(scene.path("picture.svg")).panels[0].lines()[0]) == 3, "a cut line")
    bars = (*arguments, "--figure", "bars", "--target")
    check("1 of 3" in plot(scene, *bars, "accuracy=2", "--y", "rounds").texts, "1 of 3")
    said = draw(scene, *bars, "accuracy=100", "--y", "rounds", code=1)
    check("no run came to the target" in said, said)


def test_tradeoff(scene):
    folder = study(scene)
    picture = plot(scene, folder, "--figure", "tradeoff", "--y", "loss", "--only", "*=10,nodes=8",
                   "--logx")
    panel = picture.panels[0]
    check("MB sent by a node, in all" in picture.texts, f"{picture.texts}")
    for method, (point,) in zip(METHODS, panel.lines(), strict=True):
        name = name_of(method, 10, 8)
        near(point[0], panel.place("x", column(folder, name, "mb")[-1][0], log=True), name)
        near(point[1], panel.place("y", column(folder, name, "loss")[-1][0]), name)


def test_speedup(scene):
    folder = study(scene)
    goal, link = aim(folder), "predicted_s_5_mbit_20_ms"
    picture = plot(
        scene, folder, "--figure", "speedup", "--y", "rounds,seconds:5:20", "--only", "*alpha=10*",
        "--target", f"accuracy={goal}",
    )
    check(picture.legend() == ["linear", *METHODS], f"{picture.legend()}")
    check("speed-up over 4 nodes" in picture.texts, f"{picture.texts}")
    for panel, key in zip(picture.panels, ("round", link), strict=True):
        linear, *lines = panel.lines()
        near(linear[1][1], panel.place("y", 2), "linear")
        for method, line in zip(METHODS, lines, strict=True):
            names = [name_of(method, 10, nodes) for nodes in NODES]
            few, many = (
                statistics.mean(to_target(folder, name, seed, key, goal) for seed in SEEDS)
                for name in names
            )
            near(line[0][1], panel.place("y", 1), method)
            near(line[1][1], panel.place("y", few / many), method)


def test_spectra(scene):
    """A ring's eigenvalues with Metropolis weights: (1 + 2 cos 2 pi k / n) / 3."""
    folder = study(scene)
    picture = plot(
        scene, folder, "--figure", "spectra", "--y", "loss", "--only", "gossip", "--starling",
        scene.starling,
    )
    panel = picture.panels[0]
    check({"ring 4", "ring 8"} <= set(picture.texts), f"{picture.texts}")
    gaps = [1 - (1 + 2 * math.cos(2 * math.pi / n)) / 3 for n in (8, 4)]
    for alpha, line in zip(ALPHAS, panel.lines(), strict=True):
        for (x, y), gap, nodes in zip(line, gaps, (8, 4), strict=True):
            near(x, panel.place("x", gap, log=True), f"{nodes} nodes")
            loss = column(folder, name_of("gossip", alpha, nodes), "loss")[-1][0]
            near(y, panel.place("y", loss), f"{nodes} nodes")


def test_timelines(scene):
    """A node that computes for 10 ms and waits for one that takes 30."""
    experiment = {
        **BASE, "rounds": 4, "topology": {"nodes": 2, "family": "path"}, "algorithm": "d-psgd",
        "network": {"gradient_ms": 10, "speeds": [1, 0.3333333333333333], "coding": False},
        "record": {"trace": True},
    }
    path = scene.write("traced.json", json.dumps(experiment))
    scene.call("sim", path, "--out", scene.path("traced")).check_well()
    picture = plot(scene, scene.path("traced"), "--figure", "timeline")
    (panel,) = picture.panels
    check({"gradient", "wait"} <= set(picture.texts), f"{picture.texts}")
    check(panel.labels("y") == ["0", "1"], f"{panel.labels('y')}")
    bars = [(left, right) for left, _, right, _ in panel.boxes() if right - left > 1]
    expected = [(30 * k, 30 * k + 10) for k in range(4)]  # gradients of node 0, its waits, node 1
    expected += [(30 * k + 10, 30 * k + 30) for k in range(4)] + [
        (30 * k, 30 * k + 30) for k in range(4)
    ]
    for found, wanted in zip(sorted(bars), sorted(expected), strict=True):
        for edge, time in zip(found, wanted):
            near(edge, panel.place("x", time), f"{wanted}")
    torn = scene.path("traced/trace.json")  # as by a kill
    os.truncate(torn, os.path.getsize(torn) * 3 // 4)
    check(plot(scene, scene.path("traced"), "--figure", "timeline").panels[0].boxes(), "torn")


def test_heat_maps(scene):
    folder = study(scene)
    picture = plot(scene, folder, "--figure", "heatmap", "--by", "alpha,nodes", "--y", "accuracy")
    check(len(picture.panels) == 4, f"{len(picture.panels)} panels with the colours'")
    for method, panel in zip(METHODS, picture.panels):
        check(panel.labels("x") == ["0.1", "10"] and panel.labels("y") == ["4", "8"], "ticks")
        cells = [
            f"{column(folder, name_of(method, alpha, nodes), 'accuracy', 100)[-1][0]:.1f}"
            for nodes in NODES for alpha in ALPHAS
        ]
        texts = texts_of(panel.element)
        shown = [text for text in texts if "." in text and text not in panel.labels("x")]
        check(shown == cells and method in texts, f"{cells}: {texts}")


def test_the_best_of_what_is_tuned(scene):
    rates = [0.001, 0.2]
    base = {**BASE, "rounds": 20, "variants": [GOSSIP, REDUCE]}
    base["sweep"] = {"optimizer.learning_rate": rates, "topology.nodes": [4, 8]}
    path = scene.write("tuned.json", json.dumps(base))
    check(scene.call("compare", path, "--out", scene.path("tuned")).code == 0, "compare")
    picture = plot(scene, scene.path("tuned"), "--figure", "lines", "--best", "--y", "loss")
    panel = picture.panels[0]
    check(picture.legend() == ["gossip", "reduce"], f"{picture.legend()}")
    with open(scene.path("tuned/compare.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    for method, line in zip(("gossip", "reduce"), panel.lines(), strict=True):
        for nodes, (_, y) in zip(NODES, line, strict=True):
            losses = [
                float(r["loss"]) for r in rows
                if r["method"] == method and r["topology.nodes"] == str(nodes)
            ]
            check(len(losses) == 2, f"{losses}")
            near(y, panel.place("y", min(losses)), method)


# ---- files ----


def test_files_for_papers(scene):
    arguments = (study(scene), "--only", "gossip", "--y", "loss")
    for size, wide in (("one", 3.4), ("two", 7), ("5x3", 5)):
        draw(scene, *arguments, "--size", size)
        width = float(Picture(scene.path("picture.svg")).root.get("width").removesuffix("pt"))
        check(abs(width - 72 * wide) < 1e-6, f"{size}: {width}")
    for ending in ("svg", "pdf", "png"):
        files = []
        for name in ("a", "b"):
            draw(scene, *arguments, out=f"{name}.{ending}")
            with open(scene.path(f"{name}.{ending}"), "rb") as file:
                files.append(file.read())
        check(files[0] == files[1], f"{ending}: two files that differ")
        check(b"Date" not in files[0] and b"date>" not in files[0], f"{ending}: a date")
        if ending == "pdf":
            check(b"/FontFile2" in files[0] and b"/Type3" not in files[0], "fonts of the PDF")
        if ending == "png":
            check(int.from_bytes(files[0][16:20], "big") == 1020, "3.4 inches at 300 dots")


# ---- run folders ----


def test_the_band_of_a_run_is_of_its_nodes(scene):
    folder = simulate(scene, "run")
    panel = plot(scene, folder, "--y", "accuracy").panels[0]
    last = [read_lines(f"{folder}/metrics-{i}.jsonl")[-1]["accuracy"] for i in range(8)]
    x, y = panel.lines()[0][-1]
    near(y, panel.place("y", 100 * read_lines(f"{folder}/consensus.jsonl")[-1]["accuracy"]), "line")
    check_band(panel, 0, x, 100 * min(last), 100 * max(last), "nodes")


def test_measured_seconds_are_of_agents(scene):
    base = {**BASE, "rounds": 10, "topology": {"nodes": 2, "family": "ring"}, "variants": [GOSSIP]}
    path = scene.write("agents.json", json.dumps(base))
    out = scene.path("agents")
    scene.call("compare", path, "--agents", "--out", out, timeout=300).check_well()
    picture = plot(scene, scene.path("agents"), "--x", "seconds", "--y", "loss")
    check("seconds, measured" in picture.texts, f"{picture.texts}")
    panel = picture.panels[0]
    lines = [read_lines(scene.path(f"agents/gossip/metrics-{i}.jsonl")) for i in range(2)]
    for (x, _), at in zip(panel.lines()[0], zip(*lines), strict=True):
        near(x, panel.place("x", max(line["time"] for line in at)), "the slower agent's")


def test_folder_of_an_agent(scene):
    folder = simulate(scene, "run")
    os.mkdir(scene.path("agent"))
    for name in ("config.json", "metrics-3.jsonl"):
        shutil.copy(os.path.join(folder, name), scene.path("agent"))
    check(len(plot(scene, scene.path("agent")).panels) == 1, "an agent knows no distance")
    said = draw(scene, scene.path("agent"), "--y", "distance", code=1)
    check("no run here has it" in said, said)


def test_what_cannot_be_drawn_is_refused(scene):
    folder, run = study(scene), simulate(scene, "run")
    predicted = simulate(scene, "predicted", network={"bandwidth_mbit": 5, "latency_ms": 20})
    os.mkdir(scene.path("empty"))
    killed = scene.path("killed")
    os.mkdir(killed)
    shutil.copy(f"{folder}/study.json", killed)
    for arguments, words in (
        ([scene.path("empty")], ["empty", "neither a run folder nor one of starling compare"]),
        ([scene.path("none")], ["none", "no such folder"]),
        ([killed], ["compare.csv", "`starling compare"]),
        ([run, run], ["named twice"]),
        ([folder, "--figure", "pie"], ["--figure pie", "curves, bars"]),
        ([folder, "--x", "epochs"], ["--x epochs", "rounds, MB, seconds"]),
        ([folder, "--x", "seconds"], ["simulated", "seconds:10000:0.1 or seconds:5:20"]),
        ([predicted, "--x", "seconds"], ["predicted", "the simulator's own"]),
        ([run, "--x", "seconds:5:20"], ["seconds:5:20 is not known", "none"]),
        ([folder, "--y", "speed"], ["--y speed", "accuracy, loss, distance"]),
        ([folder, "--only", "nobody"], ["--only nobody", "gossip, choco, reduce"]),
        ([folder, "--target", "much"], ["--target much", "number"]),
        ([folder, "--target", "accuracy=0.8"], ["accuracy=0.8", "per cent"]),
        ([folder, "--size", "three"], ["--size three", "one, two"]),
        ([folder, "--size", "4x1"], ["legend leaves no room"]),
        ([folder, "--ylim", "9:1"], ["--ylim 9:1", "LOW:HIGH"]),
        ([folder, "--by", "alpha"], ["no use for --by"]),
        ([folder, "--figure", "lines"], ["a swept key", "data.partition.alpha, topology.nodes"]),
        ([folder, "--figure", "heatmap", "--by", "alpha"], ["--by alpha", "needs 2"]),
        ([folder, "--figure", "heatmap", "--y", "loss,accuracy"], ["choose one quantity"]),
        ([run, "--figure", "timeline"], ["has no trace.json", "record.trace true"]),
        ([run, "--figure", "speedup"], ["topology.nodes swept"]),
        ([run, "--figure", "bars", "--y", "rounds"], ["no target is known", "--target loss=X"]),
        ([folder, "--figure", "spectra", "--starling", "/nothing"], ["--starling /nothing"]),
    ):
        said = draw(scene, *arguments, code=1)
        check(said.startswith("plot: ") and said.count("\n") == 1, f"{arguments}: {said}")
        check(all(word in said for word in words), f"{arguments}: {said}")
    check("must end in" in draw(scene, run, code=1, out="picture.doc"), "a .doc")


if __name__ == "__main__":
    tests = [value for name, value in list(globals().items()) if name.startswith("test_")]
    run_tests(tests if figures else [missing])
