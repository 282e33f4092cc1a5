"""A torch module: each call of the peer takes its parameters by name, as they are then.

The session reads float32 parameters where they are, and leaves the mixed numbers there. What is
elsewhere than the experiment's device, of another dtype or of another order of axes has a float32
copy, as have parameters that share memory. bfloat16 and float16 parameters have a float32 master:
the session gets their rounding y_i, and what comes back moves the master by sum_j W_ij (y_j - y_i).
Mixed terms smaller than a rounding step add up there, and are not lost.

borrow: float32 parameters become views of one vector, which is sent from where it is. On the host
it is a home (starling/session.h): end() changes its pages, and not its address. Those of 16
numbers each come first, then those of 4, so that views lie at 64 bytes, or 16, and libraries keep
their fast kernels; the rest comes last. A view keeps its order in memory, such as channels_last.
Peers of another order refuse each other: hello says the tensors.

Frozen parameters and buffers are not mixed, but stand beside the vector (_state.py): average()
takes their mean, for evaluation, and same_start gives rank 0's to all.
"""

import ctypes

import torch

from starling import _state
from starling._library import Error, naming
from starling._memory import check_torch, stream_of_torch
from starling._session import Home

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
    return parameter.device != device or parameter.dtype != torch.float32


def _order(p):
    """Its axes as they lie in memory, of a dense tensor; else as they are named."""
    named = list(range(p.dim()))
    axes = named if p.is_contiguous() else sorted(named, key=lambda a: -p.stride(a))
    return axes if p.permute(axes).is_contiguous() else named


def _copy_all(to, numbers):
    """In a launch for all, where torch can: it knows none of negated ones."""
    negated = any(t.is_neg() for t in [*to, *numbers])
    if hasattr(torch, "_foreach_copy_") and not negated:
        torch._foreach_copy_(to, numbers)
        return
    for target, source in zip(to, numbers):
        target.copy_(source)


def _empty_like(tensors):
    return [torch.empty_like(t) for t in tensors]


def _place(tensor):
    return tensor.device, tensor.data_ptr(), tensor.shape, tensor.dtype


class _Parameter:
    """A trained parameter between calls: its name, what the session reads and writes for it
    (memory, float32), its master. axes: as they lie in the session's vector. home: its range there,
    if there is one."""

    def __init__(self, name, parameter, device, axes, home, borrowed):
        self.name, self.shape, self.device = name, parameter.shape, device
        self._axes, self._borrowed = axes, borrowed
        self.home = None if home is None else self.shaped(home)
        self.memory = self.master = self.copy = self.parameter = None

    def shaped(self, numbers):
        """A view of its range of the vector, or of one like that."""
        back = sorted(range(len(self._axes)), key=lambda a: self._axes[a])
        return numbers.view([self.shape[a] for a in self._axes]).permute(back)

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
        """Brings the numbers of one in float32 to `memory`. alone: nothing shares its memory."""
        p, self.master = self.parameter, None
        if self._borrowed and alone and not stays(p, self.device):
            self._take_home(purpose)
        elif self.home is None and alone and not stays(p, self.device) and p.is_contiguous():
            self.memory = p.detach()
        else:
            self.find_copy().copy_(p)

    def find_copy(self):
        """Memory of its own, which the session gets."""
        if self.copy is None:
            self.copy = self.home
        if self.copy is None:
            self.copy = torch.empty(self.shape, dtype=torch.float32, device=self.device)
        self.memory = self.copy
        return self.copy

    def _take_home(self, purpose):
        p = self.parameter
        if p.data_ptr() != self.home.data_ptr() or p.stride() != self.home.stride():
            if purpose == "end":
                raise Error(
                    f"{self.name} was given other memory while the exchange read it, which "
                    "borrow=True does not allow: call peer.end() first, or join without borrow"
                )
            self.home.copy_(self.parameter)
            self.parameter.data = self.home
        self.memory = self.home


def _take_halves(parameters, purpose):
    """Brings the numbers of all in half precision to their copies. Each master is moved as the user
    has moved the parameter; a state is saved as it is. There are many of them, so that each step is
    one launch for all."""
    halves, copies = [p.parameter.detach() for p in parameters], [p.find_copy() for p in parameters]
    fresh = any(p.master is None for p in parameters)
    if fresh:
        for p in parameters:
            p.master = p.parameter.detach().to(p.device, torch.float32, copy=True)
    masters = [p.master for p in parameters]
    if not fresh and purpose != "save":
        now, before, rounded = _empty_like(masters), _empty_like(masters), _empty_like(halves)
        _copy_all(rounded, masters)
        _copy_all(before, rounded)
        _copy_all(now, halves)
        torch._foreach_sub_(now, before)
        torch._foreach_add_(masters, now)
        _copy_all(halves, masters)
    _copy_all(copies, halves if purpose in ("begin", "save") else masters)


