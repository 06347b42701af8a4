"""Attention of several heads, and the encoders and decoders that are made of it (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Union

import weft.core as mx
from weft.nn.layers.activations import relu
from weft.nn.layers.base import Module
from weft.nn.layers.dropout import Dropout
from weft.nn.layers.linear import Linear
from weft.nn.layers.normalization import LayerNorm
from weft.nn.utils import checkpoint as checkpointed

__all__ = [
    "MultiHeadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip

Activation = Callable[[Any], Any]


class MultiHeadAttention(Module):
    """Computes ``softmax(Q Kᵀ / √d + mask) V`` for each head and projects the heads' results together.

    Q, K and V are linear functions of the inputs; ``query_proj``, ``key_proj``, ``value_proj`` and ``out_proj`` are
    the layers.

    Args:
        dims: the size of all queries of a position, and of all keys; a multiple of the number of heads.
        num_heads: the number of heads.
        query_input_dims: the size of the last axis of ``queries``. Default: ``dims``.
        key_input_dims: that of ``keys``. Default: ``dims``.
        value_input_dims: that of ``values``. Default: ``key_input_dims``.
        value_dims: the size of all values of a position. Default: ``dims``.
        value_output_dims: the size of the result's last axis. Default: ``dims``.
        bias: whether the linear functions have a bias. Default: ``False``.

    Raises:
        ValueError: if ``dims`` is no multiple of the number of heads.
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        query_input_dims: Optional[int] = None,
        key_input_dims: Optional[int] = None,
        value_input_dims: Optional[int] = None,
        value_dims: Optional[int] = None,
        value_output_dims: Optional[int] = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        if dims % num_heads != 0:
            raise ValueError(
                "The input feature dimensions should be divisible by the number of heads "
                f"({dims} % {num_heads}) != 0"
            )
        key_input_dims = key_input_dims or dims
        value_dims = value_dims or dims
        self.num_heads = num_heads
        self.query_proj = Linear(query_input_dims or dims, dims, bias=bias)
        self.key_proj = Linear(key_input_dims, dims, bias=bias)
        self.value_proj = Linear(value_input_dims or key_input_dims, value_dims, bias=bias)
        self.out_proj = Linear(value_dims, value_output_dims or dims, bias=bias)

    def _heads(self, x: mx.array) -> mx.array:
        """Return ``[N, L, D]`` as ``[N, heads, L, D / heads]``."""
        return mx.unflatten(x, -1, (self.num_heads, -1)).transpose(0, 2, 1, 3)

    def __call__(
        self, queries: mx.array, keys: mx.array, values: mx.array, mask: Optional[Union[mx.array, str]] = None
    ) -> mx.array:
        """Return the attention of queries to keys, of shape ``[N, queries, value_output_dims]``.

        Args:
            queries: of shape ``[N, queries, query_input_dims]``.
            keys: of shape ``[N, keys, key_input_dims]``.
            values: of shape ``[N, keys, value_input_dims]``.
            mask: what is added to the scores, or bools that say which keys count; broadcast to
                ``[N, heads, queries, keys]``. Or ``"causal"``, which hides later positions. Default: nothing.
        """
        q = self._heads(self.query_proj(queries))
        k = self._heads(self.key_proj(keys))
        v = self._heads(self.value_proj(values))
        scale = math.sqrt(1 / q.shape[-1])
        y = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)
        return self.out_proj(y.transpose(0, 2, 1, 3).flatten(-2, -1))

    @staticmethod
    def create_additive_causal_mask(N: int, dtype: mx.Dtype = mx.float32) -> mx.array:
        """Return a mask that hides later positions: the dtype's smallest number where ``column > row``, else 0.

        Args:
            N: the number of positions; the result has the shape ``[N, N]``.
            dtype: the dtype of the result. Default: float32.
        """
        positions = mx.arange(N)
        return (positions[:, None] < positions[None]).astype(dtype) * mx.finfo(dtype).min


class _Layer(Module):
    """What layers of encoders and decoders share: the sum of the input and of what a part computes, normalized."""

    norm_first: bool

    def _residual(
        self, x: mx.array, norm: LayerNorm, dropout: Optional[Module], part: Callable[[mx.array], mx.array]
    ) -> mx.array:
        y = part(norm(x) if self.norm_first else x)
        y = x + (y if dropout is None else dropout(y))
        return y if self.norm_first else norm(y)

    def _mlp(self, dropout: Module) -> Callable[[mx.array], mx.array]:
        return lambda y: self.linear2(dropout(self.activation(self.linear1(y))))


class TransformerEncoderLayer(_Layer):
    """Computes attention of the input to itself and then two linear layers, each added to its input.

    Args:
        dims: the size of the input's last axis.
        num_heads: the number of heads.
        mlp_dims: the size between the two linear layers. Default: ``4 * dims``.
        dropout: the probability of dropout. Default: 0.
        activation: the function between the two linear layers. Default: ``relu``.
        norm_first: whether layer norms are before the parts, and not behind the sums. Default: ``True``.
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: Optional[int] = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        mlp_dims = mlp_dims or 4 * dims
        self.attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def __call__(self, x: mx.array, mask: Optional[mx.array]) -> mx.array:
        """Return the layer's result, of the shape of ``x``.

        Args:
            x: the input, of shape ``[N, L, dims]``.
            mask: as of ``MultiHeadAttention``.
        """
        x = self._residual(x, self.ln1, self.dropout1, lambda y: self.attention(y, y, y, mask))
        return self._residual(x, self.ln2, None, self._mlp(self.dropout2))


class TransformerEncoder(Module):
    """Applies encoder layers in turn, and a layer norm.

    Args:
        num_layers: the number of layers.
        dims: the size of the input's last axis.
        num_heads: the number of heads.
        mlp_dims: the size between the two linear layers of a layer. Default: ``4 * dims``.
        dropout: the probability of dropout. Default: 0.
        activation: the function between the two linear layers. Default: ``relu``.
        norm_first: whether layer norms are before the parts of a layer. Default: ``True``.
        checkpoint: whether layers are computed again in the backward pass, to save memory. Default: ``False``.
    """

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: Optional[int] = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.layers = [
            TransformerEncoderLayer(dims, num_heads, mlp_dims, dropout, activation, norm_first)
            for _ in range(num_layers)
        ]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def __call__(self, x: mx.array, mask: Optional[mx.array]) -> mx.array:
        """Return the encoder's result, of the shape of ``x``, with the mask of each layer."""
        for layer in self.layers:
            x = (checkpointed(layer) if self.checkpoint else layer)(x, mask)
        return self.ln(x)


