"""Linear, Bilinear and Identity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional, Union

import weft.core as mx
from weft.nn.layers.base import Module

if TYPE_CHECKING:
    from weft.nn.layers.quantized import QQLinear, QuantizedLinear

__all__ = ["Bilinear", "Identity", "Linear"]


def initial_uniform(fan_in: int, *shape: int) -> mx.array:
    """Draw an array from the uniform distribution between -√(1/fan_in) and √(1/fan_in)."""
    bound = math.sqrt(1.0 / fan_in)
    return mx.random.uniform(low=-bound, high=bound, shape=shape)


def affine(x: mx.array, weight: mx.array, bias: Optional[mx.array]) -> mx.array:
    """Compute ``x Wᵀ + b``, or without ``b`` where there is none."""
    return x @ weight.T if bias is None else mx.addmm(bias, x, weight.T)


class Identity(Module):
    """Returns its input. Takes any arguments, so that it stands in for any layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __call__(self, x: mx.array) -> mx.array:
        return x


class Linear(Module):
    """Computes ``x Wᵀ + b`` over the last axis.

    ``weight`` has the shape ``[output_dims, input_dims]`` and ``bias`` ``[output_dims]``. Both are drawn from the
    uniform distribution between -√(1/input_dims) and √(1/input_dims).

    Args:
        input_dims: the size of the input's last axis.
        output_dims: the size of the result's last axis.
        bias: whether there is a bias. Default: ``True``.
    """

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = initial_uniform(input_dims, output_dims, input_dims)
        if bias:
            self.bias = initial_uniform(input_dims, output_dims)

    def _extra_repr(self) -> str:
        output_dims, input_dims = self.weight.shape
        return f"input_dims={input_dims}, output_dims={output_dims}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        return affine(x, self.weight, self.get("bias"))

    def to_quantized(
        self,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> Union["QuantizedLinear", "QQLinear"]:
        """Return a layer with the weight quantized.

        Args:
            group_size: how many elements share a scale. Default: the mode's, as of ``mx.quantize``.
            bits: the bits of an element. Default: the mode's.
            mode: ``"affine"``, ``"mxfp4"``, ``"nvfp4"`` or ``"mxfp8"``. Default: ``"affine"``.
            quantize_input: whether the input is quantized too, which modes ``"nvfp4"`` and ``"mxfp8"`` can
                (``QQLinear``). Default: ``False``.

        Raises:
            ValueError: for ``quantize_input`` in another mode.
        """
        from weft.nn.layers.quantized import QQLinear, QuantizedLinear, check_quantized_input

        if not quantize_input:
            return QuantizedLinear.from_linear(self, group_size, bits, mode)
        check_quantized_input(mode)
        return QQLinear.from_linear(self, group_size, bits, mode)


class Bilinear(Module):
    """Computes ``y[o] = Σ x2[j] W[o, j, i] x1[i] + b[o]`` over the last axes.

    ``weight`` has the shape ``[output_dims, input2_dims, input1_dims]`` and ``bias`` ``[output_dims]``. Both are drawn
    from the uniform distribution between -√(1/input1_dims) and √(1/input1_dims).

    Args:
        input1_dims: the size of the first input's last axis.
        input2_dims: the size of the second input's last axis.
        output_dims: the size of the result's last axis.
        bias: whether there is a bias. Default: ``True``.
    """

    def __init__(self, input1_dims: int, input2_dims: int, output_dims: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = initial_uniform(input1_dims, output_dims, input2_dims, input1_dims)
        if bias:
            self.bias = initial_uniform(input1_dims, output_dims)

    def _extra_repr(self) -> str:
        output_dims, input2_dims, input1_dims = self.weight.shape
        return (
            f"input1_dims={input1_dims}, input2_dims={input2_dims}, output_dims={output_dims}, bias={'bias' in self}"
        )

    def __call__(self, x1: mx.array, x2: mx.array) -> mx.array:
        output_dims, input2_dims, input1_dims = self.weight.shape
        axes = x1.shape[:-1]
        rows, others = x1.reshape(-1, input1_dims), x2.reshape(-1, 1, input2_dims)
        left = (rows @ self.weight.reshape(-1, input1_dims).T).reshape(-1, output_dims, input2_dims)
        y = (others @ left.swapaxes(-2, -1)).squeeze(1).reshape(*axes, output_dims)
        return y + self.bias if "bias" in self else y
