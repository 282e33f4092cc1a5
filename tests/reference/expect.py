"""What theory and experience say that decentralized algorithms do, as checks that any
implementation of them can be put through.

Each check takes a simulator, a function (graph, algorithm, optimizer, problem, rounds, recorded) ->
models, a dict round -> (n, d); it yields (what is expected, whether it holds, the numbers seen).
tests/parity/test_expectations.py puts the program through them, whose numbers are the float64
reference's (test_algorithms.py).
"""
import numpy as np

import algorithms
import dpsgd
import families

STILL = {"learning_rate": 0}
SCALED_RANDOM = {"name": "random-k", "fraction": 0.01, "scaled": True}
PLAIN_RANDOM = {"name": "random-k", "fraction": 0.01, "scaled": False}
ONE_LEVEL = {"name": "qsgd", "levels": 1, "bucket": 1000, "contractive": False}
TOP_PERCENT = {"name": "top-k", "fraction": 0.01}


class Graph:
    """A topology for an experiment file, and its matrices."""

    def __init__(self, topology, slots):
        self.topology, self.slots, self.n = topology, slots, topology["nodes"]


def ring(n):
    topology = {"nodes": n, "family": "ring", "weights": "metropolis"}
    return Graph(topology, [dpsgd.metropolis(n, dpsgd.ring(n))])


def lazy_ring():
    """Of eight, with (I + W)/2."""
    weights = (np.eye(8) + dpsgd.metropolis(8, dpsgd.ring(8))) / 2
    return Graph({"nodes": 8, "family": "ring", "weights": "lazy"}, [weights])


def digraph():
    """A directed ring of seven with two chords: senders split evenly, so that only columns sum to
    1."""
    edges = [[i, (i + 1) % 7] for i in range(7)] + [[0, 3], [2, 6]]
    return Graph(
        {"nodes": 7, "directed": True, "edges": edges, "weights": "push-sum"},
        [families.evenly(7, edges, axis=0)],
    )


def exponential(n):
    return Graph({"nodes": n, "family": "one-peer-exponential"}, dpsgd.one_peer_exponential(n))


def vectors(n, d, seed):
    """A problem without gradient, for averaging x0."""
    return (
        np.zeros((n, 1, d)),
        np.zeros((n, 1)),
        np.random.default_rng(seed).standard_normal((n, d)).round(4),
    )


def distance(x, point=None):
    """Root mean square over the nodes of the distance to a point, or to the mean model."""
    return np.sqrt(((x - (x.mean(axis=0) if point is None else point)) ** 2).sum(axis=1).mean())


def optimum(problem):
    return algorithms.Quadratic(*problem[:2]).optimum()


def far(simulate, settings, rate, problem, rounds, graph=None, **optimizer):
    """How far from the optimum the last models are, on a ring if nothing else is said."""
    optimizer["learning_rate"] = rate
    models = simulate(graph or ring(8), settings, optimizer, problem, rounds, [rounds])[rounds]
    return distance(models, optimum(problem))


# ---- data that differs between nodes ----


UNEVEN, TOGETHER = (dpsgd.problem(8, 12, 10, same_start, seed=11) for same_start in (False, True))
TOP5, TOP2 = ({"compressor": {"name": "top-k", "k": k}} for k in (5, 2))
SIGN, QSGD = {"compressor": "scaled-sign"}, {"name": "qsgd", "levels": 15}


def exact(simulate):
    """What reaches the optimum on uneven data, where D-PSGD and CHOCO stop at a floor."""
    d_psgd, choco = {"name": "d-psgd"}, {"name": "choco-sgd", "consensus_step": 0.2, **TOP5}
    floors = [far(simulate, d_psgd, rate, UNEVEN, 4000) for rate in (0.1, 0.05)]
    yield (
        "D-PSGD stops at a floor, proportional to the learning rate",
        floors[0] > 0.05 and 1.7 < floors[0] / floors[1] < 2.3,
        f"{floors[0]:.3g} from the optimum, {floors[1]:.3g} at half the rate",
    )
    near = min(1e-4, 1e-3 * floors[0])
    compressed = 2e-3 * far(simulate, choco, 0.1, UNEVEN, 3000)
    few = {"name": "qsgd", "levels": 4, "bucket": 10}
    for settings, problem, limit, *graph in (
        ({"name": "gradient-tracking"}, UNEVEN, near),
        ({"name": "exact-diffusion"}, UNEVEN, near),
        ({"name": "exact-diffusion", "matrix": "plain"}, UNEVEN, near, lazy_ring()),
        ({**choco, "name": "beer"}, UNEVEN, compressed),
        ({**choco, "name": "beer", **SIGN}, UNEVEN, compressed),
        ({"name": "lead", "compressor": QSGD}, UNEVEN, compressed),
        ({"name": "ef21", **TOP2}, TOGETHER, 1e-4),
        ({"name": "lag-3pc"}, TOGETHER, 1e-4),
        ({"name": "clag", **TOP2}, TOGETHER, 1e-4),
        ({"name": "lag-wk"}, TOGETHER, 1e-4),
        ({"name": "laq"}, TOGETHER, 1e-4),
        ({"name": "diana", "alpha": 0.3, "compressor": few}, TOGETHER, 1e-4),
    ):
        rounds = 4000 if problem is UNEVEN else 2000
        seen = far(simulate, settings, 0.1, problem, rounds, *graph)
        yield f"{settings} reaches the optimum", seen < limit, f"{seen:.2g} from it"
