#!/usr/bin/env python3
"""`starling topology make` beside the families of tests/reference/families.py: equal edges, equal
weights, slot by slot; and what is promised of MATCHA."""
import functools
import itertools
import json
import os
import sys

import numpy as np

from _simulate import dpsgd, main, told
import families
import _listed

QUICK = "STARLING_QUICK" in os.environ  # under sanitizers

OF_ANY_SIZE = "ring path star complete directed-ring one-peer-exponential"
OF_ANY_SIZE += " symmetric-exponential static-exponential"
CASES = [
    *[(name, n, {}) for name in OF_ANY_SIZE.split() for n in (2, 3, 13)],
    *[
        (name, n, {})
        for name in ("wheel", "barbell", "lollipop", "complete-bipartite", "k-ary-tree")
        for n in (4, 9, 14)
    ],
    *[(name, n, {}) for name in ("hypercube", "one-peer-hypercube") for n in (2, 16)],
    *[
        (name, n, {"sides": sides})
        for name in ("grid", "torus")
        for n, sides in ((12, [3, 4]), (24, [2, 3, 4]), (16, [2, 2, 2, 2]), (7, [7]), (9, [1, 9]))
    ],
    ("grid", 12, {}),
    ("torus", 30, {}),
    ("barbell", 11, {"clique": 3}),
    ("lollipop", 11, {"clique": 10}),
    ("complete-bipartite", 11, {"part": 3}),
    ("k-ary-tree", 20, {"arity": 3}),
    ("circulant", 13, {"offsets": [1, 5]}),
    ("circulant", 12, {"offsets": [3, 4, 6]}),
    ("clusters", 12, {"clusters": 3}),
    ("clusters", 20, {"clusters": 4, "degree": 2, "joined": "complete", "bridges": 2}),
    ("clusters", 12, {"clusters": 2, "bridge_every": 3, "bridges": 6}),
    ("clusters", 18, {"clusters": 3, "degree": 3, "joined": "path"}),
    ("clusters", 10, {"clusters": 5, "joined": "star"}),
    *[
        ("random-regular", n, {"degree": d, "seed": seed})
        for n, d, seed in ((10, 3, 1), (20, 4, 2), (9, 2, 3), (12, 9, 4), (50, 3, 12345678901))
    ],
    *[
        ("erdos-renyi", n, {"probability": p, "seed": seed})
        for n, p, seed in ((16, 0.3, 1), (12, 0.9, 2), (60, 0.07, 3), (5, 1, 4))
    ],
    *[
        ("watts-strogatz", n, {"degree": d, "probability": p, "seed": seed})
        for n, d, p, seed in ((20, 4, 0.2, 1), (15, 2, 0.5, 2), (9, 8, 0.5, 3))
    ],
    *[
        ("random-geometric", n, {"radius": r, "seed": seed})
        for n, r, seed in ((30, 0.4, 1), (100, 0.2, 2), (10, 1, 3))
    ],
    *[("kautz", n, {"arity": k}) for n, k in ((12, 2), (36, 3), (10, 2), (7, 4))],
    *[("de-bruijn", n, {"arity": k}) for n, k in ((8, 2), (27, 3), (10, 2), (7, 4))],
    *[("d-equistatic", n, {"degree": d, "seed": 5}) for n, d in ((10, 3), (17, 1), (6, 5))],
    *[("u-equistatic", n, {"degree": d, "seed": 6}) for n, d in ((10, 4), (17, 2), (6, 4))],
    ("hyper-cuboid", 12, {}),
    ("hyper-cuboid", 30, {"sides": [5, 6]}),
    ("hyper-cuboid", 7, {}),
    ("hyper-cuboid", 64, {"sides": [4, 4, 4]}),
    ("alternating-matchings", 8, {}),
    ("alternating-matchings", 2, {}),
    ("random-matching", 9, {}),
    ("random-matching", 20, {"period": 12, "seed": 3}),
    *[
        ("base-k", n, {"peers": k})
        for n in (2, 5, 7, 12, 23, 25, 36)
        for k in (1, 2, 3, 6)
        if k < n
    ],
    ("od-equidyn", 9, {}),
    ("od-equidyn", 20, {"period": 12, "seed": 3}),
    ("ou-equidyn", 9, {}),
    ("ou-equidyn", 20, {"period": 12, "seed": 3}),
    *[("epidemic", n, {"degree": d}) for n, d in ((2, 1), (9, 3), (9, 4), (10, 3), (140, 1))],
    ("epidemic", 5, {"degree": 4}),
    ("epidemic", 16, {"degree": 4, "seed": 5}),
]


def text(value):
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def make(starling, name, n, parameters):
    """The matrices of what `make --expand` writes."""
    arguments = [
        word
        for key, value in parameters.items()
        for word in ("--" + key.replace("_", "-"), text(value))
    ]
    content = told(starling, "make", name, "--nodes", str(n), *arguments, "--expand")
    return [dpsgd.weighted(n, slot["edges"]) for slot in content.get("schedule", [content])]


