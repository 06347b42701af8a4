"""Pooling over one, two and three axes of space, as a reduction over windows of the input."""

from __future__ import annotations

import math
from typing import Any, Callable, ClassVar, Optional, Union

import weft.core as mx
from weft.nn.layers.base import Module

__all__ = ["AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d"]


def _windows(x: mx.array, kernel: tuple[int, ...], strides: tuple[int, ...]) -> mx.array:
    """Return a view of ``x`` of shape ``[N, *positions, *kernel, C]`` with the elements of each window."""
    batch, *space, channels = x.shape
    if len(space) != len(kernel):
        raise ValueError(
            f"The input of this pooling must have {len(kernel)} axes of space between batch and channels; "
            f"its shape is {tuple(x.shape)}"
        )
    rank = len(space)
    if kernel == strides and all(size % width == 0 for size, width in zip(space, kernel)):
        parts = [part for size, width in zip(space, kernel) for part in (size // width, width)]
        order = (0, *range(1, 2 * rank, 2), *range(2, 2 * rank + 1, 2), 2 * rank + 1)
        return x.reshape(batch, *parts, channels).transpose(order)
    positions = [(size - width) // step + 1 for size, width, step in zip(space, kernel, strides)]
    apart = [math.prod(x.shape[axis + 1 :]) for axis in range(x.ndim)]  # strides of the row-major input
    between = [step * stride for step, stride in zip(strides, apart[1:-1])]
    return mx.as_strided(x, (batch, *positions, *kernel, channels), (apart[0], *between, *apart[1:-1], 1))


class _Pool(Module):
    """What all pooling layers share. Class attributes say over how many axes, by which reduction, padded with what."""

    _space: ClassVar[int]
    _reduce: ClassVar[Callable[..., mx.array]]
    _padding_value: ClassVar[float]

    def _set_up(self, kernel_size: Any, stride: Any, padding: Any) -> None:
        self._kernel_size = self._sizes("kernel_size", kernel_size, least=1)
        self._stride = self._kernel_size if stride is None else self._sizes("stride", stride, least=1)
        self._padding = self._sizes("padding", padding, least=0)

    def _sizes(self, what: str, value: Any, least: int) -> tuple[int, ...]:
        where = f"[{type(self).__name__}] '{what}' must be"
        sizes = (value,) * self._space if isinstance(value, int) else value
        if not isinstance(sizes, (tuple, list)) or len(sizes) != self._space:
            raise ValueError(
                f"{where} an integer or a tuple containing {self._space} integer{'s' if self._space > 1 else ''}"
            )
        if any(size < least for size in sizes):
            raise ValueError(f"{where} {'positive' if least else 'non-negative'} but got {tuple(sizes)}.")
        return tuple(sizes)

    def _extra_repr(self) -> str:
        return f"kernel_size={self._kernel_size}, stride={self._stride}, padding={self._padding}"

    def __call__(self, x: mx.array) -> mx.array:
        if any(self._padding):
            widths = [(0, 0), *((width, width) for width in self._padding), (0, 0)]
            x = mx.pad(x, widths, constant_values=self._padding_value)
        windows = _windows(x, self._kernel_size, self._stride)
        return type(self)._reduce(windows, axis=tuple(range(-1 - self._space, -1)))


class _MaxPool(_Pool):
    _reduce = mx.max
    _padding_value = -float("inf")


class _AvgPool(_Pool):
    _reduce = mx.mean
    _padding_value = 0


class _Pool1d(_Pool):
    _space = 1

    def __init__(
        self,
        kernel_size: Union[int, tuple[int]],
        stride: Optional[Union[int, tuple[int]]] = None,
        padding: Union[int, tuple[int]] = 0,
    ) -> None:
        super().__init__()
        self._set_up(kernel_size, stride, padding)


class _Pool2d(_Pool):
    _space = 2

    def __init__(
        self,
        kernel_size: Union[int, tuple[int, int]],
        stride: Optional[Union[int, tuple[int, int]]] = None,
        padding: Optional[Union[int, tuple[int, int]]] = 0,
    ) -> None:
        super().__init__()
        self._set_up(kernel_size, stride, padding)


class _Pool3d(_Pool):
    _space = 3

    def __init__(
        self,
        kernel_size: Union[int, tuple[int, int, int]],
        stride: Optional[Union[int, tuple[int, int, int]]] = None,
        padding: Optional[Union[int, tuple[int, int, int]]] = 0,
    ) -> None:
        super().__init__()
        self._set_up(kernel_size, stride, padding)


class MaxPool1d(_MaxPool, _Pool1d):
    """Computes the maximum of each window of ``x`` of shape ``[N, L, C]``.

    Args:
        kernel_size: the elements of a window.
        stride: the step between windows. Default: ``kernel_size``.
        padding: how many elements of minus infinity are put at each end. Default: 0.

    Raises:
        ValueError: for sizes that are no positive integers, and for an input with other axes.
    """


class AvgPool1d(_AvgPool, _Pool1d):
    """Computes the mean of each window of ``x`` of shape ``[N, L, C]``.

    Args:
        kernel_size: the elements of a window.
        stride: the step between windows. Default: ``kernel_size``.
        padding: how many zeros, which count, are put at each end. Default: 0.

    Raises:
        ValueError: for sizes that are no positive integers, and for an input with other axes.
    """


class MaxPool2d(_MaxPool, _Pool2d):
    """Computes the maximum of each window of ``x`` of shape ``[N, H, W, C]``.

    Args:
        kernel_size: the elements of a window along each axis, or along both.
        stride: the steps between windows. Default: ``kernel_size``.
        padding: how many elements of minus infinity are put at each end. Default: 0.

    Raises:
        ValueError: for sizes that are no positive integers, and for an input with other axes.
    """


class AvgPool2d(_AvgPool, _Pool2d):
    """Computes the mean of each window of ``x`` of shape ``[N, H, W, C]``.

    Args:
        kernel_size: the elements of a window along each axis, or along both.
        stride: the steps between windows. Default: ``kernel_size``.
        padding: how many zeros, which count, are put at each end. Default: 0.

    Raises:
        ValueError: for sizes that are no positive integers, and for an input with other axes.
    """


class MaxPool3d(_MaxPool, _Pool3d):
    """Computes the maximum of each window of ``x`` of shape ``[N, D, H, W, C]``.

    Args:
        kernel_size: the elements of a window along each axis, or along all.
        stride: the steps between windows. Default: ``kernel_size``.
        padding: how many elements of minus infinity are put at each end. Default: 0.

    Raises:
        ValueError: for sizes that are no positive integers, and for an input with other axes.
    """


class AvgPool3d(_AvgPool, _Pool3d):
    """Computes the mean of each window of ``x`` of shape ``[N, D, H, W, C]``.

    Args:
        kernel_size: the elements of a window along each axis, or along all.
        stride: the steps between windows. Default: ``kernel_size``.
        padding: how many zeros, which count, are put at each end. Default: 0.

    Raises:
        ValueError: for sizes that are no positive integers, and for an input with other axes.
    """
