"""Normalization layers. Statistics are of the elements of one example; in BatchNorm they are of the whole batch."""

from __future__ import annotations

from typing import Any

import weft.core as mx
from weft.nn.layers.base import Module

__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm"]


def _positive(eps: float) -> float:
    """Return ``eps``, without which a variance of 0 would be divided by."""
    if eps <= 0:
        raise ValueError(f"eps must be positive, but is {eps}.")
    return eps


def _scaled(module: Module, x: mx.array) -> mx.array:
    """Compute ``weight * x + bias`` with the module's parameters, or return ``x`` where it has none."""
    return module.weight * x + module.bias if "weight" in module else x


def _normalized(x: mx.array, eps: float) -> mx.array:
    """Subtract the mean over the last axis and divide by the standard deviation."""
    return mx.fast.layer_norm(x, None, None, eps)


class InstanceNorm(Module):
    """Normalizes each channel of each example: ``(x - mean) / √(var + eps) * weight + bias``.

    See Ulyanov et al. 2016. The input has the shape ``[N, ..., C]``; mean and variance are over the axes between.

    Args:
        dims: the number C of channels.
        eps: what is added to the variance. Default: 1e-5.
        affine: whether there are a ``weight`` and a ``bias`` of shape ``[dims]``. Default: ``False``.

    Raises:
        ValueError: for an input with less than 3 axes.
    """

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = False) -> None:
        super().__init__()
        self.dims = dims
        self.eps = _positive(eps)
        if affine:
            self.weight = mx.ones((dims,))
            self.bias = mx.zeros((dims,))

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        if x.ndim < 3:
            raise ValueError(
                "InstanceNorm expects inputs with at least 3 dimensions (N, ..., C) "
                f"but the input has {x.ndim} dimensions."
            )
        return _scaled(self, mx.fast.standardize(x, list(range(1, x.ndim - 1)), None, None, self.eps)[0])


class LayerNorm(Module):
    """Normalizes the last axis: ``(x - mean) / √(var + eps) * weight + bias`` (Ba et al. 2016).

    Args:
        dims: the size of the last axis.
        eps: what is added to the variance. Default: 1e-5.
        affine: whether there is a ``weight`` of shape ``[dims]``. Default: ``True``.
        bias: whether there is also a ``bias`` of shape ``[dims]``. Default: ``True``.
    """

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = True, bias: bool = True) -> None:
        super().__init__()
        self.eps = _positive(eps)
        self.dims = dims
        if affine:
            self.weight = mx.ones((dims,))
            if bias:
                self.bias = mx.zeros((dims,))

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.layer_norm(x, self.get("weight"), self.get("bias"), self.eps)


