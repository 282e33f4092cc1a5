"""What a peer's numbers are to the user: one array, a list of arrays, or (in _module.py) a torch
module. A session sees each as one vector of float32.

    tensors     [(name, shape)] in the order of the vector
    count       numbers
    floats()    a pointer to the vector
    stream()    on a GPU: the CUDA stream on which the vector is written and read now; else None
    publish()   before a call: brings the user's numbers into the vector
    absorb()    after it: brings the vector to the user
    parameters()  what an optimizer of torch may have
    show()      the user's numbers as they are, for a look between two calls
    keep(b)     b, a ctypes array of bytes, as what belongs to such numbers
    masters()   what the numbers do not say of themselves: {name: tensor}; restore() takes it
    watch()     from here on absorb() refuses numbers that have changed
    beside      numbers that are averaged and not mixed
    overlap     does the session mix by begin and end?
    result(v)   v (count), a ctypes array of float32, in the form of what was joined
    session     the peer's, which sets it
"""

import ctypes

from starling._library import Error
from starling._memory import is_torch, memory_of


def _like(x, shape, floats):
    """A copy of floats, a ctypes array, as what x is; a numpy array for other arrays on a GPU."""
    if is_torch(x):
        import torch

        host = torch.frombuffer(floats, dtype=torch.float32)
        return host.reshape(shape).to(x.device, copy=True)
    try:
        import numpy
    except ImportError:
        return memoryview(bytearray(floats)).cast("f", shape)
    return numpy.frombuffer(floats, "f4").copy().reshape(shape)


def _bytes_like(x, buffer):
    if is_torch(x):
        import torch

        return torch.frombuffer(buffer, dtype=torch.uint8)
    try:
        import numpy
    except ImportError:
        return bytes(buffer)
    return numpy.frombuffer(buffer, "u1")


class _Plain:
    """What arrays have in common."""

    is_module = is_distributed = overlap = False
    beside = 0
    session = None

    def masters(self):
        return {}

    def restore(self, masters):
        if masters:
            raise Error(
                f"the state has masters of {', '.join(masters)}; it was saved with a module"
            )

    def watch(self):
        pass


class Array(_Plain):
    """One array: its own memory is the vector."""

    def __init__(self, x, devices):
        self._x, self._memory = x, memory_of(x, devices=devices)
        self.stream = self._memory.stream
        self.count, self.tensors = self._memory.count, [("", self._memory.shape)]

    def floats(self):
        return self._memory.floats()

    def parameters(self):
        return [self._x] if is_torch(self._x) else []

    def publish(self):
        pass

    def absorb(self):
        pass

    def show(self):
        pass

    def keep(self, buffer):
        return _bytes_like(self._x, buffer)

    def result(self, values):
        return _like(self._x, self._memory.shape, values)


class Arrays(_Plain):
    """A list of arrays on the host: the vector is a copy of them."""

    devices = ("cpu",)

    def __init__(self, xs):
        self._xs = list(xs)
        self._memories = [
            memory_of(x, f"tensor {i}", devices=self.devices) for i, x in enumerate(self._xs)
        ]
        self.tensors = [("", memory.shape) for memory in self._memories]
        self.count = sum(memory.count for memory in self._memories)
        for i, memory in enumerate(self._memories):
            if memory.count == 0:
                raise Error(f"tensor {i} is empty: leave it out")
        self._open()

    def _open(self):
        self._vector = (ctypes.c_float * self.count)()

    def floats(self):
        return ctypes.cast(self._vector, ctypes.POINTER(ctypes.c_float))

    def stream(self):
        return None

    def parameters(self):
        return [x for x in self._xs if is_torch(x)]

    def _ranges(self):
        address = ctypes.addressof(self._vector)
        for memory in self._memories:
            yield memory, address
            address += 4 * memory.count

    def publish(self):
        for memory, address in self._ranges():
            ctypes.memmove(address, memory.address, 4 * memory.count)

    def absorb(self):
        for memory, address in self._ranges():
            ctypes.memmove(memory.address, address, 4 * memory.count)

    def show(self):
        self.publish()

    def keep(self, buffer):
        return _bytes_like(self._xs[0], buffer)

    def result(self, values):
        found, at = [], 0
        for x, memory in zip(self._xs, self._memories):
            part = (ctypes.c_float * memory.count).from_buffer(values, at)
            found.append(_like(x, memory.shape, part))
            at += 4 * memory.count
        return found


class DeviceArrays(Arrays):
    """A list of arrays on a GPU: the session copies them, on their stream."""

    devices = ("cuda",)

    def _open(self):
        self._places = (ctypes.c_void_p * len(self._memories))(
            *(memory.address for memory in self._memories)
        )

    def stream(self):
        streams = {memory.stream() for memory in self._memories} - {None}
        if len(streams) > 1:
            raise Error(f"x is a list whose tensors have {len(streams)} CUDA streams; it takes one")
        return streams.pop() if streams else 0  # the host's: gather() refuses them

    def publish(self):
        self.session.stream(self.stream())
        self._vector = self.session.gather(self._places)

    def floats(self):
        return self._vector

    def absorb(self):
        self.session.scatter(self._places)


def vector_of(x, device="cpu"):
    """x's vector, on the experiment's device."""
    if hasattr(x, "named_parameters") and hasattr(x, "state_dict"):
        try:
            from starling._module import Module
        except ImportError:
            raise Error(
                f"x is a {type(x).__name__} with parameters, and torch, which Starling reads them "
                "with, is absent"
            ) from None
        return Module(x, device)
    on_gpu = device != "cpu"
    if isinstance(x, (list, tuple)):
        vector = DeviceArrays(x) if on_gpu else Arrays(x)
    else:
        vector = Array(x, ("cuda",) if on_gpu else ("cpu",))
    if vector.count == 0:
        raise Error("x is empty: there is nothing to mix")
    return vector
