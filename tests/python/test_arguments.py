#!/usr/bin/env python3
"""Arguments of wrong kinds: each gives an Error that names the parameter, and none of Python's. And
what join() says before it waits for anybody: without a launcher, of devices, of experiments."""
import os
import pathlib

import _package  # noqa: F401: finds the package
import numpy

import starling
from _package import imported, refused, warnings_of
from _scene import check, run_tests

ONE = {"topology": {"family": "complete", "nodes": 1}}
LAUNCHERS = ("RANK", "WORLD_SIZE", "STARLING_RANK", "STARLING_SIZE")
ODD = (
    *(None, True, -1, 0, 2**31, 2**64, -(2**70), 1.5, float("nan"), 3 + 4j, "", "three", "1"),
    *(b"bytes", b"\0", "a\0b", "\ud800", "x" * 200, [], [None], ["a", 3], (), {}, {"a": object()}),
    *(object(), object, len, numpy.float64(2), numpy.int64(3), numpy.ones(2), pathlib.Path("no")),
    *(set(), range(3), Ellipsis, lambda: 0, ["a:1"], {"nodes": numpy.int64(2)}, {1: 2, (3, 4): 5}),
)


X = numpy.ones(4, "f4")
READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False


class Dlpack:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        raise BufferError("not today")


class Interface:
    """An array by some interface."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


ARRAYS = (
    *(bytearray(16), [[]], [X, None], X.tolist(), (X, X), [X, X[:0]], memoryview(X)),
    *(X[::2], X[::-1], READ_ONLY, X.astype("f8"), X.astype(">f4"), X.astype("c8"), X[:0]),
    *(numpy.array("a"), numpy.array([None]), numpy.zeros(2, [("a", "f4")]), numpy.ma.array(X)),
    *(numpy.datetime64("now"), memoryview(b"abcd"), Dlpack(), [Dlpack()]),
    *(Interface(__dlpack__=3), Interface(__cuda_array_interface__={"data": 3})),
)
for name in LAUNCHERS:
    os.environ.pop(name, None)


def gives_errors_of_ours(name, call, value, may_work=True):
    """Names the parameter or the file, or works."""
    try:
        call(value)
        check(may_work, f"{name}={value!r} is taken"[:400])
    except starling.Error as error:
        check(
            name in str(error) or "No such file" in str(error), f"{name}={value!r}: {error}"[:400]
        )
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        check(False, f"{name}={value!r}: {type(error).__name__}: {error}"[:400])


def join(experiment=ONE, x=None, **more):
    x = numpy.ones(3, "f4") if x is None else x
    starling.join(experiment, x, start=False, **more).abort("tried")


def test_parameters_of_join(scene):
    for name in ("rank", "size", "roster", "master", "listen", "key"):
        for value in ODD:
            gives_errors_of_ours("", lambda value: join(**{name: value}), value)
    for name in ("rank", "size"):
        for value in (-1, 1.5, "1", True, 2**64, [], numpy.float64(2)):
            gives_errors_of_ours(name + "=", lambda value: join(**{name: value}), value)
    for name in ("roster", "master", "listen", "key"):
        for value in (3, 1.5, object(), "a\0b", {}):
            gives_errors_of_ours(name + "=", lambda value: join(**{name: value}), value)
    for value in (["a:1", 3], ["a:1", None]):
        gives_errors_of_ours("roster=[1]", lambda value: join(roster=value), value)


def test_experiments(scene):
    for value in ODD:
        gives_errors_of_ours("experiment", lambda value: join(value), value)
        for key in ("topology", "algorithm", "device", "transport", "membership", "security"):
            gives_errors_of_ours("", lambda value: join({**ONE, key: value}), value)
    deep = "[" * 100000
    gives_errors_of_ours("experiment", lambda value: join(value), '{"name": ' + deep)


def test_topologies_simulations_and_files(scene):
    for value in ODD:
        gives_errors_of_ours("", starling.topology, value)
        gives_errors_of_ours("", starling.spectrum, value)
        gives_errors_of_ours("", starling.load, value)
        gives_errors_of_ours("n", lambda value: starling.simulate(value, int, ONE), value)
        gives_errors_of_ours("", lambda value: starling.simulate(1, int, value), value, False)
        if not callable(value):
            gives_errors_of_ours("train", lambda value: starling.simulate(1, value, ONE), value)


def test_arrays(scene):
    def train(x):
        with starling.join(None, x) as peer:
            peer.mix()
            peer.average()

    for value in (*ODD, *ARRAYS):
        run = lambda x: starling.simulate(1, lambda rank: train(x), ONE)  # noqa: E731
        gives_errors_of_ours("", run, value)


# ---- what join() says ----


def test_one_peer_trains_alone_and_says_so(scene):
    def work():
        for more in ({}, {"size": 1}, {"rank": 0, "size": 1}):
            x = numpy.arange(3, dtype="f4")
            with starling.join(ONE, x, **more) as peer:
                check((peer.rank, peer.size) == (0, 1), peer)
                x *= 2
                peer.mix()
                check((peer.average() == [0, 2, 4]).all(), x)

    said = warnings_of(work)
    check(len(said) == 3 and all("trains alone" in line for line in said), said)


def test_what_check_warns_of_is_told_at_join(scene):
    x, here = numpy.ones(2000, "f4"), {"roster": "127.0.0.{rank}:7000", "listen": "127.0.0.1:0"}
    for algorithm, words in (
        ({"name": "dcd-psgd", "compressor": {"name": "random-k", "fraction": 0.01}}, "variance"),
        ({"name": "ecd-psgd", "compressor": {"name": "top-k", "fraction": 0.5}}, "biased"),
        ({"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 0.01}}, None),
    ):
        ring = {"topology": {"family": "ring", "nodes": 4}, "algorithm": algorithm}

        def train(rank):
            starling.join(None, x.copy()).leave()

        for work in (
            lambda: join(ring, x, rank=1, **here),
            lambda: starling.simulate(4, train, ring),
        ):
            said = [line for line in warnings_of(work) if "no effect" not in line]
            check(len(said) == (words is not None) and all(words in line for line in said), said)


def test_several_peers_want_a_launcher(scene):
    ring = {"topology": {"family": "ring"}}
    for given in ({}, {"rank": 0}):
        refused(lambda: join(ring, **given), "how many peers", "torchrun", "rank=", "size=")
    two = {"topology": {"family": "complete", "nodes": 2}}
    refused(lambda: join(two), "nothing says which of 2 peers", "torchrun", "rank=")


def test_devices_that_are_not_there(scene):
    torch = imported("torch")
    tensors = (torch.nn.Linear(5, 3), torch.ones(4), [torch.ones(4), torch.ones(2)])
    for x in (*tensors, numpy.ones(3, "f4")):
        for device in ("auto", "gpu", "cuda", "cuda:-1", "cuda:x", "", 3, None, True, ["cpu"], {}):
            refused(lambda: join({**ONE, "device": device}, x), "device", "cuda:0", "cpu")
        device = f"cuda:{torch.cuda.device_count()}"
        refused(lambda: join({**ONE, "device": device}, x), "device", device)


if __name__ == "__main__":
    run_tests()
