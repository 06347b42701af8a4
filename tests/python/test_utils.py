"""Functions of trees."""

from collections import OrderedDict, namedtuple

import pytest

from weft.utils import tree_flatten, tree_map, tree_map_with_path, tree_merge, tree_reduce, tree_unflatten

Pair = namedtuple("Pair", "a b")


def args(*leaves):
    return leaves


def is_single(x):
    return isinstance(x, list) and len(x) == 1


@pytest.mark.parametrize(
    "tree, expected",
    [
        (1, 2),
        ({"a": 1, "b": [1, (2, 3)]}, {"a": 2, "b": [2, (3, 4)]}),
        (Pair(1, 2), Pair(2, 3)),
        (OrderedDict(a=1), {"a": 2}),
        ([], []),
        ({}, {}),
        ((), ()),
        ({1: [[]]}, {1: [[]]}),
    ],
)
def test_tree_map_keeps_structure(tree, expected):
    mapped = tree_map(lambda x: x + 1, tree)
    assert mapped == expected and type(mapped) is type(expected)


@pytest.mark.parametrize(
    "trees, expected",
    [
        (([1, 2], [3, 4]), [(1, 3), (2, 4)]),
        (((1, 2), [3, 4], [5, 6]), ((1, 3, 5), (2, 4, 6))),
        (([1, 2], [3, 4, 5]), [(1, 3), (2, 4)]),
        (({"a": 1}, {"a": 2, "b": 3}), {"a": (1, 2)}),
        ((1, [5, 6]), (1, [5, 6])),
        (({"a": 1}, {"a": {"m": 1}}), {"a": (1, {"m": 1})}),
    ],
)
def test_tree_map_of_several_trees(trees, expected):
    assert tree_map(args, *trees) == expected


@pytest.mark.parametrize(
    "trees, error",
    [
        (([1, 2], [3]), IndexError),
        (({"a": 1, "b": 2}, {"a": 2}), KeyError),
        (([1, 2], 5), TypeError),
        (({"a": 1}, 5), TypeError),
    ],
)
def test_tree_map_of_trees_that_do_not_match(trees, error):
    with pytest.raises(error):
        tree_map(args, *trees)


def test_tree_map_is_leaf():
    assert tree_map(args, [[1, 2], [3]], is_leaf=is_single) == [[(1,), (2,)], ([3],)]
    assert tree_map(args, [[1, 2], [3]], [[4, 5], 6], is_leaf=is_single) == [[(1, 4), (2, 5)], ([3], 6)]
    assert tree_map(args, [1, None]) == [(1,), (None,)]


def test_tree_map_keeps_subclasses_of_list():
    class Layers(list):
        pass

    assert type(tree_map(lambda x: x, Layers([1]))) is Layers


@pytest.mark.parametrize(
    "tree, options, expected",
    [
        (1, {}, (None, 1)),
        (1, {"path": "x"}, ("x", 1)),
        ([1], {"path": "x"}, [("x.0", 1)]),
        ([1], {"path": ""}, [("0", 1)]),
        ({"a": 1, "b": [1, (2, 3)]}, {}, {"a": ("a", 1), "b": [("b.0", 1), (("b.1.0", 2), ("b.1.1", 3))]}),
        ({3: 1}, {"path": "x"}, {3: ("x.3", 1)}),
        (Pair(1, 2), {}, Pair(("0", 1), ("1", 2))),
        ([[1], [2, 3]], {"is_leaf": is_single}, [("0", [1]), [("1.0", 2), ("1.1", 3)]]),
    ],
)
def test_tree_map_with_path(tree, options, expected):
    assert tree_map_with_path(args, tree, **options) == expected


def test_tree_map_with_path_of_several_trees():
    assert tree_map_with_path(args, {"a": [1, 2]}, {"a": [3, 4]}) == {"a": [("a.0", 1, 3), ("a.1", 2, 4)]}


@pytest.mark.parametrize(
    "tree, options, expected",
    [
        ({"a": 1, "b": [1, (2, 3)]}, {}, [("a", 1), ("b.0", 1), ("b.1.0", 2), ("b.1.1", 3)]),
        (1, {}, [("", 1)]),
        (None, {}, [("", None)]),
        ({"a": [], "b": {}}, {}, []),
        ({"a": 1}, {"prefix": ".p"}, [("p.a", 1)]),
        ({"a": 1}, {"prefix": "p"}, [(".a", 1)]),
        (1, {"prefix": ".p"}, [("p", 1)]),
        ({1: 2, 3: [4]}, {}, [("1", 2), ("3.0", 4)]),
        ([[1], [2, 3]], {"is_leaf": is_single}, [("0", [1]), ("1.0", 2), ("1.1", 3)]),
        ({"a": 1, "b": {"c": 2}}, {"destination": {}}, {"a": 1, "b.c": 2}),
        (1, {"destination": {}}, {"": 1}),
        ("text", {}, [("", "text")]),
    ],
)
def test_tree_flatten(tree, options, expected):
    assert tree_flatten(tree, **options) == expected


