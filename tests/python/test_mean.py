#!/usr/bin/env python3
"""peer.mean() and average() of what stands beside the vector: each dtype in its own precision, at
any magnitude, of any number of peers."""
import itertools
import math
import random
from fractions import Fraction

import _package  # noqa: F401: finds the package
import numpy

import starling
from _package import refused
from _scene import check, needs, run_tests

try:
    import torch
except ImportError:
    torch = None

EXPERIMENT = {"topology": {"family": "complete"}, "algorithm": "d-psgd"}


def means(values, n=None):
    """What each of n ranks gets for values(rank)."""

    def work(rank):
        x = numpy.full(3, rank, "f4")
        with starling.join(None, x) as peer:
            peer.begin()
            found = peer.mean(values(rank))  # which ends the exchange
            check(not peer.exchanging and (x[0] > 0 or n == 1), (peer, x))
            return found

    return starling.simulate(n or 3, work, EXPERIMENT)


def test_numbers(scene):
    draw = random.Random(1)
    for n in (1, 2, 3, 5, 7):
        for size in (0, 1, 10, 300):
            own = [draw.uniform(-1, 1) * 10**size for _ in range(n)]
            exact = sum(map(Fraction, own)) / n
            for found in means(lambda rank: own[rank], n):
                near = abs(found - exact) <= 4e-16 * max(map(abs, own))
                check(type(found) is float and near, own)
    floats = 0.1, -1 / 3, 1e308, 1.7e308, 5e-324, 2.3e-308, -1e-315, 0.0, math.inf, -math.inf
    for equal, n in itertools.product((*floats, 3, True, 10**15), (3, 7)):
        check(means(lambda rank: equal, n) == [equal] * n, equal)
    check(all(map(math.isnan, means(lambda rank: math.nan))), "NaN")
    check(all(map(math.isnan, means(lambda rank: math.inf if rank else -math.inf))), "inf - inf")
    check(means(lambda rank: rank, 4) == [1.5] * 4, "whole numbers have a mean that is not whole")


def test_arrays_of_each_dtype(scene):
    for dtype in ("f2", "f4", "f8", ">f4", "c8", "c16", "?", *"bBhHiIlLqQ"):
        kind = numpy.dtype(dtype)
        if kind.kind in "iu":
            limits = numpy.iinfo(kind)
            equal = numpy.array([[limits.min, limits.max, 7]], kind)
        elif kind.kind == "b":
            equal = numpy.array([[True, False, True]])
        else:
            limits = numpy.finfo(kind)
            equal = numpy.array([[limits.min, limits.max, limits.tiny, 1 / 3]], kind)
        for found in means(lambda rank: equal.copy()):
            check(found.dtype == kind and (found == equal).all(), (dtype, found))
    for found in means(lambda rank: numpy.array([rank, 10 + rank, -5 * rank, 2**62 + rank])):
        check(found.tolist() == [1, 11, -5, 2**62 + 1], found)
    for found in means(lambda rank: numpy.array([2**64 - 1 - rank, rank], "u8"), 2):
        check(found.tolist() == [2**64 - 1, 1], found)  # a half is rounded up


def test_shapes(scene):
    for shape in ((), (0,), (2, 0, 3), (1,), (2, 3, 4)):
        for found in means(lambda rank: numpy.full(shape, rank, "f8")):
            check(found.shape == shape and (found == 1).all(), (shape, found))
    for found in means(lambda rank: numpy.arange(24.0).reshape(2, 3, 4).T[::2] * rank):
        check((found == numpy.arange(24.0).reshape(2, 3, 4).T[::2]).all(), found)
    found = means(lambda rank: numpy.float32(rank))[0]
    check(type(found) is numpy.float32 and found == 1, type(found))


def test_lists_and_dicts(scene):
    def values(rank):
        return {"loss": rank * 1.0, "more": [rank, (numpy.full(2, rank, "f4"), {})], 3: []}

    for found in means(values):
        check(found["loss"] == 1 and found["more"][0] == 1 and found[3] == [], found)
        check(found["more"][1][0].tolist() == [1, 1] and found["more"][1][1] == {}, found)


def test_tensors_of_each_dtype(scene):
    needs(torch, "torch is not installed here")
    floats = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
    for name in (*floats, "bool", "uint8", "int8", "int16", "int32", "int64"):
        dtype = getattr(torch, name)
        if name in floats:
            limits = torch.finfo(dtype)
            equal = torch.tensor([[limits.min, limits.max, limits.tiny, 1 / 3]]).to(dtype)
            if name == "complex128":
                equal = torch.tensor([[limits.min, limits.max, limits.tiny, 1 / 3j]], dtype=dtype)
        else:
            limits = torch.iinfo(dtype) if name != "bool" else None
            equal = torch.tensor([[limits.min, limits.max, 7] if limits else [True, False, True]])
            equal = equal.to(dtype)
        for found in means(lambda rank: equal.clone()):
            check(found.dtype == dtype and torch.equal(found, equal), (dtype, found, equal))
    for each, mean in (([3, 4, 6], 4), ([True, True, False], True), ([-1.0, 0.5, 3.0], 2.5 / 3)):
        for found in means(lambda rank: torch.tensor(each[rank])):
            check(abs(found.item() - mean) < 1e-7, found)


def test_tensors_of_each_layout(scene):
    needs(torch, "torch is not installed here")
    image = torch.randn(2, 3, 4, 4)
    for make in (
        lambda x: x,
        lambda x: x.to(memory_format=torch.channels_last),
        lambda x: x.permute(3, 1, 0, 2),
        lambda x: x[:, ::2],
        lambda x: x[0, 0, 0, 0],
        lambda x: x[:0],
        lambda x: x[:1, :1].expand(5, 7, 4, 4),
        lambda x: torch.nn.Parameter(x),
        lambda x: x.clone().requires_grad_() * 2,
    ):
        given = []
        for found in means(lambda rank: given.append(make(image * rank)) or given[-1]):
            check(torch.allclose(found, given[1]) and not found.requires_grad, found.shape)
            check(found.shape == given[1].shape, found.shape)


def test_what_is_refused(scene):
    def one(value):
        def work(rank):
            with starling.join(None, numpy.ones(2, "f4")) as peer:
                refused(lambda: peer.mean(value), "mean()", "x")
                check(peer.mean(2.0) == 2, "it does not go on")

        starling.simulate(1, work, EXPERIMENT)

    odd = ["text", None, object(), {1}, [1, "a"], {"a": None}, 1j, 10**400, len]
    odd += [numpy.array("a"), numpy.array([None]), numpy.longdouble(1), numpy.datetime64("nat")]
    if torch is not None:
        odd += [torch.ones(2, 2).to_sparse(), torch.ones(2, device="meta")]
        odd.append(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8))
    for value in odd:
        one(value)


def test_peers_that_give_other_numbers(scene):
    for others in (
        (numpy.ones(3, "f4"), numpy.ones(3, "f8")),
        (numpy.ones((2, 3)), numpy.ones((3, 2))),
        (numpy.ones(3), numpy.ones(4)),
        (1.0, [1.0]),
        ({"a": 1.0}, {"b": 1.0}),
    ):

        def work(rank):
            with starling.join(None, numpy.ones(2, "f4")) as peer:
                words = "mean(): the peers give other numbers", "x"
                refused(lambda: peer.mean(others[rank]), *words)
                check(peer.mean(rank * 2.0) == 1, "they do not go on")

        starling.simulate(2, work, EXPERIMENT)


if __name__ == "__main__":
    if torch is not None:
        torch.set_num_threads(1)
    run_tests()
