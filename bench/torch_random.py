#!/usr/bin/env python3
"""PyTorch's side of `weft bench random`: the graphs that Weft wrote, in each of PyTorch's modes; one JSON object a
line, with the time of every mode and `ms` of the fastest. Results are held against Weft's before anything is timed.

    build/weft bench random --seed 7 --write graphs.jsonl
    bench/torch_random.py graphs.jsonl
"""
import argparse
import json
import math
import sys

import torch_modes as modes
import torch
from torch.nn import functional as F

WORD = (1 << 32) - 1


def axis_of(node):
    return node["attributes"][0]


def scaled_matmul(a, b):
    return a @ b / math.sqrt(a.shape[1])


def heads(node, x):
    count = axis_of(node)
    return x.reshape(x.shape[0], count, -1).transpose(0, 1).reshape(node["shape"])


def half(node, x):
    return x.chunk(2, 1)[axis_of(node)]


# What the operators compute (tools/weft/bench/workloads/random_graph.cpp).
OPERATORS = {
    "tanh": lambda node, x: torch.tanh(x),
    "sigmoid": lambda node, x: torch.sigmoid(x),
    "relu": lambda node, x: F.relu(x),
    "silu": lambda node, x: F.silu(x),
    "gelu": lambda node, x: F.gelu(x),
    "sin": lambda node, x: torch.sin(x),
    "bell": lambda node, x: torch.exp(-x.square()),
    "root": lambda node, x: torch.sqrt(x.abs() + 1),
    "add": lambda node, x, y: x + y,
    "subtract": lambda node, x, y: x - y,
    "multiply": lambda node, x, y: x * torch.tanh(y),
    "maximum": lambda node, x, y: torch.maximum(x, y),
    "where": lambda node, x, y, z: torch.where(x > 0.1, y, z).expand(node["shape"]),
    "mean": lambda node, x: x.mean(axis_of(node), keepdim=True),
    "max": lambda node, x: x.amax(axis_of(node), keepdim=True),
    "min": lambda node, x: x.amin(axis_of(node), keepdim=True),
    "var": lambda node, x: x.var(axis_of(node), correction=0, keepdim=True),
    "logsumexp": lambda node, x: torch.logsumexp(x, axis_of(node), keepdim=True),
    "softmax": lambda node, x: F.softmax(x, axis_of(node)),
    "center": lambda node, x: x - x.mean(axis_of(node), keepdim=True),
    "matmul": lambda node, x, y: scaled_matmul(x, y),
    "matmul_transposed": lambda node, x, y: scaled_matmul(x, y.t()),
    "gather": lambda node, x, at: x[at],
    "transpose": lambda node, x: x.t(),
    "heads": heads,
    "half": half,
}


def hashed_bits(n, node):
    """The draws of Weft's inputs, as numbers of 32 bits in 64."""
    v = (torch.arange(n) + node * 0x9E3779B1 % (1 << 32)) % (1 << 32) * 0x85EBCA6B & WORD
    v = (v ^ (v >> 15)) * 0xC2B2AE35 & WORD
    return v ^ (v >> 13)


def inputs_of(graph, device):
    inputs = []
    for i, node in enumerate(graph["nodes"]):
        if node["inputs"]:
            continue
        bits = hashed_bits(math.prod(node["shape"]), i)
        if node["op"] == "indices":
            inputs.append((bits % axis_of(node)).to(device))
        else:
            inputs.append(((bits >> 8).float() * 2.0**-23 - 1).reshape(node["shape"]).to(device))
    return inputs


def function_of(graph):
    def run(*inputs):
        values, next_input = [], iter(inputs)
        for node in graph["nodes"]:
            read = [values[i] for i in node["inputs"]]
            values.append(OPERATORS[node["op"]](node, *read) if read else next(next_input))
        return [values[i].contiguous() for i in graph["outputs"]]

    return run


def largest_difference(graph, results):
    """Of 16 elements of each result, relative to its mean magnitude."""
    apart = 0.0
    for expected, result in zip(graph["results"], results):
        flat = result.flatten().float().cpu()
        samples = [flat[i * (len(flat) - 1) // 15].item() for i in range(16)]
        scale = max(expected["magnitude"], 1e-3)
        apart = max([apart] + [abs(a - b) / scale for a, b in zip(samples, expected["samples"])])
    return apart


def options():
    parser = argparse.ArgumentParser(description="PyTorch beside `weft bench random`.")
    modes.add_options(parser)
    parser.add_argument("graphs", help="what `weft bench random --write` wrote")
    parser.add_argument("--check", action="store_true", help="hold results against Weft's and measure nothing")
    return parser.parse_args()


def main():
    o = options()
    modes.prepare(o.device, o.threads)
    wrong = []
    with open(o.graphs, encoding="utf-8") as file:
        graphs = [json.loads(line) for line in file]
    for graph in graphs:
        inputs, function = inputs_of(graph, o.device), function_of(graph)
        apart = largest_difference(graph, function(*inputs))
        if apart > 1e-3:
            wrong.append(f"{graph['name']} ({apart:.3g})")
        if o.check:
            continue

        def make(mode):
            run = modes.in_mode(function, mode)
            return lambda: run(*inputs)

        best = modes.best_of(graph["name"], o.device, o.modes or modes.modes_on(o.device), make)
        if best:
            modes.say("random", name=graph["name"], dtype="float32", threads=torch.get_num_threads(), **best)
    if wrong:
        sys.exit(f"results differ from Weft's: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
