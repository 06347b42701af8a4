"""Encodings of positions: rotations, sines and cosines, linear biases."""

from __future__ import annotations

import math
from typing import Optional

import weft.core as mx
from weft.nn.layers.base import Module

__all__ = ["ALiBi", "RoPE", "SinusoidalPositionalEncoding"]


class RoPE(Module):
    """Rotates pairs of features by angles that grow with the position (Su et al. 2021).

    The input has the shape ``[..., positions, features]``. Pair i of the first ``dims`` features is rotated by
    ``scale * position / base**(2 i / dims)``; the other features stay.

    Args:
        dims: how many features are rotated.
        traditional: whether a pair is two neighbouring features; otherwise it is features i and i + dims/2.
            Default: ``False``.
        base: what the angles' periods grow with. Default: 10000.
        scale: what positions are multiplied by. Default: 1.
    """

    def __init__(self, dims: int, traditional: bool = False, base: float = 10000, scale: float = 1.0) -> None:
        super().__init__()
        self.dims = dims
        self.traditional = traditional
        self.base = base
        self.scale = scale

    def _extra_repr(self) -> str:
        return f"{self.dims}, traditional={self.traditional}"

    def __call__(self, x: mx.array, offset: int = 0) -> mx.array:
        return mx.fast.rope(
            x, self.dims, traditional=self.traditional, base=self.base, scale=self.scale, offset=offset
        )


class SinusoidalPositionalEncoding(Module):
    """Returns sines and cosines of each position at several frequencies (Vaswani et al. 2017).

    For positions of any shape the result has one more axis, of size ``dims``: ``dims / 2`` sines, then as many
    cosines, all multiplied by ``scale``. Frequencies fall from ``max_freq`` to ``min_freq`` in equal ratios.

    Args:
        dims: the size of the new axis, positive and even.
        min_freq: the lowest frequency. Default: 0.0001.
        max_freq: the highest frequency. Default: 1.
        scale: what the result is multiplied by. Default: √(2 / dims).
        cos_first: whether the cosines come first. Default: ``False``.
        full_turns: whether frequencies are in turns, and not in radians, per position. Default: ``False``.

    Raises:
        ValueError: if ``dims`` is not positive and even.
    """

    def __init__(
        self,
        dims: int,
        min_freq: float = 0.0001,
        max_freq: float = 1,
        scale: Optional[float] = None,
        cos_first: bool = False,
        full_turns: bool = False,
    ) -> None:
        super().__init__()
        if dims <= 0 or dims % 2 != 0:
            raise ValueError(f"[SinusoidalPositionalEncoding] dims must be positive and even but got {dims}.")
        count, low, high = dims // 2, math.log(min_freq), math.log(max_freq)
        share = mx.array([1.0]) if count == 1 else 1 - mx.arange(0, count) / (count - 1)
        self._sigmas = mx.exp(share * (high - low) + low)
        if full_turns:
            self._sigmas = self._sigmas * (2 * math.pi)
        self.scale = math.sqrt(2 / dims) if scale is None else scale
        self.cos_first = cos_first

    def __call__(self, x: mx.array) -> mx.array:
        angles = mx.expand_dims(x, -1) * self._sigmas
        sines, cosines = mx.sin(angles), mx.cos(angles)
        y = mx.concatenate([cosines, sines] if self.cos_first else [sines, cosines], axis=-1)
        return y if self.scale == 1 else y * self.scale


class ALiBi(Module):
    """Adds to attention scores minus the distance of positions times a slope for each head (Press et al. 2021)."""

    @staticmethod
    def create_alibi_matrix(
        q_sequence_length: int,
        k_sequence_length: int,
        num_heads: int,
        offset: int = 0,
        dtype: mx.Dtype = mx.float32,
    ) -> mx.array:
        """Return the biases ``-slope * |i - j|``, of shape ``[1, num_heads, q_sequence_length - offset, keys]``.

        Args:
            q_sequence_length: the position behind the last query.
            k_sequence_length: the number of keys; their positions begin with 0.
            num_heads: the number of heads.
            offset: the position of the first query. Default: 0.
            dtype: the dtype of the result. Default: float32.
        """
        queries, keys = mx.arange(offset, q_sequence_length), mx.arange(0, k_sequence_length)
        distances = mx.abs(mx.expand_dims(queries[:, None] - keys[None, :], (0, 1)))
        return (-distances).astype(dtype) * ALiBi.create_alibi_slope(num_heads, dtype)

    @staticmethod
    def create_alibi_slope(num_heads: int, dtype: mx.Dtype = mx.float32) -> mx.array:
        """Return the slope of each head, of shape ``[num_heads, 1, 1]``.

        For a power of two they are ``2**(-8 k / num_heads)`` for k = 1, 2, ...; for other numbers those of the next
        lower power of two, then every other one of twice that power.

        Args:
            num_heads: the number of heads.
            dtype: the dtype of the result. Default: float32.
        """

        def slopes(count: int) -> list[float]:
            return [2 ** (-8 * k / count) for k in range(1, count + 1)]

        power = 1 << (num_heads.bit_length() - 1)
        values = slopes(power) + slopes(2 * power)[::2][: num_heads - power]
        return mx.expand_dims(mx.array(values, dtype), (-1, -2))

    def __call__(self, attention_scores: mx.array, offset: int = 0, mask: Optional[mx.array] = None) -> mx.array:
        """Return scores, of shape ``[N, heads, queries, keys]``, with the biases added.

        Args:
            attention_scores: the scores.
            offset: the position of the first query. Default: 0.
            mask: what is also added. Default: nothing.
        """
        _, heads, queries, keys = attention_scores.shape
        biases = self.create_alibi_matrix(queries + offset, keys, heads, offset, attention_scores.dtype)
        return attention_scores + (biases if mask is None else biases + mask)
