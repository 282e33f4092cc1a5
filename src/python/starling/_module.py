"""A torch module: each call of the peer takes its parameters by name, as they are then.

The session reads float32 parameters where they are, and leaves the mixed numbers there. What is
elsewhere than the experiment's device, of another dtype or of another order of axes has a float32
copy, as have parameters that share memory. bfloat16 and float16 parameters have a float32 master:
the session gets their rounding y_i, and what comes back moves the master by sum_j W_ij (y_j - y_i).
Mixed terms smaller than a rounding step add up there, and are not lost.

borrow: float32 parameters become views of one vector, which is sent from where it is.

Frozen parameters and buffers are not mixed, but stand beside the vector (_state.py): average()
takes their mean, for evaluation, and same_start gives rank 0's to all.
"""

import ctypes

import torch

from starling import _state
from starling._library import Error, naming
from starling._memory import check_torch, stream_of_torch

DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("cpu", "cuda")
CHANGED = (
    "all peers call peer.rejoin() after the same step, which leaves and joins again; or join with "
    "all that will ever train, and freeze after join()"
)
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


def stays(parameter, device):
    """Does the session need a copy of it?"""
    return (
        parameter.device != device
        or parameter.dtype != torch.float32
        or not parameter.is_contiguous()
    )


def _place(tensor):
    return tensor.device, tensor.data_ptr(), tensor.shape, tensor.dtype


class _Parameter:
    """A trained parameter between calls: its name, what the session reads and writes for it
    (memory, float32), its master. home: its range of the one vector, if there is one."""

    def __init__(self, name, parameter, device, home, borrowed):
        self.name, self.shape, self.device = name, parameter.shape, device
        self.home, self._borrowed = home, borrowed
        self.memory = self.master = self._copy = self.parameter = None

    def find(self, named, changes):
        """The parameter that the module has by this name now. changes: if it is gone, the one that
        was there last will do."""
        p = named.get(self.name)
        if changes and (p is None or p.shape != self.shape):
            p = self.parameter
        if p is None or p.shape != self.shape:
            what = "is gone" if p is None else f"has shape {tuple(p.shape)}"
            raise Error(
                f"{self.name}, which had shape {tuple(self.shape)} at join(), {what} now: {CHANGED}"
            )
        check_torch(p, self.name, DTYPES, DEVICES)
        self.parameter = p
        return p

    def take(self, purpose, alone):
        """Brings the parameter's numbers to `memory`. alone: nothing shares its memory."""
        p = self.parameter
        if stays(p, self.device) or not alone or (self.home is not None and not self._borrowed):
            self._take_copy(purpose)
        elif self.home is None:
            self.memory, self.master = p.detach(), None
        else:
            self._take_home(purpose)

    def _take_copy(self, purpose):
        if self._copy is None:
            self._copy = self.home
        if self._copy is None:
            self._copy = torch.empty(self.shape, dtype=torch.float32, device=self.device)
        if self.parameter.dtype == torch.float32:
            self.master = None
        else:
            self._take_step(purpose)
        rounded = self.master is None or purpose in ("begin", "save")
        self._copy.copy_(self.parameter if rounded else self.master)
        self.memory = self._copy

    def _take_step(self, purpose):
        """Moves the master as the user has moved the parameter; a state is saved as it is."""
        now = self.parameter.detach().to(self.device, torch.float32)
        if self.master is None:
            self.master = now.clone()
        elif purpose != "save":
            self.master += now - self.master.to(self.parameter.dtype).float()
            self.parameter.copy_(self.master)

    def _take_home(self, purpose):
        if self.parameter.data_ptr() != self.home.data_ptr():
            if purpose == "end":
                raise Error(
                    f"{self.name} was given other memory while the exchange read it, which "
                    "borrow=True does not allow: call peer.end() first, or join without borrow"
                )
            self.home.copy_(self.parameter)
            self.parameter.data = self.home
        self.memory, self.master = self.home, None

    def absorb(self):
        """Brings `memory` back to the parameter."""
        if self.memory is not self._copy:
            return
        if self.master is not None:
            self.master.copy_(self._copy)
        self.parameter.copy_(self._copy)


