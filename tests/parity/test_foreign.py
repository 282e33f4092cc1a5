#!/usr/bin/env python3
"""`starling topology make --from` against networkx and numpy: they write a graph, and the topology
file must have the weights that numpy computes of it."""
import gzip
import json

import numpy as np

from _here import check, needs, run_tests
import dpsgd

try:
    import networkx as nx
except ImportError:
    nx = None
METROPOLIS = ("--weights", "metropolis")


def metropolis(graph):
    """1/(1 + max(d_i, d_j)) by rank: nodes 0, 1, ... or in the graph's order."""
    adjacency = (nx.to_numpy_array(graph, weight=None) > 0) * (1 - np.eye(len(graph)))
    degree = adjacency.sum(axis=1)
    w = adjacency / (1 + np.maximum.outer(degree, degree))
    return w + np.diag(1 - w.sum(axis=1))


def uniform(graph):
    """Rows of W of a directed graph: 1/(1 + in-degree)."""
    w = nx.to_numpy_array(graph, weight=None).T + np.eye(len(graph))
    return w / w.sum(axis=1, keepdims=True)


def completed(graph):
    """W of a graph whose edges have weights; what they leave is each node's own."""
    w = nx.to_numpy_array(graph).T
    return w + np.diag(np.where(np.diag(w) == 0, 1 - w.sum(axis=1), 0))


def hold(scene, name, expected, *arguments):
    """The topology file that --from makes, whose W is expected."""
    made = scene.call("topology", "make", "--from", scene.path(name), "--expand", *arguments)
    made.check_well()
    topology = json.loads(made.out)
    w = dpsgd.weighted(topology["nodes"], topology["edges"])
    check(w.shape == expected.shape, f"{name}: {w.shape}, not {expected.shape}")
    off = np.abs(w - expected).max()
    check(off < 3e-7, f"{name}: off by {off}: {w} and not {expected}")
    return topology


def link_data(graph, key):
    data = nx.node_link_data(graph)
    links = data.pop("links", None) or data.pop("edges")
    return json.dumps({**data, key: links})


def write_all(scene, graph):
    """The graph in each format that networkx writes; the files' names."""
    for write, name in (
        (nx.write_graphml, "g.graphml"),
        (nx.write_gml, "g.gml"),
        (nx.write_edgelist, "g.edges"),
        (nx.write_weighted_edgelist, "g.weighted"),
    ):
        write(graph, scene.path(name))
    scene.write("links.json", link_data(graph, "links"))
    scene.write("edges.json", link_data(graph, "edges"))
    scene.write("adjacency.json", json.dumps(nx.adjacency_data(graph)))
    return ("g.graphml", "g.gml", "links.json", "edges.json", "adjacency.json", "g.edges")


def test_formats_of_networkx(scene):
    needs(nx, "networkx is absent")
    graph = nx.karate_club_graph()  # its numbers at edges are no weights
    for name in (*write_all(scene, graph), "g.weighted"):
        hold(scene, name, metropolis(graph), *METROPOLIS)
    refused = scene.call("topology", "make", "--from", scene.path("g.gml"))
    refused.check_refused("g.gml", "no mixing weights", "node 0 gives", "--weights metropolis")


def test_weights_and_directions_of_networkx(scene):
    needs(nx, "networkx is absent")
    rng = np.random.default_rng(5)
    mask = rng.random((7, 7)) < 0.5
    mask |= np.roll(np.eye(7, dtype=bool), 1, axis=1)
    weights = np.where(mask, rng.random((7, 7)), 0)
    np.fill_diagonal(weights, 0)
    weights *= 0.7 / weights.sum(axis=0)  # what a node gives its in-neighbours
    graph = nx.from_numpy_array(weights, create_using=nx.DiGraph)
    for name in write_all(scene, graph):
        hold(scene, name, completed(graph), *(("--directed",) if name == "g.edges" else ()))
    nx.write_graphml(nx.DiGraph(graph.edges()), scene.path("plain.graphml"))
    topology = hold(scene, "plain.graphml", uniform(graph))
    check("names" not in topology["provenance"], topology["provenance"])


def test_parallel_edges_add_up(scene):
    needs(nx, "networkx is absent")
    graph = nx.MultiGraph()
    for a, b, weight in ((0, 1, 0.2), (0, 1, 0.1), (1, 2, 0.25), (2, 2, 0.75)):
        graph.add_edge(a, b, weight=weight)
    graphml, gml, links, _, adjacency, _ = write_all(scene, graph)
    for name in (graphml, gml, links, adjacency):
        hold(scene, name, completed(graph))


def named(scene, name, expected, names):
    found = hold(scene, name, expected)["provenance"]
    check(found["names"] == names, found)


