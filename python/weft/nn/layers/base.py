"""Module: a dictionary of parameters and sub-modules, and the functions that walk through it."""

from __future__ import annotations

import textwrap
from typing import Any, Callable, Iterable, Optional, Union, cast

import weft.core as mx
from weft.utils import tree_flatten, tree_unflatten

__all__ = ["Module"]

# What an assignment to an attribute puts into the dictionary, besides arrays.
_CONTAINERS = (dict, list, tuple)

FilterFn = Callable[["Module", str, Any], bool]


def named_leaves(
    tree: Any, prefix: str = "", is_leaf: Optional[Callable[[Any], bool]] = None
) -> list[tuple[str, Any]]:
    """Return pairs of a name, with dots between levels, and a leaf of a tree."""
    return cast(list[tuple[str, Any]], tree_flatten(tree, prefix=prefix, is_leaf=is_leaf))


class Module(dict):
    """Base class of layers and models.

    A module is a dictionary. An attribute that is an array, a dict (a module is one), a list or a tuple is an item of
    it; everything else is an ordinary attribute. Parameters are the arrays whose name does not begin with an
    underscore, in the module and in what it contains, at any depth.

    A sub-class calls ``super().__init__()`` first, then assigns its parameters and sub-modules, and defines
    ``__call__``::

        class Mlp(nn.Module):
            def __init__(self, dims: int, hidden: int):
                super().__init__()
                self.up = nn.Linear(dims, hidden)
                self.down = nn.Linear(hidden, dims)

            def __call__(self, x):
                return self.down(nn.relu(self.up(x)))
    """

    __call__: Callable

    def __init__(self) -> None:
        super().__init__()
        self._no_grad: set[str] = set()
        self._training = True

    # Attributes

    def __getattr__(self, key: str) -> Any:
        # Python asks here only for what is no ordinary attribute.
        value = self.get(key)
        if value is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}")
        return value

    def __setattr__(self, key: str, val: Any) -> None:
        if not isinstance(val, (mx.array, *_CONTAINERS)):
            super().__setattr__(key, val)
            self.pop(key, None)
            return
        if key not in self and hasattr(self, key):
            super().__delattr__(key)  # an ordinary attribute would hide the item; one of the class cannot be deleted
        self[key] = val

    def __delattr__(self, name: str) -> None:
        if name in self:
            del self[name]
        else:
            super().__delattr__(name)

    # Text

    def _extra_repr(self) -> str:
        """Return what the module's text says between the parentheses, its sizes and options."""
        return ""

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}({self._extra_repr()}"]
        for name, child in named_leaves(self.children(), is_leaf=self.is_module):
            lines.append(textwrap.indent(f"({name}): {child!r}", "  "))
        return "\n".join(lines) + ("\n)" if len(lines) > 1 else ")")

    # State and files

    @property
    def training(self) -> bool:
        """Whether the module is in training mode, in which dropout drops and batch norms use the batch."""
        return self._training

    @property
    def state(self) -> "Module":
        """The module itself as a dictionary: what ``mx.compile`` captures as inputs and outputs."""
        return self

    def load_weights(self, file_or_weights: Union[str, list[tuple[str, mx.array]]], strict: bool = True) -> "Module":
        """Set parameters from a file or a list, and return the module.

        Args:
            file_or_weights: a path that ends in ``.npz`` or ``.safetensors``, or pairs of a parameter's name, with
                dots between levels, and its value.
            strict: whether the names must be those of the parameters, all of them, with values of the same shapes.
                If ``False``, values are set where there is such a parameter, whatever they are.

        Raises:
            ValueError: with ``strict``, for names that are too many or missing, for values that are no arrays and for
                other shapes.
        """
        weights = file_or_weights
        if isinstance(weights, str):
            weights = list(cast(dict[str, mx.array], mx.load(weights)).items())
        if strict:
            self._check_weights(dict(weights))
        if len(weights) > 0:
            self.update(tree_unflatten(weights), strict=False)
        return self

    def _check_weights(self, weights: dict[str, Any]) -> None:
        own = dict(named_leaves(self.parameters()))
        for names, text in ((weights.keys() - own.keys(), "Received {} parameters not in model"),
                            (own.keys() - weights.keys(), "Missing {} parameters")):
            if names:
                raise ValueError(f"{text.format(len(names))}: \n" + ",\n".join(sorted(names)) + ".")
        for name, parameter in own.items():
            value = weights[name]
            if not isinstance(value, mx.array):
                raise ValueError(f"Expected mx.array but received {type(value)} for parameter {name}")
            if value.shape != parameter.shape:
                raise ValueError(
                    f"Expected shape {parameter.shape} but received shape {value.shape} for parameter {name}"
                )

    def save_weights(self, file: str) -> None:
        """Write all parameters to a file whose name ends in ``.npz`` or ``.safetensors``, by their names with dots.

        Raises:
            ValueError: for any other ending.
        """
        parameters = dict(named_leaves(self.parameters()))
        if file.endswith(".npz"):
            mx.savez(file, **parameters)
        elif file.endswith(".safetensors"):
            mx.save_safetensors(file, parameters)
        else:
            raise ValueError(f"Unsupported file extension for {file}. Use '.npz' or '.safetensors'.")

    # Filters

    @staticmethod
    def is_module(value: Any) -> bool:
        """Return whether the value is a module."""
        return isinstance(value, Module)

    @staticmethod
    def valid_child_filter(module: "Module", key: str, value: Any) -> bool:
        """Return whether an item may contain modules: it is a module, a dict or a list."""
        return isinstance(value, (dict, list))

    @staticmethod
    def valid_parameter_filter(module: "Module", key: str, value: Any) -> bool:
        """Return whether an item is a parameter or may contain some: its name does not begin with an underscore."""
        return isinstance(value, (mx.array, dict, list)) and not key.startswith("_")

    @staticmethod
    def trainable_parameter_filter(module: "Module", key: str, value: Any) -> bool:
        """Return whether an item is a parameter, or may contain some, and is not frozen."""
        return key not in module._no_grad and Module.valid_parameter_filter(module, key, value)

    # Trees

    def filter_and_map(
        self,
        filter_fn: FilterFn,
        map_fn: Optional[Callable[[Any], Any]] = None,
        is_leaf_fn: Optional[FilterFn] = None,
    ) -> dict[str, Any]:
        """Return a tree of the items that a filter takes, with a function applied to the leaves.

        Args:
            filter_fn: of the module, the name and the value; items for which it is false are left out, and are empty
                dicts where they are elements of a dict or a list. Names of elements are ``"key.index"``.
            map_fn: what is applied to leaves. Default: nothing.
            is_leaf_fn: of the same arguments: whether a value is a leaf. Default: all but modules, dicts and lists.
        """
        change = map_fn or (lambda value: value)
        is_leaf = is_leaf_fn or (lambda _module, _key, value: not isinstance(value, (dict, list)))

        def items_of(module: Module) -> dict[str, Any]:
            return {k: visit(module, k, v) for k, v in module.items() if filter_fn(module, k, v)}

        def element(module: Module, key: str, value: Any) -> Any:
            return visit(module, key, value) if filter_fn(module, key, value) else {}

        def visit(module: Module, key: str, value: Any) -> Any:
            if is_leaf(module, key, value):
                return change(value)
            if isinstance(value, Module):
                return items_of(value)
            if isinstance(value, dict):
                return {k: element(module, f"{key}.{k}", v) for k, v in value.items()}
            if isinstance(value, list):
                return [element(module, f"{key}.{i}", v) for i, v in enumerate(value)]
            raise RuntimeError(f"Item {key} of {type(module).__name__} is neither a leaf nor a module, dict or list")

        return items_of(self)

    def parameters(self) -> dict[str, Any]:
        """Return a tree of all parameters."""
        return self.filter_and_map(self.valid_parameter_filter)

    def trainable_parameters(self) -> dict[str, Any]:
        """Return a tree of the parameters that are not frozen."""
        return self.filter_and_map(self.trainable_parameter_filter)

    def children(self) -> dict[str, Any]:
        """Return a tree of the modules that this one contains directly."""
        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=lambda _m, _k, v: isinstance(v, Module))

    def leaf_modules(self) -> dict[str, Any]:
        """Return a tree of the modules, at any depth, that contain no other module."""

        def is_leaf(_module: Module, _key: str, value: Any) -> bool:
            return isinstance(value, Module) and not named_leaves(value.children())

        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=is_leaf)

    def named_modules(self) -> list[tuple[str, "Module"]]:
        """Return pairs of a name, with dots between levels, and a module: this one, named ``""``, and all inside."""
        found: list[tuple[str, Module]] = []
        waiting: list[tuple[str, Module]] = [("", self)]
        while waiting:
            name, module = waiting.pop()
            found.append((name, module))
            prefix = f".{name}" if name else ""
            waiting.extend(named_leaves(module.children(), prefix=prefix, is_leaf=self.is_module))
        return found

    def modules(self) -> list["Module"]:
        """Return this module and all inside."""
        return [module for _, module in self.named_modules()]

    # Changes

    def update(self, parameters: dict[str, Any], strict: bool = True) -> "Module":  # type: ignore[override]
        """Replace parameters by those of a tree, and return the module.

        Args:
            parameters: a tree as that of ``parameters()``, which may lack any of them.
            strict: whether everything in the tree must be an array for which there is a parameter.

        Raises:
            ValueError: with ``strict``, for a name, an index or a value that does not fit.
        """

        def assign(target: Any, key: Any, value: Any) -> None:
            if not isinstance(target[key], mx.array):
                visit(target[key], value)
                return
            if strict and not isinstance(value, mx.array):
                raise ValueError(f"Received invalid type: {type(value).__name__}.")
            target[key] = value

        def visit(target: Any, values: Any) -> None:
            for key in _matching_keys(target, values, strict, "parameter"):
                assign(target, key, values[key])

        visit(self, parameters)
        return self

    def update_modules(self, modules: dict[str, Any], strict: bool = True) -> "Module":
        """Replace sub-modules by those of a tree, and return the module.

        Args:
            modules: a tree as that of ``children()`` or ``leaf_modules()``, which may lack any of them. An empty dict
                leaves what is there.
            strict: whether everything in the tree must be a module for which there is one.

        Raises:
            ValueError: with ``strict``, for a name, an index or a value that does not fit.
        """

        def assign(target: Any, key: Any, value: Any) -> None:
            old = target[key]
            if isinstance(old, Module) and isinstance(value, Module):
                target[key] = value
            elif isinstance(old, (dict, list)):
                visit(old, value)
            elif strict and value != {}:
                raise ValueError(f"Received invalid type: {type(value).__name__}.")

        def visit(target: Any, values: Any) -> None:
            for key in _matching_keys(target, values, strict, "sub-module"):
                assign(target, key, values[key])

        visit(self, modules)
        return self

    def apply(self, map_fn: Callable[[mx.array], mx.array], filter_fn: Optional[FilterFn] = None) -> "Module":
        """Replace each parameter by a function of it, and return the module.

        Args:
            map_fn: the function.
            filter_fn: which items, as of ``filter_and_map``. Default: all parameters.
        """
        return self.update(self.filter_and_map(filter_fn or self.valid_parameter_filter, map_fn))

    def apply_to_modules(self, apply_fn: Callable[[str, "Module"], Any]) -> "Module":
        """Call a function with the name and the module, for this one and all inside, and return the module."""
        for name, module in self.named_modules():
            apply_fn(name, module)
        return self

    def set_dtype(
        self,
        dtype: mx.Dtype,
        predicate: Optional[Callable[[mx.Dtype], bool]] = lambda dtype: mx.issubdtype(dtype, mx.floating),
    ) -> None:
        """Convert parameters to a dtype.

        Args:
            dtype: the new dtype.
            predicate: which of the present dtypes are converted; ``None`` is all. Default: floating ones.
        """
        wanted = predicate or (lambda _dtype: True)
        self.apply(lambda x: x.astype(dtype) if wanted(x.dtype) else x)

    # Modes

    def _set_training_mode(self, mode: bool) -> None:
        """Set the mode of this module alone. Layers that change with the mode override it."""
        self._training = mode

    def train(self, mode: bool = True) -> "Module":
        """Set training mode, or with ``False`` evaluation mode, here and inside, and return the module."""
        return self.apply_to_modules(lambda _name, module: module._set_training_mode(mode))

    def eval(self) -> "Module":
        """Set evaluation mode, here and inside, and return the module."""
        return self.train(False)

    def _validate_keys(self, keys: Union[str, Iterable[str]], strict: bool) -> list[str]:
        """Return keys as a list; with ``strict``, each must be in the module."""
        names = [keys] if isinstance(keys, str) else list(keys)
        if strict:
            _check_members(names, [self])
        return names

    def freeze(
        self, *, recurse: bool = True, keys: Optional[Union[str, list[str]]] = None, strict: bool = False
    ) -> "Module":
        """Exclude parameters from the trainable ones, and return the module.

        Args:
            recurse: whether those of all modules inside, too.
            keys: the names of the parameters, without dots, in each module. Default: all parameters.
            strict: whether names that no module has are an error.

        Raises:
            KeyError: with ``strict``, for a name that is not there.
        """

        def change(module: Module, names: Optional[list[str]]) -> None:
            module._no_grad.update(_own_parameter_names(module) if names is None else names)

        return self._change_frozen(change, recurse, keys, strict)

    def unfreeze(
        self, *, recurse: bool = True, keys: Optional[Union[str, list[str]]] = None, strict: bool = False
    ) -> "Module":
        """Include parameters in the trainable ones again, and return the module.

        Args:
            recurse: whether those of all modules inside, too.
            keys: the names of the parameters, without dots, in each module. Default: all parameters.
            strict: whether names that no module has are an error.

        Raises:
            KeyError: with ``strict``, for a name that is not there.
        """

        def change(module: Module, names: Optional[list[str]]) -> None:
            module._no_grad.difference_update(set(module._no_grad) if names is None else names)

        return self._change_frozen(change, recurse, keys, strict)

    def _change_frozen(
        self,
        change: Callable[["Module", Optional[list[str]]], None],
        recurse: bool,
        keys: Optional[Union[str, list[str]]],
        strict: bool,
    ) -> "Module":
        """Apply a change of the frozen names here and, with ``recurse``, inside."""
        modules: list[Module] = self.modules() if recurse else [self]
        names = None if keys is None else self._validate_keys(keys, False)
        if strict and names is not None:
            _check_members(names, modules)
        for module in modules:
            change(module, names)
        return self


def _check_members(names: list[str], modules: list[Module]) -> None:
    for name in names:
        if not any(name in module for module in modules):
            raise KeyError(f"Module doesn't contain member {name}.")


def _own_parameter_names(module: Module) -> list[str]:
    """Return the names of a module's parameters but those of modules inside, with dots for elements of containers."""
    own = module.filter_and_map(lambda m, k, v: not isinstance(v, Module) and Module.valid_parameter_filter(m, k, v))
    return [name for name, _ in named_leaves(own)]


def _matching_keys(target: Any, values: Any, strict: bool, what: str) -> list[Any]:
    """Return the names or indices of a tree's values for which the target has an item; with ``strict``, of all."""
    if isinstance(values, dict):
        missing = [key for key in values if key not in target]
        if strict and missing:
            raise ValueError(f'Module does not have {what} named "{missing[0]}".')
        return [key for key in values if key in target]
    if isinstance(values, list):
        if strict and len(values) > len(target):
            raise ValueError(f"List index {len(target)} is out of bounds for destination of length {len(target)}.")
        return list(range(min(len(values), len(target))))
    if strict:
        raise ValueError(f"Received invalid type: {type(values).__name__}.")
    return []
