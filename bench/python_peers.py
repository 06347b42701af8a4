#!/usr/bin/env python3
"""Times Weft's Python package beside MLX's and PyTorch's on a CPU: what calls cost, and how fast operations run.

usage: python_peers.py [--json FILE] [--rounds N]

Peers that are not installed are left out. All frameworks are measured in turn, round by round, each by its best time;
ratios are peer / Weft, so that above 1 Weft is faster. Weft and MLX evaluate each result, PyTorch is eager by itself.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import time

import numpy as np

THREADS = 2


class Framework:
    """One framework: its module, and how results are computed."""

    def __init__(self, name):
        self.name = name
        self.mx = importlib.import_module({"weft": "weft.core", "mlx": "mlx.core", "torch": "torch"}[name])
        if name == "torch":
            self.mx.set_num_threads(THREADS)

    def array(self, values):
        return self.mx.tensor(values) if self.name == "torch" else self.mx.array(values)

    def finish(self, result):
        if self.name != "torch":
            self.mx.eval(result)
        return result


def overheads(f):
    """What calls on two numbers cost, without and with evaluation: name → function."""
    mx = f.mx
    a, b = f.array(np.array([1, 2], np.float32)), f.array(np.array([3, 4], np.float32))
    f.finish(a), f.finish(b)

    def chain(count):
        x = a
        for _ in range(count):
            x = x + b
        return f.finish(x)

    def chain_evaluated(count):
        x = a
        for _ in range(count):
            x = f.finish(x + b)
        return x

    found = {
        "call: a + b": lambda: a + b,
        "call: a * 2": lambda: a * 2.0,
        "call: exp(a)": lambda: mx.exp(a),
        "call: sum(a)": lambda: mx.sum(a),
        "call: reshape": lambda: mx.reshape(a, (2, 1)),
        "call: a[0]": lambda: a[0],
        "evaluated: a + b": lambda: f.finish(a + b),
        "chain of 1000 additions": lambda: chain(1000),
        "100 additions, each evaluated": lambda: chain_evaluated(100),
    }
    if f.name != "torch":
        step = mx.compile(lambda x, y: mx.exp(x) * y + 1)
        found["compiled step"] = lambda: f.finish(step(a, b))
    return found


def operations(f):
    """Representative eager operations on arrays of a million numbers or so: name → function."""
    mx, torch = f.mx, f.name == "torch"
    rng = np.random.default_rng(0)

    def make(*shape):
        x = f.array(rng.standard_normal(shape).astype(np.float32))
        return f.finish(x)

    axis = "dim" if torch else "axis"
    x, y, m = make(1024, 1024), make(1024, 1024), make(512, 512)
    row, image, kernel = make(1024), make(8, 32, 32, 16), make(32, 3, 3, 16)
    index = f.array(rng.integers(0, 1024, 4096))
    batch = make(16, 128, 128)
    if torch:
        image, kernel = image.permute(0, 3, 1, 2), kernel.permute(0, 3, 1, 2)
        convolve = lambda: mx.nn.functional.conv2d(image, kernel)  # noqa: E731
    else:
        convolve = lambda: mx.conv2d(image, kernel)  # noqa: E731
    positive = f.finish(mx.abs(x) + 1)

    def over(name, k, **options):
        return lambda: getattr(mx, name)(x, **{axis: k}, **options)

    named = {name: (lambda g=getattr(mx, name): g(x)) for name in (
        "exp", "tanh", "sin", "cos", "abs", "square", "sigmoid", "erf", "floor", "sign")}
    named |= {f"{name} of positive": (lambda g=getattr(mx, name): g(positive)) for name in ("log", "sqrt", "rsqrt")}
    named |= {name: (lambda g=getattr(mx, name): g(x, y)) for name in (
        "add", "multiply", "divide", "maximum", "arctan2", "matmul")}
    named |= {
        "add a row": lambda: x + row,
        "power 2.5 of positive": lambda: positive**2.5,
        "compare": lambda: x < y,
        "where": lambda: mx.where(x < y, x, y),
        "sum": lambda: mx.sum(x),
        "sum of rows": over("sum", 1),
        "sum of columns": over("sum", 0),
        "mean of rows": over("mean", 1),
        "largest of rows": lambda: mx.amax(x, 1) if torch else mx.max(x, 1),
        "argmax of rows": over("argmax", 1),
        "softmax": over("softmax", 1),
        "logsumexp": over("logsumexp", 1),
        "cumsum": over("cumsum", 1),
        "sort rows": lambda: mx.sort(x, 1),
        "transposed copy": lambda: x.T.contiguous() if torch else mx.contiguous(x.T),
        "concatenate": lambda: mx.cat((x, y), 1) if torch else mx.concatenate((x, y), 1),
        "take rows": lambda: mx.index_select(x, 0, index) if torch else mx.take(x, index, 0),
        "products of a batch": lambda: mx.matmul(batch, batch),
        "small product": lambda: mx.matmul(m, m),
        "convolution": convolve,
        "a slice plus one": lambda: x[::2, 1:] + 1,
    }
    return {name: (lambda g=g: f.finish(g())) for name, g in named.items()}


def best(function, seconds=0.05):
    """The best time of a call in seconds, of some calls that take about so long."""
    function()
    begin = time.perf_counter()
    function()
    once = max(time.perf_counter() - begin, 1e-7)
    count = max(1, min(20000, int(seconds / once)))
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(count):
            function()
        times.append((time.perf_counter() - begin) / count)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    frameworks = []
    for name in ("weft", "mlx", "torch"):
        try:
            frameworks.append(Framework(name))
        except ImportError:
            print(f"{name} is not installed")
    results = {}
    for title, cases in (("overhead", overheads), ("operation", operations)):
        made = {f.name: cases(f) for f in frameworks}
        for case in made["weft"]:
            times = {}
            for _ in range(options.rounds):
                for name, functions in made.items():
                    if case in functions:
                        times[name] = min(times.get(name, math.inf), best(functions[case]))
            results[f"{title}/{case}"] = times
            ratios = "  ".join(f"{n} {t / times['weft']:.2f}" for n, t in times.items() if n != "weft")
            print(f"{case:32} {times['weft'] * 1e6:10.2f} us   {ratios}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
