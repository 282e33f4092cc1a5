#!/usr/bin/env python3
"""The simulator's algorithms against an independent float64 program
(tests/reference/algorithms.py), on quadratic problems.

Each algorithm runs on a ring of eight, on an irregular graph, and where it can on directed and
time-varying graphs; with SGD, momentum, Nesterov and weight decay; with each compressor that leaves
nothing to chance; from equal and from different starts. What follows from the formulas, such as
that two algorithms are one, or that the mean stays, is not tried beside them."""
import json
import math
import sys

import numpy as np

import _centralized
import _drawn
import _listed
import _silent
import _simulate
import _sparse
from _edge import Edge
from _simulate import QUICK, dpsgd, family, irregular, matchings, of, simulate
import algorithms
from expect import Graph, digraph, exponential, lazy_ring, ring

ROUNDS, RECORDED = 50, [1, 2, 5, 10, 50]
TOLERANCE = 1e-4  # relative to max(1, |x|); single precision keeps about 1e-6
D, ROWS, SEED, PROBLEMS = 20, 12, 41, 3

NAMES = ["ring", "lazy ring", "irregular", "digraph", "matchings", "exponential"]
RING, LAZY, IRREGULAR, DIGRAPH, MATCHINGS, EXPONENTIAL = NAMES
GRAPHS = {
    RING: ring(8),
    IRREGULAR: irregular(),
    DIGRAPH: digraph(),
    MATCHINGS: matchings(),
    EXPONENTIAL: exponential(8),
    LAZY: lazy_ring(),
}
PATH, STAR, TORUS, LISTED, SIX = "path", "star", "torus", "listed", "exponential of 6"
GRAPHS[PATH] = family("path", dpsgd.ring(8)[:-1])
GRAPHS[STAR] = family("star", [[0, i] for i in range(1, 8)])
GRAPHS[TORUS] = family("torus", dpsgd.TORUS_3X3, 9, sides=[3, 3])
GRAPHS[LISTED] = Graph({"nodes": 5, "edges": dpsgd.IRREGULAR}, [dpsgd.weighted(5, dpsgd.IRREGULAR)])
GRAPHS[SIX] = exponential(6)
FIXED = [RING, IRREGULAR]
FIXED_D2 = [LAZY, IRREGULAR]  # the ring of eight has lambda_n = -1/3

PLAIN = {"learning_rate": 0.2}
DECAY = {"learning_rate": 0.1, "weight_decay": 0.05}
MOMENTUM = {"learning_rate": 0.03, "momentum": 0.9}
NESTEROV = {"learning_rate": 0.03, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}
# What has cases in test_low_rank.py, test_sketch.py, test_edges.py and test_outer.py.
ELSEWHERE = "powersgd power-gossip fetch-sgd moniqua relaysum slowmo diloco noloco fedavg easgd"
ELSEWHERE = [of(name) for name in f"{ELSEWHERE} d-adam d-amsgrad one-bit-adam".split()]
COSINE = {"learning_rate": 0.2, "schedule": {"name": "cosine", "minimum": 0.05, "warmup_rounds": 5}}
STEP = {"name": "step", "milestones": [0.4, 0.8], "factor": 0.3, "warmup_rounds": 6}
RATES = {
    "steps": {"learning_rate": 0.3, "momentum": 0.5, "schedule": STEP},
    "cosine": {**NESTEROV, "schedule": COSINE["schedule"]},
    "warm-up": {"learning_rate": 0.6, "schedule": {"name": "constant", "warmup_rounds": 8}},
}
STILL = {"learning_rate": 0}
LATE = {"momentum": MOMENTUM}
FORMS = [
    *((form, 0) for form in "tree recursive-doubling halving-doubling double-tree star".split()),
    *(("hierarchical", group) for group in (0, 3)),
    *((form, group) for form in ("torus-2d", "two-rings") for group in (0, 1)),
]  # of an all-reduce, each with the nodes in a group
WITH_MOMENTUM = {
    "sgd": PLAIN,
    "momentum": MOMENTUM,
    "nesterov": NESTEROV,
    "cosine": COSINE,
    "still": STILL,
}
WITHOUT = {"sgd": PLAIN, "decay": DECAY, "still": STILL}
SLOW = {
    "sgd": {"learning_rate": 0.03},
    "decay": {"learning_rate": 0.02, "weight_decay": 0.05},
    "cosine": {**COSINE, "learning_rate": 0.03},
    "still": STILL,
}  # for algorithms with a momentum of their own
ALONE = {
    name: optimizer for name, optimizer in WITH_MOMENTUM.items() if name != "still"
}  # no averaging of models to look at

