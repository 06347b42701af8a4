"""Limits on gradients."""

from __future__ import annotations

from typing import Any

import weft.core as mx
from weft.utils import tree_map, tree_reduce

__all__ = ["clip_grad_norm"]


def clip_grad_norm(grads: Any, max_norm: float) -> tuple[Any, mx.array]:
    """Scale gradients so that the norm of all together is at most `max_norm`.

    From Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks" (2013).

    Args:
        grads: A tree of gradients.
        max_norm: The largest norm, at least 0.

    Returns:
        The scaled gradients, and the norm before, a scalar.
    """
    if max_norm < 0:
        raise ValueError(f"[clip_grad_norm] max_norm must be at least 0, but is {max_norm}")
    norm = mx.sqrt(tree_reduce(lambda total, g: total + _sum_of_squares(g), grads, 0.0))
    factor = mx.minimum(max_norm / (norm + 1e-6), 1.0)
    return tree_map(lambda g: (g * factor).astype(g.dtype) if _is_half(g) else g * factor, grads), norm


def _is_half(x: mx.array) -> bool:
    return x.dtype == mx.float16


def _sum_of_squares(x: mx.array) -> mx.array:
    """Return the sum of all squares, a scalar; that of float16 is float32, since it overflows soon."""
    return mx.sum(mx.square(x.astype(mx.float32) if _is_half(x) else x))
