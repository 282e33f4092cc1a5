#!/usr/bin/env python3
"""Peers of torch modules: what optimizer.step() does once it gossips, and all that surrounds an
optimizer in a training script."""
import copy
import io
import warnings

import _package  # noqa: F401
from _torch import torch

import starling
from _loops import Scaler
from _models import BLOCKING, EXPERIMENT, OVERLAPPED, STEPS, TWO
from _models import as_by_hand, backward, flat, gossiping, near, network, sgd, simulate
from _models import loop, take_steps, train
from _package import refused
from _scene import check, run_tests
from starling import _module
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

OPTIMIZERS = {
    "SGD": lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "AdamW": lambda ps: torch.optim.AdamW(ps, 0.01),
}


def test_both_forms_equal_loops_by_hand(scene):
    for make in OPTIMIZERS.values():
        as_by_hand(lambda rank: train(rank, make=make), make=make)


def test_every_algorithm_works_as_on_arrays(scene):
    top = {"compressor": {"name": "top-k", "k": 9}}
    for algorithm in (
        {"name": "choco-sgd", **top},
        {"name": "deep-squeeze", **top},
        {"name": "dcd-psgd", "compressor": {"name": "top-k", "k": 30}},
        {"name": "gradient-tracking"},
        {"name": "exact-diffusion"},
        {"name": "sgp"},
    ):
        experiment = {"topology": {**TWO, "weights": "lazy"}, "algorithm": algorithm}

        def on_arrays(rank):
            model = network()
            x = flat(model).contiguous()
            peer = starling.join(None, x, same_start=True)
            for step in range(STEPS):
                nn.utils.vector_to_parameters(x.clone(), model.parameters())
                model.zero_grad()
                backward(model, rank, step)
                x -= 0.1 * torch.cat([p.grad.reshape(-1) for p in model.parameters()])
                peer.mix(x)
            peer.leave()
            return x

        modules, arrays = simulate(train, experiment), simulate(on_arrays, experiment)
        for (model, _), x in zip(modules, arrays):
            near(flat(model), x, 2e-6)


def test_schedulers(scene):
    def work(rank, early):
        model = network()
        optimizer = sgd(model.parameters())
        make = lambda: torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)  # noqa: E731
        scheduler = make() if early else None
        peer = starling.join(None, model)
        peer.attach(optimizer)
        if not hasattr(optimizer, "register_step_pre_hook"):
            check(optimizer.step.__self__ is optimizer, optimizer.step)
        scheduler = scheduler or make()
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        constant = torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
        chained = torch.optim.lr_scheduler.ChainedScheduler([constant])
        for step in range(STEPS):
            optimizer.zero_grad()
            backward(model, rank, step)
            optimizer.step()
            scheduler.step()
            chained.step()
            plateau.step(1.0)
        check(abs(optimizer.param_groups[0]["lr"] - 0.1 / 8) < 1e-9, optimizer.param_groups)
        check(peer.round == STEPS - 1 + 1, peer.round)
        peer.leave()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for early in (True, False):
            simulate(lambda rank: work(rank, early))


def test_a_scaler_that_skips_a_step(scene):
    def work(rank):
        scaler = Scaler((0, 3) if rank == 0 else ())
        model, optimizer, peer = gossiping(rank, scaler=scaler)

        def take():
            scaler.step(optimizer)
            check(scaler.update() == "updated", "update() lost its result")

        return loop(model, optimizer, peer, rank, take=take)

    as_by_hand(work, skips={(0, 0), (0, 3)})


def accumulated(model, rank, step):
    for part in (2 * step, 2 * step + 1):
        backward(model, rank, part)


def clipped(model, rank, step):
    accumulated(model, rank, step)
    check(nn.utils.clip_grad_norm_(model.parameters(), 0.05) > 0.1, "nothing to clip")


def test_accumulation_and_clipping(scene):
    for compute in (accumulated, clipped):
        as_by_hand(lambda rank: train(rank, compute=compute), compute=compute)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x):
        return self.out(self.embed(x))


def test_tied_parameters(scene):
    def work(rank):
        torch.manual_seed(3)
        model, optimizer, peer = gossiping(rank, model=Tied())
        for step in range(3):
            optimizer.zero_grad()
            model(torch.tensor([rank, step])).sum().backward()
            optimizer.step()
        average = peer.average()
        peer.leave()
        check(model.out.weight is model.embed.weight, "untied")
        check((average["out.weight"] == average["embed.weight"]).all(), average)
        model.load_state_dict(average)
        return average["out.weight"]

    first, second = simulate(work)
    near(first, second, 0)