def test_names_of_nodes_are_kept(scene):
    needs(nx, "networkx is absent")
    graph = nx.florentine_families_graph()
    for name in write_all(scene, graph)[:4]:
        named(scene, name, metropolis(graph), list(graph))
    scene.write("cities.csv", "source,target\nrome,oslo\noslo,bern\n")
    named(scene, "cities.csv", metropolis(nx.path_graph(3)), ["rome", "oslo", "bern"])
    shuffled = nx.Graph([(3, 1), (2, 3), (4, 2)])  # counted from 1
    nx.write_edgelist(shuffled, scene.path("four.edges"), data=False)
    by_rank = nx.empty_graph(4)
    by_rank.add_edges_from((a - 1, b - 1) for a, b in shuffled.edges)
    named(scene, "four.edges", metropolis(by_rank), ["1", "2", "3", "4"])


def stochastic(n, seed):
    """W with rows that sum to 1, neither symmetric nor doubly stochastic."""
    rng = np.random.default_rng(seed)
    w = np.where(rng.random((n, n)) < 0.6, rng.random((n, n)), 0)
    w += np.eye(n) + np.roll(np.eye(n), 1, axis=0)
    return w / w.sum(axis=1, keepdims=True)


def market(w, head, lines):
    n = len(w)
    return f"%%MatrixMarket matrix {head}\n% by hand\n{n} {n}{lines}"


def saved(scene, array, expected, *arguments):
    np.save(scene.path("saved.npy"), array)
    return hold(scene, "saved.npy", expected, *arguments)


def written(scene, name, content, expected, *arguments):
    scene.write(name, content)
    return hold(scene, name, expected, *arguments)


def test_matrices_of_numpy(scene):
    w = stochastic(6, 1)
    columns = stochastic(6, 2).T
    for array in (w, np.asfortranarray(w), w.astype("f4"), w.astype(">f8"), columns):
        saved(scene, array, array.astype("f8"))
    made = scene.call("topology", "make", "--from", scene.path("saved.npy"))
    check("suits push-sum only" in made.err, made.err)
    for version in ((2, 0), (3, 0)):
        with open(scene.path("version.npy"), "wb") as file:
            np.lib.format.write_array(file, w, version=version)
        hold(scene, "version.npy", w)
    np.savetxt(scene.path("w.txt"), w)
    np.savetxt(scene.path("w.csv"), w, delimiter=",", header="W")
    hold(scene, "w.txt", w)
    hold(scene, "w.csv", w)
    entries = [(i, j) for j in range(6) for i in range(6) if w[i, j]]
    lines = "".join(f"{i + 1} {j + 1} {float(w[i, j])!r}\n" for i, j in entries)
    coordinates = market(w, "coordinate real general", f" {len(entries)}\n{lines}")
    written(scene, "w.mtx", coordinates, w)
    rows = "\n" + "\n".join(map(repr, w.T.ravel().tolist()))
    written(scene, "a.mtx", market(w, "array real general", rows), w)


def test_adjacency_matrices(scene):
    needs(nx, "networkx is absent")
    graph = nx.petersen_graph()
    directed = nx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 2), (3, 1), (2, 3)])
    ones = nx.to_numpy_array(graph)
    for kind in ("f8", "i4", "u1", "?"):
        saved(scene, ones.astype(kind), metropolis(graph))
    saved(scene, nx.to_numpy_array(directed, dtype="i8"), uniform(directed))
    rows = ["," + ",".join(f"n{i}" for i in range(10))]
    rows += [f"n{i}," + ",".join(map(str, line)) for i, line in enumerate(ones.astype(int))]
    scene.write("pandas.csv", "\n".join(rows) + "\n")
    named(scene, "pandas.csv", metropolis(graph), [f"n{i}" for i in range(10)])
    lower = [(i, j) for i in range(10) for j in range(i) if ones[i, j]]
    lines = "".join(f"{i + 1} {j + 1}\n" for i, j in lower)
    pattern = market(ones, "coordinate pattern symmetric", f" {len(lower)}\n{lines}")
    written(scene, "ones.mtx", pattern, metropolis(graph))


