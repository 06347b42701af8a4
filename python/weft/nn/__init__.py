"""Neural networks: modules with parameters, layers, losses and initializers, with the names of ``mlx.nn``."""

from weft.nn import init, layers, losses, utils
from weft.nn.layers import *  # noqa: F403
from weft.nn.layers import (
    activations,
    base,
    containers,
    convolution,
    convolution_transpose,
    distributed,
    dropout,
    embedding,
    linear,
    normalization,
    pooling,
    positional_encoding,
    quantized,
    recurrent,
    transformer,
    upsample,
)
from weft.nn.utils import average_gradients, value_and_grad

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
    "TransformerEncoder", "TransformerEncoderLayer", "Upsample", "activations", "average_gradients", "base", "celu",
    "containers", "convolution", "convolution_transpose", "distributed", "dropout", "elu", "embedding",
    "fully_shard", "gelu", "gelu_approx", "gelu_fast_approx", "glu", "hard_shrink", "hard_tanh", "hardswish",
    "init", "layers", "leaky_relu", "linear", "log_sigmoid", "log_softmax", "losses", "mish", "normalization",
    "pooling", "positional_encoding", "prelu", "quantize", "quantized", "recurrent", "relu", "relu2", "relu6",
    "selu", "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "step", "tanh",
    "transformer", "upsample", "utils", "value_and_grad",
]  # fmt: skip
