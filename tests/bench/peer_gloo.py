#!/usr/bin/env python3
"""An all-reduce (sum, then scaled) of D floats over N processes by Gloo through PyTorch, one thread
each, over loopback TCP.

usage: peer_gloo.py N D ROUNDS    prints one JSON line like the other peers: a round lasts from the
first start to the last end
"""
import json
import statistics
import sys
import tempfile
import time

import _bench
from _links import Loopback, torch_processes
from _ports import free_ports

WARMUP = 2


def work(task):
    import torch
    import torch.distributed as distributed

    rank, nodes = task["rank"], task["nodes"]
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=nodes)
    x = torch.arange(task["dimension"], dtype=torch.float32).remainder_(1021).div_(1024).add_(rank)
    expected = x - rank + (nodes - 1) / 2
    times = []
    for round in range(WARMUP + task["rounds"]):
        distributed.barrier()
        start = time.monotonic()
        distributed.all_reduce(x)
        x /= nodes
        times.append((start, time.monotonic()))
        if round == 0 and not torch.allclose(x, expected, atol=1e-4):
            sys.exit("peer_gloo: wrong average")
    with open(task["out"], "w") as file:
        json.dump(times[WARMUP:], file)
    distributed.barrier()


def main():
    if sys.argv[1] == "--work":
        return work(json.loads(sys.argv[2]))
    nodes, dimension, rounds = map(int, sys.argv[1:4])
    task = {"nodes": nodes, "dimension": dimension, "rounds": rounds}
    with tempfile.TemporaryDirectory() as folder:
        tasks = [{**task, "out": f"{folder}/{rank}.json"} for rank in range(nodes)]
        times = torch_processes(Loopback(), _bench.ROOT, __file__, tasks, free_ports(1)[0])
    lasted = [1e3 * (max(e for _, e in each) - min(s for s, _ in each)) for each in zip(*times)]
    said = {"median_ms": round(statistics.median(lasted), 3), "min_ms": round(min(lasted), 3)}
    print(json.dumps({"program": "gloo", "nodes": nodes, "dimension": dimension, **said}))


if __name__ == "__main__":
    main()
