"""Adafactor: an adaptive optimizer whose state of a matrix is a row and a column."""

from __future__ import annotations

from collections.abc import Callable

import weft.core as mx
from weft.optimizers.adaptive import running_mean
from weft.optimizers.optimizer import Optimizer

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    r"""Adafactor, from Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost" (2018).

    Running means of squared gradients are kept as their means over rows and over columns of the last two axes; their
    product over the mean of all stands for the whole matrix. Parameters with fewer axes keep them whole. With gradient
    g, parameter w, and t steps done:

        v = b v + (1 - b) (g² + eps[0]),    b = 1 - t^decay_rate
        u = g / √v,    divided by max(1, RMS(u) / clip_threshold)
        w = w - r u

    where r, with `relative_step`, is min(0.01, 1 / √t), and with `scale_parameter` has the factor max(eps[1], RMS(w)).
    """

    def __init__(
        self,
        learning_rate: float | mx.array | Callable[[mx.array], mx.array] | None = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = -0.8,
        beta_1: float | None = None,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
    ):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule, which counts where `relative_step` is False. Default: None.
            eps: What is added to squared gradients, and the least scale of a parameter. Default: 1e-30 and 1e-3.
            clip_threshold: The largest root mean square of an update before its learning rate. Default: 1.
            decay_rate: The power of the number of steps that a squared gradient enters with. Default: -0.8.
            beta_1: How much of a running mean of updates is kept. Default: None, no such mean.
            weight_decay: The fraction of the parameter, times the learning rate, that it loses. Default: 0.
            scale_parameter: Whether updates are proportional to the root mean square of the parameter. Default: True.
            relative_step: Whether the learning rate follows from the number of steps. Default: True.
            warmup_init: Whether a relative learning rate begins with 1e-6 times the number of steps. Default: False.
        """
        super().__init__()
        if learning_rate is not None:
            self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps
        self.clip_threshold = clip_threshold
        self.decay_rate = decay_rate
        self.beta_1 = beta_1
        self.weight_decay = weight_decay
        self.scale_parameter = scale_parameter
        self.relative_step = relative_step
        self.warmup_init = warmup_init

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Write exp_avg_sq_row and exp_avg_sq_col, or exp_avg_sq, = 0; with `beta_1` also exp_avg = 0."""
        if parameter.ndim >= 2:
            shape = parameter.shape
            state["exp_avg_sq_row"] = mx.zeros(shape[:-1], parameter.dtype)
            state["exp_avg_sq_col"] = mx.zeros((*shape[:-2], shape[-1]), parameter.dtype)
        else:
            state["exp_avg_sq"] = mx.zeros_like(parameter)
        if self.beta_1 is not None:
            state["exp_avg"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        rate = self._step_size(parameter)
        kept = 1 - (self.step**self.decay_rate).astype(parameter.dtype)
        update = gradient * self._inverse_root(mx.square(gradient) + self.eps[0], kept, state)
        update = update / mx.maximum(1.0, root_mean_square(update) / self.clip_threshold)
        update = rate * update
        if self.beta_1 is not None:
            state["exp_avg"] = running_mean(state["exp_avg"], update, self.beta_1)
            update = state["exp_avg"]
        if self.weight_decay != 0:
            parameter = parameter - self.weight_decay * rate * parameter
        return parameter - update

    def _step_size(self, parameter: mx.array) -> mx.array:
        if self.relative_step:
            steps = self.step
            bound = 1e-6 * steps if self.warmup_init else 1e-2
            rate = mx.minimum(bound, mx.rsqrt(steps))
        else:
            rate = self.learning_rate
        rate = rate.astype(parameter.dtype)
        return mx.maximum(self.eps[1], root_mean_square(parameter)) * rate if self.scale_parameter else rate

    def _inverse_root(self, squares: mx.array, kept: mx.array, state: dict) -> mx.array:
        """Take squared gradients into the running means, and return 1 / √ of what they stand for."""
        if squares.ndim < 2:
            state["exp_avg_sq"] = running_mean(state["exp_avg_sq"], squares, kept)
            return mx.rsqrt(state["exp_avg_sq"])
        for name, axis in (("exp_avg_sq_row", -1), ("exp_avg_sq_col", -2)):
            state[name] = running_mean(state[name], mx.mean(squares, axis=axis), kept)
        rows, columns = state["exp_avg_sq_row"], state["exp_avg_sq_col"]
        rows = mx.rsqrt(rows / mx.mean(rows, axis=-1, keepdims=True))
        return mx.expand_dims(rows, -1) * mx.expand_dims(mx.rsqrt(columns), -2)


def root_mean_square(x: mx.array) -> mx.array:
    """Return the root mean square of all elements, a scalar."""
    return mx.sqrt(mx.mean(mx.square(x)))
