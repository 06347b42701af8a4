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

__all__ = [
    "ALiBi", "AllToShardedLinear", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm", "Bilinear", "CELU", "Conv1d",
    "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Dropout", "Dropout2d",
    "Dropout3d", "ELU", "Embedding", "FullyShardedModule", "GELU", "GLU", "GRU", "GroupNorm", "HardShrink",
    "HardTanh", "Hardswish", "Identity", "InstanceNorm", "LSTM", "LayerNorm", "LeakyReLU", "Linear", "LogSigmoid",
    "LogSoftmax", "MaxPool1d", "MaxPool2d", "MaxPool3d", "Mish", "Module", "MultiHeadAttention", "PReLU",
    "QQLinear", "QuantizedAllToShardedLinear", "QuantizedEmbedding", "QuantizedLinear",
    "QuantizedShardedToAllLinear", "RMSNorm", "RNN", "ReLU", "ReLU2", "ReLU6", "RoPE", "SELU", "Sequential",
    "ShardedToAllLinear", "SiLU", "Sigmoid", "SinusoidalPositionalEncoding", "Softmax", "Softmin", "Softplus",
    "Softshrink", "Softsign", "Step", "Tanh", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer", "Upsample", "celu", "elu", "fully_shard", "gelu",
    "gelu_approx", "gelu_fast_approx", "glu", "hard_shrink", "hard_tanh", "hardswish", "leaky_relu", "log_sigmoid",
    "log_softmax", "mish", "prelu", "quantize", "relu", "relu2", "relu6", "selu", "sigmoid", "silu", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "step", "tanh",
]  # fmt: skip
