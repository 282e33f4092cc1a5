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
        [algorithms.push_sum_weights(7, edges)],
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


def last(simulate, graph, settings, rate, problem, rounds):
    """Models after the last round."""
    return simulate(graph, settings, {"learning_rate": rate}, problem, rounds, [rounds])[rounds]


def optimum(problem):
    return algorithms.Quadratic(*problem[:2]).optimum()


def far(simulate, settings, rate, problem, rounds, graph=None, **optimizer):
    """How far from the optimum the last models are, on a ring if nothing else is said."""
    optimizer["learning_rate"] = rate
    models = simulate(graph or ring(8), settings, optimizer, problem, rounds, [rounds])[rounds]
    return distance(models, optimum(problem))


# ---- gossip ----


def naive_floor(simulate):
    graph = ring(8)
    problem = dpsgd.problem(8, 12, 10, True, seed=7)
    best = optimum(problem)
    for what, compressor in (
        ("top-k", {"name": "top-k", "k": 5}),
        ("qsgd", {"name": "qsgd", "levels": 8, "bucket": 10}),
    ):
        apart = []
        for rate in (0.2, 0.02):
            rounds = round(400 / rate)
            recorded = list(range(rounds // 2, rounds + 1, rounds // 20))
            settings = {"name": "naive-compression", "compressor": compressor}
            models = simulate(graph, settings, {"learning_rate": rate}, problem, rounds, recorded)
            apart.append(np.mean([distance(models[r], best) for r in recorded]))
        yield (
            f"naive compression stalls, {what}: a smaller learning rate does not help",
            apart[1] > 0.7 * apart[0],
            f"{apart[0]:.2g} from the optimum, {apart[1]:.2g} at a tenth of the rate",
        )
    away, near = (
        far(simulate, {"name": "d-psgd"}, rate, problem, round(400 / rate)) for rate in (0.2, 0.02)
    )
    yield "D-PSGD's floor falls with the learning rate", near < 0.2 * away, (
        f"{away:.2g} from the optimum, {near:.2g} at a tenth of the rate"
    )


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


def momentum_of_their_own(simulate):
    """With the momentum of each node's own data, uneven models are held apart; quasi-global
    momentum and DecentLaM end where D-PSGD does without any."""

    def end(name, **optimizer):
        optimizer["learning_rate"] = 0.02
        return simulate(ring(8), {"name": name}, optimizer, UNEVEN, 3000, [3000])[3000]

    plain, local, quasi = end("d-psgd"), end("d-psgd", momentum=0.9), end("qgm")
    spread, wide, narrow = (distance(x) for x in (plain, local, quasi))
    yield (
        "qgm keeps models as close as D-PSGD without momentum, local momentum does not",
        narrow < 1.5 * spread and wide > 5 * spread,
        f"apart by {spread:.2g}, with local momentum {wide:.2g}, qgm {narrow:.2g}",
    )
    seen = abs(end("decentlam") - plain).max()
    yield "decentlam ends where D-PSGD without momentum does", seen < 1e-4, f"{seen:.2g} from it"


def faulty_neighbour(simulate):
    """One node of eight sends nonsense; the others stay together where gossip clips."""
    graph = Graph({"nodes": 8, "family": "complete"}, [np.full((8, 8), 1 / 8)])
    problem = vectors(8, 50, seed=4)
    problem[2][3] = 1e6
    honest = [i for i in range(8) if i != 3]
    for form, bound in (
        ({"clip": 2.0}, 2.0 / 8),
        ({}, None),
        ({"variant": "median"}, None),
        ({"variant": "trimmed-mean"}, None),
    ):
        settings = {"name": "clipped-gossip", **form}
        models = last(simulate, graph, settings, 0, problem, 1)[honest]
        seen = distance(models, problem[2][honest].mean(axis=0))
        limit = distance(problem[2][honest]) + (bound or 1)
        yield f"a faulty neighbour moves little: {form}", seen < limit, f"{seen:.2g}"


def squeezed_floors(simulate):
    """Compressed C-SGD: without error feedback no smaller learning rate lowers the floor."""
    top = {"name": "parameter-server", **TOP2}
    bare = {**top, "error_feedback": False}
    # settings, momentum, rates with their rounds; of a floor that stays, its least share and size
    through_a_server, local = ((0.1, 300), (0.02, 1500)), ((0.02, 1000), (0.004, 5000))
    for what, settings, momentum, ways, least in (
        ("top-k through a server, with feedback", top, 0, through_a_server, None),
        ("top-k through a server, without", bare, 0, through_a_server, (0.7, 0.1)),
        ("both ways", {**bare, "directions": "both"}, 0, through_a_server, (0.7, 0.1)),
        ("gmc", {**top, "name": "gmc"}, 0.9, local, None),
        ("dgc", {**top, "name": "dgc"}, 0.9, local, (0.5, 0.03)),
        ("gtop-k", {**top, "name": "gtop-k"}, 0, local, (0.5, 0.03)),
    ):
        floors = [
            far(simulate, settings, rate, TOGETHER, rounds, momentum=momentum)
            for rate, rounds in ways
        ]
        share = floors[1] / floors[0]
        yield (
            f"{what}: its floor {'stays' if least else 'falls'}",
            share > least[0] and floors[1] > least[1] if least else share < 0.4,
            f"{floors[0]:.2g} from the optimum, {floors[1]:.2g} at a fifth of the rate",
        )


def votes(simulate):
    """Majority vote: on uneven data it stops far from the optimum, however slow; on even data fewer
    than half of the nodes change nothing, whatever they send."""
    def run(a, b, rate, rounds, **more):
        settings = {"name": "sign-vote", **more}
        return last(simulate, ring(8), settings, rate, (a, b, TOGETHER[2]), rounds)

    best = optimum(TOGETHER)
    floors = [distance(run(*TOGETHER[:2], 0.05 / k, 200 * k), best) for k in (1, 10)]
    yield (
        "sign-vote on uneven data: its floor stays",
        floors[1] > 0.5 * floors[0] and floors[1] > 0.1,
        f"{floors[0]:.2g} from the optimum, {floors[1]:.2g} at a tenth of the rate",
    )
    even = [part[:1].repeat(8, axis=0) for part in TOGETHER[:2]]
    faulty = [part.copy() for part in even]
    faulty[0][5:], faulty[1][5:] = 40 * TOGETHER[0][5:], -7 * TOGETHER[1][5:]
    for beta in (0, 0.9):
        near, same = run(*even, 0.02, 2000, beta=beta), run(*faulty, 0.02, 2000, beta=beta)
        yield f"three faulty nodes of eight change nothing, beta {beta}", (near == same).all(), ""
    seen = distance(near, algorithms.Quadratic(*even).optimum())
    yield "signum on even data comes near the optimum", seen < 0.3, f"{seen:.2g}"


CHECKS = [naive_floor, exact, momentum_of_their_own, faulty_neighbour, squeezed_floors, votes]
