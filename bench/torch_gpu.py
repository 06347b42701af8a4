#!/usr/bin/env python3
"""PyTorch's side of `weft bench gpu-…`: the same work on the same GPU, one JSON object a line with the same field
names.

    bench/torch_gpu.py                         all but the large models, some five minutes, most of them torch.compile's
    bench/torch_gpu.py memory attention gpt2   parts, by the names below

Parts: memory, matmul, attention, sort, scan, fft, mnist, linalg, embedding, decode-124m, decode-1b, decode-7b, gpt2,
gpt2-350m, gpt2-774m, gpt2-1558m, and the larger of these with -blocks behind, which compiles a block once instead of
all of them (the whole 1558M takes torch.compile over a minute). `scripts/gpu-check` runs some of them beside Weft's.
Times are medians of device events after warm-up; first_step_s is the wall time of the first compiled call with an empty
cache.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.mkdtemp())

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from torch_gpt import Gpt
from torch_mnist import Mnist

DEVICE = "cuda"
BF16 = torch.bfloat16


def say(bench, **row):
    rounded = {name: round(value, 5) if isinstance(value, float) else value for name, value in row.items()}
    print(json.dumps({"bench": bench, "peer": "torch", **rounded}), flush=True)


def median_ms(call, reps, warm=5):
    for _ in range(warm):
        call()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(reps + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(events, events[1:]))


def first_call_s(call):
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, dynamic=False, **options)


def copy():
    source = torch.randn(1 << 28, device=DEVICE)
    target = torch.empty_like(source)
    ms = median_ms(lambda: target.copy_(source), 20)
    say("copy", ms=ms, GBps=8 * source.numel() / ms / 1e6)


ROWS = {  # with how often they pass over the array: read, or read and written
    "softmax": (lambda x: F.softmax(x, -1), 2),
    "layernorm": (lambda x: F.layer_norm(x, x.shape[-1:]), 2),
    "sum_rows": (lambda x: x.sum(-1), 1),
    "sum_columns": (lambda x: x.sum(0), 1),
    "gelu_chain": (lambda x: F.gelu(x * 1.5 + 2.0, approximate="tanh") * 0.5, 2),
    "transpose": (lambda x: x.t().contiguous(), 2),
}


def memory():
    copy()
    for rows, cols in ((65536, 1024), (16384, 8192), (4096, 50304)):
        over_rows(ROWS, rows, cols)


def over_rows(operators, rows, cols):
    x = torch.randn(rows, cols, device=DEVICE, dtype=BF16)
    for name, (operator, passes) in operators.items():
        run = compiled(operator)
        first = first_call_s(lambda: run(x))
        ms = median_ms(lambda: run(x), 20)
        say(name, mode="compile", dtype="bfloat16", rows=rows, cols=cols, ms=ms, GBps=passes * x.nbytes / ms / 1e6,
            first_step_s=first)


def long_rows():
    for rows, cols in ((8, 1 << 20), (64, 1 << 18), (1024, 1 << 17)):
        over_rows({name: ROWS[name] for name in ("softmax", "layernorm", "sum_rows")}, rows, cols)


def matmul():
    """From a captured graph of 20 products, over operands that do not all fit the cache."""
    for dtype, name in ((BF16, "bf16"), (torch.float16, "fp16"), (torch.float32, "tf32")):
        torch.backends.cuda.matmul.allow_tf32 = True
        for n in (512, 1024, 2048, 4096, 8192):
            pairs = [[torch.randn(n, n, device=DEVICE, dtype=dtype) for _ in range(2)] for _ in range(4)]
            torch.mm(*pairs[0])
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for i in range(20):
                    torch.mm(*pairs[i % 4])
            ms = median_ms(graph.replay, 10) / 20
            say("matmul", mode="eager", dtype=name, n=n, ms=ms, tflops=2 * n**3 / ms / 1e9)


def attention():
    """Causal; the derivative is what forward and backward together take longer than forward alone."""
    for batch, heads, length, size in ((64, 12, 1024, 64), (8, 16, 4096, 128), (2, 16, 16384, 128)):
        q, k, v = (torch.randn(batch, heads, length, size, device=DEVICE, dtype=BF16, requires_grad=True)
                   for _ in range(3))
        slope = torch.randn_like(q)
        for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
            with sdpa_kernel([backend]):
                forward = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
                ms = median_ms(forward, 10)
                both = median_ms(lambda: forward().backward(slope), 10)
            flop = 2 * batch * heads * length * length * size
            say("attention", mode=name, dtype="bfloat16", B=batch, H=heads, T=length, D=size, fwd_ms=ms,
                fwd_tflops=flop / ms / 1e9, bwd_ms=both - ms,
                bwd_tflops=2.5 * flop / (both - ms) / 1e9)


def sort():
    for rows, cols in ((1, 50304), (64, 50304), (4096, 1024), (1 << 20, 16), (1, 1 << 22)):
        x = torch.randn(rows, cols, device=DEVICE)
        operators = {"sort": lambda: x.sort(-1), "argsort": lambda: x.argsort(-1)}
        if cols == 50304:
            operators["topk50"] = lambda: x.topk(50, -1)
        for name, operator in operators.items():
            ms = median_ms(operator, 20)
            say(name, mode="eager", dtype="float32", rows=rows, cols=cols, ms=ms, Gelem_s=x.numel() / ms / 1e6)
    places, values = torch.randn(1 << 20, device=DEVICE).sort()[0], torch.randn(1 << 22, device=DEVICE)
    ms = median_ms(lambda: torch.searchsorted(places, values), 20)
    say("searchsorted", mode="eager", dtype="float32", n=1 << 20, values=1 << 22, ms=ms,
        Gelem_s=values.numel() / ms / 1e6)


def scan():
    for rows, cols in ((1, 1 << 24), (16, 1 << 20), (4096, 4096), (65536, 128)):
        x = torch.randn(rows, cols, device=DEVICE)
        operators = {
            "cumsum": lambda: x.cumsum(1),
            "cummax": lambda: x.cummax(1),
            "logcumsumexp": lambda: x.logcumsumexp(1),
            "cumsum_columns": lambda: x.cumsum(0),
        }
        for name, operator in operators.items():
            ms = median_ms(operator, 20)
            say(name, mode="eager", dtype="float32", rows=rows, cols=cols, ms=ms, GBps=8 * x.numel() / ms / 1e6)


def fft():
    for rows, cols in ((16384, 1024), (256, 65536), (16384, 1000), (4096, 4099), (1, 1 << 24)):
        x = torch.randn(rows, cols, device=DEVICE)
        z = x.to(torch.complex64)
        for name, operator, size in (("fft", lambda: torch.fft.fft(z), 16), ("rfft", lambda: torch.fft.rfft(x), 8)):
            ms = median_ms(operator, 20)
            say(name, mode="eager", dtype="float32", rows=rows, cols=cols, ms=ms, GBps=size * x.numel() / ms / 1e6)


def mnist():
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    for batch in (64, 1024, 8192):
        host = torch.randn(batch, 1, 28, 28).pin_memory(), torch.randint(0, 10, (batch,)).pin_memory()
        for mode in ("eager", "compile", "cuda_graphs"):
            torch.manual_seed(0)
            model = Mnist().to(DEVICE)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
            graphs = "reduce-overhead" if mode == "cuda_graphs" else None
            run = model if mode == "eager" else compiled(model, mode=graphs)

            def step():
                run(*(part.to(DEVICE, non_blocking=True) for part in host)).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

            first = first_call_s(step)
            say("mnist_cnn_step", mode=mode, dtype="tf32", B=batch, ms=median_ms(step, 100, 20), first_step_s=first)


class DecoderBlock(nn.Module):
    """A block for one token: GPT-2's, or Llama's with rotary positions and a gated layer."""

    def __init__(self, width, heads, kv_heads, hidden, context, llama):
        super().__init__()
        self.heads, self.kv_heads, self.llama = heads, kv_heads, llama
        size = width // heads
        norm = nn.RMSNorm if llama else nn.LayerNorm
        self.norm_1, self.norm_2 = norm(width), norm(width)
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * size, bias=not llama)
        self.out = nn.Linear(width, width, bias=not llama)
        self.up = nn.Linear(width, 2 * hidden if llama else hidden, bias=not llama)
        self.down = nn.Linear(hidden, width, bias=not llama)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, kv_heads, context, size))
        angles = torch.outer(torch.arange(context).float(), 1e4 ** (-torch.arange(0, size, 2).float() / size))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def turned(self, x, position):
        if not self.llama:
            return x
        a, b = x.chunk(2, -1)
        cos, sin = self.cos[position], self.sin[position]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    def forward(self, x, position, mask):
        qkv = self.qkv(self.norm_1(x)).view(1, 1, -1, self.keys.shape[-1]).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), 1)
        self.keys.index_copy_(2, position, self.turned(k, position))
        self.values.index_copy_(2, position, v)
        y = F.scaled_dot_product_attention(self.turned(q, position), self.keys, self.values, attn_mask=mask,
                                           enable_gqa=self.heads != self.kv_heads)
        x = x + self.out(y.transpose(1, 2).reshape(1, -1))
        y = self.up(self.norm_2(x))
        if self.llama:
            gate, y = y.chunk(2, -1)
            y = F.silu(gate) * y
        else:
            y = F.gelu(y, approximate="tanh")
        return x + self.down(y)


class Decoder(nn.Module):
    """Takes a token and its position, gives the likeliest next one; keys and values lie in a cache of fixed size."""

    def __init__(self, layers, heads, kv_heads, width, hidden, vocab, llama, context=1024):
        super().__init__()
        self.llama, self.context = llama, context
        self.embedding = nn.Embedding(vocab, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(DecoderBlock(width, heads, kv_heads, hidden, context, llama) for _ in range(layers))
        self.norm = (nn.RMSNorm if llama else nn.LayerNorm)(width)
        self.head = nn.Linear(width, vocab, bias=False)
        if not llama:
            self.head.weight = self.embedding.weight

    def forward(self, token, position):
        x = self.embedding(token) if self.llama else self.embedding(token) + self.positions(position)
        mask = (torch.arange(self.context, device=x.device) <= position).view(1, 1, 1, -1)
        for block in self.blocks:
            x = block(x, position, mask)
        return self.head(self.norm(x)).argmax(-1)


@torch.no_grad()
def decode(name, *sizes, llama):
    with torch.device(DEVICE):
        model = Decoder(*sizes, llama=llama).to(BF16).eval()
    run = compiled(model, mode="reduce-overhead", fullgraph=True)
    token, position = torch.tensor([1], device=DEVICE), torch.tensor([24], device=DEVICE)

    def step():
        nonlocal token
        token = run(token, position).clone()
        position.add_(1).remainder_(1000)

    first = first_call_s(step)
    ms = median_ms(step, 200, 20)
    say("llama_decode" if llama else "gpt2_decode", mode="reduce-overhead", dtype="bfloat16", model=name,
        params=sum(p.numel() for p in model.parameters()), ms=ms,
        tok_s=1e3 / ms, first_step_s=first)


def by_blocks(model):
    """The model with each block compiled by itself, which is one compilation for all of them, and the head with the
    loss."""
    blocks = [compiled(block) for block in model.h]
    head = torch.compile(lambda x, targets: F.cross_entropy(F.linear(model.ln_f(x), model.wte.weight).flatten(0, 1),
                                                            targets.flatten()), dynamic=False)

    def run(ids, targets):
        x = model.wte(ids) + model.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in blocks:
            x = block(x)
        return head(x, targets)

    return run


def gpt2(layers, heads, width, batch, blocks=False):
    """A training step: autocast to bfloat16, AdamW in one launch, clipped gradients. Where memory runs out, a smaller
    batch, which the line says."""
    for size in (batch, batch * 3 // 4, batch // 2):
        try:
            return gpt2_step(layers, heads, width, size, blocks)
        except torch.OutOfMemoryError:
            print(f"torch_gpu.py: {size} sequences do not fit", file=sys.stderr)
        torch.cuda.empty_cache()
    raise torch.OutOfMemoryError(f"not even {size} sequences fit")


def gpt2_step(layers, heads, width, batch, blocks):
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    length, vocab = 1024, 50304
    o = argparse.Namespace(layers=layers, heads=heads, width=width, context=length, dropout=0.0, bias=True)
    with torch.device(DEVICE):
        model = Gpt(o, vocab)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = by_blocks(model) if blocks else compiled(model)
    ids, targets = (torch.randint(0, vocab, (batch, length), device=DEVICE) for _ in range(2))
    torch.cuda.reset_peak_memory_stats()

    def step():
        with torch.autocast(DEVICE, BF16):
            loss = run(ids, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    first = first_call_s(step)
    ms = median_ms(step, 12)
    say("gpt2_train", mode="compile_blocks" if blocks else "compile", dtype="bfloat16",
        params=sum(p.numel() for p in parameters), B=batch, T=length, ms=ms, tok_s=batch * length / ms * 1e3,
        peak_GiB=torch.cuda.max_memory_allocated() / 2**30, first_step_s=first)


def linalg():
    """Decompositions as `weft bench linalg`: one matrix, and many small ones."""
    generator = torch.Generator(DEVICE).manual_seed(0)
    for count, n in ((1, 1024), (1, 256), (64, 64), (512, 32), (4096, 8)):
        a = torch.randn(count, n, n, device=DEVICE, generator=generator)
        spd = a @ a.mT + n * torch.eye(n, device=DEVICE)
        lower = torch.linalg.cholesky(spd)
        calls = {
            "cholesky": lambda: torch.linalg.cholesky_ex(spd),
            "solve_triangular": lambda: torch.linalg.solve_triangular(lower, spd, upper=False),
            "inv": lambda: torch.linalg.inv_ex(spd),
            "slogdet": lambda: torch.linalg.slogdet(spd),
            "qr": lambda: torch.linalg.qr(a),
            "eigh": lambda: torch.linalg.eigh(spd),
            "eigvalsh": lambda: torch.linalg.eigvalsh(spd),
            "svd": lambda: torch.linalg.svd(a),
            "singular_values": lambda: torch.linalg.svdvals(a),
        }
        for name, call in calls.items():
            if n > 512 and name in ("eigh", "eigvalsh", "svd", "singular_values"):
                continue
            say(name, dtype="float32", batch=count, n=n, ms=median_ms(call, 5, warm=2))


def embedding_gradient():
    """Rows added up by the tokens that they belong to, as `weft bench gpu-scatter`."""
    tokens, width, vocabulary = 65536, 768, 50304
    rows = torch.randn(tokens, width, device=DEVICE, dtype=BF16)
    for kinds in (vocabulary, 256, 1):
        ids = torch.randint(0, kinds, (tokens,), device=DEVICE)
        ms = median_ms(lambda: torch.zeros(vocabulary, width, device=DEVICE).index_add_(0, ids, rows.float()), 5,
                       warm=2)
        say("embedding_gradient", dtype="bfloat16", mode="index_add", tokens=tokens, cols=width, kinds=kinds, ms=ms)
        ms = median_ms(lambda: torch.ops.aten.embedding_dense_backward(rows, ids, vocabulary, -1, False), 5, warm=2)
        say("embedding_gradient", dtype="bfloat16", mode="embedding", tokens=tokens, cols=width, kinds=kinds, ms=ms)


PARTS = {
    "memory": memory,
    "long-rows": long_rows,
    "matmul": matmul,
    "attention": attention,
    "sort": sort,
    "scan": scan,
    "fft": fft,
    "mnist": mnist,
    "decode-124m": lambda: decode("124M", 12, 12, 12, 768, 3072, 50304, llama=False),
    "decode-1b": lambda: decode("1.1B", 22, 32, 4, 2048, 5632, 32000, llama=True),
    "linalg": linalg,
    "embedding": embedding_gradient,
    "gpt2": lambda: gpt2(12, 12, 768, 64),
    "gpt2-350m": lambda: gpt2(24, 16, 1024, 32),
    "decode-7b": lambda: decode("7B", 32, 32, 32, 4096, 11008, 32000, llama=True),
    "gpt2-774m": lambda: gpt2(36, 20, 1280, 32),
    "gpt2-1558m": lambda: gpt2(48, 25, 1600, 32),
    "gpt2-350m-blocks": lambda: gpt2(24, 16, 1024, 32, blocks=True),
    "gpt2-774m-blocks": lambda: gpt2(36, 20, 1280, 32, blocks=True),
    "gpt2-1558m-blocks": lambda: gpt2(48, 25, 1600, 32, blocks=True),
}
DEFAULT = ("memory", "matmul", "attention", "sort", "scan", "fft", "mnist", "linalg", "embedding", "decode-124m",
           "decode-1b", "gpt2", "gpt2-350m")


def main():
    unknown = [name for name in sys.argv[1:] if name not in PARTS]
    if unknown:
        sys.exit(f"torch_gpu.py: no part {unknown[0]}; there are {', '.join(PARTS)}")
    if not torch.cuda.is_available():
        sys.exit("torch_gpu.py: no GPU here")
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(),
                      "cudnn": torch.backends.cudnn.version()}), flush=True)
    for name in sys.argv[1:] or DEFAULT:
        torch.cuda.empty_cache()
        try:
            PARTS[name]()
        except (RuntimeError, torch.OutOfMemoryError) as error:
            print(json.dumps({"bench": name, "peer": "torch", "error": str(error)[:300]}), flush=True)


if __name__ == "__main__":
    main()
