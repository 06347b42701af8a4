"""Activation functions, and a module for each."""

from __future__ import annotations

from typing import Callable, ClassVar

import weft.core as mx
from weft.nn.layers.base import Module

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "HardShrink", "HardTanh", "Hardswish", "LeakyReLU", "LogSigmoid", "LogSoftmax",
    "Mish", "PReLU", "ReLU", "ReLU2", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmin", "Softplus",
    "Softshrink", "Softsign", "Step", "Tanh", "celu", "elu", "gelu", "gelu_approx", "gelu_fast_approx", "glu",
    "hard_shrink", "hard_tanh", "hardswish", "leaky_relu", "log_sigmoid", "log_softmax", "mish", "prelu", "relu",
    "relu2", "relu6", "selu", "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "step",
    "tanh",
]  # fmt: skip

# The constants of selu to the digits that MLX uses.
_SELU_ALPHA = 1.67326
_SELU_SCALE = 1.0507


def sigmoid(x: mx.array) -> mx.array:
    """Compute ``1 / (1 + exp(-x))``."""
    return mx.sigmoid(x)


def relu(x: mx.array) -> mx.array:
    """Compute ``max(x, 0)``."""
    return mx.maximum(x, 0)


def relu2(x: mx.array) -> mx.array:
    """Compute ``max(x, 0)²`` (So et al. 2021, Primer)."""
    return mx.square(relu(x))


def relu6(x: mx.array) -> mx.array:
    """Compute ``min(max(x, 0), 6)``."""
    return mx.minimum(relu(x), 6.0)


def leaky_relu(x: mx.array, negative_slope: float = 0.01) -> mx.array:
    """Compute ``max(negative_slope * x, x)``."""
    return mx.maximum(negative_slope * x, x)


def prelu(x: mx.array, alpha: mx.array) -> mx.array:
    """Compute ``max(x, 0) + alpha * min(x, 0)`` (He et al. 2015), where ``alpha`` broadcasts with ``x``."""
    return mx.maximum(0, x) + alpha * mx.minimum(0, x)


def elu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """Compute ``x`` where it is positive, else ``alpha * (exp(x) - 1)`` (Clevert et al. 2015)."""
    return mx.where(x > 0, x, alpha * (mx.exp(x) - 1))


def celu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """Compute ``max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)`` (Barron 2017)."""
    return mx.maximum(x, 0.0) + alpha * (mx.exp(mx.minimum(x, 0.0) / alpha) - 1)


def selu(x: mx.array) -> mx.array:
    """Compute ``1.0507 * elu(x, 1.67326)`` (Klambauer et al. 2017)."""
    return elu(x, _SELU_ALPHA) * _SELU_SCALE


def gelu(x: mx.array) -> mx.array:
    """Compute ``x * Φ(x)``, where Φ is the distribution function of the standard normal distribution.

    See Hendrycks and Gimpel 2016. ``gelu_approx`` and ``gelu_fast_approx`` approximate it.
    """
    return mx.fast.gelu(x)


def gelu_approx(x: mx.array) -> mx.array:
    """Compute ``x / 2 * (1 + tanh(√(2/π) * (x + 0.044715 x³)))``, which is ``gelu`` within 0.0005."""
    return mx.fast.gelu_tanh(x)


def gelu_fast_approx(x: mx.array) -> mx.array:
    """Compute ``x * sigmoid(1.702 x)``, which is ``gelu`` within 0.021."""
    return x * mx.sigmoid(1.702 * x)


def silu(x: mx.array) -> mx.array:
    """Compute ``x * sigmoid(x)``, also known as swish (Hendrycks and Gimpel 2016)."""
    return x * mx.sigmoid(x)


def mish(x: mx.array) -> mx.array:
    """Compute ``x * tanh(softplus(x))`` (Misra 2019)."""
    return x * mx.tanh(softplus(x))


def hardswish(x: mx.array) -> mx.array:
    """Compute ``x * min(max(x + 3, 0), 6) / 6`` (Howard et al. 2019)."""
    return x * mx.minimum(mx.maximum(x + 3, 0), 6) / 6


def glu(x: mx.array, axis: int = -1) -> mx.array:
    """Compute ``a * sigmoid(b)``, where ``a`` and ``b`` are the halves of ``x`` along an axis (Dauphin et al. 2016).

    Args:
        x: the input; the axis must have an even size.
        axis: the axis that is halved. Default: the last.
    """
    a, b = mx.split(x, 2, axis=axis)
    return a * mx.sigmoid(b)


def tanh(x: mx.array) -> mx.array:
    """Compute the hyperbolic tangent."""
    return mx.tanh(x)


def hard_tanh(x: mx.array, min_val: float = -1.0, max_val: float = 1.0) -> mx.array:
    """Compute ``min(max(x, min_val), max_val)``."""
    return mx.minimum(mx.maximum(x, min_val), max_val)


def hard_shrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """Compute ``x`` where its absolute value is more than ``lambd``, else 0."""
    return mx.where(mx.abs(x) > lambd, x, 0)


def softshrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """Compute ``x - sign(x) * lambd`` where the absolute value is more than ``lambd``, else 0."""
    return mx.where(mx.abs(x) > lambd, x - mx.sign(x) * lambd, 0)


def softplus(x: mx.array) -> mx.array:
    """Compute ``log(1 + exp(x))``."""
    return mx.logaddexp(x, 0)


def softsign(x: mx.array) -> mx.array:
    """Compute ``x / (1 + |x|)``."""
    return x / (1 + mx.abs(x))


def step(x: mx.array, threshold: float = 0.0) -> mx.array:
    """Compute 1 where ``x`` is at least ``threshold``, else 0, as int32."""
    return mx.where(x >= threshold, 1, 0)


