#!/usr/bin/env python3
"""What scripts of torch do beside steps: closures, copies, compiled modules, files, weights that
are changed by hand, a second peer. It works as before, or is refused in one sentence."""
import copy
import io
import pickle

import _package  # noqa: F401
from _torch import torch

import starling
from _models import BLOCKING, FORMS, LAZY, OVERLAPPED, STEPS, TWO
from _models import as_by_hand, backward, by_hand, flat, flat_of, gossiping, loop, near, network
from _models import sgd, simulate, take_steps, train
from _package import refused
from _peers import EXPERIMENT as AGENTS
from _peers import Peers
from _scene import check, run_tests
from torch import nn


def test_compiled_modules(scene):
    for compiled in (torch.jit.script, lambda m: torch.jit.trace(m, torch.randn(8, 5))):
        as_by_hand(lambda rank: train(rank, compiled(network())), OVERLAPPED)


def test_copies_and_files_do_not_gossip(scene):
    def work(rank):
        model, optimizer, peer = gossiping(rank)
        backward(model, rank, 0)
        optimizer.step()
        before, round = flat(model), peer.round
        file = io.BytesIO()
        torch.save(model, file)
        torch.save(optimizer, file)
        for another in (copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))):
            model_copy, optimizer_copy = another(model), another(optimizer)
            near(flat(model_copy), before, 0)
            optimizer_copy.step()
            sgd(model_copy.parameters()).zero_grad()
            with torch.no_grad():
                model_copy[0].weight.zero_()
        near(flat(model), before, 0)
        check(peer.round == round, "a copy has gossiped")
        peer.leave()

    simulate(work)


def test_a_list_of_parameters(scene):
    def work(rank):
        model = network()
        optimizer = sgd(model.parameters())
        peer = starling.join(None, list(model.parameters()))
        peer.attach(optimizer)
        take_steps(model, optimizer, rank)
        average = peer.average()
        peer.leave()
        check([tuple(a.shape) for a in average] == [(4, 5), (4,), (3, 4), (3,)], average)
        return flat(model), torch.cat([part.reshape(-1) for part in average])

    results, expected = simulate(work), by_hand(True, LAZY)
    for (found, average), x in zip(results, expected):
        near(found, x)
        near(average, (expected[0] + expected[1]) / 2)


def test_a_second_peer_of_one_model(scene):
    model = network()
    optimizer = sgd(model.parameters())
    one = {"topology": {"nodes": 1, "family": "complete"}}

    def session(rank):
        peer = starling.join(None, model)
        peer.attach(optimizer)
        return loop(model, optimizer, peer, rank, 3)[1].round

    rounds = [starling.simulate(1, session, one)[0] for _ in range(2)]
    check(rounds == [4, 4], rounds)


def after_a_step(work):
    """Each rank: a step, whose exchange is then under way, and work(model, optimizer, peer)."""

    def train(rank):
        model, optimizer, peer = gossiping(rank)
        backward(model, rank, 0)
        optimizer.step()
        work(model, optimizer, peer)
        peer.leave()

    return lambda: simulate(train)


def test_parameters_that_move_are_found(scene):
    def vector(model):
        numbers = nn.utils.parameters_to_vector(model.parameters())
        nn.utils.vector_to_parameters(numbers.clone(), model.parameters())

    for change in (nn.Module.half, nn.Module.share_memory, vector):

        def work(model, optimizer, peer):
            change(model)
            model.float()
            optimizer.step()
            check(peer.round == 2, peer.round)

        after_a_step(work)()

    def double(model, optimizer, peer):
        model.double()
        optimizer.step()

    refused(after_a_step(double), "0.weight", "float64", "float32")


def test_weights_changed_by_hand_are_kept(scene):
    """However it is done: the change counts as a step does. Two peers that mix fully."""
    whole = {"topology": {**TWO, "weights": "uniform"}, "algorithm": "d-psgd"}

    def through_data(p):
        p.data.clamp_(-0.1, 0.1)

    def through_no_grad(p):
        with torch.no_grad():
            p.clamp_(-0.1, 0.1)

    def replaced(p):
        p.data = p.data.clone().clamp_(-0.1, 0.1)

    for change in (through_data, through_no_grad, replaced):

        def work(rank):
            model = network()
            peer = starling.join(None, model)
            before = [p.detach().clone() for p in model.parameters()]
            for p in model.parameters():
                p.data += rank  # 0 and 1: their mean is 0.5
            peer.begin()
            given = [p.detach().clone() for p in model.parameters()]
            for p in model.parameters():
                change(p)
            changed = [p.detach().clone() for p in model.parameters()]
            average = peer.average()  # which ends the exchange
            for p, x, old, new in zip(model.parameters(), before, given, changed):
                near(p.detach(), x + 0.5 + (new - old), 1e-6)
            peer.leave()
            return flat_of(average), changed

        (first, own), (second, others) = simulate(work, whole)
        near(first, second, 0)
        mean = [(a + b) / 2 for a, b in zip(own, others)]
        near(first, torch.cat([x.reshape(-1) for x in mean]), 1e-6)


