#!/usr/bin/env python3
"""Strange modules, arrays and states: each is taken, or refused by an Error of ours that names the
parameter or buffer; and where a peer stands, in words."""

import _package  # noqa: F401: finds the package
from _torch import torch
import numpy

import starling
from _package import refused
from _scene import check, run_tests
from torch import nn
from torch.nn.utils import prune

ONE = {"topology": {"nodes": 1, "family": "complete"}, "algorithm": "d-psgd"}


class Odd(nn.Module):
    """A layer, and something strange by the name `strange`."""

    def __init__(self, put):
        super().__init__()
        torch.manual_seed(1)
        self.layer = nn.Linear(5, 3)
        put(self)

    def forward(self, x):
        return self.layer(x)


def buffer(make):
    return lambda module: module.register_buffer("strange", make())


def parameter(make, trained=False):
    return lambda module: module.register_parameter(
        "strange", nn.Parameter(make(), requires_grad=trained)
    )


def inference():
    with torch.inference_mode():
        return torch.ones(3)


def overlapping():
    return torch.arange(6.0).as_strided((3, 3), (1, 1))


def of_a_class():
    class Own(torch.Tensor):
        pass

    return torch.ones(3).as_subclass(Own)


def refusing():
    class Refuses(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise RuntimeError("no function for you")

    return torch.ones(3).as_subclass(Refuses)


TENSORS = {
    "sparse": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "meta": lambda: torch.ones(3, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "complex": lambda: torch.ones(3, dtype=torch.complex64),
    "conjugate": lambda: torch.ones(3, dtype=torch.complex64).conj(),
    "negative": lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
    "inference": inference,
    "overlapping": overlapping,
    "expanded": lambda: torch.ones(1).expand(4, 3),
    "empty": lambda: torch.ones(0, 3),
    "scalar": lambda: torch.tensor(3.0),
    "not a number": lambda: torch.tensor([float("nan"), float("inf")]),
    "double": lambda: torch.ones(3, dtype=torch.float64),
    "half": lambda: torch.ones(3, dtype=torch.float16),
    "of a class": of_a_class,
    "refusing": refusing,
    "transposed": lambda: torch.arange(6.0).reshape(2, 3).t(),
    "bits": lambda: torch.tensor([True, False]),
    "bytes": lambda: torch.tensor([1, 255], dtype=torch.uint8),
    "huge": lambda: torch.tensor([2**63 - 1, -(2**63)]),
    "uninitialized": lambda: nn.UninitializedBuffer(),
}
TAKEN = ("complex", "overlapping", "expanded", "empty", "scalar", "double", "half", "bits")


def run(make, steps=2):
    """A whole run of two peers; what was refused, or None. Other errors come out."""

    def work(rank):
        model = make()
        peer = starling.join(None, model)
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = peer.attach(torch.optim.SGD(trained, 0.1))
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(4, 5)).square().sum().backward()
            optimizer.step()
        average = peer.average()
        peer.leave()
        return average

    try:
        starling.simulate(2, work, {"topology": {"family": "complete"}, "algorithm": "d-psgd"})
    except starling.Error as error:
        return str(error)
    return None


def may_be_made(make):
    try:
        make()
    except Exception:  # of torch: this release has no such tensor
        return False
    return True


def test_strange_tensors(scene):
    for name, make in TENSORS.items():
        kinds = {"buffer": buffer(make), "frozen": parameter(make)}
        kinds["trained"] = parameter(make, True)
        for kind, put in kinds.items():
            if not may_be_made(lambda: Odd(put)):
                continue
            said = run(lambda: Odd(put))
            check(said is None or "strange" in said, f"{kind} {name}: {said}")
            check(said is None or kind != "buffer" or name not in TAKEN, f"{name}: {said}")


def test_layers_that_are_wrapped(scene):
    for wrap in (
        torch.nn.utils.weight_norm,
        torch.nn.utils.spectral_norm,
        torch.nn.utils.parametrizations.spectral_norm,
        torch.nn.utils.parametrizations.orthogonal,
        lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
        lambda layer: layer.requires_grad_(True),
        lambda layer: layer.to(torch.bfloat16).float(),
    ):
        said = run(lambda: nn.Sequential(wrap(nn.Linear(5, 5)), nn.Linear(5, 3)))
        check(said is None, said)


def test_modules_that_raise(scene):
    class Listed(nn.Linear):
        def named_parameters(self, *_, **__):
            raise RuntimeError("no list today")

    class Stated(nn.Linear):
        def state_dict(self, *_, **__):
            raise KeyError("no state today")

    def work(model, call=lambda peer: peer.leave()):
        starling.simulate(1, lambda rank: call(starling.join(None, model)), ONE)

    refused(lambda: work(Listed(5, 3)), "Listed", "no list today")
    refused(lambda: work(Stated(5, 3), lambda peer: peer.average()), "state_dict()", "no state")


def test_where_a_peer_stands(scene):
    def work(rank):
        x = numpy.full(3, rank, "f4")
        peer = starling.join(None, x)
        check(repr(peer) == f"<starling.Peer: rank {rank} of 2, round 0>", repr(peer))
        for _ in range(10):
            peer.mix()
        peer.begin()
        check("from its neighbours, an exchange is under way>" in repr(peer), repr(peer))
        page = peer._repr_html_()
        check(page.startswith(f"<table><tr><th>starling.Peer: rank {rank} of 2</th></tr>"), page)
        check("<td>round 10</td>" in page and len(page) < 500, page)
        peer.leave()
        check(repr(peer) == f"<starling.Peer: rank {rank} of 2, round 11, has left>", repr(peer))

    starling.simulate(2, work, {"topology": {"family": "complete"}, "algorithm": "d-psgd"})


if __name__ == "__main__":
    run_tests()
