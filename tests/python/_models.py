"""Small models of torch and their loops, for the tests of peers of modules."""

import starling
import torch
from _scene import check
from torch import nn

TWO = {"nodes": 2, "family": "complete"}
EXPERIMENT = {"topology": {**TWO, "weights": "lazy"}, "algorithm": "d-psgd"}
BLOCKING = {"topology": TWO, "algorithm": {"name": "d-psgd", "variant": "adapt-then-combine"}}
LAZY = 0.25  # W_01 of two nodes with lazy weights
STEPS = 6


def network(seed=7):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))


def batch(rank, step):
    torch.manual_seed(1000 * rank + step)
    return torch.randn(8, 5), torch.randint(3, (8,))


def backward(model, rank, step):
    inputs, labels = batch(rank, step)
    nn.functional.cross_entropy(model(inputs), labels).backward()


def flat(model):
    return torch.cat([p.detach().float().reshape(-1) for p in model.parameters()])


def flat_of(state):
    """Of a state_dict."""
    return torch.cat([value.reshape(-1) for value in state.values()])


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.1)


def train(rank, model=None, make=sgd, steps=STEPS, compute=backward):
    """A plain loop with the three lines in it; (model, peer) after `steps` steps."""
    model, optimizer, peer = gossiping(rank, make, model)
    return loop(model, optimizer, peer, rank, steps, compute)


def loop(model, optimizer, peer, rank, steps=STEPS, compute=backward, run=None, take=None):
    """The same of a peer that has joined; `run` is called in the model's place, `take` in that of
    optimizer.step()."""
    take_steps(run or model, optimizer, rank, steps, compute, take)
    peer.end()
    peer.leave()
    return model, peer


def take_steps(model, optimizer, rank, steps=STEPS, compute=backward, take=None):
    for step in range(steps):
        optimizer.zero_grad()
        compute(model, rank, step)
        (take or optimizer.step)()


def near(a, b, tolerance=1e-5):
    distance = (a - b).abs().max().item()
    check(distance <= tolerance, f"off by {distance}")


def simulate(work, experiment=EXPERIMENT, n=2):
    return starling.simulate(n, work, experiment)


def mix_by_hand(models, weight):
    with torch.no_grad():
        for a, b in zip(models[0].parameters(), models[1].parameters()):
            step = weight * (b - a)
            a += step
            b -= step


def by_hand(overlap, weight, make=sgd, compute=backward, skips=()):
    """Two models in one loop: W x, then the step with the gradient at the old x; or a step, then
    W x. skips: (rank, step) that take no step."""
    models = [network(), network()]
    optimizers = [make(model.parameters()) for model in models]
    for step in range(STEPS):
        for rank, model in enumerate(models):
            optimizers[rank].zero_grad()
            compute(model, rank, step)
        if overlap:
            mix_by_hand(models, weight)
        for rank, optimizer in enumerate(optimizers):
            if (rank, step) not in skips:
                optimizer.step()
        if not overlap:
            mix_by_hand(models, weight)
    if overlap:
        mix_by_hand(models, weight)  # peer.end() after the last step
    return [flat(model) for model in models]


FORMS = ((EXPERIMENT, (True, LAZY)), (BLOCKING, (False, 0.5)))  # and by_hand's arguments
OVERLAPPED = FORMS[:1]


def as_by_hand(work, forms=FORMS, **how):
    """What work(rank) -> (model, peer) trains is what two models in one loop are, in these forms of
    d-psgd, after a round for each step, and one more for what is sent beside it."""
    for experiment, form in forms:
        for (model, peer), x in zip(simulate(work, experiment), by_hand(*form, **how)):
            near(flat(model), x)
            check(peer.round == STEPS + form[0], f"{peer.round} rounds")


def gossiping(rank, make=sgd, model=None, **more):
    model = model or network()
    optimizer = make(model.parameters())
    peer = starling.join(None, model)
    peer.attach(optimizer, **more)
    return model, optimizer, peer
