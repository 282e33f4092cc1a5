#!/usr/bin/env python3
"""Which steps gossip: of wrappers of optimizers, of optimizers whose step() was replaced, of those
that are none of torch's; and what attach() refuses."""
import types
import warnings

import _package  # noqa: F401: finds the package
from _torch import torch

import starling
from _loops import Scaler
from _models import BLOCKING, LAZY, OVERLAPPED, STEPS, as_by_hand, backward, batch, flat, gossiping
from _models import loop, mix_by_hand, near, network, sgd, simulate, train
from _package import refused, warnings_of
from _peers import Peers
from _scene import check, run_tests
from torch import nn

ONE = {"topology": {"nodes": 1, "family": "complete"}}


class Wrapper(torch.optim.Optimizer):
    """As accelerate's AcceleratedOptimizer: Optimizer.__init__() is not called, and steps may be
    left out while gradients accumulate."""

    accumulates = 1

    def __init__(self, inner, scaler=None):
        self.optimizer, self.scaler, self.calls = inner, scaler, 0

    param_groups = property(lambda self: self.optimizer.param_groups)

    def zero_grad(self, set_to_none=True):
        self.optimizer.zero_grad(set_to_none)

    def step(self, closure=None):
        self.calls += 1
        if self.calls % self.accumulates:
            return
        if self.scaler is None:
            self.optimizer.step(closure)
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()


class Lightning:
    """As LightningOptimizer: it takes the class of the optimizer inside, and runs forward and
    backward in the closure."""

    def __init__(self, inner):
        self._optimizer = inner
        name = "Lightning" + type(inner).__name__
        self.__class__ = type(name, (self.__class__, type(inner)), {})

    optimizer = property(lambda self: self._optimizer)

    def step(self, closure=None, **more):
        return self._optimizer.step(closure or (lambda: None), **more)

    def __getattr__(self, item):
        return getattr(self._optimizer, item)


class Lookahead(torch.optim.Optimizer):
    """Has the groups of the optimizer inside as its own, and steps beyond its step."""

    def __init__(self, inner):
        self.optimizer, self.param_groups = inner, inner.param_groups
        self.slow = [p.detach().clone() for g in self.param_groups for p in g["params"]]

    def zero_grad(self, set_to_none=True):
        self.optimizer.zero_grad(set_to_none)

    def step(self, closure=None):
        self.optimizer.step(closure)
        with torch.no_grad():
            for slow, p in zip(self.slow, [p for g in self.param_groups for p in g["params"]]):
                slow += 0.5 * (p - slow)
                p.copy_(slow)


class Sam(torch.optim.Optimizer):
    """Two halves, of which the second one is a step of the optimizer inside."""

    def __init__(self, params, **more):
        super().__init__(params, dict(lr=0.1))
        self.base_optimizer = torch.optim.SGD(self.param_groups, lr=0.1)

    def step(self, closure=None):
        self.second_step()

    def second_step(self):
        self.base_optimizer.step()


class Plain:
    """No optimizer of torch's at all."""

    def __init__(self, params):
        self.param_groups = [{"params": list(params)}]

    def zero_grad(self):
        for p in self.param_groups[0]["params"]:
            p.grad = None

    def step(self):
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                p -= 0.1 * p.grad


class Moving(torch.optim.SGD):
    """Gives parameters other memory in each step, as optimizers written by hand do."""

    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.data = p.data - 0.1 * p.grad


def replaced(params):
    """step() is another function, as apex's amp makes it."""
    optimizer = sgd(params)

    def step(self, closure=None):
        Plain.step(self)

    optimizer.step = types.MethodType(step, optimizer)
    return optimizer


def amp(params):
    """The same, around torch's."""
    optimizer = sgd(params)
    before = optimizer.step
    optimizer.step = types.MethodType(lambda self, closure=None: before(closure), optimizer)
    return optimizer


def scheduled(params):
    """A scheduler has put a function around step()."""
    optimizer = sgd(params)
    optimizer.scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
    return optimizer


