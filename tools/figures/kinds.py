"""The kinds of figures: a table, and a function for each that draws one panel."""

import glob
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.ticker import MaxNLocator

from . import Wrong, style
from .quantities import COSTS, KNOWN, QUALITIES, point, spread, target_of, total

SPEEDS = ("rounds", "seconds", "seconds:LINK")
NODES = "topology.nodes"
GRADIENTS_SHOWN = 4
WORDS_MAX = 32  # characters of an axis' name


@dataclass(frozen=True)
class Kind:
    draw: object  # (axes, variants, y, asked)
    what: str
    needs: str
    ys: tuple = QUALITIES + COSTS
    xs: tuple = ()  # what --x may be; (): it has no choice
    first_y: str = ""  # without --y; "": accuracy, or loss where there is none
    uses: tuple = ()  # other options that mean something here


# ---- words ----


def swept_name(key):
    return {"topology.nodes": "nodes", "data.partition.alpha": "Dirichlet alpha"}.get(
        key, key.rsplit(".", 1)[-1].replace("_", " ")
    )


def swept_value(value):
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)


def series_name(variant, apart_from):
    """The method, and what is swept apart from such keys."""
    rest = [
        f"{swept_name(key)} {swept_value(value)}"
        for key, value in variant.swept.items()
        if key not in apart_from
    ]
    return ", ".join([variant.method, *rest])


def labels_of(variants):
    """What they differ in, where that tells them apart; else their names."""
    labels = [series_name(variant, ()) for variant in variants]
    return labels if len(set(labels)) == len(labels) else [v.name for v in variants]


def value_label(y, variants, asked):
    """Of an axis with the quantity at the end, or to the target."""
    if not y.is_cost:
        return y.label
    targets = {target_of(variant, asked.target) for variant in variants}
    said = "to the target loss"
    if len(targets) == 1:
        (target,) = targets
        unit = " %" if target.quantity.name == "accuracy" else ""
        said = f"to {target.quantity.name} {style.short_number(float(f'{target.value:.4g}'))}{unit}"
    return f"{y.label}{' ' if len(y.label) + len(said) < WORDS_MAX else chr(10)}{said}"


# ---- choosing keys ----


def swept_keys(variants):
    """Keys of which one method has several values."""
    values = {}
    for variant in variants:
        for key, value in variant.swept.items():
            values.setdefault((variant.method, key), set()).add(swept_value(value))
    return list(dict.fromkeys(key for (_, key), found in values.items() if len(found) > 1))


def chosen_keys(variants, asked, count, figure):
    """So many swept keys: --by's, or those that there are."""
    there = swept_keys(variants)
    told = ", ".join(there) or "none; `starling compare` sweeps them"
    if asked.by is None:
        if len(there) != count:
            raise Wrong(
                f"--figure {figure} needs {'a swept key' if count == 1 else 'two swept keys'}; "
                + (f"choose by --by among: {told}" if len(there) > count else f"there are: {told}")
            )
        return there
    chosen = []
    for name in asked.by.split(","):
        found = [key for key in there if name in (key, key.rsplit(".", 1)[-1])]
        if len(found) != 1:
            raise Wrong(f"--by {name}: must be one of the swept keys: {told}")
        chosen += found
    if len(chosen) != count:
        raise Wrong(f"--by {asked.by}: --figure {figure} needs {count}")
    return chosen


def arrange(variants, keys):
    """{series: {the keys' values: variant}}"""
    series = {}
    for variant in variants:
        if all(key in variant.swept for key in keys):
            mine = series.setdefault(series_name(variant, keys), {})
            place = tuple(variant.swept[key] for key in keys)
            if place in mine:
                raise Wrong(f"{variant.name} and {mine[place].name} stand at one place: use --only")
            mine[place] = variant
    return series


def best_of_each(variants, y, asked):
    """As `starling compare` does: of each method, under each choice of the other swept keys, the
    one of those of optimizer and algorithm with the most seeds that have a number, of these the
    best by `y`. They are named after what is left."""
    best = {}
    for variant in variants:
        tuned = [key for key in variant.swept if key.startswith(("optimizer.", "algorithm"))]
        left = {key: value for key, value in variant.swept.items() if key not in tuned}
        at = point(variant, y, asked.target, asked.over)
        rank = at.count, at.middle if y.name == "accuracy" else -at.middle
        place = series_name(replace(variant, swept=left), ())
        if place not in best or rank > best[place][0]:
            best[place] = rank, replace(variant, name=place, swept=left)
    return [variant for _, variant in best.values()]


