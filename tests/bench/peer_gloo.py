#!/usr/bin/env python3
"""An all-reduce (sum, then scaled) of D floats over N processes by Gloo through PyTorch, one thread
each, over loopback TCP.

usage: peer_gloo.py N D ROUNDS    prints one JSON line like the other peers: a round lasts from the
first start to the last end
"""
import json
import multiprocessing
import os
import statistics
import sys
import time

WARMUP = 2


def work(rank, nodes, dimension, rounds, port, stamps):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    import torch
    import torch.distributed as distributed

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=nodes)
    x = torch.arange(dimension, dtype=torch.float32).remainder_(1021).div_(1024).add_(rank)
    expected = x - rank + (nodes - 1) / 2
    times = []
    for round in range(WARMUP + rounds):
        distributed.barrier()
        start = time.monotonic()
        distributed.all_reduce(x)
        x /= nodes
        times.append((start, time.monotonic()))
        if round == 0 and not torch.allclose(x, expected, atol=1e-4):
            sys.exit("peer_gloo: wrong average")
    stamps.put(times[WARMUP:])
    distributed.barrier()


def main():
    nodes, dimension, rounds = (int(argument) for argument in sys.argv[1:4])
    context = multiprocessing.get_context("spawn")
    stamps = context.Queue()
    port = 20000 + os.getpid() % 20000
    workers = [
        context.Process(target=work, args=(rank, nodes, dimension, rounds, port, stamps))
        for rank in range(nodes)
    ]
    for worker in workers:
        worker.start()
    times = [stamps.get(timeout=500) for _ in workers]
    for worker in workers:
        worker.join()
    lasted = [
        1e3 * (max(t[r][1] for t in times) - min(t[r][0] for t in times)) for r in range(rounds)
    ]
    said = {"median_ms": round(statistics.median(lasted), 3), "min_ms": round(min(lasted), 3)}
    print(json.dumps({"program": "gloo", "nodes": nodes, "dimension": dimension, **said}))


if __name__ == "__main__":
    main()
