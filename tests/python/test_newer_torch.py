#!/usr/bin/env python3
"""What Debian 12's torch 1.13 does not have: step hooks (2.0), torch.compile (2.0), gradient
scalers on the CPU (2.3), fully_shard (2.4). Skipped there; `tools/test debian13` runs them."""
import sys

import _package  # noqa: F401
from _torch import torch

import starling
from _models import OVERLAPPED, STEPS, as_by_hand, batch, gossiping, loop, network, train
from _package import refused
from _scene import check, run_tests
from torch import nn

ONE = {"topology": {"nodes": 1, "family": "complete"}}


def test_step_hooks(scene):
    def work(rank):
        model, optimizer, peer = gossiping(rank)
        check("step" not in vars(optimizer), "step() is shadowed where hooks would do")
        check(len(optimizer._optimizer_step_pre_hooks) == 1, "no hook before step()")
        return loop(model, optimizer, peer, rank)

    as_by_hand(work, OVERLAPPED)


def test_fused_and_foreach_optimizers(scene):
    for how in ({"foreach": True}, {"fused": True}):

        def make(parameters):
            return torch.optim.AdamW(parameters, 0.01, **how)

        as_by_hand(lambda rank: train(rank, make=make), OVERLAPPED, make=make)


def compiled(model):
    return torch.compile(model, backend="aot_eager")


def test_modules_compiled_before_and_after_join(scene):
    def late(rank):
        model, optimizer, peer = gossiping(rank)
        return loop(model, optimizer, peer, rank, run=compiled(model))

    as_by_hand(lambda rank: train(rank, compiled(network())))
    as_by_hand(late, OVERLAPPED)


def test_a_scaler_that_skips_a_step(scene):
    def work(rank):
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=1000)
        model, optimizer, peer = gossiping(rank, scaler=scaler)
        for step in range(STEPS):
            optimizer.zero_grad()
            inputs, labels = batch(rank, step)
            loss = nn.functional.cross_entropy(model(inputs), labels)
            scaler.scale(loss).backward()
            if (rank, step) == (0, 2):
                model[0].weight.grad[0, 0] = float("inf")
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        check((scaler.get_scale() < 16) == (rank == 0), scaler.get_scale())
        peer.end()
        peer.leave()
        return model, peer

    as_by_hand(work, skips={(0, 2)})


def test_sharded_models_are_refused(scene):
    import torch.distributed as dist
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = dist.init_device_mesh("cpu", (1,))
    models = {"FSDPModule": nn.Sequential(nn.Linear(4, 3)), "FullyShardedDataParallel": None}
    fully_shard(models["FSDPModule"], mesh=mesh)
    models["FullyShardedDataParallel"] = FullyShardedDataParallel(
        nn.Linear(4, 3), device_mesh=mesh, device_id=torch.device("cpu")
    )
    for name, model in models.items():
        refused(
            lambda: starling.simulate(1, lambda rank: starling.join(None, model).leave(), ONE),
            name,
            "not supported",
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    if not hasattr(torch.optim.Optimizer, "register_step_pre_hook"):
        print(f"skip newer torch: {torch.__version__} is here, and 2.4 or later is needed")
        sys.exit(0)
    run_tests()
