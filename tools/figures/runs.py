"""What is drawn: variants, each with its runs (one a seed), each with its recorded rounds.

Read from a folder of `starling compare`, or from a run's or an agent's folder.
"""

import csv
import fnmatch
import glob
import json
import os
from dataclasses import dataclass, field, replace

import numpy as np

from . import Wrong
from .quantities import link_names


@dataclass
class Run:
    """`columns`: {name of a column of records.csv: its numbers by recorded round, NaN: none}."""

    folder: str
    columns: dict
    whole: bool = True  # it came to its last round
    seconds: str = ""  # why measured seconds cannot be drawn; "": they can
    nodes: dict = field(default_factory=dict)  # column -> (worst, best) node's, by recorded round

    def column(self, quantity):
        """In the quantity's unit."""
        if quantity.column == "measured_s" and quantity.column not in self.columns:
            if self.seconds:
                raise Wrong(self.seconds)
            self.columns[quantity.column] = read_run(self.folder).column(quantity)
        if quantity.column not in self.columns:
            there = " or ".join(link_names(self.columns)) or "none"
            raise Wrong(f"{self.folder}: {quantity.name} is not known; links with times: {there}")
        return quantity.scale * self.columns[quantity.column]


@dataclass
class Variant:
    """`name` tells it from all others drawn; `method` is shared by what a sweep has made of it."""

    name: str
    method: str
    runs: list
    swept: dict = field(default_factory=dict)  # key -> value
    topology: dict = field(default_factory=dict)  # as an experiment has it; {}: not known
    target_loss: float = float("nan")  # of the comparison


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_lines(path):
    """A line that is not whole is the last one of a run that was killed."""
    if not os.path.isfile(path):
        raise Wrong(f"{path!r} is no regular file")
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def read_table(path):
    if not os.path.exists(path):
        folder = os.path.dirname(path)
        raise Wrong(f"{path}: it is missing: `starling compare {folder}` writes it")
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers(values):
    return np.array([np.nan if value in (None, "") else float(value) for value in values])


def mean(values):
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


# ---- a run's folder, or an agent's ----


def read_run(folder):
    nodes = {}  # round -> lines of the nodes
    for path in glob.glob(os.path.join(glob.escape(folder), "metrics*.jsonl")):
        for line in read_lines(path):
            nodes.setdefault(line["round"], []).append(line)
    consensus = os.path.join(folder, "consensus.jsonl")
    if os.path.exists(consensus):
        shown = {line["round"]: line for line in read_lines(consensus)}
    else:  # an agent's folder, or several agents': their mean
        shown = {
            number: {key: mean([line[key] for line in lines]) for key in ("accuracy", "test_loss")}
            for number, lines in nodes.items()
        }
    rounds = sorted(number for number in shown if number in nodes)
    if not rounds:
        raise Wrong(f"{folder}: no recorded round")
    columns = {
        "round": rounds,
        "accuracy": [shown[r]["accuracy"] for r in rounds],
        "loss": [shown[r]["test_loss"] for r in rounds],
        "consensus_distance": [shown[r].get("consensus_distance") for r in rounds],
        "mb": [mean([line["bytes_sent"] for line in nodes[r]]) / 1e6 for r in rounds],
        "measured_s": [
            max(line.get("time", line["seconds"]["total"]) for line in nodes[r]) for r in rounds
        ],
    }
    if all("virtual_s" in shown[r] for r in rounds):
        columns["measured_s"] = [shown[r]["virtual_s"] for r in rounds]
    bands = {
        column: node_band([[line[key] for line in nodes[r]] for r in rounds])
        for column, key in (("accuracy", "accuracy"), ("loss", "test_loss"))
    }
    return Run(folder, {k: numbers(v) for k, v in columns.items()}, nodes=bands)


def node_band(values):
    """(least, greatest) of the nodes, by round."""
    there = [[x for x in row if x is not None] for row in values]
    return numbers([min(row, default=None) for row in there]), numbers(
        [max(row, default=None) for row in there]
    )


