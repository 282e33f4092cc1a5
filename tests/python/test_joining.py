#!/usr/bin/env python3
"""What join() says before it waits for anybody: without a launcher, of devices, of experiments."""
import os

import _package  # noqa: F401: finds the package
import numpy

import starling
from _package import refused, warnings_of
from _scene import check, run_tests

ONE = {"topology": {"family": "complete", "nodes": 1}}
LAUNCHERS = ("RANK", "WORLD_SIZE", "STARLING_RANK", "STARLING_SIZE")

for name in LAUNCHERS:
    os.environ.pop(name, None)


def join(experiment=ONE, x=None, **more):
    return starling.join(experiment, numpy.ones(3, "f4") if x is None else x, **more)


def test_one_peer_trains_alone_and_says_so(scene):
    def work():
        for more in ({}, {"size": 1}, {"rank": 0, "size": 1}):
            x = numpy.arange(3, dtype="f4")
            with join(x=x, **more) as peer:
                check((peer.rank, peer.size) == (0, 1), peer)
                x *= 2
                peer.mix()
                check((peer.average() == [0, 2, 4]).all(), x)

    said = warnings_of(work)
    check(len(said) == 3 and all("trains alone" in line for line in said), said)


def test_what_check_warns_of_is_told_at_join(scene):
    for algorithm, words in (
        ({"name": "dcd-psgd", "compressor": {"name": "random-k", "fraction": 0.01}}, "variance"),
        ({"name": "ecd-psgd", "compressor": {"name": "top-k", "fraction": 0.5}}, "biased"),
        ({"name": "choco-sgd", "compressor": {"name": "top-k", "fraction": 0.01}}, None),
    ):
        ring = {"topology": {"family": "ring", "nodes": 4}, "algorithm": algorithm}

        def process():
            x = numpy.ones(2000, "f4")
            join(
                ring, x, rank=1, roster="127.0.0.{rank}:7000", listen="127.0.0.1:0", start=False
            ).abort("tried")

        def train(rank):
            starling.join(None, numpy.ones(2000, "f4")).leave()

        for work in (process, lambda: starling.simulate(4, train, ring)):
            said = [line for line in warnings_of(work) if "no effect" not in line]
            check(len(said) == (words is not None) and all(words in line for line in said), said)


def test_several_peers_want_a_launcher(scene):
    ring = {"topology": {"family": "ring"}}
    for given in ({}, {"rank": 0}):
        refused(lambda: join(ring, **given), "how many peers", "torchrun", "rank=", "size=")
    two = {"topology": {"family": "complete", "nodes": 2}}
    refused(lambda: join(two), "nothing says which of 2 peers", "torchrun", "rank=")


def test_devices_that_are_not_there(scene):
    try:
        import torch
    except ImportError:
        return "torch is not installed here"
    tensors = (torch.nn.Linear(5, 3), torch.ones(4), [torch.ones(4), torch.ones(2)])
    for x in (*tensors, numpy.ones(3, "f4")):
        for device in ("auto", "gpu", "cuda", "cuda:-1", "cuda:x", "", 3, None, True, ["cpu"], {}):
            refused(lambda: join({**ONE, "device": device}, x), "device", "cuda:0", "cpu")
        device = f"cuda:{torch.cuda.device_count()}"
        refused(lambda: join({**ONE, "device": device}, x), "device", device)


if __name__ == "__main__":
    run_tests([value for name, value in list(globals().items()) if name.startswith("test_")])
