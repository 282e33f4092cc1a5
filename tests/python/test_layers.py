#!/usr/bin/env python3
"""transport.overlap on a GPU: torch of the CPU, whose parameters lie in memory of the emulated
device and say that they are there. What the host computes waits for the stream by itself; each
backward pass has a thread of its own, as torch's have on a GPU."""
import itertools
import os
import threading

os.environ["STARLING_GUARD"] = ""  # test_device.py's, which imports before it is taken away
import test_device  # noqa: E402

del os.environ["STARLING_GUARD"]
import ctypes  # noqa: E402

from _torch import torch  # noqa: E402

import starling  # noqa: E402
from _scene import check, run_tests  # noqa: E402

EXPERIMENT = {
    "topology": {"family": "complete", "nodes": 2},
    "transport": {"buckets": "layers", "chunk_bytes": 4096},
}
GPU = torch.device("cuda:0")


def wait(stream):
    vec, found = test_device.operations(), ctypes.c_float()
    place = vec.allocate(1)
    vec.guest.contents.enter(stream)
    vec.copy_out(ctypes.addressof(found), place, 4)
    vec.guest.contents.leave()
    vec.release(place)


class Stream:
    """0: torch's usual one; 1 and 2: others that are always there."""

    waited = 0

    def __init__(self, number):
        self.cuda_stream = number

    def __eq__(self, other):
        return self.cuda_stream == other.cuda_stream

    def wait_stream(self, other):
        Stream.waited += 1
        wait(other.cuda_stream)


class There(torch.nn.Parameter):
    device = property(lambda self: GPU)


def moved(model):
    """With its parameters on the device."""
    vec = test_device.operations()
    for module in model.modules():
        for name, p in list(module._parameters.items()):
            address = vec.allocate(p.numel())
            there = (ctypes.c_float * p.numel()).from_address(address)
            wait(1)
            numbers = torch.frombuffer(there, dtype=torch.float32).reshape(p.shape)
            setattr(module, name, There(numbers.copy_(p.detach())))
    return model


def backward(loss):
    def work():
        wait(1)  # by which the thread is on the device
        loss.backward()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def train(on_gpu):
    torch.manual_seed(7)
    linear = [torch.nn.Linear(*sides) for sides in ((9, 60), (60, 60), (60, 3))]
    model = torch.nn.Sequential(linear[0], torch.nn.Tanh(), *linear[1:])
    if on_gpu:
        moved(model)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    peer = starling.join(None, model)
    peer.attach(optimizer)
    if on_gpu:
        for module in model:
            module.register_forward_pre_hook(lambda *_: wait(peer._vector._stream.cuda_stream))
    for step in range(6):
        draw = torch.Generator().manual_seed(100 * peer.rank + step)
        optimizer.zero_grad()
        loss = model(torch.randn(8, 9, generator=draw)).square().sum()
        backward(loss) if on_gpu else loss.backward()
        optimizer.step()
    peer.end()
    peer.leave()
    wait(2)
    wait(1)
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def simulated(experiment, on_gpu):
    return starling.simulate(2, lambda _: train(on_gpu), experiment)


def test_by_layers_on_a_gpu_has_the_bits_of_whole_rounds(scene):
    streams = itertools.cycle([Stream(1), Stream(1), Stream(2)])
    torch.cuda.device_count, torch.cuda.current_stream = lambda: 1, lambda _: next(streams)
    for algorithm in ({"name": "d-psgd", "variant": "adapt-then-combine"}, "all-reduce"):
        experiment = {**EXPERIMENT, "algorithm": algorithm}
        host = simulated(experiment, False)
        experiment["transport"] = {**EXPERIMENT["transport"], "overlap": "layers"}
        experiment["device"] = "cuda:0"
        before = Stream.waited
        check(all(map(torch.equal, host, simulated(experiment, True))), f"{algorithm}: other bits")
        check(Stream.waited > before, "no stream has waited for another")


if __name__ == "__main__":
    run_tests()
