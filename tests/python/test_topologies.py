#!/usr/bin/env python3
"""Topologies and spectra: of dicts, texts and files, of graphs of networkx and of matrices, against
what numpy says of them."""
import json

import _package  # noqa: F401
import numpy

import starling
from _package import refused
from _scene import check, needs, run_tests
from starling import _join, _topology

try:
    import networkx
except ImportError:
    networkx = None
try:
    import torch
except ImportError:
    torch = None

RING = {"nodes": 8, "family": "ring", "weights": "metropolis"}
ONE_PEER = {"nodes": 8, "family": "one-peer-exponential"}
THIRDS = numpy.full((3, 3), 1 / 3)


def hold(what, topology, expected):
    off = numpy.abs(topology.matrix - expected).max()
    check(off < 2e-7, f"{what}: off by {off}: {topology.matrix}")


def metropolis(adjacency):
    degree = adjacency.sum(axis=1)
    w = adjacency / (1 + numpy.maximum.outer(degree, degree))
    return w + numpy.diag(1 - w.sum(axis=1))


def test_dict_text_and_file(scene):
    """A byte order mark and CR LF, as Windows has them, change neither a topology nor what join()
    knows of its experiment."""
    expected = (numpy.eye(8) + numpy.roll(numpy.eye(8), 1, 0) + numpy.roll(numpy.eye(8), 1, 1)) / 3
    choco, paths = {"topology": RING, "algorithm": "choco-sgd"}, []
    for name, value in (("ring.json", RING), ("choco.json", choco)):
        text = json.dumps(value, indent=1).replace("\n", "\r\n")
        paths.append(scene.write(name, b"\xef\xbb\xbf" + text.encode()))
    for spec in (RING, json.dumps(RING), paths[0]):
        hold(spec, starling.topology(spec), expected)
    check(_join._read(paths[1])[1] == choco, _join._read(paths[1]))
    error = refused(lambda: starling.topology({"nodes": 8, "family": "rung"}), "rung", "ring")
    check(error.code == "SL_EINVAL" and error.edge is None and error.round is None, vars(error))
    refused(lambda: starling.topology(scene.path("none.json")), "none.json")


def test_schedules_and_spectra(scene):
    schedule = starling.topology(ONE_PEER)
    check(schedule.period == 3 and len(schedule.matrices) == 3, schedule.period)
    product = numpy.linalg.multi_dot(schedule.matrices[::-1])
    check(numpy.abs(product - 1 / 8).max() < 1e-12, product)
    refused(lambda: schedule.matrix, "3 matrices", ".matrices")
    expected, found = 1 / 3 + 2 / 3 * numpy.cos(2 * numpy.pi / 8), starling.spectrum(RING)
    check(abs(found.rho - expected) < 1e-7 and abs(found.gap + found.rho - 1) < 1e-12, found)
    others = {"nodes": 8, "family": "de-bruijn"}, {"nodes": 9, "family": "star"}
    for spec in (RING, ONE_PEER, *others):
        computed, by_numpy = starling.spectrum(spec), _topology._by_numpy(starling.topology(spec))
        check(abs(computed.rho - by_numpy.rho) < 1e-4, f"{spec}: {computed} {by_numpy}")


def test_numbers_and_arrays_of_numpy_stand_in_dicts(scene):
    ring = numpy.array([[0, 1], [1, 2], [2, 0]])
    check(starling.topology({"nodes": numpy.int64(4), "family": "ring"}).nodes == 4, "numpy's 4")
    for edges in (set(map(tuple, ring.tolist())), dict.fromkeys(map(tuple, ring.tolist())).keys()):
        hold(edges, starling.topology({"nodes": 3, "edges": edges}), THIRDS)
    for edges in (ring, ring.astype("u1"), ring.astype("f8"), [tuple(row) for row in ring]):
        hold(edges, starling.topology({"nodes": 3, "edges": edges}), THIRDS)
    weighted = numpy.array([[0, 1, 0.5], [1, 0, 0.5]], "f4")
    hold("weights", starling.topology({"nodes": 2, "edges": weighted}), numpy.full((2, 2), 0.5))
    grid = {"nodes": 6, "family": "grid", "sides": numpy.array([2, 3])}
    check(starling.topology(grid).nodes == 6, grid)


def test_matrices(scene):
    rng = numpy.random.default_rng(3)
    w = rng.random((5, 5)) + numpy.eye(5)
    w /= w.sum(axis=1, keepdims=True)
    for matrix in (w, w.astype("f4"), numpy.asfortranarray(w), w.tolist(), numpy.matrix(w)):
        hold(type(matrix), starling.topology(matrix), w)
    hold("columns", starling.topology(w.T), w.T)
    hollow = 0.8 * (w - numpy.diag(numpy.diag(w)))
    hold("hollow", starling.topology(hollow), hollow + numpy.diag(1 - hollow.sum(axis=1)))
    if torch is not None:
        hold("torch", starling.topology(torch.tensor(w)), w)
        hold("grad", starling.topology(torch.tensor(w, requires_grad=True)), w)
    ring = numpy.roll(numpy.eye(5, dtype=int), 1, axis=1)
    for kind in ("i8", "u1", "?", "f4"):
        both = (ring + ring.T).astype(kind)
        hold(kind, starling.topology(both), metropolis((ring + ring.T).astype("f8")))
    one_way = starling.topology(ring)  # [i][i + 1]: node i + 1 hears node i
    hold("directed", one_way, 0.5 * (numpy.eye(5) + ring.T))
    hold(
        "a scheme",
        starling.topology(7.5 * (ring + ring.T), weights="metropolis"),
        metropolis((ring + ring.T).astype("f8")),
    )


