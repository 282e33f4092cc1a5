#!/usr/bin/env python3
"""What the analysis of small topologies must say, found by trying everything, with numpy alone:
writes the table of tests/unit/test_analysis.c as C, which the build does, in a second;
tests/parity/test_topology.py asks for the rest.

Nothing of Starling's is used, and no algorithm of its: distances are powers of matrices, cuts are
found by leaving out every set of edges or nodes, norms and
eigenvalues are numpy.linalg's.

usage: analysis.py >reference_analysis.h
"""
import functools
import itertools
import json

import families
import numpy as np

DECAY = 0.9


# ---- graphs: (nodes, slots of directed edges) ----


def both(edges):
    return [(a, b) for a, b in edges] + [(b, a) for a, b in edges]


def reachable(nodes, edges, alive):
    """[i, j]: j can be reached from i over edges between nodes that are alive."""
    a = np.eye(nodes, dtype=bool)
    for i, j in edges:
        if i in alive and j in alive:
            a[i, j] = True
    for _ in range(nodes):
        a = (a.astype(int) @ a.astype(int)) > 0
    return a


def is_connected(nodes, edges, alive=None):
    alive = sorted(range(nodes) if alive is None else alive)
    return bool(reachable(nodes, edges, set(alive))[np.ix_(alive, alive)].all())


def components(nodes, edges):
    r = reachable(nodes, edges, set(range(nodes)))
    return len({tuple(row) for row in (r & r.T)})


def diameter(nodes, edges):
    a = np.eye(nodes, dtype=int)
    for i, j in edges:
        a[i, j] = 1
    power = np.eye(nodes, dtype=int)
    for length in range(nodes):
        if (power > 0).all():
            return length
        power = np.minimum(power @ a, 1)
    return None


def fewest_edges(nodes, links):
    """links: what is lost together: both directions of an undirected edge, or one directed edge."""
    for size in range(len(links) + 1):
        for lost in itertools.combinations(range(len(links)), size):
            kept = [e for k, link in enumerate(links) if k not in lost for e in link]
            if not is_connected(nodes, kept):
                return size
    return None


def fewest_nodes(nodes, edges):
    for size in range(nodes - 1):
        for lost in itertools.combinations(range(nodes), size):
            if not is_connected(nodes, edges, set(range(nodes)) - set(lost)):
                return size
    return nodes - 1


def edges_of(slots):
    undirected = all(set(p) == {(b, a) for a, b in p} for p in slots)
    return sum(map(len, slots)) // (2 if undirected else 1)


def structure(nodes, slots):
    edges = sorted(set(itertools.chain(*slots)))
    pairs = sorted({(min(e), max(e)) for e in edges})
    undirected = set(edges) == {(b, a) for a, b in edges}
    plain = both(pairs)
    links = [[(a, b), (b, a)] for a, b in pairs] if undirected else [[e] for e in edges]
    without = [[e for e in plain if tuple(sorted(e)) != pair] for pair in pairs]
    return {
        "edges": edges_of(slots),
        "directed": not undirected,
        "components": components(nodes, edges),
        "bipartite": any(
            all(bits >> a & 1 != bits >> b & 1 for a, b in pairs) for bits in range(2**nodes)
        ),
        "diameter": diameter(nodes, edges),
        "bridges": sum(components(nodes, w) > components(nodes, plain) for w in without),
        "cut_nodes": sum(
            not is_connected(nodes, plain, set(range(nodes)) - {i}) for i in range(nodes)
        ),
        "edge_connectivity": fewest_edges(nodes, links),
        "node_connectivity": fewest_nodes(nodes, edges),
    }


# ---- matrices ----


SCHEMES = {
    "metropolis": families.metropolis,
    "push-sum": functools.partial(families.evenly, axis=0),
    "uniform": families.evenly,
}


def sums_to_1(ws, axis):
    return all(np.allclose(w.sum(axis=axis), 1) for w in ws)


def product_errors(ws, rounds):
    n = len(ws[0])
    j = np.full((n, n), 1 / n)
    m, errors = np.eye(n), []
    for k in range(rounds):
        m = ws[k % len(ws)] @ m
        if not sums_to_1(ws, 1):
            e = m / m.sum(axis=1, keepdims=True) - j
        else:
            e = m - j @ m
        errors.append(np.linalg.norm(e, 2))
    return errors


