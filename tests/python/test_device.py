#!/usr/bin/env python3
"""Peers that mix an array on a GPU: the emulated device, and an array that says where it is by
__cuda_array_interface__, as CuPy's and torch's do; the host's bits."""
import ctypes
import os
import sys

os.environ["STARLING_PLUGIN"] = os.path.join(
    os.path.dirname(os.path.abspath(sys.argv[1])), "../gpu/libstarling-emulated.so"
)
os.environ.setdefault("STARLING_GUARD", "1")  # what the host reads or writes there ends the program

import _package  # noqa: E402,F401
import numpy  # noqa: E402

import starling  # noqa: E402
from _package import refused  # noqa: E402
from _scene import check, run_tests  # noqa: E402
from starling._library import call, library  # noqa: E402

D, N, ROUNDS = 1000, 4, 5
TOPOLOGY = {"nodes": N, "family": "ring"}
GPU = {"topology": TOPOLOGY, "device": "cuda:0"}
X0 = numpy.random.default_rng(3).standard_normal((N, D)).astype("f4")
_pointer, _size = ctypes.c_void_p, ctypes.c_size_t
_copy = ctypes.CFUNCTYPE(None, _pointer, _pointer, _size)


class Guest(ctypes.Structure):
    """sl_guest_ops"""

    _fields_ = [
        *((name, _pointer) for name in ("owns", "is_captured", "record", "follow")),
        ("enter", ctypes.CFUNCTYPE(None, _pointer)),
        ("leave", ctypes.CFUNCTYPE(None)),
    ]


