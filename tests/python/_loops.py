"""Training loops that may be stopped after a step and go on, for tests; they import no other module
of these."""

import numpy

STEPS, SAVED = 10, 5


# ---- numpy ----


def first_x(rank):
    return numpy.sin(numpy.arange(3000, dtype="f4") + 100 * rank).reshape(60, 50)


def overlaps(experiment):
    return experiment["algorithm"] == {"name": "d-psgd"}


def train_array(peer, x, experiment, first, save=None, last=STEPS):
    """From step `first` on. save(): after SAVED steps; a peer that overlaps is then in the middle
    of an exchange."""
    peer.end()
    for step in range(first, last):
        x -= 0.1 * (x - peer.rank)
        if overlaps(experiment):
            peer.begin()
            x += numpy.float32(0.25)  # what is sent is not what x is now
        else:
            peer.mix()
        if step + 1 == SAVED and save is not None:
            save()
        peer.end()


# ---- torch ----


class Scaler:
    """As torch's, where some of a rank's steps are left out."""

    def __init__(self, skips):
        self.skips, self.calls = skips, 0

    def step(self, optimizer):
        if self.calls not in self.skips:
            optimizer.step()
        self.calls += 1

    def update(self):
        return "updated"

    def state_dict(self):
        return {"calls": self.calls}

    def load_state_dict(self, state):
        self.calls = state["calls"]


class Script:
    """A module, AdamW, a schedule, and a scaler that skips; two batches make a step."""

    def __init__(self, rank, dtype=None, skips=()):
        import torch

        torch.manual_seed(7)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(5, 4),
            torch.nn.BatchNorm1d(4),
            torch.nn.Tanh(),
            torch.nn.Linear(4, 4),
            torch.nn.Linear(4, 3),
        )
        self.model[3].weight.requires_grad = False
        if dtype is not None:
            self.model[4].to(dtype)
        self.rank, self.step = rank, 0
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, 0.05)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 3, 0.5)
        self.scaler = Scaler(skips if rank == 0 else ())
        self.parts = (self.model, self.optimizer, self.schedule, self.scaler)

    def attach(self, peer):
        peer.attach(self.optimizer, self.scaler)

    def _backward(self, batch):
        import torch

        torch.manual_seed(1000 * self.rank + 10 * self.step + batch)
        inputs, labels = torch.randn(8, 5), torch.randint(3, (8,))
        hidden = self.model[:4](inputs)
        weight, bias = self.model[4].weight.float(), self.model[4].bias.float()
        found = torch.nn.functional.linear(hidden, weight, bias)
        (torch.nn.functional.cross_entropy(found, labels) / 2).backward()

    def train(self, steps=STEPS, save=None):
        while self.step < steps:
            self.optimizer.zero_grad()
            self._backward(0)
            self._backward(1)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.schedule.step()
            self.step += 1
            if self.step == SAVED and save is not None:
                save()

    def state_dict(self):
        return {"parts": [part.state_dict() for part in self.parts], "step": self.step}

    def load_state_dict(self, saved):
        for part, state in zip(self.parts, saved["parts"]):
            part.load_state_dict(state)
        self.step = saved["step"]

    def bits(self):
        return [(name, t.float().numpy().tobytes()) for name, t in self.model.state_dict().items()]
