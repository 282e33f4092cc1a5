#!/usr/bin/env python3
"""Every compressor on ResNet-50's number of elements beside PyTorch and numpy, in one run.

Starling and the others take turns, on one thread; times are the processor's. A cell is the median
of Starling's turns; of the others it is the best turn. The tables are Markdown
(docs/benchmarks.md).

usage: compressors.py ...     meson compile -C BUILD compressors
"""
import json
import statistics
import subprocess
import time

import _bench

LEVELS = 7


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
        return v[torch.rand_like(v) < 0.5]

    return [
        ("torch.topk", "top-k 1 %", top_k),
        ("torch QSGD, packed nibbles", "qsgd 4 bits, one bucket", qsgd),
        ("torch half()", "float16", v.half),
        ("torch bfloat16()", "bfloat16", v.bfloat16),
        ("torch rand() < p, v[mask]", "random-dropping 50 %", dropping),
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
        ("numpy packbits, norm", "scaled-sign", sign),
        ("numpy choice", "random-k 1 %", random_k),
    ]


def timed(encode):
    start = time.thread_time()
    encode()
    return 1e3 * (time.thread_time() - start)


# ---- tables ----


def ours(command):
    """{codec: its line} of one run."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {line["codec"]: line for line in map(json.loads, ended.stdout.splitlines())}


def our_table(runs, dimension):
    """Returns {codec: ms to encode}."""
    _bench.print_heads("compressor", "bits an element", "encode ms", "decode, add ms")
    encode = {}
    for name, line in runs[0].items():
        times = {
            key: statistics.median(run[name][key] for run in runs) for key in ("encode", "decode")
        }
        encode[name] = times["encode"]
        bits = f"{8 * line['bytes'] / dimension:.2f}"
        _bench.print_row(name, bits, f"{times['encode']:.1f}", f"{times['decode']:.1f}")
    return encode


def peer_table(codecs, times, encode):
    print()
    _bench.print_heads("beside, the best turn", "Starling", "ms", "Starling's ms", "ratio", texts=2)
    for name, turns in times.items():
        mine, least = encode[codecs[name]], min(turns)
        cells = [f"{least:.1f}", f"{mine:.1f}", f"{mine / least:.3f}"]
        _bench.print_row(name, codecs[name], *cells)


def main():
    parser = _bench.parser_of(__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=3, help="of Starling in each turn")
    parser.add_argument("--dimension", type=int, default=_bench.RESNET50)
    options = parser.parse_args()
    program = _bench.needed(options.build, "compressors")
    command = [program, str(options.dimension), str(options.repetitions)]
    peers = torch_peers(options.dimension) + numpy_peers(options.dimension)
    works = {name: lambda encode=encode: timed(encode) for name, _, encode in peers}
    for work in works.values():
        work()
    runs = []
    works["Starling"] = lambda: runs.append(ours(command))
    times = _bench.in_turns(works, options.turns)
    print(f"d = {options.dimension:,}, normally distributed; medians of {options.turns} turns\n")
    encode = our_table(runs, options.dimension)
    peer_table({name: codec for name, codec, _ in peers}, times, encode)


if __name__ == "__main__":
    main()
