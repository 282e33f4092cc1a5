#!/usr/bin/env python3
"""A peer takes the numbers of a module as they are at each call, wherever they are: parameters of
any layout, and replaced ones; and what stands beside them, of any dtype."""
import copy
import io
import warnings

import _package  # noqa: F401
from _torch import torch

import numpy
import starling
from _models import BLOCKING, EXPERIMENT
from _models import backward, flat, flat_of, gossiping, near, network, sgd, simulate, take_steps
from _models import train
from _package import refused
from _scene import check, run_tests
from torch import nn

RING = {"topology": {"family": "ring"}, "algorithm": "d-psgd"}


def mean_of(models):
    return torch.stack([flat(model).double() for model in models]).mean(0).float()


# ---- what stands beside the vector ----


def some_state(seed):
    g = torch.Generator().manual_seed(seed)
    wide = torch.randn(6, generator=g)
    return {
        "order": torch.randperm(9, generator=g),
        "kept": torch.rand(5, generator=g) > 0.5,
        "phase": torch.randn(4, generator=g, dtype=torch.complex64),
        "waves": torch.randn(2, 2, generator=g, dtype=torch.complex128),
        "betas": torch.rand(7, generator=g, dtype=torch.float64) + 1764201657.25,
        "bytes": torch.randint(256, (3,), generator=g, dtype=torch.uint8),
        "count": torch.tensor(2**62 + seed),
        "halved": torch.randn(3, generator=g).to(torch.float16),
        "brain": torch.randn(3, generator=g).to(torch.bfloat16),
        "window": torch.randn(1, generator=g).expand(3, 4),
        "wide": wide,
        "view": wide[2:4],
        "turned": torch.randn(3, 4, generator=g).t(),
        "none": torch.zeros(0, 3),
    }


def with_state(seed):
    model = network()
    for name, value in some_state(seed).items():
        model.register_buffer(name, value, persistent=name != "kept")
    model.register_parameter(
        "frozen", nn.Parameter(torch.full((3,), 0.1 + seed).double(), requires_grad=False)
    )
    return model


def state_of(model):
    named = {**dict(model.named_buffers()), "frozen": model.frozen}
    return {name: tensor.detach().clone() for name, tensor in named.items()}


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


def test_all_state_is_that_of_rank_0(scene):
    def work(rank):
        model = with_state(rank)
        starling.join(None, model).leave()
        return state_of(model)

    expected = state_of(with_state(0))
    for found in simulate(work, RING, 3):
        for name, value in expected.items():
            check(same(found[name], value), f"{name}: {found[name]}, not {value}")


def test_state_in_a_file_that_may_only_be_read(scene):
    path = f"{scene.folder}/numbers.npy"
    numpy.arange(2000.0, dtype="f4").tofile(path)

    def mapped(rank):
        numbers = numpy.memmap(path, "f4", "r") if rank == 1 else numpy.zeros(2000, "f4")
        return torch.from_numpy(numbers)

    def work(rank):
        model = network()
        model.register_buffer("buffer", mapped(rank))
        model.fixed = nn.Parameter(mapped(rank), requires_grad=False)
        starling.join(None, model).leave()
        check(isinstance(model.fixed, nn.Parameter) and not model.fixed.requires_grad, "kind")
        return model.buffer.abs().max().item(), model.fixed.abs().max().item()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of memory that may not be written
        check(simulate(work, RING) == [(0, 0), (0, 0)], "not rank 0's")


def test_equal_state_stays_as_it_is(scene):
    """Bits and memory: nothing is written."""

    def work(rank):
        model = with_state(5)
        before = {name: (b.data_ptr(), b._version) for name, b in model.named_buffers()}
        peer = starling.join(None, model)
        average = peer.average()
        peer.leave()
        after = {name: (b.data_ptr(), b._version) for name, b in model.named_buffers()}
        check(before == after, "a buffer was written")
        return average

    expected = state_of(with_state(5))
    for n in (2, 3, 7):
        for found in simulate(work, RING, n):
            for name in set(expected) & set(found):
                check(same(found[name], expected[name]), f"{n} peers, {name}: {found[name]}")


def test_state_that_differs_is_refused_by_all(scene):
    def work(rank, when):
        model = network()
        model.register_buffer("mask", torch.zeros(3 + (when == "join" and rank)))
        peer = starling.join(None, model)
        if when == "average" and rank == 1:
            model.mask = torch.zeros(7)
        peer.average()
        peer.leave()

    said = {"join": "this one has mask torch.float32 (3,)", "average": "on another peer"}
    for when, text in said.items():
        refused(lambda: simulate(lambda rank: work(rank, when)), "differ between the peers", text)


# ---- parameters of any layout ----


def images(turn):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Unflatten(1, (5, 1, 1)), nn.Conv2d(5, 4, 3, padding=1), nn.Flatten(), nn.Linear(4, 3)
    )
    return model.to(memory_format=torch.channels_last) if turn else model


