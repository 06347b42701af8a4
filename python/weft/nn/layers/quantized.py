"""Layers whose weights are codes of a few bits, with a scale (and a bias, in mode ``"affine"``) for each group."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Union

import weft.core as mx
from weft.nn.layers.base import Module
from weft.nn.layers.linear import initial_uniform
from weft.utils import tree_map_with_path

__all__ = ["QQLinear", "QuantizedEmbedding", "QuantizedLinear", "quantize"]

# The group size and the bits of each mode.
_DEFAULTS = {"affine": (64, 4), "mxfp4": (32, 4), "nvfp4": (16, 4), "mxfp8": (32, 8)}
# The modes in which the input of a layer may be quantized too.
_INPUT_MODES = ("nvfp4", "mxfp8")


def check_quantized_input(mode: str) -> None:
    """Raise ValueError for a mode in which inputs are not quantized."""
    if mode not in _INPUT_MODES:
        raise ValueError(
            f"Quantized activations are only supported for 'nvfp4' and 'mxfp8' modes, got {mode}."
        )


class Quantized(Module):
    """What layers with a quantized weight share: its options, its parameters and its text.

    ``weight`` holds the codes as uint32 of shape ``[rows, columns * bits / 32]``, ``scales`` (and ``biases`` in mode
    ``"affine"``, else ``None``) have the shape ``[rows, columns / group_size]``.
    """

    def _set_options(self, group_size: Optional[int], bits: Optional[int], mode: str) -> None:
        if mode not in _DEFAULTS:
            raise ValueError(f"Invalid quantization mode '{mode}'. Valid modes are: {', '.join(_DEFAULTS)}.")
        default_group_size, default_bits = _DEFAULTS[mode]
        self.group_size = group_size or default_group_size
        self.bits = bits or default_bits
        self.mode = mode

    def _options(self) -> dict[str, Any]:
        return {"group_size": self.group_size, "bits": self.bits, "mode": self.mode}

    def _options_repr(self) -> str:
        return "".join(f", {name}={value}" for name, value in self._options().items())

    def _set_weight(self, weight: mx.array) -> None:
        """Quantize a matrix."""
        self.weight, self.scales, *biases = mx.quantize(weight, **self._options())
        self.biases = biases[0] if biases else None

    def _columns(self) -> int:
        return self.weight.shape[-1] * 32 // self.bits

    def _times_weight(self, x: mx.array) -> mx.array:
        """Compute ``x Wᵀ``."""
        return mx.quantized_matmul(
            x, self.weight, scales=self.scales, biases=self.biases, transpose=True, **self._options()
        )


class QuantizedLinear(Quantized):
    """Computes ``x Wᵀ + b`` with a quantized ``W``.

    Args:
        input_dims: the size of the input's last axis.
        output_dims: the size of the result's last axis.
        bias: whether there is a bias, of shape ``[output_dims]``. Default: ``True``.
        group_size: how many elements share a scale. Default: the mode's, as of ``mx.quantize``.
        bits: the bits of an element. Default: the mode's.
        mode: ``"affine"``, ``"mxfp4"``, ``"nvfp4"`` or ``"mxfp8"``. Default: ``"affine"``.

    Raises:
        ValueError: for another mode, and for sizes that do not suit it.
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> None:
        super().__init__()
        self._set_options(group_size, bits, mode)
        self._set_weight(initial_uniform(input_dims, output_dims, input_dims))
        if bias:
            self.bias = mx.zeros((output_dims,))
        self.freeze()

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self._columns()}, output_dims={self.weight.shape[0]}, "
            f"bias={'bias' in self}{self._options_repr()}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        y = self._times_weight(x)
        return y + self.bias if "bias" in self else y

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> "QuantizedLinear":
        """Return a layer with the quantized weight and the bias of a ``Linear``."""
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, False, group_size, bits, mode)
        layer._set_weight(linear_layer.weight)
        if "bias" in linear_layer:
            layer.bias = linear_layer.bias
        return layer


class QuantizedEmbedding(Quantized):
    """Returns the dequantized row of the weight that each integer names.

    Args:
        num_embeddings: how many integers have a row.
        dims: the size of a row.
        group_size: how many elements share a scale. Default: the mode's, as of ``mx.quantize``.
        bits: the bits of an element. Default: the mode's.
        mode: ``"affine"``, ``"mxfp4"``, ``"nvfp4"`` or ``"mxfp8"``. Default: ``"affine"``.

    Raises:
        ValueError: for another mode, and for sizes that do not suit it.
    """

    def __init__(
        self,
        num_embeddings: int,
        dims: int,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> None:
        super().__init__()
        self._set_options(group_size, bits, mode)
        self._set_weight(mx.random.normal(shape=(num_embeddings, dims), scale=math.sqrt(1 / dims)))
        self.num_embeddings = num_embeddings
        self.dims = dims
        self.freeze()

    def _extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.dims}{self._options_repr()}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.dequantize(
            self.weight[x],
            scales=self.scales[x],
            biases=None if self.biases is None else self.biases[x],
            **self._options(),
        )

    def as_linear(self, x: mx.array) -> mx.array:
        """Compute ``x Wᵀ``: scores of all rows, for an output layer that shares the embedding's weight."""
        return self._times_weight(x)

    @classmethod
    def from_embedding(
        cls,
        embedding_layer: Module,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "affine",
    ) -> "QuantizedEmbedding":
        """Return a layer with the quantized weight of an ``Embedding``."""
        num_embeddings, dims = embedding_layer.weight.shape
        layer = cls(num_embeddings, dims, group_size, bits, mode)
        layer._set_weight(embedding_layer.weight)
        return layer


