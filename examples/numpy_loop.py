#!/usr/bin/env python3
"""Eight peers fit one model to data that none of them has whole.

    python3 numpy_loop.py                           simulated, in this process
    STARLING_MASTER=127.0.0.1:7070 STARLING_RANK=0 python3 numpy_loop.py
                                                    one of 8 processes; or under mpirun, srun, ...
"""

import os

import numpy as np

import starling

EXPERIMENT = {
    "topology": {"nodes": 8, "family": "ring"},
    "algorithm": {"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 0.1}},
}
D, SAMPLES, STEPS, RATE = 200, 64, 400, 0.1
TRUTH = np.random.default_rng(0).standard_normal(D)


def data(rank):
    """Noisy linear measurements of the truth: fewer than unknowns, other ones on each peer."""
    random = np.random.default_rng(1 + rank)
    a = random.standard_normal((SAMPLES, D)) / np.sqrt(SAMPLES)
    return a, a @ TRUTH + 0.01 * random.standard_normal(SAMPLES)


def train(rank=None):
    x = np.zeros(D, dtype="f4")
    with starling.join(EXPERIMENT, x) as peer:
        a, b = data(peer.rank)
        for step in range(STEPS):
            x -= RATE * (a.T @ (a @ x - b))
            peer.mix(x)
        average = peer.average()
        error = np.linalg.norm(average - TRUTH) / np.linalg.norm(TRUTH)
        sent = peer.metrics()["bytes_sent"]
        if peer.rank == 0:
            print(f"{peer.size} peers, {peer.round} rounds: error {error:.3f}", end="")
            print(f", models {peer.distance:.3f} apart, {sent} bytes sent by each")
    return average


if __name__ == "__main__":
    if "STARLING_RANK" in os.environ or "RANK" in os.environ:
        train()
    else:
        starling.simulate(8, train, EXPERIMENT)
