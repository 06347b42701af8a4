"""Upsample: each result is a sum of elements of the input along each axis, with weights."""

from __future__ import annotations

import math
from typing import Callable, Literal, Union

import weft.core as mx
from weft.nn.layers.base import Module

__all__ = ["Upsample", "upsample_cubic", "upsample_linear", "upsample_nearest"]

Scales = Union[float, tuple[float, ...]]
# One term of the sum along an axis: where it reads, and its weights or None for ones.
Taps = list[tuple[mx.array, "mx.array | None"]]


def _linear(x: mx.array) -> mx.array:
    return mx.maximum(1 - x, 0)


def _cubic(a: float) -> Callable[[mx.array], mx.array]:
    """Return the cubic kernel of a distance (Keys 1981)."""

    def kernel(x: mx.array) -> mx.array:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = (((x - 5) * x + 8) * x - 4) * a
        return mx.where(x <= 1, near, mx.where(x < 2, far, 0))

    return kernel


# The reach of each mode's kernel, the kernel, and that of a filter that removes high frequencies.
_KERNELS = {
    "linear": (1, _linear, _linear),
    "cubic": (2, _cubic(-0.75), _cubic(-0.5)),
}


def _positions(size: int, count: int, scale: float, align_corners: bool) -> mx.array:
    """Return where results lie on the input's axis: the axes' centers coincide, or their first and last elements."""
    if align_corners:
        return mx.arange(count, dtype=mx.float32) * ((size - 1) / max(count - 1, 1))
    step = 1 / scale
    return mx.arange(count, dtype=mx.float32) * step - ((count - 1) * step - size + 1) / 2


def _nearest_taps(size: int, count: int) -> Taps:
    step = size / count
    positions = mx.arange(count, dtype=mx.float32)
    if count > size:
        nearest = mx.round((positions + 0.5) * step - 0.5)
    else:
        nearest = mx.floor(positions * step)
    return [(nearest.astype(mx.int32), None)]


def _kernel_taps(size: int, positions: mx.array, mode: str) -> Taps:
    """Return the terms of a mode's kernel. Elements beyond the ends are those at the ends."""
    reach, kernel, _ = _KERNELS[mode]
    if mode == "linear":
        positions = mx.clip(positions, 0, size - 1)
    first = mx.floor(positions)
    taps: Taps = []
    for k in range(1 - reach, reach + 1):
        at = first + k
        taps.append((mx.clip(at, 0, size - 1).astype(mx.int32), kernel(mx.abs(positions - at))))
    return taps


def _filter_taps(size: int, positions: mx.array, mode: str, scale: float) -> Taps:
    """Return the terms of a kernel that is wider where the axis shrinks; those beyond the ends count nothing."""
    reach, _, kernel = _KERNELS[mode]
    width = max(1 / scale, 1.0)
    wide = math.ceil(reach * width)
    first = mx.floor(positions)
    where, weights = [], []
    for k in range(-wide, wide + 1):
        at = first + k
        weight = kernel(mx.abs(positions - at) / width)
        weights.append(mx.where((at >= 0) & (at < size), weight, 0))
        where.append(mx.clip(at, 0, size - 1).astype(mx.int32))
    total = sum(weights[1:], weights[0])
    total = mx.where(total > 0, total, 1)
    return [(at, weight / total) for at, weight in zip(where, weights)]


def _along_axis(x: mx.array, axis: int, taps: Taps) -> mx.array:
    """Return the sum of the terms along an axis."""
    terms = []
    for where, weights in taps:
        term = mx.take(x, where, axis=axis)
        terms.append(term if weights is None else term * weights.reshape(-1, *[1] * (x.ndim - 1 - axis)))
    return sum(terms[1:], terms[0])


