#!/usr/bin/env python3
"""The least rho of symmetric weights, non-negative (fmmc) and of any sign (fdla), by linear
programming: writes optimal.h beside this file.

Nothing of Starling's is used, nor an interior-point method: rho >= |v'(W - J)v| for every unit
vector v, so the linear program over the weights and
rho with the eigenvectors of all weights seen so far as v gives a lower bound, and its weights an
upper one (Kelley's cutting planes). Each program is
kept near the best weights so far (a box that doubles or halves), and the bound is taken from one
without the box.
"""
import os

import numpy
from scipy.optimize import linprog

CLIQUE = [(a, b) for b in range(4) for a in range(b)]
EIGHT = "01 12 23 04 17 13 45 46 26 37 56 67 16"
CASES = {
    "bull": (5, [(0, 1), (1, 2), (0, 2), (0, 3), (1, 4)]),
    "lollipop": (6, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5)]),
    "grid": (6, [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]),
    "barbell": (8, [*CLIQUE, (3, 4), *((a + 4, b + 4) for a, b in CLIQUE)]),
    "wheel": (7, [(0, i) for i in range(1, 7)] + [(i, i % 6 + 1) for i in range(1, 7)]),
    "house": (5, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)]),
    "tree": (9, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6), (3, 7), (3, 8)]),
    "eight nodes": (8, [(int(a), int(b)) for a, b in EIGHT.split()]),
    "tangle": (
        12,
        [(i, (i * i + 3) % 12) for i in (0, 2, 4, 5, 7, 8, 11)]
        + [(i, (i + 1) % 12) for i in range(12)]
        + [(1, 9), (2, 10), (6, 10)],
    ),
}
WITHIN = 1e-7


class Problem:
    def __init__(self, nodes, edges, nonnegative):
        self.nodes, self.edges = nodes, edges
        self.u = numpy.zeros((len(edges), nodes))
        for l, (a, b) in enumerate(edges):
            self.u[l, a], self.u[l, b] = 1, -1
        self.nonnegative = nonnegative
        self.rows, self.rhs = [], []
        if nonnegative:
            for i in range(nodes):
                self.rows.append(numpy.append(abs(self.u[:, i]), 0))
                self.rhs.append(1)

    def look(self, w):
        """rho at w; every eigenvector becomes a constraint on both sides."""
        values, vectors = numpy.linalg.eigh(
            numpy.eye(self.nodes) - 1 / self.nodes - (self.u.T * w) @ self.u
        )
        for v in vectors.T:
            v = v - v.mean()
            slopes = (self.u @ v) ** 2
            self.rows += [numpy.append(-slopes, -1), numpy.append(slopes, -1)]
            self.rhs += [-(v @ v), v @ v]
        return max(abs(values))

    def solve(self, low, high):
        if self.nonnegative:
            low = numpy.maximum(low, 0)
        bounds = [*zip(low, high), (0, 1)]
        cost = numpy.append(numpy.zeros(len(self.edges)), 1)
        answer = linprog(
            cost, numpy.array(self.rows), numpy.array(self.rhs), bounds=bounds, method="highs"
        )
        assert answer.status == 0, answer.message
        return answer.x[:-1], answer.fun


def least_rho(nodes, edges, nonnegative):
    problem = Problem(nodes, edges, nonnegative)
    w = numpy.full(len(edges), 1 / nodes)
    best, size, bound = problem.look(w), 0.1, 0
    for k in range(600):
        near, _ = problem.solve(w - size, w + size)
        rho = problem.look(near)
        size *= 2 if rho < best else 0.7
        if rho < best:
            best, w = rho, near
        if k % 5 == 4:
            _, bound = problem.solve(
                numpy.full(len(edges), -2.0), numpy.full(len(edges), 2.0)
            )  # |W_ij| <= rho + 1/n
            size = max(size, best - bound)
        if best - bound <= WITHIN:
            return best
    raise SystemExit(f"{nodes} nodes, {edges}: {bound} <= rho <= {best}")


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimal.h")
    with open(path, "w", encoding="utf-8") as out:
        out.write(
            "/* optimal.h - written by optimal.py: a topology file but for its weights, the least"
            " rho without and with negative weights, and the error. */\n"
        )
        out.write(
            "static const struct {\n    const char *graph;\n    double fmmc, fdla, within;\n}"
            " optima[] = {\n"
        )
        for name, (nodes, edges) in CASES.items():
            edges = sorted({(min(e), max(e)) for e in edges if e[0] != e[1]})
            fmmc, fdla = least_rho(nodes, edges, True), least_rho(nodes, edges, False)
            listed = ", ".join(f"[{a}, {b}]" for a, b in edges)
            out.write(
                f'    {{"{{\\"comment\\": \\"{name}\\", \\"nodes\\": {nodes}, \\"weights\\":'
                f' \\"%s\\", \\"edges\\": [{listed}]}}",\n     {fmmc:.9f}, {fdla:.9f},'
                f" {WITHIN}}},\n"
            )
        out.write("};\n")


if __name__ == "__main__":
    main()