class RMSNorm(Module):
    """Divides by the root of the mean square over the last axis: ``x / √(mean(x²) + eps) * weight``.

    See Zhang and Sennrich 2019. ``weight`` has the shape ``[dims]``.

    Args:
        dims: the size of the last axis.
        eps: what is added to the mean square. Default: 1e-5.
    """

    def __init__(self, dims: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = mx.ones((dims,))
        self.eps = _positive(eps)

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.rms_norm(x, self.weight, self.eps)


class GroupNorm(Module):
    """Normalizes each group of channels of each example: ``(x - mean) / √(var + eps) * weight + bias``.

    See Wu and He 2018. The input has the shape ``[N, ..., C]``; mean and variance are over the axes between and the
    channels of the group. Channel c is in group ``c % num_groups``, or with ``pytorch_compatible`` in group
    ``c // (C / num_groups)``.

    Args:
        num_groups: the number of groups.
        dims: the number C of channels, a multiple of the number of groups.
        eps: what is added to the variance. Default: 1e-5.
        affine: whether there are a ``weight`` and a ``bias`` of shape ``[dims]``. Default: ``True``.
        pytorch_compatible: whether neighbouring channels form a group, as in PyTorch. Default: ``False``.

    Raises:
        ValueError: if the number of channels is no multiple of the number of groups, or one of both is less than 1.
    """

    def __init__(
        self,
        num_groups: int,
        dims: int,
        eps: float = 1e-5,
        affine: bool = True,
        pytorch_compatible: bool = False,
    ) -> None:
        super().__init__()
        if num_groups < 1 or dims < 1:
            raise ValueError(f"There must be groups and features, but there are {num_groups} and {dims}.")
        if dims % num_groups != 0:
            raise ValueError(
                f"The number of features ({dims}) must be evenly divisible by the number of groups ({num_groups})."
            )
        if affine:
            self.bias = mx.zeros((dims,))
            self.weight = mx.ones((dims,))
        self.num_groups = num_groups
        self.dims = dims
        self.eps = _positive(eps)
        self.pytorch_compatible = pytorch_compatible

    def _extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.dims}, eps={self.eps}, "
            f"affine={'weight' in self}, pytorch_compatible={self.pytorch_compatible}"
        )

    def _neighbours(self, x: mx.array) -> mx.array:
        batch, *_, dims = x.shape
        grouped = x.reshape(batch, -1, self.num_groups, dims // self.num_groups).transpose(0, 2, 1, 3)
        y = _normalized(grouped.reshape(batch, self.num_groups, -1), self.eps)
        return y.reshape(grouped.shape).transpose(0, 2, 1, 3).reshape(x.shape)

    def _interleaved(self, x: mx.array) -> mx.array:
        grouped = x.reshape(x.shape[0], -1, self.num_groups)
        return mx.fast.standardize(grouped, [1], None, None, self.eps)[0].reshape(x.shape)

    def __call__(self, x: mx.array) -> mx.array:
        if x.ndim < 2:
            raise ValueError(f"GroupNorm expects inputs of shape (N, ..., C) but the input has {x.ndim} dimensions.")
        return _scaled(self, self._neighbours(x) if self.pytorch_compatible else self._interleaved(x))


class BatchNorm(Module):
    """Normalizes each channel over the batch: ``(x - mean) / √(var + eps) * weight + bias``.

    See Ioffe and Szegedy 2015. The input has the shape ``[N, C]``, ``[N, L, C]`` or ``[N, H, W, C]``. In training,
    mean and variance are those of the input, over all axes but the last; in evaluation they are ``running_mean`` and
    ``running_var``, which training updates: ``(1 - momentum) * running + momentum * new``, with the unbiased variance.
    They are parameters that are always frozen.

    Args:
        num_features: the number C of channels.
        eps: what is added to the variance. Default: 1e-5.
        momentum: the weight of a new mean and variance. Default: 0.1.
        affine: whether there are a ``weight`` and a ``bias`` of shape ``[num_features]``. Default: ``True``.
        track_running_stats: whether there are a ``running_mean`` and a ``running_var``; without them, evaluation uses
            the input's. Default: ``True``.

    Raises:
        ValueError: for an input with other than 2, 3 or 4 axes, and in training for one with a single value for each
            channel, which has no variance.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = _positive(eps)
        self.momentum = momentum
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = mx.ones((num_features,))
            self.bias = mx.zeros((num_features,))
        if track_running_stats:
            self.running_mean = mx.zeros((num_features,))
            self.running_var = mx.ones((num_features,))
            self._freeze_statistics()

    def _freeze_statistics(self) -> None:
        self.freeze(keys=["running_mean", "running_var"], recurse=False)

    def unfreeze(self, *args: Any, **kwargs: Any) -> "BatchNorm":
        """Unfreeze parameters as ``Module.unfreeze`` does, but not the running mean and variance."""
        super().unfreeze(*args, **kwargs)
        self._freeze_statistics()
        return self

    def _extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={'weight' in self}, track_running_stats={self.track_running_stats}"
        )

    def _update_running(self, name: str, value: mx.array) -> None:
        value = mx.stop_gradient(value).reshape(-1).astype(self[name].dtype)
        self[name] = (1 - self.momentum) * self[name] + self.momentum * value

    def __call__(self, x: mx.array) -> mx.array:
        if x.ndim not in (2, 3, 4):
            raise ValueError(f"Expected input tensor to have 2, 3 or 4 dimensions, but got {x.ndim}")
        if self.training and x.size == x.shape[-1]:
            raise ValueError(f"Training needs more than one value for each channel, but the input's shape is {x.shape}")
        if self.track_running_stats and not self.training:
            return _scaled(self, (x - self.running_mean) * mx.rsqrt(self.running_var + self.eps))
        axes = list(range(x.ndim - 1))
        if "weight" in self:
            x = x.astype(mx.result_type(x, self.weight))
        y, mean, variance = mx.fast.standardize(x, axes, self.get("weight"), self.get("bias"), self.eps)
        if self.track_running_stats:
            count = x.size // self.num_features
            self._update_running("running_mean", mean)
            self._update_running("running_var", variance * (count / max(count - 1, 1)))
        return y
