#!/usr/bin/env python3
"""Starling's training step beside PyTorch's, in turns: forward and backward, batch 32, one thread.

Starling's times are those of checkvec --bench, the least of its runs; of PyTorch's two ways to
clear gradients (drop them, or zero them in place) the faster one counts. Both batches lie ready.

With --gpu PyTorch's alone, for tools/gpu-steps, beside whose lines of checkvec they stand: single
precision throughout (no TF32), the loss read at the end of each step as Starling's is, cuDNN's
choice of the fastest kernels, in the better of torch's two orders of images. One line a model, or
one that says why nothing was measured.

usage: model_step.py [--build BUILD] [--turns N] [MODEL ...] | --gpu     needs python3-torch
"""
import os
import re
import statistics
import subprocess
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as missing:
    print(f"pytorch: not measured: {missing}")
    sys.exit(0)

import _bench

# name: as checkvec names it; multiply-adds for a sample, of the forward pass and its first layer
# (whose input needs no gradient); image, or characters; steps of PyTorch
MODELS = {
    "mlp": ("mlp 784-256-10", 203_264, 200_704, (784,), 1000),
    "lenet5": ("lenet5", 416_520, 117_600, (1, 28, 28), 300),
    "resnet20": ("resnet20", 40_551_040, 442_368, (3, 32, 32), 20),
    "lstm": ("lstm 2x256, 80 characters", 80 * (4 * 256 * (8 + 3 * 256) + 256 * 65), 0, (80,), 8),
    "transformer": (
        "transformer 4x128, 80 char.",
        80 * (4 * (12 * 128**2 + 2 * 80 * 128) + 128 * 65),
        0,
        (80,),
        8,
    ),
}  # attention counted whole, though half is masked
SYMBOLS = 65


class Block(nn.Module):
    """He et al. 2015, two convolutions and a shortcut of option A."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.stride, self.missing = stride, outputs - inputs

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        if self.stride > 1:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.missing))
        return F.relu(y + x)


class CharacterLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.out = (
            nn.Embedding(SYMBOLS, 8),
            nn.LSTM(8, 256, 2, batch_first=True),
            nn.Linear(256, SYMBOLS),
        )

    def forward(self, x):
        return self.out(self.lstm(self.embedding(x))[0]).flatten(0, 1)


class Decoder(nn.Module):
    """One block; attention as PyTorch 1.13 users write it."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.mix, self.wide, self.narrow = (
            nn.Linear(a * width, b * width) for a, b in ((1, 3), (1, 1), (1, 4), (4, 1))
        )
        self.register_buffer("hidden", torch.triu(torch.ones(80, 80, dtype=torch.bool), 1))

    def forward(self, x):
        rows, steps, width = x.shape
        q, k, v = (
            self.qkv(self.norm1(x))
            .view(rows, steps, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        weights = (
            (q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5)
            .masked_fill(self.hidden, float("-inf"))
            .softmax(-1)
        )
        x = x + self.mix((weights @ v).transpose(1, 2).reshape(rows, steps, width))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x)), approximate="tanh"))


class Transformer(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(SYMBOLS, width), nn.Parameter(
            torch.zeros(80, width)
        )
        self.blocks = nn.Sequential(
            *[Decoder(width, 4) for _ in range(4)], nn.LayerNorm(width), nn.Linear(width, SYMBOLS)
        )

    def forward(self, x):
        return self.blocks(self.embedding(x) + self.positions).flatten(0, 1)


def build(name):
    if name == "lstm":
        return CharacterLSTM()
    if name == "transformer":
        return Transformer()
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    if name == "lenet5":
        return nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(400, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, 10),
        )
    blocks = [
        Block(
            16 << max(stage - 1, 0) if block == 0 else 16 << stage,
            16 << stage,
            2 if stage > 0 and block == 0 else 1,
        )
        for stage in range(3)
        for block in range(3)
    ]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def samples_of(name, rows):
    """(samples, labels) of noise"""
    shape = MODELS[name][3]
    torch.manual_seed(1)
    if shape == (80,):
        samples, labels = torch.randint(0, SYMBOLS, (2, rows, 80))
        return samples, labels.flatten()
    return torch.rand(rows, *shape) - 0.5, torch.randint(0, 10, (rows,))


def time_steps(step, model, count, drop=True):
    """Milliseconds of each step, after some that do not count."""
    times = []
    for _ in range(count + count // 10):
        model.zero_grad(set_to_none=drop)
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    return times[count // 10 :]


def time_pytorch(name):
    """Median and minimum in milliseconds."""
    samples, labels = samples_of(name, 32)
    model, loss = build(name), nn.CrossEntropyLoss()
    step = lambda: loss(model(samples), labels).backward()
    both = [time_steps(step, model, MODELS[name][4], drop) for drop in (True, False)]
    return min((statistics.median(times), min(times)) for times in both)


def time_starling(build):
    """Milliseconds of each model's gradient, by checkvec's name for it."""
    program = os.path.join(os.path.abspath(build), "tests", "checkvec")
    said = subprocess.run(
        [program, "--bench", "1000"],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "STARLING_PLUGIN": "/none"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    lines = re.findall(r"^cpu +gradient of (.*?) +batch +32 +([\d.]+) ms", said, re.M)
    return {name: float(ms) for name, ms in lines}


def compare(options):
    torch.set_num_threads(1)
    _bench.print_heads("model", *"starling|minimum|pytorch|minimum|ratio|GFLOP/s".split("|"))
    turns = [
        (time_starling(options.build), {name: time_pytorch(name) for name in options.models})
        for _ in range(options.turns)
    ]
    for name in options.models:
        label, forward, first = MODELS[name][:3]
        ours = [starling[label] for starling, _ in turns]
        median, least = statistics.median(ours), min(ours)
        theirs = statistics.median(pytorch[name][0] for _, pytorch in turns)
        theirs_least = min(pytorch[name][1] for _, pytorch in turns)
        # counted as direct sums, whatever the method
        rate = 2 * (3 * forward - first) * 32 / least / 1e6
        times = [f"{ms:.3f}" for ms in (median, least, theirs, theirs_least)]
        _bench.print_row(name, *times, f"{least / theirs_least:.2f}", f"{rate:.1f}")


# ---- on a GPU ----


def time_on_gpu(name, rows, order):
    samples, labels = (tensor.cuda() for tensor in samples_of(name, rows))
    model, loss = build(name).cuda(), nn.CrossEntropyLoss()
    if samples.dim() == 4:
        samples, model = samples.to(memory_format=order), model.to(memory_format=order)

    def step():
        value = loss(model(samples), labels)
        value.backward()
        value.item()
        torch.cuda.synchronize()

    return min(time_steps(step, model, 100))


def tell_gpu():
    if not torch.cuda.is_available():
        print("pytorch: not measured: this PyTorch finds no GPU")
        return
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    orders = torch.contiguous_format, torch.channels_last
    for name, rows in [*((name, 32) for name in MODELS), ("resnet20", 128)]:
        ms = min(time_on_gpu(name, rows, order) for order in orders)
        what = f"gradient of {MODELS[name][0]:28} batch {rows:3}"
        print(f"pytorch    {what} {ms:10.3f} ms", flush=True)


def main():
    parser = _bench.parser_of(__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--gpu", action="store_true", help="PyTorch's steps on a GPU alone")
    options = parser.parse_args()
    tell_gpu() if options.gpu else compare(options)


if __name__ == "__main__":
    main()
