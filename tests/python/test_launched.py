#!/usr/bin/env python3
"""Torch scripts as processes: started by torchrun, with DataLoader workers that fork, with unequal
numbers of batches, and with process groups that are one peer each."""
import importlib.util
import os
import subprocess
import sys
import textwrap

import _package
from _scene import check, run_tests
from _torchrun import torchrun

HEAD = """
import os
import sys
import torch
import torch.distributed as dist
import starling
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
EXPERIMENT = {"topology": {"nodes": 2, "family": "complete", "weights": "lazy"}}
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)

def flat():
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])
"""


# A thread of gloo that lets go of DDP's last tensor while Python ends aborts it (torch 1.13).
END = "os._exit(0)\n"


def launched(scene, body, count):
    """What each process wrote to a file out-RANK; all must have ended with 0."""
    path = scene.write("train.py", HEAD + textwrap.dedent(body) + END)
    command, variables = torchrun(count, scene.path("meeting"), path)
    done = subprocess.run(
        command,
        cwd=scene.folder,
        env={**os.environ, **variables, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    check(done.returncode == 0, done.stderr[-2500:])
    os.remove(scene.path("meeting"))
    texts = []
    for rank in range(count):
        with open(scene.path(f"out-{rank}")) as file:
            texts.append(file.read())
    return texts


def test_torchrun_workers_that_fork_and_unequal_batches(scene):
    body = """
    from torch.utils.data import DataLoader, TensorDataset

    with starling.join(EXPERIMENT, model) as peer:
        peer.attach(optimizer)
        data = TensorDataset(torch.randn(24 - 8 * peer.rank, 4))
        for epoch in range(2):
            for (batch,) in DataLoader(data, 4, num_workers=2, multiprocessing_context="fork"):
                optimizer.zero_grad()
                model(batch).square().sum().backward()
                optimizer.step()
        average = peer.average()
        known = peer.rank, peer.size
    model.load_state_dict(average)
    with open(f"out-{known[0]}", "w") as file:
        file.write(f"{known} {os.environ['RANK']} {flat().tolist()}")
    """
    first, second = launched(scene, body, 2)
    check(first.startswith("(0, 2) 0 ") and second.startswith("(1, 2) 1 "), (first, second))
    check(first.split("[")[1] == second.split("[")[1], (first, second))


def test_the_readmes_difference_is_that_of_the_example(scene):
    with open(os.path.join(_package.ROOT, "README.md")) as file:
        shown = [line[1:].strip() for line in file if line.startswith("+")]
    with open(os.path.join(_package.ROOT, "examples", "torch_mnist.py")) as file:
        marked = [line for line in file if line.rstrip().endswith("  # starling")]
    marked = [line.split("  # ")[0].strip() for line in marked]
    check(shown == marked, (shown, marked))


def test_a_process_group_is_one_peer(scene):
    """And groups say how many peers there are."""
    body = """
    RING = {"topology": {"family": "ring"}, "transport": {"connect_timeout_s": 60}}

    def refused(group, *words, **more):
        try:
            starling.join(RING, model, group=group, **more)
        except starling.Error as error:
            assert all(word in str(error) for word in words), error
        else:
            assert False, words

    refused(5, "init_process_group() comes first")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    pairs, threes, odd = [
        [dist.new_group(ranks) for ranks in groups]
        for groups in ([[0, 1], [2, 3]], [[0, 1, 2]], [[0, 2], [1, 3]])
    ]
    mine = pairs[rank // 2]
    ddp = nn.parallel.DistributedDataParallel(model, process_group=mine)
    try:
        starling.join(EXPERIMENT, ddp)
    except starling.Error as error:
        assert "group=" in str(error), error
    torch.manual_seed(rank)
    said = []
    with starling.join(EXPERIMENT, ddp, group=mine) as peer:
        peer.attach(optimizer)
        for step in range(5):
            optimizer.zero_grad()
            ddp(torch.randn(8, 4)).square().sum().backward()
            optimizer.step()
        said.append(flat().tolist())
        average = peer.average()
        said += [average["weight"].tolist(), peer.rank, peer.size, peer.round, peer.distance]
    model = nn.Linear(4, 2)
    refused(5, "group= is a int", "dist.new_group()")
    if rank == 3:
        refused(threes[0], "in a process of the group")
    else:
        refused(threes[0], "4 processes", "groups of 3", "[0, 1, 2]", "size=")
    refused(odd[rank % 2], f"processes [{rank % 2}, {rank % 2 + 2}]", "rank= and size=")
    with starling.join(RING, model, group=mine) as peer:
        assert (peer.rank, peer.size) == (rank // 2, 2), peer
        assert peer.mean({"of leaders": float(rank)}) == {"of leaders": 1.0}
        model.weight.requires_grad_(False)
        peer.rejoin()
        assert peer.mean(rank // 2) == 0.5 and list(peer.average()) == ["weight", "bias"], peer
        model.weight.requires_grad_(True)
    with starling.join(RING, model, group=odd[rank % 2], rank=rank % 2, size=2) as peer:
        assert (peer.rank, peer.size) == (rank % 2, 2), peer
        peer.average()
    with open(f"out-{rank}", "w") as file:
        file.write(repr(said))
    """
    found = [eval(text) for text in launched(scene, body, 4)]
    check(found[0] == found[1] and found[2] == found[3], found)
    check(found[0][1] == found[2][1] and found[0][0] != found[2][0], found)
    check([row[2:5] for row in found] == [[0, 2, 6]] * 2 + [[1, 2, 6]] * 2, found)


def test_a_process_group_goes_on(scene):
    """Its first process has the state; saved and gone on with in the middle of an exchange."""
    body = """
    import sys
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    mine = groups[rank // 2]
    ddp = nn.parallel.DistributedDataParallel(model, process_group=mine)
    goes_on, name = os.path.exists("goes-on"), f"state-{rank}.pt"
    with starling.join(EXPERIMENT, ddp, group=mine, start=not goes_on) as peer:
        if goes_on:
            in_model, in_peer = torch.load(name)
            model.load_state_dict(in_model)
            peer.load_state_dict(in_peer)
        peer.attach(optimizer)
        for step in range(3 if goes_on else 0, 5):
            torch.manual_seed(10 * rank + step)
            optimizer.zero_grad()
            ddp(torch.randn(8, 4)).square().sum().backward()
            optimizer.step()
            if step == 2:
                state = peer.state_dict()
                assert (state["session"] is None) == (rank % 2 == 1), state
                torch.save((model.state_dict(), state), name)
        peer.end()
        said = flat().tolist(), peer.round
    with open(f"out-{rank}", "w") as file:
        file.write(repr(said))
    """
    whole = launched(scene, body, 4)
    scene.write("goes-on", "")
    check(launched(scene, body, 4) == whole, "other bits")


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("skip torch: it is not installed here")
        sys.exit(0)
    run_tests()