def test_frozen_parameters(scene):
    def work(rank):
        model = network(seed=rank)
        model[0].weight.requires_grad_(False)
        model, optimizer, peer = gossiping(rank, model=model)
        start, before = flat(model), model[0].weight.clone()
        take_steps(model, optimizer, rank, 3)
        near(model[0].weight, before, 0)
        near(peer.average()["0.weight"], before, 0)
        model[0].weight.requires_grad_(True)
        refused(lambda: optimizer.step(), "0.weight", "frozen", "peer.rejoin()")
        peer.leave()
        return start

    for start in simulate(work):
        near(start, flat(network(seed=0)), 0)  # as is the default


def test_parameter_groups(scene):
    def work(rank):
        model = network()
        groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.0}]
        optimizer = torch.optim.SGD(groups, 0.1)
        peer = starling.join(None, model)
        peer.attach(optimizer)
        before = model[2].weight.clone(), model[0].weight.clone()
        take_steps(model, optimizer, rank, 2)
        near(model[2].weight, before[0], 1e-6)
        check((model[0].weight - before[1]).abs().max() > 1e-3, "no step")
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2, 9))]})
        refused(lambda: optimizer.step(), "group 2", "(2, 9)")
        peer.leave()

    simulate(work)


def test_state_dicts(scene):
    def work(rank):
        adam = OPTIMIZERS["AdamW"]
        plain = adam(network().parameters())
        model, optimizer, peer = gossiping(rank, adam)
        keys = set(plain.state_dict())
        take_steps(model, optimizer, rank, 2)
        saved = copy.deepcopy(optimizer.state_dict())
        check(set(saved) == keys, set(saved))
        optimizer.load_state_dict(saved)
        backward(model, rank, 2)
        optimizer.step()
        check(peer.round == 3, peer.round)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        again = network(seed=1)
        again.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
        near(flat(again), flat(model), 0)
        near(flat(copy.deepcopy(model)), flat(model), 0)
        plain.load_state_dict(saved)
        # test_numbers.py loads models between exchanges, and in one.
        peer.leave()

    simulate(work)


def test_small_terms_of_half_precision_add_up(scene):
    slow = {"nodes": 2, "edges": [[0, 1, 0.01], [1, 0, 0.01]]}

    def work(rank, dtype):
        model = nn.Linear(3, 1, bias=False).to(dtype)
        with torch.no_grad():
            model.weight.fill_(1 + 4 * rank * torch.finfo(dtype).eps)
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        peer = starling.join(None, model, same_start=False)
        peer.attach(optimizer)
        for _ in range(120):
            model.weight.grad = torch.zeros_like(model.weight)
            optimizer.step()
        average = peer.average()
        peer.leave()
        check(average["weight"].dtype == dtype, average)
        return model.weight.detach().float()

    for dtype in (torch.bfloat16, torch.float16):
        for algorithm in (EXPERIMENT["algorithm"], BLOCKING["algorithm"]):
            experiment = {"topology": slow, "algorithm": algorithm}
            first, second = simulate(lambda rank: work(rank, dtype), experiment)
            apart = (first - second).abs().max() / torch.finfo(dtype).eps
            check(apart <= 1.01, f"{dtype}, {algorithm}: {apart} rounding steps apart")


def test_parameters_that_keep_their_memory(scene):
    """As on a GPU: they are copied to the vector and back."""
    before, _module.stays = _module.stays, lambda parameter, vector: True
    try:

        def work(rank):
            model, peer = train(rank)
            check(peer._vector._parameters[0].copy is not None, "not copied")
            return model, peer

        as_by_hand(work)
        test_batch_norm_buffers_are_averaged_for_evaluation_only(scene)
        test_frozen_parameters(scene)
        test_tied_parameters(scene)
        test_state_dicts(scene)
    finally:
        _module.stays = before


def convolutions(rank):
    """Whose weights have 135 and 720 numbers, and whose biases 5 and 16."""
    torch.manual_seed(rank)
    return nn.Sequential(nn.Conv2d(3, 5, 3), nn.Conv2d(5, 16, 3))