class Module:
    """See _vectors.py. overlap: a session that mixes by begin and end. borrow, or gathered: there
    is one vector; gathered: it is a copy."""

    is_module = True
    overlap = changes = False

    def __init__(self, module, device="cpu", borrow=False, gathered=False):
        self.module = unwrapped(module)
        self.is_distributed = self.module is not module
        self._device, self.session = torch.device(device), None
        with naming(f"x is a {type(module).__name__} whose parameters cannot be listed"):
            everything = list(self.module.named_parameters())
            self.names = {name for name, _ in self.module.named_buffers()}
        self._frozen = {n for n, p in everything if not p.requires_grad}
        self._once = {id(p): (n, p) for n, p in everything}
        self.names.update(n for n, _ in everything)
        named = [(n, p) for n, p in everything if p.requires_grad]
        for name, p in named:
            with naming(name):
                self._check(name, p)
        named = [(n, p) for n, p in named if p.numel() > 0]
        if not named:
            raise Error("the model has no parameter that requires a gradient")
        self.tensors = [(name, tuple(p.shape)) for name, p in named]
        self.count = sum(p.numel() for _, p in named)
        self._open(named, borrow, borrow or gathered)
        self._find()

    @staticmethod
    def _check(name, p):
        if torch.nn.parameter.is_lazy(p):
            raise Error(f"{name} has no shape yet: let the model see one batch before join()")
        check_torch(p, name, DTYPES, DEVICES)
        if any(step == 0 and side > 1 for step, side in zip(p.stride(), p.shape)):
            raise Error(
                f"{name} is expanded, so that its elements share memory and cannot be trained "
                "apart: p.data = p.data.clone() before join()"
            )

    def _open(self, named, borrow, whole):
        vector = self._vector = self._open_vector() if whole else None
        self._parameters, at = [], 0
        for name, p in named:
            home = None if vector is None else vector[at : at + p.numel()].view(p.shape)
            self._parameters.append(_Parameter(name, p, self._device, home, borrow))
            at += p.numel()
        self._trained = {name for name, _ in named}
        self._beside_at_join = _state.layout(self._beside())
        self._places = (ctypes.c_void_p * len(named))()

    def _open_vector(self):
        if self._device.type != "cpu":
            return torch.zeros(self.count, dtype=torch.float32, device=self._device)
        # Not torch's own memory: share_memory() would free what an exchange reads.
        self._memory = (ctypes.c_float * self.count)()
        return torch.frombuffer(self._memory, dtype=torch.float32)

    # ---- calls ----

    def _find(self):
        """Finds each parameter by its name, and refuses a model that trains others by now."""
        named = dict(self.module.named_parameters())
        for p in self._parameters:
            with naming(p.name):
                p.find(named, self.changes)
        if self.changes:
            return
        for name, p in named.items():
            if p.requires_grad and name not in self._trained and p.numel() > 0:
                was = "was frozen at join() and trains now" if name in self._frozen else "is new"
                raise Error(f"{name} {was}: {CHANGED}")

    def _alone(self):
        """Those that share memory with no other."""
        ranges = []
        for p in self._parameters:
            begin = p.parameter.data_ptr()
            size = sum(s * (n - 1) for s, n in zip(p.parameter.stride(), p.shape)) + 1
            end = begin + size * p.parameter.element_size()
            ranges.append((str(p.parameter.device), begin, end, p))
        ranges.sort(key=lambda r: r[:3])
        shared, last = set(), None
        for r in ranges:
            if last is not None and last[0] == r[0] and r[1] < last[2]:
                shared.update((id(last[3]), id(r[3])))
            if last is None or last[0] != r[0] or r[2] > last[2]:
                last = r
        return shared

    def take(self, purpose):
        self._find()
        shared = self._alone()
        with torch.no_grad():
            for p in self._parameters:
                with naming(p.name):
                    p.take(purpose, id(p) not in shared)
        if self._device.type != "cpu":
            self.session.stream(stream_of_torch(self._device))
        if self._vector is not None:
            address = self._parameters[0].home.data_ptr()
            return ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
        for i, p in enumerate(self._parameters):
            self._places[i] = p.memory.data_ptr()
        self.session.place(self._places)
        return None

    def absorb(self):
        with torch.no_grad():
            for p in self._parameters:
                with naming(p.name):
                    p.absorb()

    def keep(self, buffer):
        return torch.frombuffer(buffer, dtype=torch.uint8)

    def masters(self):
        return {p.name: p.master.clone() for p in self._parameters if p.master is not None}

    def restore(self, masters):
        rounded = {p.name: p for p in self._parameters if p.parameter.dtype != torch.float32}
        if set(masters) != set(rounded):
            raise Error(
                f"the state has masters of {sorted(masters)}; this module has half precision "
                f"parameters {sorted(rounded)}"
            )
        for name, master in masters.items():
            with naming(f"the state's master of {name}"):
                master = master.to(self._device, torch.float32, copy=True)
                rounded[name].master = master.reshape(rounded[name].shape)

    # ---- optimizers ----

    def parameters(self):
        return list(self.module.parameters())

    def name_once(self, parameter):
        """The name that it had at join(), if it had one."""
        return self._once.get(id(parameter), (None, None))[0]

    # ---- beside the vector ----

    def _beside(self):
        return _state.entries(self.module, self._trained)

    def share_state(self, add, is_rank_0):
        """Gives what stands beside the vector rank 0's bits."""
        _state.share(add, self._beside(), is_rank_0)

    def share_new(self, add, is_rank_0, before):
        """Gives names that `before`, a Module, did not have rank 0's bits."""
        found = _state.entries(self.module, before.names, trained=True)
        _state.share(add, found, is_rank_0)

    def mean_state(self, add):
        """[(tensor, its mean)] of what stands beside the vector."""
        found = self._beside()
        now = _state.layout(found)
        if not _state.agree(add, now.encode()):
            changes = _state.changes(self._beside_at_join, now)
            raise Error(
                "average(): buffers and frozen parameters differ between the peers in name, dtype "
                f"or shape; {changes or 'on another peer they have changed since join()'}"
            )
        return list(zip((e.tensor for e in found), _state.means(add, found)))

    def result(self, values, beside=()):
        """A state_dict. beside: of mean_state()."""
        flat = torch.frombuffer(values, dtype=torch.float32)
        means, at = {}, 0
        for p in self._parameters:
            count = p.parameter.numel()
            means[_place(p.parameter)] = flat[at : at + count].reshape(p.shape)
            at += count
        means.update((_place(tensor), mean) for tensor, mean in beside)
        found = {}
        with naming("average(): the module's state_dict()"):
            state = self.module.state_dict()
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                with naming(f"average(): {name}"):
                    mean = means.get(_place(value)) if value.numel() > 0 else None
                    value = torch.empty_like(value.detach()).copy_(value if mean is None else mean)
            found[name] = value
        return found
