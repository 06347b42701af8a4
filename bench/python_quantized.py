#!/usr/bin/env python3
"""Times products with quantised matrices beside dense ones, and gated delta, through the Python package.

usage: python_quantized.py [--device gpu|cpu] [--rows 1,4,16,128,2048] [--shape N,K] [--bursts N]

x [rows, K] times a weight [N, K] transposed, bfloat16, as a compiled call; a time is the median of bursts of 20 calls.
The error is the largest difference from the product with the dequantised matrix, beside its largest element.
"""

import argparse
import statistics
import time

import weft.core as mx

MODES = [("affine", 4), ("affine", 8), ("affine", 3), ("mxfp4", 4), ("mxfp8", 8), ("nvfp4", 4)]
BURST = 20


def seconds(call, bursts):
    for _ in range(2):
        mx.eval(call())
    mx.synchronize()
    times = []
    for _ in range(bursts):
        begun = time.perf_counter()
        for _ in range(BURST):
            mx.async_eval(call())
        mx.synchronize()
        times.append((time.perf_counter() - begun) / BURST)
    return statistics.median(times)


def products(rows, n, k, bursts):
    for mode, bits in MODES:
        codes = mx.quantize(mx.random.normal((n, k)).astype(mx.bfloat16) * 0.02, bits=bits, mode=mode)
        dense = mx.dequantize(*codes, bits=bits, mode=mode).astype(mx.bfloat16)
        mx.eval(codes, dense)
        size = sum(part.nbytes for part in codes)

        @mx.compile
        def packed(x, *parts, mode=mode, bits=bits):
            return mx.quantized_matmul(x, *parts, *([None] * (3 - len(parts))), transpose=True, bits=bits, mode=mode)

        whole = mx.compile(lambda x, w: x @ w.T)
        for m in rows:
            x = mx.random.normal((m, k)).astype(mx.bfloat16)
            mx.eval(x)
            got, wanted = (y.astype(mx.float32) for y in (packed(x, *codes), whole(x, dense)))
            error = (mx.abs(got - wanted).max() / mx.abs(wanted).max()).item()
            took = seconds(lambda x=x: packed(x, *codes), bursts)
            beside = seconds(lambda x=x: whole(x, dense), bursts)
            print(
                f"{mode:6} {bits} bits  rows {m:5}  {took * 1e6:9.1f} us  {size / took / 1e9:6.0f} GB/s of codes  "
                f"dense {beside * 1e6:9.1f} us  error {error:.1e}",
                flush=True,
            )


def gated_delta(bursts, lengths=(1, 1024, 4096), batch=2, heads=16, width=128):
    for length in lengths:
        q, k, v = (mx.random.normal((batch, length, heads, width)).astype(mx.bfloat16) for _ in range(3))
        k = k / mx.linalg.norm(k.astype(mx.float32), axis=-1, keepdims=True).astype(mx.bfloat16)
        decay, beta = mx.random.uniform(0.9, 1, (batch, length, heads)), mx.random.uniform(0, 1, (batch, length, heads))
        state = mx.zeros((batch, heads, width, width))
        mx.eval(q, k, v, decay, beta, state)
        update = mx.compile(mx.fast.gated_delta_update)
        took = seconds(lambda args=(q, k, v, decay, beta, state): update(*args), bursts)
        print(f"gated delta, {length} tokens: {took * 1e3:.3f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "gpu"), default="gpu")
    parser.add_argument("--rows", default="1,2,4,16,64,128,512,2048")
    parser.add_argument("--shape", default="14336,4096")
    parser.add_argument("--bursts", type=int, default=9)
    args = parser.parse_args()
    if args.device == "gpu" and not mx.cuda.is_available():
        parser.error("there is no GPU here: give --device cpu")
    mx.set_default_device(mx.gpu if args.device == "gpu" else mx.cpu)
    n, k = (int(part) for part in args.shape.split(","))
    products([int(part) for part in args.rows.split(",")], n, k, args.bursts)
    gated_delta(args.bursts, *(() if args.device == "gpu" else ((1, 16), 1, 2, 32)))


if __name__ == "__main__":
    main()
