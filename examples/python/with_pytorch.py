#!/usr/bin/env python3
"""A Weft function inside PyTorch: an autograd.Function that computes x · sigmoid(a x) and its gradients with Weft.

Tensors and arrays share memory by DLPack, on a GPU where PyTorch and Weft both find one, else on the CPU: nothing is
copied. On a GPU Weft works in the order of PyTorch's current stream, and the host waits for neither. The first
derivative is Weft's vjp; the program of each direction is compiled once for each shape.
"""

import contextlib

import torch
import weft.core as mx


@mx.compile
def swish(x, a):
    """x · sigmoid(a x)."""
    return x * mx.sigmoid(a * x)


@mx.compile
def swish_gradients(x, a, cotangent):
    """The products of a cotangent with the derivatives by x and by a."""
    _, products = mx.vjp(swish, [x, a], [cotangent])
    return tuple(products)


def shared(tensor):
    """The array of a tensor's memory."""
    return mx.from_dlpack(tensor.detach().contiguous())


def in_order(tensor):
    """A context in which Weft works in PyTorch's current stream on the tensor's GPU; the CPU has none."""
    return mx.cuda.stream(torch.cuda.current_stream(tensor.device)) if tensor.is_cuda else contextlib.nullcontext()


class Swish(torch.autograd.Function):
    """The function as PyTorch sees it."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        with in_order(x):
            return torch.from_dlpack(swish(shared(x), shared(a)))

    @staticmethod
    def backward(ctx, cotangent):
        x, a = ctx.saved_tensors
        with in_order(x):
            return tuple(torch.from_dlpack(g) for g in swish_gradients(shared(x), shared(a), shared(cotangent)))


def main():
    device = "cuda" if torch.cuda.is_available() and mx.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    x = torch.randn(64, 8, dtype=torch.float32, device=device, requires_grad=True)
    a = torch.tensor(1.5, device=device, requires_grad=True)
    (Swish.apply(x, a) ** 2).sum().backward()
    found = x.grad.clone(), a.grad.clone()
    x.grad = a.grad = None
    ((x * torch.sigmoid(a * x)) ** 2).sum().backward()
    torch.testing.assert_close(found[0], x.grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[1], a.grad, rtol=1e-5, atol=1e-4)

    # It trains like any other function.
    weight = torch.randn(8, 1, device=device, requires_grad=True)
    target = (x.detach() @ torch.ones(8, 1, device=device)).sigmoid()
    optimizer = torch.optim.Adam([weight, a], 0.05)
    for step in range(200):
        loss = ((Swish.apply(x.detach() @ weight, a) - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3}: loss {loss.item():.4f}")
    print(f"gradients agree on the {device}; loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
