#!/usr/bin/env python3
"""What a round of an algorithm takes of one node's processor, at ResNet-50's 25.6 million numbers,
beside the same steps in numpy.

Two nodes are simulated for a few rounds, and for more: what the processor spends beyond, by round
and node, is everything: a gradient that costs next to nothing, what is sent, what is decoded and
combined, the step. `beside all-reduce` leaves out what all-reduce takes. numpy does what a worker
of laq, or of fetch-sgd, does before it sends, and fetch-sgd's step after it, with places and signs
that it has drawn before. Turns alternate; the table has medians, in milliseconds, in Markdown.

usage: rounds.py [--build BUILD] [--turns N]     meson compile -C BUILD
"""
import json
import os
import resource
import shutil
import subprocess
import tempfile

import numpy as np

import _bench

NODES, FEW, MANY = 2, 4, 12
DIMENSION, ROWS, BITS = _bench.RESNET50, 5, 4
COLUMNS = DIMENSION // 10 // ROWS
KEPT = COLUMNS // 10
TOP = {"name": "top-k", "fraction": 0.01}
ALGORITHMS = {
    "all-reduce": {"name": "all-reduce"},
    "lag-wk": {"name": "lag-wk"},
    "laq, 4 bits": {"name": "laq", "bits": BITS},
    "ef21, top-k 1 %": {"name": "ef21", "compressor": TOP},
    "fetch-sgd, 5 rows": {"name": "fetch-sgd", "sketch": {"rows": ROWS}},
    "powersgd, rank 2": {"name": "powersgd"},
}


def used(starling, folder, algorithm, rounds):
    """The processor's time of a run, in ms."""
    experiment = {
        "rounds": rounds,
        "topology": {"nodes": NODES, "family": "path"},
        "model": {"name": "synthetic", "table": "resnet50"},
        "algorithm": algorithm,
        "optimizer": {"learning_rate": 0.01},
        "record": {"every": 1000},
    }
    path, out = (os.path.join(folder, name) for name in ("experiment.json", "out"))
    with open(path, "w") as file:
        json.dump(experiment, file)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([starling, "sim", path, "--out", out], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(out)  # its models
    return 1e3 * (after.ru_utime - before.ru_utime)  # the system's is that of fresh pages


def round_of(starling, folder, algorithm):
    few, many = (used(starling, folder, algorithm, rounds) for rounds in (FEW, MANY))
    return (many - few) / (MANY - FEW) / NODES


class Numpy:
    def __init__(self):
        random = np.random.default_rng(1)
        self.g = random.standard_normal(DIMENSION, dtype=np.float32)
        self.h = np.zeros_like(self.g)
        self.places = [random.integers(0, COLUMNS, DIMENSION) for _ in range(ROWS)]
        self.signs = [random.choice(np.array([-1, 1], np.float32), DIMENSION) for _ in range(ROWS)]
        self.u = self.e = np.zeros((ROWS, COLUMNS), np.float32)

    def laq(self):
        """Levels of the difference, whether they are worth sending, and two of them to a byte."""
        news = self.g - self.h
        largest = abs(news).max()
        step = 2 * largest / (2**BITS - 1)
        levels = np.floor((news + largest) / step + np.float32(0.5))
        sent = step * levels - largest
        rest = news - sent
        worth = sent @ sent > 3 * (rest @ rest)
        codes = levels.astype(np.uint8)
        return worth, codes[::2] | codes[1::2] << 4, self.h + sent

    def fetch_sgd(self):
        """The sketch; then momentum, error, the largest elements, and their places cleared."""
        table = np.array(
            [
                np.bincount(places, weights=signs * self.g, minlength=COLUMNS)
                for places, signs in zip(self.places, self.signs)
            ],
            np.float32,
        )
        u = 0.9 * self.u + table
        e = self.e + 0.01 * u
        found = np.median(
            [signs * row[places] for places, signs, row in zip(self.places, self.signs, e)], axis=0
        )
        kept = np.argpartition(abs(found), DIMENSION - KEPT)[DIMENSION - KEPT :]
        for places, row in zip(self.places, e):
            row[places[kept]] = 0
        return found[kept]


def spent(work):
    began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    work()
    return 1e3 * (resource.getrusage(resource.RUSAGE_SELF).ru_utime - began)


def main():
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    starling = os.path.join(os.path.abspath(options.build), "tools", "starling")
    peer = Numpy()
    theirs = {"laq, 4 bits": peer.laq, "fetch-sgd, 5 rows": peer.fetch_sgd}
    with tempfile.TemporaryDirectory(prefix="starling-rounds-") as folder:
        works = {
            name: lambda algorithm=algorithm: round_of(starling, folder, algorithm)
            for name, algorithm in ALGORITHMS.items()
        }
        works.update({"numpy " + name: lambda w=w: spent(w) for name, w in theirs.items()})
        found = _bench.medians(works, options.turns)
    _bench.print_heads("algorithm", "a round", "beside all-reduce", "numpy")
    for name in ALGORITHMS:
        other = f"{found['numpy ' + name]:,.0f}" if name in theirs else ""
        beside = found[name] - found["all-reduce"]
        _bench.print_row(name, f"{found[name]:,.0f}", f"{beside:,.0f}", other)


if __name__ == "__main__":
    main()
