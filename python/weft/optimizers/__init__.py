"""Optimizers, learning rate schedules and gradient clipping."""

from weft.optimizers.adafactor import Adafactor
from weft.optimizers.adaptive import AdaDelta, Adagrad, Adam, Adamax, AdamW, RMSprop
from weft.optimizers.clipping import clip_grad_norm
from weft.optimizers.momentum import SGD, Lion, Muon
from weft.optimizers.optimizer import MultiOptimizer, Optimizer
from weft.optimizers.schedulers import (
    cosine_decay,
    exponential_decay,
    join_schedules,
    linear_schedule,
    step_decay,
)

__all__ = [
    "AdaDelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "MultiOptimizer",
    "Muon",
    "Optimizer",
    "RMSprop",
    "SGD",
    "clip_grad_norm",
    "cosine_decay",
    "exponential_decay",
    "join_schedules",
    "linear_schedule",
    "step_decay",
]
