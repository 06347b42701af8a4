"""nn.Module: a dictionary of parameters and modules, and what walks through it."""

import copy
import pickle

import numpy as np
import pytest

import weft.core as mx
import weft.nn as nn
from weft.utils import tree_flatten


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.layers = [nn.ReLU(), nn.Linear(3, 2, bias=False)]
        self.parts = {"norm": nn.LayerNorm(4), "scale": mx.array(1.0)}
        self.pair = (mx.array(0.0), 1)
        self.count = 5
        self.nothing = None
        self._hidden = mx.array(3.0)
        self._inner = nn.Linear(1, 1)


PARAMETERS = {
    "linear.weight", "linear.bias", "layers.1.weight", "parts.norm.weight", "parts.norm.bias", "parts.scale",
}  # fmt: skip


def names(tree):
    return {name for name, _ in tree_flatten(tree)}


def frozen(module):
    return names(module.parameters()) - names(module.trainable_parameters())


def test_arrays_and_containers_are_items_and_the_rest_are_attributes():
    m = Model()
    assert list(m) == ["linear", "layers", "parts", "pair", "_hidden", "_inner"]
    assert m.count == 5 and m.nothing is None and m["pair"] is m.pair
    assert isinstance(m, dict) and m.state is m


def test_assignment_moves_between_items_and_attributes():
    m = nn.Module()
    m.x = 5
    m.x = mx.array(1.0)
    assert "x" in m and "x" not in vars(m)
    m.x = None
    assert "x" not in m and m.x is None
    m.x = (1, 2)
    assert m["x"] == (1, 2)
    del m.x
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'x'"):
        m.x
    with pytest.raises(AttributeError):
        del m.x


def test_an_item_cannot_hide_an_attribute_of_the_class():
    for name in ("update", "training", "items"):
        with pytest.raises(AttributeError):
            setattr(nn.Module(), name, mx.array(1.0))


def test_an_item_that_is_none_is_no_attribute():
    m = nn.Module()
    m["x"] = None
    with pytest.raises(AttributeError):
        m.x


def test_repr_is_a_tree():
    assert repr(nn.Module()) == "Module()"
    assert repr(Model()) == (
        "Model(\n"
        "  (linear): Linear(input_dims=2, output_dims=3, bias=True)\n"
        "  (layers.0): ReLU()\n"
        "  (layers.1): Linear(input_dims=3, output_dims=2, bias=False)\n"
        "  (parts.norm): LayerNorm(4, eps=1e-05, affine=True)\n"
        "  (_inner): Linear(input_dims=1, output_dims=1, bias=True)\n"
        ")"
    )
    assert repr(nn.Sequential(nn.Sequential(nn.Tanh()))) == (
        "Sequential(\n  (layers.0): Sequential(\n    (layers.0): Tanh()\n  )\n)"
    )


def test_modules_cannot_be_hashed():
    with pytest.raises(TypeError):
        hash(Model())


def test_copies_and_pickles():
    m = nn.Linear(2, 3)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert type(other) is nn.Linear and mx.array_equal(other.weight, m.weight) and other.training


def test_parameters():
    m = Model()
    assert names(m.parameters()) == PARAMETERS
    assert m.parameters()["layers"][0] == {} and m.parameters()["linear"]["weight"] is m.linear.weight


def test_children_and_leaf_modules():
    m = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    assert m.children()["layers"] == m.layers and m.children()["layers"][0] is m.layers[0]
    leaves = m.leaf_modules()["layers"]
    assert leaves[0]["layers"][0] is m.layers[0].layers[0] and leaves[1] is m.layers[1]
    assert Model().children()["parts"]["scale"] == {}


def test_modules_and_names():
    expected = ["", "_inner", "parts.norm", "layers.1", "layers.0", "linear"]
    assert [name for name, _ in Model().named_modules()] == expected
    assert [type(m).__name__ for m in Model().modules()] == "Model Linear LayerNorm Linear ReLU Linear".split()
    m, seen = Model(), []
    assert m.apply_to_modules(lambda name, module: seen.append(name)) is m
    assert seen == expected


def test_filters():
    m, array = Model(), mx.array(1.0)
    children = [nn.Module.valid_child_filter(m, "x", v) for v in (m, {}, [], array, (), 1)]
    assert children == [True, True, True, False, False, False]
    parameters = [nn.Module.valid_parameter_filter(m, "x", v) for v in (m, {}, [], array, (), 1)]
    assert parameters == [True, True, True, True, False, False]
    assert not nn.Module.valid_parameter_filter(m, "_x", array)
    assert nn.Module.trainable_parameter_filter(m, "x", array)
    m.freeze(recurse=False, keys="x")
    assert not nn.Module.trainable_parameter_filter(m, "x", array)
    assert nn.Module.is_module(m) and not nn.Module.is_module({})