def test_any_order_of_axes(scene):
    """The same numbers as in torch's own order; peers may differ in it."""
    for experiment in (EXPERIMENT, BLOCKING):
        plain = simulate(lambda rank: train(rank, images(False)), experiment)
        turned = simulate(lambda rank: train(rank, images(rank == 1)), experiment)
        for (a, _), (b, _) in zip(plain, turned):
            near(flat(a), flat(b), 1e-6)
        weight = turned[1][0][1].weight
        check(weight.is_contiguous(memory_format=torch.channels_last), "the format is lost")


def test_transposed_and_empty_parameters(scene):
    def work(rank):
        model = network()
        model.turned = nn.Parameter((torch.arange(6.0).reshape(2, 3) + rank).t())
        model.where = nn.Parameter(torch.empty(0))
        model.one = nn.Parameter(torch.tensor(float(rank)))
        peer = starling.join(None, model, same_start=False)
        peer.attach(sgd(model.parameters()))
        peer.mix()
        peer.leave()
        check(model.turned.stride() == (1, 3) and model.where.numel() == 0, model.turned.stride())
        return model.turned.detach(), model.one.item()

    results = simulate(work, BLOCKING)
    for turned, one in results:
        near(turned, (torch.arange(6.0).reshape(2, 3) + 0.5).t(), 0)
        check(one == 0.5, one)


def test_parameters_that_share_memory(scene):
    """As two parameters, or one as a part of another: each place is mixed once."""

    for rows in (slice(0, 4), slice(1, 3)):
        for experiment, weight in ((EXPERIMENT, 0.25), (BLOCKING, 0.5)):

            def work(rank):
                model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, rows.stop - rows.start))
                model[1].weight.data = model[0].weight.data[rows]
                with torch.no_grad():
                    for p in model.parameters():
                        p.fill_(rank)
                peer = starling.join(None, model, same_start=False)
                if experiment is EXPERIMENT:
                    with peer.exchange():
                        pass
                else:
                    peer.mix()
                peer.leave()
                return flat(model)

            first, second = simulate(work, experiment)
            near(first, torch.full_like(first, weight), 1e-6)
            near(second, torch.full_like(second, 1 - weight), 1e-6)


def test_parts_are_saved_as_without_a_peer(scene):
    def size_of(part):
        file = io.BytesIO()
        torch.save(part.state_dict(), file)
        return len(file.getvalue())

    def work(rank):
        model = nn.ModuleDict({"body": nn.Linear(1000, 100), "head": nn.Linear(10, 2)})
        before, places = size_of(model["head"]), [p.data_ptr() for p in model.parameters()]
        with starling.join(None, model) as peer:
            check(places == [p.data_ptr() for p in model.parameters()], "parameters have moved")
            peer.mix()
            check(size_of(copy.deepcopy(model["head"])) == before, "a copy has more in it")
            return before, size_of(model["head"])

    for before, after in simulate(work):
        check(before == after, (before, after))


# ---- what a script does between calls ----


def test_an_average_is_of_the_models_now(scene):
    """Trained alone; the best model loaded; in the middle of an exchange."""

    def work(rank):
        model = network()
        peer = starling.join(None, model)
        take_steps(model, sgd(model.parameters()), rank, 4)
        alone = copy.deepcopy(model), peer.average(), peer.distance
        peer.begin()
        model.load_state_dict(network(seed=10 + rank).state_dict())
        in_exchange = peer.average()
        peer.leave()
        return alone, in_exchange

    results = simulate(work)
    expected = mean_of([alone[0] for alone, _ in results])
    for (model, average, distance), _ in results:
        near(flat_of(average), expected, 1e-6)
    spread = [(flat(alone[0]) - expected).square().sum().item() for alone, _ in results]
    check(abs(results[0][0][2] - (sum(spread) / 2) ** 0.5) < 1e-4, results[0][0][2])
    loaded = mean_of([network(seed=10), network(seed=11)])
    for _, in_exchange in results:
        near(flat_of(in_exchange), loaded, 1e-6)


def test_a_parameter_that_is_replaced(scene):
    """Its new numbers are mixed; the optimizer of the one before is refused by its name."""

    def work(rank):
        model, optimizer, peer = gossiping(rank)
        backward(model, rank, 0)
        optimizer.step()
        peer.end()
        torch.manual_seed(rank)
        model[0].weight = nn.Parameter(torch.randn(4, 5))
        refused(lambda: optimizer.step(), "0.weight was replaced", "make the optimizer anew")
        average = peer.average()
        peer.leave()
        return model, average

    results = simulate(work)
    expected = (results[0][0][0].weight + results[1][0][0].weight) / 2
    for _, average in results:
        near(average["0.weight"], expected.detach(), 1e-6)


def test_parameters_that_come_and_go_are_refused_by_name(scene):
    def work(rank):
        model, optimizer, peer = gossiping(rank)
        kept = model[0].weight
        del model[0].weight
        refused(peer.mix, "0.weight, which had shape (4, 5) at join(), is gone")
        model[0].weight = nn.Parameter(torch.zeros(4, 6))
        refused(peer.mix, "0.weight", "has shape (4, 6) now")
        model[0].weight = kept
        model.extra = nn.Parameter(torch.zeros(3))
        refused(peer.mix, "extra is new", "peer.rejoin()")
        del model.extra
        peer.mix()
        peer.leave()

    simulate(work)


if __name__ == "__main__":
    run_tests()
