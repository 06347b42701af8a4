"""Inputs of assertions: NumPy's Mersenne twister, whose numbers are the same everywhere and for all versions."""

import mlx.core as mx
import numpy as np


def normal(seed, *shape):
    return mx.array(np.random.RandomState(seed).standard_normal(shape).astype(np.float32))


def uniform(seed, *shape, low=0.0, high=1.0):
    return mx.array(np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32))


def integers(seed, *shape, low=0, high=10, dtype=mx.int32):
    return mx.array(np.random.RandomState(seed).randint(low, high, shape).astype(np.int64)).astype(dtype)


def bools(seed, *shape):
    return mx.array(np.random.RandomState(seed).randint(0, 2, shape).astype(bool))


def complexes(seed, *shape):
    r = np.random.RandomState(seed)
    return mx.array((r.standard_normal(shape) + 1j * r.standard_normal(shape)).astype(np.complex64))


class Subject:
    """Adds cases named subject/name: `function` is called with the inputs and returns an array or several."""

    def __init__(self, store, subject):
        self.store, self.subject = store, subject

    def __call__(self, name, inputs, function):
        inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        made = {"name": f"{self.subject}/{name}", "in": [self.store.array(a) for a in inputs]}
        self.store.add(made, lambda: function(*inputs))
        if "throws" in made:
            raise SystemExit(f"{made['name']}: {made['throws']}: {made['message']}")
