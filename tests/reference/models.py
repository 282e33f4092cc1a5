#!/usr/bin/env python3
"""Losses and gradients of LeNet-5, ResNet-20, the character models, and of small networks that
together have every kind of layer, by PyTorch in float64, for tests/unit/test_models.c.

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


# ---- small networks: activations are (rows, height, width, channels) ----


def conv2d(k, window, stride=1, padding=0, bias=0, relu=0):
    sides = {"window": window, "stride": stride, "padding": padding}
    return {"kind": "conv2d", "k": k, **sides, "bias": bias, "relu": relu}


def last(k, relu=0):
    return {"kind": "dense", "k": k, "relu": relu}


def each(k, shortcut=0, relu=0):
    return {"kind": "dense", "each": 1, "k": k, "shortcut": shortcut, "relu": relu}


def norm_of(relu=0, shortcut=0):
    return {"kind": "batch norm", "relu": relu, "shortcut": shortcut}


def pool_of(kind, window=0, stride=0):
    return {"kind": kind + " pool", "window": window, "stride": stride}


def embed(symbols, k, bias=0):
    return {"kind": "embedding", "symbols": symbols, "k": k, "bias": bias}


def of(kind, **settings):
    return {"kind": kind, **settings}


NORM, GELU = of("layer norm"), of("gelu")
# Rows, the shape of an input, layers.
TABLES = [
    (3, (2, 3, 4), [last(20, 1), last(3)]),
    (33, (1, 1, 9), [last(20, 1), last(4)]),
    (9, (1, 1, 12), [last(33, 1), last(6, 1), last(18, 1), last(5)]),
    (300, (1, 1, 3), [last(2)]),
    (3, (7, 9, 1), [conv2d(6, 5, 1, 2, 1, 1), conv2d(5, 5, 1, 0, 1, 1), last(3)]),
    (2, (6, 5, 3), [conv2d(16, 3, 1, 1, 0, 1), conv2d(18, 3, 1, 1, 1), last(4)]),
    (2, (8, 8, 4), [conv2d(16, 3, 1, 1, 0, 1), conv2d(16, 3, 1, 1, 0, 1), last(2)]),
    (2, (7, 6, 4), [conv2d(32, 3, 1, 1, 1, 1), conv2d(16, 3, 1, 1, 0, 1), last(2)]),
    (2, (8, 7, 2), [conv2d(9, 3, 2, 1, 0, 1), conv2d(24, 3, 2, 1, 1, 1), last(3)]),
    (2, (9, 11, 2), [conv2d(3, 2, 3, 0, 1, 1), conv2d(7, 2, 1, 1, 1, 1), last(3)]),
    (2, (5, 4, 6), [conv2d(17, 1, 1, 0, 0, 1), conv2d(4, 1, 2, 0, 1, 1), last(3)]),
    (2, (8, 9, 5), [conv2d(11, 3, 1, 1, 1), pool_of("max", 2, 2), pool_of("max", 3, 1), last(3)]),
    (2, (8, 9, 5), [conv2d(11, 3, 1, 1, 1), pool_of("average", 2, 2), pool_of("average"), last(3)]),
    (4, (5, 6, 3), [conv2d(19, 3, 1, 1), norm_of(1), conv2d(8, 3, 1, 1), norm_of(), last(3)]),
    (2, (9, 5, 16), [conv2d(32, 3, 1, 1), conv2d(16, 3, 1, 1), pool_of("max", 2, 2), last(3)]),
    (
        3,
        (6, 6, 3),
        [*[conv2d(16, 3, 1, 1), norm_of(1)] * 2, conv2d(16, 3, 1, 1), norm_of(1, 2), last(3)],
    ),
    (
        3,
        (7, 6, 3),
        [conv2d(10, 3, 1, 1), norm_of(1), conv2d(21, 3, 2, 1), norm_of(1)]
        + [conv2d(21, 3, 1, 1), norm_of(1, 2), last(3)],
    ),
    (
        2,
        (8, 8, 3),
        [conv2d(8, 3, 1, 1), norm_of(1), conv2d(16, 3, 2, 1), norm_of(1, 2)]
        + [pool_of("average"), last(3)],
    ),
    (2, (3, 4, 5), [each(7), each(7, 1), each(3)]),
    (2, (1, 6, 5), [each(16, 0, 1), each(16, 1), last(3)]),
    (3, (1, 7, 1), [embed(5, 6), each(5)]),
    (3, (1, 7, 1), [embed(5, 9, 1), each(9, 1), each(5)]),
    (3, (1, 9, 1), [embed(6, 3), of("lstm", k=5), each(6)]),
    (4, (1, 6, 1), [embed(6, 3), of("lstm", k=16), of("lstm", k=8), each(6)]),
    (2, (1, 1, 4), [of("lstm", k=11), last(3)]),
    (3, (2, 3, 11), [NORM, each(13), NORM, last(3)]),
    (2, (1, 5, 16), [each(24), NORM, each(3)]),
    (2, (1, 9, 4), [each(18), of("attention", heads=2), each(3)]),
    (
        2,
        (1, 17, 4),
        [each(24), of("attention", heads=1), each(24), of("attention", heads=8), each(3)],
    ),
    (2, (1, 3, 7), [each(19), GELU, each(19, 2), GELU, last(4)]),
    (
        2,
        (1, 6, 1),
        [embed(5, 12, 1), NORM, each(36), of("attention", heads=3), each(12, 1), NORM, each(5)],
    ),
]


def channels_first(f, x, *more, **options):
    return f(x.permute(0, 3, 1, 2), *more, **options).permute(0, 2, 3, 1)


def pool_layer(x, layer):
    """As pool() of any windows; without ReLUs before them no two numbers are equal."""
    global margin
    sides = layer["window"] or x.shape[1:3], layer["stride"] or None
    if layer["kind"] == "average pool":
        return channels_first(F.avg_pool2d, x, *sides)
    windows = x.unfold(1, sides[0], sides[1]).unfold(2, sides[0], sides[1]).flatten(4)
    margin = min(margin, windows.topk(2, -1).values.diff().abs().min().item())
    return channels_first(F.max_pool2d, x, *sides)


def causal(x, heads):
    """Softmax attention of (queries, keys, values), side by side in the channels."""
    rows, _, n, width = x.shape
    q, k, v = x.reshape(rows, n, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    fit = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    fit = fit.masked_fill(torch.triu(torch.ones(n, n, dtype=torch.bool), 1), -math.inf)
    return (fit.softmax(-1) @ v).permute(0, 2, 1, 3).reshape(rows, 1, n, width // 3)


def value_of(p, layer, x):
    kind = layer["kind"]
    if kind == "dense":
        return dense(p, x if layer.get("each") else x.flatten(1)[:, None, None], layer["k"])
    if kind == "conv2d":
        options = {"stride": layer["stride"], "padding": layer["padding"]}
        weights = layer["window"], layer["k"], layer["bias"]
        return channels_first(lambda y: conv(p, y, *weights, **options), x)
    if kind == "batch norm":
        return channels_first(lambda y: norm(p, y), x)
    if kind == "layer norm":
        return layer_norm(p, x.flatten(1, 2)).reshape(x.shape)
    if kind == "embedding":
        y = F.embedding(x[..., 0].long(), p.weights(layer["symbols"], layer["k"]))
        return y + p.take((x.shape[2], layer["k"]), 0.1) if layer["bias"] else y
    if kind == "lstm":
        return lstm_layer(p, x[:, 0], layer["k"])[:, None]
    if kind == "attention":
        return causal(x, layer["heads"])
    return F.gelu(x, approximate="tanh") if kind == "gelu" else pool_layer(x, layer)


def network(p, layers, x):
    activations = [x]
    for layer in layers:
        y = value_of(p, layer, activations[-1])
        if layer.get("shortcut"):
            step = 1 if activations[layer["shortcut"]].shape[1] == y.shape[1] else 2
            way = activations[layer["shortcut"]][:, ::step, ::step]
            y = y + F.pad(way, (0, y.shape[3] - way.shape[3]))
        activations.append(relu(y) if layer.get("relu") else y)
    return activations[-1]


def inputs_of(salt, rows, shape, layers):
    x = uniform(rows * math.prod(shape), salt)
    if layers[0]["kind"] == "embedding":
        x = ((x + 1) * layers[0]["symbols"] / 2).floor()
    return x.reshape(rows, *shape)


def table(number, rows):
    global margin
    _, shape, layers = TABLES[number]
    for salt in range(1, 10000):
        margin = math.inf
        x = inputs_of(salt, rows, shape, layers)
        with torch.no_grad():
            z = network(Parameters(), layers, x).flatten(0, 2)
        if margin > MARGIN:
            break
    labels = torch.arange(len(z)) * 7 % z.shape[1]
    said = [{key: value for key, value in layer.items() if value} for layer in layers]
    return describe(
        lambda p: F.cross_entropy(network(p, layers, x).flatten(0, 2), labels),
        f"table {number}",
        salt=salt,
        rows=rows,
        shape=shape,
        layers=said,
    )


# ---- models ----


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
    labels = torch.arange(rows) * 7 % 10
    return describe(lambda p: F.cross_entropy(model(p, x), labels), model.__name__, **shape)


def text(model, rows, sequence, symbols):
    x = ((uniform(rows * sequence, 1) + 1) * symbols / 2).long().reshape(rows, sequence)
    labels = torch.arange(rows * sequence) * 7 % symbols
    shape = dict(salt=1, rows=rows, sequence=sequence, symbols=symbols)
    return describe(
        lambda p: F.cross_entropy(model(p, x, symbols).flatten(0, 1), labels),
        model.__name__,
        **shape,
    )


def describe(loss_of, name, **shape):
    p = Parameters()
    loss = loss_of(p)
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
    return {"model": name, **shape, "loss": loss.item(), "tensors": tensors}


def main():
    results = [
        image(lenet5, 5, 28, 1),
        image(lenet5, 3, 32, 3),
        image(resnet20, 1, 32, 3),
        text(lstm, 3, 20, 65),
        text(transformer, 3, 20, 65),
    ]
    for number, (rows, _, _) in enumerate(TABLES):
        results += [table(number, rows), table(number, 1)]
    print(json.dumps(results).replace('{"count"', '\n{"count"').replace('{"model"', '\n{"model"'))


if __name__ == "__main__":
    main()
