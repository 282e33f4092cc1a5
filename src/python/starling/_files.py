"""Models that a run leaves behind."""

from __future__ import annotations

import io
import json
import math
import os
import struct
from typing import Any

from starling._arguments import text
from starling._library import Error, read_file

NAMES = ("model.safetensors", "model.npy", "model-best.safetensors", "model-best.npy")
FORMATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
HEADER_MAX = 100_000_000  # the format's own limit


def _numpy(path):
    try:
        import numpy
    except ImportError:
        raise Error(f"{path}: numpy is needed to read it, and is absent", "SL_EFILE") from None
    return numpy


def _safetensors(path):
    """{name: array}: 8 bytes of length, a JSON header, the data."""
    numpy = _numpy(path)
    content = read_file(path)

    def refuse(why):
        raise Error(f"{path}: {why}", "SL_EFILE")

    if len(content) < 8:
        refuse(f"{len(content)} bytes are too few for a safetensors file")
    (length,) = struct.unpack_from("<Q", content)
    if length > min(HEADER_MAX, len(content) - 8):
        refuse(f"its header of {length} bytes does not fit into the file")
    try:
        header = json.loads(content[8 : 8 + length])
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        data, tensors = memoryview(content)[8 + length :], {}
        for name, entry in entries.items():
            begin, end = entry["data_offsets"]
            if entry["dtype"] not in FORMATS:
                refuse(f"tensor {name!r} is {entry['dtype']}; Starling reads {', '.join(FORMATS)}")
            kind = numpy.dtype(FORMATS[entry["dtype"]])
            shape = tuple(entry["shape"])
            if not 0 <= begin <= end <= len(data):
                refuse(f"tensor {name!r} ends outside the file")
            if end - begin != math.prod(shape) * kind.itemsize:
                refuse(f"tensor {name!r} has {end - begin} bytes, not those of {shape}")
            tensors[name] = numpy.frombuffer(data[begin:end], kind).reshape(shape).copy()
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        refuse(f"not a safetensors file that Starling reads: {problem!r}")
    return tensors


def _npy(path):
    numpy = _numpy(path)
    try:
        return numpy.load(io.BytesIO(read_file(path)), allow_pickle=False)
    except (ValueError, EOFError, TypeError, SyntaxError, MemoryError, OverflowError) as problem:
        raise Error(f"{path}: not a .npy file that numpy reads: {problem}", "SL_EFILE") from None


def _keeps_none(run):
    try:
        config = json.loads(read_file(os.path.join(run, "config.json")))
        return config["record"]["models"] == "none"
    except (Error, OSError, ValueError, KeyError, TypeError):
        return False


def _find(run):
    if not os.path.isdir(run):
        return run
    for name in NAMES:
        if os.path.exists(os.path.join(run, name)):
            return os.path.join(run, name)
    why = '; its run kept none (record.models "none")' if _keeps_none(run) else ""
    raise Error(f"{run}: holds no model ({' or '.join(NAMES[:2])}){why}", "SL_EFILE")


def load(run: str | os.PathLike[str]) -> dict[str, Any]:
    """The model of a run: its folder's averaged model, or the file that is named.

    A .safetensors file gives {name: array}, as torch tensors where torch is loaded, so that
    module.load_state_dict() takes it; a .npy file {"model": array}.
    """
    given = text("run", run)
    if given is None:
        raise Error("run is None; it must be a folder of a run, or a file of a model")
    path = _find(os.fsdecode(given))
    if not os.path.exists(path):
        raise Error(f"{path}: no such file or folder", "SL_EFILE")
    if path.endswith(".npy"):
        tensors = {"model": _npy(path)}
    else:
        tensors = _safetensors(path)
    import sys

    torch = sys.modules.get("torch")
    if torch is None:
        return tensors
    return {name: torch.from_numpy(array) for name, array in tensors.items()}
