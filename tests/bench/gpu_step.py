#!/usr/bin/env python3
"""PyTorch's gradient on a GPU, of the models of checkvec --bench, whose lines these stand beside;
for tools/gpu-steps.

Single precision throughout (no TF32), batches that lie on the GPU, the loss read at the end of each
step as Starling's is: the least of the times, after 10 steps, with cuDNN's choice of the fastest
kernels, in the better of torch's two orders of images. Prints one line a model, or one that
says why nothing was measured.

usage: gpu_step.py
"""
import sys

# as checkvec names it, as model_step.py does, samples of a batch
CASES = [
    ("mlp 784-256-10", "mlp", 32),
    ("lenet5", "lenet5", 32),
    ("resnet20", "resnet20", 32),
    ("resnet20", "resnet20", 128),
    ("lstm 2x256, 80 characters", "lstm", 32),
    ("transformer 4x128, 80 char.", "transformer", 32),
]
STEPS = 100


def measure(torch, model_step, name, rows, order):
    samples, labels = (tensor.cuda() for tensor in model_step.samples_of(name, rows))
    model, loss = model_step.build(name).cuda(), torch.nn.CrossEntropyLoss()
    if samples.dim() == 4:
        samples, model = samples.to(memory_format=order), model.to(memory_format=order)

    def step():
        value = loss(model(samples), labels)
        value.backward()
        value.item()
        torch.cuda.synchronize()

    return min(model_step.time_steps(step, model, STEPS))


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
    torch.backends.cudnn.benchmark = True
    orders = torch.contiguous_format, torch.channels_last
    for line, name, rows in CASES:
        ms = min(measure(torch, model_step, name, rows, order) for order in orders)
        print(f"pytorch    gradient of {line:28} batch {rows:3} {ms:10.3f} ms", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
