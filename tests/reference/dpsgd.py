"""Graphs, learning rates and problems of the reference (algorithms.py), in float64 numpy; they
share no code with Starling.

f_i(x) = 1/2 |A_i x - b_i|^2 is node i's loss; W_ij the weight that i gives j; rounds are counted
from 1.
"""
import math

import numpy as np

ROUNDS = 50


# ---- the mixing matrices, dense: one for each slot of a topology ----


def ring(n):
    return [[i, (i + 1) % n] for i in range(n)]


def metropolis(n, edges):
    """W_ij = 1/(1 + max(degree_i, degree_j)); Xiao and Boyd 2004."""
    degree = np.zeros(n, int)
    for i, j in edges:
        degree[i] += 1
        degree[j] += 1
    w = np.zeros((n, n))
    for i, j in edges:
        w[i, j] = w[j, i] = 1 / (1 + max(degree[i], degree[j]))
    return w + np.diag(1 - w.sum(axis=1))


def one_peer_exponential(n):
    """Slot k: i sends to i + 2^k and averages what it receives with its own."""
    slots = []
    for k in range(math.ceil(math.log2(n))):
        w = np.eye(n) / 2
        for i in range(n):
            w[(i + 2**k) % n, i] += 0.5
        slots.append(w)
    return slots


def weighted(n, edges):
    """Edges [from, to, weight]: the weight that `to` gives `from`."""
    w = np.zeros((n, n))
    for sender, receiver, weight in edges:
        w[receiver, sender] = weight
    return w


IRREGULAR = [[i, i, w] for i, w in enumerate([0.5, 0.25, 0.4, 0.55, 0.9])] + [
    edge
    for i, j, w in [(0, 1, 0.3), (0, 2, 0.2), (1, 2, 0.15), (1, 3, 0.3), (2, 3, 0.15), (2, 4, 0.1)]
    for edge in ([i, j, w], [j, i, w])
]
MATCHINGS = [[[0, 1], [2, 3], [4, 5]], [[1, 2], [3, 4], [5, 0]], [[0, 3], [1, 4], [2, 5]]]
TORUS_3X3 = [
    edge
    for r in range(3)
    for c in range(3)
    for edge in ([3 * r + c, 3 * r + (c + 1) % 3], [3 * r + c, 3 * ((r + 1) % 3) + c])
]


# ---- the learning rate ----


def learning_rate(optimizer, r):
    schedule = optimizer.get("schedule", {"name": "constant"})
    warm_up = schedule.get("warmup_rounds", 0)
    rate = optimizer["learning_rate"] * (r / warm_up if r <= warm_up else 1)
    if schedule["name"] == "step":
        return rate * schedule["factor"] ** sum(r > m * ROUNDS for m in schedule["milestones"])
    if schedule["name"] == "cosine":
        low = schedule["minimum"]
        return rate * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * (r - 1) / ROUNDS)))
    return rate


# ---- the problem ----


def problem(n, m, d, identical_start, seed):
    """Different nodes want different things; largest eigenvalue of each A^T A about 1. Decimals
    that both programs read exactly."""
    random = np.random.default_rng(seed)
    a = random.standard_normal((n, m, d))
    a /= np.linalg.norm(a, 2, axis=(1, 2), keepdims=True)
    b = random.standard_normal((n, m)) + random.standard_normal((n, 1))
    x0 = random.standard_normal((1 if identical_start else n, d)).repeat(
        n if identical_start else 1, axis=0
    )
    return a.round(4), b.round(4), x0.round(4)
