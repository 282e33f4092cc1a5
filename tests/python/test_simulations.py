#!/usr/bin/env python3
"""simulate() of functions that join more than once, as processes may."""
import _package  # noqa: F401: finds the package
import numpy

import starling
from _package import refused
from _scene import check, run_tests

EXPERIMENT = {"topology": {"family": "complete"}, "algorithm": "d-psgd"}


def train(rank, count, rounds=3):
    """The average of a peer of `count` numbers, whose rounds begin anew."""
    x = numpy.arange(count, dtype="f4") * (rank + 1)
    with starling.join(None, x) as peer:
        for _ in range(rounds):
            peer.mix()
        check(peer.round == rounds and peer.size == 3, peer)
        return peer.average()


def test_all_join_again_with_other_numbers(scene):
    def work(rank):
        return [train(rank, count) for count in (4, 7, 7, 2)]

    for found in starling.simulate(3, work, EXPERIMENT):
        for average, count in zip(found, (4, 7, 7, 2)):
            check(numpy.allclose(average, 2 * numpy.arange(count)), average)


def test_the_second_time_has_the_bits_of_a_first(scene):
    once = starling.simulate(3, lambda rank: train(rank, 50), EXPERIMENT)
    twice = starling.simulate(3, lambda rank: (train(rank, 9), train(rank, 50))[1], EXPERIMENT)
    check(all((a == b).all() for a, b in zip(once, twice)), (once, twice))


def test_some_join_again(scene):
    def work(rank):
        train(rank, 4)
        if rank != 1:
            train(rank, 4)

    error = refused(lambda: starling.simulate(3, work, EXPERIMENT), "rank 1", "joined again")
    check(error.code == "SL_EPEER", error.code)


def test_joining_twice_at_once(scene):
    def work(rank):
        with starling.join(None, numpy.zeros(3, "f4")):
            starling.join(None, numpy.zeros(3, "f4"))

    refused(lambda: starling.simulate(2, work, EXPERIMENT), "joined before, and not left")


def test_joining_in_a_simulation_that_ends(scene):
    said = []

    def work(rank):
        try:
            train(rank, 3 + rank)
        except starling.Error as error:
            said.append(str(error))
            train(rank, 3)

    refused(lambda: starling.simulate(3, work, EXPERIMENT), "rank 0", "rank 1", "[4] here")
    check(len(said) == 3, said)


def test_a_failure_between_two_times(scene):
    def work(rank):
        train(rank, 4)
        if rank == 1:
            raise ValueError("boom")
        train(rank, 4)

    refused(lambda: starling.simulate(3, work, EXPERIMENT), "boom", kind=ValueError)


if __name__ == "__main__":
    run_tests()
