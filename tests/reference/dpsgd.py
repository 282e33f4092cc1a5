"""D-PSGD once more, in float64 numpy, written from the papers and from docs only: it shares no code
with Starling.

The graphs, rates and problems are those of algorithms.py, too, which is held against train().

x_i: node i's model; f_i(x) = 1/2 |A_i x - b_i|^2 its loss, g_i its gradient; W_ij the weight that i
gives j; rate_r the learning
rate of round r = 1, 2, ...

    direction (PyTorch's SGD):  g += decay x;  m = momentum m + g;  direction = nesterov ? g +
    momentum m : m
    adapt-then-combine:         u_i = x_i - rate direction_i(x_i);  x_i <- sum_j W_ij u_j
    combine-while-adapt:        x_i <- sum_j W_ij x_j - rate direction_i(old x_i)

Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", NeurIPS 2017.
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


ADAPT_FIRST, WHILE_ADAPTING = "adapt-then-combine", "combine-while-adapt"


# ---- the algorithm ----


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


def train(slots, variant, optimizer, a, b, x0):
    """Models (n, d) after each round of 0..ROUNDS."""
    momentum, decay = optimizer.get("momentum", 0), optimizer.get("weight_decay", 0)
    x, m = x0.copy(), np.zeros_like(x0)
    history = [x.copy()]
    for r in range(1, ROUNDS + 1):
        w = slots[(r - 1) % len(slots)]
        g = np.einsum("imd,im->id", a, np.einsum("imd,id->im", a, x) - b) + decay * x
        m = momentum * m + g
        update = learning_rate(optimizer, r) * (
            g + momentum * m if optimizer.get("nesterov") else m
        )
        x = w @ (x - update) if variant == ADAPT_FIRST else w @ x - update
        history.append(x.copy())
    return history


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
