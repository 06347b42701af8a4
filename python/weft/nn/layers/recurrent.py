"""RNN, GRU and LSTM. Each input has the shape ``[N, L, D]`` or ``[L, D]``, with time as the axis before the last."""

from __future__ import annotations

from typing import Callable, Optional

import weft.core as mx
from weft.nn.layers.activations import tanh
from weft.nn.layers.base import Module
from weft.nn.layers.linear import affine, initial_uniform

__all__ = ["GRU", "LSTM", "RNN"]


def _describe(module: Module, weight: mx.array, nonlinearity: str = "") -> str:
    return (
        f"input_dims={weight.shape[1]}, hidden_size={module.hidden_size}{nonlinearity}, "
        f"bias={module.get('bias', module.get('b')) is not None}"
    )


class RNN(Module):
    """Computes ``h[t] = f(Wxh x[t] + Whh h[t-1] + bias)`` and returns all ``h``, of shape ``[N, L, H]`` (Elman 1990).

    ``Wxh`` has the shape ``[H, D]``, ``Whh`` ``[H, H]`` and ``bias`` ``[H]``. All are drawn from the uniform
    distribution between -√(1/H) and √(1/H).

    Args:
        input_size: the size D of the input's last axis.
        hidden_size: the size H of a state.
        bias: whether there is a bias. Default: ``True``.
        nonlinearity: the function f. Default: ``tanh``.

    Raises:
        ValueError: if the nonlinearity cannot be called.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Optional[Callable[[mx.array], mx.array]] = None,
    ) -> None:
        super().__init__()
        self.nonlinearity = nonlinearity or tanh
        if not callable(self.nonlinearity):
            raise ValueError(f"Nonlinearity must be callable. Current value: {nonlinearity}.")
        self.hidden_size = hidden_size
        self.Wxh = initial_uniform(hidden_size, hidden_size, input_size)
        self.Whh = initial_uniform(hidden_size, hidden_size, hidden_size)
        self.bias = initial_uniform(hidden_size, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return _describe(self, self.Wxh, f", nonlinearity={self.nonlinearity}")

    def __call__(self, x: mx.array, hidden: Optional[mx.array] = None) -> mx.array:
        """Return the states of all times.

        Args:
            x: the input.
            hidden: the state before the first time, of shape ``[N, H]`` or ``[H]``. Default: zeros.
        """
        inputs = affine(x, self.Wxh, self.bias)
        states = []
        for t in range(x.shape[-2]):
            now = inputs[..., t, :]
            hidden = self.nonlinearity(now if hidden is None else affine(hidden, self.Whh, now))
            states.append(hidden)
        return mx.stack(states, axis=-2)


class GRU(Module):
    """Computes gated recurrent units and returns all states, of shape ``[N, L, H]`` (Cho et al. 2014)::

        r[t] = sigmoid(Wxr x[t] + br + Whr h[t-1])
        z[t] = sigmoid(Wxz x[t] + bz + Whz h[t-1])
        n[t] = tanh(Wxn x[t] + bn + r[t] * (Whn h[t-1] + bhn))
        h[t] = (1 - z[t]) * n[t] + z[t] * h[t-1]

    ``Wx`` has the shape ``[3 H, D]``, ``Wh`` ``[3 H, H]``, ``b`` ``[3 H]``, in the order r, z, n; ``bhn`` has the shape
    ``[H]``. All are drawn from the uniform distribution between -√(1/H) and √(1/H).

    Args:
        input_size: the size D of the input's last axis.
        hidden_size: the size H of a state.
        bias: whether there are biases. Default: ``True``.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.Wx = initial_uniform(hidden_size, 3 * hidden_size, input_size)
        self.Wh = initial_uniform(hidden_size, 3 * hidden_size, hidden_size)
        self.b = initial_uniform(hidden_size, 3 * hidden_size) if bias else None
        self.bhn = initial_uniform(hidden_size, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return _describe(self, self.Wx)

    def __call__(self, x: mx.array, hidden: Optional[mx.array] = None) -> mx.array:
        """Return the states of all times.

        Args:
            x: the input.
            hidden: the state before the first time, of shape ``[N, H]`` or ``[H]``. Default: zeros.
        """
        inputs = affine(x, self.Wx, self.b)
        gates, news = inputs[..., : -self.hidden_size], inputs[..., -self.hidden_size :]
        states = []
        for t in range(x.shape[-2]):
            gate, new = gates[..., t, :], news[..., t, :]
            shift = self.bhn  # of the new state, from the one before
            if hidden is not None:
                back = hidden @ self.Wh.T
                gate = gate + back[..., : -self.hidden_size]
                back = back[..., -self.hidden_size :]
                shift = back if shift is None else back + shift
            r, z = mx.split(mx.sigmoid(gate), 2, axis=-1)
            n = mx.tanh(new if shift is None else new + r * shift)
            hidden = (1 - z) * n if hidden is None else (1 - z) * n + z * hidden
            states.append(hidden)
        return mx.stack(states, axis=-2)


class LSTM(Module):
    """Computes a long short-term memory and returns all states and all cells (Hochreiter and Schmidhuber 1997)::

        i[t], f[t], o[t] = sigmoid(Wx x[t] + Wh h[t-1] + bias), for each its rows
        g[t] = tanh(Wx x[t] + Wh h[t-1] + bias)
        c[t] = f[t] * c[t-1] + i[t] * g[t]
        h[t] = o[t] * tanh(c[t])

    ``Wx`` has the shape ``[4 H, D]``, ``Wh`` ``[4 H, H]`` and ``bias`` ``[4 H]``, in the order i, f, g, o. All are
    drawn from the uniform distribution between -√(1/H) and √(1/H).

    Args:
        input_size: the size D of the input's last axis.
        hidden_size: the size H of a state.
        bias: whether there is a bias. Default: ``True``.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.Wx = initial_uniform(hidden_size, 4 * hidden_size, input_size)
        self.Wh = initial_uniform(hidden_size, 4 * hidden_size, hidden_size)
        self.bias = initial_uniform(hidden_size, 4 * hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return _describe(self, self.Wx)

    def __call__(
        self, x: mx.array, hidden: Optional[mx.array] = None, cell: Optional[mx.array] = None
    ) -> tuple[mx.array, mx.array]:
        """Return the states and the cells of all times, both of shape ``[N, L, H]``.

        Args:
            x: the input.
            hidden: the state before the first time, of shape ``[N, H]`` or ``[H]``. Default: zeros.
            cell: the cell before the first time. Default: zeros.
        """
        inputs = affine(x, self.Wx, self.bias)
        states, cells = [], []
        for t in range(x.shape[-2]):
            now = inputs[..., t, :]
            i, f, g, o = mx.split(now if hidden is None else affine(hidden, self.Wh, now), 4, axis=-1)
            new = mx.sigmoid(i) * mx.tanh(g)
            cell = new if cell is None else mx.sigmoid(f) * cell + new
            hidden = mx.sigmoid(o) * mx.tanh(cell)
            states.append(hidden)
            cells.append(cell)
        return mx.stack(states, axis=-2), mx.stack(cells, axis=-2)