def test_edge_lists(scene):
    needs(nx, "networkx is absent")
    graph = nx.cycle_graph(5)
    pairs = list(graph.edges)
    saved(scene, np.array(pairs), metropolis(graph))
    np.savetxt(scene.path("pairs.txt"), np.array(pairs))
    hold(scene, "pairs.txt", metropolis(graph))
    table = "source,target,color\n" + "".join(f"{a},{b},red\n" for a, b in pairs)
    with gzip.open(scene.path("head.csv"), "wb") as file:
        file.write(b"\xef\xbb\xbf" + table.replace("\n", "\r\n").encode())
    hold(scene, "head.csv", metropolis(graph))
    gephi = "Source;Target;Type;Id;Weight\n" + "".join(
        f'"{a}";"{b}";Directed;7;0.5\n' for a, b in ((0, 1), (1, 2), (2, 0))
    )
    written(scene, "gephi.csv", gephi, np.array([[0.5, 0, 0.5], [0.5, 0.5, 0], [0, 0.5, 0.5]]))
    both = "".join(f"{a}\t{b}\t0.3\n{b}\t{a}\t0.3\n" for a, b in pairs)
    written(scene, "both.tsv", both, 0.3 * nx.to_numpy_array(graph) + 0.4 * np.eye(5))
    more = "".join(f"{a} {b}\n" for a, b in [*pairs, pairs[2][::-1], pairs[0]])
    written(scene, "more.txt", more, metropolis(graph))
    triangle = "0,1,1\n1,0,1\n1,1,0\n"  # a matrix, of three columns
    written(scene, "triangle.csv", triangle, np.full((3, 3), 1 / 3))


WRONG = {
    "gexf": ('<?xml version="1.0"?><gexf><graph/></gexf>', "is GEXF, which is not read"),
    "dot": ("digraph { a -> b }", "is DOT, which is not read"),
    "cut.graphml": ("<graphml><graph>\n<node id='a'/>", "line 2, column 14"),
    "hyper.graphml": ("<graphml><graph>\n<hyperedge/></graph></graphml>", "line 2: <hyperedge>"),
    "lost.graphml": (
        "<graphml><graph><node id='a'/><edge source='a' target='b'/></graph></graphml>",
        'an edge names node "b", which is not listed',
    ),
    "cut.gml": ("graph [ node [ id 0 ]", "line 1: a list does not end"),
    "weight.gml": (
        "graph [\nnode [ id 0 ] node [ id 1 ]\nedge [ source 0 target 1 weight x ] ]",
        'line 3: an edge\'s weight is no number: "x"',
    ),
    "lost.json": (
        '{"nodes": [{"id": "a"}], "links": [{"source": "a", "target": "b"}]}',
        'links[0]: target "b" is no node\'s id',
    ),
    "own.json": ('{"nodes": 4, "family": "ring"}', "needs no conversion"),
    "wide.mtx": ("%%MatrixMarket matrix coordinate real general\n3 4 1\n1 1 1\n", "3 rows and 4"),
    "out.mtx": (
        "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 4 1\n",
        "line 3: column 4",
    ),
    "cut.mtx": ("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n", "the file ends"),
    "complex.mtx": ("%%MatrixMarket matrix array complex general\n1 1\n1 0\n", '"complex"'),
    "x.csv": ("0,1\n1,2,x\n", 'line 2: weight "x" is no number'),
    "one.txt": ("a b\nc\n", "line 2: has 1 columns"),
    "some.txt": ("a b .2\nb c .2\nb a .2\n", "--directed"),
    "part.txt": ("a b\nc d\n", "2 parts"),
    "half.txt": ("a b 0.5\nb c\n", 'edge "b" to "c" has no weight'),
    "empty.txt": ("# nothing\n", "has no edges"),
    "W.csv": ("1,2,3,4\n1,2,3,4\n1,2,3,4\n1,2,3,4\n", "no mixing weights"),
    "wide.csv": ("1,2,3,4\n1,2,3,4\n", "2 rows of 4 columns"),
}


def test_what_is_no_graph_is_told(scene):
    for name, (text, said) in WRONG.items():
        scene.write(name, text)
        made = scene.call("topology", "make", "--from", scene.path(name))
        made.check_refused(name, said)
    for array, said in (
        (np.zeros(3), "its shape has 1 axis"),
        (np.zeros((3, 3), "c16"), "its numbers are <c16"),
        (np.full((2, 2), np.nan), "is no node"),
    ):
        np.save(scene.path("x.npy"), array)
        scene.call("topology", "make", "--from", scene.path("x.npy")).check_refused(said)


def test_a_graph_in_place_of_a_topology_is_told_what_to_do(scene):
    for name, text in (
        ("g.json", '{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1}]}'),
        ("g.graphml", "<graphml><graph/></graphml>"),
        ("g.edges", "0 1\n1 2\n"),
    ):
        scene.write(name, text)
        experiment = scene.write("e.json", json.dumps({"rounds": 1, "topology": name}))
        for command in ("check", scene.path(name)), ("check", experiment):
            scene.call(*command).check_refused("starling topology make --from")
    for arguments, said in (
        (("ring", "--from", "g.edges"), "one of both"),
        (("--from", "g.edges", "--nodes", "3"), "--nodes has no meaning"),
        (("ring", "--nodes", "3", "--directed"), "--directed is for --from"),
    ):
        scene.call("topology", "make", *arguments).check_refused(said)


if __name__ == "__main__":
    run_tests()
