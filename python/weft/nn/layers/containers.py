"""Sequential."""

from __future__ import annotations

from typing import Any, Callable

from weft.nn.layers.base import Module

__all__ = ["Sequential"]


class Sequential(Module):
    """Applies modules or functions in turn, each to the result of the one before.

    Args:
        modules: the modules or functions. They are the elements of the list ``layers``.
    """

    def __init__(self, *modules: Callable[[Any], Any]) -> None:
        super().__init__()
        self.layers = list(modules)

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x
