"""Graphs of networkx, and matrices of numpy and others, as topologies."""

from __future__ import annotations

import ctypes
import json
from typing import Any

from starling._arguments import text
from starling._library import CError, Error, call, declare, free


class _Edge(ctypes.Structure):
    """sl_edge"""

    _fields_ = [
        ("from", ctypes.c_uint32),
        ("to", ctypes.c_uint32),
        ("weight", ctypes.c_double),
    ]


class _Entry(ctypes.Structure):
    """sl_matrix_entry"""

    _fields_ = [
        ("row", ctypes.c_uint32),
        ("column", ctypes.c_uint32),
        ("value", ctypes.c_double),
    ]


class _Graph(ctypes.Structure):
    """sl_foreign_graph"""

    _fields_ = [
        ("nodes", ctypes.c_uint32),
        ("names", ctypes.POINTER(ctypes.c_char_p)),
        ("edges", ctypes.POINTER(_Edge)),
        ("edge_count", ctypes.c_size_t),
        ("directed", ctypes.c_bool),
        ("weights", ctypes.c_char_p),
    ]


_text_out = ctypes.POINTER(ctypes.c_void_p)
_error = ctypes.POINTER(CError)
_graph_json = declare(
    "sl_foreign_graph_json", ctypes.c_int, _text_out, ctypes.POINTER(_Graph), _error
)
_matrix_json = declare(
    "sl_foreign_matrix_json",
    ctypes.c_int,
    _text_out,
    ctypes.c_uint32,
    ctypes.POINTER(_Entry),
    ctypes.c_size_t,
    ctypes.c_char_p,
    _error,
)


def is_graph(spec: Any) -> bool:
    """Is it a graph of networkx, or of what looks like that?"""
    return callable(getattr(spec, "is_directed", None)) and callable(getattr(spec, "edges", None))


def is_matrix(spec: Any) -> bool:
    """Is it an array, a tensor, a sparse matrix, a table of pandas, or a list?"""
    is_array = hasattr(spec, "dtype") or hasattr(spec, "to_numpy")
    return isinstance(spec, (list, tuple)) or (hasattr(spec, "shape") and is_array)


def description(spec: Any, weights: Any = None) -> bytes:
    """The topology's JSON."""
    scheme = text("weights", weights)
    found = ctypes.c_void_p()
    try:
        if is_graph(spec):
            call(_graph_json, ctypes.byref(found), ctypes.byref(_graph_of(spec, scheme)))
        else:
            nodes, entries = _entries(spec)
            call(_matrix_json, ctypes.byref(found), nodes, entries, len(entries), scheme)
    except Error as problem:
        raise Error(f"topology: {problem}", problem.code) from None
    try:
        return ctypes.string_at(found)
    finally:
        free(found)


# ---- graphs ----


def _whole(node: Any) -> int | None:
    """The number that a node's name is, as it is usually written."""
    name = str(node)
    try:
        number = int(name)
    except ValueError:
        return None
    return number if str(number) == name else None


def node_order(graph: Any) -> list[Any]:
    """Its nodes by rank: in the order of their numbers where all are whole numbers, else as the
    graph lists them."""
    nodes = list(graph.nodes)
    numbers = [_whole(node) for node in nodes]
    if any(number is None for number in numbers):
        return nodes
    return [node for _, node in sorted(zip(numbers, nodes), key=lambda pair: pair[0] or 0)]


def _graph_of(graph: Any, scheme: bytes | None) -> _Graph:
    nodes = node_order(graph)
    rank = {node: i for i, node in enumerate(nodes)}
    rows = []
    for a, b, data in graph.edges(data=True):
        weight = data.get("weight")
        try:
            number = float("nan") if weight is None or scheme is not None else float(weight)
        except (TypeError, ValueError):
            raise Error(
                f"the weight of edge {a!r} to {b!r} is {weight!r}, which is no number; weights="
                '"metropolis" leaves the numbers at edges out'
            ) from None
        rows.append((rank[a], rank[b], number))
    names = [str(node).encode(errors="replace").replace(b"\0", b"?") for node in nodes]
    plain = names == [str(i).encode() for i in range(len(names))]
    return _Graph(
        len(nodes),
        None if plain else (ctypes.c_char_p * len(names))(*names),
        _array(_Edge, rows),
        len(rows),
        graph.is_directed(),
        scheme,
    )


