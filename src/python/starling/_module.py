"""A torch module as one vector of float32.

The vector is on the experiment's device. float32 parameters there are moved into the vector: they
become views of it, so that a session reads and mixes them where they are. Others keep their memory,
and are copied. bfloat16 and float16 ones have a float32 master beside the vector: the vector gets
their rounding y_i, and what comes back moves the master by sum_j W_ij (y_j - y_i). Mixed terms
smaller than a rounding step add up there, and are not lost.

Frozen parameters and buffers are not mixed, but stand beside the vector: average() takes their
mean, for evaluation, and same_start gives rank 0's to all.
"""

import ctypes

import torch

from starling._library import Error
from starling._memory import memory_of, stream_of_torch

DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("cpu", "cuda")
SHARDED = ("FullyShardedDataParallel", "FSDPModule")


def unwrapped(module):
    """The module inside of DistributedDataParallel; refuses what shards parameters."""
    for part in module.modules():
        for kind in type(part).__mro__:
            if kind.__name__ in SHARDED and kind.__module__.startswith("torch."):
                raise Error(
                    f"the model has {kind.__name__}, under which no process holds whole "
                    "parameters: not supported; use DistributedDataParallel and group="
                )
    if isinstance(module, torch.nn.parallel.DistributedDataParallel):
        return module.module
    return module


def stays(parameter, vector):
    """Does it keep its memory, apart from the vector?"""
    return parameter.device != vector.device or parameter.dtype != torch.float32


def _on_cpu(tensor):
    return tensor.detach().to("cpu", torch.float32)


def _place(tensor):
    return tensor.device, tensor.data_ptr()


class _Parameter:
    """One parameter and its place in the vector."""

    def __init__(self, name, parameter, place):
        self.name, self.parameter, self.place = name, parameter, place
        self.is_rounded = parameter.dtype != torch.float32
        self.stays = stays(parameter, place)
        place.copy_(parameter.detach())
        if self.is_rounded:
            self.master = place.clone()
        if not self.stays:
            parameter.data = place
        self.memory = _place(parameter)

    def _rounded(self):
        return self.parameter.detach().to(self.master.device, torch.float32)

    def _take_step(self):
        """Moves the master as the user's step has moved the parameter."""
        given = self.master.to(self.parameter.dtype).float()
        self.master += self._rounded() - given
        self.parameter.copy_(self.master)

    def publish(self, overlap):
        if self.is_rounded:
            self._take_step()
        self.place.copy_(self.master if self.is_rounded and not overlap else self.parameter)

    def absorb(self, overlap):
        if self.is_rounded and overlap:
            self.place += self.master - self._rounded()
        if self.is_rounded:
            self.master.copy_(self.place)
        self.parameter.copy_(self.place)


