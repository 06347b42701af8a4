"""Initializers. Each function here returns one that takes an array and returns another of its shape."""

from __future__ import annotations

import math
from typing import Callable, Literal

import weft.core as mx

__all__ = [
    "constant", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity", "normal", "orthogonal",
    "sparse", "uniform",
]  # fmt: skip

Initializer = Callable[[mx.array], mx.array]
Mode = Literal["fan_in", "fan_out"]


def _fans(x: mx.array) -> tuple[int, int]:
    """Return how many inputs and outputs an element of a weight ``[outputs, ..., inputs]`` has."""
    if x.ndim < 2:
        raise ValueError(
            f"Glorot / He initialization requires at least 2 dimensional input but input with {x.ndim} dimensions."
        )
    window = math.prod(x.shape[1:-1])
    return x.shape[-1] * window, x.shape[0] * window


def _fan(x: mx.array, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Invalid mode: {mode}. Valid modes are: fan_in, fan_out")
    return _fans(x)[mode == "fan_out"]


def _draw_normal(x: mx.array, std: float, dtype: mx.Dtype) -> mx.array:
    return mx.random.normal(shape=x.shape, scale=std, dtype=dtype)


def _draw_uniform(x: mx.array, bound: float, dtype: mx.Dtype) -> mx.array:
    return mx.random.uniform(-bound, bound, x.shape, dtype=dtype)


def constant(value: float, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Return an initializer to a number.

    Args:
        value: the number.
        dtype: the dtype of the result. Default: float32.
    """
    return lambda a: mx.full(a.shape, value, dtype=dtype)


def normal(mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Return an initializer that draws from a normal distribution.

    Args:
        mean: its mean. Default: 0.
        std: its standard deviation. Default: 1.
        dtype: the dtype of the result. Default: float32.
    """
    return lambda a: mx.random.normal(shape=a.shape, scale=std, loc=mean, dtype=dtype)


def uniform(low: float = 0.0, high: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Return an initializer that draws from the uniform distribution in [low, high).

    Args:
        low: the lower end. Default: 0.
        high: the upper end. Default: 1.
        dtype: the dtype of the result. Default: float32.
    """
    return lambda a: mx.random.uniform(low, high, a.shape, dtype=dtype)


def identity(dtype: mx.Dtype = mx.float32) -> Initializer:
    """Return an initializer to the identity matrix. It raises ValueError for arrays that are no square matrices.

    Args:
        dtype: the dtype of the result. Default: float32.
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError(f"The input array must be a square matrix but got shape {a.shape}.")
        return mx.eye(a.shape[0], dtype=dtype)

    return initializer


def glorot_normal(dtype: mx.Dtype = mx.float32) -> Callable[..., mx.array]:
    """Return an initializer of ``a, gain=1.0`` that draws from a normal distribution (Glorot and Bengio 2010).

    The standard deviation is ``gain * √(2 / (fan_in + fan_out))``. For less than 2 axes it raises ValueError.

    Args:
        dtype: the dtype of the result. Default: float32.
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        return _draw_normal(a, gain * math.sqrt(2 / sum(_fans(a))), dtype)

    return initializer


def glorot_uniform(dtype: mx.Dtype = mx.float32) -> Callable[..., mx.array]:
    """Return an initializer of ``a, gain=1.0`` that draws from a uniform distribution (Glorot and Bengio 2010).

    The ends are ``±gain * √(6 / (fan_in + fan_out))``. For less than 2 axes it raises ValueError.

    Args:
        dtype: the dtype of the result. Default: float32.
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        return _draw_uniform(a, gain * math.sqrt(6 / sum(_fans(a))), dtype)

    return initializer


def he_normal(dtype: mx.Dtype = mx.float32) -> Callable[..., mx.array]:
    """Return an initializer of ``a, mode="fan_in", gain=1.0`` that draws from a normal distribution (He et al. 2015).

    The standard deviation is ``gain / √fan``. For another mode and for less than 2 axes it raises ValueError.

    Args:
        dtype: the dtype of the result. Default: float32.
    """

    def initializer(a: mx.array, mode: Mode = "fan_in", gain: float = 1.0) -> mx.array:
        return _draw_normal(a, gain / math.sqrt(_fan(a, mode)), dtype)

    return initializer


def he_uniform(dtype: mx.Dtype = mx.float32) -> Callable[..., mx.array]:
    """Return an initializer of ``a, mode="fan_in", gain=1.0`` that draws from a uniform distribution (He et al. 2015).

    The ends are ``±gain * √(3 / fan)``. For another mode and for less than 2 axes it raises ValueError.

    Args:
        dtype: the dtype of the result. Default: float32.
    """

    def initializer(a: mx.array, mode: Mode = "fan_in", gain: float = 1.0) -> mx.array:
        return _draw_uniform(a, gain * math.sqrt(3 / _fan(a, mode)), dtype)

    return initializer


def sparse(sparsity: float, mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Return an initializer of matrices that draws from a normal distribution and sets some of each row to 0.

    See Martens 2010. It raises ValueError for arrays that are no matrices.

    Args:
        sparsity: the share of each row that is 0, rounded up to whole elements.
        mean: the mean of the others. Default: 0.
        std: the standard deviation of the others. Default: 1.
        dtype: the dtype of the result. Default: float32.
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2:
            raise ValueError("Only tensors with 2 dimensions are supported")
        zeros = math.ceil(sparsity * a.shape[1])
        order = mx.argsort(mx.random.uniform(shape=a.shape), axis=1)
        values = mx.random.normal(shape=a.shape, scale=std, loc=mean, dtype=dtype)
        return mx.put_along_axis(values, order[:, :zeros], mx.array(0, dtype), axis=1)

    return initializer


def orthogonal(gain: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Return an initializer to a part of an orthogonal matrix, uniformly distributed (Saxe et al. 2013; Mezzadri 2007).

    It raises ValueError for arrays that are no matrices.

    Args:
        gain: what the matrix is multiplied by. Default: 1.
        dtype: the dtype of the result. Default: float32.
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2:
            raise ValueError(f"Orthogonal initialization requires a 2D array but got a {a.ndim}D array.")
        rows, columns = a.shape
        size = max(rows, columns)
        # Signs make the factorization unique, and so its Q as evenly distributed as the normal matrix's directions.
        q, r = mx.linalg.qr(mx.random.normal(shape=(size, size)), stream=mx.cpu)
        return ((q * mx.sign(mx.diag(r)))[:rows, :columns] * gain).astype(dtype)

    return initializer
