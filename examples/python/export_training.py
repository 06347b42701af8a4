"""Exports two functions of a small classifier, and trains it with what is imported.

`init` makes the first parameters. It draws them from the default random sequence, so that the file gives the draws of
the export at each call. `step` is a whole training step: forward, backward, and the optimizer's update. A program that
imports both, in Python, C or C++, trains without the code that made them.

usage: export_training.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import weft.core as mx
import weft.nn as nn
import weft.optimizers as optim
from weft.utils import tree_flatten, tree_unflatten

BATCH, INPUTS, HIDDEN, CLASSES = 16, 20, 48, 6


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(INPUTS, HIDDEN)
        self.outer = nn.Linear(HIDDEN, CLASSES)

    def __call__(self, x):
        return self.outer(nn.relu(self.inner(x)))


def first_state():
    """The parameters of a new model and the optimizer's state, by path."""
    model, optimizer = Classifier(), optim.SGD(learning_rate=0.2, momentum=0.9)
    optimizer.init(model.parameters())
    return tree_flatten([model.parameters(), optimizer.state])


def export(folder):
    """Writes init.weft and step.weft; returns nothing: the files are all that training needs."""
    mx.random.seed(1)
    mx.export_function(str(folder / "init.weft"), lambda: [value for _, value in first_state()])
    example = first_state()
    paths = [path for path, _ in example]
    model, optimizer = Classifier(), optim.SGD(learning_rate=0.2, momentum=0.9)

    def loss(parameters, x, labels):
        model.update(parameters)
        return nn.losses.cross_entropy(model(x), labels, reduction="mean")

    def step(*arguments):
        *values, x, labels = arguments
        parameters, optimizer.state = tree_unflatten(list(zip(paths, values)))
        value, gradients = mx.value_and_grad(loss)(parameters, x, labels)
        parameters = optimizer.apply_gradients(gradients, parameters)
        return [value] + [new for _, new in tree_flatten([parameters, optimizer.state])]

    batch = mx.zeros((BATCH, INPUTS)), mx.zeros((BATCH,), mx.int32)
    mx.export_function(str(folder / "step.weft"), step, *[value for _, value in example], *batch)


def train(folder, steps=60):
    """Returns the losses of a training that knows the two files alone."""
    init, step = (mx.import_function(str(folder / name)) for name in ("init.weft", "step.weft"))
    state, losses = list(init()), []
    x = mx.random.normal((BATCH, INPUTS), key=mx.random.key(2))
    labels = mx.random.randint(0, CLASSES, (BATCH,), key=mx.random.key(3))
    for _ in range(steps):
        value, *state = step(*state, x, labels)
        losses.append(value.item())
    return losses


def main(folder):
    export(folder)
    losses = train(folder)
    for k in range(0, len(losses), 10):
        print(f"step {k:2}: loss {losses[k]:.4f}")
    assert train(folder) == losses, "another import draws the same parameters"
    assert losses[-1] < 0.1 * losses[0]
    print("trained from the two files")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