def test_filter_and_map():
    m = Model()
    shapes = m.filter_and_map(nn.Module.valid_parameter_filter, lambda x: x.shape)
    assert shapes["linear"] == {"weight": (3, 2), "bias": (3,)} and shapes["layers"][0] == {}
    calls = []

    def is_leaf(module, key, value):
        calls.append((type(module).__name__, key))
        return not isinstance(value, (dict, list))

    m.filter_and_map(lambda m, k, v: not k.startswith(("pair", "_")), None, is_leaf)
    assert calls[:4] == [("Model", "linear"), ("Linear", "weight"), ("Linear", "bias"), ("Model", "layers")]
    assert ("Model", "layers.1") in calls and ("Model", "parts.norm") in calls and ("LayerNorm", "bias") in calls
    only = m.filter_and_map(lambda m, k, v: k in ("parts", "parts.scale"))
    assert list(only) == ["parts"] and list(only["parts"]) == ["norm", "scale"] and only["parts"]["norm"] == {}
    with pytest.raises(RuntimeError):
        m.filter_and_map(lambda m, k, v: True, is_leaf_fn=lambda m, k, v: isinstance(v, mx.array))


def test_update_replaces_what_is_given():
    m = Model()
    new = mx.zeros((1, 2, 3))
    bias = m.linear.bias
    assert m.update({"linear": {"weight": new}, "layers": [{}], "parts": {"scale": mx.array(2.0)}}) is m
    assert m.linear.weight is new and m.linear.bias is bias and m.parts["scale"].item() == 2


WRONG = [
    ({"x": 1}, ValueError),
    ({"count": mx.array(1.0)}, ValueError),
    ({"linear": {"x": mx.array(1.0)}}, ValueError),
    ({"linear": mx.array(1.0)}, ValueError),
    ({"linear": {"weight": 3}}, ValueError),
    ({"linear": {"weight": {}}}, ValueError),
    ({"layers": [{}, {}, {}]}, ValueError),
    ({"layers": {"1": {}}}, ValueError),
    ({"linear": [mx.array(1.0)]}, KeyError),
]


@pytest.mark.parametrize("tree, error", WRONG)
def test_strict_update_refuses_what_does_not_fit(tree, error):
    with pytest.raises(error):
        Model().update(tree)


def test_update_that_is_not_strict_takes_what_fits():
    m = Model()
    m.update({"x": 1, "linear": {"weight": mx.ones((1,)), "x": 2}, "layers": [{}, {}, {}]}, strict=False)
    assert m.linear.weight.shape == (1,) and "x" not in m and "x" not in m.linear
    m.update({"linear": {"weight": 3}}, strict=False)
    assert m.linear.weight == 3


def test_apply():
    m = Model()
    assert m.apply(lambda x: x * 0) is m
    assert not any(mx.any(x).item() for _, x in tree_flatten(m.parameters()))
    m.apply(lambda x: x + 1, lambda module, key, value: isinstance(value, nn.Linear) or key == "bias")
    assert m.linear.bias[0].item() == 1 and not mx.any(m.linear.weight).item()
    with pytest.raises(ValueError):
        m.apply(lambda x: 1)


def test_update_modules():
    m = Model()
    parts = {"norm": nn.SiLU(), "scale": {}}
    assert m.update_modules({"linear": nn.ReLU(), "layers": [nn.Tanh()], "parts": parts}) is m
    assert [type(x) for x in (m.linear, m.layers[0], m.layers[1], m.parts["norm"])] == [
        nn.ReLU, nn.Tanh, nn.Linear, nn.SiLU,
    ]  # fmt: skip
    m.update_modules(m.leaf_modules())


@pytest.mark.parametrize(
    "tree",
    [
        {"x": nn.ReLU()},
        {"count": nn.ReLU()},
        {"layers": [nn.ReLU()] * 3},
        {"layers": nn.Linear(1, 1)},
        {"linear": 3},
        {"parts": {"scale": nn.ReLU(), "x": {}}},
        {"layers": [1, 2]},
    ],
)
def test_strict_update_modules_refuses_what_does_not_fit(tree):
    with pytest.raises(ValueError):
        Model().update_modules(tree)


def test_update_modules_that_is_not_strict_takes_what_fits():
    m = Model()
    m.update_modules({"x": nn.ReLU(), "linear": 3, "count": nn.ReLU(), "layers": [nn.Tanh()] * 3}, strict=False)
    assert type(m.linear) is nn.Linear and m.count == 5 and "x" not in m
    assert [type(x) for x in m.layers] == [nn.Tanh, nn.Tanh]


