"""PyTorch's time for what mlp_step.c times: MLP 784-256-10, batch 32, forward and backward on one thread.

The batch lies ready as floats, so that PyTorch is spared the gathering. Of its two ways to clear gradients
(drop them, or zero them in place) the faster one's times are printed: "pytorch MEDIAN MIN" in milliseconds.
"""
import statistics
import time

import torch

WARM_UP, STEPS = 300, 3000

torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
loss = torch.nn.CrossEntropyLoss()
images = torch.rand(32, 784) - 0.17
labels = torch.randint(0, 10, (32,))


def steps(drop):
    times = []
    for _ in range(WARM_UP + STEPS):
        model.zero_grad(set_to_none=drop)
        start = time.perf_counter()
        loss(model(images), labels).backward()
        times.append(1e3 * (time.perf_counter() - start))
    return times[WARM_UP:]


best = min((steps(drop) for drop in (True, False)), key=statistics.median)
print(f"pytorch {statistics.median(best):.4f} {min(best):.4f}")
