"""Modules of which each process of a group keeps a part of every parameter between calls (Zhao et al. 2023, FSDP)."""

from __future__ import annotations

from typing import Any, Callable, Optional

import weft.core as mx
from weft.nn.layers.base import Module, named_leaves
from weft.utils import tree_unflatten

__all__ = ["FullyShardedModule", "fully_shard"]


def _paths(module: Module) -> list[str]:
    """Return the names of all parameters but those of modules inside that are divided by themselves."""

    def mine(owner: Module, key: str, value: Any) -> bool:
        return not isinstance(value, FullyShardedModule) and Module.valid_parameter_filter(owner, key, value)

    return [name for name, _ in named_leaves(module.filter_and_map(mine))]


class _Gather:
    """Gathers arrays from the parts of all processes; the gradient of a part is the mean of all processes' ones.

    Arrays of one dtype travel together.
    """

    def __init__(
        self, group: mx.distributed.Group, shapes: list[tuple[int, ...]], compute_dtype: Optional[mx.Dtype]
    ) -> None:
        self._group = group
        self._shapes = shapes
        self._compute_dtype = compute_dtype

    def function(self) -> Callable[..., Any]:
        """Return the function of the parts, with its gradient."""
        gather = mx.custom_function(self._gather)
        gather.vjp(self._scatter)
        return gather

    def _together(
        self, rows: list[mx.array], exchange: Callable[[mx.array], mx.array]
    ) -> list[mx.array]:
        """Apply an exchange to arrays of two axes side by side, those of each dtype in one call."""
        results: list[Any] = [None] * len(rows)
        for dtype in dict.fromkeys(row.dtype for row in rows):
            chosen = [i for i, row in enumerate(rows) if row.dtype == dtype]
            ends: list[int] = []
            for i in chosen:
                ends.append(rows[i].shape[1] + (ends[-1] if ends else 0))
            joined = exchange(mx.concatenate([rows[i] for i in chosen], axis=1))
            for i, part in zip(chosen, mx.split(joined, ends[:-1], axis=1)):
                results[i] = part
        return results

    def _gather(self, *shards: mx.array) -> list[mx.array]:
        rows = [shard.reshape(1, -1) for shard in shards]
        if self._compute_dtype is not None:
            rows = [row.astype(self._compute_dtype) for row in rows]
        whole = self._together(rows, lambda x: mx.distributed.all_gather(x, group=self._group))
        return [x.reshape(shape) for x, shape in zip(whole, self._shapes)]

    def _scatter(self, shards: Any, cotangents: Any, _outputs: Any) -> Any:
        single = isinstance(shards, mx.array)
        primals = [shards] if single else shards
        size = self._group.size()
        rows = [cotangent.reshape(size, -1) for cotangent in cotangents]
        parts = self._together(rows, lambda x: mx.distributed.sum_scatter(x, group=self._group) / size)
        gradients = [x.reshape(shard.shape).astype(shard.dtype) for x, shard in zip(parts, primals)]
        return gradients[0] if single else tuple(gradients)


class FullyShardedModule(Module):
    """Calls a module, ``module``, with all of its parameters, of which this process keeps a part between calls.

    A call gathers the parameters from all processes; the gradient of a part is the mean of the processes' gradients.
    Parameters are divided along their first axis, whose size must be a multiple of the number of processes. What is
    inside a ``FullyShardedModule`` already stays with it.

    Args:
        module: the module; its parameters are replaced by this process's part.
        group: the group. Default: all processes.
        compute_dtype: the dtype that gathered parameters are converted to. Default: their own.

    Raises:
        ValueError: for a parameter that cannot be divided.
    """

    def __init__(
        self,
        module: Module,
        group: Optional[mx.distributed.Group] = None,
        compute_dtype: Optional[mx.Dtype] = None,
    ) -> None:
        super().__init__()
        group = group or mx.distributed.init()
        self._paths: Any = tuple(_paths(module))
        self.module = module
        shapes = []
        shards = []
        for name, parameter in self._parameters():
            self._check(name, parameter, group.size())
            shapes.append(tuple(parameter.shape))
            shards.append(mx.contiguous(mx.split(parameter, group.size(), axis=0)[group.rank()]))
        self._assign(shards)
        self._gather_fn = _Gather(group, shapes, compute_dtype).function()

    @staticmethod
    def _check(name: str, parameter: mx.array, size: int) -> None:
        if parameter.ndim == 0:
            raise ValueError(f"Cannot shard parameter '{name}' because it is a scalar.")
        if parameter.shape[0] % size != 0:
            raise ValueError(
                f"Cannot shard parameter '{name}' with shape {tuple(parameter.shape)} across {size} devices: axis 0 "
                f"must be divisible by {size}."
            )

    def _parameters(self) -> list[tuple[str, mx.array]]:
        parameters = dict(named_leaves(self.module.parameters()))
        return [(name, parameters[name]) for name in self._paths]

    def _assign(self, values: list[mx.array]) -> None:
        self.module.update(tree_unflatten(list(zip(self._paths, values))))

    def _extra_repr(self) -> str:
        return f"num_sharded_params={len(self._paths)}"

    def _gathered_call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function while the module has all of its parameters."""
        shards = [parameter for _, parameter in self._parameters()]
        self._assign(list(self._gather_fn(*shards)))
        try:
            return fn(*args, **kwargs)
        finally:
            self._assign(shards)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._gathered_call(self.module, *args, **kwargs)

    def as_linear(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module's ``as_linear`` (of an ``Embedding``) with all of its parameters."""
        return self._gathered_call(self.module.as_linear, *args, **kwargs)


def fully_shard(
    module: Module,
    *,
    group: Optional[mx.distributed.Group] = None,
    compute_dtype: Optional[mx.Dtype] = None,
) -> Module:
    """Return a ``FullyShardedModule`` of a module.

    The module itself comes back where there is one process, where it has no parameters of its own, and where it is a
    ``FullyShardedModule``.

    Args:
        module: the module; its parameters are replaced by this process's part.
        group: the group. Default: all processes.
        compute_dtype: the dtype that gathered parameters are converted to. Default: their own.

    Raises:
        ValueError: for a parameter that cannot be divided.
    """
    group = group or mx.distributed.init()
    if group.size() == 1 or isinstance(module, FullyShardedModule) or not _paths(module):
        return module
    return FullyShardedModule(module, group, compute_dtype)
