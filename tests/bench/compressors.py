#!/usr/bin/env python3
"""Compressors on ResNet-50's number of elements beside PyTorch and numpy, in one run.

Starling's times are those of checkvec --bench, whose lines have all compressors; the others take
turns, on one thread, and the processor's time of their best turn counts. The table is Markdown
(docs/benchmarks.md).

usage: compressors.py [--build BUILD] [--turns N] [--dimension D]
"""
import os
import re
import subprocess
import time

import _bench

LEVELS, DROPPED = 7, 0.6


# ---- what others offer ----


def torch_peers(dimension):
    """(name, our codec, encode) of PyTorch, one thread, on a vector of its own."""
    try:
        import torch
    except ImportError:
        return []
    torch.set_num_threads(1)
    torch.manual_seed(1)
    v, k = torch.randn(dimension + dimension % 2), round(0.01 * dimension)  # nibbles go in pairs

    def top_k():
        index = torch.topk(v.abs(), k, sorted=False).indices
        return index, v[index]

    def qsgd():  # two codes of 4 bits a byte: a sign and a level
        level = (v.abs() * (LEVELS / v.norm()) + torch.rand_like(v)).floor_()
        code = level.to(torch.uint8).bitwise_or_((v < 0).to(torch.uint8) << 3)
        return code[0::2] | (code[1::2] << 4)

    def dropping():
        return v[torch.rand_like(v) < DROPPED]

    return [
        ("torch.topk", "top-k 1 %", top_k),
        ("torch QSGD, packed nibbles", "qsgd 7 whole", qsgd),
        ("torch half()", "float16", v.half),
        ("torch bfloat16()", "bfloat16", v.bfloat16),
        ("torch rand() < p, v[mask]", "random-dropping 60 % scaled", dropping),
    ]


def numpy_peers(dimension):
    try:
        import numpy as np
    except ImportError:
        return []
    rng = np.random.default_rng(1)
    v, k = rng.standard_normal(dimension, dtype=np.float32), round(0.01 * dimension)

    def top_k():
        index = np.argpartition(np.abs(v), dimension - k)[dimension - k :]
        return index, v[index]

    def sign():
        return np.packbits(v >= 0), np.linalg.norm(v, 1) / dimension

    def random_k():
        return v[rng.choice(dimension, k, replace=False, shuffle=False)]

    return [
        ("numpy argpartition", "top-k 1 %", top_k),
        ("numpy packbits, norm", "scaled-sign whole", sign),
        ("numpy choice", "random-k 1 %", random_k),
    ]


def timed(encode):
    start = time.thread_time()
    encode()
    return 1e3 * (time.thread_time() - start)


# ---- the table ----


def ours(build, dimension):
    """{compressor: (ms to encode a message, ms to add one)}"""
    program = os.path.join(os.path.abspath(build), "tests", "checkvec")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "STARLING_PLUGIN": "/none"}
    command = [program, "--bench", str(dimension)]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    line = r"^cpu +(encode|add two) ([^,\n]+?)(?:, parts.*?)? +\d+ +([\d.]+) us"
    lines = re.findall(line, said.stdout, re.M)
    us = {(what, name): float(number) for what, name, number in lines}
    names = [name for what, name in us if what == "add two"]
    return {name: (us.get(("encode", name), 0) / 1e3, us["add two", name] / 2e3) for name in names}


def main():
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--dimension", type=int, default=_bench.RESNET50)
    options = parser.parse_args()
    peers = torch_peers(options.dimension) + numpy_peers(options.dimension)
    works = {name: lambda encode=encode: timed(encode) for name, _, encode in peers}
    for work in works.values():
        work()
    times = _bench.in_turns(works, options.turns)
    _bench.print_heads("compressor", "encode ms", "decode, add ms", "beside, encode ms")
    for name, (encode, add) in ours(options.build, options.dimension).items():
        beside = [
            f"{peer} {min(times[peer]):.1f} ({encode / min(times[peer]):.3f})"
            for peer, codec, _ in peers
            if codec == name
        ]
        _bench.print_row(name, f"{encode:.1f}", f"{add:.1f}", ", ".join(beside))


if __name__ == "__main__":
    main()