def read_one(folder):
    """The variant of a folder with one run in it."""
    run = read_run(folder)
    summary = os.path.join(folder, "summary.json")
    about = read_json(summary) if os.path.exists(summary) else {"per_node": []}
    is_virtual = any("virtual_s" in node for node in about["per_node"])
    if "predicted_seconds" in about and not is_virtual:
        del run.columns["measured_s"]
        run.seconds = (
            f"{folder}: its seconds are the simulator's own, not those that it predicts; "
            "draw the folder of a `starling compare` with --x seconds:MBIT:MS"
        )
    config = os.path.join(folder, "config.json")
    topology = read_json(config).get("topology", {}) if os.path.exists(config) else {}
    return [Variant(folder, folder, [run], topology=topology)]


# ---- a folder of compare ----


def read_records(folder):
    """{(name, seed): Run}"""
    path = os.path.join(folder, "records.csv")
    rows = {}
    for row in read_table(path):
        rows.setdefault((row["name"], row["seed"]), []).append(row)
    if not rows:
        raise Wrong(f"{path}: no recorded round")
    runs = {}
    for (name, seed), mine in rows.items():
        known = ["round", "accuracy", "loss", "consensus_distance", "mb"]
        known += [key for key in mine[0] if key.startswith("predicted_s_")]
        own = os.path.join(folder, name, f"seed-{seed}")
        columns = {key: numbers(row[key] for row in mine) for key in known}
        runs[name, seed] = Run(own if os.path.isdir(own) else os.path.dirname(own), columns)
    return runs


def read_study(folder):
    study = read_json(os.path.join(folder, "study.json"))
    targets = {
        row["name"]: numbers([row["target_loss"]])[0]
        for row in read_table(os.path.join(folder, "compare.csv"))
    }
    records = read_records(folder)
    variants = []
    for told in study["variants"]:
        runs = [run for (name, _), run in records.items() if name == told["name"]]
        for run in runs:
            run.folder = told["run"] or run.folder
            run.whole = run.columns["round"][-1] == told["task"]["rounds"]
            links = " or ".join(f"seconds:{name}" for name in link_names(run.columns))
            if not study["agents"]:
                run.seconds = (
                    f"{folder}: these runs were simulated: their seconds are the simulator's own; "
                    f"take those predicted: {links}"
                )
        if runs:
            variants.append(
                Variant(
                    os.path.join(folder, told["name"]),
                    *(told["method"], runs, told["swept"], told["experiment"]["topology"]),
                    targets.get(told["name"], float("nan")),
                )
            )
    return variants


# ---- what is asked for ----


def short_names(paths):
    """The last parts of the paths, as many as tell them apart."""
    parts = [os.path.abspath(path).split(os.sep) for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    raise Wrong("a folder is named twice")


def read_folder(folder):
    if not os.path.isdir(folder):
        raise Wrong(f"{folder}: no such folder")
    if os.path.exists(os.path.join(folder, "study.json")):
        return read_study(folder)
    if glob.glob(os.path.join(glob.escape(folder), "metrics*.jsonl")):
        return read_one(folder)
    raise Wrong(f"{folder}: neither a run folder nor one of starling compare")


def read_folders(folders):
    variants = [variant for folder in folders for variant in read_folder(folder)]
    for variant, name in zip(variants, short_names([variant.name for variant in variants])):
        variant.method = name if variant.method == variant.name else variant.method
        variant.name = name
    return variants


def without_constants(variants):
    """Of what is swept, only keys in which these differ."""
    values = {}
    for variant in variants:
        for key, value in variant.swept.items():
            values.setdefault(key, set()).add(json.dumps(value))
    return [
        replace(v, swept={key: x for key, x in v.swept.items() if len(values[key]) > 1})
        for v in variants
    ]


def choose(variants, wanted):
    """Those that a name or pattern of `wanted` fits, in its order. A pattern may list several, with
    commas, which a name may have too."""
    if not wanted:
        return variants

    def fitting(pattern):
        return [v for v in variants for name in {v.name, v.method} if matches(name, pattern)]

    def matches(name, pattern):
        return name == pattern or fnmatch.fnmatchcase(name, pattern)

    chosen = {}
    for whole in wanted:
        for pattern in [whole] if fitting(whole) else whole.split(","):
            found = fitting(pattern.strip())
            if not found:
                names = ", ".join(dict.fromkeys(v.method for v in variants))
                raise Wrong(f"--only {pattern}: no such variant or method; there are: {names}")
            chosen.update((v.name, v) for v in found)
    return list(chosen.values())