def test_wrappers_equal_the_optimizer_inside(scene):
    makers = {
        "accelerate": lambda ps: Wrapper(sgd(ps)),
        "twice": lambda ps: Wrapper(Wrapper(sgd(ps))),
        "lightning": lambda ps: Lightning(sgd(ps)),
        "sam": Sam,
        "plain": Plain,
        "moving": lambda ps: Moving(ps, 0.1),
        "replaced": replaced,
        "amp": amp,
        "scheduled": scheduled,
        "wrapped and scheduled": lambda ps: Wrapper(scheduled(ps)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make in makers.values():
            as_by_hand(lambda rank: train(rank, make=make))


def test_a_wrapper_that_steps_itself_too(scene):
    make = lambda ps: Lookahead(sgd(ps))  # noqa: E731
    as_by_hand(lambda rank: train(rank, make=make), make=make)


def test_the_second_half_of_a_step_alone(scene):
    def work(rank):
        model = network()
        optimizer = Sam(model.parameters())
        peer = starling.join(None, model)
        check(peer.attach(optimizer) is optimizer, "another one")
        return loop(model, optimizer, peer, rank, take=optimizer.second_step)

    as_by_hand(work, OVERLAPPED)


def test_steps_that_a_wrapper_leaves_out(scene):
    """Accumulation: no step, no round. A scaler of its own: no step, but a round."""

    def work(rank):
        model = network()
        optimizer = Wrapper(sgd(model.parameters()), Scaler({2} if rank == 0 else ()))
        optimizer.accumulates = 2
        peer = starling.join(None, model)
        peer.attach(optimizer)
        return loop(model, optimizer, peer, rank, take=lambda: (optimizer.step(), optimizer.step()))

    as_by_hand(work, OVERLAPPED, skips={(0, 2)})


def closure_of(model, optimizer, rank, step, before=lambda: None):
    """As optimizers take it."""

    def closure():
        before()
        optimizer.zero_grad()
        inputs, labels = batch(rank, step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        return loss

    return closure


def test_closures_see_the_mixed_model(scene):
    """Lightning's runs forward and backward; LBFGS's runs often."""
    for make in (
        sgd,
        lambda ps: Lightning(sgd(ps)),
        lambda ps: torch.optim.LBFGS(ps, 0.1, max_iter=3),
    ):

        def work(rank):
            model, optimizer, peer = gossiping(rank, make)

            def ended():
                check(not peer.exchanging, "an exchange is under way")

            for step in range(STEPS):
                loss = optimizer.step(closure_of(model, optimizer, rank, step, ended))
                check(loss.item() > 0, "no loss")
            peer.end()
            check(peer.round == STEPS + 1, peer.round)
            peer.leave()
            return flat(model)

        models = [network(), network()]
        optimizers = [make(model.parameters()) for model in models]
        for step in range(STEPS):
            mix_by_hand(models, LAZY)
            for rank, (model, optimizer) in enumerate(zip(models, optimizers)):
                optimizer.step(closure_of(model, optimizer, rank, step))
        mix_by_hand(models, LAZY)
        for found, model in zip(simulate(work), models):
            near(found, flat(model))


def test_a_step_that_raises(scene):
    def work(rank):
        model, optimizer, peer = gossiping(rank)

        def closure():
            raise ValueError("no data")

        for step in range(3):
            try:
                optimizer.step(closure)
            except ValueError:
                pass
            optimizer.zero_grad()
            backward(model, rank, step)
            optimizer.step()
        peer.end()
        peer.leave()
        return flat(model)

    a, b = simulate(work)
    check((a - b).abs().max() < 0.2, "apart")


def alone(work):
    return starling.simulate(1, lambda rank: work(starling.join(None, network())), ONE)


def test_what_attach_refuses(scene):
    class Slots:
        __slots__ = ("param_groups",)

        def step(self):
            pass

    def work(peer):
        model = peer._given
        optimizer = sgd(model.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        slots = Slots()
        slots.param_groups = optimizer.param_groups
        masters = [nn.Parameter(p.detach().clone()) for p in model.parameters()]
        for given, words in (
            (None, ("one optimizer", "NoneType")),
            ([optimizer], ("list", "several optimizers", "peer.mix()")),
            (torch.optim.SGD, ("SGD", "param_groups")),
            (model, ("Sequential", "param_groups")),
            (scheduler, ("StepLR", "give its .optimizer")),
            (slots, ("Slots.step()", "leave attach out")),
            (Wrapper(sgd(masters)), ("group 0", "(4, 5)", "masters", "undo")),
        ):
            refused(lambda: peer.attach(given), *words)
        refused(lambda: peer.attach(optimizer, scaler=3), "scaler is a int", "update()")
        peer.attach(optimizer)
        refused(lambda: peer.attach(optimizer), "once")
        refused(lambda: peer.mix(torch.zeros(39)), "give no x")
        peer.leave()
        refused(lambda: peer.attach(optimizer), "")
        optimizer.step()  # as before join()

    alone(work)


def test_no_step_was_seen(scene):
    """The optimizer that trains is another one."""

    def work(peer, averages=True):
        peer.attach(sgd(peer._given.parameters()))
        other = sgd(peer._given.parameters())
        backward(peer._given, 0, 0)
        other.step()
        if averages:
            peer.average()
        peer.leave()

    for averages, call in ((True, "average()"), (False, "leave()")):
        said = warnings_of(lambda: alone(lambda peer: work(peer, averages)))
        check(len(said) == 1 and said[0].startswith(call + ":"), said)
        check("no step" in said[0] and "exchanged nothing" in said[0], said)

    def well(peer):
        optimizer = peer.attach(sgd(peer._given.parameters()))
        backward(peer._given, 0, 0)
        optimizer.step()
        peer.average()
        peer.leave()

    check(warnings_of(lambda: alone(well)) == [], "warned without a reason")


# ---- transport.overlap ----

BY_LAYERS = {**BLOCKING, "transport": {"overlap": "layers"}}
LAYERED = """
import torch
torch.set_num_threads(1)

def train(peer_of):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(9, 60), torch.nn.Tanh(), torch.nn.Linear(60, 60),
                                torch.nn.Linear(60, 3))
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    peer = peer_of(model)
    peer.attach(optimizer)
    for step in range(6):
        draw = torch.Generator().manual_seed(100 * peer.rank + step)
        optimizer.zero_grad()
        model(torch.randn(8, 9, generator=draw)).square().sum().backward()
        optimizer.step()
        schedule.step()
    peer.end()
    peer.leave()
    return [p.detach().numpy().tobytes().hex() for p in model.parameters()]
"""


def test_by_layers_has_the_bits_of_whole_rounds(scene):
    """Of gossip, of sums that hang on shards, and of a compressor that works on ranges."""
    space = {}
    exec(LAYERED, space)
    draws = {"name": "qsgd", "bucket": 64}
    for algorithm, buckets in (
        (BLOCKING["algorithm"], "auto"),
        ("all-reduce", "partitioned"),
        ({"name": "parameter-server", "compressor": draws}, "auto"),
    ):
        experiment = {
            "topology": {"family": "complete", "nodes": 2},
            "algorithm": algorithm,
            "transport": {"buckets": buckets, "partition_bytes": 4096, "chunk_bytes": 4096},
            "network": {"gradient_ms": 1, "bandwidth_mbit": 100},
        }
        whole = starling.simulate(
            2, lambda rank: space["train"](lambda m: starling.join(None, m)), experiment
        )
        experiment["transport"]["overlap"] = "partitioned"
        body = LAYERED + "print(*train(join))\n"
        found = [out.split() for out in Peers(scene, body, experiment).all_well(120)]
        check(found == whole, f"{algorithm}: other bits")


def test_what_by_layers_refuses(scene):
    def work(rank):
        model = network()
        optimizer = sgd(model.parameters())
        with starling.join(None, model) as peer:
            refused(lambda: peer.attach(optimizer, Scaler(())), "scaler", "leave it out")
            refused(lambda: peer.attach(torch.optim.LBFGS(model.parameters())), "LBFGS")
            refused(lambda: peer.attach(Wrapper(optimizer)), "step() around another")
            peer.attach(optimizer)
            backward(model, rank, 0)
            refused(lambda: backward(model, rank, 1), "second gradient", "accumulation")
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            refused(optimizer.step, "weight", "clipping")
            refused(lambda: optimizer.step(lambda: 0), "closure")
            peer.abort("done")

    try:
        simulate(work, BY_LAYERS)
    except starling.Error as error:
        check("done" in str(error), error)
    top = {"name": "all-reduce", "compressor": {"name": "top-k", "fraction": 0.1}}
    refused(lambda: simulate(train, {**BY_LAYERS, "algorithm": top}), "top-k", 'per to "tensor"')
    wide = {**BY_LAYERS, "algorithm": "choco-sgd"}
    refused(lambda: simulate(train, wide), "transport.overlap", "choco-sgd")


def test_a_parameter_that_nobody_waited_for_is_named(scene):
    """Its module's forward() did not run, so what it computed with was not mixed yet."""

    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(5, 3)

        def forward(self, inputs):
            return nn.functional.linear(inputs, self.inner.weight, self.inner.bias)

    def work(rank):
        model = Reads()
        optimizer = sgd(model.parameters())
        with starling.join(None, model) as peer:
            peer.attach(optimizer)
            backward(model, rank, 0)
            optimizer.step()
            moved = model.inner.bias.data
            model.inner.bias.data = moved.clone()
            refused(peer.end, "inner.bias", "other memory")
            model.inner.bias.data = moved
            backward(model, rank, 1)

    refused(lambda: simulate(work, BY_LAYERS), "inner.", "its own module's forward()")


if __name__ == "__main__":
    run_tests()
