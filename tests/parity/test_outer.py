#!/usr/bin/env python3
"""What is around a step: optimizers other than SGD, against an independent float64 program
(tests/reference/algorithms.py), on quadratic problems.

usage: test_outer.py [--starling] STARLING [--only TEXT]
"""
import sys

import _simulate
from test_algorithms import IRREGULAR, MOMENTUM, OWN, RING, cases, compare, run_all

OPTIMIZERS = {
    "adamw": {"name": "adamw", "learning_rate": 0.02, "weight_decay": 0.05},
    "adamw beta": {"name": "adamw", "learning_rate": 0.02, "beta1": 0.5, "epsilon": 0.01},
    "lars": {"name": "lars", "learning_rate": 4, "momentum": 0.5, "weight_decay": 0.05},
    "lamb": {"name": "lamb", "learning_rate": 0.02, "weight_decay": 0.05},
    "clip": {**MOMENTUM, "clip_norm": 3},
    "clip lamb": {"name": "lamb", "learning_rate": 0.02, "trust": 0.5, "clip_norm": 3},
}


def optimizers():
    choco = {"name": "choco-sgd", "consensus_step": 0.3, "compressor": {"name": "top-k", "k": 4}}
    for settings in (
        {"name": "d-psgd"},
        {"name": "d-psgd", "variant": "combine-while-adapt", "local_steps": 3},
        {"name": "sgp"},
        {"name": "all-reduce"},
        {"name": "local-sgd", "period": 3},
        choco,
    ):
        label = " ".join(["optimizers", *map(str, list(settings.values())[:2])])
        yield from cases(label, settings, None, [RING, IRREGULAR], OPTIMIZERS, [OWN])


def all_checks(starling):
    for case in optimizers():
        yield case.name, lambda case=case: compare(starling, case)


def main():
    starling, only = _simulate.arguments(__doc__)
    return run_all([(name, check) for name, check in all_checks(starling) if only in name])


if __name__ == "__main__":
    sys.exit(main())