def softmax(x: mx.array, axis: int = -1) -> mx.array:
    """Compute ``exp(x) / sum(exp(x))`` along an axis."""
    return mx.softmax(x, axis=axis)


def softmin(x: mx.array, axis: int = -1) -> mx.array:
    """Compute ``softmax(-x)`` along an axis."""
    return mx.softmax(-x, axis=axis)


def log_softmax(x: mx.array, axis: int = -1) -> mx.array:
    """Compute ``x - log(sum(exp(x)))`` along an axis, without overflow."""
    below = x - mx.stop_gradient(mx.max(x, axis=axis, keepdims=True))
    return below - mx.logsumexp(below, axis=axis, keepdims=True)


def log_sigmoid(x: mx.array) -> mx.array:
    """Compute ``log(sigmoid(x))`` as ``-softplus(-x)``."""
    return -softplus(-x)


class _Activation(Module):
    """A module of a function of one array, without parameters or options."""

    _function: ClassVar[Callable[..., mx.array]]

    def __call__(self, x: mx.array) -> mx.array:
        return type(self)._function(x)


class Sigmoid(_Activation):
    """Computes ``sigmoid``."""

    _function = staticmethod(sigmoid)


class Mish(_Activation):
    """Computes ``mish``."""

    _function = staticmethod(mish)


class ReLU(_Activation):
    """Computes ``relu``."""

    _function = staticmethod(relu)


class ReLU2(_Activation):
    """Computes ``relu2``."""

    _function = staticmethod(relu2)


class ReLU6(_Activation):
    """Computes ``relu6``."""

    _function = staticmethod(relu6)


class Softmax(_Activation):
    """Computes ``softmax`` along the last axis."""

    _function = staticmethod(softmax)


class Softmin(_Activation):
    """Computes ``softmin`` along the last axis."""

    _function = staticmethod(softmin)


class LogSoftmax(_Activation):
    """Computes ``log_softmax`` along the last axis."""

    _function = staticmethod(log_softmax)


class Softplus(_Activation):
    """Computes ``softplus``."""

    _function = staticmethod(softplus)


class Softsign(_Activation):
    """Computes ``softsign``."""

    _function = staticmethod(softsign)


class SiLU(_Activation):
    """Computes ``silu``."""

    _function = staticmethod(silu)


class LogSigmoid(_Activation):
    """Computes ``log_sigmoid``."""

    _function = staticmethod(log_sigmoid)


class Tanh(_Activation):
    """Computes ``tanh``."""

    _function = staticmethod(tanh)


class Hardswish(_Activation):
    """Computes ``hardswish``."""

    _function = staticmethod(hardswish)


class SELU(_Activation):
    """Computes ``selu``."""

    _function = staticmethod(selu)


class HardTanh(_Activation):
    """Computes ``hard_tanh`` between -1 and 1."""

    _function = staticmethod(hard_tanh)


class GLU(Module):
    """Computes ``glu``.

    Args:
        axis: the axis that is halved. Default: the last.
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: mx.array) -> mx.array:
        return glu(x, axis=self.axis)


class LeakyReLU(Module):
    """Computes ``leaky_relu``.

    Args:
        negative_slope: the slope where ``x`` is negative. Default: 0.01.
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self._negative_slope = negative_slope

    def __call__(self, x: mx.array) -> mx.array:
        return leaky_relu(x, self._negative_slope)


class PReLU(Module):
    """Computes ``prelu`` with a parameter ``weight`` of shape ``[num_parameters]`` as its ``alpha``.

    Args:
        num_parameters: 1, or the size of the input's last axis. Default: 1.
        init: the initial value. Default: 0.25.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.weight = mx.full([num_parameters], init)

    def __call__(self, x: mx.array) -> mx.array:
        return prelu(x, self.weight)


class ELU(Module):
    """Computes ``elu``.

    Args:
        alpha: minus the limit to the left. Default: 1.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        return elu(x, self._alpha)


class CELU(Module):
    """Computes ``celu``.

    Args:
        alpha: minus the limit to the left. Default: 1.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        return celu(x, self._alpha)


class GELU(Module):
    """Computes ``gelu`` or an approximation.

    Args:
        approx: ``"none"`` for ``gelu``, ``"precise"`` or ``"tanh"`` for ``gelu_approx``, ``"fast"`` for
            ``gelu_fast_approx``. Default: ``"none"``.

    Raises:
        ValueError: for any other name.
    """

    _FUNCTIONS: ClassVar[dict[str, Callable[[mx.array], mx.array]]] = {
        "none": gelu, "precise": gelu_approx, "tanh": gelu_approx, "fast": gelu_fast_approx,
    }  # fmt: skip

    def __init__(self, approx: str = "none") -> None:
        super().__init__()
        if approx not in self._FUNCTIONS:
            raise ValueError(f"The approximation should be in {list(self._FUNCTIONS)} but '{approx}' was given")
        self._approx = approx

    def __call__(self, x: mx.array) -> mx.array:
        return self._FUNCTIONS[self._approx](x)


class Softshrink(Module):
    """Computes ``softshrink``.

    Args:
        lambd: half the width of what becomes 0. Default: 0.5.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        return softshrink(x, self.lambd)


class HardShrink(Module):
    """Computes ``hard_shrink``.

    Args:
        lambd: half the width of what becomes 0. Default: 0.5.
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        return hard_shrink(x, self.lambd)


class Step(Module):
    """Computes ``step``.

    Args:
        threshold: the smallest number that becomes 1. Default: 0.
    """

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__()
        self.threshold = threshold

    def __call__(self, x: mx.array) -> mx.array:
        return step(x, self.threshold)
