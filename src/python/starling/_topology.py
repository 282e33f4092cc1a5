"""Topologies and their spectra: W as a matrix."""

from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple

from starling._arguments import as_json, text
from starling._foreign import description, is_graph, is_matrix
from starling._library import IS_CORE, CError, Error, call, declare


class _Row(ctypes.Structure):
    """sl_row"""

    _fields_ = [
        ("count", ctypes.c_uint32),
        ("peers", ctypes.POINTER(ctypes.c_uint32)),
        ("weights", ctypes.POINTER(ctypes.c_double)),
        ("self", ctypes.c_double),
    ]


class _Spectrum(ctypes.Structure):
    """sl_spectrum"""

    _fields_ = [
        ("nodes", ctypes.c_uint32),
        ("symmetric", ctypes.c_bool),
        ("lambda_2", ctypes.c_double),
        ("lambda_n", ctypes.c_double),
        ("gap_lambda2", ctypes.c_double),
        ("gap_lambda_n", ctypes.c_double),
        ("rho", ctypes.c_double),
        ("gap", ctypes.c_double),
        ("singular_2", ctypes.c_double),
        ("multiplicity", ctypes.c_uint32),
        ("residual", ctypes.c_double),
        ("gap_error", ctypes.c_double),
        ("converged", ctypes.c_bool),
        ("method", ctypes.c_int),
        ("products", ctypes.c_uint64),
    ]


_handle = ctypes.c_void_p
_error = ctypes.POINTER(CError)
_text = ctypes.c_char_p
_parse = declare("sl_topology_parse", ctypes.c_int, ctypes.POINTER(_handle), _text, _text, _error)
_load = declare("sl_topology_load", ctypes.c_int, ctypes.POINTER(_handle), _text, _error)
_close = declare("sl_topology_close", None, ctypes.POINTER(_handle))
_nodes = declare("sl_topology_nodes", ctypes.c_uint32, _handle)
_period = declare("sl_topology_period", ctypes.c_uint32, _handle)
_in_row = declare("sl_topology_in", _Row, _handle, ctypes.c_uint64, ctypes.c_uint32)
_compute = declare(
    "sl_spectrum_compute", ctypes.c_int, ctypes.POINTER(_Spectrum), _handle, ctypes.c_void_p, _error
)


class Spectrum(NamedTuple):
    """rho: by which factor a round (period) shrinks the distance from agreement; gap: 1 - rho."""

    rho: float
    gap: float


class Topology:
    """The weights W of a topology; see docs/topology.md for what a spec says."""

    def __init__(self, spec: Any, weights: str | None = None) -> None:
        """spec: see topology()."""
        handle = _handle()
        is_foreign = is_graph(spec) or is_matrix(spec)
        if weights is not None and not is_foreign:
            raise Error('weights= is for graphs and matrices; a dict has a key "weights"')
        if is_foreign:
            spec = description(spec, weights)
        elif isinstance(spec, dict):
            spec = as_json("topology", spec)
        elif not isinstance(spec, (str, bytes, os.PathLike)):
            raise Error(
                f"topology is a {type(spec).__name__}: give a dict, its JSON, the path of a file, "
                "a graph of networkx, or a matrix"
            )
        spec = text("topology", spec)
        if spec.lstrip().startswith(b"{"):
            call(_parse, ctypes.byref(handle), spec, b"topology")
        else:
            call(_load, ctypes.byref(handle), spec)
        self._handle = handle

    def __del__(self):
        if getattr(self, "_handle", None):
            _close(ctypes.byref(self._handle))

    @property
    def nodes(self) -> int:
        """How many there are."""
        return _nodes(self._handle)

    @property
    def period(self) -> int:
        """Rounds after which W begins again."""
        return _period(self._handle)

    @property
    def matrices(self) -> list[Any]:
        """W of rounds 1 ... period, each (n, n): W[i][j] is what node i gives what j sends.

        numpy arrays, or lists of lists where numpy is absent.
        """
        return [self._matrix(round) for round in range(1, self.period + 1)]

    @property
    def matrix(self) -> Any:
        """W (n, n) of a topology that is the same in every round."""
        if self.period != 1:
            raise Error(f"this topology has {self.period} matrices by turns: ask for .matrices")
        return self._matrix(1)

    def _matrix(self, round):
        n = self.nodes
        rows = [[0.0] * n for _ in range(n)]
        for i, values in enumerate(rows):
            row = _in_row(self._handle, round, i)
            values[i] = row.self
            for k in range(row.count):
                values[row.peers[k]] = row.weights[k]
        try:
            import numpy
        except ImportError:
            return rows
        return numpy.array(rows)

    def spectrum(self) -> Spectrum:
        """(rho, gap) of W, or of the product of a schedule's matrices. SL_ENOMEM, or what the
        eigenvalues' iteration says."""
        found = _Spectrum()
        try:
            call(_compute, ctypes.byref(found), self._handle, None)
        except Error:
            if not IS_CORE:
                raise
            return _by_numpy(self)
        return Spectrum(found.rho, found.gap)


def _by_numpy(topology):
    try:
        import numpy
    except ImportError:
        raise Error(
            "eigenvalues need numpy where libstarling has no LAPACK, and numpy is absent"
        ) from None
    product = numpy.eye(topology.nodes)
    for matrix in topology.matrices:
        product = matrix @ product
    # Without the eigenvalue 1 of the left eigenvector: on the vectors that sum to 0.
    n = topology.nodes
    if n == 1:
        return Spectrum(0.0, 1.0)
    moduli = numpy.sort(numpy.abs(numpy.linalg.eigvals(product)))
    rho = float(moduli[-2])
    return Spectrum(rho, 1 - rho)


def topology(spec: Any, weights: str | None = None) -> Topology:
    """Opens a topology: a dict, its JSON, or the path of a file; a graph of networkx; or a square
    matrix: of numpy, torch or scipy, or a list of lists.

    A matrix of 0 and 1 is an adjacency matrix: [i][j] is an edge from i to j. Any other is W:
    [i][j] is what node i gives what j sends. Numbers at a graph's edges are weights, too, unless
    all of them are 1. weights names a scheme in their place, such as "metropolis". Ranks follow the
    names of nodes where these are whole numbers, else the graph's order.

    >>> starling.topology({"nodes": 4, "family": "ring"}).matrix
    >>> starling.topology(networkx.karate_club_graph(), weights="metropolis").spectrum()
    """
    return spec if isinstance(spec, Topology) and weights is None else Topology(spec, weights)


def spectrum(spec: Any) -> Spectrum:
    """(rho, gap) of W, or of the product of a schedule's matrices: rho is the factor by which a
    round (period) shrinks the distance from agreement, gap = 1 - rho."""
    return topology(spec).spectrum()
