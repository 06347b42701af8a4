#!/usr/bin/env python3
"""PyTorch's side of `weft bench operations`: each operation of bench/workloads.json in each of PyTorch's modes; one
JSON object a line, with the time of every mode and `ms` of the fastest.

    bench/torch_operations.py                      all operations on the device there is, with its sizes
    bench/torch_operations.py --only softmax cumsum
"""
import argparse

import torch_modes as modes
import torch
from torch import nn
from torch.nn import functional as F

from torch_further_operations import OPERATIONS as FURTHER_OPERATIONS
from torch_text_models import Size, rotated
from workloads import table


class Inputs:
    """Draws the inputs of an operation of the sizes `s`, as Weft's side does (tools/weft/bench/workloads)."""

    def __init__(self, s, device):
        self.s, self.device = s, device
        self.dtype = torch.bfloat16 if s.dtype == "bf16" else torch.float32

    def normal(self, *shape, scale=1.0):
        return (torch.randn(shape, device=self.device) * scale).to(self.dtype)

    def matrix(self):
        return self.normal(self.s.rows, self.s.cols)

    def square(self):
        return self.normal(self.s.n, self.s.n, scale=self.s.n ** -0.5)

    def images(self, shrink=1):
        """Channels last in memory."""
        side = self.s.image // shrink
        return self.normal(self.s.batch, side, side, self.s.channels).permute(0, 3, 1, 2)

    def indices(self, bound):
        return torch.randint(0, bound, (self.s.count,), device=self.device)


def backward_of(function, count):
    """Returns the derivatives by the first `count` inputs; the last input is the result's cotangent."""

    def run(*inputs):
        parameters = [p.detach().requires_grad_() for p in inputs[:count]]
        return torch.autograd.grad(function(*parameters), parameters, inputs[-1])

    return run


def rms_norm(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, 1e-5)


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


def group_norm_of(s):
    return lambda x, weight, bias: F.group_norm(x, s.groups, weight, bias)


def conv(x, w):
    return F.conv2d(x, w, padding=1)


def max_pool_and_gradient(x, slope):
    leaf = x.detach().requires_grad_()
    y = F.max_pool2d(leaf, 2)
    return y.detach(), torch.autograd.grad(y, leaf, slope)[0]


def cross_entropy_and_gradient(x, labels):
    leaf = x.detach().requires_grad_()
    loss = F.cross_entropy(leaf.float(), labels)
    return loss.detach(), torch.autograd.grad(loss, leaf)[0]


def rows(function):
    return lambda i: ((i.matrix(),), function)


def squares(count, function):
    return lambda i: (tuple(i.square() for _ in range(count)), function)


def convolution(function):
    return lambda i: ((i.images(), i.normal(i.s.channels, i.s.channels, 3, 3, scale=0.03).to(
        memory_format=torch.channels_last), i.normal(i.s.channels)), function)


def norm_backward(norm, vectors):
    return lambda i: ((i.matrix(), *(i.normal(i.s.cols) for _ in range(vectors)), i.matrix()),
                      backward_of(norm, 1 + vectors))


def heads(i):
    return i.normal(i.s.batch, i.s.heads, i.s.time, i.s.width)


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


