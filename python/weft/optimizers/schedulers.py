"""Learning rate schedules: functions of the number of steps done, as an integer or an integer scalar array.

An optimizer takes one where it takes a learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import weft.core as mx

__all__ = ["cosine_decay", "exponential_decay", "join_schedules", "linear_schedule", "step_decay"]

Schedule = Callable[[mx.array], mx.array]


def _require_positive(schedule: str, name: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"[{schedule}] {name} must be greater than 0, but is {value}")


def exponential_decay(init: float, decay_rate: float) -> Schedule:
    """Make the schedule init · decay_rate ^ step.

    Args:
        init: The first value.
        decay_rate: The factor of each step.
    """
    return lambda step: init * decay_rate**step


def step_decay(init: float, decay_rate: float, step_size: int) -> Schedule:
    """Make the schedule init · decay_rate ^ ⌊step / step_size⌋.

    Args:
        init: The first value.
        decay_rate: The factor of each `step_size` steps.
        step_size: The number of steps between changes, more than 0.
    """
    _require_positive("step_decay", "step_size", step_size)
    return lambda step: init * decay_rate ** (step // step_size)


def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> Schedule:
    """Make a schedule that falls along half a period of the cosine, and stays at the end.

    From Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts" (2017), without the restarts.

    Args:
        init: The first value.
        decay_steps: The number of steps to the end, more than 0.
        end: The last value. Default: 0.
    """
    _require_positive("cosine_decay", "decay_steps", decay_steps)

    def schedule(step: mx.array) -> mx.array:
        fraction = mx.cos(math.pi / decay_steps * mx.minimum(step, decay_steps))
        return end + 0.5 * (init - end) * (1 + fraction)

    return schedule


def linear_schedule(init: float, end: float, steps: int) -> Schedule:
    """Make a schedule that goes from one value to another along a line, and stays there.

    Args:
        init: The first value.
        end: The last value.
        steps: The number of steps to the end, more than 0.
    """
    _require_positive("linear_schedule", "steps", steps)
    return lambda step: init + (end - init) / steps * mx.minimum(step, steps)


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Make a schedule that goes through several, each from its own step 0 on.

    Args:
        schedules: The schedules, at least one.
        boundaries: The step at which each schedule but the first begins.
    """
    if not schedules:
        raise ValueError("[join_schedules] there must be at least one schedule")
    if len(boundaries) != len(schedules) - 1:
        expected = len(schedules) - 1
        raise ValueError(
            f"[join_schedules] {len(schedules)} schedules take {expected} boundaries, not {len(boundaries)}"
        )

    def schedule(step: mx.array) -> mx.array:
        value = schedules[0](step)
        for later, begin in zip(schedules[1:], boundaries):
            value = mx.where(step < begin, value, later(step - begin))
        return value

    return schedule
