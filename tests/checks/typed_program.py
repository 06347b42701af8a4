"""A program that mypy reads by the package's stubs, in its strictest mode (check_types.py); nothing runs it."""

from functools import partial
from typing import Any, assert_type

import weft.core as mx
import weft.nn as nn
import weft.optimizers as optim
from weft.core import kernel as k
from weft.utils import tree_flatten


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(2, 3)

    def __call__(self, x: mx.array) -> mx.array:
        return nn.gelu(self.up(x))


model, optimizer = Model(), optim.Adam(learning_rate=1e-3)


def loss(model: Model, x: mx.array) -> mx.array:
    return (model(x) ** 2).mean()


@partial(mx.compile, inputs=[model.state], outputs=[model.state])
def step(x: mx.array) -> mx.array:
    value, gradients = nn.value_and_grad(model, loss)(model, x)
    optimizer.update(model, gradients)
    return mx.array(value)


number: float = step(mx.ones((1, 2))).item()
a = mx.array([1, 2]) @ mx.ones((2,)) + 1.5
a[0] = 2 * a - a / 2
assert_type((a == 3).all(), mx.array)
assert_type(a.sum(axis=0, keepdims=True), mx.array)
assert_type(mx.vmap(mx.sin)(a), mx.array)
assert_type(a.shape, tuple[int, ...])
assert_type(mx.split(a, 2), list[mx.array])
assert_type(tree_flatten(model.parameters()), list[tuple[str, Any]])
with mx.stream(mx.cpu):
    mx.eval(mx.random.normal((2, 3), dtype=mx.bfloat16), mx.fft.fft(a, norm="ortho"), model.parameters())


@k.kernel(grid=lambda x, y: x.dim(0))
def halved(x: k.In, y: k.Out, block: int = 16) -> None:
    total = k.var(k.zeros(block))
    for i in k.range(0, x.dim(0), block):
        total += x[k.ds(i, block)].load() * 0.5
    with k.when(k.program_id(0) > 0):
        total.value = k.where(total > 0, total, 1.0)
    assert_type(k.cdiv(7, 2), int)
    assert_type(k.max(total, 0), k.Tile)
    y[0:block] = total


assert_type(halved.config(block=8), k.Kernel)
halved.launch(a, stream=None)
mx.fft.fft(a, norm="none")  # type: ignore[arg-type]
