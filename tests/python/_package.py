"""The package of this checkout with the library of the build under test, for tests to import."""

import importlib.util
import logging
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[1])))
PACKAGE = os.path.join(ROOT, "src", "python")
os.environ.setdefault("STARLING_LIBRARY", os.path.join(BUILD, "src", "libstarling.so.0"))
os.environ["PYTHONPATH"] = PACKAGE
sys.path[:0] = [PACKAGE, *(os.path.join(ROOT, "tests", name) for name in ("chaos", "parity"))]


def imported(name):
    """Where it is absent, the test is skipped."""
    from _scene import needs

    needs(importlib.util.find_spec(name), f"{name} is not installed here")
    return importlib.import_module(name)


def refused(call, *words, kind=None):
    """The Error, or another kind of exception, that call() raises, whose text has all of words."""
    from _scene import check
    from starling import Error

    try:
        call()
    except kind or Error as error:
        for word in words:
            check(word in str(error), f"{word!r} is missing in {str(error)!r}")
        return error
    check(False, f"not refused; expected {words}")


def warnings_of(work):
    """What the package warns of while work() runs."""
    said, log = [], logging.getLogger("starling")
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())
    log.addHandler(handler)
    try:
        work()
    finally:
        log.removeHandler(handler)
    return said