def test_borrowed_weights_may_not_change(scene):
    def change(model):
        model[2].weight.data.clamp_(-0.1, 0.1)

    def train(rank, when):
        model = network()
        optimizer = sgd(model.parameters())
        peer = starling.join(None, model, borrow=True)
        peer.attach(optimizer)
        backward(model, rank, 0)
        optimizer.step()
        if when == "between":
            peer.end()
        if rank == 1 or when == "between":
            change(model)
        optimizer.step()
        peer.leave()

    simulate(lambda rank: train(rank, "between"))
    refused(
        lambda: simulate(lambda rank: train(rank, "while it is sent")),
        "2.weight [3, 4] was changed between begin and end",
        "node 1",
    )


def test_borrowed_weights_that_move_are_put_back(scene):
    """And train to the same bits as others."""

    def train(rank, borrow):
        model = network()
        optimizer = sgd(model.parameters())
        peer = starling.join(None, model, borrow=borrow)
        place = model[0].weight.data_ptr()
        peer.attach(optimizer)
        for step in range(STEPS):
            optimizer.zero_grad()
            backward(model, rank, step)
            if step == 2:
                peer.end()
                model[0].weight.data = model[0].weight.data.clone()
            optimizer.step()
        check(not borrow or model[0].weight.data_ptr() == place, "it has moved")
        peer.end()
        peer.leave()
        return flat(model)

    for with_it, without in zip(*(simulate(lambda r: train(r, b)) for b in (True, False))):
        near(with_it, without, 0)


WEIGHTS = """
import copy, io
import torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(1)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 16), nn.Linear(16, 16))
model.to(memory_format=torch.channels_last)
model[3].weight = model[2].weight
optimizer = torch.optim.AdamW(model.parameters())
peer = join(model, borrow=BORROW)
peer.attach(optimizer)
kept = model[2].weight.data
for step in range(12):
    time.sleep((7 * step + 5 * RANK) % 4 * 0.003)
    optimizer.zero_grad()
    model(torch.randn(5, 3, 4, 4) + RANK).square().mean().backward()
    optimizer.step()
    if step in (4, 8):
        peer.end()
        torch.save(model, io.BytesIO())
        state = copy.deepcopy(model).state_dict()
        model.load_state_dict({name: 0.5 * value for name, value in state.items()})
        assert not BORROW or kept.data_ptr() == model[2].weight.data_ptr()
time.sleep(0.6)  # until the agent has been looked at
copied = peer.metrics()["bytes_copied"] / sum(4 * p.numel() for p in model.parameters())
model.load_state_dict(peer.average())
rounds = peer.round
peer.leave()
print(rounds, copied, *(float(p.double().abs().sum()) for p in model.parameters()))
"""


def test_borrowed_weights_leave_from_where_they_are(scene):
    """Of peers that are late at other times. But for the first ones there is no copy, in which they
    may not know of each other's memory yet; else one a round. The bits are the same."""
    ring = {**AGENTS, "topology": {"nodes": 3, "family": "ring"}}
    borrowed, others = (
        [said.split() for said in Peers(scene, WEIGHTS.replace("BORROW", b), ring).all_well()]
        for b in ("True", "False")
    )
    for with_it, without in zip(borrowed, others):
        check(float(with_it[1]) <= 3, with_it)
        check(float(without[1]) <= int(without[0]) + 3, without)
        check(with_it[2:] == without[2:], f"{with_it} {without}")


def test_who_is_killed_reads_no_borrowed_weights(scene):
    """What it was to read is free: nothing is copied later."""
    copied = 'peer.metrics()["bytes_copied"]'
    killed = f"step()\n    if step == 9:\n        seen = {copied}\n    if RANK == 1 and step == 6:"
    killed += "\n        os._exit(9)\n    if step in (4, 8):"
    body = WEIGHTS.replace("BORROW", "True").replace("step()\n    if step in (4, 8):", killed)
    body = body.replace(copied + " /", f"({copied} - seen) /")
    three = {
        **AGENTS,
        "topology": {"nodes": 3, "family": "complete"},
        "membership": {"on_loss": "continue", "grace_s": 2},
    }
    for code, out, err in Peers(scene, body, three).wait()[::2]:
        check(code == 0 and float(out.split()[1]) == 0, (out, err))


def test_two_optimizers(scene):
    def work(rank):
        model = network()
        optimizers = [sgd(model[0].parameters()), sgd(model[2].parameters())]
        peer = starling.join(None, model)
        for step in range(STEPS):
            model.zero_grad()
            backward(model, rank, step)
            for optimizer in optimizers:
                optimizer.step()
            peer.mix()
        peer.attach(optimizers[0])
        refused(lambda: peer.attach(optimizers[1]), "several optimizers", "peer.mix()")
        peer.leave()
        return model, peer

    as_by_hand(work, FORMS[1:])


if __name__ == "__main__":
    run_tests()
