"""Layers whose parameters are divided among the processes of a group, and functions that divide those of others."""

from __future__ import annotations

from functools import cache
from typing import Any, Callable, Optional, Sequence, Union, cast

import weft.core as mx
from weft.nn.layers.base import Module
from weft.nn.layers.fully_sharded import FullyShardedModule, fully_shard
from weft.nn.layers.linear import affine, initial_uniform
from weft.nn.layers.quantized import Quantized, QuantizedLinear
from weft.utils import tree_map_with_path

__all__ = [
    "AllToShardedLinear", "FullyShardedModule", "QuantizedAllToShardedLinear", "QuantizedShardedToAllLinear",
    "ShardedToAllLinear", "fully_shard", "shard_inplace", "shard_linear", "sum_gradients",
]  # fmt: skip

Segments = Union[int, Sequence[Union[int, float]]]
# Of a parameter's name and value: None, the axis that is divided, or the axis and its segments.
Sharding = Callable[[str, mx.array], Union[None, int, tuple[int, Segments]]]


@cache
def sum_gradients(group: mx.distributed.Group) -> Callable[[mx.array], mx.array]:
    """Return the identity whose gradient is the sum of the gradients of all processes of a group."""
    if group.size() == 1:
        return lambda x: x

    @mx.custom_function
    def identity(x: mx.array) -> mx.array:
        return x

    @identity.vjp
    def summed(_x: mx.array, cotangent: mx.array, _y: mx.array) -> mx.array:
        return mx.distributed.all_sum(cotangent, group=group)

    return cast(Callable[[mx.array], mx.array], identity)


def _split(weight: mx.array, segments: Segments, axis: int) -> list[mx.array]:
    """Return parts of an array: equal ones, or those between positions or between fractions of the size."""
    where: Any = segments
    if not isinstance(segments, int) and not isinstance(segments[0], int):
        where = [int(share * weight.shape[axis]) for share in segments]
    return list(mx.split(weight, where, axis=axis))


def _shard(parameters: dict[str, Any], sharding: Sharding, group: mx.distributed.Group) -> dict[str, Any]:
    """Return a tree of this process's parts: of each segment of a parameter, as many as there are processes."""
    size, rank = group.size(), group.rank()

    def part(name: str, weight: mx.array) -> mx.array:
        how = sharding(name, weight)
        if how is None:
            return weight
        axis, segments = (how, 1) if isinstance(how, int) else how if isinstance(how, tuple) else (None, 1)
        if not isinstance(axis, int):
            raise ValueError("The sharding function should return int or tuple[int, list]")
        parts = [_split(segment, size, axis)[rank] for segment in _split(weight, segments, axis)]
        return mx.contiguous(mx.concatenate(parts, axis=axis))

    return tree_map_with_path(part, parameters)


def _all_to_sharded(segments: Segments) -> Sharding:
    """Divide rows of matrices and elements of biases."""
    return lambda name, weight: (-1 if name.endswith("bias") else max(weight.ndim - 2, 0), segments)


def _sharded_to_all(segments: Segments) -> Sharding:
    """Divide columns of matrices, and leave biases."""
    return lambda name, _weight: None if name.endswith("bias") else (-1, segments)


_SHARDINGS = {"all-to-sharded": _all_to_sharded, "sharded-to-all": _sharded_to_all}


def _named_sharding(sharding: Any, segments: Segments) -> Sharding:
    if not isinstance(sharding, str) or sharding not in _SHARDINGS:
        raise ValueError(
            f"Sharding type {sharding=} not supported, choose one of 'all-to-sharded' or 'sharded-to-all'"
        )
    return _SHARDINGS[sharding](segments)


def shard_inplace(
    module: Module,
    sharding: Union[str, Sharding],
    *,
    segments: Segments = 1,
    group: Optional[mx.distributed.Group] = None,
) -> None:
    """Replace the parameters of a module by this process's parts of them.

    The module itself stays as it is: it computes with its part and does not communicate.

    Args:
        module: the module.
        sharding: ``"all-to-sharded"`` divides rows of matrices, ``"sharded-to-all"`` columns. Or a function of a
            parameter's name and value that returns ``None`` to leave it, the axis to divide, or the axis and its
            segments.
        segments: how many matrices of equal size are stacked in one, or a list of the positions (ints) or of the
            fractions (floats) at which they meet. Each is divided by itself. Default: 1.
        group: the group. Default: all processes.

    Raises:
        ValueError: for another name, and for sizes that the number of processes does not divide.
    """
    how = _named_sharding(sharding, segments) if isinstance(sharding, str) else sharding
    module.update(_shard(module.parameters(), how, group or mx.distributed.init()))


