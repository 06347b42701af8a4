#!/usr/bin/env python3
"""PyTorch's side of `weft bench mnist` and of `weft train mnist`.

    taskset -c 0,1 python3 bench/torch_mnist.py      times of a step, eager and torch.compile, one JSON object a line
    python3 bench/torch_mnist.py --curve build/weft --data DIR
                                                     trains with both from the same weights on the same batches, and
                                                     compares losses
    python3 bench/torch_mnist.py --curve build/weft --data DIR --print
                                                     PyTorch's losses alone, as numbers

The model is models/mnist.h: two blocks of convolution, batch norm without running statistics, relu and pooling, then
two linear layers; plain SGD.
"""
import argparse
import gzip
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Mnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32, track_running_stats=False)
        self.c2, self.b2 = nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64, track_running_stats=False)
        self.f1, self.f2 = nn.Linear(64 * 49, 128), nn.Linear(128, 10)

    def forward(self, x, y):
        x = F.max_pool2d(F.relu(self.b1(self.c1(x))), 2)
        x = F.max_pool2d(F.relu(self.b2(self.c2(x))), 2)
        return F.cross_entropy(self.f2(F.relu(self.f1(x.flatten(1)))), y)


def time_steps(threads, reps):
    for batch in (64, 256):
        for mode in ("eager", "compile"):
            torch._dynamo.reset()
            torch.manual_seed(0)
            model = Mnist()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            run = torch.compile(model) if mode == "compile" else model
            x, y = torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))

            def step():
                run(x, y).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

            start = time.perf_counter()
            step()
            first = time.perf_counter() - start
            for _ in range(2):
                step()
            times = []
            for _ in range(reps):
                start = time.perf_counter()
                step()
                times.append((time.perf_counter() - start) * 1e3)
            print(json.dumps({"bench": "cpu_mnist_step", "peer": "torch", "mode": mode, "B": batch,
                              "ms": round(statistics.median(times), 3),
                              "threads": threads, "first_step_s": round(first, 3)}), flush=True)


# The order of weft's batches (src/data/images.cpp): SplitMix64 as a counter, and a Feistel network over the indices.
MASK = (1 << 64) - 1


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def bits(seed, counter):
    golden = 0x9E3779B97F4A7C15
    return mix((mix((seed + golden) & MASK) + golden * (counter + 1)) & MASK)


def shuffled(seed, epoch, first, count, size):
    key, half = bits(seed, epoch), 1
    while 1 << (2 * half) < size:
        half += 1
    mask, out = (1 << half) - 1, []
    for x in range(first, first + count):
        while True:
            left, right = x >> half, x & mask
            for turn in range(4):
                left, right = right, left ^ (bits(key, turn << 32 | right) & mask)
            x = left << half | right
            if x < size:
                break
        out.append(x)
    return out


def idx(folder, name):
    for end in ("", ".gz"):
        path = os.path.join(folder, name + end)
        if os.path.exists(path):
            data = (gzip.open if end else open)(path, "rb").read()
            axes = data[3]
            shape = struct.unpack(f">{axes}I", data[4:4 + 4 * axes])
            return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)
    sys.exit(f"{folder} lacks {name}")


def safetensors(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = np.frombuffer(data[8 + length + begin:8 + length + end], np.float32)
            out[name] = values.reshape(entry["shape"]).copy()
    return out


def torch_losses(weights, images, labels, batch, lr, seed, steps, device):
    model = Mnist()
    for name in ("c1.weight", "c2.weight"):
        weights[name] = weights[name].transpose(0, 3, 1, 2).copy()  # channels last to channels first
    weights["f1.weight"] = weights["f1.weight"].reshape(128, 7, 7, 64).transpose(0, 3, 1, 2).reshape(128, -1).copy()
    model.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    per_epoch, losses = len(images) // batch, []
    for step in range(steps):
        which = shuffled(seed, step // per_epoch, step % per_epoch * batch, batch, len(images))
        x = torch.tensor(images[which], dtype=torch.float32)[:, None] / 255
        y = torch.tensor(labels[which], dtype=torch.int64)
        loss = model(x.to(device), y.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return losses


def compare(args):
    images, labels = idx(args.data, "train-images-idx3-ubyte"), idx(args.data, "train-labels-idx1-ubyte")
    common = [args.curve, "train", "mnist", "--data", args.data, "--batch", str(args.batch), "--lr", str(args.lr),
              "--seed", str(args.seed), "--json"]
    device = "cuda" if args.device == "gpu" else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32
    common += ["--device", args.device] + ["--tf32"] * args.tf32
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(common + ["--epochs", "0", "--out", folder + "/start"], check=True, capture_output=True)
        theirs = torch_losses(safetensors(folder + "/start/step-0/model.safetensors"), images, labels, args.batch,
                              args.lr, args.seed, args.steps, device)
        if args.print:
            print(", ".join(f"{loss:.6f}f" for loss in theirs))
            return
        run = subprocess.Popen(common + ["--epochs", "1000", "--out", folder + "/run"], stdout=subprocess.PIPE,
                               text=True)
        ours = []
        for line in run.stdout:
            ours.append(json.loads(line)["loss"])
            if len(ours) == args.steps:
                break
        run.terminate()
        run.wait()
    for step in range(0, args.steps, 10):
        print(f"step {step + 1:4}  weft {ours[step]:.6f}  torch {theirs[step]:.6f}")
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    print(f"largest difference of {args.steps} steps: {worst:.2e}")
    sys.exit(worst > (1e-2 if args.tf32 else 1e-3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--reps", type=int, default=30)
    parser.add_argument("--curve", metavar="WEFT", help="the weft program: compare loss curves")
    parser.add_argument("--data", help="folder with MNIST's idx files")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="of the curves")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--print", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.curve:
        compare(arguments)
    else:
        time_steps(arguments.threads, arguments.reps)


if __name__ == "__main__":
    main()
