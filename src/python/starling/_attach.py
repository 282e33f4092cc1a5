"""Gossip from inside optimizer.step().

With overlap (d-psgd): step() first ends the exchange that ran beside forward and backward, so that
x <- W x; then steps with the gradient, which was taken at the old x; then begins the next exchange.
Else step() steps, and then mixes.
"""

import types

from starling._library import Error


class Gossip:
    """What an optimizer's steps do for a peer."""

    def __init__(self, peer, vector):
        self._peer, self._vector, self._overlap = peer, vector, vector.overlap
        self.stepped = False

    def before(self, optimizer):
        if not self._peer.active:
            return
        check_parameters(self._vector, optimizer)
        if self._overlap and self._peer.exchanging:
            self._peer.end()
        elif self._overlap:  # the first step, or one after end(): nothing has run beside it
            self._peer.begin()
            self._peer.end()

    def after(self):
        if not self._peer.active:
            return
        self.stepped = True
        if self._overlap:
            self._peer.begin()
        else:
            self._peer.mix()

    def skip(self, optimizer):
        """A round with displacement 0, where a scaler has left out a step."""
        self.before(optimizer)
        self.after()


def check_parameters(vector, optimizer):
    """Refuses an optimizer of other parameters than join() got."""
    known = {id(p) for p in vector.parameters()}
    for g, group in enumerate(optimizer.param_groups):
        for i, p in enumerate(group["params"]):
            if id(p) not in known:
                raise Error(
                    f"parameter {i} of the optimizer's group {g}, of shape {tuple(p.shape)}, is "
                    "not one of those that join() got"
                )


def attach(peer, vector, optimizer, scaler):
    check_parameters(vector, optimizer)
    gossip = Gossip(peer, vector)
    if hasattr(optimizer, "register_step_pre_hook"):  # torch 2.0 and later
        optimizer.register_step_pre_hook(lambda *_: gossip.before(optimizer))
        optimizer.register_step_post_hook(lambda *_: gossip.after())
    else:
        _shadow(optimizer, "step", lambda step: _stepping(gossip, step))
    if scaler is not None:
        if not callable(getattr(scaler, "update", None)):
            raise Error(f"scaler is a {type(scaler).__name__}, which has no update()")
        _shadow(scaler, "update", lambda update: _updating(gossip, optimizer, update))
    return gossip


def _shadow(thing, name, around):
    """Puts around(method) before a method, on this instance only, as a bound method: schedulers
    of torch 1.13 read its __self__, and marks like _with_counter of what was there."""
    before = getattr(thing, name)
    function = around(before)
    function.__dict__.update(getattr(before, "__dict__", {}))
    setattr(thing, name, types.MethodType(function, thing))


def _stepping(gossip, step):
    def gossiping_step(optimizer, *arguments, **keywords):
        gossip.before(optimizer)
        result = step(*arguments, **keywords)
        gossip.after()
        return result

    return gossiping_step


def _updating(gossip, optimizer, update):
    def seeing_update(scaler, *arguments, **keywords):
        if not gossip.stepped:
            gossip.skip(optimizer)
        gossip.stepped = False
        return update(*arguments, **keywords)

    return seeing_update
