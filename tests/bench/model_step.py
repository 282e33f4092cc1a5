#!/usr/bin/env python3
"""Starling's training step beside PyTorch's, in turns: batch 32, forward and backward, one thread.

Usage: meson compile -C BUILD model_step, then
       tests/bench/model_step.py [--build BUILD] [--turns N] [MODEL ...]     models: mlp lenet5
       resnet20 lstm transformer (default: all)
Needs PyTorch (Debian: python3-torch). PyTorch's batch lies ready as floats; Starling gathers its
own in the time that is
measured. Of PyTorch's two ways to clear gradients (drop them, or zero them in place) the faster one
counts.
"""
import argparse
import os
import statistics
import subprocess
import time

import torch
from torch import nn
from torch.nn import functional as F

import _bench

# name: multiply-adds for one sample, of the forward pass and of its first layer (whose input needs
# no gradient); image, or characters; steps of PyTorch
MODELS = {
    "mlp": (203_264, 200_704, (784,), 1000),
    "lenet5": (416_520, 117_600, (1, 28, 28), 300),
    "resnet20": (40_551_040, 442_368, (3, 32, 32), 20),
    "lstm": (80 * (4 * 256 * (8 + 3 * 256) + 256 * 65), 0, (80,), 8),
    "transformer": (80 * (4 * (12 * 128**2 + 2 * 80 * 128) + 128 * 65), 0, (80,), 8),
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
    shape = MODELS[name][2]
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
    both = [time_steps(step, model, MODELS[name][3], drop) for drop in (True, False)]
    return min((statistics.median(times), min(times)) for times in both)


def time_starling(program, name):
    ended = subprocess.run([program, name], stdout=subprocess.PIPE, text=True, check=True)
    return tuple(map(float, ended.stdout.split()[1:]))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--build", default=os.path.join(_bench.ROOT, "build"))
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    program = _bench.needed(options.build, "model_step")
    heads = "starling|minimum|pytorch|minimum|ratio|GFLOP/s".split("|")
    _bench.print_heads("model", *heads)
    for name in options.models:
        turns = [(time_starling(program, name), time_pytorch(name)) for _ in range(options.turns)]
        ours, theirs = (statistics.median(turn[i][0] for turn in turns) for i in (0, 1))
        ours_least, theirs_least = (min(turn[i][1] for turn in turns) for i in (0, 1))
        forward, first = MODELS[name][:2]
        # counted as direct sums, whatever the method
        rate = 2 * (3 * forward - first) * 32 / ours_least / 1e6
        times = [f"{ms:.3f}" for ms in (ours, ours_least, theirs, theirs_least)]
        _bench.print_row(name, *times, f"{ours / theirs:.2f}", f"{rate:.1f}")


if __name__ == "__main__":
    main()
