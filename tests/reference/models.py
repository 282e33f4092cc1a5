#!/usr/bin/env python3
"""Losses and gradients of LeNet-5, ResNet-20 and the character models by PyTorch in float64, for
tests/unit/test_models.c.

Run once: tests/reference/models.py > tests/reference/models.json      (Debian: python3-torch)

Parameters, inputs and labels come from a formula that both sides compute, so that the file holds
only results: the loss, and of each tensor's gradient its norm, its product with a pattern, and its
first and last numbers, in Starling's order of numbers. Inputs are drawn so that no ReLU and no pool
is near a change.
"""
import json
import math

import torch
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
SHOWN = 4
# float32 moves what a ReLU or a pool sees by some 1e-6: with this much room none decides otherwise,
# on any processor, and gradients differ by rounding alone.
MARGIN = 4e-5


def uniform(count, salt):
    """Number i of [-1, 1): Knuth's multiplicative hash, mixed; the same in C."""
    i = torch.arange(count, dtype=torch.int64)
    h = (i * 2654435761 + salt * 40503) % 2**32
    h = (h ^ (h >> 15)) * 2246822519 % 2**32
    h = (h ^ (h >> 13)) * 3266489917 % 2**32
    return ((h ^ (h >> 16)).double() / 2**31 - 1).float().double()


class Parameters:
    """Hands out tensors in the flat vector's order; remembers them with the way back to that
    order."""

    def __init__(self):
        self.tensors = []

    def take(self, shape, scale, centre=0.0):
        drawn = uniform(math.prod(shape), 100 + len(self.tensors))
        tensor = (centre + scale * drawn).float().double().reshape(shape).requires_grad_()
        self.tensors.append(tensor)
        return tensor

    def weights(self, *shape):
        return self.take(shape, math.sqrt(6 / math.prod(shape[:-1])))


def conv(p, x, window, outputs, bias=False, **options):
    w = p.weights(window, window, x.shape[1], outputs)
    return F.conv2d(x, w.permute(3, 2, 0, 1), p.take((outputs,), 0.1) if bias else None, **options)


def dense(p, x, outputs):
    return x @ p.weights(x.shape[-1], outputs) + p.take((outputs,), 0.1)


def norm(p, x):
    scale, shift = p.take((x.shape[1],), 0.2, 1.0), p.take((x.shape[1],), 0.2)
    return F.batch_norm(x, None, None, scale, shift, training=True, eps=1e-5)


def flat(x):
    return x.permute(0, 2, 3, 1).flatten(1)


# How far this run's numbers are from where a ReLU or a pool would decide otherwise.
margin = math.inf


def relu(x):
    global margin
    margin = min(margin, x.abs().min().item())
    return F.relu(x)


def pool(x):
    """Of 2 x 2 windows; what is 0 after a ReLU in all of a window has no gradient to pass on."""
    global margin
    windows = x.unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
    first, second = windows.topk(2, -1).values.unbind(-1)
    margin = min(margin, (first - second)[first > 0].min().item())
    return F.max_pool2d(x, 2)


def lenet5(p, x):
    x = pool(relu(conv(p, x, 5, 6, bias=True, padding=2 if x.shape[2] == 28 else 0)))
    x = pool(relu(conv(p, x, 5, 16, bias=True)))
    return dense(p, relu(dense(p, relu(dense(p, flat(x), 120)), 84)), 10)


def resnet20(p, x):
    x = relu(norm(p, conv(p, x, 3, 16, padding=1)))
    for stage in range(3):
        for block in range(3):
            stride = 2 if stage > 0 and block == 0 else 1
            y = relu(norm(p, conv(p, x, 3, 16 << stage, stride=stride, padding=1)))
            y = norm(p, conv(p, y, 3, 16 << stage, padding=1))
            if stride > 1:
                x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, y.shape[1] - x.shape[1]))
            x = relu(x + y)
    return dense(p, x.mean((2, 3)), 10)