# ---- parts of panels ----


def say(text):
    print(f"plot: {text}", file=sys.stderr)


def say_incomplete(axes, x, at, name, offset=(4, 4), ha="left"):
    """Where not all seeds have a number, how many do."""
    if at.count == 0:
        say(f"{name}: no seed came so far; it is not drawn")
    elif at.count < at.total:
        text, place = f"{at.count} of {at.total}", (x, at.high)
        axes.annotate(text, place, offset, textcoords="offset points", size=6, ha=ha)


def draw_points(axes, xs, points, variants, label, i):
    """Joined; with error bars where there are several seeds."""
    look = style.line_style(i)
    if len(points) == 1:
        look["linestyle"] = "none"
    axes.plot(xs, [p.middle for p in points], label=label, **look)
    for x, p, variant in zip(xs, points, variants):
        if p.count > 1:
            axes.vlines(x, p.low, p.high, color=look["color"], linewidth=0.8)
        say_incomplete(axes, x, p, variant.name)


def name_places(axes, names):
    """Ticks at 0, 1, ...; names that have no room side by side are aslant."""
    style.fix_ticks(axes.xaxis, range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    width = axes.figure.get_size_inches()[0] / axes.get_gridspec().ncols
    if max(map(len, names)) * len(names) > 11 * width:
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")


def are_numbers(values):
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def is_wide(values):
    """Better told by a logarithmic axis?"""
    return min(values) > 0 and max(values) / min(values) >= 4


def place_values(axes, values, logx):
    """{value: x}, with a tick at each: numbers where they are, words side by side."""
    if not are_numbers(values):
        name_places(axes, [swept_value(value) for value in values])
        return {value: i for i, value in enumerate(values)}
    if logx or is_wide(values):
        axes.set_xscale("log")
    style.fix_ticks(axes.xaxis, sorted(values), [style.short_number(v) for v in sorted(values)])
    return {value: value for value in values}


def ordered(values):
    """Each once: numbers by size, else as they come."""
    found = list(dict.fromkeys(values))
    return sorted(found) if are_numbers(found) else found


def all_values(series):
    return ordered(value for places in series.values() for (value,) in places)


# ---- figures ----


def curves(axes, variants, y, asked):
    for i, (variant, label) in enumerate(zip(variants, labels_of(variants))):
        runs = variant.runs
        length = min(len(run.columns["round"]) for run in runs)
        if length < max(len(run.columns["round"]) for run in runs):
            say(f"{variant.name}: drawn as far as all its seeds came")
        x = spread([run.column(asked.x)[:length] for run in runs], asked.over).middle
        at = spread([run.column(y)[:length] for run in runs], asked.over)
        look = style.line_style(i)
        every = max(1, math.ceil(length / style.MARKS))
        first = i * every // len(variants)  # so that marks of equal lines stand side by side
        axes.plot(x, at.middle, label=label, markevery=(first, every), **look)
        low, high = at.low, at.high
        if len(runs) == 1:  # from the worst node to the best
            low, high = (y.scale * ends for ends in runs[0].nodes.get(y.column, (low, high)))
        axes.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)
    if asked.target is not None and asked.target.quantity == y:
        axes.axhline(asked.target.value, color="0.35", linewidth=0.9, label="target", gid="guide")
    axes.set(xlabel=asked.x.label, ylabel=y.label)


def bars(axes, variants, y, asked):
    keys = chosen_keys(variants, asked, 1, "bars") if asked.by or swept_keys(variants) else []
    series = arrange(variants, keys)
    if keys:
        groups = all_values(series)
        axes.set_xlabel(swept_name(keys[0]))
    else:
        groups = list(series)
    width = 0.8 / (len(series) if keys else 1)
    for i, (name, places) in enumerate(series.items()):
        for n, (place, variant) in enumerate(places.items()):
            group = groups.index(place[0] if keys else name)
            x = group + (width * (i - (len(series) - 1) / 2) if keys else 0)
            at = point(variant, y, asked.target, asked.over)
            label = name if keys and n == 0 else None
            axes.bar(x, at.middle, 0.94 * width, label=label, **style.bar_style(i))
            if at.count > 1:
                axes.vlines(x, at.low, at.high, color="black", linewidth=0.9)
            say_incomplete(axes, x, at, variant.name, (0, 3), "center")
    name_places(axes, [swept_value(value) for value in groups])
    axes.set_ylabel(value_label(y, variants, asked))


