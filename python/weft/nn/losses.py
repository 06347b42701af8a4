"""Losses. Each is a formula for an element or a row, and a reduction."""

from __future__ import annotations

import math
from typing import Literal, Optional, get_args

import weft.core as mx

__all__ = [
    "binary_cross_entropy", "cosine_similarity_loss", "cross_entropy", "gaussian_nll_loss", "hinge_loss", "huber_loss",
    "kl_div_loss", "l1_loss", "log_cosh_loss", "margin_ranking_loss", "mse_loss", "nll_loss", "smooth_l1_loss",
    "triplet_loss",
]  # fmt: skip

Reduction = Literal["none", "mean", "sum"]


def _reduce(loss: mx.array, reduction: Reduction) -> mx.array:
    if reduction not in get_args(Reduction):
        raise ValueError(f"Invalid reduction. Must be one of {get_args(Reduction)}.")
    return {"none": lambda x: x, "mean": mx.mean, "sum": mx.sum}[reduction](loss)


def _check_shapes(name: str, x: mx.array, other: str, y: mx.array) -> None:
    if x.shape != y.shape:
        raise ValueError(f"{name} shape {x.shape} does not match {other} shape {y.shape}.")


def _weighted(loss: mx.array, weights: Optional[mx.array]) -> mx.array:
    if weights is None:
        return loss
    if weights.shape != loss.shape:
        raise ValueError(f"Weights with shape {weights.shape} is not the same as output loss with shape {loss.shape}.")
    return loss * weights


def _chosen(scores: mx.array, targets: mx.array, axis: int) -> mx.array:
    """Return the score of each target, which is a position along an axis."""
    return mx.take_along_axis(scores, mx.expand_dims(targets, axis), axis).squeeze(axis)


def cross_entropy(
    logits: mx.array,
    targets: mx.array,
    weights: Optional[mx.array] = None,
    axis: int = -1,
    label_smoothing: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    """Compute ``-Σ p * log_softmax(logits)`` along an axis, where ``p`` are the targets' probabilities.

    Args:
        logits: scores of the classes along an axis.
        targets: classes, as integers of the logits' shape without the axis, or probabilities of the logits' shape.
        weights: what each loss is multiplied by, of the losses' shape. Default: nothing.
        axis: the axis of the classes. Default: the last.
        label_smoothing: the share of the probabilities that is spread over all classes, in [0, 1). Default: 0.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"none"``.

    Raises:
        ValueError: for a share outside [0, 1), for shapes that do not match, and for another reduction.
    """
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"Label smoothing must be in [0, 1), got {label_smoothing}.")
    probabilities = targets.ndim == logits.ndim
    expected = list(logits.shape)
    if not probabilities:
        del expected[axis]
    if list(targets.shape) != expected:
        raise ValueError(f"Targets shape {targets.shape} does not match logits shape {logits.shape}.")

    plain = not probabilities and label_smoothing == 0 and axis in (-1, logits.ndim - 1)
    if plain and mx.issubdtype(logits.dtype, mx.floating):
        loss = mx.fast.cross_entropy(logits, targets).astype(logits.dtype)
        return _reduce(_weighted(loss, weights), reduction)
    scores = logits - mx.stop_gradient(mx.max(logits, axis=axis, keepdims=True))
    total = mx.logsumexp(scores, axis=axis)
    chosen = mx.sum(scores * targets, axis=axis) if probabilities else _chosen(scores, targets, axis)
    if label_smoothing > 0:
        loss = total - (1 - label_smoothing) * chosen + -mx.mean(scores, axis=axis) * label_smoothing
    else:
        loss = total - chosen
    return _reduce(_weighted(loss, weights), reduction)


def binary_cross_entropy(
    inputs: mx.array,
    targets: mx.array,
    weights: Optional[mx.array] = None,
    with_logits: bool = True,
    reduction: Reduction = "mean",
) -> mx.array:
    """Compute ``-(t * log(p) + (1 - t) * log(1 - p))`` for each element.

    Args:
        inputs: logits, of which the probabilities p are the sigmoid, or the probabilities; their logarithms are at
            least -100.
        targets: the probabilities t, of the same shape.
        weights: what each loss is multiplied by, of the same shape. Default: nothing.
        with_logits: whether the inputs are logits. Default: ``True``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.

    Raises:
        ValueError: for shapes that do not match, and for another reduction.
    """
    _check_shapes("Inputs", inputs, "targets", targets)
    if with_logits:
        loss = mx.logaddexp(0.0, inputs) - inputs * targets
    else:
        ones = mx.maximum(mx.log(inputs), -100)
        zeros = mx.maximum(mx.log(1 - inputs), -100)
        loss = -(targets * ones + (1 - targets) * zeros)
    return _reduce(_weighted(loss, weights), reduction)


