"""Optimizers that divide each element's step by a running size of its gradients."""

from __future__ import annotations

from collections.abc import Sequence

import weft.core as mx
from weft.optimizers.optimizer import Optimizer, Rate, require

__all__ = ["AdaDelta", "Adagrad", "Adam", "AdamW", "Adamax", "RMSprop"]


def running_mean(mean: mx.array, value: mx.array, kept: float | mx.array) -> mx.array:
    """Return the next exponential moving average, `kept · mean + (1 - kept) · value`."""
    return kept * mean + (1 - kept) * value


class RMSprop(Optimizer):
    r"""RMSprop, from Tieleman and Hinton, "Lecture 6.5 - rmsprop" of "Neural Networks for Machine Learning" (2012).

    With gradient g, parameter w and learning rate r:

        v = alpha v + (1 - alpha) g²
        w = w - r g / (√v + eps)
    """

    def __init__(self, learning_rate: Rate, alpha: float = 0.99, eps: float = 1e-8):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule.
            alpha: How much of v is kept, at least 0. Default: 0.99.
            eps: What is added to the denominator, more than 0. Default: 1e-8.
        """
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        require(alpha >= 0, "RMSprop's alpha", "at least 0", alpha)
        require(eps > 0, "RMSprop's eps", ">0", eps)
        self.alpha = alpha
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Write v = 0."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        rate = self._learning_rate_for(gradient)
        state["v"] = running_mean(state["v"], mx.square(gradient), self.alpha)
        return parameter - rate * gradient / (mx.sqrt(state["v"]) + self.eps)


class Adagrad(Optimizer):
    r"""Adagrad, from Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization" (2011).

    With gradient g, parameter w and learning rate r:

        v = v + g²
        w = w - r g / (√v + eps)
    """

    def __init__(self, learning_rate: Rate, eps: float = 1e-8):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule.
            eps: What is added to the denominator, more than 0. Default: 1e-8.
        """
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        require(eps > 0, "Adagrad's eps", ">0", eps)
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Write v = 0."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        rate = self._learning_rate_for(gradient)
        state["v"] = state["v"] + mx.square(gradient)
        return parameter - rate * gradient / (mx.sqrt(state["v"]) + self.eps)


class AdaDelta(Optimizer):
    r"""AdaDelta, from Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012).

    With gradient g, parameter w and learning rate r:

        v = rho v + (1 - rho) g²
        d = √(u + eps) / √(v + eps) g
        u = rho u + (1 - rho) d²
        w = w - r d
    """

    def __init__(self, learning_rate: Rate, rho: float = 0.9, eps: float = 1e-6):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule. The paper has 1.
            rho: How much of v and u is kept, at least 0. Default: 0.9.
            eps: What is added below the roots, more than 0. Default: 1e-6.
        """
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        require(rho >= 0, "AdaDelta's rho", "at least 0", rho)
        require(eps > 0, "AdaDelta's eps", ">0", eps)
        self.rho = rho
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Write v = 0 and u = 0."""
        state["v"] = mx.zeros_like(parameter)
        state["u"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        rate = self._learning_rate_for(gradient)
        state["v"] = running_mean(state["v"], mx.square(gradient), self.rho)
        step = mx.sqrt(state["u"] + self.eps) / mx.sqrt(state["v"] + self.eps) * gradient
        state["u"] = running_mean(state["u"], mx.square(step), self.rho)
        return parameter - rate * step


class Adam(Optimizer):
    r"""Adam, from Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015).

    With gradient g, parameter w, learning rate r, betas b1, b2, and t steps done:

        m = b1 m + (1 - b1) g
        v = b2 v + (1 - b2) g²
        w = w - r m / (√v + eps)

    With `bias_correction`, m / (1 - b1^t) and v / (1 - b2^t) stand for m and v in the last line, as in the paper.
    """

    def __init__(
        self,
        learning_rate: Rate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        bias_correction: bool = False,
    ):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule.
            betas: How much of m and of v is kept, each at least 0 and below 1. Default: 0.9 and 0.999.
            eps: What is added to the denominator, at least 0. Default: 1e-8.
            bias_correction: Whether to divide out that m and v begin with 0. Default: False.
        """
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        for name, beta in zip(("beta1", "beta2"), betas):
            require(0 <= beta < 1, f"Adam's {name}", "at least 0 and below 1", beta)
        require(eps >= 0, "Adam's eps", "at least 0", eps)
        self.betas = betas
        self.eps = eps
        self.bias_correction = bias_correction

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Write m = 0 and v = 0."""
        state["m"] = mx.zeros_like(parameter)
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        rate = self._learning_rate_for(gradient)
        b1, b2 = self.betas
        state["m"] = running_mean(state["m"], gradient, b1)
        state["v"] = running_mean(state["v"], mx.square(gradient), b2)
        size = mx.sqrt(state["v"])
        if self.bias_correction:
            rate = (rate / (1 - b1**self.step)).astype(gradient.dtype)
            size = size * mx.rsqrt(1 - b2**self.step).astype(gradient.dtype)
        return parameter - rate * state["m"] / (size + self.eps)


class AdamW(Adam):
    r"""AdamW, from Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019).

    As Adam, of a parameter that has first been multiplied by 1 - r d, with learning rate r and weight decay d.
    """

    def __init__(
        self,
        learning_rate: Rate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
    ):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule.
            betas: As Adam's. Default: 0.9 and 0.999.
            eps: As Adam's. Default: 1e-8.
            weight_decay: The fraction of the parameter, times the learning rate, that it loses. Default: 0.01.
            bias_correction: As Adam's. Default: False.
        """
        super().__init__(learning_rate, betas, eps, bias_correction)
        self.weight_decay = weight_decay

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        kept = 1 - self._learning_rate_for(gradient) * self.weight_decay
        return super().apply_single(gradient, parameter * kept, state)


class Adamax(Adam):
    r"""Adamax, the variant of Adam with the maximum norm, from Kingma and Ba (2015), section 7.1.

    With gradient g, parameter w, learning rate r and betas b1, b2:

        m = b1 m + (1 - b1) g
        v = max(b2 v, |g|)
        w = w - r m / (v + eps)
    """

    def __init__(self, learning_rate: Rate, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule.
            betas: As Adam's. Default: 0.9 and 0.999.
            eps: As Adam's. Default: 1e-8.
        """
        super().__init__(learning_rate, betas, eps)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        rate = self._learning_rate_for(gradient)
        b1, b2 = self.betas
        state["m"] = running_mean(state["m"], gradient, b1)
        state["v"] = mx.maximum(b2 * state["v"], mx.abs(gradient))
        return parameter - rate * state["m"] / (state["v"] + self.eps)
