#!/usr/bin/env python3
"""Type hints and docstrings: mypy finds the package right, and scripts that use it wrongly; every
public name has both."""
import inspect
import os
import shutil
import subprocess

import _package

import starling
from _scene import check, needs, run_tests

# misc: takes arrays of ctypes for wrong that are made of tuples.
CONFIG = """
[mypy]
cache_dir = CACHE
disable_error_code = misc
[mypy-torch.*]
follow_imports = skip
[mypy-numpy.*]
follow_imports = skip
[mypy-wrong,right]
disallow_untyped_calls = True
disallow_untyped_defs = True
warn_return_any = True
"""
RIGHT = """
import starling

def train(rank: int) -> float:
    with starling.join(None, [1.0], rank=rank, size=2, roster=["a:1", "b:2"]) as peer:
        peer.mix()
        members: list[int] = peer.members
        print(peer.rank + peer.size, members, peer.metrics()["round"], peer.average())
        return peer.distance

losses: list[float] = starling.simulate(2, train, {"topology": {"family": "ring"}})
spectrum = starling.spectrum({"nodes": 4, "family": "ring"})
gap: float = spectrum.gap
callback = starling.Callback("experiment.json", average=False, rank=0)
try:
    weights = starling.load("run")["layer.weight"]
except starling.Error as error:
    where: tuple[int, int] | None = error.edge
    print(error.code + "!", where)
"""
WRONG = {  # a line, and what mypy says of it
    'starling.join({}, [1.0], rank="first")': "incompatible type",
    "starling.join({})": "Missing positional argument",
    "starling.join({}, [1.0], ranks=3)": "Unexpected keyword argument",
    "starling.join({}, [1.0]).mixx()": '"Peer" has no attribute "mixx"',
    "starling.simulate(2, 3, {})": "incompatible type",
    "starling.topology({}).nodes + 'a'": "Unsupported operand",
    "starling.Peer.leave(3)": "incompatible type",
    "starling.everything": "has no attribute",
}


def mypy(scene, *paths):
    """mypy's lines."""
    config = scene.write("mypy.ini", CONFIG.replace("CACHE", scene.path("cache")))
    return subprocess.run(
        ["mypy", "--config-file", config, "--no-error-summary", "--hide-error-context", *paths],
        env={**os.environ, "MYPYPATH": _package.PACKAGE},
        cwd=scene.folder,
        capture_output=True,
        text=True,
        timeout=600,
    ).stdout.splitlines()


def test_mypy(scene):
    needs(shutil.which("mypy"), "mypy is not installed here")
    right = scene.write("right.py", "from __future__ import annotations\n" + RIGHT)
    wrong = scene.write("wrong.py", "import starling\n" + "\n".join(WRONG) + "\n")
    found = mypy(scene, os.path.join(_package.PACKAGE, "starling"), right, wrong)
    said = [line for line in found if line.startswith("wrong.py:")]
    more = [line for line in found if line not in said and ": note: " not in line]
    check(not more, more)
    for number, words in enumerate(WRONG.values(), 2):
        line = [line for line in said if line.startswith(f"wrong.py:{number}:")]
        check(line and words in line[0], f"line {number}, {words!r}: {line}")


def test_the_package_says_that_it_is_typed(scene):
    marker = os.path.join(_package.PACKAGE, "starling", "py.typed")
    check(os.path.exists(marker), "PEP 561 wants it")


def public():
    """(name, thing) of all that docs/python.md may speak of."""
    yield "starling", starling
    for name in starling.__all__:
        thing = getattr(starling, name)
        yield name, thing
        if not inspect.isclass(thing):
            continue
        for inner, value in vars(thing).items():
            if inner == "__init__" or not inner.startswith("_"):
                yield f"{name}.{inner}", value


def test_every_public_name_has_a_docstring(scene):
    silent = [name for name, thing in public() if is_code(thing) and not inspect.getdoc(thing)]
    check(not silent, silent)


def is_code(thing):
    return inspect.isroutine(thing) or inspect.isclass(thing) or isinstance(thing, property)


def unhinted(thing):
    """Its parameters without a type."""
    function = thing.fget if isinstance(thing, property) else thing
    function = inspect.unwrap(function)
    if not inspect.isfunction(function):
        return []
    hints = function.__annotations__
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    return [name for name in [*names, "return"] if name not in hints]


def test_every_public_name_has_type_hints(scene):
    missing = {name: unhinted(thing) for name, thing in public() if unhinted(thing)}
    missing.pop("Callback.__new__", None)
    check(not missing, missing)


if __name__ == "__main__":
    run_tests()
