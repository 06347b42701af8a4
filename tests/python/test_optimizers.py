"""Optimizers, schedules and gradient clipping. Golden values are MLX's (golden/generate_optimizers.py)."""

from pathlib import Path

import numpy as np
import pytest
from optimizer_cases import SCHEDULES, STEPS, runs, schedule_values, walk
from support import assert_close, host

import weft.core as mx
import weft.optimizers as optimizers
from weft.utils import tree_flatten, tree_map, tree_unflatten

TOLERANCES = {"float32": 2e-5, "float16": 1e-2, "bfloat16": 8e-2}


def read_golden():
    file = np.load(Path(__file__).parent / "golden" / "optimizers.npz")
    found, at = {}, 0
    for line in file["index"].tobytes().decode().split("\n"):
        title, dtype, extents = line.split("\t")
        shape = tuple(int(n) for n in extents.split(",") if n)
        size = int(np.prod(shape))
        found[title] = file["numbers"][at : at + size].astype(dtype).reshape(shape)
        at += size
    return found


GOLDEN = read_golden()


def parameters():
    return {"a": mx.array([1.0, 2.0]), "b": [mx.ones((2, 3)), {"c": mx.array(2.0)}]}


def gradients():
    return tree_map(lambda x: 0.1 * x, parameters())


@pytest.mark.parametrize("run", list(runs()), ids=lambda run: run[0])
def test_twenty_steps(run):
    title, name, options, dtype, rate = run
    found = walk(mx, optimizers, tree_flatten, GOLDEN, name, options, dtype, rate)
    expected = {k[len(title) + 1 :]: v for k, v in GOLDEN.items() if k.startswith(title + "/")}
    assert set(found) == set(expected)
    for path, value in expected.items():
        if path.startswith("parameters"):
            assert found[path].dtype == getattr(mx, dtype), path
        np.testing.assert_allclose(
            host(found[path]).astype(np.float64),
            value,
            rtol=TOLERANCES[dtype],
            atol=TOLERANCES[dtype] * (1e-3 if "state" in path and dtype == "float32" else 1),
            err_msg=path,
        )


def test_schedules():
    for title, values in schedule_values(mx, optimizers).items():
        np.testing.assert_allclose(values, GOLDEN[f"schedule/{title}"], rtol=1e-6, atol=1e-8, err_msg=title)


@pytest.mark.parametrize("title", SCHEDULES)
def test_schedules_take_plain_integers(title):
    args, options = SCHEDULES[title]
    schedule = getattr(optimizers, title.split()[0])(*args, **options)
    assert float(schedule(5)) == pytest.approx(float(schedule(mx.array(5))), rel=1e-6)


STATES = [
    (lambda: optimizers.SGD(0.1), "v"),
    (lambda: optimizers.RMSprop(0.1), "v"),
    (lambda: optimizers.Adagrad(0.1), "v"),
    (lambda: optimizers.AdaDelta(0.1), "v u"),
    (lambda: optimizers.Adam(0.1), "m v"),
    (lambda: optimizers.AdamW(0.1), "m v"),
    (lambda: optimizers.Adamax(0.1), "m v"),
    (lambda: optimizers.Lion(0.1), "m"),
    (lambda: optimizers.Muon(0.1), "v"),
]


@pytest.mark.parametrize("make, names", STATES)
def test_state_mirrors_the_parameters(make, names):
    optimizer = make()
    assert set(optimizer.state) == {"step", "learning_rate"}
    optimizer.init(parameters())
    for path, leaf in tree_flatten(parameters()):
        for name in names.split():
            entry = dict(tree_flatten(optimizer.state))[f"{path}.{name}"]
            assert entry.shape == leaf.shape and not mx.any(entry).item()
    assert len(tree_flatten(optimizer.state)) == 2 + 3 * len(names.split())
    optimizer.apply_gradients(gradients(), parameters())
    assert optimizer.step.item() == 1 and optimizer.step.dtype == mx.uint64


def test_adafactor_keeps_rows_and_columns():
    optimizer = optimizers.Adafactor(beta_1=0.9)
    optimizer.init({"matrix": mx.zeros((2, 3, 4)), "vector": mx.zeros(5)})
    shapes = {path: value.shape for path, value in tree_flatten(optimizer.state)}
    assert shapes == {
        "step": (),
        "matrix.exp_avg_sq_row": (2, 3),
        "matrix.exp_avg_sq_col": (2, 4),
        "matrix.exp_avg": (2, 3, 4),
        "vector.exp_avg_sq": (5,),
        "vector.exp_avg": (5,),
    }


