#!/usr/bin/env python3
"""PyTorch's gradient on a GPU, of the models of checkvec --bench, whose lines these stand beside;
for tools/gpu-check.

Single precision throughout (no TF32), batches that lie on the GPU, the loss read at the end of each
step as Starling's is: the least of the times, after 10 steps. Prints one line a model, or one that
says why nothing was measured.

usage: gpu_step.py
"""
import sys
import time

# as checkvec names it, as model_step.py does, samples of a batch
CASES = [
    ("mlp 784-256-10", "mlp", 32),
    ("lenet5", "lenet5", 32),
    ("resnet20", "resnet20", 32),
    ("resnet20", "resnet20", 128),
    ("lstm 2x256, 80 characters", "lstm", 32),
    ("transformer 4x128, 80 char.", "transformer", 32),
]
STEPS, WARM_UP = 100, 10


def measure(torch, model_step, name, rows):
    shape = model_step.MODELS[name][2]
    torch.manual_seed(1)
    model, loss = model_step.build(name).cuda(), torch.nn.CrossEntropyLoss()
    if shape == (80,):
        samples, labels = torch.randint(0, model_step.SYMBOLS, (2, rows, 80))
    else:
        samples, labels = torch.rand(rows, *shape) - 0.5, torch.randint(0, 10, (rows,))
    samples, labels = samples.cuda(), labels.flatten().cuda()
    least = float("inf")
    for step in range(WARM_UP + STEPS):
        model.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        start = time.perf_counter()
        value = loss(model(samples), labels)
        value.backward()
        value.item()
        torch.cuda.synchronize()
        if step >= WARM_UP:
            least = min(least, time.perf_counter() - start)
    return 1e3 * least


def main():
    try:
        import torch
        import model_step
    except ImportError as missing:
        print(f"pytorch: not measured: {missing}")
        return 0
    if not torch.cuda.is_available():
        print("pytorch: not measured: this PyTorch finds no GPU")
        return 0
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for line, name, rows in CASES:
        print(
            (
                f"pytorch    gradient of {line:28} batch"
                f" {rows:3} {measure(torch, model_step, name, rows):10.3f} ms"
            ),
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
