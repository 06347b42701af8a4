"""The layers, each in the module of its kind."""

from weft.nn.layers.activations import *  # noqa: F403
from weft.nn.layers.base import Module
from weft.nn.layers.containers import Sequential
from weft.nn.layers.convolution import Conv1d, Conv2d, Conv3d
from weft.nn.layers.convolution_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from weft.nn.layers.distributed import (
    AllToShardedLinear,
    FullyShardedModule,
    QuantizedAllToShardedLinear,
    QuantizedShardedToAllLinear,
    ShardedToAllLinear,
    fully_shard,
)
from weft.nn.layers.dropout import Dropout, Dropout2d, Dropout3d
from weft.nn.layers.embedding import Embedding
from weft.nn.layers.linear import Bilinear, Identity, Linear
from weft.nn.layers.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from weft.nn.layers.pooling import AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d
from weft.nn.layers.positional_encoding import ALiBi, RoPE, SinusoidalPositionalEncoding
from weft.nn.layers.quantized import QQLinear, QuantizedEmbedding, QuantizedLinear, quantize
from weft.nn.layers.recurrent import GRU, LSTM, RNN
from weft.nn.layers.transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from weft.nn.layers.upsample import Upsample

from weft.nn.layers import activations as _activations

__all__ = [
    *_activations.__all__, "ALiBi", "AllToShardedLinear", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm",
    "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Dropout",
    "Dropout2d", "Dropout3d", "Embedding", "FullyShardedModule", "GRU", "GroupNorm", "Identity", "InstanceNorm", "LSTM",
    "LayerNorm", "Linear", "MaxPool1d", "MaxPool2d", "MaxPool3d", "Module", "MultiHeadAttention", "QQLinear",
    "QuantizedAllToShardedLinear", "QuantizedEmbedding", "QuantizedLinear", "QuantizedShardedToAllLinear", "RMSNorm",
    "RNN", "RoPE", "Sequential", "ShardedToAllLinear", "SinusoidalPositionalEncoding", "Transformer",
    "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "Upsample",
    "fully_shard", "quantize",
]  # fmt: skip