def shard_linear(
    module: Module,
    sharding: str,
    *,
    segments: Segments = 1,
    group: Optional[mx.distributed.Group] = None,
) -> Module:
    """Return a linear layer with this process's part of the parameters, which communicates.

    Args:
        module: a ``Linear`` or a ``QuantizedLinear``, which stays as it is.
        sharding: ``"all-to-sharded"`` or ``"sharded-to-all"``, for the layers of these names.
        segments: as of ``shard_inplace``. Default: 1.
        group: the group. Default: all processes.

    Raises:
        ValueError: for another name, and for sizes that the number of processes does not divide.
    """
    _named_sharding(sharding, segments)
    to_sharded = sharding == "all-to-sharded"
    if isinstance(module, QuantizedLinear):
        quantized = QuantizedAllToShardedLinear if to_sharded else QuantizedShardedToAllLinear
        return quantized.from_quantized_linear(module, segments=segments, group=group)
    layer = AllToShardedLinear if to_sharded else ShardedToAllLinear
    return layer.from_linear(module, segments=segments, group=group)


def _part_of(size: int, what: str, group: mx.distributed.Group) -> int:
    if size % group.size() != 0:
        raise ValueError(f"Cannot shard the {what} of size {size} across {group.size()} devices.")
    return size // group.size()


class AllToShardedLinear(Module):
    """Computes ``x Wᵀ + b`` for this process's part of the rows of ``W`` and of ``b``.

    All processes have the same input, and each a part of the result. The gradient of the input is the sum of all
    processes' gradients.

    Args:
        input_dims: the size of the input's last axis.
        output_dims: the size of the whole result's last axis, a multiple of the number of processes.
        bias: whether there is a bias. Default: ``True``.
        group: the group. Default: all processes.

    Raises:
        ValueError: if the number of processes does not divide ``output_dims``.
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group: Optional[mx.distributed.Group] = None,
    ) -> None:
        super().__init__()
        self.group = group or mx.distributed.init()
        rows = _part_of(output_dims, "output", self.group)
        self.weight = initial_uniform(input_dims, rows, input_dims)
        if bias:
            self.bias = initial_uniform(input_dims, rows)

    def _extra_repr(self) -> str:
        rows, input_dims = self.weight.shape
        return f"input_dims={input_dims}, output_dims={rows * self.group.size()}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        return affine(sum_gradients(self.group)(x), self.weight, self.get("bias"))

    @classmethod
    def from_linear(
        cls, linear_layer: Module, *, segments: Segments = 1, group: Optional[mx.distributed.Group] = None
    ) -> "AllToShardedLinear":
        """Return a layer with this process's part of the parameters of a ``Linear``; ``segments`` is as of
        ``shard_inplace``."""
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, "bias" in linear_layer, group)
        layer.update(_shard(linear_layer.parameters(), _all_to_sharded(segments), layer.group))
        return layer


class ShardedToAllLinear(Module):
    """Computes the sum over all processes of ``x Wᵀ``, plus ``b``, with this process's part of ``x`` and ``W``.

    Each process has a part of the input's last axis and of the columns of ``W``, and the whole result.

    Args:
        input_dims: the size of the whole input's last axis, a multiple of the number of processes.
        output_dims: the size of the result's last axis.
        bias: whether there is a bias. Default: ``True``.
        group: the group. Default: all processes.

    Raises:
        ValueError: if the number of processes does not divide ``input_dims``.
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group: Optional[mx.distributed.Group] = None,
    ) -> None:
        super().__init__()
        self.group = group or mx.distributed.init()
        columns = _part_of(input_dims, "input", self.group)
        self.weight = initial_uniform(input_dims, output_dims, columns)
        if bias:
            self.bias = initial_uniform(input_dims, output_dims)

    def _extra_repr(self) -> str:
        output_dims, columns = self.weight.shape
        return f"input_dims={columns * self.group.size()}, output_dims={output_dims}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        if self.group.size() == 1:
            return affine(x, self.weight, self.get("bias"))
        y = mx.distributed.all_sum(x @ self.weight.T, group=self.group)
        return y + self.bias if "bias" in self else y

    @classmethod
    def from_linear(
        cls, linear_layer: Module, *, segments: Segments = 1, group: Optional[mx.distributed.Group] = None
    ) -> "ShardedToAllLinear":
        """Return a layer with this process's part of the parameters of a ``Linear``; ``segments`` is as of
        ``shard_inplace``."""
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, "bias" in linear_layer, group)
        layer.update(_shard(linear_layer.parameters(), _sharded_to_all(segments), layer.group))
        return layer


