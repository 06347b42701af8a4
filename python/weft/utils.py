"""Functions of trees: arrays and other leaves in dicts, lists and tuples that are nested in any way.

A path names a leaf by the keys and indices that lead to it, joined by dots: "layers.0.weight".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, overload

__all__ = ["tree_flatten", "tree_map", "tree_map_with_path", "tree_merge", "tree_reduce", "tree_unflatten"]


def tree_map(fn: Callable, tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return a tree of `tree`'s structure with `fn(leaf, *leaves)` at each leaf.

    `rest` holds more trees, whose entries at the leaf's path are the further arguments of `fn`. They may have more
    entries than `tree` and may go on below its leaves. Dicts become plain dicts; lists and tuples keep their type.

    Args:
        fn: A function of one leaf of each tree.
        tree: The tree whose structure counts.
        rest: Further trees. An entry that is missing in one of them raises KeyError or IndexError.
        is_leaf: Says of a node of `tree` whether it is a leaf. Default: whatever is no dict, list or tuple.
    """
    return _map(lambda _, *leaves: fn(*leaves), None, tree, rest, is_leaf)


def tree_map_with_path(
    fn: Callable, tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None, path: Any = None
) -> Any:
    """Return a tree of `tree`'s structure with `fn(path, leaf, *leaves)` at each leaf.

    Args:
        fn: A function of a leaf's path and of one leaf of each tree.
        tree: The tree whose structure counts.
        rest: Further trees, as in `tree_map`.
        is_leaf: Says of a node of `tree` whether it is a leaf, as in `tree_map`.
        path: The path of `tree` itself, which the paths of the leaves begin with. Default: none; the path of a tree
            that is itself a leaf is then None.
    """
    return _map(fn, path, tree, rest, is_leaf)


@overload
def tree_flatten(
    tree: Any, prefix: str = "", is_leaf: Callable[[Any], bool] | None = None, destination: None = None
) -> list[tuple[str, Any]]: ...


@overload
def tree_flatten(
    tree: Any, prefix: str = "", is_leaf: Callable[[Any], bool] | None = None, *, destination: list[tuple[str, Any]]
) -> list[tuple[str, Any]]: ...


@overload
def tree_flatten(
    tree: Any, prefix: str = "", is_leaf: Callable[[Any], bool] | None = None, *, destination: dict[str, Any]
) -> dict[str, Any]: ...


def tree_flatten(
    tree: Any,
    prefix: str = "",
    is_leaf: Callable[[Any], bool] | None = None,
    destination: list[tuple[str, Any]] | dict[str, Any] | None = None,
) -> list[tuple[str, Any]] | dict[str, Any]:
    """Return the leaves of a tree with their paths, in the tree's order.

    `dict(tree_flatten(tree))` is ready to be saved to a file. Empty containers leave no trace.

    Args:
        tree: The tree.
        prefix: What stands before each path. Its first character, a dot by convention, is left out: ".model" gives
            "model.weight". Default: nothing.
        is_leaf: Says of a node whether it is a leaf. Default: whatever is no dict, list or tuple.
        destination: A list that takes (path, leaf) pairs, or a dict of paths; it is changed and returned. Default: a
            new list.
    """
    if destination is None:
        destination = []
    if isinstance(destination, list):
        destination.extend(_leaves(tree, prefix, is_leaf))
    elif isinstance(destination, dict):
        destination.update(_leaves(tree, prefix, is_leaf))
    else:
        raise ValueError(f"[tree_flatten] the destination must be a list or a dict, not {type(destination).__name__}")
    return destination


def tree_unflatten(tree: list[tuple[str, Any]] | dict[str, Any]) -> Any:
    """Return the tree whose leaves have the given paths, as `tree_flatten` returns them.

    Where all keys of a node are indices it becomes a list, with an empty dict at each index that has no key; otherwise
    it becomes a dict. Nothing at all becomes an empty list.

    Args:
        tree: Pairs of a path and a leaf, or a dict of them. Two leaves with one path raise ValueError.
    """
    entries = list(tree.items() if isinstance(tree, dict) else tree)
    return _grow([(path.split(".") if path else [], leaf) for path, leaf in entries])