class Module:
    """See _vectors.py. overlap: a session that mixes by begin and end. borrow, or gathered: there
    is one vector; gathered: it is a copy."""

    is_module = True
    overlap = changes = by_layers = False
    home = None

    def __init__(self, module, device="cpu", borrow=False, gathered=False):
        self.module = unwrapped(module)
        self.is_distributed = self.module is not module
        self._device, self.session = torch.device(device), None
        self.is_on_gpu = self._device.type != "cpu"
        self._stream = None  # of follow_streams()
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
        if borrow:  # sorted() keeps the order of equals
            named = sorted(named, key=lambda n: (n[1].numel() % 16 > 0) + (n[1].numel() % 4 > 0))
        if not named:
            raise Error("the model has no parameter that requires a gradient")
        axes = [_order(p) if borrow else list(range(p.dim())) for _, p in named]
        self.tensors = [(n, tuple(p.shape[a] for a in order)) for (n, p), order in zip(named, axes)]
        self.count = sum(p.numel() for _, p in named)
        self._open(named, axes, borrow, borrow or gathered)
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

    def _open(self, named, axes, borrow, whole):
        vector = self._vector = self._open_vector() if whole else None
        self._parameters, at = [], 0
        for (name, p), order in zip(named, axes):
            home = None if vector is None else vector[at : at + p.numel()]
            self._parameters.append(_Parameter(name, p, self._device, order, home, borrow))
            at += p.numel()
        self._trained = {name for name, _ in named}
        self._beside_at_join = _state.layout(self._beside())
        self._places = (ctypes.c_void_p * len(named))()

    def _open_vector(self):
        if self.is_on_gpu:
            return torch.zeros(self.count, dtype=torch.float32, device=self._device)
        # Not torch's own memory: share_memory() would free what an exchange reads.
        self.home = Home(self.count)
        return torch.frombuffer(self.home.array, dtype=torch.float32)

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
        halves = [p for p in self._parameters if p.parameter.dtype != torch.float32]
        with torch.no_grad():
            for p in self._parameters:
                if p.parameter.dtype == torch.float32:
                    with naming(p.name):
                        p.take(purpose, id(p) not in shared)
            if halves:
                _take_halves(halves, purpose)
        if self.is_on_gpu:
            self.session.stream(stream_of_torch(self._device))
        if self._vector is not None:
            address = self._parameters[0].home.data_ptr()
            return ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
        for i, p in enumerate(self._parameters):
            self._places[i] = p.memory.data_ptr()
        self.session.place(self._places)
        return None

    def in_place(self):
        """The parameters, in the order of the vector, which the session reads where they are."""
        self.take("mix")
        for p in self._parameters:
            if p.memory is p.copy:
                raise Error(
                    f"{p.name} is not float32 of its own in one piece of memory of {self._device}, "
                    "from where transport.overlap sends: leave transport.overlap out"
                )
        return [p.parameter for p in self._parameters]

    def follow_streams(self):
        """On a GPU: torch's current stream goes on behind the one of the call before, and the
        session's next calls by it. Hooks have the stream that their forward() had."""
        if not self.is_on_gpu:
            return
        stream = torch.cuda.current_stream(self._device)
        if self._stream is not None and self._stream != stream:
            stream.wait_stream(self._stream)
        self._stream = stream
        self.session.stream(stream.cuda_stream)

    def check_place(self, first, count):
        """Are these still where in_place() found them? The exchange writes there."""
        for p in self._parameters[first : first + count]:
            if p.parameter.data_ptr() != p.memory.data_ptr():
                raise Error(
                    f"{p.name} was given other memory while a round of transport.overlap was under "
                    "way: call peer.end() first"
                )

    def absorb(self):
        """Brings the copies back to the parameters."""
        copied = [p for p in self._parameters if p.memory is p.copy]
        halves = [p for p in copied if p.master is not None]
        with torch.no_grad():
            for group in (halves, [p for p in copied if p.master is None]):
                if group:
                    _copy_all([p.parameter.detach() for p in group], [p.copy for p in group])
            if halves:
                _copy_all([p.master for p in halves], [p.copy for p in halves])

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
            means[_place(p.parameter)] = p.shaped(flat[at : at + count])
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
