"""Sums of sparse vectors on their way: a message has what is not 0 of its sum, or all of it."""
import numpy as np

import _simulate  # noqa: F401  the folder of the reference
import algorithms

HEADER = 64  # bytes of a frame's
CASES = {
    f"sparse sums of {name}": {"name": "all-reduce", "all_reduce": "recursive-doubling", **what}
    for name, what in {
        "top-2": {"compressor": {"name": "top-k", "k": 2}},
        "top-7": {"compressor": {"name": "top-k", "k": 7}},
    }.items()
}


def message(held):
    """Bytes of a message of one part."""
    entries = int(held.sum())
    index = int(np.ceil(np.log2(len(held))))
    return HEADER + min(4 * entries + (entries * index + 7) // 8, 4 * len(held))


def sent(held):
    """Bytes that each place sends in recursive doubling, with a fold."""
    n = len(held)
    p = 2 ** int(np.log2(n))
    held, total = held.copy(), np.zeros(n, dtype=int)
    for i in range(p, n):
        total[i] += message(held[i])
        held[i - p] |= held[i]
    for h in (2**k for k in range(int(np.log2(p)))):
        before = held.copy()
        for i in range(p):
            total[i] += message(before[i])
            held[i] |= before[i ^ h]
    for i in range(n - p):
        total[i] += message(held[i])
    return total


def check_bytes(starling, case, rounds):
    """(reason or None, 0)"""
    (a, b, x0), *_ = case.expected()
    chosen = []

    def watch(compress):
        def watched(v):
            q = compress(v)
            chosen.append(q != 0)
            return q

        return watched

    run = algorithms.Run(
        *(case.graph.slots, case.settings, case.optimizer, algorithms.Quadratic(a, b), x0),
        watch=watch,
    )
    for _ in range(rounds):
        run.step()
    expected = sum(sent(held) for held in chosen)
    traffic = case.found(starling, (a, b, x0)).traffic
    found = np.array([node["bytes_sent"] for node in traffic])
    return (None if (found == expected).all() else f"{found}, expected {expected}"), 0