def lines(axes, variants, y, asked):
    (key,) = chosen_keys(variants, asked, 1, "lines")
    series = arrange(variants, [key])
    places = place_values(axes, all_values(series), asked.logx)
    for i, (name, mine) in enumerate(series.items()):
        order = sorted(mine, key=lambda place: places[place[0]])
        points = [point(mine[place], y, asked.target, asked.over) for place in order]
        xs = [places[value] for (value,) in order]
        draw_points(axes, xs, points, [mine[place] for place in order], name, i)
    axes.set(xlabel=swept_name(key), ylabel=value_label(y, variants, asked))


def tradeoff(axes, variants, y, asked):
    methods = {}
    for variant in variants:
        methods.setdefault(variant.method, []).append(variant)
    for i, (method, mine) in enumerate(methods.items()):
        cost = point if asked.target else (lambda v, x, _, over: total(v, x, over))
        across = [cost(variant, asked.x, asked.target, asked.over) for variant in mine]
        points = [point(variant, y, asked.target, asked.over) for variant in mine]
        xs = [p.middle for p in across]
        draw_points(axes, xs, points, mine, method, i)
        for variant, x, p, c in zip(mine, xs, points, across):
            if c.count > 1:
                colour = style.line_style(i)["color"]
                axes.hlines(p.middle, c.low, c.high, color=colour, linewidth=0.8)
            if len(mine) > 1 and len(variant.swept) == 1:
                (value,) = variant.swept.values()
                beside = {"xytext": (4, 3), "textcoords": "offset points", "size": 6}
                axes.annotate(swept_value(value), (x, p.middle), **beside)
    label = value_label(asked.x, variants, asked) if asked.target else f"{asked.x.label}, in all"
    axes.set(xlabel=label, ylabel=y.label)


def speedup(axes, variants, y, asked):
    series = arrange(variants, [NODES])
    counts = all_values(series)
    axes.plot(counts, [n / counts[0] for n in counts], color="0.6", lw=0.9, label="linear")
    place_values(axes, counts, asked.logx)
    for i, (name, mine) in enumerate(series.items()):
        order = sorted(mine)
        points = [point(mine[place], y, asked.target, asked.over) for place in order]
        if order[0][0] != counts[0] or points[0].count == 0:
            say(f"{name}: it has no number at {counts[0]} nodes; it is not drawn")
            continue
        points = [p.inverse(points[0].middle) for p in points]
        draw_points(axes, [n for (n,) in order], points, list(mine.values()), name, i)
    if axes.get_xscale() == "log":
        style.make_log(axes, "y", style.axis_values(axes, "y"))
    axes.set(xlabel="nodes", ylabel=f"speed-up over {counts[0]} nodes")
    axes.set_title(f"by {value_label(y, variants, asked)}")


def spectra(axes, variants, y, asked):
    gaps, names, series = {}, {}, {}
    for variant in variants:
        text = json.dumps(variant.topology, sort_keys=True)
        if text not in gaps:
            gaps[text] = spectral_gap(variant, asked.starling)
        name = f"{variant.topology.get('family', 'listed')}{size_of(variant, variants)}"
        names.setdefault(round(gaps[text], 9), {})[name] = None
        keys = [key for key in variant.swept if key.split(".")[0] == "topology"]
        series.setdefault(series_name(variant, keys), []).append((gaps[text], variant))
    for i, (name, mine) in enumerate(series.items()):
        mine.sort(key=lambda pair: pair[0])
        points = [point(variant, y, asked.target, asked.over) for _, variant in mine]
        draw_points(axes, [gap for gap, _ in mine], points, [v for _, v in mine], name, i)
    style.make_log(axes, "x", list(gaps.values()))
    for gap, known in names.items():
        above = {"transform": axes.get_xaxis_transform(), "rotation": 30, "size": 6}
        axes.text(gap, 1.02, ", ".join(known), ha="left", **above)
    gap = "spectral gap 1 \N{MINUS SIGN} \N{GREEK SMALL LETTER RHO}"
    axes.set(xlabel=gap, ylabel=value_label(y, variants, asked))