class TransformerDecoderLayer(_Layer):
    """Computes attention of the input to itself, to a memory, and two linear layers, each added to its input.

    Args:
        dims: the size of the input's last axis and the memory's.
        num_heads: the number of heads.
        mlp_dims: the size between the two linear layers. Default: ``4 * dims``.
        dropout: the probability of dropout. Default: 0.
        activation: the function between the two linear layers. Default: ``relu``.
        norm_first: whether layer norms are before the parts, and not behind the sums. Default: ``True``.
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: Optional[int] = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        mlp_dims = mlp_dims or 4 * dims
        self.self_attention = MultiHeadAttention(dims, num_heads)
        self.cross_attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.ln3 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def __call__(
        self, x: mx.array, memory: mx.array, x_mask: Optional[mx.array], memory_mask: Optional[mx.array]
    ) -> mx.array:
        """Return the layer's result, of the shape of ``x``.

        Args:
            x: the input, of shape ``[N, L, dims]``.
            memory: what the second attention is to, of shape ``[N, M, dims]``.
            x_mask: the mask of the attention to ``x``, as of ``MultiHeadAttention``.
            memory_mask: the mask of the attention to the memory.
        """
        x = self._residual(x, self.ln1, self.dropout1, lambda y: self.self_attention(y, y, y, x_mask))
        x = self._residual(
            x, self.ln2, self.dropout2, lambda y: self.cross_attention(y, memory, memory, memory_mask)
        )
        return self._residual(x, self.ln3, None, self._mlp(self.dropout3))


class TransformerDecoder(Module):
    """Applies decoder layers in turn, and a layer norm.

    Args:
        num_layers: the number of layers.
        dims: the size of the input's last axis and the memory's.
        num_heads: the number of heads.
        mlp_dims: the size between the two linear layers of a layer. Default: ``4 * dims``.
        dropout: the probability of dropout. Default: 0.
        activation: the function between the two linear layers. Default: ``relu``.
        norm_first: whether layer norms are before the parts of a layer. Default: ``True``.
        checkpoint: whether layers are computed again in the backward pass, to save memory. Default: ``False``.
    """

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: Optional[int] = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.layers = [
            TransformerDecoderLayer(dims, num_heads, mlp_dims, dropout, activation, norm_first)
            for _ in range(num_layers)
        ]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def __call__(
        self, x: mx.array, memory: mx.array, x_mask: Optional[mx.array], memory_mask: Optional[mx.array]
    ) -> mx.array:
        """Return the decoder's result, of the shape of ``x``, with the memory and the masks of each layer."""
        for layer in self.layers:
            x = (checkpointed(layer) if self.checkpoint else layer)(x, memory, x_mask, memory_mask)
        return self.ln(x)


class Transformer(Module):
    """Applies an encoder to a source, and a decoder to a target with the encoder's result as its memory.

    Args:
        dims: the size of the inputs' last axis. Default: 512.
        num_heads: the number of heads. Default: 8.
        num_encoder_layers: the number of the encoder's layers. Default: 6.
        num_decoder_layers: the number of the decoder's layers. Default: 6.
        mlp_dims: the size between the two linear layers of a layer. Default: ``4 * dims``.
        dropout: the probability of dropout. Default: 0.
        activation: the function between the two linear layers. Default: ``relu``.
        custom_encoder: what is called instead of a ``TransformerEncoder``. Default: nothing.
        custom_decoder: what is called instead of a ``TransformerDecoder``. Default: nothing.
        norm_first: whether layer norms are before the parts of a layer. Default: ``True``.
        checkpoint: whether layers are computed again in the backward pass, to save memory. Default: ``False``.
    """

    def __init__(
        self,
        dims: int = 512,
        num_heads: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        mlp_dims: Optional[int] = None,
        dropout: float = 0.0,
        activation: Activation = relu,
        custom_encoder: Optional[Any] = None,
        custom_decoder: Optional[Any] = None,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        options = (dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(num_encoder_layers, *options)
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(num_decoder_layers, *options)
        self.encoder = custom_encoder
        self.decoder = custom_decoder

    def __call__(
        self,
        src: mx.array,
        tgt: mx.array,
        src_mask: Optional[mx.array],
        tgt_mask: Optional[mx.array],
        memory_mask: Optional[mx.array],
    ) -> mx.array:
        """Return the decoder's result, of the shape of ``tgt``.

        Args:
            src: the source, of shape ``[N, M, dims]``.
            tgt: the target, of shape ``[N, L, dims]``.
            src_mask: the mask of the source's attention to itself, as of ``MultiHeadAttention``.
            tgt_mask: the mask of the target's attention to itself.
            memory_mask: the mask of the target's attention to the encoder's result.
        """
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)