def lstm_layer(p, x, units):
    """PyTorch's own, whose second bias is 0 here."""
    w = p.take((x.shape[2], 4 * units), math.sqrt(1.5 / x.shape[2]))
    u = p.take((units, 4 * units), 0.1)
    weights = [w.T, u.T, p.take((4 * units,), 0.1), torch.zeros(4 * units)]
    start = torch.zeros(1, len(x), units)
    flags = dict(has_biases=True, num_layers=1, dropout=0.0, train=True, bidirectional=False)
    return torch.lstm(x, (start, start), weights, **flags, batch_first=True)[0]


def lstm(p, x, symbols):
    x = F.embedding(x, p.weights(symbols, 8))
    return dense(p, lstm_layer(p, lstm_layer(p, x, 256), 256), symbols)


def layer_norm(p, x):
    scale, shift = p.take((x.shape[2],), 0.2, 1.0), p.take((x.shape[2],), 0.2)
    return F.layer_norm(x, (x.shape[2],), scale, shift)


def attention(p, x, heads):
    """PyTorch's own, which wants (positions, rows, channels), True where nothing may be seen, and
    its weights as outputs times inputs."""
    width, x = x.shape[2], x.transpose(0, 1)
    w_in, b_in = p.weights(width, 3 * width), p.take((3 * width,), 0.1)
    w_out, b_out = p.weights(width, width), p.take((width,), 0.1)
    hidden = torch.triu(torch.ones(len(x), len(x), dtype=torch.bool), 1)
    into, out = (w_in.T, b_in, None, None, False, 0.0), (w_out.T, b_out)
    y, _ = F.multi_head_attention_forward(x, x, x, width, heads, *into, *out, attn_mask=hidden)
    return y.transpose(0, 1)


def transformer(p, x, symbols, width=128, heads=4):
    x = F.embedding(x, p.weights(symbols, width)) + p.take((x.shape[1], width), 0.1)
    for _ in range(4):
        x = x + attention(p, layer_norm(p, x), heads)
        x = x + dense(p, F.gelu(dense(p, layer_norm(p, x), 4 * width), approximate="tanh"), width)
    return dense(p, layer_norm(p, x), symbols)


def images(salt, rows, side, channels):
    x = uniform(rows * side * side * channels, salt)
    return x.reshape(rows, side, side, channels).permute(0, 3, 1, 2)


def find_salt(model, *shape):
    """The first whose images decide all by more than rounding may move them."""
    global margin
    for salt in range(1, 10000):
        margin = math.inf
        with torch.no_grad():
            model(Parameters(), images(salt, *shape))
        if margin > MARGIN:
            return salt
    raise SystemExit(f"no salt for {model.__name__} with a margin of {MARGIN}")


def image(model, rows, side, channels):
    salt = find_salt(model, rows, side, channels)
    x = images(salt, rows, side, channels)
    shape = dict(salt=salt, rows=rows, side=side, channels=channels)
    return describe(lambda p: model(p, x), torch.arange(rows) * 7 % 10, model, shape)


def text(model, rows, sequence, symbols):
    x = ((uniform(rows * sequence, 1) + 1) * symbols / 2).long().reshape(rows, sequence)
    labels = torch.arange(rows * sequence) * 7 % symbols
    shape = dict(salt=1, rows=rows, sequence=sequence, symbols=symbols)
    return describe(lambda p: model(p, x, symbols).flatten(0, 1), labels, model, shape)


def describe(outputs, labels, model, shape):
    p = Parameters()
    loss = F.cross_entropy(outputs(p), labels)
    loss.backward()
    tensors = []
    for i, tensor in enumerate(p.tensors):
        g = tensor.grad.flatten()
        tensors.append(
            {
                "count": g.numel(),
                "norm": g.norm().item(),
                "product": (g @ uniform(g.numel(), 1000 + i)).item(),
                "first": g[:SHOWN].tolist(),
                "last": g[-SHOWN:].tolist(),
            }
        )
    return {"model": model.__name__, **shape, "loss": loss.item(), "tensors": tensors}


def main():
    results = [
        image(lenet5, 5, 28, 1),
        image(lenet5, 3, 32, 3),
        image(resnet20, 1, 32, 3),
        text(lstm, 3, 20, 65),
        text(transformer, 3, 20, 65),
    ]
    print(json.dumps(results).replace('{"count"', '\n{"count"').replace('{"model"', '\n{"model"'))


if __name__ == "__main__":
    main()