def test_set_dtype():
    m = nn.Linear(2, 2)
    m.steps = mx.array([1, 2])
    m.set_dtype(mx.float16)
    assert m.weight.dtype == mx.float16 and m.steps.dtype == mx.int32
    m.set_dtype(mx.bfloat16, lambda dtype: dtype == mx.int32)
    assert m.weight.dtype == mx.float16 and m.steps.dtype == mx.bfloat16
    m.set_dtype(mx.float32, None)
    assert m.weight.dtype == mx.float32 and m.steps.dtype == mx.float32


def test_training_mode():
    m = Model()
    assert m.training and m.eval() is m
    assert not any(x.training for x in m.modules())
    assert m.train() is m and all(x.training for x in m.modules())
    assert not m.train(False).layers[1].training
    with pytest.raises(AttributeError):
        m.training = False


def test_freeze_and_unfreeze_everything():
    m = Model()
    assert m.freeze() is m and names(m.trainable_parameters()) == set()
    assert m.unfreeze() is m and frozen(m) == set()


def test_freeze_keys():
    m = Model()
    m.freeze(keys="bias")
    assert frozen(m) == {"linear.bias", "parts.norm.bias"}
    m.freeze(keys=["weight", "x"])
    assert frozen(m) == PARAMETERS - {"parts.scale"}
    m.unfreeze(keys=["weight"])
    assert frozen(m) == {"linear.bias", "parts.norm.bias"}


def test_freeze_without_recursion():
    m = Model()
    m.freeze(recurse=False)
    assert frozen(m) == {"parts.scale"}
    m.freeze()
    m.unfreeze(recurse=False)
    assert frozen(m) == PARAMETERS - {"parts.scale"}
    m.unfreeze()
    m.freeze(recurse=False, keys=["linear"])
    assert frozen(m) == {"linear.weight", "linear.bias"}


@pytest.mark.parametrize("change", ["freeze", "unfreeze"])
def test_strict_freezing_needs_known_names(change):
    m = Model()
    getattr(m, change)(keys="weight", strict=True)  # of modules inside
    with pytest.raises(KeyError, match="Module doesn't contain member x."):
        getattr(m, change)(keys="x", strict=True)
    with pytest.raises(KeyError):
        getattr(m, change)(keys="weight", recurse=False, strict=True)
    with pytest.raises(TypeError):
        getattr(m, change)(True)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_weights_go_through_files(tmp_path, suffix):
    file = str(tmp_path / f"weights.{suffix}")
    m, other = Model(), Model()
    m.save_weights(file)
    assert set(mx.load(file)) == PARAMETERS
    assert other.load_weights(file) is other
    for (_, a), (_, b) in zip(tree_flatten(m.parameters()), tree_flatten(other.parameters())):
        np.testing.assert_array_equal(np.array(a), np.array(b))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Unsupported file extension"):
        Model().save_weights(str(tmp_path / "weights.bin"))


WEIGHTS = [("weight", mx.zeros((3, 2))), ("bias", mx.zeros((3,)))]


@pytest.mark.parametrize(
    "weights, message",
    [
        (WEIGHTS[:1], "Missing 1 parameters: \nbias."),
        ([*WEIGHTS, ("b", mx.zeros(1)), ("a", mx.zeros(1))], "Received 2 parameters not in model: \na,\nb."),
        ([("weight", mx.zeros((2, 2))), WEIGHTS[1]], "Expected shape \\(3, 2\\) but received shape \\(2, 2\\)"),
        ([("weight", np.zeros((3, 2))), WEIGHTS[1]], "Expected mx.array"),
    ],
)
def test_strict_load_weights_refuses_what_does_not_fit(weights, message):
    with pytest.raises(ValueError, match=message):
        nn.Linear(2, 3).load_weights(weights)


def test_load_weights_from_a_list():
    m = nn.Linear(2, 3)
    assert m.load_weights(WEIGHTS) is m and not mx.any(m.weight).item()
    m = nn.Linear(2, 3)
    m.load_weights([("weight", mx.ones((1,))), ("x", mx.ones((1,)))], strict=False)
    assert m.weight.shape == (1,) and "x" not in m
    m.load_weights([], strict=False)


def test_compiled_functions_capture_the_state():
    m = nn.Linear(2, 2)
    f = mx.compile(m, inputs=m.state)
    x = mx.ones((1, 2))
    before = f(x)
    m.apply(lambda x: x * 2)
    np.testing.assert_allclose(np.array(f(x)), 2 * np.array(before), rtol=1e-6)
