"""The base of all optimizers, and an optimizer that divides the parameters among several.

An optimizer's state is a dict: "step", the rates ("learning_rate" and whatever else has a schedule), and a tree of the
parameters' structure with a dict of arrays at each parameter. All of it changes in place, so `compile` can capture it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Union

import weft.core as mx
from weft.utils import tree_flatten, tree_map, tree_merge, tree_unflatten

if TYPE_CHECKING:
    from weft.nn import Module

__all__ = ["MultiOptimizer", "Optimizer", "Rate", "require"]

Rate = Union[float, mx.array, Callable[[mx.array], mx.array]]
"""A number, or a schedule: a function from the number of steps done so far to a scalar."""


def require(condition: bool, what: str, range_of_values: str, value: Any) -> None:
    """Raise ValueError unless an option is in its range."""
    if not condition:
        raise ValueError(f"[optimizers] {what} must be {range_of_values}, but is {value}")


class Optimizer:
    """Base of optimizers: keeps the state and walks trees of parameters.

    A new optimizer defines `init_single` and `apply_single`, which see one parameter at a time.
    """

    def __init__(self, schedulers: dict[str, Callable[[mx.array], mx.array]] | None = None):
        """Begin with no steps done.

        Args:
            schedulers: A schedule for each rate that has one; `apply_gradients` writes its value to the state under the
                same name. Default: none.
        """
        self._initialized = False
        self._state: dict[str, Any] = {"step": mx.array(0, mx.uint64)}
        self._schedulers = dict(schedulers or {})

    def update(self, model: Module, gradients: dict) -> None:
        """Take one step: change the model's parameters that have gradients, and the state.

        Args:
            model: The module whose parameters change.
            gradients: A tree of gradients, as `nn.value_and_grad` returns it.
        """
        model.update(self.apply_gradients(gradients, model))

    def init(self, parameters: dict) -> None:
        """Make the state of all parameters. Those that have a state keep it.

        The first step does so for the parameters that it has gradients of. To call this before is needed where the
        state has to exist earlier, as when it is loaded or captured.

        Args:
            parameters: A dict, with dicts and lists nested in it, of parameters.
        """
        if not isinstance(parameters, dict):
            raise TypeError(f"[Optimizer.init] the parameters must be a dict, not {type(parameters).__name__}")
        self._extend_state(parameters, self._state)
        self._initialized = True

    def _extend_state(self, parameters: Any, state: Any) -> Any:
        """Return `state` with an entry for each of `parameters`; dicts grow in place."""
        if isinstance(parameters, dict):
            state = {} if state is None else state
            for key, below in parameters.items():
                state[key] = self._extend_state(below, state.get(key))
        elif isinstance(parameters, (list, tuple)):
            known = list(state or ())
            known += [None] * (len(parameters) - len(known))
            state = [self._extend_state(below, known[i]) for i, below in enumerate(parameters)]
        elif not state:
            state = {}
            self.init_single(parameters, state)
        return state

    def init_single(self, parameter: mx.array, state: dict) -> None:
        """Write the state that a parameter begins with.

        Args:
            parameter: The parameter.
            state: An empty dict, which takes the arrays.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define init_single")

    def apply_gradients(self, gradients: dict, parameters: dict) -> dict:
        """Take one step, and return the new parameters in a tree of the gradients' structure.

        Args:
            gradients: A tree of gradients.
            parameters: A tree with at least a parameter for each gradient. It does not change.
        """
        if not self._initialized:
            self.init(gradients)
        for name, schedule in self._schedulers.items():
            rate = schedule(self.step)
            self.state[name] = rate if isinstance(rate, mx.array) else mx.array(rate)
        self.state["step"] = self.step + 1
        return tree_map(self.apply_single, gradients, parameters, self.state)

    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        """Return a parameter's next value and write its next state.

        Args:
            gradient: The gradient, of the parameter's shape.
            parameter: The parameter. It does not change.
            state: The parameter's state, which changes.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define apply_single")

    @property
    def state(self) -> dict:
        """The state: a dict of arrays and trees of arrays. It may be set to one that was saved."""
        return self._state

    @state.setter
    def state(self, state: dict) -> None:
        self._initialized = False
        self._state = state

    @property
    def step(self) -> mx.array:
        """The number of steps done, a uint64 scalar."""
        return self.state["step"]

    @property
    def learning_rate(self) -> mx.array:
        """The learning rate of the last step. Where it has a schedule, what is set lasts until the next step."""
        return self.state["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | mx.array) -> None:
        self.state["learning_rate"] = mx.array(learning_rate)

    def _maybe_schedule(self, name: str, param: Rate) -> None:
        """Enter a rate into the state, and its schedule, if it is one, among those of each step."""
        if callable(param):
            self._schedulers[name] = param
            param = param(self.step)
        self.state[name] = mx.array(param)

    def _learning_rate_for(self, gradient: mx.array) -> mx.array:
        """Return the learning rate in the gradient's dtype, so that it does not promote the parameter."""
        return self.learning_rate.astype(gradient.dtype)


