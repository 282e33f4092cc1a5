"""transport.overlap for torch modules: a parameter's step in the hook that has its gradient, so
that its range leaves beside the rest of backward; and a module waits for its own parameters, so
that the next forward begins while others are on their way.

backward: hook of a parameter: the optimizer steps with this one alone; final(): it leaves
step():   what no hook has seen; the last of it leaves
forward:  before a module: await_() of its parameters

The bits are those of step() and mix(). On a GPU nothing here waits for it: what leaves does so when
the hook's stream has stepped, and a module's stream goes on when its parameters are there.
"""

import inspect
import types

import torch

from starling._attach import _chain, _is_schedulers, _shadow, check_parameters
from starling._library import Error, naming
from starling._session import log

PLAIN = (
    "transport.overlap steps each parameter as backward has its gradient; leave it out, and d-psgd "
    "hides its exchange beside forward and backward all the same"
)


def _when_accumulated(p, call):
    """Calls it whenever the parameter's gradient is there; (handle, what must live as long)."""
    if hasattr(p, "register_post_accumulate_grad_hook"):  # torch 2.1
        return p.register_post_accumulate_grad_hook(lambda _: call()), None
    with torch.enable_grad():
        node = p.expand_as(p).grad_fn.next_functions[0][0]
    return node.register_hook(lambda *_: call()), node


def _runs(numbers):
    """[(first, count)] of rising numbers."""
    found = []
    for i in numbers:
        if found and sum(found[-1]) == i:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((i, 1))
    return found


class Layers:
    """As Gossip of _attach.py."""

    def __init__(self, peer, vector, optimizer):
        self._peer, self._optimizer, self._over = peer, optimizer, False
        self._step = types.MethodType(type(optimizer).step, optimizer)
        self.rounds, self._warned, self._handles = 0, False, []
        _shadow(optimizer, "step", lambda step: _finishing(self, step))
        self.follow(vector)

    def follow(self, vector):
        """After Peer.rejoin(), too."""
        for handle, _ in self._handles:
            handle.remove()
        self._vector, self._open = vector, False
        self._parameters = vector.in_place()
        self._taken = set(range(len(self._parameters)))
        numbers = {id(p): i for i, p in enumerate(self._parameters)}
        self._handles = [
            _when_accumulated(p, lambda i=i: self._step_one(i))
            for i, p in enumerate(self._parameters)
        ]
        for module in vector.module.modules():
            own = [numbers[id(p)] for p in module.parameters(recurse=False) if id(p) in numbers]
            if own:
                runs = _runs(sorted(own))
                handle = module.register_forward_pre_hook(lambda *_, runs=runs: self._await(runs))
                self._handles.append((handle, None))

    def finish(self):
        self._over = True

    def warn_unseen(self, call):
        if self.rounds == 0 and not self._warned:
            self._warned = True
            log.warning("%s: attach() was called, and no step of its optimizer has been seen", call)

    # ---- forward ----

    def _await(self, runs):
        if self._over or self._open or not self._peer.active:
            return
        self._vector.follow_streams()  # of a shared parameter another module may have waited
        if not self._peer.exchanging:
            return
        for first, count in runs:
            if not self._taken.issuperset(range(first, first + count)):
                self._vector.check_place(first, count)
                self._vector.session.await_(first, count)
                self._taken.update(range(first, first + count))
        if len(self._taken) == len(self._parameters):
            self._peer._took_all()

    # ---- backward ----

    def _begin(self):
        check_parameters(self._vector, self._optimizer)
        count = len(self._parameters)
        self._late = set(range(count)) - self._taken if self._peer.exchanging else set()
        self._await([(0, count)])
        self._parameters = self._vector.in_place()
        groups = self._optimizer.param_groups
        self._groups = {id(p): group for group in groups for p in group["params"]}
        self._versions, self._lowest, self._open = [None] * count, count, True

    def _step_one(self, i):
        """The parameter's gradient is there."""
        if self._over or not self._peer.active:
            return
        if not self._open:
            self._begin()
        self._vector.follow_streams()
        p, name = self._parameters[i], self._vector.tensors[i][0]
        if i in self._late:
            raise Error(
                f"{name} was used, but not by its own module's forward(), which waits for it: "
                f"{PLAIN}"
            )
        if self._versions[i] is not None:
            raise Error(f"{name} got a second gradient before step(), as by accumulation: {PLAIN}")
        group, groups = self._groups.get(id(p)), self._optimizer.param_groups
        if group is not None:
            own = group["params"]
            group["params"], self._optimizer.param_groups = [p], [group]
            try:
                self._step()
            finally:
                group["params"], self._optimizer.param_groups = own, groups
        self._versions[i] = p.grad._version
        self._give()

    def _give(self):
        """All that is final, from the last one on."""
        lowest = self._lowest
        while lowest > 0 and self._versions[lowest - 1] is not None:
            lowest -= 1
        if lowest < self._lowest and lowest > 0:  # the last of it leaves with step()
            self._vector.session.final(lowest)
            self._lowest = lowest

    # ---- step() ----

    def end_step(self, step):
        """step() of what no hook has seen; the round has all then."""
        if not self._open:
            self._begin()
        self._vector.follow_streams()
        for i, p in enumerate(self._parameters):
            known = self._versions[i]
            if known is not None and p.grad is not None and p.grad._version != known:
                raise Error(
                    f"the gradient of {self._vector.tensors[i][0]} was changed between backward "
                    f"and step(), as by clipping or a scaler, after its step: {PLAIN}"
                )
        kept = [(group, group["params"]) for group in self._optimizer.param_groups]
        seen = {id(p) for p, known in zip(self._parameters, self._versions) if known is not None}
        for group, own in kept:
            group["params"] = [p for p in own if id(p) not in seen]
        try:
            step()
        finally:
            for group, own in kept:
                group["params"] = own
        self._vector.session.final(0)
        self._peer._give_out(self._vector)
        self._taken, self._open = set(), False
        self.rounds += 1

    def works(self):
        return not self._over and self._peer.active


def _finishing(layers, step):
    def last_step(optimizer, closure=None):
        if not layers.works():
            return step() if closure is None else step(closure)
        if closure is not None:
            raise Error(f"step() has a closure, which computes gradients again: {PLAIN}")
        return layers.end_step(step)

    return last_step


# ---- what it takes ----


def _needs_closure(optimizer):
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


def attach(peer, vector, optimizer, scaler):
    own = vars(optimizer).get("step")
    if scaler is not None:
        raise Error(f"attach(): a scaler changes gradients after backward: {PLAIN}")
    if len(_chain(optimizer)) > 1 or (own is not None and not _is_schedulers(own)):
        raise Error(f"attach(): {type(optimizer).__name__} has a step() around another: {PLAIN}")
    if _needs_closure(optimizer):
        raise Error(f"attach(): {type(optimizer).__name__} needs all gradients at once: {PLAIN}")
    with naming("attach()"):
        check_parameters(vector, optimizer)
        return Layers(peer, vector, optimizer)
