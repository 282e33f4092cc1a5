#!/usr/bin/env python3
"""Somebody on the way of sealed edges alters any byte, from the first one on: that costs
connections, which come back, and never a process or a bit.

usage: taps.py STARLING [TEST ...]
       taps.py STARLING --many CHANGES [SEED]     until so many were made
"""
from _forger import Forger
from _four import WAYS, Four, by_hand
from _scene import check, run_tests


def train(scene, way, seed, changes, once_sealed, rounds):
    """How many changes of each kind were made, while four agents trained."""

    def make(ports):
        return Forger(seed, ports, changes, once_sealed=once_sealed)

    four = Four(scene, way, make, rounds=rounds)
    four.start_all()
    four.end_well(300)
    return four.wire.made


def from_the_first_byte_on(scene):
    made = train(scene, "key", 1, 12, False, 300)
    check(sum(made.values()) >= 8, f"few changes were made: {made}")


def once_frames_are_sealed(scene):
    made = train(scene, "certificates", 2, 12, True, 300)
    check(sum(made.values()) >= 8, f"few changes were made: {made}")


if __name__ == "__main__":
    by_hand(
        "changes on the way",
        lambda scene, number, seed: train(scene, WAYS[number % 2], seed, 40, number % 4 >= 2, 500),
    )
    run_tests()
