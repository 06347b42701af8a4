"""Dropout of elements and of channels."""

from __future__ import annotations

from typing import ClassVar

import weft.core as mx
from weft.nn.layers.base import Module

__all__ = ["Dropout", "Dropout2d", "Dropout3d"]


class Dropout(Module):
    """In training, sets elements to 0 with probability ``p`` and divides the others by ``1 - p``.

    See Srivastava et al. 2014.

    Args:
        p: the probability, at least 0 and less than 1. Default: 0.5.

    Raises:
        ValueError: for another probability.
    """

    # How many axes of space before the last share what is drawn for a channel.
    _space: ClassVar[int] = 0

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"The dropout probability {p} is not in [0, 1)")
        self._p_1 = 1 - p

    def _extra_repr(self) -> str:
        return f"p={1 - self._p_1}"

    def _mask_shape(self, x: mx.array) -> tuple[int, ...]:
        rank = self._space + 1
        if self._space > 0 and x.ndim not in (rank, rank + 1):
            raise ValueError(f"Received input with {x.ndim} dimensions. Expected {rank} or {rank + 1} dimensions.")
        first, last = x.ndim - 1 - self._space, x.ndim - 1
        return tuple(1 if first <= axis < last else size for axis, size in enumerate(x.shape))

    def __call__(self, x: mx.array) -> mx.array:
        shape = self._mask_shape(x)
        if self._p_1 == 1 or not self.training:
            return x
        return mx.random.bernoulli(self._p_1, shape) * x * (1 / self._p_1)


class Dropout2d(Dropout):
    """In training, sets channels of images to 0 with probability ``p`` and divides the others by ``1 - p``.

    The input has the shape ``[N, H, W, C]`` or ``[H, W, C]`` (Tompson et al. 2014).

    Args:
        p: the probability, at least 0 and less than 1. Default: 0.5.

    Raises:
        ValueError: for another probability, and for an input with other than 3 or 4 axes.
    """

    _space = 2


class Dropout3d(Dropout):
    """In training, sets channels of volumes to 0 with probability ``p`` and divides the others by ``1 - p``.

    The input has the shape ``[N, D, H, W, C]`` or ``[D, H, W, C]`` (Tompson et al. 2014).

    Args:
        p: the probability, at least 0 and less than 1. Default: 0.5.

    Raises:
        ValueError: for another probability, and for an input with other than 4 or 5 axes.
    """

    _space = 3