# The operations by the table's names: a function of Inputs that gives the inputs and the function over them.
OPERATIONS = {
    "add_one": rows(lambda x: x + 1),
    "rms_norm": lambda i: ((i.matrix(), i.normal(i.s.cols)), rms_norm),
    "rms_norm_backward": norm_backward(rms_norm, 1),
    "layer_norm_backward": norm_backward(layer_norm, 2),
    "silu_mul": lambda i: ((i.matrix(), i.matrix()), lambda a, b: F.silu(a) * b),
    "softmax": rows(lambda x: F.softmax(x, -1)),
    "gelu": rows(F.gelu),
    "logsumexp": rows(lambda x: torch.logsumexp(x, -1)),
    "argmax": rows(lambda x: x.argmax(-1)),
    "max_columns": rows(lambda x: x.amax(0)),
    "cumsum": rows(lambda x: x.cumsum(1)),
    "std_columns": rows(lambda x: x.std(0, correction=0)),
    "var_all": rows(lambda x: x.var(correction=0)),
    "normalize_columns": rows(lambda x: (x - x.mean(0)) / x.std(0, correction=0)),
    "topk": rows(lambda x: x.topk(8, -1).values),
    "pairwise_distance": lambda i: ((i.matrix(), i.matrix()), torch.cdist),
    "cross_entropy": lambda i: ((i.matrix(), torch.randint(0, i.s.cols, (i.s.rows,), device=i.device)),
                                cross_entropy_and_gradient),
    "dropout": rows(lambda x: F.dropout(x, 0.1)),
    "matmul_silu": squares(2, lambda x, w: F.silu(x @ w)),
    "matmul_relu": squares(2, lambda x, w: F.relu(x @ w)),
    "matmul_bias_residual": lambda i: ((i.square(), i.square(), i.square(), i.normal(i.s.n)),
                                       lambda x, w, residual, bias: x @ w + bias + residual),
    "swiglu": squares(3, lambda x, w, v: F.silu(x @ w) * (x @ v)),
    "matmul_batch": lambda i: (tuple(i.normal(i.s.batch, i.s.n, i.s.n) for _ in range(2)), torch.bmm),
    "matmul_f32_activation": lambda i: ((torch.randn(i.s.rows, i.s.n, device=i.device), i.square()),
                                        lambda x, w: x.to(w.dtype) @ w),
    "matmul_int8_weight": lambda i: ((i.normal(i.s.rows, i.s.n),
                                      torch.randint(-127, 128, (i.s.n, i.s.n), dtype=torch.int8, device=i.device),
                                      i.normal(i.s.n, scale=i.s.n ** -0.5 / 64)),
                                     lambda x, w, scale: x @ (w.to(x.dtype) * scale)),
    "matvec": lambda i: ((i.normal(i.s.n, i.s.n), i.normal(i.s.n)), torch.mv),
    "attention": lambda i: ((heads(i), heads(i), heads(i)), attention),
    "rope": lambda i: ((heads(i),), rotated),
    "conv": convolution(lambda x, w, bias: conv(x, w)),
    "conv_bias_relu": convolution(lambda x, w, bias: F.relu(F.conv2d(x, w, bias, padding=1))),
    "group_norm": lambda i: ((i.images(), i.normal(i.s.channels), i.normal(i.s.channels)), group_norm_of(i.s)),
    "group_norm_backward": lambda i: ((i.images(), i.normal(i.s.channels), i.normal(i.s.channels), i.images()),
                                      backward_of(group_norm_of(i.s), 3)),
    "max_pool": lambda i: ((i.images(), i.images(2)), max_pool_and_gradient),
    "transpose": lambda i: ((i.images(),), lambda x: x.contiguous()),
    "gather_rows": lambda i: ((i.matrix(), i.indices(i.s.rows)), lambda x, at: x[at]),
    "scatter_rows": lambda i: ((i.matrix(), i.indices(i.s.rows), i.normal(i.s.count, i.s.cols)),
                               lambda x, at, values: x.index_add(0, at, values)),
}


def adamw(i):
    """One step of AdamW over many tensors: fused, or torch.compile's."""
    parameters = [nn.Parameter(i.matrix()) for _ in range(i.s.tensors)]
    for p in parameters:
        p.grad = i.matrix()
    optimizers = {"eager": dict(fused=True), "compile": dict(foreach=True)}
    made = {mode: torch.optim.AdamW(parameters, capturable=i.device == "cuda" and mode == "compile", **options)
            for mode, options in optimizers.items()}
    return lambda mode: modes.in_mode(made["eager" if mode == "eager" else "compile"].step, mode)


def eager_additions(each):
    def make(i):
        start, one = torch.zeros(i.s.n, device=i.device), torch.ones(i.s.n, device=i.device)

        def run():
            x = start
            for _ in range(i.s.count):
                x = x + one
                if each:
                    modes.wait(i.device)
            return x

        return lambda mode: run

    return make


def eager_mlp(i):
    layers = [layer for _ in range(i.s.layers) for layer in (nn.Linear(i.s.width, i.s.width), nn.ReLU())]
    net = nn.Sequential(*layers).to(i.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
    x, y = (i.normal(i.s.batch, i.s.width) for _ in range(2))

    def run():
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return lambda mode: run


# Operations of the host, each with its modes: those that are not compiled have one.
HOST_OPERATIONS = {
    "adamw": (adamw, ("eager", "compile")),
    "eager_adds": (eager_additions(False), ("eager",)),
    "eager_eval": (eager_additions(True), ("eager",)),
    "eager_async_eval": (eager_additions(False), ("eager",)),
    "eager_mlp": (eager_mlp, ("eager",)),
}


def maker(kind, inputs):
    """Returns the function of a mode that gives the call to time, the modes, and whether each call is waited for."""
    if kind in HOST_OPERATIONS:
        make, known = HOST_OPERATIONS[kind]
        return make(inputs), known, known == ("eager",)
    arrays, function = (OPERATIONS | FURTHER_OPERATIONS)[kind](inputs)

    def make(mode):
        run = modes.in_mode(function, mode)
        return lambda: run(*arrays)

    return make, modes.modes_on(inputs.device), False


def options():
    parser = argparse.ArgumentParser(description="PyTorch beside `weft bench operations`.")
    modes.add_options(parser)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these rows of the table")
    return parser.parse_args()


def main():
    o = options()
    modes.prepare(o.device, o.threads)
    sizes = o.sizes or ("gpu" if o.device == "cuda" else "cpu")
    for row in table()["operations"]:
        if o.only and row["name"] not in o.only:
            continue
        modes.numerics(row[sizes]["dtype"])
        make, known, waited = maker(row["operation"], Inputs(Size(row[sizes]), o.device))
        wanted = [mode for mode in known if not o.modes or mode in o.modes]
        best = modes.best_of(row["name"], o.device, wanted, make, waited)
        if best:
            modes.say("operations", name=row["name"], dtype=row[sizes]["dtype"], threads=torch.get_num_threads(),
                      **best)


if __name__ == "__main__":
    main()