def test_init_keeps_what_is_there():
    optimizer = optimizers.SGD(0.1, momentum=0.9)
    optimizer.apply_gradients({"a": gradients()["a"]}, parameters())
    optimizer.init(parameters())
    assert_close(optimizer.state["a"]["v"], [0.1, 0.2])
    assert_close(optimizer.state["b"][1]["c"]["v"], 0.0)


def test_gradients_of_some_parameters():
    optimizer = optimizers.SGD(0.5)
    optimizer.init(parameters())
    assert set(optimizer.apply_gradients({"a": mx.ones(2)}, parameters())) == {"a"}
    assert optimizer.apply_gradients({}, parameters()) == {}
    with pytest.raises(KeyError):
        optimizer.apply_gradients({"z": mx.ones(2)}, parameters())


def test_a_state_that_was_saved_continues():
    def steps(optimizer, values, n):
        for _ in range(n):
            values = optimizer.apply_gradients(gradients(), values)
        return values

    first = optimizers.Adam(0.1, bias_correction=True)
    values = steps(first, parameters(), 3)
    saved = tree_unflatten(tree_flatten(first.state))
    second = optimizers.Adam(0.5, bias_correction=True)
    second.state = saved
    assert second.step.item() == 3 and second.learning_rate.item() == pytest.approx(0.1)
    for (_, a), (_, b) in zip(tree_flatten(steps(first, values, 2)), tree_flatten(steps(second, values, 2))):
        assert_close(a, host(b))


def test_learning_rate():
    optimizer = optimizers.SGD(1)
    assert optimizer.learning_rate.item() == 1
    optimizer.learning_rate = 0.25
    assert optimizer.learning_rate.item() == 0.25
    assert_close(optimizer.apply_gradients({"a": mx.ones(2)}, {"a": mx.ones(2)})["a"], [0.75, 0.75])
    scheduled = optimizers.SGD(lambda step: 0.1 * (step + 1))
    rates = []
    for _ in range(3):
        scheduled.apply_gradients(gradients(), parameters())
        rates.append(scheduled.learning_rate.item())
    assert rates == pytest.approx([0.1, 0.2, 0.3])
    with pytest.raises(KeyError):
        optimizers.Adafactor().learning_rate


def test_learning_rate_does_not_promote():
    for dtype in (mx.float16, mx.bfloat16):
        ones = {"a": mx.ones(2, dtype)}
        assert optimizers.Adam(0.1, bias_correction=True).apply_gradients(ones, ones)["a"].dtype == dtype


def test_a_step_of_each_formula():
    w, g, rate = np.array([1.0, -2.0]), np.array([0.5, 0.25]), 0.1
    expected = {
        "SGD": w - rate * g,
        "RMSprop": w - rate * g / (np.sqrt(0.01 * g**2) + 1e-8),
        "Adagrad": w - rate * g / (np.sqrt(g**2) + 1e-8),
        "Adam": w - rate * 0.1 * g / (np.sqrt(0.001 * g**2) + 1e-8),
        "AdamW": w * (1 - rate * 0.01) - rate * 0.1 * g / (np.sqrt(0.001 * g**2) + 1e-8),
        "Adamax": w - rate * 0.1 * g / (np.abs(g) + 1e-8),
        "Lion": w - rate * np.sign(g),
        "AdaDelta": w - rate * np.sqrt(1e-6) / np.sqrt(0.1 * g**2 + 1e-6) * g,
    }
    for name, value in expected.items():
        slopes, values = {"w": mx.array(g, mx.float32)}, {"w": mx.array(w, mx.float32)}
        new = getattr(optimizers, name)(rate).apply_gradients(slopes, values)
        assert_close(new["w"], value, tolerance=2e-6)


