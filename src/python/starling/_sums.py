"""Sums over all peers, in double: what means (_mean.py, _state.py) and comparisons are made of."""

from __future__ import annotations

import ctypes
import hashlib
from typing import Any, Callable

CHUNK = 1 << 24  # numbers of one sum
SCALE = 2.0**24  # more than peers: a sum of doubles cannot overflow
LOW = 0x7FFFFFF  # a double's lower half
WORD = 1 << 32
DIGITS = (20, 3)  # bits of a part of a hash, and parts: their squares add up exactly in double

Adder = Callable[[Any, int], int]  # adds up so many doubles in place; how many peers gave some


def add_all(add: Adder, address: int, count: int) -> int:
    """Adds up in pieces, so that a sum of much needs little memory in between."""
    givers = 1
    for first in range(0, count, CHUNK):
        piece = ctypes.cast(address + 8 * first, ctypes.POINTER(ctypes.c_double))
        givers = add(piece, min(CHUNK, count - first))
    return givers


def agree(add: Adder, data: bytes) -> bool:
    """Do all peers have the same bytes? They wait for all peers."""
    bits, count = DIGITS
    digest = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
    digits = [digest >> (bits * i) & ((1 << bits) - 1) for i in range(count)]
    sums = (ctypes.c_double * (2 * count))(*(float(n) for d in digits for n in (d, d * d)))
    givers = add_all(add, ctypes.addressof(sums), len(sums))
    return all(givers * int(sums[2 * i + 1]) == int(sums[2 * i]) ** 2 for i in range(count))
