"""Convolutions over one, two and three axes of space, and what transposed ones share with them."""

from __future__ import annotations

import math
from typing import Callable, ClassVar, Union

import weft.core as mx
from weft.nn.layers.base import Module
from weft.nn.layers.linear import initial_uniform

__all__ = ["Conv1d", "Conv2d", "Conv3d"]

Sizes = Union[int, tuple[int, ...]]


class Convolution(Module):
    """What all convolutions share: parameters, options, text and call.

    ``weight`` has the shape ``[out_channels, *kernel_size, in_channels / groups]``, drawn from the uniform distribution
    between -√(1/n) and √(1/n), where n is the number of a filter's elements. ``bias`` has the shape
    ``[out_channels]`` and begins as zeros.
    """

    # The number of axes of space; the function; the options that are tuples, in the text after the kernel's size; and
    # whether the text tells of groups.
    _space: ClassVar[int]
    _function: ClassVar[Callable[..., mx.array]]
    _per_axis: ClassVar[tuple[str, ...]] = ("padding", "stride")
    _options: ClassVar[tuple[str, ...]] = ("stride", "padding", "dilation")

    def _set_up(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, bias: bool, groups: int = 1, **options: Sizes
    ) -> None:
        kernel = self._sizes(kernel_size)
        if in_channels % groups != 0:
            raise ValueError(
                f"The number of input channels ({in_channels}) must be divisible by the number of groups ({groups})"
            )
        elements = math.prod(kernel[axis] for axis in range(self._space))
        self.weight = initial_uniform(in_channels // groups * elements, out_channels, *kernel, in_channels // groups)
        if bias:
            self.bias = mx.zeros((out_channels,))
        for name in self._per_axis:
            options[name] = options[name] if self._space == 1 else self._sizes(options[name])
        for name, value in options.items():
            setattr(self, name, value)
        if "groups" in self._options:
            self.groups = groups

    def _sizes(self, value: Sizes) -> tuple[int, ...]:
        """Return a size for each axis of space: an integer stands for all of them."""
        return (value,) * self._space if isinstance(value, (int, float)) else value

    def _extra_repr(self) -> str:
        _, *kernel, last = self.weight.shape
        kernel_size = kernel[0] if self._space == 1 else tuple(kernel[: self._space])
        options = "".join(f", {name}={getattr(self, name)}" for name in self._options)
        in_channels = last * getattr(self, "groups", 1)
        return (
            f"{in_channels}, {self.weight.shape[0]}, kernel_size={kernel_size}{options}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        y = type(self)._function(x, self.weight, *(getattr(self, name) for name in self._options))
        return y + self.bias if "bias" in self else y


class Conv1d(Convolution):
    """Computes the convolution of ``x`` of shape ``[N, L, C]`` with filters of one axis.

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the result, that of filters.
        kernel_size: the elements of a filter.
        stride: the step between the filter's positions. Default: 1.
        padding: how many zeros are put at each end. Default: 0.
        dilation: the step between a filter's elements. Default: 1.
        groups: how many groups of channels are convolved apart. Default: 1.
        bias: whether a bias is added. Default: ``True``.

    Raises:
        ValueError: if the number of input channels is no multiple of the number of groups.
    """

    _space = 1
    _function = mx.conv1d
    _options = (*Convolution._options, "groups")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._set_up(
            in_channels, out_channels, (kernel_size,), bias,
            padding=padding, dilation=dilation, stride=stride, groups=groups,
        )  # fmt: skip


class Conv2d(Convolution):
    """Computes the convolution of ``x`` of shape ``[N, H, W, C]`` with filters of two axes.

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the result, that of filters.
        kernel_size: the elements of a filter along each axis, or along both.
        stride: the steps between the filter's positions. Default: 1.
        padding: how many zeros are put at each end. Default: 0.
        dilation: the steps between a filter's elements. Default: 1.
        groups: how many groups of channels are convolved apart. Default: 1.
        bias: whether a bias is added. Default: ``True``.

    Raises:
        ValueError: if the number of input channels is no multiple of the number of groups.
    """

    _space = 2
    _function = mx.conv2d
    _options = (*Convolution._options, "groups")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Union[int, tuple[int, int]],
        stride: Union[int, tuple[int, int]] = 1,
        padding: Union[int, tuple[int, int]] = 0,
        dilation: Union[int, tuple[int, int]] = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._set_up(
            in_channels, out_channels, kernel_size, bias,
            padding=padding, stride=stride, dilation=dilation, groups=groups,
        )  # fmt: skip


class Conv3d(Convolution):
    """Computes the convolution of ``x`` of shape ``[N, D, H, W, C]`` with filters of three axes.

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the result, that of filters.
        kernel_size: the elements of a filter along each axis, or along all.
        stride: the steps between the filter's positions. Default: 1.
        padding: how many zeros are put at each end. Default: 0.
        dilation: the steps between a filter's elements. Default: 1.
        bias: whether a bias is added. Default: ``True``.
    """

    _space = 3
    _function = mx.conv3d

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Union[int, tuple[int, int, int]],
        stride: Union[int, tuple[int, int, int]] = 1,
        padding: Union[int, tuple[int, int, int]] = 0,
        dilation: Union[int, tuple[int, int, int]] = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._set_up(
            in_channels, out_channels, kernel_size, bias, padding=padding, stride=stride, dilation=dilation
        )