def _scale_of_each(x: mx.array, scale_factor: Scales) -> tuple[float, ...]:
    """Return the scale of each axis of space."""
    space = x.ndim - 2
    if space < 1:
        raise ValueError(
            "[Upsample] The input should have at least 1 spatial dimension which means it should be at least 3D "
            f"but {x.ndim}D was provided"
        )
    scales = tuple(scale_factor) if isinstance(scale_factor, (list, tuple)) else (scale_factor,) * space
    if len(scales) != space:
        raise ValueError(
            f"[Upsample] One scale per spatial dimension is required but scale_factor={scales} and the number of "
            f"spatial dimensions were {space}"
        )
    return scales


def upsample_nearest(x: mx.array, scale_factor: Scales) -> mx.array:
    """Return what ``Upsample`` in mode ``"nearest"`` does."""
    for axis, scale in enumerate(_scale_of_each(x, scale_factor), 1):
        if scale == int(scale):
            x = mx.repeat(x, int(scale), axis=axis)
        else:
            x = _along_axis(x, axis, _nearest_taps(x.shape[axis], int(scale * x.shape[axis])))
    return x


def _interpolated(x: mx.array, scale_factor: Scales, mode: str, align_corners: bool, antialias: bool) -> mx.array:
    if antialias and align_corners:
        raise ValueError("[Upsample] antialias=True is for interpolation with align_corners=False only.")
    for axis, scale in enumerate(_scale_of_each(x, scale_factor), 1):
        size = x.shape[axis]
        positions = _positions(size, int(scale * size), scale, align_corners)
        taps = _filter_taps(size, positions, mode, scale) if antialias else _kernel_taps(size, positions, mode)
        x = _along_axis(x, axis, taps)
    return x


def upsample_linear(
    x: mx.array, scale_factor: Scales, align_corners: bool = False, antialias: bool = False
) -> mx.array:
    """Return what ``Upsample`` in mode ``"linear"`` does."""
    return _interpolated(x, scale_factor, "linear", align_corners, antialias)


def upsample_cubic(
    x: mx.array, scale_factor: Scales, align_corners: bool = False, antialias: bool = False
) -> mx.array:
    """Return what ``Upsample`` in mode ``"cubic"`` does."""
    return _interpolated(x, scale_factor, "cubic", align_corners, antialias)


class Upsample(Module):
    """Enlarges, or shrinks, the axes of space of ``x`` of shape ``[N, ..., C]``.

    An axis of size n becomes one of size ``int(scale * n)``.

    Args:
        scale_factor: the scale, or one for each axis.
        mode: ``"nearest"`` takes the nearest element, ``"linear"`` and ``"cubic"`` interpolate between two and four
            along each axis. Default: ``"nearest"``.
        align_corners: whether the first and last elements of the result are those of the input; otherwise the centers
            of both are at the same position. Default: ``False``.
        antialias: whether interpolation over an axis that shrinks takes as many elements as are between two results,
            which removes frequencies that the result cannot hold. Default: ``False``.

    Raises:
        ValueError: for another mode, for ``antialias`` in mode ``"nearest"`` or with ``align_corners``, for an input
            with less than 3 axes, and for another number of scales than the input has axes of space.
    """

    def __init__(
        self,
        scale_factor: Scales,
        mode: Literal["nearest", "linear", "cubic"] = "nearest",
        align_corners: bool = False,
        antialias: bool = False,
    ) -> None:
        super().__init__()
        if mode != "nearest" and mode not in _KERNELS:
            raise ValueError(f"[Upsample] Got unsupported upsampling algorithm: {mode}")
        if antialias and (align_corners or mode == "nearest"):
            raise ValueError("[Upsample] antialias=True is for interpolation with align_corners=False only.")
        self.scale_factor: Scales
        if isinstance(scale_factor, (list, tuple)):
            self.scale_factor = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.antialias = antialias

    def _extra_repr(self) -> str:
        antialias = ", antialias=True" if self.antialias else ""
        return (
            f"scale_factor={self.scale_factor}, mode={self.mode!r}, align_corners={self.align_corners}{antialias}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        if self.mode == "nearest":
            return upsample_nearest(x, self.scale_factor)
        return _interpolated(x, self.scale_factor, self.mode, self.align_corners, self.antialias)
