#!/usr/bin/env python3
"""What PyTorch makes of `weft train gpt`: the same model, batches, optimizer and schedule, for comparison. Needs
PyTorch and nothing else.

    bench/torch_gpt.py --data text.txt                train; one JSON object a step, then the whole-validation loss
    bench/torch_gpt.py --data text.txt --weights model.safetensors    the same from weights that weft wrote
    bench/torch_gpt.py --data text.txt --time eager   median time of a step; or --time compile
    bench/torch_gpt.py --vocab 50304 --time eager     the same on random tokens, as `weft bench` does
    bench/torch_gpt.py --data text.txt --weights model.safetensors --device cuda --compare losses.jsonl
                                                      train, and hold the losses against those that `weft train gpt
                                                      --json` printed

Options and their defaults are those of `weft train gpt`. Batch number k of a seed is the same as weft's; --batches
names a file with other ones: one JSON list of window starts a line, one line a step.
"""
import argparse
import json
import math
import statistics
import struct
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    """SplitMix64's finaliser (Steele, Lea and Flood 2014), as weft::data::CounterRandom has it."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & WORD
    return z ^ (z >> 31)


def draw_below(seed, counter, n):
    """A number in [0, n) as a function of (seed, counter)."""
    return mix((mix((seed + GOLDEN) & WORD) + GOLDEN * (counter + 1)) & WORD) * n >> 64


def read_safetensors(path):
    """Tensors by name. The file is an 8-byte length, a JSON header, and the data."""
    kinds = {"F32": torch.float32, "F64": torch.float64, "BF16": torch.bfloat16, "F16": torch.float16,
             "I32": torch.int32, "I64": torch.int64}
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__" or entry["dtype"] not in kinds:
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]),
                                         dtype=kinds[entry["dtype"]]).reshape(entry["shape"])
    return tensors


class Attention(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.heads, self.dropout, self.attention_dropout = o.heads, o.dropout, o.dropout
        self.c_attn = nn.Linear(o.width, 3 * o.width, bias=o.bias)
        self.c_proj = nn.Linear(o.width, o.width, bias=o.bias)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.c_attn(x).split(width, dim=2))
        dropout = self.attention_dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return F.dropout(self.c_proj(y.transpose(1, 2).reshape(batch, length, width)), self.dropout, self.training)


class Mlp(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.dropout = o.dropout
        self.c_fc = nn.Linear(o.width, 4 * o.width, bias=o.bias)
        self.c_proj = nn.Linear(4 * o.width, o.width, bias=o.bias)

    def forward(self, x):
        return F.dropout(self.c_proj(F.gelu(self.c_fc(x), approximate="tanh")), self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(o.width, bias=o.bias), Attention(o)
        self.ln_2, self.mlp = nn.LayerNorm(o.width, bias=o.bias), Mlp(o)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """GPT-2 in nanoGPT's form, the head tied to the token embedding."""

    def __init__(self, o, vocab):
        super().__init__()
        self.dropout = o.dropout
        self.wte, self.wpe = nn.Embedding(vocab, o.width), nn.Embedding(o.context, o.width)
        self.h = nn.ModuleList(Block(o) for _ in range(o.layers))
        self.ln_f = nn.LayerNorm(o.width, bias=o.bias)
        for name, p in self.named_parameters():
            if p.dim() >= 2:
                nn.init.normal_(p, 0, 0.02 / math.sqrt(2 * o.layers) if name.endswith("c_proj.weight") else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids, targets, reduction="mean"):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        x = F.dropout(x, self.dropout, self.training)
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction=reduction)


def read_tokens(o):
    """The characters of a file as numbers in the order of their code points, or random numbers; and how many kinds
    there are."""
    if not o.data:
        return torch.tensor([draw_below(0, i, o.vocab) for i in range(100_000)]), o.vocab
    with open(o.data, encoding="utf-8", newline="") as file:
        text = file.read()
    numbers = {c: i for i, c in enumerate(sorted(set(text)))}
    return torch.tensor([numbers[c] for c in text]), o.vocab or len(numbers)


class Text:
    """A row of tokens, of which the last tenth validates."""

    def __init__(self, o):
        ids, self.vocab = read_tokens(o)
        cut = int(len(ids) * 0.9)
        self.train, self.validation, self.o = ids[:cut], ids[cut:], o
        self.starts = None
        if o.batches:
            with open(o.batches, encoding="utf-8") as file:
                self.starts = [json.loads(line) for line in file]

    def batch(self, k):
        o = self.o
        starts = self.starts[k] if self.starts else [draw_below(o.seed, k * o.batch + b, len(self.train) - o.context)
                                                     for b in range(o.batch)]
        windows = torch.stack([self.train[s:s + o.context + 1] for s in starts])
        return windows[:, :-1].contiguous().to(o.device), windows[:, 1:].contiguous().to(o.device)

    @torch.no_grad()
    def validation_loss(self, model):
        """Over all targets, each once, in windows that lie one after the other."""
        o, targets = self.o, self.validation[1:]
        missing = -len(targets) % o.context
        x = F.pad(self.validation[:-1], (0, missing)).view(-1, o.context).to(o.device)
        y = F.pad(targets, (0, missing), value=-1).view(-1, o.context).to(o.device)
        model.eval()
        total = sum(model(x[i:i + 16], y[i:i + 16], "sum").item() for i in range(0, len(x), 16))
        model.train()
        return total / len(targets)