class QQLinear(Quantized):
    """Computes ``x Wᵀ`` with both ``x`` and ``W`` quantized.

    In training, ``weight`` holds the numbers, of shape ``[output_dims, input_dims]``, and is trainable; in evaluation
    it holds their codes, and there are ``scales``. ``train`` and ``eval`` convert between the two.

    Args:
        input_dims: the size of the input's last axis.
        output_dims: the size of the result's last axis.
        group_size: how many elements share a scale. Default: the mode's, as of ``mx.quantize``.
        bits: the bits of an element. Default: the mode's.
        mode: ``"nvfp4"`` or ``"mxfp8"``. Default: ``"nvfp4"``.
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "nvfp4",
    ) -> None:
        super().__init__()
        self._set_options(group_size, bits, mode)
        self.weight = initial_uniform(input_dims, output_dims, input_dims)
        self._quantized = False

    def _extra_repr(self) -> str:
        input_dims = self._columns() if self._quantized else self.weight.shape[-1]
        return f"input_dims={input_dims}, output_dims={self.weight.shape[0]}{self._options_repr()}"

    def quantize(self) -> None:
        """Replace the weight by its codes and scales, if it is not quantized."""
        if not self._quantized:
            quantized: Any = mx.quantize(self.weight, **self._options())
            self.weight, self.scales = quantized  # modes of inputs have no biases
            self._quantized = True

    def dequantize(self) -> None:
        """Replace the codes and scales by numbers, if the weight is quantized."""
        if self._quantized:
            self.weight = mx.dequantize(self.weight, scales=self.scales, **self._options())
            del self.scales
            self._quantized = False

    def _set_training_mode(self, mode: bool) -> None:
        super()._set_training_mode(mode)
        if mode:
            self.dequantize()
        else:
            self.quantize()

    def __call__(self, x: mx.array) -> mx.array:
        return mx.qqmm(x, self.weight, scales=self.get("scales"), **self._options())

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: Optional[int] = None,
        bits: Optional[int] = None,
        mode: str = "nvfp4",
    ) -> "QQLinear":
        """Return a layer with the weight and the mode, training or evaluation, of a ``Linear``.

        Raises:
            NotImplementedError: if the layer has a bias.
        """
        if "bias" in linear_layer:
            raise NotImplementedError("QQLinear does not support bias yet.")
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, group_size, bits, mode)
        layer.weight = linear_layer.weight
        layer.train(linear_layer.training)
        return layer


def quantize(
    model: Module,
    group_size: Optional[int] = None,
    bits: Optional[int] = None,
    *,
    mode: str = "affine",
    quantize_input: bool = False,
    class_predicate: Optional[Callable[[str, Module], Union[bool, dict[str, Any]]]] = None,
) -> None:
    """Replace the layers of a model by quantized ones.

    Args:
        model: the model, which is changed.
        group_size: how many elements share a scale. Default: the mode's, as of ``mx.quantize``.
        bits: the bits of an element. Default: the mode's.
        mode: ``"affine"``, ``"mxfp4"``, ``"nvfp4"`` or ``"mxfp8"``. Default: ``"affine"``.
        quantize_input: whether inputs are quantized too, as of ``Linear.to_quantized``. Default: ``False``.
        class_predicate: of the name and the layer: whether it is replaced, or the arguments of its ``to_quantized``
            as a dict. Default: all layers that have ``to_quantized``.

    Raises:
        ValueError: for a layer without ``to_quantized`` that the predicate takes, for another result of the predicate,
            and for sizes that do not suit the mode.
    """
    defaults = {"group_size": group_size, "bits": bits, "mode": mode, "quantize_input": quantize_input}

    def replaced(name: str, layer: Module) -> Module:
        wanted = hasattr(layer, "to_quantized") if class_predicate is None else class_predicate(name, layer)
        if not wanted:
            return layer
        if not hasattr(layer, "to_quantized"):
            raise ValueError(f"Unable to quantize model of type {type(layer)}")
        if not isinstance(wanted, (bool, dict)):
            raise ValueError(
                "``class_predicate`` must return a bool or a dict of parameters to pass to ``to_quantized``"
            )
        return layer.to_quantized(**(wanted if isinstance(wanted, dict) else defaults))

    model.update_modules(tree_map_with_path(replaced, model.leaf_modules(), is_leaf=Module.is_module))
