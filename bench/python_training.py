#!/usr/bin/env python3
"""Times training steps that are written in Python: GPT-2 and the MNIST network, the work of `weft bench gpu-gpt2-b8`,
`gpu-mnist` and `mnist`, which are the same steps in C++.

usage: python_training.py {gpt2,mnist} [--device cpu|gpu] [--batch N] [--repeats N] [--json FILE]

Each step is one compiled function that updates the state of model and optimizer in place. The loss of GPT-2's step is
read by the host, as in C++. Times are medians of bursts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from functools import partial

import numpy as np

import weft.core as mx
from weft import nn, optimizers as optim


def linear(layer, x):
    """A linear layer in the dtype of x, whatever that of its weight is."""
    return x @ layer.weight.astype(x.dtype).T + layer.bias.astype(x.dtype)


class Block(nn.Module):
    """A block of GPT-2: attention and MLP, each after a norm; products in bfloat16, the residual stream in float32."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x):
        batch, length, width = x.shape
        qkv = linear(self.c_attn, self.ln_1(x).astype(mx.bfloat16)).reshape(batch, length, 3, self.heads, -1)
        q, k, v = (qkv[:, :, n].transpose(0, 2, 1, 3) for n in range(3))
        out = mx.fast.scaled_dot_product_attention(q, k, v, scale=(width // self.heads) ** -0.5, mask="causal")
        x = x + linear(self.c_out, out.transpose(0, 2, 1, 3).reshape(batch, length, width)).astype(x.dtype)
        hidden = nn.gelu_approx(linear(self.c_fc, self.ln_2(x).astype(mx.bfloat16)))
        return x + linear(self.c_proj, hidden).astype(x.dtype)


class Gpt(nn.Module):
    """GPT-2 124M with a vocabulary of 50304; the head is the token embedding."""

    def __init__(self, vocab=50304, context=1024, layers=12, heads=12, width=768):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.h = [Block(width, heads) for _ in range(layers)]
        self.ln_f = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                module.weight = mx.random.normal(module.weight.shape) * 0.02

    def __call__(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        for block in self.h:
            x = block(x)
        return self.ln_f(x).astype(mx.bfloat16) @ self.wte.weight.astype(mx.bfloat16).T

    def loss(self, ids, targets):
        return nn.losses.cross_entropy(self(ids), targets, reduction="mean")


class Mnist(nn.Module):
    """Two blocks of convolution, batch norm, relu and pooling, then two linear layers."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.b1, self.b2 = (nn.BatchNorm(n, track_running_stats=False) for n in (32, 64))
        self.f1, self.f2 = nn.Linear(3136, 128), nn.Linear(128, 10)
        self.pool = nn.MaxPool2d(2, 2)

    def loss(self, images, labels):
        x = nn.relu(self.pool(self.b1(self.c1(images))))
        x = nn.relu(self.pool(self.b2(self.c2(x))))
        x = self.f2(nn.relu(self.f1(x.reshape(x.shape[0], -1))))
        return nn.losses.cross_entropy(x, labels, reduction="mean")


def compiled_step(model, optimizer, clip=0.0):
    state = [model.state, optimizer.state]
    loss_and_grad = nn.value_and_grad(model, lambda *batch: model.loss(*batch))

    @partial(mx.compile, inputs=state, outputs=state)
    def step(*batch):
        loss, grads = loss_and_grad(*batch)
        if clip > 0:
            grads, _ = optim.clip_grad_norm(grads, clip)
        optimizer.update(model, grads)
        return loss

    return step, state


def milliseconds(repeats, burst, run):
    """The median over bursts of the time of a run; each burst ends when the device is done."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(burst):
            run()
        mx.synchronize()
        times.append((time.perf_counter() - begin) / burst * 1e3)
    return statistics.median(times)


def gpt2(options):
    model = Gpt()
    rate = {"learning_rate": 6e-4, "bias_correction": True}
    optimizer = optim.MultiOptimizer(
        [optim.AdamW(weight_decay=0.1, **rate), optim.AdamW(weight_decay=0.0, **rate)],
        [lambda _, weight: weight.ndim >= 2],
    )
    optimizer.init(model.trainable_parameters())
    step, state = compiled_step(model, optimizer, 1.0)
    ids = mx.random.randint(0, 50257, (options.batch, 1025))
    x, y = mx.contiguous(ids[:, :-1]), mx.contiguous(ids[:, 1:])
    mx.eval(state, x, y)
    losses = []

    def run():
        loss = step(x, y)
        mx.eval(state, loss)
        losses.append(loss.item())

    for _ in range(4):
        run()
    ms = milliseconds(options.repeats, 1, run)
    return {"case": "gpt2_train", "B": options.batch, "ms": ms, "tok_s": options.batch * 1024 / ms * 1e3,
            "loss": losses[-1], "peak_GiB": mx.get_peak_memory() / 2**30}


def mnist(options):
    model = Mnist()
    optimizer = optim.SGD(learning_rate=0.01)
    optimizer.init(model.trainable_parameters())
    step, state = compiled_step(model, optimizer)
    rng = np.random.default_rng(0)
    images = rng.standard_normal((options.batch, 28, 28, 1)).astype(np.float32)
    labels = rng.integers(0, 10, options.batch).astype(np.int32)
    mx.eval(state)
    held = mx.array(images), mx.array(labels)
    mx.eval(held)

    def run():
        # On a GPU each step brings its batch from the host, as in C++.
        batch = held if options.device == "cpu" else (mx.array(images), mx.array(labels))
        loss = step(*batch)
        if options.device == "cpu":
            mx.eval(state, loss)
            loss.item()
        else:
            mx.async_eval(state, loss)

    for _ in range(20):
        run()
    ms = milliseconds(options.repeats, 1 if options.device == "cpu" else 20, run)
    return {"case": "mnist_step", "B": options.batch, "ms": ms}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("case", choices=("gpt2", "mnist"))
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json")
    options = parser.parse_args()
    options.batch = options.batch or (8 if options.case == "gpt2" else 64)
    mx.set_default_device(mx.gpu if options.device == "gpu" else mx.cpu)
    mx.random.seed(0)
    row = {"gpt2": gpt2, "mnist": mnist}[options.case](options)
    print(json.dumps(row), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(row, file)


if __name__ == "__main__":
    main()
