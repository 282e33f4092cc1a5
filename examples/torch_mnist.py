#!/usr/bin/env python3
"""A convolutional network on MNIST, trained by four peers. Lines that end with `# starling` are
what makes a plain script gossip.

    torchrun --nproc_per_node 4 torch_mnist.py FOLDER [EPOCHS]      or, without a launcher:
    for rank in 0 1 2 3; do
        RANK=$rank WORLD_SIZE=4 MASTER_ADDR=localhost python3 torch_mnist.py FOLDER & done; wait

FOLDER has MNIST's four IDX files, with .gz or without. Each process trains on its share.
"""

import gzip
import os
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import starling  # starling

RANK, SIZE = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
BATCH, ACCUMULATED, RATE, LONGEST_GRADIENT = 32, 2, 2e-3, 1.0


def read(folder, name, skipped):
    path = os.path.join(folder, name)
    with gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb") as file:
        return np.frombuffer(file.read(), np.uint8)[skipped:]


def load(folder, part):
    images = torch.tensor(read(folder, part + "-images-idx3-ubyte", 16)).view(-1, 1, 28, 28)
    labels = torch.tensor(read(folder, part + "-labels-idx1-ubyte", 8))
    return TensorDataset(images / 255.0 - 0.5, labels.long())


def network():
    torch.manual_seed(1)
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 5, stride=2), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 32, 5, stride=2), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10)),
    )


def accuracy(model, data):
    model.eval()
    with torch.no_grad():
        right = [(model(x).argmax(1) == y).sum().item() for x, y in DataLoader(data, 1000)]
    return sum(right) / len(data)


def main():
    folder, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    torch.set_num_threads(1)
    train = load(folder, "train")
    mine = torch.utils.data.Subset(train, range(RANK, len(train), SIZE))
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    steps = epochs * (len(mine) // (BATCH * ACCUMULATED))
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2 * RATE, steps + 1)
    peer = starling.join({"topology": {"family": "ring"}, "algorithm": "d-psgd"}, model)  # starling
    peer.attach(optimizer)  # starling
    for epoch in range(epochs):
        model.train()
        for i, (images, labels) in enumerate(DataLoader(mine, BATCH, shuffle=True, drop_last=True)):
            loss = nn.functional.cross_entropy(model(images), labels)
            (loss / ACCUMULATED).backward()
            if i % ACCUMULATED == ACCUMULATED - 1:
                nn.utils.clip_grad_norm_(model.parameters(), LONGEST_GRADIENT)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        print(f"rank {RANK}, epoch {epoch + 1}: loss {loss.item():.3f}", flush=True)
    model.load_state_dict(peer.average())  # starling
    peer.leave()  # starling
    if RANK == 0:
        print(f"accuracy {accuracy(model, load(folder, 't10k')):.4f}")


if __name__ == "__main__":
    main()
