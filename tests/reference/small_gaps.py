#!/usr/bin/env python3
"""Both gaps of Metropolis matrices of irregular graphs, and of some that mix slowly, by numpy from
the edges alone: writes small_gaps.h beside this file.

Nothing of Starling's is used: graphs are built from their definitions, and the gaps are eigenvalues
of I - W and I + W, summed up edge by edge, so that
LAPACK's absolute error of about 1e-15 is their error too.
"""
import json
import os

import numpy


def tree(nodes, arity):
    return [((i - 1) // arity, i) for i in range(1, nodes)]


def clique(nodes):
    return [(a, b) for a in nodes for b in nodes if a < b]


def path(nodes):
    return list(zip(nodes, nodes[1:]))


def grid(rows, columns):
    return [(i, i + 1) for i in range(rows * columns) if (i + 1) % columns] + [
        (i, i + columns) for i in range((rows - 1) * columns)
    ]


def listed(nodes, edges):
    """The topology file of any edges, and what it has."""
    return json.dumps({"nodes": nodes, "edges": edges}), (nodes, edges)


STAR = [(5, 7), (7, 9), (9, 6), (6, 8), (8, 5)]
PETERSEN = [(i, (i + 1) % 5) for i in range(5)] + STAR + [(i, i + 5) for i in range(5)]
BULL = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 4)]
CASES = {
    **dict([listed(5, BULL), listed(10, PETERSEN)]),
    '{"nodes": 2500, "family": "k-ary-tree", "arity": 3}': (2500, tree(2500, 3)),
    '{"nodes": 2200, "family": "lollipop", "clique": 60}': (
        2200,
        clique(range(60)) + path(range(59, 2200)),
    ),
    '{"nodes": 2100, "family": "barbell", "clique": 50}': (
        2100,
        clique(range(50)) + path(range(49, 2051)) + clique(range(2050, 2100)),
    ),
    '{"nodes": 2400, "family": "grid", "sides": [40, 60]}': (2400, grid(40, 60)),
    '{"nodes": 900, "family": "path"}': (900, path(range(900))),
}


def gaps(nodes, edges):
    degree = numpy.bincount(numpy.array(edges).ravel(), minlength=nodes)
    difference, total = numpy.zeros((nodes, nodes)), numpy.zeros((nodes, nodes))
    for a, b in edges:
        weight = 1 / (1 + max(degree[a], degree[b]))
        for matrix, sign in ((difference, -1), (total, 1)):
            matrix[a, b] = matrix[b, a] = sign * weight
            matrix[[a, b], [a, b]] += weight
    total += numpy.diag(2 - 2 * numpy.diag(difference))
    return numpy.linalg.eigvalsh(difference)[1], numpy.linalg.eigvalsh(total)[0]


def main():
    where = os.path.join(os.path.dirname(os.path.abspath(__file__)), "small_gaps.h")
    with open(where, "w", encoding="utf-8") as out:
        out.write(
            "/* small_gaps.h - written by small_gaps.py: topology file, 1 - lambda_2, 1 + lambda_n."
            " */\n"
        )
        out.write(
            "static const struct {\n    const char *json;\n    double gap_lambda2, gap_lambda_n;\n}"
            " small_gaps[] = {\n"
        )
        for text, (nodes, edges) in CASES.items():
            upper, lower = gaps(nodes, edges)
            out.write(f"    {{{json.dumps(text)}, {float(upper)!r}, {float(lower)!r}}},\n")
        out.write("};\n")


if __name__ == "__main__":
    main()
