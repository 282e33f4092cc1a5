#!/usr/bin/python3
"""A step of PyTorch whose exchange takes about as long as backward: what transport.overlap hides
of it, beside DistributedDataParallel with Gloo, on slow links.

Two processes, each in a network namespace (links.c; root, iproute2), train a chain of equal linear
layers. Each layer sleeps as well as it computes, forward a third of its time: as a device would,
it leaves the processor free. Ways take turns. DDP's buckets are of two layers. The table has
medians of all steps but a turn's first. Needs torch.

usage: torch_layers.py [--build BUILD] [--mbit R] [--steps N] [--turns N]
                                                          meson compile -C BUILD links
"""
import json
import os
import statistics
import sys
import tempfile
import time

import _bench
from _links import Links, torch_processes

NODES, LAYERS, WIDTH, HEADERS = 2, 12, 320, 1.04
PLAIN, DDP = "no communication", "DDP, Gloo"
ADAPT = {"name": "d-psgd", "variant": "adapt-then-combine"}
SUM = {"name": "all-reduce", "all_reduce": "recursive-doubling"}
OURS = {  # algorithm, transport.overlap
    "d-psgd, mix after the step": (ADAPT, "none"),
    "d-psgd, around the step": ("d-psgd", "none"),
    **{f'd-psgd, "{way}"': (ADAPT, way) for way in ("layers", "partitioned")},
    'all-reduce, "layers"': (SUM, "layers"),
}
WAYS = [PLAIN, DDP, *OURS]


def exchange_s(mbit):
    return HEADERS * 32 * LAYERS * (WIDTH + 1) * WIDTH / (1e6 * mbit)


def build(torch, backward_s):
    class Sleep(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            time.sleep(backward_s / 2 / LAYERS)
            return x.clone()

        @staticmethod
        def backward(context, g):
            time.sleep(backward_s / LAYERS)
            return g

    class Layer(torch.nn.Linear):
        def forward(self, x):
            return Sleep.apply(super().forward(x))

    torch.manual_seed(1)
    return torch.nn.Sequential(*(Layer(WIDTH, WIDTH) for _ in range(LAYERS)))


def join(task, name, model):
    import starling

    algorithm, way = OURS[name]
    experiment = {
        "topology": {"family": "path", "nodes": NODES},
        "algorithm": algorithm,
        "transport": {
            "overlap": way,
            "partition_bytes": 4 * WIDTH * (WIDTH + 1),
            "connect_timeout_s": 60,
        },
        "security": {"mode": "none", "trusted_network": True},
    }
    if way != "none":
        experiment["network"] = {
            "gradient_ms": 1500 * exchange_s(task["mbit"]),
            "bandwidth_mbit": task["mbit"],
        }
    return starling.join(experiment, model, rank=task["rank"], roster=task["rosters"][name])


def run_way(torch, task, name):
    """Seconds of each step."""
    model = build(torch, exchange_s(task["mbit"]))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
    peer = join(task, name, model) if name in OURS else None
    run = model
    if name == DDP:
        bucket = 2 * 4 * WIDTH * (WIDTH + 1) / (1 << 20)
        run = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=bucket)
    if peer is not None:
        peer.attach(optimizer)
    x, ends = torch.ones(8, WIDTH), [time.monotonic()]
    for _ in range(task["steps"] + 1):
        optimizer.zero_grad()
        run(x).square().mean().backward()
        optimizer.step()
        ends.append(time.monotonic())
    if peer is not None:
        peer.leave()
    return [after - before for before, after in zip(ends[1:], ends[2:])]


def work(task):
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=task["rank"], world_size=NODES)
    found = {}
    for name in WAYS:
        torch.distributed.barrier()
        found[name] = run_way(torch, task, name)
    with open(task["out"], "w") as file:
        json.dump(found, file)


def run(links, options, folder, turn):
    base = 20000 + (os.getpid() + 17 * turn) % 1000 * 20
    task = {"mbit": options.mbit, "steps": options.steps}
    task["rosters"] = {
        name: [f"{links.address(rank)}:{base + 2 * i}" for rank in range(NODES)]
        for i, name in enumerate(OURS, 1)
    }
    tasks = [{**task, "out": os.path.join(folder, f"{rank}.json")} for rank in range(NODES)]
    return torch_processes(links, options.build, __file__, tasks, base)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--work":
        return work(json.loads(sys.argv[2]))
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--mbit", type=float, default=100, help="of the link (default 100)")
    parser.add_argument("--steps", type=int, default=8, help="timed in a turn (default 8)")
    parser.add_argument("--turns", type=int, default=3, help="of each way (default 3)")
    options = parser.parse_args()
    found = []
    with Links(options.build, NODES, options.mbit, 0) as links:
        for turn in range(options.turns):
            with tempfile.TemporaryDirectory() as folder:
                found += run(links, options, folder, turn)
    exchange = exchange_s(options.mbit)
    print(
        f"{LAYERS} layers of {WIDTH} x {WIDTH}, {NODES} processes on {os.cpu_count()} cores, "
        f"{options.mbit:g} Mbit/s; forward {500 * exchange:.0f} ms, backward and exchange "
        f"{1e3 * exchange:.0f} ms each; {options.turns} turns of {options.steps} steps\n"
    )
    _bench.print_heads("", "step ms", "of DDP's", "not hidden ms")
    steps = {name: statistics.median(sum((each[name] for each in found), [])) for name in WAYS}
    for name in WAYS:
        more = 1e3 * (steps[name] - steps[PLAIN])
        _bench.print_row(
            name, f"{1e3 * steps[name]:.0f}", f"{steps[name] / steps[DDP]:.2f}", f"{more:.0f}"
        )


if __name__ == "__main__":
    main()
