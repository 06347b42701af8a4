"""Functions of a module's trainable parameters: gradients, checkpoints, and means over the processes of a group."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional

import weft.core as mx
from weft.nn.layers.base import Module, named_leaves
from weft.utils import tree_map, tree_reduce, tree_unflatten

__all__ = ["average_gradients", "checkpoint", "clip_grad_norm_sharded", "value_and_grad"]


@contextmanager
def _holding(model: Module, parameters: dict[str, Any]) -> Iterator[None]:
    """Put parameters into a model for a while. What is assigned to the model meanwhile stays."""
    before = dict(named_leaves(model.trainable_parameters()))
    model.update(parameters)
    held = dict(named_leaves(model.trainable_parameters()))
    try:
        yield
    finally:
        now = dict(named_leaves(model.parameters()))
        back = [(name, value) for name, value in before.items() if now.get(name) is held.get(name)]
        if back:
            model.update(tree_unflatten(back), strict=False)


def value_and_grad(model: Module, fn: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Return a function that returns the value of ``fn`` and its gradient by the model's trainable parameters.

    The function takes the arguments of ``fn``. Its gradient is a tree as that of ``model.trainable_parameters()``.

    Args:
        model: the model, which ``fn`` calls.
        fn: returns a scalar, or a tuple of a scalar and anything else.
    """

    def with_parameters(parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        with _holding(model, parameters):
            return fn(*args, **kwargs)

    differentiated = mx.value_and_grad(with_parameters)

    @functools.wraps(fn, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return differentiated(model.trainable_parameters(), *args, **kwargs)

    return wrapped


def checkpoint(module: Module, fn: Optional[Callable[..., Any]] = None) -> Callable[..., Any]:
    """Return a function that keeps only its inputs for the backward pass, and computes the rest again there.

    Args:
        module: the module whose trainable parameters are inputs as well.
        fn: the function. Default: the module's call.
    """
    called = module if fn is None else fn

    def with_parameters(parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        with _holding(module, parameters):
            return called(*args, **kwargs)

    checkpointed = mx.checkpoint(with_parameters)

    @functools.wraps(called, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return checkpointed(module.trainable_parameters(), *args, **kwargs)

    return wrapped


def _batches(arrays: list[mx.array], size: int) -> Iterator[list[mx.array]]:
    """Yield arrays that are sent together: until their bytes reach a size."""
    batch: list[mx.array] = []
    total = 0
    for array in arrays:
        batch.append(array)
        total += array.nbytes
        if total >= size:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def average_gradients(
    gradients: Any,
    group: Optional[mx.distributed.Group] = None,
    all_reduce_size: int = 32 * 1024**2,
    communication_stream: Optional[mx.Stream] = None,
) -> Any:
    """Return the mean of the gradients of all processes of a group.

    Small gradients of the same dtype are sent together.

    Args:
        gradients: a tree of arrays, of the same structure in all processes.
        group: the group. Default: all processes.
        all_reduce_size: the bytes from which on gradients are sent; 0 or less sends each by itself. Default: 32 MiB.
        communication_stream: the stream of the communication. Default: the back end's.
    """
    group = group or mx.distributed.init()
    size = group.size()
    if size == 1:
        return gradients

    def mean(x: mx.array) -> mx.array:
        return mx.distributed.all_sum(x, group=group, stream=communication_stream) / size

    arrays = [array for _, array in named_leaves(gradients)]
    if all_reduce_size <= 0 or len({array.dtype for array in arrays}) > 1:
        return tree_map(mean, gradients)

    means: list[mx.array] = []
    for batch in _batches(arrays, all_reduce_size):
        ends: list[int] = []
        for array in batch:
            ends.append(array.size + (ends[-1] if ends else 0))
        joined = mean(mx.concatenate([array.reshape(-1) for array in batch]))
        parts = mx.split(joined, ends[:-1])
        means.extend(part.reshape(array.shape) for array, part in zip(batch, parts))
    remaining = iter(means)
    return tree_map(lambda _: next(remaining), gradients)


def clip_grad_norm_sharded(
    gradients: Any, max_norm: float, group: Optional[mx.distributed.Group] = None
) -> tuple[Any, mx.array]:
    """Scale gradients of which each process has a part so that their norm is at most ``max_norm``.

    Args:
        gradients: a tree of this process's parts, as those of a module that ``fully_shard`` returned.
        max_norm: the largest norm of all processes' parts together.
        group: the group. Default: all processes.

    Returns:
        The gradients, times ``min(max_norm / (norm + 1e-6), 1)``, and the norm.
    """
    group = group or mx.distributed.init()
    squares = tree_reduce(lambda total, g: total + mx.sum(mx.square(g)), gradients, 0.0)
    if not isinstance(squares, mx.array):
        squares = mx.array(squares)
    norm = mx.sqrt(mx.distributed.all_sum(squares, group=group))
    scale = mx.minimum(max_norm / (norm + 1e-6), 1.0)
    return tree_map(lambda g: g * scale, gradients), norm
