"""The mean over all peers of what peer.mean() is given: numbers, arrays, tensors, lists and dicts
of those.

Like all means beside the vector (_state.py) it is a sum in double of parts that keep the numbers
exact: equal numbers stay equal, whatever their magnitude and however many peers there are.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from typing import Any

from starling._library import Error, naming
from starling._memory import is_torch
from starling._sums import LOW, SCALE, WORD, Adder, add_all, agree

KINDS = "a number, a numpy array, a torch tensor, or a list or dict of those"


class _Number:
    """A float, in three doubles as _state.py has it."""

    count = 3

    def __init__(self, name, value):
        self.kind = "number"
        self._value = float(value)

    def write(self, out):
        x = self._value
        (bits,) = struct.unpack("<Q", struct.pack("<d", x))
        (high,) = struct.unpack("<d", struct.pack("<Q", bits & ~LOW))
        if not math.isfinite(x):
            out[:] = x, 0.0, 0.0
        elif abs(high) >= 1:
            out[:] = high / SCALE, 0.0, x - high
        else:
            out[:] = 0.0, high, x - high

    def read(self, sums, givers):
        return sums[0] / givers * SCALE + sums[1] / givers + sums[2] / givers


class _Tensor:
    """A torch tensor."""

    def __init__(self, name, tensor):
        from starling import _state

        self._state, self._name, self._tensor = _state, name, tensor
        self.kind = f"{tensor.dtype} {tuple(tensor.shape)}"
        with naming(f"mean(): {name}"):
            if tensor.layout is not sys.modules["torch"].strided:
                raise Error(f"mean(): {name} is of layout {tensor.layout}: give a dense tensor")
            self._encoded = _state.encode(tensor)
        self.count = self._encoded.numel()

    def write(self, out):
        _doubles(out).copy_(self._encoded.reshape(-1))
        self._shape, self._encoded = self._encoded.shape, None

    def read(self, sums, givers):
        tensor = self._tensor
        with naming(f"mean(): {self._name}"):
            found = self._state.decode(_doubles(sums).reshape(self._shape), tensor.dtype, givers)
            return found.reshape(tensor.shape).to(tensor.device, copy=True)


def _doubles(array):
    """A ctypes array as a tensor."""
    import torch

    return torch.frombuffer(array, dtype=torch.float64) if len(array) else torch.zeros(0).double()


class _Array:
    """A numpy array or scalar."""

    def __init__(self, name, array):
        import numpy

        self._numpy, self._array = numpy, numpy.asarray(array)
        self.dtype, self._is_scalar = self._array.dtype, isinstance(array, numpy.generic)
        self.kind = f"{self.dtype} {self._array.shape}"
        if self.dtype.kind not in "biufc" or self.dtype.itemsize > (
            16 if self._is_complex() else 8
        ):
            raise Error(
                f"mean(): {name} has dtype {self.dtype}; it takes float64, complex128, int64 and "
                "shorter ones"
            )
        self._parts = self._cut(self._array.reshape(-1))
        self.count = sum(part.size for part in self._parts)

    def _is_complex(self):
        return self.dtype.kind == "c"

    def _cut(self, x):
        """float64 arrays."""
        if x.dtype.kind == "c":
            return [*self._cut(x.real), *self._cut(x.imag)]
        if x.dtype.kind == "f" and x.dtype.itemsize == 8:
            x, where = x.astype("<f8"), self._numpy.where
            finite = self._numpy.isfinite(x)
            high = where(finite, (x.view("<u8") & ~self._numpy.uint64(LOW)).view("<f8"), x)
            large = abs(high) >= 1
            with self._numpy.errstate(invalid="ignore"):
                rest = where(finite, x - high, 0)
            scaled = where(large, high / SCALE, where(finite, 0, high))
            return [scaled, where(large | ~finite, 0, high), rest]
        if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
            words = (x >> x.dtype.type(32), x & x.dtype.type(WORD - 1))
            return [word.astype("<f8") for word in words]
        return [x.astype("<f8")]

    def write(self, out):
        view = self._numpy.frombuffer(out, "<f8") if self.count else None
        if view is not None:
            view[:] = self._numpy.concatenate(self._parts)
        self._parts = [None] * len(self._parts)

    def read(self, sums, givers):
        view = self._numpy.frombuffer(sums, "<f8") if self.count else self._numpy.zeros(0)
        parts = self._numpy.split(view, len(self._parts))
        half = len(parts) // 2
        if self._is_complex():
            found = self._join(parts[:half], givers) + 1j * self._join(parts[half:], givers)
        else:
            found = self._join(parts, givers)
        found = found.astype(self.dtype).reshape(self._array.shape)
        return found[()] if self._is_scalar else found

    def _join(self, parts, givers):
        if self.dtype.kind in "fc":
            if len(parts) == 1:
                return parts[0] / givers
            large, small, rest = (part / givers for part in parts)
            return large * SCALE + small + rest
        if len(parts) == 1:
            return self._numpy.floor((parts[0] + givers // 2) / givers)
        whole = "<u8" if self.dtype.kind == "u" else "<i8"
        high, low = (part.astype("<i8") for part in parts)
        above = high // givers
        rest = ((high - above * givers) * WORD + low + givers // 2) // givers
        return above.astype(whole) * self._numpy.array(WORD, whole) + rest.astype(whole)


def _leaf(name, value):
    if is_torch(value):
        return _Tensor(name, value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _Array(name, value)
    if isinstance(value, (int, float)):
        try:
            return _Number(name, value)
        except OverflowError:
            raise Error(f"mean(): {name} is an int that no float can be near") from None
    raise Error(f"mean(): {name} is a {type(value).__name__}; it takes {KINDS}")


def _flatten(name, value, found):
    """The leaves of value, into found: and a function that puts their means in their places."""
    if isinstance(value, dict):
        inner = {key: _flatten(f"{name}[{key!r}]", part, found) for key, part in value.items()}
        return lambda means: {key: place(means) for key, place in inner.items()}
    if isinstance(value, (list, tuple)):
        parts = [_flatten(f"{name}[{i}]", part, found) for i, part in enumerate(value)]
        return lambda means: [place(means) for place in parts]
    at = len(found)
    found.append((name, _leaf(name, value)))
    return lambda means: means[at]


def mean(add: Adder, value: Any) -> Any:
    """The mean over all peers of value, which is of the same kinds and shapes on all."""
    found: list[Any] = []
    place = _flatten("x", value, found)
    text = "".join(f"{name} {leaf.kind}\n" for name, leaf in found)
    if not agree(add, text.encode()):
        raise Error(
            "mean(): the peers give other numbers at the same place; this one gives "
            f"{text.strip() or 'none'}: all peers call it as often, with equal dtypes and shapes"
        )
    counts = [leaf.count for _, leaf in found]
    doubles = (ctypes.c_double * sum(counts))()
    ranges, at = [], 0
    for count in counts:
        ranges.append((ctypes.c_double * count).from_buffer(doubles, 8 * at))
        at += count
    for (_, leaf), part in zip(found, ranges):
        leaf.write(part)
    givers = add_all(add, ctypes.addressof(doubles), at)
    return place([leaf.read(part, givers) for (_, leaf), part in zip(found, ranges)])


def own(value: Any) -> Any:
    """What mean() gives of one peer alone."""
    return mean(lambda doubles, count: 1, value)