def learning_rate(o, step):
    """nanoGPT's warm-up and cosine."""
    if step < o.warmup:
        return o.lr * (step + 1) / (o.warmup + 1)
    share = (step - o.warmup) / max(1, o.steps - o.warmup)
    return o.min_lr + 0.5 * (1 + math.cos(math.pi * share)) * (o.lr - o.min_lr)


def make_optimizer(model, o):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": o.weight_decay}, {"params": others, "weight_decay": 0.0}]
    try:
        return torch.optim.AdamW(groups, lr=o.lr, betas=(o.beta1, o.beta2), fused=True)
    except (RuntimeError, TypeError):  # before PyTorch 2.4 the fused one is for GPUs only
        return torch.optim.AdamW(groups, lr=o.lr, betas=(o.beta1, o.beta2))


def train_step(model, optimizer, o, step, batch):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(o, step)
    with torch.autocast(o.device, torch.bfloat16, enabled=o.dtype == "bf16"):
        loss = model(*batch)
    loss.backward()
    if o.grad_clip > 0:
        torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"] + optimizer.param_groups[1]["params"],
                                       o.grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item()


def train(model, text, o):
    optimizer = make_optimizer(model, o)
    losses = [train_step(model, optimizer, o, step, text.batch(step)) for step in range(o.steps)]
    if o.compare:
        return compare(losses, o)
    for step, loss in enumerate(losses):
        print(json.dumps({"step": step + 1, "loss": loss}))
    print(json.dumps({"step": o.steps, "val_loss": text.validation_loss(model)}))


def compare(losses, o):
    """How far weft's losses are from these."""
    with open(o.compare, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    other = {line["step"]: line["loss"] for line in lines if "loss" in line}
    apart = [abs(other[k + 1] - loss) / loss for k, loss in enumerate(losses)]
    print(json.dumps({"bench": "gpt2_curve", "dtype": o.dtype, "steps": o.steps, "first": [other[1], losses[0]],
                      "last": [other[o.steps], losses[-1]],
                      "largest_relative": max(apart), "at_step": 1 + apart.index(max(apart))}))


def measure(model, text, o):
    run = torch.compile(model) if o.time == "compile" else model
    optimizer = make_optimizer(model, o)
    times = []
    for step in range(o.warm + o.steps):
        start = time.perf_counter()
        train_step(run, optimizer, o, step, text.batch(step))
        times.append(1000 * (time.perf_counter() - start))
    times = times[o.warm:]
    median = statistics.median(times)
    print(json.dumps({"mode": o.time, "dtype": o.dtype, "threads": torch.get_num_threads(), "torch": torch.__version__,
                      "steps": o.steps, "median_ms": round(median, 3),
                      "min_ms": round(min(times), 3), "tok_s": round(1000 * o.batch * o.context / median)}))


def options():
    parser = argparse.ArgumentParser(description="PyTorch beside `weft train gpt`.")
    parser.add_argument("--data", help="text file, UTF-8 (default: random tokens; then --vocab is needed)")
    for name, default in (("layers", 4), ("heads", 4), ("width", 128), ("context", 64), ("batch", 12), ("steps", 2000),
                          ("warmup", None), ("seed", 1337)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("lr", 1e-3), ("min-lr", None), ("dropout", 0.0), ("weight-decay", 0.1), ("beta1", 0.9),
                          ("beta2", 0.99), ("grad-clip", 1.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--bias", action=argparse.BooleanOptionalAction, default=False,
                        help="biases in linear layers and norms")
    parser.add_argument("--vocab", type=int, help="size of the token embedding (default: the text's characters)")
    parser.add_argument("--weights", help="safetensors file to start from")
    parser.add_argument("--batches", help="file with one JSON list of window starts a line")
    parser.add_argument("--save", help="write the weights that training starts from (torch.save)")
    parser.add_argument("--time", choices=("eager", "compile"), help="measure instead of training")
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="bf16 is autocast")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--compare", metavar="LOSSES", help="what `weft train gpt --json` printed")
    parser.add_argument("--time-context", type=int,
                        help="tokens of a measured sequence, where shorter than the context")
    parser.add_argument("--warm", type=int, default=20, help="steps before the measured ones")
    parser.add_argument("--threads", type=int)
    o = parser.parse_args()
    if not o.data and not o.vocab:
        parser.error("name a text with --data, or a number of random tokens with --vocab")
    o.warmup = o.steps // 20 if o.warmup is None else o.warmup
    o.min_lr = o.lr / 10 if o.min_lr is None else o.min_lr
    return o


def load(model, path):
    """weft's names are this model's; a checkpoint may hold them under "model.", beside the optimizer's."""
    stored = {name.removeprefix("model."): tensor for name, tensor in read_safetensors(path).items()}
    wanted = model.state_dict()
    missing = sorted(set(wanted) - set(stored))
    if missing:
        sys.exit(f"{path} lacks {', '.join(missing)} (--bias or --no-bias?)")
    model.load_state_dict({name: stored[name] for name in wanted})


def main():
    o = options()
    if o.threads:
        torch.set_num_threads(o.threads)
    torch.manual_seed(o.seed)
    text = Text(o)
    model = Gpt(o, text.vocab)
    o.context = o.time_context or o.context  # of the batches; the model is made
    if o.weights:
        load(model, o.weights)
    if o.save:
        torch.save(model.state_dict(), o.save)
    model.to(o.device)
    measure(model, text, o) if o.time else train(model, text, o)


if __name__ == "__main__":
    main()