def test_muon_steps_are_nearly_orthogonal():
    gradient = mx.random.normal((6, 4))
    optimizer = optimizers.Muon(1.0, momentum=0.0, weight_decay=0.0)
    step = -host(optimizer.apply_gradients({"w": gradient}, {"w": mx.zeros((6, 4))})["w"])
    singular = np.linalg.svd(step / np.sqrt(6 / 4), compute_uv=False)
    assert (singular > 0.6).all() and (singular < 1.3).all()


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {"nesterov": True}),
        ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}),
        ("RMSprop", {"alpha": -1}),
        ("RMSprop", {"eps": 0}),
        ("Adagrad", {"eps": 0}),
        ("AdaDelta", {"rho": -1}),
        ("AdaDelta", {"eps": 0}),
        ("Adam", {"eps": -1}),
        ("Adam", {"betas": (1, 0.5)}),
        ("AdamW", {"betas": (0.5, 1)}),
        ("Adamax", {"eps": -1}),
        ("Lion", {"betas": (-0.1, 0.3)}),
    ],
)
def test_options_out_of_range(name, options):
    with pytest.raises(ValueError):
        getattr(optimizers, name)(0.1, **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: optimizers.linear_schedule(0.0, 1.0, 0),
        lambda: optimizers.cosine_decay(0.1, 0),
        lambda: optimizers.step_decay(0.1, 0.5, -1),
        lambda: optimizers.join_schedules([], []),
        lambda: optimizers.join_schedules([lambda s: s], [1]),
        lambda: optimizers.MultiOptimizer([]),
        lambda: optimizers.MultiOptimizer([optimizers.SGD(0.1), optimizers.SGD(0.1)]),
        lambda: optimizers.clip_grad_norm([mx.ones(2)], -1.0),
    ],
)
def test_mistakes(make):
    with pytest.raises(ValueError):
        make()


def test_the_base_class_is_abstract():
    with pytest.raises(NotImplementedError):
        optimizers.Optimizer().apply_gradients(gradients(), parameters())


def two():
    return optimizers.MultiOptimizer(
        [optimizers.SGD(0.5, momentum=0.9), optimizers.Adam(0.1)], [lambda path, gradient: gradient.ndim > 1]
    )


def test_multi_optimizer_divides_the_parameters():
    optimizer = two()
    new = optimizer.apply_gradients(gradients(), parameters())
    matrix, rest = optimizer.state["states"]
    assert "a" not in matrix and "v" in matrix["b"][0] and "m" in rest["a"] and "m" in rest["b"][1]["c"]
    assert_close(new["b"][0], np.full((2, 3), 0.95))
    assert_close(new["a"], [0.683773, 1.683773], tolerance=1e-5)
    again = two()
    again.state = optimizer.state
    assert set(again.apply_gradients(gradients(), parameters())) == {"a", "b"}
    again.learning_rate = 3.0
    assert [s["learning_rate"].item() for s in again.state["states"]] == [3.0, 3.0]
    assert again.learning_rate.item() == 3.0
    for state in ({}, [], {"states": [{}]}):
        with pytest.raises(ValueError):
            again.state = state


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_clip_grad_norm(dtype):
    tree = {"a": mx.array([30.0, 40.0], getattr(mx, dtype)), "b": [mx.array([120.0], getattr(mx, dtype))]}
    clipped, norm = optimizers.clip_grad_norm(tree, 1.3)
    assert norm.item() == pytest.approx(130, rel=1e-3) and clipped["a"].dtype == getattr(mx, dtype)
    assert_close(clipped["a"], [0.3, 0.4])
    assert_close(clipped["b"][0], [1.2])
    kept, _ = optimizers.clip_grad_norm(tree, 1000.0)
    assert_close(kept["a"], [30, 40])


def test_clip_grad_norm_of_nothing():
    kept, norm = optimizers.clip_grad_norm({}, 1.0)
    assert kept == {} and norm.item() == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: optimizers.Adam(optimizers.linear_schedule(0.1, 0.01, 5), bias_correction=True),
        lambda: optimizers.Adafactor(),
        lambda: optimizers.Muon(0.1),
        two,
    ],
)
def test_compiled_steps_equal_eager_ones(make):
    results = []
    for compiled in (False, True):
        store, optimizer = {"parameters": parameters()}, make()
        optimizer.init(store["parameters"])

        def step(x, store=store, optimizer=optimizer):
            slopes = tree_map(lambda p: p * x, store["parameters"])
            store["parameters"] = optimizer.apply_gradients(slopes, store["parameters"])
            return x

        state = [store, optimizer.state]
        run = mx.compile(step, inputs=state, outputs=state) if compiled else step
        for i in range(STEPS // 4):
            run(mx.array(float(i)))
        results.append(tree_flatten(state))
    for (path, eager), (_, traced) in zip(*results):
        np.testing.assert_allclose(host(traced), host(eager), rtol=1e-5, atol=1e-6, err_msg=path)
