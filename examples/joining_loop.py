#!/usr/bin/env python3
"""Peers fit a model together; some are lost, and others join while the rest go on.

    python3 joining_loop.py RANK A:7000,B:7000,C:7000         ranks 0, 1 and 2 begin
    python3 joining_loop.py RANK A:7000,... joins             later: a rank that was lost, or
                                                              rank 3, with its own address behind
"""

import sys
import time

import numpy as np

import starling

EXPERIMENT = {"topology": {"nodes": 3, "family": "ring"}, "membership": {"joiners": 1}}
D, SAMPLES, ROUNDS, RATE = 200, 80, 1000, 0.1
TRUTH = np.random.default_rng(0).standard_normal(D)


def data(rank):
    """Noisy linear measurements of the truth: fewer than unknowns, other ones on each peer."""
    random = np.random.default_rng(1 + rank)
    a = random.standard_normal((SAMPLES, D)) / np.sqrt(SAMPLES)
    return a, a @ TRUTH + 0.01 * random.standard_normal(SAMPLES)


def train(rank, roster, joins):
    x = np.zeros(D, dtype="f4")
    with starling.join(EXPERIMENT, x, rank=rank, roster=roster, joins=joins) as peer:
        print(f"rank {rank} begins after round {peer.round}, with {len(peer.members)} peers")
        a, b = data(rank)
        while peer.round < ROUNDS:  # the others' rounds: all end together
            x -= RATE * (a.T @ (a @ x - b))
            time.sleep(0.01)  # as if it took longer
            peer.mix(x)
        error = np.linalg.norm(peer.average() - TRUTH) / np.linalg.norm(TRUTH)
        print(f"rank {rank}: {len(peer.members)} peers, error {error:.3f}")


if __name__ == "__main__":
    train(int(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["joins"])
