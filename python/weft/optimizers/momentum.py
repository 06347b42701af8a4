"""Optimizers that step along a running mean of gradients: as it is, its signs, or its nearest orthogonal matrix."""

from __future__ import annotations

from collections.abc import Sequence

import weft.core as mx
from weft.optimizers.optimizer import Optimizer, Rate, require

__all__ = ["Lion", "Muon", "SGD"]


class SGD(Optimizer):
    r"""Stochastic gradient descent, with momentum as in Sutskever et al., "On the importance of initialization and
    momentum in deep learning" (2013).

    With gradient g, parameter w, learning rate r, momentum m, weight decay d and dampening t:

        g = g + d w
        v = m v + (1 - t) g
        w = w - r v             with `nesterov`: w - r (g + m v)
    """

    def __init__(
        self,
        learning_rate: Rate,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule.
            momentum: The factor of v. Default: 0, plain descent.
            weight_decay: The factor of the parameter that is added to its gradient. Default: 0.
            dampening: How much less of the gradient enters v. Default: 0.
            nesterov: Whether to look ahead by another step of momentum, which takes a positive momentum and no
                dampening. Default: False.
        """
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"[SGD] nesterov takes a positive momentum and no dampening, not {momentum} and {dampening}"
            )
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.dampening = dampening
        self.nesterov = nesterov

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Write v = 0."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        rate = self._learning_rate_for(gradient)
        if self.momentum <= 0:
            return parameter - rate * gradient
        fresh = (1 - self.dampening) * gradient if self.dampening > 0 else gradient
        state["v"] = self.momentum * state["v"] + fresh
        direction = gradient + self.momentum * state["v"] if self.nesterov else state["v"]
        return parameter - rate * direction


class Lion(Optimizer):
    r"""Lion, from Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023).

    All elements step by the same amount, so the learning rate should be 3 to 10 times smaller than Adam's, and weight
    decay as much larger. With gradient g, parameter w, learning rate r, weight decay d and betas b1, b2:

        c = b1 m + (1 - b1) g
        m = b2 m + (1 - b2) g
        w = w - r (sign(c) + d w)
    """

    def __init__(self, learning_rate: Rate, betas: Sequence[float] = (0.9, 0.99), weight_decay: float = 0.0):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule.
            betas: How much of m is kept: for the step, and for the next m. Default: 0.9 and 0.99.
            weight_decay: The fraction of the parameter, times the learning rate, that it loses. Default: 0.
        """
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        for name, beta in zip(("beta1", "beta2"), betas):
            require(0 <= beta < 1, f"Lion's {name}", "at least 0 and below 1", beta)
        self.betas = betas
        self.weight_decay = weight_decay

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Write m = 0."""
        state["m"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        rate = self._learning_rate_for(gradient)
        step_beta, mean_beta = self.betas
        mean = state["m"]
        direction = mx.sign(step_beta * mean + (1 - step_beta) * gradient)
        state["m"] = mean_beta * mean + (1 - mean_beta) * gradient
        if self.weight_decay > 0:
            parameter = (1 - rate * self.weight_decay) * parameter
        return parameter - rate * direction


class Muon(Optimizer):
    r"""Muon, from Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024).

    The step of a matrix is the momentum with all its singular values brought near 1, so that no direction of the
    layer's inputs and outputs is favoured. Parameters of more axes are matrices of the first axis by all others. Those
    of fewer take the momentum as it is; give embeddings, biases and output layers another optimizer by
    `MultiOptimizer`. With gradient g, parameter w, learning rate r, momentum m and weight decay d:

        g = g + d w
        v = m v + (1 - m) g
        u = v                   with `nesterov`: m v + (1 - m) g
        w = w - r √(max(1, rows / columns)) orthogonalized(u)
    """

    def __init__(
        self,
        learning_rate: Rate,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        nesterov: bool = True,
        ns_steps: int = 5,
    ):
        """Make the optimizer.

        Args:
            learning_rate: A number or a schedule.
            momentum: How much of v is kept. Default: 0.95.
            weight_decay: The factor of the parameter that is added to its gradient. Default: 0.01.
            nesterov: Whether to look ahead by another step of momentum. Default: True.
            ns_steps: The number of Newton-Schulz steps. Default: 5.
        """
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.ns_steps = ns_steps

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Write v = 0."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return the parameter after one step."""
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        kept = self.momentum
        state["v"] = kept * state["v"] + (1 - kept) * gradient
        direction = kept * state["v"] + (1 - kept) * gradient if self.nesterov else state["v"]
        rate = self._learning_rate_for(gradient)
        if direction.ndim >= 2:
            matrix = direction.reshape(direction.shape[0], -1)
            rows, columns = matrix.shape
            direction = orthogonalize(matrix, self.ns_steps).reshape(direction.shape)
            rate = rate * max(1, rows / columns) ** 0.5
        return parameter - rate * direction


def orthogonalize(matrix: mx.array, steps: int) -> mx.array:
    """Bring the singular values of a matrix near 1 by Newton-Schulz steps x ← a x + (b x xᵀ + c (x xᵀ)²) x.

    The coefficients are those of Jordan et al. (2024): they are chosen for a steep slope at 0, and leave the singular
    values between 0.7 and 1.2.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (mx.linalg.norm(x, keepdims=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = mx.addmm(a * x, mx.addmm(b * gram, gram, gram, alpha=c), x)
    return x.T if tall else x
