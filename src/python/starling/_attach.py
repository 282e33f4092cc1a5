"""Gossip from inside optimizer.step().

With overlap (d-psgd): step() first ends the exchange that ran beside forward and backward, so that
x <- W x; then steps with the gradient, which was taken at the old x; then begins the next exchange.
Else step() steps, and then mixes.

A wrapper, as accelerate's and Lightning's, has no parameters of its own, and may leave steps out:
there the optimizer inside of it is the one whose steps count. One that has its own, as SAM, may
step by itself or by the one inside: the outer one of two steps counts.
"""

import types

from starling._library import Error, naming
from starling._session import log

INSIDE = ("optimizer", "_optimizer", "base_optimizer")  # where wrappers have it; then elsewhere


class Gossip:
    """What an optimizer's steps do for a peer."""

    def __init__(self, peer, vector):
        self._peer, self._vector, self._overlap = peer, vector, vector.overlap
        self._under_way = None  # whose step: a key of its own
        self.stepped = False  # since the scaler's last update
        self.rounds, self._warned, self._over = 0, False, False

    def follow(self, vector):
        """After Peer.rejoin()."""
        self._vector = vector

    def finish(self):
        """Another optimizer takes its place."""
        self._over = True

    def before(self, optimizer, key):
        if self._over or not self._peer.active or self._under_way not in (None, key):
            return
        self._under_way = None  # of a step that raised
        check_parameters(self._vector, optimizer)
        if self._overlap and self._peer.exchanging:
            self._peer.end()
        elif self._overlap:  # the first step, or one after end(): nothing has run beside it
            self._peer.begin()
            self._peer.end()
        self._under_way = key

    def after(self, key):
        if self._over or not self._peer.active or self._under_way != key:
            return
        self._under_way, self.stepped = None, True
        self.rounds += 1
        if self._overlap:
            self._peer.begin()
        else:
            self._peer.mix()

    def skip(self, optimizer):
        """A round with displacement 0, where a scaler has left out a step."""
        self._under_way = None
        self.before(optimizer, "skip")
        self.after("skip")

    def warn_unseen(self, call):
        """Once, where nothing was exchanged because nobody stepped."""
        if self.rounds == 0 and not self._warned:
            self._warned = True
            log.warning(
                "%s: attach() was called, and no step of its optimizer has been seen: this peer "
                "has exchanged nothing; attach() the optimizer whose step() trains",
                call,
            )


def check_parameters(vector, optimizer):
    """Refuses an optimizer of other parameters than join() got."""
    known = {id(p) for p in vector.parameters()}
    for g, group in enumerate(optimizer.param_groups):
        for i, p in enumerate(group["params"]):
            once = vector.name_once(p) if id(p) not in known else None
            if once is not None:
                raise Error(
                    f"{once} was replaced in the model since join(), as by load_state_dict(..., "
                    "assign=True), and the optimizer trains the one before: make the optimizer "
                    "anew, or load without assign"
                )
            if id(p) not in known:
                raise Error(
                    f"parameter {i} of the optimizer's group {g}, of shape {tuple(p.shape)}, is "
                    "not one of those that join() got; an optimizer that trains copies, as fp32 "
                    "masters, would undo what rounds mix: give it the model's own parameters"
                )


# ---- which optimizer ----


def _is_optimizer(thing):
    groups = getattr(thing, "param_groups", None)
    return isinstance(groups, (list, tuple)) and callable(getattr(thing, "step", None))


def _chain(optimizer):
    """The optimizer and those inside of it, from outside in."""
    found = [optimizer]
    while True:
        inside = [getattr(found[-1], name, None) for name in INSIDE]
        inside += getattr(found[-1], "__dict__", {}).values()
        inside = [x for x in inside if _is_optimizer(x) and all(x is not y for y in found)]
        if not inside:
            return found
        found.append(inside[0])


def _stepping_ones(optimizer):
    """Those whose steps count: the innermost one, and who has parameters of its own."""
    chain = _chain(optimizer)
    return [o for o in chain if o is chain[-1] or "param_groups" in getattr(o, "__dict__", {})]


