"""Embedding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Optional

import weft.core as mx
from weft.nn.layers.base import Module

if TYPE_CHECKING:
    from weft.nn.layers.quantized import QuantizedEmbedding

__all__ = ["Embedding"]


class Embedding(Module):
    """Returns the row of ``weight`` that each integer names.

    ``weight`` has the shape ``[num_embeddings, dims]`` and is drawn from the normal distribution with standard
    deviation √(1/dims).

    Args:
        num_embeddings: how many integers have a row.
        dims: the size of a row.
    """

    def __init__(self, num_embeddings: int, dims: int) -> None:
        super().__init__()
        self.weight = mx.random.normal(shape=(num_embeddings, dims), scale=math.sqrt(1 / dims))

    def _extra_repr(self) -> str:
        num_embeddings, dims = self.weight.shape
        return f"{num_embeddings}, {dims}"

    def __call__(self, x: mx.array) -> mx.array:
        return self.weight[x]

    def as_linear(self, x: mx.array) -> mx.array:
        """Compute ``x Wᵀ``: scores of all rows, for an output layer that shares the embedding's weight."""
        return x @ self.weight.T

    def to_quantized(
        self,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> "QuantizedEmbedding":
        """Return a layer with the weight quantized.

        Args:
            group_size: how many elements share a scale. Default: the mode's, as of ``mx.quantize``.
            bits: the bits of an element. Default: the mode's.
            mode: ``"affine"``, ``"mxfp4"``, ``"nvfp4"`` or ``"mxfp8"``. Default: ``"affine"``.
            quantize_input: must be ``False``, because integers are not quantized.

        Raises:
            ValueError: for ``quantize_input``.
        """
        from weft.nn.layers.quantized import QuantizedEmbedding

        if quantize_input:
            raise ValueError("The input of an embedding cannot be quantized.")
        return QuantizedEmbedding.from_embedding(self, group_size, bits, mode)
