"""Cases of algorithms for the simulator, beside the float64 reference (algorithms.py), on quadratic
problems: graphs, optimizers, compressors, and what compares one."""
import math

import numpy as np

from _edge import Edge
from _simulate import Graph, dpsgd, family, irregular, matchings, of, simulate
import algorithms
from expect import digraph, exponential, lazy_ring, ring

ROUNDS, RECORDED = 50, [1, 2, 5, 10, 50]
TOLERANCE = 1e-4  # relative to max(1, |x|); single precision keeps about 1e-6
D, ROWS, SEED, PROBLEMS = 20, 12, 41, 3

NAMES = ["ring", "lazy ring", "irregular", "digraph", "matchings", "exponential"]
RING, LAZY, IRREGULAR, DIGRAPH, MATCHINGS, EXPONENTIAL = NAMES
PATH, STAR, TORUS, LISTED, SIX = "path", "star", "torus", "listed", "exponential of 6"
BINARY = "binary tree"
GRAPHS = {
    RING: ring(8),
    IRREGULAR: irregular(),
    DIGRAPH: digraph(),
    MATCHINGS: matchings(),
    EXPONENTIAL: exponential(8),
    LAZY: lazy_ring(),
    PATH: family("path", dpsgd.ring(8)[:-1]),
    STAR: family("star", [[0, i] for i in range(1, 8)]),
    TORUS: family("torus", dpsgd.TORUS_3X3, 9, sides=[3, 3]),
    LISTED: Graph({"nodes": 5, "edges": dpsgd.IRREGULAR}, [dpsgd.weighted(5, dpsgd.IRREGULAR)]),
    SIX: exponential(6),
    BINARY: family("k-ary-tree", [[(i - 1) // 2, i] for i in range(1, 7)], 7, arity=2),
}
FIXED = [RING, IRREGULAR]

PLAIN = {"learning_rate": 0.2}
DECAY = {"learning_rate": 0.1, "weight_decay": 0.05}
MOMENTUM = {"learning_rate": 0.03, "momentum": 0.9}
NESTEROV = {"learning_rate": 0.03, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}
COSINE = {"learning_rate": 0.2, "schedule": {"name": "cosine", "minimum": 0.05, "warmup_rounds": 5}}
STILL = {"learning_rate": 0}

NONE = {"identity": of("identity")}
TOP4 = {"top-k": of("top-k", k=4)}
SIGN = {"scaled-sign": of("scaled-sign")}

# How near an edge is too near. That of 3lc moves with the largest element, and its error. What
# rounds has edges at many numbers, halves at nearly every one: to miss one of those costs less than
# is allowed.
EDGES = {"3lc": 4e-6, "float16": 0, "bfloat16": 1e-7, "float8": 1e-7}
SAME, OWN = "same", "own"  # every node starts in the same place, or in its own
BOTH = [SAME, OWN]


class Case:
    def __init__(self, name, settings, graph, optimizer, start, seed=SEED):
        self.name, self.settings, self.graph = name, settings, GRAPHS[graph]
        self.optimizer, self.start, self.seed = optimizer, start, seed

    def problem(self, seed=None):
        return dpsgd.problem(self.graph.n, ROWS, D, self.start == SAME, seed or self.seed)

    def expected(self):
        """A problem, and the reference's models and push-sum weights on it: the first problem on
        which rounding decides nothing."""
        compressor = self.settings.get("compressor", {}).get("name")
        for seed in range(self.seed, self.seed + 100):
            edge = Edge(EDGES.get(compressor, 1e-6))
            a, b, x0 = self.problem(seed)
            problem = algorithms.Quadratic(a, b)
            what = self.graph.slots, self.settings, self.optimizer, problem, x0
            more = {"watch": edge.watch, "exceeds": edge.exceeds}
            history = algorithms.history(ROUNDS, *what, **more)
            if not edge.near:
                return (a, b, x0), *history
        raise RuntimeError(f"{self.name}: every problem has a close call")

    def found(self, starling, problem=None, rounds=ROUNDS, recorded=RECORDED):
        algorithm = {key: value for key, value in self.settings.items() if key != "network"}
        what = self.graph, algorithm, self.optimizer, *(problem or self.problem())
        return simulate(starling, *what, rounds, recorded, self.settings.get("network"))


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


def cases(settings, graphs, optimizers, starts, compressors=None):
    """These with each other, by turns on three problems. compressors None: the algorithm's own
    business."""
    label = " ".join(map(str, settings.values()))
    factors = (list(optimizers.items()), list((compressors or {"": None}).items()), graphs, starts)
    for count, ((how, optimizer), (what, config), graph, start) in enumerate(in_turns(*factors)):
        full = {**settings, "compressor": config} if config else settings
        name = " ".join(filter(None, [label, what, graph, how, start]))
        yield Case(name, full, graph, optimizer, start, SEED + 100 * (count % PROBLEMS))


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
