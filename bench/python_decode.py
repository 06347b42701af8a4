#!/usr/bin/env python3
"""Times tokens of a small decoder whose KV cache grows by concatenation, in eager Weft beside MLX, on a CPU.

usage: python_decode.py [--tokens N] [--layers N] [--width N] [--json FILE]

Each framework decodes the same tokens in turn. Every token has lengths that were not there before, so this measures
what new shapes cost. `first` is the mean of the first 16 tokens after the prompt, `later` the median of the rest; run
it with WEFT_CACHE_DIR set to an empty folder to see both without code of earlier runs. The tokens must be equal.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time

import numpy as np


class Decoder:
    """A decoder with random weights, written as MLX programs are: lists of arrays, and a cache that grows."""

    def __init__(self, name, layers, width):
        self.mx = mx = importlib.import_module(f"{name}.core")
        if name == "mlx":
            mx.set_default_device(mx.cpu)
        rng = np.random.default_rng(0)

        def make(*shape):
            return mx.array((rng.standard_normal(shape) * 0.04).astype(np.float32))

        shapes = [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]
        self.layers = [[make(*shape) for shape in shapes] for _ in range(layers)]
        self.embedding = make(256, width)
        self.heads = width // 64
        mx.eval(self.layers, self.embedding)
        self.cache = [None] * layers

    def attend(self, h, weights, layer):
        mx, heads = self.mx, self.heads
        batch, length, width = h.shape

        def split(w):
            return (h @ w).reshape(batch, length, heads, 64).transpose(0, 2, 1, 3)

        q, k, v = (split(w) for w in weights[:3])
        past = self.cache[layer]
        offset = past[0].shape[2] if past else 0
        q, k = (mx.fast.rope(x, 64, traditional=False, base=10000.0, scale=1.0, offset=offset) for x in (q, k))
        if past:
            k, v = mx.concatenate([past[0], k], axis=2), mx.concatenate([past[1], v], axis=2)
        self.cache[layer] = (k, v)
        scores = (q * 0.125) @ k.transpose(0, 1, 3, 2)
        if length > 1:
            scores = scores + mx.triu(mx.full((length, length), -1e9), k=1)
        out = mx.softmax(scores, axis=-1) @ v
        return out.transpose(0, 2, 1, 3).reshape(batch, length, width) @ weights[3]

    def step(self, tokens):
        mx = self.mx
        x = self.embedding[tokens]
        for layer, weights in enumerate(self.layers):
            x = x + self.attend(mx.fast.rms_norm(x, None, 1e-5), weights, layer)
            x = x + mx.maximum(mx.fast.rms_norm(x, None, 1e-5) @ weights[4], 0) @ weights[5]
        return mx.argmax(x[:, -1] @ self.embedding.T, axis=-1)

    def decode(self, count):
        """Returns the tokens, and the seconds that each took."""
        tokens, found, seconds = self.mx.array([list(range(1, 13))]), [], []
        for _ in range(count):
            begin = time.perf_counter()
            token = self.step(tokens)
            found.append(token.item())
            seconds.append(time.perf_counter() - begin)
            tokens = token[:, None]
        return found, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--json")
    options = parser.parse_args()
    results, expected = {}, None
    for name in ("weft", "mlx"):
        try:
            decoder = Decoder(name, options.layers, options.width)
        except ImportError:
            print(f"{name} is not installed")
            continue
        tokens, seconds = decoder.decode(options.tokens)
        if expected not in (None, tokens):
            raise SystemExit(f"{name} decodes other tokens")
        expected = tokens
        results[name] = {
            "first": statistics.mean(seconds[1:17]),
            "later": statistics.median(seconds[17:]),
        }
        print(f"{name:6} first {results[name]['first'] * 1e3:8.2f} ms   later {results[name]['later'] * 1e3:8.2f} ms")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