NONE = {"identity": {"name": "identity"}}
TOP4 = {"top-k": {"name": "top-k", "k": 4}}
LARGEST = {**NONE, "top-k": {"name": "top-k", "k": 16}}  # what bears no small delta
SIGN = {"scaled-sign": {"name": "scaled-sign"}}
MARKS = {
    "stc": {"name": "stc", "k": 4},
    "sbc": {"name": "sbc", "fraction": 0.2},
    "pos-neg": {"name": "pos-neg", "k": 3},
    "3lc": {"name": "3lc"},
    "stc golomb": {"name": "stc", "k": 4, "coding": "golomb"},
    "top-k elias": {"name": "top-k", "k": 4, "coding": "elias"},
}
STROM = {"strom": {"name": "strom", "threshold": 0.3}}
ALL = {
    **NONE,
    **TOP4,
    "top-fraction": {"name": "top-k", "fraction": 0.3},
    **SIGN,
    "sign-in-buckets": {"name": "scaled-sign", "bucket": 8},
}

# How near an edge is too near. That of 3lc moves with the largest element, and its error. What
# rounds has edges at many numbers, halves at nearly every one: to miss one of those costs less than
# is allowed.
EDGES = {"3lc": 4e-6, "float16": 0, "bfloat16": 1e-7, "float8": 1e-7}
SAME, OWN = "same", "own"  # every node starts in the same place, or in its own


class Case:
    def __init__(self, name, settings, graph, optimizer, start, seed=SEED):
        self.name, self.settings, self.graph = name, settings, GRAPHS[graph]
        self.optimizer, self.start, self.seed = optimizer, start, seed

    @property
    def compressor(self):
        return self.settings.get("compressor", {}).get("name")

    def problem(self, seed=None):
        return dpsgd.problem(self.graph.n, ROWS, D, self.start == SAME, seed or self.seed)

    def expected(self):
        """A problem, and the reference's models and push-sum weights on it: the first problem on
        which rounding decides nothing."""
        for seed in range(self.seed, self.seed + 100):
            edge = Edge(EDGES.get(self.compressor, 1e-6))
            a, b, x0 = self.problem(seed)
            problem = algorithms.Quadratic(a, b)
            what = self.graph.slots, self.settings, self.optimizer, problem, x0
            more = {"watch": edge.watch, "exceeds": edge.exceeds}
            history = algorithms.history(ROUNDS, *what, **more)
            if not edge.near:
                return (a, b, x0), *history
        raise RuntimeError(f"{self.name}: every problem has a close call")

    def found(self, starling, problem=None):
        what = self.graph, self.settings, self.optimizer, *(problem or self.problem())
        return simulate(starling, *what, ROUNDS, RECORDED)