def size_of(variant, variants):
    """How many nodes, if not all variants have so many."""
    nodes = {v.topology.get("nodes") for v in variants}
    return f" {variant.topology.get('nodes')}" if len(nodes) > 1 else ""


def spectral_gap(variant, command):
    """Of the topology in a round, by `starling topology analyse`; of a schedule: the mean round."""
    if not variant.topology:
        raise Wrong(f"{variant.name}: its topology is not known")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(variant.topology, file)
        file.flush()
        try:
            ended = subprocess.run(
                [command, "topology", "analyse", file.name, "--json"],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as problem:
            raise Wrong(f"--starling {command}: {problem.strerror}") from None
    if ended.returncode != 0:
        raise Wrong(f"{variant.name}: {ended.stderr.strip()}")
    return json.loads(ended.stdout)["effective_gap"]


def find_starling(plot):
    """Of the same tree as the script `plot`, or else the one that a shell finds."""
    folder = os.path.dirname(os.path.realpath(plot))
    for place in ("../../bin/starling", "../build/tools/starling"):
        path = os.path.normpath(os.path.join(folder, place))
        if os.access(path, os.X_OK):
            return path
    return shutil.which("starling") or "starling"


def read_events(path):
    """Also of a process that was killed, whose last line may be torn, and its end missing."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                found.append(json.loads(line.rstrip(",\n")))
            except ValueError:
                continue
    return [event for event in found if isinstance(event, dict) and event["ph"] == "X"]


def messages_of(events):
    """Of agents: (sender, receiver, begin, end), from the first part that leaves to the last one
    that comes."""
    sent = {}
    for e in events:
        if e["name"] == "send":
            sent.setdefault((e["pid"], e["args"]["to"], e["args"]["exchange"]), e["ts"])
    for e in events:
        way = (e["args"].get("from"), e["pid"], e["args"].get("exchange"))
        if e["name"] == "receive" and way in sent:
            yield way[0], way[1], sent.pop(way), e["ts"] + e["dur"]


def read_trace(folder):
    """Its spans: (name, node, receiver or None, begin, end), in milliseconds since the first."""
    paths = sorted(glob.glob(os.path.join(glob.escape(folder), "trace*.json")))
    events = [event for path in paths for event in read_events(path)]
    if not events:
        raise Wrong(f"{folder}: has no trace.json; run it with record.trace true")
    first = min(e["ts"] for e in events)
    spans = [
        (e["name"], e["pid"], e["args"].get("to"), e["ts"], e["ts"] + e["dur"])
        for e in events
        if e["name"] in ("gradient", "wait", "message")
    ]
    spans += [("message", i, k, *times) for i, k, *times in messages_of(events)]
    return [(*who, (begin - first) / 1e3, (end - first) / 1e3) for *who, begin, end in spans]


def timeline(axes, variants, y, asked):
    """As far as each node has come to its fourth gradient."""
    (variant,) = variants
    spans = read_trace(variant.runs[0].folder)
    ends = {}
    for name, node, _, _, end in spans:
        if name == "gradient":
            ends.setdefault(node, []).append(end)
    until = max(sorted(times)[: GRADIENTS_SHOWN][-1] for times in ends.values())
    colours = [style.line_style(i)["color"] for i in range(2)]
    for name, node, receiver, begin, end in spans:
        if begin >= until:
            continue
        if name == "message":
            axes.plot([begin, end], [node, receiver], color="0.25", lw=0.5, zorder=3, gid="guide")
        else:
            faint = name == "wait"
            look = {"color": colours[faint], "alpha": 0.35 if faint else 0.9, "linewidth": 0}
            axes.barh(node, end - begin, left=begin, height=0.6, **look)
    for colour, alpha, label in zip(colours, (0.9, 0.35), ("gradient", "wait")):
        axes.barh(0, 0, color=colour, alpha=alpha, label=label)
    axes.set(xlim=(0, until), ylim=(max(ends) + 0.5, -0.5), xlabel="milliseconds", ylabel="node")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(variant.name)


def heatmap(axes, variants, y, asked):
    """`variants`: of one series, which `asked` has all of."""
    columns, rows = (ordered(v.swept[key] for v in asked.all) for key in asked.keys)
    cells = np.full((len(rows), len(columns)), np.nan)
    for variant in variants:
        column, row = (variant.swept[key] for key in asked.keys)
        at = point(variant, y, asked.target, asked.over)
        cells[rows.index(row), columns.index(column)] = at.middle
        if at.count < at.total:
            say(f"{variant.name}: {at.count} of {at.total} seeds")
    low, high = asked.limits
    decimals = max(0, 2 - math.floor(math.log10(max(abs(low), abs(high), 1e-9))))
    axes.imshow(cells, cmap="cividis", aspect="auto", origin="lower", vmin=low, vmax=high)
    for (i, k), value in np.ndenumerate(cells):
        known = math.isfinite(value)
        dark = known and value < (low + high) / 2
        text = f"{value:.{decimals}f}" if known else "\N{EN DASH}"
        colour = "white" if dark else "black"
        axes.text(k, i, text, ha="center", va="center", fontsize=7, color=colour)
    style.fix_ticks(axes.xaxis, range(len(columns)), [swept_value(v) for v in columns])
    style.fix_ticks(axes.yaxis, range(len(rows)), [swept_value(v) for v in rows])
    across, down = map(swept_name, asked.keys)
    axes.set(xlabel=across, ylabel=down, title=series_name(variants[0], asked.keys))


KINDS = {
    "curves": Kind(
        curves,
        "--y over --x, a line a variant, a band over seeds",
        "runs",
        ys=QUALITIES,
        xs=COSTS,
        uses=("logx", "logy"),
    ),
    "bars": Kind(
        bars,
        "--y at the end, a bar a method, in groups by a swept key",
        "a folder of compare",
        uses=("by",),
    ),
    "lines": Kind(
        lines,
        "--y at the end over a swept key, a line a method",
        "a swept key",
        uses=("by", "logx", "logy"),
    ),
    "heatmap": Kind(
        heatmap,
        "--y at the end over two swept keys, a panel a method",
        "two swept keys",
        uses=("by",),
    ),
    "tradeoff": Kind(
        tradeoff,
        "--y at the end over --x in all, or to --target: a point a variant",
        "runs",
        ys=QUALITIES,
        xs=COSTS,
        uses=("logx", "logy"),
    ),
    "speedup": Kind(
        speedup,
        "--y with the fewest nodes, divided by that with more",
        f"{NODES} swept",
        ys=SPEEDS,
        first_y="rounds",
        uses=("logx", "logy"),
    ),
    "timeline": Kind(
        timeline,
        "what each node does when, a panel a run: gradients, waits, messages",
        "record.trace of a simulation",
        ys=("loss",),
        first_y="loss",
    ),
    "spectra": Kind(
        spectra,
        "--y over the spectral gap of each topology",
        "variants with several topologies",
        first_y="rounds",
        uses=("logy", "starling"),
    ),
}


# ---- the panels of a figure ----


def panels_of(name, variants, ys, asked):
    """[(variants, quantity)] of a figure. Of a heat map: a panel for each method."""
    if name == "speedup" and NODES not in swept_keys(variants):
        raise Wrong(f"--figure speedup needs {NODES} swept: `starling compare` does it")
    if name == "timeline":
        return [([variant], ys[0]) for variant in variants]
    if name != "heatmap":
        return [(variants, y) for y in ys]
    if len(ys) > 1:
        raise Wrong("--figure heatmap: choose one quantity by --y")
    asked.keys = chosen_keys(variants, asked, 2, "heatmap")
    asked.all = [v for v in variants if all(key in v.swept for key in asked.keys)]
    values = [point(v, ys[0], asked.target, asked.over).middle for v in asked.all]
    if np.isnan(values).all():
        raise Wrong(f"--y {ys[0].name}: no variant has a number")
    asked.limits = np.nanmin(values), np.nanmax(values)
    return [(list(mine.values()), ys[0]) for mine in arrange(variants, asked.keys).values()]
