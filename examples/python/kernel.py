#!/usr/bin/env python3
"""Kernels of one's own inside PyTorch: RMS norm with its gradients, each a function on tiles in Python.

The kernels are launched on PyTorch's tensors, in its current stream: nothing is copied, and nobody waits. It runs on a
GPU where PyTorch and Weft both find one, else on the CPU, with the same code. As functions of arrays the same kernels
are differentiated by their bodies, which the example compares.
"""

import torch
import weft.core as mx
from weft.core import kernel as k


@k.kernel(grid=lambda x, w, y, scale: x.dim(0), outputs=lambda x, w: [x.shape, (x.shape[0],)])
def rms_norm(x: k.In, w: k.In, y: k.Out, scale: k.Out, eps: float = 1e-5):
    """y = x / √(mean of x² + eps) · w, a row a program; the rows' scales are kept for the gradients."""
    row = k.program_id(0)
    v = x[row, :].load()
    s = k.rsqrt(k.sum(v * v, 0) / x.dim(1) + eps)
    y[row, :] = v * s * w[:]
    scale[row] = s


@k.kernel(grid=lambda x, w, scale, g, dx: x.dim(0))
def by_input(x: k.In, w: k.In, scale: k.In, g: k.In, dx: k.Out):
    """The gradient by x, a row a program."""
    row = k.program_id(0)
    v, s, slope = x[row, :].load(), scale[row].load(), g[row, :] * w[:]
    dx[row, :] = s * (slope - v * (s * s * k.sum(slope * v, 0) / x.dim(1)))


@k.kernel(
    grid=lambda x, scale, g, dw, block, rows: k.cdiv(x.dim(1), block), outputs=lambda x, scale, g: (x.shape[1],)
)
def by_weight(x: k.In, scale: k.In, g: k.In, dw: k.Out, block: int = 64, rows: int = 32):
    """The gradient by w, a block of columns a program, some rows at a time."""
    columns = k.block(k.program_id(0), block)
    total = k.var(k.zeros(block))
    for i in k.range(0, x.dim(0), rows):
        some = k.ds(i, rows)
        total += k.sum(x[some, columns] * g[some, columns] * scale[some].load()[:, None], 0)
    dw[columns] = total


def stream_of(tensor):
    """PyTorch's current stream on the tensor's GPU; the CPU has none."""
    return torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None


class RmsNorm(torch.autograd.Function):
    """The kernels as PyTorch sees them."""

    @staticmethod
    def forward(ctx, x, w):
        x, w = x.detach().contiguous(), w.detach().contiguous()
        y, scale = torch.empty_like(x), x.new_empty(x.shape[0])
        rms_norm.launch(x, w, y, scale, stream=stream_of(x))
        ctx.save_for_backward(x, w, scale)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, scale = ctx.saved_tensors
        dx, dw = torch.empty_like(x), torch.empty_like(w)
        by_input.launch(x, w, scale, g.contiguous(), dx, stream=stream_of(x))
        by_weight.launch(x, scale, g.contiguous(), dw, stream=stream_of(x))
        return dx, dw


def expected(x, w):
    """The same by PyTorch's operations."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


def main():
    device = "cuda" if torch.cuda.is_available() and mx.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    x = torch.randn(100, 200, device=device, requires_grad=True)
    w = torch.randn(200, device=device, requires_grad=True)
    weights = torch.randn(100, 200, device=device)
    results = []
    for f in (RmsNorm.apply, expected):
        x.grad = w.grad = None
        y = f(x, w)
        (y * weights).sum().backward()
        results.append((y.detach(), x.grad.clone(), w.grad.clone()))
    for found, wanted in zip(*results):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)

    # The forward kernel as a function of arrays: its derivative follows from its body.
    arrays = [mx.array(t.detach().cpu().numpy()) for t in (x, w, weights)]
    gradients = mx.grad(lambda x, w, c: (rms_norm(x, w)[0] * c).sum(), argnums=(0, 1))(*arrays)
    for found, wanted in zip(gradients, results[0][1:]):
        torch.testing.assert_close(torch.from_dlpack(found), wanted.cpu(), rtol=1e-4, atol=1e-4)
    print(f"gradients agree on the {device}")


if __name__ == "__main__":
    main()
