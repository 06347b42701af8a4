#!/usr/bin/env python3
"""Triton's side of `weft bench tutorials`: its tutorials' own kernels at the same sizes, one JSON object a line.

    bench/triton_tutorials.py FOLDER [NAME]     FOLDER: python/tutorials of a checkout of Triton; NAME: part of a case

The tutorials run their comparisons and benchmarks where they are imported, so their statements are run one by one here,
without the benchmarks. Where a tutorial has several kernels for one job (with and without tensor descriptors), the
fastest counts. Times are medians over captured graphs, as Weft's are.
"""
import ast
import contextlib
import json
import math
import pathlib
import sys

import torch
import triton

DEVICE = "cuda"


def names_of(path):
    """Runs a tutorial's statements but for its benchmarks, and returns what they define."""
    space = {"__name__": path.stem, "__file__": str(path)}
    for node in ast.parse(path.read_text(), str(path)).body:
        text = ast.unparse(node)
        if ".run(" in text.split("\n")[-1] or "perf_report" in text or "__name__" in text:
            continue
        with contextlib.redirect_stdout(sys.stderr):
            try:
                exec(compile(ast.Module([node], []), str(path), "exec"), space)
            except Exception as error:  # a comparison that this GPU or version cannot have; what is missed fails below
                print(f"{path.name}:{node.lineno}: {error}", file=sys.stderr)
    return space


def drawn(*shape, dtype=torch.float16):
    return torch.randn(*shape, device=DEVICE).to(dtype)


def cases(folder):
    """Yields a case's name, its dtype, and functions that return what to time."""
    def tutorial(number):
        return names_of(next(pathlib.Path(folder).glob(f"{number:02}-*.py")))

    f32 = torch.float32
    one = tutorial(1)
    x, y = drawn(1 << 27, dtype=f32), drawn(1 << 27, dtype=f32)
    yield "vector add", "float32", [lambda: one["add"](x, y)]
    two = tutorial(2)
    for columns in (1024, 8192):
        rows = drawn(4096, columns, dtype=f32)
        yield f"fused softmax 4096 x {columns}", "float32", [lambda: two["softmax"](rows)]
    three, nine = tutorial(3), tutorial(9)
    a, b = drawn(4096, 4096), drawn(4096, 4096)
    yield "matmul 4096 x 4096 x 4096", "float16", [lambda: three["matmul"](a, b)]
    e5m2 = torch.float8_e5m2
    a8, b8 = a.to(e5m2), b.T.contiguous().to(e5m2).T
    yield "matmul 4096 x 4096 x 4096, 8 bits", "float8_e5m2", [lambda: three["matmul"](a8, b8)]
    wide, flat = drawn(8192, 512), drawn(512, 8192)
    turned = flat.T.contiguous()
    yield "persistent matmul 8192 x 8192 x 512", "float16", [
        lambda: nine["matmul_persistent"](wide, flat),
        lambda: nine["matmul_tma_persistent"](wide, turned, False),
        lambda: nine["matmul_tma_persistent"](wide, turned, True)]
    four = tutorial(4)
    z = drawn(1 << 26, dtype=f32)
    yield "low-memory dropout", "float32", [lambda: four["seeded_dropout"](z, p=0.5, seed=123)]
    five = tutorial(5)
    for columns in (4096, 8192):
        rows = drawn(4096, columns).requires_grad_()
        weight, bias = drawn(columns).requires_grad_(), drawn(columns).requires_grad_()
        norm = lambda: five["layer_norm"](rows, (columns,), weight, bias, 1e-5)
        yield f"layer norm 4096 x {columns}", "float16", [norm]
        yield f"layer norm 4096 x {columns}, backward", "float16", [backward(norm, rows, weight, bias)]
    six = tutorial(6)
    for width, causal, both in ((64, True, True), (128, True, True), (128, False, False)):
        q, k, v = (drawn(4, 32, 4096, width).requires_grad_() for _ in range(3))
        scale = 1 / math.sqrt(width)
        name = f"attention 128 x 4096 x {width}" + (", causal" if causal else "")
        attend = [lambda w=w: six["attention"](q, k, v, causal, scale, w) for w in (False, True)]
        yield name, "float16", attend
        if both:
            yield name + ", backward", "float16", [backward(attend[0], q, k, v)]
    seven = tutorial(7)
    inside, out = torch.rand(1 << 26, device=DEVICE) * 2 - 1, torch.empty(1 << 26, device=DEVICE)
    grid = (triton.cdiv(1 << 26, 1024),)
    yield "asin", "float32", [lambda: seven["asin_kernel"][grid](inside, out, 1 << 26, BLOCK_SIZE=1024)]
    eight = tutorial(8)
    yield "grouped matmul 4 x 1024", "float16", grouped(eight, 4, 1024)


def backward(forward, *inputs):
    """Returns the backward pass alone, of a forward pass that is done."""
    made = forward()
    cotangent = torch.randn_like(made)
    return lambda: torch.autograd.grad(made, inputs, cotangent, retain_graph=True)


def grouped(space, groups, n):
    """Returns the tutorial's kernels of grouped products on arrays and addresses that are there."""
    a, b, c = ([drawn(n, n) for _ in range(groups)] for _ in range(3))
    turned = [x.T.contiguous() for x in b]
    addresses = [torch.tensor([x.data_ptr() for x in m], device=DEVICE) for m in (a, b, turned, c)]
    numbers = torch.tensor([n] * 3 * groups, dtype=torch.int32, device=DEVICE)
    plain = lambda: space["triton_perf_fn"](addresses[0], addresses[1], addresses[3], numbers, numbers, groups)
    if "triton_tma_perf_fn" not in space:
        return [plain]
    boxes = lambda: space["triton_tma_perf_fn"](addresses[0], addresses[2], addresses[3], numbers, numbers, groups,
                                                dtype=torch.float16)
    return [plain, boxes]


def ms_of(call, stream, runs=20):
    """Returns the median time of a call in milliseconds, of graphs of `runs` calls: the host has no part in it."""
    for _ in range(3):
        call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(runs):
            call()
    times = []
    for _ in range(9):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / runs)
    return sorted(times)[4]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    absent = [f"{n:02}-*.py" for n in range(1, 10) if not list(pathlib.Path(sys.argv[1]).glob(f"{n:02}-*.py"))]
    if absent:
        sys.exit(f"{sys.argv[1]} has no {', '.join(absent)}: give python/tutorials of a checkout of Triton")
    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)  # a backward pass runs in the stream of its forward pass: the captured one
    for name, dtype, calls in cases(sys.argv[1]):
        if wanted not in name:
            continue
        times = []
        for call in calls:
            try:
                times.append(ms_of(call, stream))
            except Exception as error:
                print(f"{name}: {str(error)[:300]}", file=sys.stderr)
        if times:
            print(json.dumps({"bench": "tutorials", "peer": "triton", "dtype": dtype, "name": name,
                              "ms": round(min(times), 5), "triton": triton.__version__}), flush=True)


if __name__ == "__main__":
    main()