class MultiOptimizer(Optimizer):
    """Several optimizers, each for a part of the parameters.

    A parameter belongs to the first optimizer whose filter returns true for its path and gradient; the last optimizer
    takes the rest.
    """

    def __init__(self, optimizers: Sequence[Optimizer], filters: Sequence[Callable[[str, mx.array], bool]] = ()):
        """Join optimizers.

        Args:
            optimizers: The optimizers, at least one.
            filters: A filter for each optimizer but the last.
        """
        super().__init__()
        if len(filters) != len(optimizers) - 1:
            raise ValueError(
                f"[MultiOptimizer] {len(optimizers)} optimizers take {len(optimizers) - 1} filters, not {len(filters)}"
            )
        self._state = {}
        self.optimizers = list(optimizers)
        self.filters = [*filters, lambda path, gradient: True]

    def _split(self, tree: dict) -> list[dict]:
        """Divide a tree into one for each optimizer."""
        parts: list[list[tuple[str, Any]]] = [[] for _ in self.optimizers]
        for path, leaf in tree_flatten(tree):
            owner = next(i for i, chosen in enumerate(self.filters) if chosen(path, leaf))
            parts[owner].append((path, leaf))
        return [tree_unflatten(part) if part else {} for part in parts]

    def init(self, parameters: dict) -> None:
        """Make the state of all parameters in the optimizers that they belong to, as `Optimizer.init`."""
        for optimizer, part in zip(self.optimizers, self._split(parameters)):
            optimizer.init(part)

    def apply_gradients(self, gradients: dict, parameters: dict) -> dict:
        """Take one step of each optimizer, and return the new parameters, as `Optimizer.apply_gradients`."""
        updated: dict = {}
        for optimizer, part in zip(self.optimizers, self._split(gradients)):
            updated = tree_merge(updated, optimizer.apply_gradients(part, parameters))
        return updated

    @property
    def state(self) -> dict:
        """The states: {"states": […]}, one of each optimizer. It may be set to one of as many."""
        return {"states": [optimizer.state for optimizer in self.optimizers]}

    @state.setter
    def state(self, state: dict) -> None:
        states = state.get("states") if isinstance(state, dict) else None
        if states is None or len(states) != len(self.optimizers):
            count = len(self.optimizers)
            raise ValueError(f'[MultiOptimizer] the state must be {{"states": […]}} with {count} entries')
        for optimizer, part in zip(self.optimizers, states):
            optimizer.state = part

    @property
    def learning_rate(self) -> mx.array:
        """The learning rate of the first optimizer. Setting it sets that of all."""
        return self.optimizers[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | mx.array) -> None:
        for optimizer in self.optimizers:
            optimizer.learning_rate = learning_rate
