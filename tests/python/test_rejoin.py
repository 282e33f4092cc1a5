#!/usr/bin/env python3
"""peer.rejoin(): what trains changes in mid-run."""

import _package  # noqa: F401: finds the package
from _torch import torch

import numpy
import starling
from _models import LAZY, backward, flat, gossiping, mix_by_hand, near, network, sgd, simulate
from _package import refused
from _peers import Peers
from _scene import check, run_tests
from torch import nn

STEPS, UNFREEZES = 6, 3


def frozen_network():
    model = network()
    model[0].requires_grad_(False)
    return model


def train(rank, change):
    """A loop that calls change(model, optimizer, peer) before its step UNFREEZES."""
    model, optimizer, peer = gossiping(rank, model=frozen_network())
    for step in range(STEPS):
        if step == UNFREEZES:
            optimizer = change(model, optimizer, peer) or optimizer
        optimizer.zero_grad()
        backward(model, rank, step)
        optimizer.step()
    peer.end()
    rounds = peer.round
    check(peer.metrics()["round"] == rounds, peer.metrics())
    average = peer.average()
    peer.leave()
    return model, average, rounds


def trained(model):
    return [p for p in model.parameters() if p.requires_grad]


class Part(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.parts = nn.ParameterList(trained(model))


def by_hand():
    models = [frozen_network() for _ in range(2)]
    optimizers = [sgd(model.parameters()) for model in models]

    def mix():
        mix_by_hand([Part(model) for model in models], LAZY)

    for step in range(STEPS):
        if step == UNFREEZES:
            mix()  # rejoin() ends the exchange
            for model in models:
                model[0].requires_grad_(True)
        for rank, model in enumerate(models):
            optimizers[rank].zero_grad()
            backward(model, rank, step)
        mix()
        for optimizer in optimizers:
            optimizer.step()
    mix()
    return models


def test_a_layer_that_is_unfrozen(scene):
    def change(model, optimizer, peer):
        model[0].requires_grad_(True)
        refused(
            optimizer.step, "0.weight was frozen at join()", "peer.rejoin()", "leaves", "freeze"
        )
        peer.rejoin()

    results = simulate(lambda rank: train(rank, change))
    for (model, average, rounds), expected in zip(results, by_hand()):
        near(flat(model), flat(expected))
        check(rounds == STEPS + 2, rounds)  # one more after each beginning
        for name, mean in average.items():
            check(torch.equal(mean, results[0][1][name]), name)


def test_what_is_added_is_rank_0s(scene):
    def work(rank):
        def change(model, optimizer, peer):
            torch.manual_seed(rank)
            model.append(nn.BatchNorm1d(3))
            model.append(nn.Linear(3, 3))
            model[3].register_buffer("mean", torch.full((2,), float(rank)))
            added = sgd(model.parameters())
            peer.rejoin(optimizer=added)
            optimizer.step()  # gossips no longer
            check(not peer.exchanging, "the optimizer before still gossips")
            given.append((model[4].weight.clone(), model[3].mean.clone()))
            return added

        given = []
        return train(rank, change), given[0]

    (a, first), (b, second) = simulate(work)
    check(all(torch.equal(x, y) for x, y in zip(first, second)), (first, second))
    check("4.weight" in a[1] and torch.equal(a[1]["4.weight"], b[1]["4.weight"]), a[1])


def test_own_state_is_kept(scene):
    """Running statistics are each peer's own, and are not rank 0's afterwards."""

    def work(rank):
        model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
        model[2].requires_grad_(False)
        with starling.join(None, model) as peer:
            model[1].running_mean.fill_(rank)
            with torch.no_grad():
                model[0].bias.fill_(rank)
            model[2].requires_grad_(True)
            peer.rejoin()
            check((model[1].running_mean == rank).all() and (model[0].bias == rank).all(), rank)

    simulate(work)


def test_what_is_frozen_or_taken_away(scene):
    def change(model, optimizer, peer):
        model[0].requires_grad_(True)
        model[2].requires_grad_(False)
        peer.rejoin()

    def shrink(model, optimizer, peer):
        del model[1:]
        model[0].requires_grad_(True)
        model.append(nn.Linear(4, 3))
        made = torch.optim.Adam(model.parameters(), 0.01)
        peer.rejoin(optimizer=made)
        return made

    for how in (change, shrink):
        a, b = simulate(lambda rank: train(rank, how))
        check(all(torch.equal(x, b[1][name]) for name, x in a[1].items()), a[1])


def test_other_arrays(scene):
    def work(rank):
        x = numpy.full(3, rank, "f4")
        with starling.join(None, x) as peer:
            peer.mix()
            y = [numpy.full(4, 2 * rank, "f4"), numpy.full(2, rank, "f4")]
            peer.rejoin(y)
            peer.mix()
            check(peer.round == 2, peer.round)
            return [part.tolist() for part in peer.average()]

    check(simulate(work) == [[[1] * 4, [0.5] * 2]] * 2, "not the mean")


def test_what_is_refused(scene):
    def work(rank):
        model = frozen_network()
        with starling.join(None, model) as peer:
            model[0].weight.requires_grad_(rank == 0)
            refused(peer.rejoin, "rejoin()", "2.weight", "same ones")
            model[0].weight.requires_grad_(False)
            peer.mix()
            for p in model.parameters():
                p.requires_grad_(False)
            refused(peer.rejoin, "no parameter that requires a gradient")
            model[2].requires_grad_(True)
            peer.mix()
        refused(peer.rejoin, "rejoin()", "has left")

    simulate(work)


PROCESSES = """
import torch
from torch import nn
torch.manual_seed(RANK)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
model[0].requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
with JOIN as peer:
    peer.attach(optimizer)
    for step in range(9):
        if step in (3, 6):
            model[0].requires_grad_(step == 3)
            peer.rejoin()
        optimizer.zero_grad()
        model(torch.randn(8, 5)).square().sum().backward()
        optimizer.step()
    average = peer.average()
    print(peer.round, [x.tolist() for x in average.values()])
"""


def test_processes(scene):
    by_roster = PROCESSES.replace("JOIN", "join(model)")
    by_master = "starling.join(EXPERIMENT, model, rank=RANK, size=2, master=ROSTER[0])"
    for body in (by_roster, PROCESSES.replace("JOIN", by_master)):
        first, second = Peers(scene, body).all_well()
        check(first == second and first.startswith("1"), (first, second))


def test_peers_that_were_lost(scene):
    body = """
    import numpy
    x = numpy.full(4, RANK, "f4")
    with join(x) as peer:
        for _ in range(3):
            peer.mix()
        if RANK == 2:
            os._exit(1)
        while len(peer.members) == 3:
            peer.mix()
        try:
            peer.rejoin()
        except starling.Error as error:
            print(error)
        peer.mix()
    """
    ring = {
        "topology": {"nodes": 3, "family": "ring"},
        "transport": {"connect_timeout_s": 60, "reconnect_s": 1},
        "membership": {"grace_s": 1},
    }
    for code, out, err in Peers(scene, body, ring).wait()[:2]:
        check(code == 0 and "rejoin(): ranks 0, 1 take part" in out, (out, err))


if __name__ == "__main__":
    run_tests()