@pytest.mark.parametrize("destination", [[("z", 1)], {"z": 1}])
def test_tree_flatten_extends_its_destination(destination):
    result = tree_flatten({"a": 2}, destination=destination)
    assert result is destination and result in ([("z", 1), ("a", 2)], {"z": 1, "a": 2})


@pytest.mark.parametrize("destination", [(), set(), 5])
def test_tree_flatten_refuses_other_destinations(destination):
    with pytest.raises(ValueError):
        tree_flatten({"a": 1}, destination=destination)


@pytest.mark.parametrize(
    "leaves, expected",
    [
        ([("a", 1), ("b.0", 2), ("b.1", 3)], {"a": 1, "b": [2, 3]}),
        ({"a": 1, "b.0": 2}, {"a": 1, "b": [2]}),
        ([("", 1)], 1),
        ([], []),
        ({}, []),
        ([("0", 1), ("2", 2)], [1, {}, 2]),
        ([("1", 1), ("0", 2)], [2, 1]),
        ([("1", 1), ("a", 2)], {"1": 1, "a": 2}),
        ([("a", 1), ("1", 2)], {"a": 1, "1": 2}),
        ([("a", 1), ("a.b", 2)], {"a": {"": 1, "b": 2}}),
        ([("0.1", 1), ("0.0", 3)], [[3, 1]]),
        ([("10", 1), ("9", 2)], [{}] * 9 + [2, 1]),
        ([("a", {}), ("b", [])], {"a": {}, "b": []}),
        ([("3.a", 1)], [{}, {}, {}, {"a": 1}]),
    ],
)
def test_tree_unflatten(leaves, expected):
    assert tree_unflatten(leaves) == expected


def test_tree_unflatten_refuses_two_leaves_at_one_path():
    with pytest.raises((ValueError, RecursionError)):
        tree_unflatten([("a", 1), ("a", 2)])


def test_flatten_and_unflatten_are_inverse():
    tree = {"layers": [{"w": 1, "b": 2}, {"w": 3}], "norm": {"scale": [4, [5, 6]]}}
    assert tree_unflatten(tree_flatten(tree)) == tree
    assert tree_unflatten(tree_flatten(tree, destination={})) == tree


@pytest.mark.parametrize(
    "tree, options, expected",
    [
        ({"b": 1, "a": [2, (3,)]}, {}, ((1, 2), 3)),
        ([1, 2], {"initializer": 0}, ((0, 1), 2)),
        (5, {}, 5),
        ([], {}, None),
        ([], {"initializer": 3}, 3),
        ([[1], [2, 3]], {"is_leaf": is_single}, (([1], 2), 3)),
    ],
)
def test_tree_reduce(tree, options, expected):
    assert tree_reduce(args, tree, **options) == expected


@pytest.mark.parametrize(
    "a, b, expected",
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {"a": 1}),
        ({"a": None}, {"a": 1}, {"a": 1}),
        ([1, None], [None, 3], [1, 3]),
        ([1], (None, 3), [1, 3]),
        ((1,), [None, 2], (1, 2)),
        (Pair(1, None), Pair(None, 2), Pair(1, 2)),
        ({"a": []}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {}}, {"a": 5}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ([{"a": 1}], [{"b": 1}, {"c": 1}], [{"a": 1, "b": 1}, {"c": 1}]),
        ({"a": [{}, 2]}, {"a": [{"x": 1}]}, {"a": [{"x": 1}, 2]}),
        (1, None, 1),
        ([], [], []),
    ],
)
def test_tree_merge(a, b, expected):
    merged = tree_merge(a, b)
    assert merged == expected and type(merged) is type(expected)


@pytest.mark.parametrize(
    "a, b, expected",
    [
        ({"a": 1}, {"a": 2}, {"a": (1, 2)}),
        ([1, 2, 3], [None], [1, 2, 3]),
        ({"a": 1}, [1], ({"a": 1}, [1])),
        ([1, 2], 5, ([1, 2], 5)),
        ({"a": [1, 2]}, {"a": [3, 4]}, {"a": [(1, 3), (2, 4)]}),
    ],
)
def test_tree_merge_with_a_function(a, b, expected):
    assert tree_merge(a, b, args) == expected


@pytest.mark.parametrize(
    "a, b", [({"a": 1}, {"a": 2}), ([1, 2], [3]), (1, 2), (None, None), ({}, []), ([], {}), ({"a": 1}, [1])]
)
def test_tree_merge_refuses_what_overlaps(a, b):
    with pytest.raises(ValueError):
        tree_merge(a, b)