def perron(ws):
    m = np.eye(len(ws[0]))
    for w in ws:
        m = w @ m
    values, vectors = np.linalg.eig(m.T if sums_to_1(ws, 1) else m)
    v = np.real(vectors[:, np.argmin(abs(values - 1))])
    return v / v.sum()


def mixing_time(ws):
    if len(ws) > 1:
        return 0
    p = ws[0] if sums_to_1(ws, 1) else ws[0].T
    stationary, m = perron(ws), np.eye(len(p))
    for k in range(1, 100000):
        m = m @ p
        if abs(m - stationary).sum(axis=1).max() / 2 <= 0.25 * (1 + 1e-12):
            return k
    return 0


def effective_neighbours(ws):
    if not (sums_to_1(ws, 0) and sums_to_1(ws, 1)):
        return None
    n, found = len(ws[0]), []
    for end in range(len(ws)):
        m, total = np.eye(n), 0.0
        for k in range(2000):
            m = m @ ws[(end - k) % len(ws)]
            total += DECAY**k * (m**2).sum() / n
        found.append(1 / (1 - DECAY) / total)
    return float(np.mean(found))


def second_modulus(w):
    return sorted(abs(np.linalg.eigvals(w)))[-2] if len(w) > 1 else 0.0


def worst_loss(nodes, slots, ws):
    """The largest rho per round that is left when a node is gone."""
    worst = 0.0
    for lost in range(nodes):
        kept = [i for i in range(nodes) if i != lost]
        if not is_connected(nodes, set(itertools.chain(*slots)), set(kept)):
            return 1.0
        product = np.eye(nodes - 1)
        for w in ws:
            rest = w[np.ix_(kept, kept)].copy()
            rest += np.diag(1 - rest.sum(axis=1 if sums_to_1(ws, 1) else 0))
            product = rest @ product
        worst = max(worst, second_modulus(product) ** (1 / len(ws)))
    return worst


# ---- cases ----


def random_graph(rng, directed):
    nodes = int(rng.integers(2, 8 if not directed else 7))
    while True:
        p = rng.uniform(0.3, 0.9)
        edges = [
            (i, j)
            for i in range(nodes)
            for j in range(nodes)
            if (i != j if directed else i < j) and rng.uniform() < p
        ]
        if len(edges) <= 16 and is_connected(nodes, edges if directed else both(edges)):
            return nodes, edges


def case(nodes, slots, weights, directed=False):
    """The topology's file, its nodes and its slots."""
    listed = [{"edges": edges} for edges in slots]
    graph = listed[0] if len(slots) == 1 else {"schedule": listed}
    topology = {"nodes": nodes, **({"directed": True} if directed else {}), **graph}
    every = slots if directed else [both(edges) for edges in slots]
    return {**topology, "weights": weights}, nodes, every


def cases():
    rng = np.random.default_rng(20)
    for _ in range(24):
        nodes, edges = random_graph(rng, False)
        yield case(nodes, [edges], "metropolis")
    for k in range(16):
        nodes, edges = random_graph(rng, True)
        yield case(nodes, [edges], ["push-sum", "uniform"][k % 2], True)
    for _ in range(4):
        nodes, edges = random_graph(rng, False)
        yield case(nodes, [edges[::2], edges[1::2]], "metropolis")
    for _ in range(4):
        nodes, edges = random_graph(rng, True)
        yield case(nodes, [edges[::2], edges[1::2]], "push-sum", True)
    for bits in (2, 3):
        n = 2**bits
        slots = [[(i, (i + 2**k) % n) for i in range(n)] for k in range(bits)]
        yield case(n, slots, "uniform", True)


def with_matrices():
    """(topology, [W of each slot])"""
    for topology, nodes, slots in cases():
        yield topology, [SCHEMES[topology["weights"]](nodes, p) for p in slots]


def main():
    fields, rows = None, []
    for (topology, nodes, slots), (_, ws) in zip(cases(), with_matrices()):
        found = structure(nodes, slots)
        fields = ", ".join(found)
        found["worst_loss"] = worst_loss(nodes, slots, ws) if nodes > 2 else 0.0
        text = json.dumps(json.dumps(topology))
        numbers = (int(x) if isinstance(x, int) else float(x) for x in found.values())
        rows.append(f"    {{{text},\n     {', '.join(map(repr, numbers))}}},\n")
    print("/* written by tests/reference/analysis.py */")
    print(f"static const struct {{\n    const char *json;\n    unsigned {fields};")
    print("    double worst_loss;\n} analyses[] = {")
    print("".join(rows) + "};")


if __name__ == "__main__":
    main()
