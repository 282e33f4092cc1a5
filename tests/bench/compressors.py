#!/usr/bin/env python3
"""Every compressor on ResNet-50's number of elements, beside this machine's limits and beside
PyTorch and numpy, in one run.

Builds nothing: meson compile -C BUILD compressors. Starling and the others take turns, several
times over, so that whatever else the machine does meets them all alike. A cell is the median of
Starling's turns, of samples that no other tenant of the cores disturbed if there were such
(compressors.c); of the others it is the best turn. All run on one thread, and times are the
processor's; "x 2" is the speed-up by the clock on two threads with half of the vector each. Limits
are computed from what this run measured: encoding cannot be faster than reading what it must (whole
cache lines) and writing the message, at the speed of a sum over the vector; decoding not faster
than reading and writing what it must of the accumulator and reading the message, at the speed of an
axpy. Beside "x 2" stands what the memory allows there, at most 2: the time on one thread over the
limit at the speeds of two. The tables are Markdown (docs/benchmarks.md).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LINE = 16  # elements of a cache line
LEVELS = 7


def ours(program, dimension, repetitions):
    """The lines of one run: the machine's, then one for each codec."""
    ended = subprocess.run(
        [program, str(dimension), str(repetitions)], capture_output=True, text=True
    )
    if ended.returncode != 0:
        sys.exit(f"{program}: exit code {ended.returncode}\n{ended.stderr.strip()}")
    return [json.loads(line) for line in ended.stdout.splitlines()]


def medians(runs):
    """One run's lines with every number replaced by its median over the runs."""

    def middle(values):
        return values[0] if isinstance(values[0], str) else statistics.median(values)

    return [
        {key: middle([line[key] for line in lines]) for key in lines[0]} for lines in zip(*runs)
    ]


def lines_touched(share):
    """Part of the vector's cache lines that hold at least one of the elements, which lie
    anywhere."""
    return 1 - (1 - share) ** LINE


def encode_limit(codec, machine, threads=""):
    if codec["bytes"] == 4 * machine["dimension"]:
        return 0.0  # identity: the vector is its own message
    read = machine["read" + threads]
    reads = codec["reads"] or lines_touched(codec["touched"])
    return reads * read + codec["bytes"] * read / (4 * machine["dimension"])


def decode_limit(codec, machine, threads=""):
    axpy = machine["axpy" + threads]
    return lines_touched(codec["touched"]) * axpy * 8 / 12 + codec["bytes"] * axpy / (
        12 * machine["dimension"]
    )


def speed_up(codec, machine, work, limit):
    """On two threads, and what the memory allows."""
    both = limit(codec, machine, "_2")
    return (
        f"{codec[work + '_1'] / codec[work + '_2']:.2f} | {min(2, codec[work + '_1'] / both):.2f}"
        if both
        else "- | -"
    )


def our_table(machine, codecs):
    print(
        f"Reading the vector takes {machine['read']:.1f} ms (x"
        f" {machine['read_1'] / machine['read_2']:.2f} on two threads), an axpy"
        f" {machine['axpy']:.1f} ms (x {machine['axpy_1'] / machine['axpy_2']:.2f}).\n"
    )
    print(
        "| compressor | bits an element | encode ms | limit | x 2 | allowed | decode, add ms |"
        " limit | x 2 | allowed |"
    )
    print("|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for c in codecs:
        print(
            f"| {c['codec']} | {8 * c['bytes'] / machine['dimension']:.2f} | {c['encode']:.1f} |"
            f" {encode_limit(c, machine):.1f} | {speed_up(c, machine, 'encode', encode_limit)} |"
            f" {c['decode']:.1f} | {decode_limit(c, machine):.1f} |"
            f" {speed_up(c, machine, 'decode', decode_limit)} |"
        )


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


def peer_table(peers, times, codecs):
    print("\n| beside, the best turn | ms | Starling | ms | ratio |\n|:--|--:|:--|--:|--:|")
    encode = {c["codec"]: c["encode"] for c in codecs}
    for name, codec, _ in peers:
        theirs = min(times[name])
        print(
            f"| {name} | {theirs:.1f} | {codec} | {encode[codec]:.1f} |"
            f" {encode[codec] / theirs:.3f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--build",
        default=os.path.join(HERE, "..", "..", "build"),
        help="build folder (default build)",
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=3, help="of Starling in each turn")
    parser.add_argument("--dimension", type=int, default=25_557_032)
    options = parser.parse_args()
    program = os.path.join(options.build, "tests", "bench", "compressors")
    if not os.access(program, os.X_OK):
        sys.exit(f"{program}: not built (meson compile -C BUILD compressors)")

    peers = torch_peers(options.dimension) + numpy_peers(options.dimension)
    times, runs = {name: [] for name, _, _ in peers}, []
    for name, _, encode in peers:
        encode()
    for _ in range(options.turns):
        runs.append(ours(program, options.dimension, options.repetitions))
        for name, _, encode in peers:
            times[name].append(timed(encode))
    machine, *codecs = medians(runs)
    disturbed = statistics.mean(
        value
        for line in (machine, *codecs)
        for key, value in line.items()
        if key.endswith("_disturbed")
    )
    print(
        (
            f"d = {options.dimension:,}, normally distributed; medians of {options.turns} turns,"
            f" {100 * disturbed:.0f} % of the samples disturbed."
        ),
        end=" ",
    )
    our_table(machine, codecs)
    peer_table(peers, times, codecs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