class Operations(ctypes.Structure):
    """sl_vec_ops, but for its end."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("on_host", ctypes.c_bool),
        ("block", _size),
        ("cuda_index", ctypes.c_int),
        ("allocate", ctypes.CFUNCTYPE(_pointer, _size)),
        ("release", ctypes.CFUNCTYPE(None, _pointer)),
        ("memory", _pointer),
        ("allocate_host", _pointer),
        ("release_host", _pointer),
        ("copy_in", _copy),
        ("copy_out", _copy),
        *((name, _pointer) for name in ("copy_in_later", "copy", "combine", "sgd_step")),
        *((name, _pointer) for name in ("adam_direction", "fill", "keep_where", "norm2_squared")),
        *((name, _pointer) for name in ("distance_squared", "fence", "async")),
        ("guest", ctypes.POINTER(Guest)),
    ]


def operations():
    found = ctypes.POINTER(Operations)()
    call(library.sl_device_open, ctypes.byref(found), b"cuda:0", _size(0))
    return found.contents


class Array:
    """Numbers on the device, as CuPy would have them."""

    asked = 0
    stream = 1  # cudaStreamLegacy

    def __init__(self, numbers):
        self._vec, self.shape = operations(), numbers.shape
        self._at = self._vec.allocate(numbers.size)
        self.set(numbers)

    def set(self, numbers):
        numbers = numpy.ascontiguousarray(numbers, "f4")
        self._vec.copy_in(self._at, numbers.ctypes.data, numbers.nbytes)
        self._vec.copy_out(numbers.ctypes.data, self._at, numbers.nbytes)  # waits

    def get(self):
        numbers = numpy.empty(self.shape, "f4")
        guest = self._vec.guest.contents
        guest.enter(self.stream)
        self._vec.copy_out(numbers.ctypes.data, self._at, numbers.nbytes)
        guest.leave()
        return numbers

    @property
    def __cuda_array_interface__(self):
        Array.asked += 1
        return {
            "shape": self.shape,
            "typestr": "<f4",
            "data": (self._at, False),
            "strides": None,
            "version": 3,
            "stream": self.stream,
        }


def on_host(rank, how):
    x = X0[rank].copy()
    peer = starling.join({"topology": TOPOLOGY}, x)
    for _ in range(ROUNDS):
        if how == "exchange":
            with peer.exchange():
                g = x - rank
            x -= numpy.float32(0.1) * g
        else:
            x -= numpy.float32(0.1) * (x - rank)
            peer.mix()
    average = peer.average()
    peer.leave()
    return x, average


class Pieces(list):
    """The same in a list."""

    def __init__(self, numbers):
        cut = D // 3
        super().__init__([Array(numbers[:cut].reshape(3, -1)), Array(numbers[cut:])])

    def get(self):
        return numpy.concatenate([piece.get().ravel() for piece in self])

    def set(self, numbers):
        for piece, part in zip(self, (numbers[: D // 3], numbers[D // 3 :])):
            piece.set(part)


def on_gpu(rank, how, form):
    x = form(X0[rank])
    peer = starling.join(GPU, x)
    for _ in range(ROUNDS):
        if how == "exchange":
            with peer.exchange():
                g = x.get() - rank
            x.set(x.get() - numpy.float32(0.1) * g)
        else:
            now = x.get()
            x.set(now - numpy.float32(0.1) * (now - rank))
            peer.mix()
    average = peer.average()
    peer.leave()
    return x.get(), numpy.concatenate([part.ravel() for part in average])


def test_an_array_on_a_gpu_has_the_bits_of_the_host(scene):
    for how, form in (("mix", Array), ("exchange", Array), ("mix", Pieces), ("exchange", Pieces)):
        host = starling.simulate(N, lambda rank: on_host(rank, how), {"topology": TOPOLOGY})
        before = Array.asked
        gpu = starling.simulate(N, lambda rank: on_gpu(rank, how, form), GPU)
        off = abs(numpy.subtract(host, gpu)).max()
        check(numpy.array_equal(host, gpu), f"{how}, {form.__name__}: off by {off}")
        check(Array.asked - before > N * ROUNDS, "the stream is asked for before each call")


def test_a_list_on_a_gpu_is_saved_and_goes_on(scene):
    """Before and between begin and end."""
    states, numbers = {}, {}

    def train(rank, again):
        x = Pieces(numbers[rank] if again else X0[rank])
        peer = starling.join(GPU, x, start=not again)
        if again:
            peer.load_state_dict(states[rank])
        else:
            peer.mix()
            peer.begin()
            states[rank], numbers[rank] = peer.state_dict(), x.get()
        peer.end()
        peer.mix()
        peer.leave()
        return x.get()

    first = starling.simulate(N, lambda rank: train(rank, False), GPU)
    again = starling.simulate(N, lambda rank: train(rank, True), GPU)
    check(numpy.array_equal(first, again), "it goes on otherwise")


def alone(x, **keys):
    starling.join({"topology": {"nodes": 1, "family": "complete"}, **keys}, x, rank=0)


def test_a_gpu_is_where_x_is(scene):
    x = Array(X0[0])
    alone(x, device="cuda")
    x.device = type("Device", (), {"id": 3})  # as CuPy's arrays say it
    refused(lambda: alone(x, device="cuda"), "cuda:3", "the only GPU here is cuda:0")


def test_what_is_elsewhere_is_refused(scene):
    words = ("x is on cuda", "must be on cpu", '"device": "cuda:0"')
    refused(lambda: alone(Array(X0[0])), *words)
    refused(lambda: alone(X0[0].copy(), device="cuda:0"), "start: x is memory of the host")
    there = [Array(X0[0][:7]), X0[0].copy()]
    refused(lambda: alone(there, device="cuda:0"), "place: tensor 1 of 2 is memory of the host")
    there[1] = Array(X0[0])
    there[1].stream = 2
    refused(lambda: alone(there, device="cuda:0"), "x is a list whose tensors have 2 CUDA streams")
    refused(lambda: alone([Array(X0[0])]), "tensor 0 is on cuda", '"device": "cuda:0"')
    refused(lambda: alone(Array(X0[0]), device="auto"), 'device: "auto" is not allowed')


if __name__ == "__main__":
    run_tests()
