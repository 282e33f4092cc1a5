#!/usr/bin/env python3
"""Eigenvalues of Metropolis matrices of irregular graphs, by numpy from the edges alone: writes
spectral.h beside this file.

Nothing of Starling's is used: W is built from the definition W_ij = 1/(1 + max(d_i, d_j)) and given
to numpy.linalg.eigvalsh.
"""
import os

import numpy

STAR = [(5, 7), (7, 9), (9, 6), (6, 8), (8, 5)]
CASES = {
    "bull": (5, [(0, 1), (1, 2), (0, 2), (0, 3), (1, 4)]),
    "lollipop": (6, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5)]),
    "petersen": (10, [(i, (i + 1) % 5) for i in range(5)] + STAR + [(i, i + 5) for i in range(5)]),
    "grid": (6, [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]),
}


def metropolis(nodes, edges):
    degree = numpy.zeros(nodes)
    for a, b in edges:
        degree[[a, b]] += 1
    w = numpy.zeros((nodes, nodes))
    for a, b in edges:
        w[a, b] = w[b, a] = 1 / (1 + max(degree[a], degree[b]))
    return w + numpy.diag(1 - w.sum(axis=1))


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spectral.h")
    with open(path, "w", encoding="utf-8") as out:
        out.write(
            "/* spectral.h - written by spectral.py: name, topology file, lambda_2, lambda_n. */\n"
        )
        out.write(
            "static const struct {\n    const char *name, *json;\n    double lambda_2, lambda_n;\n}"
            " spectra[] = {\n"
        )
        for name, (nodes, edges) in CASES.items():
            values = numpy.linalg.eigvalsh(metropolis(nodes, edges))
            listed = ", ".join(f"[{a}, {b}]" for a, b in edges)
            out.write(
                f'    {{"{name}", "{{\\"nodes\\": {nodes}, \\"edges\\": [{listed}]}}",\n'
                f"     {float(values[-2])!r}, {float(values[0])!r}}},\n"
            )
        out.write("};\n")


if __name__ == "__main__":
    main()
