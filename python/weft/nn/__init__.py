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
    *layers.__all__, "activations", "average_gradients", "base", "containers", "convolution", "convolution_transpose",
    "distributed", "dropout", "embedding", "init", "layers", "linear", "losses", "normalization", "pooling",
    "positional_encoding", "quantized", "recurrent", "transformer", "upsample", "utils", "value_and_grad",
]  # fmt: skip
