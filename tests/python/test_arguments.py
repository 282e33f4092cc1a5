#!/usr/bin/env python3
"""Arguments of wrong kinds: each gives an Error that names the parameter, and none of Python's."""
import pathlib
import random

import _package  # noqa: F401: finds the package
import numpy

import starling
from _scene import check, run_tests

ONE = {"topology": {"family": "complete", "nodes": 1}}
ODD = (
    *(None, True, -1, 0, 2**31, 2**64, -(2**70), 1.5, float("nan"), 3 + 4j, "", "three", "1"),
    *(b"bytes", b"\0", "a\0b", "\ud800", "x" * 200, [], [None], ["a", 3], (), {}, {"a": object()}),
    *(object(), object, len, numpy.float64(2), numpy.int64(3), numpy.ones(2), pathlib.Path("no")),
    *(set(), range(3), Ellipsis, lambda: 0, ["a:1"], {"nodes": numpy.int64(2)}, {1: 2, (3, 4): 5}),
)


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


def test_files_of_any_bytes(scene):
    draw = random.Random(1)
    for i in range(60):
        content = bytes(draw.randrange(256) for _ in range(draw.randrange(40)))
        for name in ("a.safetensors", "a.npy", "a.json"):
            path = scene.write(name, content if i % 2 else b"\x93NUMPY\x01\0" + content)
            for call in (starling.load, starling.topology, join):
                gives_errors_of_ours("", call, path)


if __name__ == "__main__":
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