def _scaler_of(optimizer):
    """A wrapper's own, as accelerate's has one."""
    for each in _chain(optimizer):
        scaler = getattr(each, "scaler", None)
        if callable(getattr(scaler, "update", None)):
            return scaler
    return None


def _check_optimizer(optimizer):
    if _is_optimizer(optimizer) and not isinstance(optimizer, type):
        return
    hint = "give what has param_groups and step(), as torch.optim.AdamW(model.parameters())"
    if isinstance(optimizer, (list, tuple, dict)):
        hint = "with several optimizers leave it out, and call peer.mix() after their steps"
    elif _is_optimizer(getattr(optimizer, "optimizer", None)):
        hint = "give its .optimizer"
    what = getattr(optimizer, "__name__", type(optimizer).__name__)
    raise Error(f"attach() takes one optimizer, and this is {what}: {hint}")


def _check_scaler(scaler):
    if not callable(getattr(scaler, "update", None)):
        raise Error(f"scaler is a {type(scaler).__name__}, which has no update()")


# ---- where steps are seen ----


def attach(peer, vector, optimizer, scaler):
    """The Gossip of the optimizer's steps."""
    with naming("attach()"):
        return _attach(peer, vector, optimizer, scaler)


def _attach(peer, vector, optimizer, scaler):
    _check_optimizer(optimizer)
    if scaler is None:
        scaler = _scaler_of(optimizer)
    else:
        _check_scaler(scaler)
    if vector.by_layers:
        from starling import _layers

        return _layers.attach(peer, vector, optimizer, scaler)
    ones = _stepping_ones(optimizer)
    for one in ones:
        check_parameters(vector, one)
    gossip = Gossip(peer, vector)
    for one in ones:
        _watch(gossip, one)
    if scaler is not None:
        _shadow(scaler, "update", lambda update: _updating(gossip, ones[-1], update))
    return gossip


def _watch(gossip, optimizer):
    """Torch's hooks (2.0 and later), unless step() is not torch's."""
    hooked = _hook(gossip, optimizer)
    own = vars(optimizer).get("step") if hasattr(optimizer, "__dict__") else None
    if not hooked or (own is not None and not _is_schedulers(own)):
        _shadow(optimizer, "step", lambda step: _stepping(gossip, step))


def _hook(gossip, optimizer):
    key = object()
    try:
        optimizer.register_step_pre_hook(lambda *_: gossip.before(optimizer, key))
        optimizer.register_step_post_hook(lambda *_: gossip.after(key))
    except AttributeError:  # an older torch, or Optimizer.__init__() was not called
        return False
    return True


def _is_schedulers(step):
    """A learning-rate scheduler puts a function around step(), which still calls it."""
    return hasattr(step, "_with_counter") or hasattr(step, "_wrapped_by_lr_sched")


def _shadow(thing, name, around):
    """Puts around(method) before a method, on this instance only, as a bound method: schedulers
    of torch read its __self__ or __func__, and marks like _with_counter of what was there."""
    before = getattr(thing, name)
    function = around(before)
    function.__dict__.update(getattr(before, "__dict__", {}))
    try:
        setattr(thing, name, types.MethodType(function, thing))
    except AttributeError:
        raise Error(
            f"{type(thing).__name__}.{name}() cannot be watched, as its objects take no "
            f"attributes: leave attach out, and call peer.mix() after each {name}()"
        ) from None


def _stepping(gossip, step):
    key = object()

    def gossiping_step(optimizer, *arguments, **keywords):
        gossip.before(optimizer, key)
        result = step(*arguments, **keywords)
        gossip.after(key)
        return result

    return gossiping_step


def _updating(gossip, optimizer, update):
    def seeing_update(scaler, *arguments, **keywords):
        if not gossip.stepped:
            gossip.skip(optimizer)
        gossip.stepped = False
        return update(*arguments, **keywords)

    return seeing_update
