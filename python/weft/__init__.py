"""Weft: arrays, transforms of functions, and neural networks on CPUs and GPUs."""

from weft import core

__all__ = ["core"]
