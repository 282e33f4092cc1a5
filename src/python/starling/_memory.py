"""Where numbers lie: numpy arrays, torch tensors, the buffer protocol, DLPack on the CPU; on a GPU
torch tensors and what has __cuda_array_interface__, such as CuPy's arrays.

Each becomes a Memory: address, shape and dtype of contiguous numbers, and what keeps them there.
"""

import ctypes
import sys

from starling._library import Error, naming

FORMATS = {"f": "float32", "<f": "float32", "d": "float64", "e": "float16"}
CPU = 1  # kDLCPU
FLOAT, BFLOAT = 2, 4  # kDLFloat, kDLBfloat


class Memory:
    """stream: called before each use, says on which CUDA stream the numbers are written and read;
    on the host None."""

    def __init__(self, address, shape, dtype, owner, stream=None):
        self.address, self.shape, self.dtype, self.owner = address, tuple(shape), dtype, owner
        self.stream = stream or (lambda: None)
        self.count = 1
        for side in self.shape:
            self.count *= side

    def floats(self):
        return ctypes.cast(self.address, ctypes.POINTER(ctypes.c_float))


class _Tensor(ctypes.Structure):
    """The head of DLManagedTensor, dlpack.h"""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def is_torch(x):
    """Is it a tensor of torch, which is not imported for the question?"""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _scattered(name):
    return Error(f"{name} is not contiguous: give x.contiguous(), numpy.ascontiguousarray(x)")


def _elsewhere(name, device, devices=("cpu",)):
    hint = ""
    if str(device).startswith("cuda") and "cuda" not in devices:
        hint = '; numbers stay on a GPU where the experiment has "device": "cuda:0", or another one'
    return Error(f"{name} is on {device}; here it must be on {' or '.join(devices)}{hint}")


def stream_of_torch(device):
    """Torch's current stream, as a number."""
    return sys.modules["torch"].cuda.current_stream(device).cuda_stream


def check_torch(x, name, dtypes, devices):
    """Refuses a tensor that is no dense one of these dtypes on these kinds of devices."""
    if type(x).__name__ == "DTensor":
        raise Error(f"{name} is a DTensor, of which each process holds a shard: not supported")
    if x.device.type not in devices:
        raise _elsewhere(name, x.device, devices)
    if x.layout is not sys.modules["torch"].strided:
        raise Error(f"{name} is of layout {x.layout}: give a dense tensor")
    _check_dtype(str(x.dtype).replace("torch.", ""), name, dtypes)


def _check_dtype(dtype, name, dtypes):
    if dtype not in dtypes:
        raise Error(
            f"{name} has dtype {dtype}; Starling takes {', '.join(dtypes)}: convert what you "
            "train once, before join()"
        )


def _of_torch(x, name, dtypes, devices):
    check_torch(x, name, dtypes, devices)
    if not x.is_contiguous():
        raise _scattered(name)
    stream = None if x.device.type == "cpu" else lambda: stream_of_torch(x.device)
    return Memory(x.data_ptr(), x.shape, str(x.dtype).replace("torch.", ""), x, stream)


def _of_cuda(x, name, devices):
    """What has __cuda_array_interface__, version 2 or 3."""
    found = x.__cuda_array_interface__
    if "cuda" not in devices:
        raise _elsewhere(name, "cuda", devices)
    address, read_only = found["data"]
    if read_only:
        raise Error(f"{name} is read-only: the mixed numbers are written into it")
    kind, shape, strides = found["typestr"], tuple(found["shape"]), found.get("strides")
    size, dense = int(kind[2:]), []
    for side in reversed(shape):
        dense.insert(0, size)
        size *= side
    if strides is not None and tuple(strides) != tuple(dense):
        raise _scattered(name)
    named = {"f": "float", "i": "int", "u": "uint"}.get(kind[1], kind[1])
    dtype = f"{named}{8 * int(kind[2:])}"
    return Memory(address, shape, dtype, x, lambda: x.__cuda_array_interface__.get("stream") or 0)


def _of_buffer(view, name):
    if view.readonly:
        raise Error(f"{name} is read-only: the mixed numbers are written into it")
    if not view.c_contiguous:
        raise _scattered(name)
    kind = FORMATS.get(view.format, view.format)
    if view.nbytes == 0:
        return Memory(0, view.shape, kind, view)
    held = (ctypes.c_char * view.nbytes).from_buffer(view)
    return Memory(ctypes.addressof(held), view.shape, kind, held)


def _of_dlpack(x, name):
    device = tuple(x.__dlpack_device__())
    if device[0] != CPU:
        raise _elsewhere(name, f"DLPack's device {device[0]}")
    capsule = x.__dlpack__()
    tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        step = 1
        for side, stride in zip(reversed(shape), reversed(tensor.strides[: tensor.ndim])):
            if side != 1 and stride != step:
                raise _scattered(name)
            step *= side
    kind = {FLOAT: "float", BFLOAT: "bfloat"}.get(tensor.code, f"code{tensor.code}_")
    address = (tensor.data or 0) + tensor.byte_offset
    return Memory(address, shape, f"{kind}{tensor.bits}", (capsule, x))


def _buffer_of(x):
    try:
        return memoryview(x)
    except (TypeError, ValueError, BufferError):
        return None


def bytes_of(state, name):
    """A copy of bytes that were given out as a tensor, an array, or bytes."""
    if is_torch(state) and str(state.dtype) == "torch.uint8":
        state = state.cpu().contiguous()
        return ctypes.string_at(state.data_ptr(), state.numel())
    view = None if is_torch(state) else _buffer_of(state)
    if view is None or view.itemsize != 1:
        raise Error(f"{name} is a {type(state).__name__}; it must be the bytes that were saved")
    return bytes(view)


def memory_of(x, name="x", dtypes=("float32",), devices=("cpu",)):
    """x's Memory; refuses what is not contiguous, of another dtype, or elsewhere."""
    with naming(f"{name} is a {type(x).__name__}, which cannot be read"):
        found = _memory_of(x, name, dtypes, devices)
    _check_dtype(found.dtype, name, dtypes)
    return found


def _memory_of(x, name, dtypes, devices):
    if is_torch(x):
        return _of_torch(x, name, dtypes, devices)
    if hasattr(x, "__cuda_array_interface__"):
        return _of_cuda(x, name, devices)
    if (view := _buffer_of(x)) is not None:
        return _of_buffer(view, name)
    if hasattr(x, "__dlpack__"):
        return _of_dlpack(x, name)
    raise Error(
        f"{name} is a {type(x).__name__}: give a numpy array, a torch tensor, what has the "
        "buffer protocol or DLPack, or a list of those"
    )
