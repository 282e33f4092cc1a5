"""What a peer's numbers are to the user: one array, a list of arrays, or (in _module.py) a torch
module. A session sees each as one vector of float32, wherever its tensors are.

    tensors     [(name, shape)] in the order of the vector
    count       numbers
    take(call)  before a call of the session ("start", "mix", "begin", "end", "average" or "save"):
                finds the numbers as they are now. A pointer to the vector, or None where the
                session has been told the place of each tensor. On a GPU it is told the stream, too
    absorb()    after it: brings what the session has left to the user
    parameters()  what an optimizer of torch may have
    name_once(p)  the name of one of them at join(), or None
    keep(b)     b, a ctypes array of bytes, as what belongs to such numbers
    masters()   what the numbers do not say of themselves: {name: tensor}; restore() takes it
    changes     may parameters have come, gone or changed, whose exchange is to end?
    overlap     does the session mix by begin and end?
    by_layers   or tensor by tensor, as transport.overlap says?
    result(v)   v (count), a ctypes array of float32, in the form of what was joined
    session     the peer's, which sets it
    home        a Home, in which all of them are; or None
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

    is_module = is_distributed = overlap = by_layers = changes = False
    session = home = None

    def masters(self):
        return {}

    def restore(self, masters):
        if masters:
            raise Error(
                f"the state has masters of {', '.join(masters)}; it was saved with a module"
            )

    def absorb(self):
        pass

    def copy_unless(self, sizes):
        pass

    def name_once(self, parameter):
        return None


def _same_size(memory, count, name):
    if memory.count != count:
        raise Error(f"{name} has {memory.count} numbers now, where it had {count} at join()")


class Array(_Plain):
    """One array: its own memory is the vector."""

    def __init__(self, x, devices):
        self._x, self._devices = x, devices
        memory = memory_of(x, devices=devices)
        self.count, self.tensors = memory.count, [("", memory.shape)]

    def take(self, call):
        self._memory = memory_of(self._x, devices=self._devices)  # which keeps it there
        _same_size(self._memory, self.count, "x")
        stream = self._memory.stream()
        if stream is not None:
            self.session.stream(stream)
        return self._memory.floats()

    def parameters(self):
        return [self._x] if is_torch(self._x) else []

    def keep(self, buffer):
        return _bytes_like(self._x, buffer)

    def result(self, values):
        return _like(self._x, self.tensors[0][1], values)


class Arrays(_Plain):
    """A list of arrays: the session goes to each. Where join() got others, of other sizes, the
    vector is a copy."""

    def __init__(self, xs, devices):
        self._xs, self._devices, self._copy = list(xs), devices, None
        memories = self._find()
        for i, memory in enumerate(memories):
            if memory.count == 0:
                raise Error(f"tensor {i} is empty: leave it out")
        self.tensors = [("", memory.shape) for memory in memories]
        self._counts = [memory.count for memory in memories]
        self.count = sum(self._counts)

    def _find(self):
        return [memory_of(x, f"tensor {i}", devices=self._devices) for i, x in enumerate(self._xs)]

    def copy_unless(self, sizes):
        """sizes: of the tensors that join() got."""
        if self._counts == sizes:
            return
        if "cpu" not in self._devices:
            raise Error(f"x has tensors of {self._counts} numbers, where join() got {sizes}")
        self._copy = (ctypes.c_float * self.count)()

    def _ranges(self):
        address = ctypes.addressof(self._copy)
        for memory in self._memories:
            yield memory.address, address, 4 * memory.count
            address += 4 * memory.count

    def take(self, call):
        self._memories = self._find()  # which keeps them there
        for i, (memory, count) in enumerate(zip(self._memories, self._counts)):
            _same_size(memory, count, f"tensor {i}")
        streams = {memory.stream() for memory in self._memories} - {None}
        if len(streams) > 1:
            raise Error(f"x is a list whose tensors have {len(streams)} CUDA streams; it takes one")
        if streams:
            self.session.stream(streams.pop())
        if self._copy is not None:
            for own, copy, size in self._ranges():
                ctypes.memmove(copy, own, size)
            return ctypes.cast(self._copy, ctypes.POINTER(ctypes.c_float))
        self.session.place((ctypes.c_void_p * len(self._xs))(*(m.address for m in self._memories)))
        return None

    def absorb(self):
        if self._copy is not None:
            for own, copy, size in self._ranges():
                ctypes.memmove(own, copy, size)

    def parameters(self):
        return [x for x in self._xs if is_torch(x)]

    def keep(self, buffer):
        return _bytes_like(self._xs[0], buffer)

    def result(self, values):
        found, at = [], 0
        for x, (_, shape), count in zip(self._xs, self.tensors, self._counts):
            part = (ctypes.c_float * count).from_buffer(values, at)
            found.append(_like(x, shape, part))
            at += 4 * count
        return found


def vector_of(x, device="cpu", borrow=False, gathered=False):
    """x's vector, on the experiment's device. borrow, gathered: of a module, see _module.py."""
    if isinstance(x, type):
        raise Error(f"x is the class {x.__name__}: give an object of it")
    if hasattr(x, "named_parameters") and hasattr(x, "state_dict"):
        try:
            from starling._module import Module
        except ImportError:
            raise Error(
                f"x is a {type(x).__name__} with parameters, and torch, which Starling reads them "
                "with, is absent"
            ) from None
        return Module(x, device, borrow, gathered)
    devices = ("cpu",) if device == "cpu" else ("cuda",)
    is_list = isinstance(x, (list, tuple))
    if is_list and (borrow or gathered):
        raise Error("x is a list of arrays, which borrow= and group= do not take: give one array")
    vector = Arrays(x, devices) if is_list else Array(x, devices)
    if vector.count == 0:
        raise Error("x is empty: there is nothing to mix")
    return vector