def tree_reduce(
    fn: Callable[[Any, Any], Any], tree: Any, initializer: Any = None, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Return `fn(… fn(fn(initializer, leaf0), leaf1) …, leafN)`, over the leaves in the tree's order.

    Args:
        fn: A function of what was accumulated so far and of a leaf.
        tree: The tree.
        initializer: What to begin with. Default: the first leaf; a tree without leaves then gives None.
        is_leaf: Says of a node whether it is a leaf. Default: whatever is no dict, list or tuple.
    """
    total = initializer
    for _, leaf in _leaves(tree, "", is_leaf):
        total = leaf if total is None else fn(total, leaf)
    return total


def tree_merge(tree_a: Any, tree_b: Any, merge_fn: Callable[[Any, Any], Any] | None = None) -> Any:
    """Return a tree with the leaves of both trees.

    None and empty containers count as nothing, and give way to what the other tree has there. Lists and tuples are
    merged index by index and have the type of `tree_a`'s.

    Args:
        tree_a: The first tree.
        tree_b: The second tree.
        merge_fn: A function of the two leaves that share a path. Default: none; such leaves raise ValueError.
    """
    left, right = (None if _is_empty(tree) else tree for tree in (tree_a, tree_b))
    if left is None and right is None and tree_a is not None and tree_b is not None:
        if type(tree_a) is not type(tree_b):
            kinds = (type(tree).__name__ for tree in (tree_a, tree_b))
            raise ValueError("[tree_merge] an empty {} and an empty {} cannot be merged".format(*kinds))
        return tree_a
    if left is None and right is not None:
        return tree_b
    if right is None and left is not None:
        return tree_a
    if isinstance(left, dict) and isinstance(right, dict):
        return {key: tree_merge(left.get(key), right.get(key), merge_fn) for key in dict.fromkeys([*left, *right])}
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return _sequence(type(left), (tree_merge(a, b, merge_fn) for a, b in zip_longest(left, right)))
    if merge_fn is None:
        raise ValueError("[tree_merge] both trees have a leaf at one path, and there is no merge function")
    return merge_fn(left, right)


def _is_empty(tree: Any) -> bool:
    return isinstance(tree, (dict, list, tuple)) and not tree


def _sequence(kind: type, entries: Iterable[Any]) -> Any:
    """Make a list or tuple of type `kind`; named tuples take their entries one by one."""
    return kind(*entries) if hasattr(kind, "_fields") else kind(entries)


def _children(tree: Any, is_leaf: Callable[[Any], bool] | None) -> Iterable[tuple[Any, Any]] | None:
    """Return a node's keys or indices with its entries, or None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    if isinstance(tree, dict):
        return tree.items()
    return enumerate(tree) if isinstance(tree, (list, tuple)) else None


def _map(fn: Callable, path: Any, tree: Any, rest: tuple, is_leaf: Callable[[Any], bool] | None) -> Any:
    children = _children(tree, is_leaf)
    if children is None:
        return fn(path, tree, *rest)
    prefix = f"{path}." if path else ""
    mapped = [
        (key, _map(fn, f"{prefix}{key}", child, tuple(other[key] for other in rest), is_leaf))
        for key, child in children
    ]
    return dict(mapped) if isinstance(tree, dict) else _sequence(type(tree), (value for _, value in mapped))


def _leaves(tree: Any, prefix: str, is_leaf: Callable[[Any], bool] | None) -> Iterator[tuple[str, Any]]:
    children = _children(tree, is_leaf)
    if children is None:
        yield prefix[1:], tree
    else:
        for key, child in children:
            yield from _leaves(child, f"{prefix}.{key}", is_leaf)


def _grow(entries: list[tuple[list[str], Any]]) -> Any:
    """Build a tree of (keys of the path, leaf)."""
    if len(entries) == 1 and entries[0][0] in ([], [""]):
        return entries[0][1]
    nodes: dict[str, list[tuple[list[str], Any]]] = {}
    for keys, leaf in entries:
        head = keys[0] if keys else ""
        if not keys and head in nodes:
            raise ValueError("[tree_unflatten] two leaves have the same path")
        nodes.setdefault(head, []).append((keys[1:], leaf))
    indices = _indices(nodes)
    if indices is None:
        return {key: _grow(below) for key, below in nodes.items()}
    grown: list[Any] = [{} for _ in range(max(indices.values(), default=-1) + 1)]
    for key, index in indices.items():
        grown[index] = _grow(nodes[key])
    return grown


def _indices(keys: Iterable[str]) -> dict[str, int] | None:
    """Read keys as indices of a list, or return None where they are not different integers from 0 on."""
    try:
        indices = {key: int(key) for key in keys}
    except ValueError:
        return None
    return indices if len(set(indices.values())) == len(indices) and all(i >= 0 for i in indices.values()) else None
