"""Transposed convolutions over one, two and three axes of space."""

from __future__ import annotations

from typing import Union

import weft.core as mx
from weft.nn.layers.convolution import Convolution

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvTranspose(Convolution):
    _per_axis = (*Convolution._per_axis, "output_padding")
    _options = (*Convolution._options, "output_padding")


class ConvTranspose1d(_ConvTranspose):
    """Computes the transposed convolution of ``x`` of shape ``[N, L, C]`` with filters of one axis.

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the result, that of filters.
        kernel_size: the elements of a filter.
        stride: the step between positions in the result. Default: 1.
        padding: how many elements are taken away at each end. Default: 0.
        dilation: the step between a filter's elements. Default: 1.
        output_padding: how many elements are added at the end. Default: 0.
        bias: whether a bias is added. Default: ``True``.
    """

    _space = 1
    _function = mx.conv_transpose1d

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        output_padding: int = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._set_up(
            in_channels, out_channels, (kernel_size,), bias,
            padding=padding, dilation=dilation, stride=stride, output_padding=output_padding,
        )  # fmt: skip


class ConvTranspose2d(_ConvTranspose):
    """Computes the transposed convolution of ``x`` of shape ``[N, H, W, C]`` with filters of two axes.

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the result, that of filters.
        kernel_size: the elements of a filter along each axis, or along both.
        stride: the steps between positions in the result. Default: 1.
        padding: how many elements are taken away at each end. Default: 0.
        dilation: the steps between a filter's elements. Default: 1.
        output_padding: how many elements are added at the end. Default: 0.
        bias: whether a bias is added. Default: ``True``.
    """

    _space = 2
    _function = mx.conv_transpose2d

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Union[int, tuple[int, int]],
        stride: Union[int, tuple[int, int]] = 1,
        padding: Union[int, tuple[int, int]] = 0,
        dilation: Union[int, tuple[int, int]] = 1,
        output_padding: Union[int, tuple[int, int]] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._set_up(
            in_channels, out_channels, kernel_size, bias,
            padding=padding, stride=stride, dilation=dilation, output_padding=output_padding,
        )  # fmt: skip


class ConvTranspose3d(_ConvTranspose):
    """Computes the transposed convolution of ``x`` of shape ``[N, D, H, W, C]`` with filters of three axes.

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the result, that of filters.
        kernel_size: the elements of a filter along each axis, or along all.
        stride: the steps between positions in the result. Default: 1.
        padding: how many elements are taken away at each end. Default: 0.
        dilation: the steps between a filter's elements. Default: 1.
        output_padding: how many elements are added at the end. Default: 0.
        bias: whether a bias is added. Default: ``True``.
    """

    _space = 3
    _function = mx.conv_transpose3d

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Union[int, tuple[int, int, int]],
        stride: Union[int, tuple[int, int, int]] = 1,
        padding: Union[int, tuple[int, int, int]] = 0,
        dilation: Union[int, tuple[int, int, int]] = 1,
        output_padding: Union[int, tuple[int, int, int]] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self._set_up(
            in_channels, out_channels, kernel_size, bias,
            padding=padding, stride=stride, dilation=dilation, output_padding=output_padding,
        )  # fmt: skip