def in_turns(*factors):
    """At most half of all combinations: each value comes once, and where it may be twice, beside
    other ones."""
    longest, count = max(map(len, factors)), math.prod(map(len, factors))
    rows = (
        tuple((k + i * (k // longest)) % len(factor) for i, factor in enumerate(factors))
        for k in range(min(2 * longest, max(longest, count // 2)))
    )
    for row in dict.fromkeys(rows):
        yield [factor[place] for factor, place in zip(factors, row)]


def cases(label, settings, compressors, graphs, optimizers, starts):
    """These with each other, by turns on three problems. compressors None: the algorithm's own
    business."""
    factors = (list(optimizers.items()), list((compressors or {"": None}).items()), graphs, starts)
    for count, ((how, optimizer), (what, config), graph, start) in enumerate(in_turns(*factors)):
        full = {**settings, "compressor": config} if config else settings
        yield Case(
            " ".join(filter(None, [label, what, graph, how, start])),
            *(full, graph, optimizer, start, SEED + 100 * (count % PROBLEMS)),
        )


def with_steps(label, name, key, step, variant=None):
    """A contractive compressor and a step that it bears."""
    base = {"name": name, **({"variant": variant} if variant else {})}
    settings = {**base, key: 1 if variant is None or variant == "compress-then-mix" else 0.8}
    yield from cases(label, settings, NONE, FIXED, WITH_MOMENTUM, [SAME, OWN])
    lossy = {what: config for what, config in ALL.items() if what != "identity"}
    yield from cases(label, {**base, key: step}, lossy, FIXED, WITH_MOMENTUM, [SAME, OWN])


def all_cases():
    both = [SAME, OWN]
    for variant in ("adapt-then-combine", "combine-while-adapt"):
        settings = of("d-psgd", variant=variant)
        graphs = [*FIXED, MATCHINGS, EXPONENTIAL]
        yield from cases(f"d-psgd {variant}", settings, None, graphs, WITH_MOMENTUM, both)
        settings = of("d-psgd", variant=variant, local_steps=3)
        graphs = [RING, MATCHINGS, EXPONENTIAL]
        yield from cases(f"d-psgd {variant} H=3", settings, None, graphs, WITH_MOMENTUM, [OWN])
        settings = of("d-psgd", variant=variant)
        graphs = [LAZY, PATH, STAR, TORUS, LISTED, SIX]
        yield from cases(f"d-psgd {variant}, rates", settings, None, graphs, RATES, [OWN])
    cyclic = {"name": "shared-mask", "order": "cyclic"}
    masks = {f"{f}": {**cyclic, "fraction": f} for f in (0.6, 0.3, 0.15)}
    for steps in (1, 2):
        settings = {"name": "d-psgd", "local_steps": steps}
        graphs = [*FIXED, MATCHINGS, EXPONENTIAL]
        yield from cases(f"cyclic mask H={steps}", settings, masks, graphs, WITH_MOMENTUM, both)
    slow = {
        how: {**optimizer, "learning_rate": optimizer["learning_rate"] / 2}
        for how, optimizer in WITH_MOMENTUM.items()
    }
    yield from cases("dcd-psgd", {"name": "dcd-psgd"}, ALL, FIXED, slow, [SAME])
    yield from cases("ecd-psgd", {"name": "ecd-psgd"}, ALL, FIXED, slow, [SAME])
    for variant in ("compress-then-mix", "mix-then-compress"):
        yield from with_steps(f"choco-sgd {variant}", "choco-sgd", "consensus_step", 0.3, variant)
        each = of("choco-sgd", variant=variant, consensus_step=0.3, replicas="per-neighbour")
        label, graphs = f"choco-sgd {variant} replicas", [IRREGULAR, MATCHINGS]
        yield from cases(label, each, ALL, graphs, WITH_MOMENTUM, [OWN])
    silent = {"name": "choco-sgd", "consensus_step": 0.3, "trigger": 10, "trigger_growth": 0.4}
    for form in ("compress-then-mix", "mix-then-compress"):
        sparq = {**silent, "variant": form}
        yield from cases(f"sparq {form}", sparq, ALL, FIXED, ALONE, both)
        sparq = {**sparq, "local_steps": 3, "replicas": "per-neighbour"}
        yield from cases(f"sparq {form} H=3", sparq, TOP4, [MATCHINGS], ALONE, [OWN])
        local = {"name": "choco-sgd", "variant": form, "consensus_step": 0.3, "local_steps": 2}
        yield from cases(f"choco-sgd {form} H=2", local, TOP4, FIXED, WITH_MOMENTUM, [OWN])
    settings = of("dcd-psgd", replicas="per-neighbour")
    yield from cases("dcd-psgd replicas", settings, ALL, [IRREGULAR, MATCHINGS], slow, [SAME])
    yield from with_steps("deep-squeeze", "deep-squeeze", "eta", 0.2)
    settings = of("deep-squeeze", eta=0.2)
    yield from cases("deep-squeeze", settings, TOP4, [MATCHINGS], WITH_MOMENTUM, [OWN])
    # With a larger step 3lc's errors grow from round to round, and those of rounding with them.
    steps = {what: 0.02 if what == "3lc" else 0.2 for what in MARKS}
    for what, step in steps.items():
        settings = {"name": "choco-sgd", "consensus_step": step}
        config = {what: MARKS[what]}
        yield from cases("choco-sgd", settings, config, FIXED, WITH_MOMENTUM, [SAME])
    yield from cases(
        "deep-squeeze", {"name": "deep-squeeze", "eta": 0.1}, MARKS, FIXED, WITH_MOMENTUM, [OWN]
    )
    settings = of("deep-squeeze", eta=0.2, local_steps=4)
    yield from cases("deep-squeeze H=4", settings, SIGN, FIXED, WITH_MOMENTUM, [OWN])
    yield from cases(
        "sgp", {"name": "sgp"}, None, [DIGRAPH, EXPONENTIAL, RING, IRREGULAR], WITH_MOMENTUM, both
    )
    settings = of("sgp", local_steps=3)
    yield from cases("sgp H=3", settings, None, [DIGRAPH, EXPONENTIAL], WITH_MOMENTUM, [OWN])
    for variant in ("adapt-then-combine", "combine-while-adapt"):
        settings = of("gradient-tracking", variant=variant)
        graphs = [*FIXED, MATCHINGS, EXPONENTIAL]
        yield from cases(f"gradient-tracking {variant}", settings, None, graphs, WITHOUT, both)
    yield from cases(
        "exact-diffusion", {"name": "exact-diffusion"}, None, [*FIXED, MATCHINGS], WITHOUT, both
    )
    yield from cases(
        "d2", {"name": "exact-diffusion", "matrix": "plain"}, None, FIXED_D2, WITHOUT, both
    )
    clipped = {"name": "clipped-gossip"}
    for clip in ({"clip": 0.5}, {}):
        settings = {**clipped, **clip}
        yield from cases(
            f"clipped-gossip {clip}", settings, None, [*FIXED, MATCHINGS], WITH_MOMENTUM, [OWN]
        )
    for variant in ({"variant": "median"}, {"variant": "trimmed-mean"}):
        label = f"clipped-gossip {variant['variant']}"
        graphs = [RING, LAZY] if "trim" in label else [*FIXED, MATCHINGS]
        yield from cases(label, {**clipped, **variant}, None, graphs, ALONE, [OWN])
    beer = {"name": "beer", "consensus_step": 0.3}
    yield from cases("beer", beer, {**NONE, **TOP4, **SIGN}, FIXED, WITHOUT, [SAME])
    yield from cases("beer", {**beer, "consensus_step": 1}, NONE, FIXED, WITHOUT, [OWN])
    yield from cases("lead", {"name": "lead"}, LARGEST, FIXED, WITHOUT, both)
    slow_lead = {"name": "lead", "alpha": 0.25, "gamma": 0.5}
    yield from cases("lead slow", slow_lead, LARGEST, FIXED, WITHOUT, [OWN])
    quasi = {"name": "qgm", "beta": 0.8}
    yield from cases("qgm", {"name": "qgm"}, None, [*FIXED, MATCHINGS], SLOW, both)
    yield from cases(
        "qgm ahead", {**quasi, "nesterov": True}, None, [*FIXED, EXPONENTIAL], SLOW, [OWN]
    )
    yield from cases("qgm mu", {**quasi, "mu": 0.6}, None, FIXED, SLOW, [OWN])
    yield from cases("decentlam", {"name": "decentlam"}, None, [*FIXED, MATCHINGS], SLOW, both)
    yield from cases("decentlam beta", {"name": "decentlam", "beta": 0.5}, None, FIXED, SLOW, [OWN])
    label = "naive-compression"
    settings = of("naive-compression")
    yield from cases(label, settings, {**NONE, **TOP4, **SIGN}, FIXED, WITH_MOMENTUM, both)
    yield from cases("naive-compression", {"name": "naive-compression"}, STROM, FIXED, ALONE, [OWN])
    yield from cases("all-reduce", {"name": "all-reduce"}, None, FIXED, ALONE, [SAME])
    for form, group in FORMS:
        settings = {"name": "all-reduce", "all_reduce": form, "group": group}
        yield from cases(f"all-reduce {form} {group}", settings, None, FIXED, LATE, [SAME])
        settings = {"name": "local-sgd", "period": 3, "all_reduce": form, "group": group}
        yield from cases(f"local-sgd {form} {group}", settings, None, [RING], LATE, [OWN])
    for server in (0, 5, "sharded"):
        settings = of("parameter-server", server=server)
        yield from cases(f"parameter-server {server}", settings, None, FIXED, ALONE, [SAME])
    plain = {"sgd": PLAIN, "decay": DECAY}
    for server in (0, 5):
        settings = of("double-squeeze", server=server)
        yield from cases(f"double-squeeze {server}", settings, ALL, FIXED, plain, [SAME])
    few = {"top-1": of("top-k", k=1), "top-fraction": of("top-k", fraction=0.4)}
    shards = {**NONE, **few, **SIGN}
    settings = of("double-squeeze", server="sharded")
    yield from cases("double-squeeze sharded", settings, shards, FIXED, plain, [SAME])
    yield from _centralized.compressed(cases)
    yield from _centralized.sparse_sums(cases)
    on_three = [(RING, PLAIN, SAME), (IRREGULAR, MOMENTUM, SAME), (IRREGULAR, PLAIN, OWN)]
    for count, (label, settings, where) in enumerate(_drawn.cases(on_three)):
        yield Case(label, settings, *where, SEED + 100 * (count % PROBLEMS))
    for period in (1, 3, 10):
        settings = of("local-sgd", period=period)
        yield from cases(f"local-sgd {period}", settings, None, FIXED, WITH_MOMENTUM, both)
    for warmup, k in ((0, 4), (5, 3), (7, 1)):
        settings = of("cd-sgd", warmup_rounds=warmup, correction_period=k, threshold=0.05)
        settings["local_learning_rate"] = 0.1
        yield from cases(f"cd-sgd W={warmup} k={k}", settings, None, FIXED, plain, [SAME])
        sharded = {**settings, "server": "sharded"}
        del sharded["local_learning_rate"]
        late = {"sgd": PLAIN, "cosine": COSINE}
        yield from cases(f"cd-sgd sharded W={warmup} k={k}", sharded, None, FIXED, late, [SAME])


def difference(found, expected):
    """Largest difference, relative to max(1, |x|)."""
    if np.shape(found) != np.shape(expected):
        return np.inf
    apart = abs(np.asarray(found) - expected) / np.maximum(1, abs(np.asarray(expected)))
    return np.inf if np.isnan(apart).any() else apart.max()


def compare(starling, case):
    """(reason or None, worst difference)"""
    problem, models, weights = case.expected()
    result = case.found(starling, problem)
    if sorted(result.models) != RECORDED:
        return f"recorded rounds {sorted(result.models)}, expected {RECORDED}", None
    apart = {
        r: max(difference(result.models[r], models[r]), difference(result.weights[r], weights[r]))
        for r in RECORDED
    }
    worst = max(apart, key=apart.get)
    if apart[worst] <= TOLERANCE:
        return None, apart[worst]
    first = next(r for r in RECORDED if not apart[r] <= TOLERANCE)
    why = f"round {worst} differs by {apart[worst]:.1e}, allowed {TOLERANCE}"
    return f"{why}; the first to differ is round {first}", None


def check_reference():
    """The reference against itself, and against dpsgd.py."""
    wrong = [name for name, holds in algorithms.self_check() if not holds]
    return (f"does not hold: {wrong}" if wrong else None), 0


def all_checks(starling):
    """(name, function that returns (reason or None, worst difference))"""
    chosen = list(all_cases())
    named = [*(case.settings for case in chosen), *ELSEWHERE]
    for name in _listed.unnamed(starling, named):
        chosen += cases(name, {"name": name}, None, FIXED, {"sgd": PLAIN}, [SAME, OWN])
    if QUICK:
        chosen = {json.dumps(case.settings): case for case in chosen}.values()
    for case in chosen:
        yield case.name, lambda case=case: compare(starling, case)
    if QUICK:
        return
    yield "the reference by itself", check_reference
    for name, settings in _silent.CASES.items():
        case = Case(name, settings, RING, PLAIN, SAME)
        yield f"{name}: counted", lambda case=case: _silent.check_counts(starling, case, ROUNDS)
    for name, settings in _sparse.CASES.items():
        for graph in FIXED:
            case = Case(f"{name} {graph}", settings, graph, PLAIN, SAME)
            yield case.name, lambda case=case: _sparse.check_bytes(starling, case, ROUNDS)


if __name__ == "__main__":
    sys.exit(_simulate.main(__doc__, all_checks))
