"""What callers give: numbers and texts as C takes them, or an Error that names the parameter."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Collection
from typing import Any

from starling._library import Error

PEERS_MAX = 1_000_000  # SL_NODES_MAX


def whole(name: str, value: Any, least: int = 0, most: int = PEERS_MAX) -> int:
    """A whole number from least to most; None: -1, which C takes for "not given"."""
    if value is None:
        return -1
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or not least <= found <= most:
        raise Error(f"{name} is {_shown(value)}; it must be a whole number from {least} to {most}")
    return found


def text(name: str, value: Any) -> bytes | None:
    """A text, or a path; None: not given."""
    if value is None:
        return None
    try:
        found = os.fsencode(value)
    except (TypeError, UnicodeError):
        raise Error(f"{name} is {_shown(value)}; it must be a text, or a path") from None
    if b"\0" in found:
        raise Error(f"{name} is {_shown(value)}; it may not hold a zero byte")
    return found


def texts(name: str, value: Any) -> bytes | None:
    """A text, or a list of them, which becomes one with commas."""
    if not isinstance(value, (list, tuple)):
        return text(name, value)
    found = (text(f"{name}[{i}]", part) for i, part in enumerate(value))
    if None in value:
        raise Error(f"{name}[{value.index(None)}] is None; it must be a text")
    return b",".join(part for part in found if part is not None)


def _plain(value: Any) -> Any:
    """What JSON has no form for: numbers and arrays of numpy and torch, paths, sets and views."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (bytes, bytearray)):
        raise TypeError(f"it holds {_shown(value)}")
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Collection):
        return list(value)
    raise TypeError(f"it holds a {type(value).__name__}, {_shown(value)}")


def as_json(name: str, value: dict[Any, Any]) -> bytes:
    """A dict as JSON. Numbers and arrays may be numpy's."""
    try:
        return json.dumps(value, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise Error(f"{name} is a dict that is no JSON: {problem}") from None


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"a {type(value).__name__}"