# ---- matrices ----


def _entries(matrix: Any) -> tuple[int, Any]:
    """(nodes, the entries that are not 0)"""
    if callable(getattr(matrix, "tocoo", None)):  # of scipy
        sparse = matrix.tocoo()
        _check_square(tuple(sparse.shape))
        return sparse.shape[0], _packed(sparse.row, sparse.col, sparse.data)
    if hasattr(matrix, "detach"):  # of torch
        matrix = matrix.detach().cpu()
        matrix = matrix.to_dense() if getattr(matrix, "is_sparse", False) else matrix
    if hasattr(matrix, "to_numpy"):  # of pandas
        matrix = matrix.to_numpy()
    if hasattr(matrix, "nonzero") and getattr(matrix.dtype, "kind", "") in tuple("biuf"):
        _check_square(matrix.shape)
        rows, columns = matrix.nonzero()
        return len(matrix), _packed(rows, columns, matrix[rows, columns])
    if hasattr(matrix, "tolist"):
        matrix = matrix.tolist()
    if not isinstance(matrix, (list, tuple)):
        raise Error("a single number is no topology; a matrix has a row for each node")
    lines = [row.tolist() if hasattr(row, "tolist") else row for row in matrix]
    if not all(isinstance(row, (list, tuple)) for row in lines):
        raise Error("a list of numbers is no topology; a matrix has a row for each node")
    widths = {len(row) for row in lines}
    if len(widths) > 1:
        raise Error(f"rows of {min(widths)} and of {max(widths)} numbers are no matrix")
    _check_square((len(lines), *widths))
    found = []
    for i, row in enumerate(lines):
        for j, value in enumerate(row):
            number = _number(i, j, value)
            if number != 0:
                found.append((i, j, number))
    return len(lines), _array(_Entry, found)


def _packed(rows: Any, columns: Any, values: Any) -> Any:
    """Arrays of numpy as entries."""
    import numpy

    if values.dtype.kind not in "biuf":
        raise Error(f"a matrix of {values.dtype} has no real numbers")
    table = numpy.empty(len(rows), [("row", "u4"), ("column", "u4"), ("value", "f8")])
    table["row"], table["column"], table["value"] = rows, columns, values
    kind: Any = _Entry * len(table)
    return kind.from_buffer(table) if len(table) > 0 else kind()


def _array(row: Any, rows: list[tuple[int, int, float]]) -> Any:
    return (row * len(rows))(*rows)


def _number(i: int, j: int, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise Error(f"entry [{i}][{j}] is {value!r}, which is no real number") from None


def _check_square(shape: tuple[int, ...]) -> None:
    if len(shape) == 2 and shape[0] == shape[1] and shape[0] > 0:
        return
    edges = (
        '; edges stand in a dict, {"nodes": 8, "edges": array}'
        if len(shape) == 2 and shape[1] in (2, 3)
        else ""
    )
    shown = " x ".join(map(str, shape)) + " numbers are" if shape else "a single number is"
    raise Error(f"{shown} no square matrix with a row for each node{edges}")


# ---- experiments ----


def with_plain_topology(experiment: dict[Any, Any]) -> dict[Any, Any]:
    """The experiment; a graph or a matrix as its topology becomes what JSON can say."""
    topology = experiment.get("topology")
    if not (is_graph(topology) or is_matrix(topology)):
        return experiment
    return {**experiment, "topology": json.loads(description(topology))}