def test_views_are_aligned_and_keep_their_order(scene):
    def work(rank, orders):
        model = convolutions(rank).to(memory_format=orders[rank])
        means = [(p + q) / 2 for p, q in zip(*(convolutions(r).parameters() for r in (0, 1)))]
        strides = [p.stride() for p in model.parameters()]
        peer = starling.join(None, model, same_start=False, borrow=True)
        peer.begin()
        peer.end()
        for p, stride, mean in zip(model.parameters(), strides, means):
            near(p.detach(), mean.detach(), 1e-6)
            check(p.stride() == stride, f"{stride} became {p.stride()}")
            at = 64 if p.numel() % 16 == 0 else 4
            check(p.data_ptr() % at == 0, f"{tuple(p.shape)} lies at {p.data_ptr()}")
        average = peer.average()
        near(average["1.weight"], means[2].detach(), 1e-6)
        peer.leave()

    alike = torch.channels_last, torch.channels_last
    mixed = torch.channels_last, torch.contiguous_format
    experiment = {"topology": {**TWO, "weights": "metropolis"}, "algorithm": "d-psgd"}
    simulate(lambda rank: work(rank, alike), experiment)
    refused(lambda: simulate(lambda rank: work(rank, mixed), experiment), "1.weight")


class Counted(TorchDispatchMode):
    """Counts what torch computes, but for what _foreach_copy_ of an older torch stands for."""

    def __init__(self):
        super().__init__()
        self.count, self.pauses = 0, False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        is_work = any(word in str(function) for word in ("copy", "add", "sub"))
        self.count += is_work and not self.pauses
        return function(*args, **(kwargs or {}))

    def copy_all(self, to, numbers):
        self.count += 1
        self.pauses = True
        for target, source in zip(to, numbers):
            target.copy_(source)
        self.pauses = False


def test_half_precision_takes_few_launches(scene):
    def launches(tensors):
        model = nn.ParameterList([torch.full((3,), i).bfloat16() for i in range(tensors)])
        vector = _module.Module(model)
        vector.session = type("Session", (), {"place": lambda self, places: None})()
        vector.take("start")
        with Counted() as counted:
            torch._foreach_copy_ = counted.copy_all
            vector.take("begin")
            vector.absorb()
        return counted.count

    before = getattr(torch, "_foreach_copy_", None)
    try:
        check(launches(3) == launches(40) < 12, f"{launches(3)} or {launches(40)} launches")
    finally:
        torch._foreach_copy_ = before
        if before is None:
            del torch._foreach_copy_


def test_batch_norm_buffers_are_averaged_for_evaluation_only(scene):
    def work(rank):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
        model, optimizer, peer = gossiping(rank, model=model)
        model[1].running_mean = torch.zeros(4)  # assigned anew, as some forward() do
        take_steps(model, optimizer, rank, 3)
        own = model[1].running_mean.clone()
        average = peer.average()
        near(model[1].running_mean, own, 0)
        peer.leave()
        check(average["1.num_batches_tracked"] == 3, average)
        model.load_state_dict(average)
        return own, average["1.running_mean"]

    (a, mean), (b, other) = simulate(work)
    check((a - b).abs().max() > 1e-3, "buffers are mixed")
    near(mean, (a + b) / 2, 1e-6)
    near(mean, other, 0)


def join_alone(model, **more):
    """The Error of a join by one of two ranks, or None."""

    def work(rank):
        starling.join(None, model, **more).leave()

    return lambda: starling.simulate(1, work, {"topology": {"nodes": 1, "family": "complete"}})


def test_models_that_are_refused(scene):
    double, expanded = network().double(), nn.Linear(4, 4)
    expanded.weight.data = torch.ones(1).expand(4, 4)
    sparse = nn.Linear(4, 4)
    sparse.register_buffer("mask", torch.eye(4).to_sparse())
    frozen = network().requires_grad_(False)
    fsdp = type("FullyShardedDataParallel", (nn.Module,), {"__module__": "torch.distributed.fsdp"})
    sharded = fsdp()
    sharded.inner = network()
    for model, words in (
        (double, ("0.weight", "float64", "float32")),
        (expanded, ("weight is expanded", "clone()")),
        (sparse, ("mask", "torch.sparse_coo")),
        (frozen, ("no parameter that requires a gradient",)),
        (nn.LazyLinear(3), ("no shape yet",)),
        (sharded, ("FullyShardedDataParallel", "not supported")),
        (network().to("meta"), ("0.weight is on meta", "cpu or cuda")),
    ):
        refused(join_alone(model), *words)


def test_not_a_number_in_a_parameter(scene):
    def work(rank):
        model, optimizer, peer = gossiping(rank)
        for step in range(3):
            optimizer.zero_grad()
            backward(model, rank, step)
            if rank == 1 and step == 1:
                model[0].bias.grad[0] = float("nan")
            optimizer.step()

    error = refused(lambda: simulate(work), "nan", "0.bias")
    check((error.code, error.rank, error.round) == ("SL_EDIVERGED", 1, 3), (error, vars(error)))


if __name__ == "__main__":
    run_tests()