class Module:
    """See _vectors.py. overlap: a session that mixes by begin and end."""

    is_module = True
    overlap = False

    def __init__(self, module, device="cpu"):
        self.module = unwrapped(module)
        self.is_distributed = self.module is not module
        everything = list(self.module.named_parameters())
        self.frozen = [(n, p) for n, p in everything if not p.requires_grad]
        named = self._check([(n, p) for n, p in everything if p.requires_grad])
        beside = [p.detach() for _, p in self.frozen] + list(self.module.buffers())
        self._beside = [t for t in beside if t.dtype.is_floating_point and t.numel() > 0]
        self.beside = sum(tensor.numel() for tensor in self._beside)
        self.tensors = [(name, tuple(p.shape)) for name, p in named]
        self.count = sum(p.numel() for _, p in named)
        self._vector = self._open_vector(device)
        self._address = self._vector.data_ptr()  # torch's changes with share_memory()
        self._parameters, at = [], 0
        with torch.no_grad():
            for name, p in named:
                place = self._vector[at : at + p.numel()].view(p.shape)
                self._parameters.append(_Parameter(name, p, place))
                at += p.numel()
        self._staying = [p for p in self._parameters if p.stays]
        self._versions = None

    def _open_vector(self, device):
        if device != "cpu":
            return torch.zeros(self.count, dtype=torch.float32, device=device)
        # Not torch's own memory: share_memory() would free what an exchange reads.
        self._memory = (ctypes.c_float * self.count)()
        return torch.frombuffer(self._memory, dtype=torch.float32)

    @staticmethod
    def _check(named):
        if not named:
            raise Error("the model has no parameter that requires a gradient")
        ranges = []
        for name, p in named:
            if torch.nn.parameter.is_lazy(p):
                raise Error(f"{name} has no shape yet: let the model see one batch before join()")
        named = [(name, p) for name, p in named if p.numel() > 0]
        for name, p in named:
            begin = memory_of(p, name, DTYPES, DEVICES).address
            ranges.append((str(p.device), begin, begin + p.numel() * p.element_size(), name))
        ranges.sort()
        for (device, _, end, name), (next_device, begin, _, other) in zip(ranges, ranges[1:]):
            if device == next_device and begin < end:
                raise Error(
                    f"{other} and {name} share memory, but are two parameters: tie them by giving "
                    "both modules the same one"
                )
        return named

    def floats(self):
        return ctypes.cast(self._address, ctypes.POINTER(ctypes.c_float))

    def stream(self):
        on_host = self._vector.device.type == "cpu"
        return None if on_host else stream_of_torch(self._vector.device)

    def publish(self):
        self._check_places()
        with torch.no_grad():
            for p in self._staying:
                p.publish(self.overlap)
        self.watch()

    def show(self):
        self._check_places()
        with torch.no_grad():
            for p in self._staying:
                p.place.copy_(p.parameter)

    def watch(self):
        self._versions = [p.parameter._version for p in self._parameters]

    def absorb(self):
        self._check_places()
        self._check_unchanged()
        self._versions = None
        with torch.no_grad():
            for p in self._staying:
                p.absorb(self.overlap)

    def _check_places(self):
        for p in self._parameters:
            if _place(p.parameter) != p.memory:
                raise Error(
                    f"{p.name} has moved to other memory since join(), as by model.half(), "
                    "share_memory() or p.data = ...: join again"
                )
        for name, p in self.frozen:
            if p.requires_grad:
                raise Error(f"{name} was frozen at join() and no longer is: join again")

    def _check_unchanged(self):
        for p, version in zip(self._parameters, self._versions or ()):
            if p.parameter._version != version:
                raise Error(
                    f"{p.name} was changed while an exchange read it: before you change parameters "
                    "by other means than the optimizer, call peer.end(); for layers that change "
                    "them, as Embedding(max_norm=...), choose d-psgd's variant adapt-then-combine"
                )

    def keep(self, buffer):
        return torch.frombuffer(buffer, dtype=torch.uint8)

    def masters(self):
        return {p.name: p.master.clone() for p in self._parameters if p.is_rounded}

    def restore(self, masters):
        rounded = {p.name: p for p in self._parameters if p.is_rounded}
        if set(masters) != set(rounded):
            raise Error(
                f"the state has masters of {sorted(masters)}; this module has half precision "
                f"parameters {sorted(rounded)}"
            )
        with torch.no_grad():
            for name, master in masters.items():
                rounded[name].master.copy_(master)

    def parameters(self):
        return [p.parameter for p in self._parameters] + [p for _, p in self.frozen]

    def beside_floats(self):
        """A pointer to a copy of what stands beside the vector; it is kept until the next one."""
        parts = [_on_cpu(tensor).reshape(-1) for tensor in self._beside]
        self._copy = torch.cat(parts)
        return ctypes.cast(self._copy.data_ptr(), ctypes.POINTER(ctypes.c_float))

    def _means(self, values):
        """(tensor, its part of values) of what stands beside the vector."""
        means = torch.frombuffer(values, dtype=torch.float32)[self.count :]
        parts = means.split([tensor.numel() for tensor in self._beside])
        return [(t, part.reshape(t.shape)) for t, part in zip(self._beside, parts)]

    def set_beside(self, values):
        with torch.no_grad():
            for tensor, mean in self._means(values):
                tensor.copy_(mean)

    def result(self, values):
        """A state_dict."""
        flat = torch.frombuffer(values, dtype=torch.float32)
        means, at = {}, 0
        for p in self._parameters:
            part = flat[at : at + p.place.numel()]
            means[p.memory] = part.reshape(p.place.shape)
            at += p.place.numel()
        if self.beside:
            means.update((_place(tensor), part) for tensor, part in self._means(values))
        found = {}
        for name, value in self.module.state_dict().items():
            if isinstance(value, torch.Tensor):
                mean = means.get(_place(value), value)
                value = mean.to(value.device, value.dtype, copy=True)
            found[name] = value
        return found