def test_graphs_of_networkx(scene):
    needs(networkx, "networkx is absent")
    for graph in (networkx.petersen_graph(), networkx.florentine_families_graph()):
        hold(graph, starling.topology(graph), metropolis(networkx.to_numpy_array(graph)))
    karate = networkx.karate_club_graph()
    adjacency = networkx.to_numpy_array(karate, weight=None)
    hold("karate", starling.topology(karate, weights="metropolis"), metropolis(adjacency))
    refused(lambda: starling.topology(karate), "no mixing weights", 'weights="metropolis"')
    directed = networkx.DiGraph()
    for a, b, weight in ((0, 1, 0.5), (1, 2, 0.25), (2, 0, 0.5), (0, 2, 0.25), (1, 1, 0.5)):
        directed.add_edge(a, b, weight=weight)
    w = networkx.to_numpy_array(directed).T
    hold(
        "weights",
        starling.topology(directed),
        w + numpy.diag((w.diagonal() == 0) * (1 - w.sum(axis=1))),
    )
    several = networkx.MultiGraph([(0, 1, {"weight": 0.2}), (0, 1, {"weight": 0.1})])
    hold("parallel edges", starling.topology(several), [[0.7, 0.3], [0.3, 0.7]])
    shuffled = networkx.Graph([(3, 1), (1, 0), (0, 2)])  # ranks follow numbers
    path = networkx.to_numpy_array(shuffled, nodelist=range(4))
    hold("numbers", starling.topology(shuffled), metropolis(path))


def mixed(topology, first):
    """After a round, models of four numbers each, of which all are `first` at first."""
    x = [numpy.full(4, value, "f4") for value in first]

    def train(rank):
        peer = starling.join({"topology": topology}, x[rank])
        peer.mix()
        peer.leave()

    starling.simulate(len(x), train, {"topology": topology})
    return x


def test_an_experiment_takes_them(scene):
    """W is taken as it is; edges get weights: lazy ones, where W has a negative eigenvalue."""
    graphs = [networkx.complete_graph(3)] if networkx else []
    for topology in (THIRDS, THIRDS.tolist(), numpy.ones((3, 3)), *graphs):
        x = mixed(topology, [0, 3, 6])
        check(numpy.allclose(x, 3), x)
    ring = numpy.roll(numpy.eye(4), 1, axis=1)
    x = mixed(ring + ring.T, [3, 0, 0, 0])
    check(numpy.allclose(x, [[2], [0.5], [0], [0.5]]), x)


def test_what_is_no_topology_is_told(scene):
    for spec, *words in (
        (THIRDS + 1j, "entry [0][0]", "no real number"),
        (numpy.ones(3), "no square matrix"),
        (numpy.ones((2, 2, 2)), "2 x 2 x 2 numbers are no square matrix"),
        (numpy.array([[0, 1], [1, 2], [2, 0]]), "3 x 2", '"edges": array'),
        (numpy.full((2, 2), numpy.nan), "entry [0][0] of the matrix is nan"),
        (numpy.float64(3), "a single number"),
        (numpy.array([["a", "b"], ["c", "d"]]), "entry [0][0] is 'a'"),
        (2 * THIRDS, "no mixing weights", "sums to 2"),
        ([[1, 2], [1]], "rows of 1 and of 2 numbers"),
        ([1, 2], "no topology"),
        (5, "topology is a int"),
        ({1, 2}, "topology is a set"),
        ({"nodes": {3}, "family": "ring"}, "nodes: [3] is not allowed"),
        ({"nodes": b"3", "family": "ring"}, "it holds b'3'"),
        ({"nodes": 3, "edges": numpy.array([[0, 1.5]])}, "edges[0]"),
        ({numpy.int64(3): 1}, "keys must be"),
        ({"nodes": [{"id": 0}], "links": []}, "is node-link JSON", "topology make --from"),
    ):
        refused(lambda: starling.topology(spec), *words)
    refused(lambda: starling.topology({"nodes": 3}, weights="fdla"), "weights= is for graphs")
    refused(lambda: starling.topology(THIRDS, weights="fddla"), "fdla")
    path = scene.write("g.graphml", "<graphml><graph/></graphml>")
    refused(lambda: starling.topology(path), "g.graphml", "is GraphML", "topology make --from")


if __name__ == "__main__":
    run_tests()