def l1_loss(predictions: mx.array, targets: mx.array, reduction: Reduction = "mean") -> mx.array:
    """Compute ``|predictions - targets|``.

    Args:
        predictions: the predictions.
        targets: the targets, of the same shape.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.

    Raises:
        ValueError: for shapes that do not match, and for another reduction.
    """
    _check_shapes("Predictions", predictions, "targets", targets)
    return _reduce(mx.abs(predictions - targets), reduction)


def mse_loss(predictions: mx.array, targets: mx.array, reduction: Reduction = "mean") -> mx.array:
    """Compute ``(predictions - targets)²``.

    Args:
        predictions: the predictions.
        targets: the targets, of the same shape.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.

    Raises:
        ValueError: for shapes that do not match, and for another reduction.
    """
    _check_shapes("Predictions", predictions, "targets", targets)
    return _reduce(mx.square(predictions - targets), reduction)


def nll_loss(inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none") -> mx.array:
    """Compute minus the input of the target's class.

    Args:
        inputs: logarithms of the classes' probabilities along an axis.
        targets: classes, as integers of the inputs' shape without the axis.
        axis: the axis of the classes. Default: the last.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"none"``.

    Raises:
        ValueError: for shapes that do not match, and for another reduction.
    """
    return _reduce(-_chosen(inputs, targets, axis), reduction)


def gaussian_nll_loss(
    inputs: mx.array,
    targets: mx.array,
    vars: mx.array,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> mx.array:
    """Compute ``(log(v) + (targets - inputs)² / v) / 2`` with ``v = max(vars, eps)``.

    It is minus the logarithm of the density of normal distributions, without a constant.

    Args:
        inputs: the means.
        targets: where the density is taken, of the same shape.
        vars: the variances, of the same shape.
        full: whether the constant log(2π) / 2 is added. Default: ``False``.
        eps: the least variance. Default: 1e-6.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.

    Raises:
        ValueError: for shapes that do not match, and for another reduction.
    """
    _check_shapes("Inputs", inputs, "targets", targets)
    _check_shapes("Inputs", inputs, "vars", vars)
    v = mx.maximum(vars, eps)
    loss = 0.5 * (mx.log(v) + mx.square(targets - inputs) / v)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce(loss, reduction)


def kl_div_loss(inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none") -> mx.array:
    """Compute the Kullback-Leibler divergence ``Σ exp(targets) * (targets - inputs)`` along an axis.

    Args:
        inputs: logarithms of the predicted probabilities.
        targets: logarithms of the probabilities.
        axis: the axis of the classes. Default: the last.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"none"``.

    Raises:
        ValueError: for shapes that do not broadcast, and for another reduction.
    """
    return _reduce(mx.sum(mx.exp(targets) * (targets - inputs), axis=axis), reduction)


def smooth_l1_loss(
    predictions: mx.array, targets: mx.array, beta: float = 1.0, reduction: Reduction = "mean"
) -> mx.array:
    """Compute ``d² / (2 beta)`` where ``d = |predictions - targets|`` is less than ``beta``, else ``d - beta / 2``.

    See Girshick 2015.

    Args:
        predictions: the predictions.
        targets: the targets, of the same shape.
        beta: where the formulas meet. Default: 1.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"mean"``.

    Raises:
        ValueError: for shapes that do not match, and for another reduction.
    """
    _check_shapes("Predictions", predictions, "targets", targets)
    d = mx.abs(predictions - targets)
    return _reduce(mx.where(d < beta, 0.5 * mx.square(d) / beta, d - 0.5 * beta), reduction)


def triplet_loss(
    anchors: mx.array,
    positives: mx.array,
    negatives: mx.array,
    axis: int = -1,
    p: int = 2,
    margin: float = 1.0,
    eps: float = 1e-6,
    reduction: Reduction = "none",
) -> mx.array:
    """Compute ``max(dist(anchors, positives) - dist(anchors, negatives) + margin, 0)`` along an axis.

    The distance is ``(Σ |a - b|**p + eps)**(1 / p)`` (Schroff et al. 2015).

    Args:
        anchors: the vectors.
        positives: vectors that should be near.
        negatives: vectors that should be far.
        axis: the axis of the vectors. Default: the last.
        p: the power. Default: 2.
        margin: how much farther the negatives should be. Default: 1.
        eps: what keeps the derivative finite where vectors are equal. Default: 1e-6.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"none"``.

    Raises:
        ValueError: for shapes that do not broadcast, and for another reduction.
    """

    def distance(a: mx.array, b: mx.array) -> mx.array:
        return mx.power(mx.sum(mx.power(mx.abs(a - b), p), axis=axis) + eps, 1 / p)

    loss = mx.maximum(distance(anchors, positives) - distance(anchors, negatives) + margin, 0)
    return _reduce(loss, reduction)


def hinge_loss(inputs: mx.array, targets: mx.array, reduction: Reduction = "none") -> mx.array:
    """Compute ``max(1 - inputs * targets, 0)``.

    Args:
        inputs: the predictions.
        targets: -1 or 1.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"none"``.

    Raises:
        ValueError: for shapes that do not broadcast, and for another reduction.
    """
    return _reduce(mx.maximum(1 - inputs * targets, 0), reduction)


def huber_loss(inputs: mx.array, targets: mx.array, delta: float = 1.0, reduction: Reduction = "none") -> mx.array:
    """Compute ``d² / 2`` where ``d = |inputs - targets|`` is at most ``delta``, else ``delta * (d - delta / 2)``.

    See Huber 1964.

    Args:
        inputs: the predictions.
        targets: the targets.
        delta: where the formulas meet. Default: 1.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"none"``.

    Raises:
        ValueError: for shapes that do not broadcast, and for another reduction.
    """
    d = mx.abs(inputs - targets)
    inside = mx.minimum(d, delta)
    return _reduce(0.5 * inside**2 + delta * (d - inside), reduction)


def log_cosh_loss(inputs: mx.array, targets: mx.array, reduction: Reduction = "none") -> mx.array:
    """Compute ``log(cosh(inputs - targets))`` as ``logaddexp(d, -d) - log(2)``.

    Args:
        inputs: the predictions.
        targets: the targets.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"none"``.

    Raises:
        ValueError: for shapes that do not broadcast, and for another reduction.
    """
    d = inputs - targets
    return _reduce(mx.logaddexp(d, -d) - math.log(2), reduction)


def cosine_similarity_loss(
    x1: mx.array, x2: mx.array, axis: int = 1, eps: float = 1e-8, reduction: Reduction = "none"
) -> mx.array:
    """Compute the cosine of the angle between vectors: ``x1 · x2 / max(|x1| |x2|, eps)`` along an axis.

    Args:
        x1: the first vectors.
        x2: the second vectors.
        axis: the axis of the vectors. Default: 1.
        eps: the least product of lengths. Default: 1e-8.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"none"``.

    Raises:
        ValueError: for shapes that do not broadcast, and for another reduction.
    """

    def length(x: mx.array) -> mx.array:
        return mx.sqrt(mx.sum(mx.square(x), axis=axis))

    return _reduce(mx.sum(x1 * x2, axis=axis) / mx.maximum(length(x1) * length(x2), eps), reduction)


def margin_ranking_loss(
    inputs1: mx.array,
    inputs2: mx.array,
    targets: mx.array,
    margin: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    """Compute ``max(-targets * (inputs1 - inputs2) + margin, 0)``.

    Args:
        inputs1: the first scores.
        inputs2: the second scores, of the same shape.
        targets: 1 where the first should be larger, -1 where the second should, of the same shape.
        margin: by how much. Default: 0.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``. Default: ``"none"``.

    Raises:
        ValueError: for shapes that do not match, and for another reduction.
    """
    if not inputs1.shape == inputs2.shape == targets.shape:
        raise ValueError(
            "The shapes of the arguments do not match. The provided shapes are "
            f"{inputs1.shape=}, {inputs2.shape=}, and {targets.shape=}."
        )
    return _reduce(mx.maximum(0, -targets * (inputs1 - inputs2) + margin), reduction)