class _QuantizedSharded(Quantized):
    """What linear layers with a quantized and divided weight share. Their parameters are always frozen."""

    group: mx.distributed.Group

    def unfreeze(self, *args: Any, **kwargs: Any) -> Module:
        """Unfreeze the modules inside, but not the layer's own parameters."""
        super().unfreeze(*args, **kwargs)
        return self.freeze(recurse=False)

    def _set_up(
        self, rows: int, columns: int, fan_in: int, bias: bool, group_size: int, bits: int, mode: str
    ) -> None:
        self._set_options(group_size, bits, mode)
        self._set_weight(initial_uniform(fan_in, rows, columns))
        if bias:
            self.bias = mx.zeros((rows,))
        self.freeze()

    def _describe(self, input_dims: int, output_dims: int) -> str:
        return (
            f"input_dims={input_dims}, output_dims={output_dims}, bias={'bias' in self}{self._options_repr()}"
        )

    @classmethod
    def _from_quantized(
        cls, linear: Any, sharding: Sharding, group: Optional[mx.distributed.Group]
    ) -> Any:
        make: Any = cls  # the sub-classes' arguments
        layer = make(
            linear._columns(), linear.weight.shape[0], "bias" in linear,
            group_size=linear.group_size, bits=linear.bits, mode=linear.mode, group=group,
        )  # fmt: skip
        layer.update(_shard(linear.parameters(), sharding, layer.group))
        return layer


class QuantizedAllToShardedLinear(_QuantizedSharded):
    """Computes what ``AllToShardedLinear`` does, with a quantized weight.

    Args:
        input_dims: the size of the input's last axis.
        output_dims: the size of the whole result's last axis, a multiple of the number of processes.
        bias: whether there is a bias. Default: ``True``.
        group_size: how many elements share a scale. Default: 64.
        bits: the bits of an element. Default: 4.
        mode: ``"affine"``, ``"mxfp4"``, ``"nvfp4"`` or ``"mxfp8"``. Default: ``"affine"``.
        group: the group. Default: all processes.

    Raises:
        ValueError: if the number of processes does not divide ``output_dims``, and for sizes that do not suit the mode.
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        group: Optional[mx.distributed.Group] = None,
    ) -> None:
        super().__init__()
        self.group = group or mx.distributed.init()
        rows = _part_of(output_dims, "output", self.group)
        self._set_up(rows, input_dims, input_dims, bias, group_size, bits, mode)

    def _extra_repr(self) -> str:
        return self._describe(self._columns(), self.weight.shape[0] * self.group.size())

    def __call__(self, x: mx.array) -> mx.array:
        y = self._times_weight(sum_gradients(self.group)(x))
        return y + self.bias if "bias" in self else y

    @classmethod
    def from_quantized_linear(
        cls, quantized_linear_layer: Module, *, segments: Segments = 1, group: Optional[mx.distributed.Group] = None
    ) -> "QuantizedAllToShardedLinear":
        """Return a layer with this process's part of a ``QuantizedLinear``; ``segments`` is as of
        ``shard_inplace``."""
        return cls._from_quantized(quantized_linear_layer, _all_to_sharded(segments), group)


class QuantizedShardedToAllLinear(_QuantizedSharded):
    """Computes what ``ShardedToAllLinear`` does, with a quantized weight.

    Args:
        input_dims: the size of the whole input's last axis, a multiple of the number of processes.
        output_dims: the size of the result's last axis.
        bias: whether there is a bias. Default: ``True``.
        group_size: how many elements share a scale. Default: 64.
        bits: the bits of an element. Default: 4.
        mode: ``"affine"``, ``"mxfp4"``, ``"nvfp4"`` or ``"mxfp8"``. Default: ``"affine"``.
        group: the group. Default: all processes.

    Raises:
        ValueError: if the number of processes does not divide ``input_dims``, and for sizes that do not suit the mode.
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        group: Optional[mx.distributed.Group] = None,
    ) -> None:
        super().__init__()
        self.group = group or mx.distributed.init()
        columns = _part_of(input_dims, "input", self.group)
        self._set_up(output_dims, columns, input_dims, bias, group_size, bits, mode)

    def _extra_repr(self) -> str:
        return self._describe(self._columns() * self.group.size(), self.weight.shape[0])

    def __call__(self, x: mx.array) -> mx.array:
        y = self._times_weight(x)
        if self.group.size() > 1:
            y = mx.distributed.all_sum(y, group=self.group)
        return y + self.bias if "bias" in self else y

    @classmethod
    def from_quantized_linear(
        cls, quantized_linear_layer: Module, *, segments: Segments = 1, group: Optional[mx.distributed.Group] = None
    ) -> "QuantizedShardedToAllLinear":
        """Return a layer with this process's part of a ``QuantizedLinear``; ``segments`` is as of
        ``shard_inplace``."""
        return cls._from_quantized(quantized_linear_layer, _sharded_to_all(segments), group)