def compare(got, expected):
    """What differs, or nothing."""
    if len(got) != len(expected):
        return f"{len(got)} slots, not {len(expected)}"
    for k, (a, b) in enumerate(zip(got, expected)):
        n = len(a)
        differ = ((a != 0) != (b != 0)) & ~np.eye(n, dtype=bool)
        if differ.any():
            return f"slot {k}: edges differ: {np.argwhere(differ)[:5].tolist()}"
        if np.abs(a - b).max() > 1e-12:
            return f"slot {k}: weights differ by {np.abs(a - b).max():.3g}"
    return ""


# ---- MATCHA: nothing to compare with, but much to hold ----


def laplacian(n, edges):
    l = np.zeros((n, n))
    for i, j in edges:
        l[i, i] += 1
        l[j, j] += 1
        l[i, j] -= 1
        l[j, i] -= 1
    return l


def best_probabilities(laplacians, budget):
    """max lambda_2(sum p L) by projected supergradients, from the uniform start."""
    m = len(laplacians)
    p = np.full(m, budget)
    best = 0
    for step in range(1, 300):
        values, vectors = np.linalg.eigh(sum(a * l for a, l in zip(p, laplacians)))
        best = max(best, values[1])
        slope = np.array([vectors[:, 1] @ l @ vectors[:, 1] for l in laplacians])
        p = p + 0.3 * budget / np.sqrt(step) * slope / np.linalg.norm(slope)
        low, high = -2, 2
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if np.clip(p - middle, 0, 1).sum() > budget * m else (low, middle)
            )
        p = np.clip(p - high, 0, 1)
    return best


def check_matcha(starling, base, n, budget, base_edges, **parameters):
    period = 1500
    slots = make(
        starling, "matcha", n, {"base": base, "budget": budget, "period": period, **parameters}
    )
    base_pairs = {frozenset(edge) for edge in base_edges}
    active = np.array([[w[i, j] != 0 for i, j in map(tuple, base_pairs)] for w in slots])
    alpha = max(w[~np.eye(n, dtype=bool)].max() for w in slots)
    for k, w in enumerate(slots):
        edges = [tuple(pair) for pair, on in zip(base_pairs, active[k]) if on]
        if np.abs(w - (np.eye(n) - alpha * laplacian(n, edges))).max() > 1e-12:
            return f"round {k}: W is not I - alpha L of edges of the base graph"
    groups = {}
    for pair, pattern in zip(base_pairs, active.T):
        groups.setdefault(pattern.tobytes(), []).append(tuple(pair))
    degree = max(sum(i in pair for pair in base_pairs) for i in range(n))
    if len(groups) > degree + 1:
        return f"{len(groups)} matchings for a largest degree of {degree}"
    if any(len(set(itertools.chain(*group))) != 2 * len(group) for group in groups.values()):
        return "edges that are active together are no matching"
    p = np.array([np.frombuffer(pattern, bool).mean() for pattern in groups])
    if abs(p.mean() - budget) > 5 * np.sqrt(budget * (1 - budget) / period / len(p)) + 1e-4:
        return f"{p.mean():.4f} of the matchings are active, not {budget}"
    laplacians = [laplacian(n, group) for group in groups.values()]
    mean = sum(a * l for a, l in zip(p, laplacians))
    reached, best = np.linalg.eigvalsh(mean)[1], best_probabilities(laplacians, budget)
    if reached < 0.9 * best:
        return f"lambda_2 of the mean is {reached:.4f}, of the best probabilities {best:.4f}"
    spread = sum(a * (1 - a) * l for a, l in zip(p, laplacians))

    def factor(a):
        return np.linalg.eigvalsh(
            np.eye(n) - 2 * a * mean + a * a * (mean @ mean + 2 * spread) - np.ones((n, n)) / n
        )[-1]

    least = min(factor(a) for a in np.linspace(0.01, 1, 300))
    return (
        ""
        if factor(alpha) <= least + 0.01 * (1 - least) + 0.002
        else f"alpha = {alpha:.3f} gives {factor(alpha):.4f}, the best {least:.4f}"
    )


MATCHAS = [
    ("ring", 9, 0.5, families.ring_edges(9), {"seed": 3}),
    ("star", 7, 0.5, families.star_edges(7), {}),
    ("barbell", 10, 0.3, families.UNDIRECTED["barbell"](10), {}),
    ("torus", 12, 0.5, families.UNDIRECTED["torus"](12, sides=[3, 4]), {"sides": [3, 4]}),
]


def check_made(starling, name, n, parameters):
    expected = families.MATRICES[name](n, **parameters)
    return compare(make(starling, name, n, parameters), expected), None


def all_checks(starling):
    for case in CASES[::8] if QUICK else CASES:
        name, n, parameters = case
        label = f"{name} of {n}{' ' + json.dumps(parameters) if parameters else ''}"
        yield label, functools.partial(check_made, starling, *case)
    for base, n, budget, edges, parameters in MATCHAS[:2] if QUICK else MATCHAS:
        check = functools.partial(check_matcha, starling, base, n, budget, edges, **parameters)
        yield f"matcha on a {base} of {n}, budget {budget}", lambda check=check: (check(), None)
    named = {name for name, _, _ in CASES} | {"matcha"}
    for name in _listed.families(starling):
        if name not in named:
            print(f"skip {name}: tests/reference/families.py does not have it", flush=True)


if __name__ == "__main__":
    sys.exit(main(__doc__, all_checks, 1))
