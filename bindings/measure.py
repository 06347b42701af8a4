"""Calls the functions of weft.core on small inputs and notes what they can do: run, be differentiated in reverse and
forward, be batched, be exported. For the list of names (scripts/coverage).

A function is measured by a call that SAMPLES has, or by one that is made of the types of its parameters (python.py).
What comes out is compared: vjp and jvp with each other, a batch with its elements, an imported function with the
original.
"""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import weft.core as mx

import python as generator

YES, NO, NATURE = "yes", "no", "–"
CHECKS = ("CPU", "vjp", "jvp", "vmap", "export")

# A positive definite matrix of numbers in (0, 1): most functions take it.
X = mx.array([[0.9, 0.2, 0.1], [0.2, 0.8, 0.3], [0.1, 0.3, 0.7]])
Y = mx.array([[0.4, 0.1, 0.2], [0.3, 0.5, 0.1], [0.2, 0.2, 0.6]])
VECTOR = X[0]
INTEGERS = mx.array([2, 0, 1])
BOOLS = mx.array([True, False, True])
KEY = mx.random.key(7)
COMPLEX = mx.array([1 + 2j, 0.5 - 1j, 2j])
WIDE = mx.random.normal((4, 64), key=KEY)
CODES = mx.quantize(WIDE, 64, 4)
HEADS = mx.random.normal((1, 2, 8, 16), key=KEY)
GATES = mx.sigmoid(HEADS[..., 0])
SIGNAL = mx.random.normal((64,), key=KEY)
SPECTRUM = mx.fft.stft(SIGNAL, 16)


def image(rank: int) -> mx.array:
    return mx.random.normal((1, *[5] * rank, 2), key=KEY)


def filters(rank: int) -> mx.array:
    return mx.random.normal((2, *[3] * rank, 2), key=KEY)


Sample = tuple  # the function, then the arrays that it takes

BY_TYPE = {"int": 1, "float": 0.5, "str": "constant", "dtype": mx.float32, "shape": (3, 3), "lengths": (3, 3),
           "strides": (3, 1), "axes": 0, "lists": [[0], [0]], "two": 1, "three": 1, "pairs": 1, "bool": False,
           "uint64": 7}

SAMPLES: dict[str, Sample] = {
    "addmm": (mx.addmm, Y, X, Y),
    "atleast_1d": (mx.atleast_1d, VECTOR[0]),
    "atleast_2d": (mx.atleast_2d, VECTOR),
    "atleast_3d": (mx.atleast_3d, VECTOR),
    "arange": (lambda: mx.arange(3),),
    "arccosh": (mx.arccosh, X + 1.5),
    "as_strided": (lambda a: mx.as_strided(a, (2, 2), (3, 1)), X),
    "astype": (lambda a: a.astype(mx.float16), X),
    "bitwise_and": (mx.bitwise_and, INTEGERS, INTEGERS),
    "bitwise_invert": (mx.bitwise_invert, INTEGERS),
    "bitwise_or": (mx.bitwise_or, INTEGERS, INTEGERS),
    "bitwise_xor": (mx.bitwise_xor, INTEGERS, INTEGERS),
    "block_masked_mm": (lambda a, b: mx.block_masked_mm(a, b, 32, mask_out=mx.array([[True]])),
                        mx.random.normal((32, 32), key=KEY), mx.random.normal((32, 32), key=KEY)),
    "broadcast_arrays": (mx.broadcast_arrays, VECTOR, X),
    "broadcast_to": (lambda a: mx.broadcast_to(a, (2, 3, 3)), X),
    "clip": (lambda a: mx.clip(a, 0.15, 0.75), X),
    "concatenate": (lambda a, b: mx.concatenate([a, b]), X, Y),
    "conv1d": (mx.conv1d, image(1), filters(1)),
    "conv2d": (mx.conv2d, image(2), filters(2)),
    "conv3d": (mx.conv3d, image(3), filters(3)),
    "conv_general": (lambda a, b: mx.conv_general(a, b, 1, 1), image(2), filters(2)),
    "conv_transpose1d": (mx.conv_transpose1d, image(1), filters(1)),
    "conv_transpose2d": (mx.conv_transpose2d, image(2), filters(2)),
    "conv_transpose3d": (mx.conv_transpose3d, image(3), filters(3)),
    "convolve": (mx.convolve, VECTOR, VECTOR),
    "copy": (lambda a: a.__copy__(), X),
    "depends": (lambda a, b: mx.depends([a], [b])[0], X, Y),
    "dequantize": (lambda s, b: mx.dequantize(CODES[0], s, b), CODES[1], CODES[2]),
    "einsum": (lambda a, b: mx.einsum("ij,jk->ik", a, b), X, Y),
    "expand_dims": (lambda a: mx.expand_dims(a, 0), X),
    "eye": (lambda: mx.eye(3),),
    "fast.gated_delta_update": (mx.fast.gated_delta_update, HEADS, HEADS * 0.3, HEADS, GATES, GATES * 0.5),
    "fast.layer_norm": (lambda a, w, b: mx.fast.layer_norm(a, w, b, 1e-5), X, VECTOR, VECTOR),
    "fast.rms_norm": (lambda a, w: mx.fast.rms_norm(a, w, 1e-5), X, VECTOR),
    "fast.rope": (lambda a: mx.fast.rope(a, 16, traditional=False, base=1e4, scale=1.0, offset=0), HEADS),
    "fast.scaled_dot_product_attention": (
        lambda q, k, v: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.25), HEADS, HEADS, HEADS),
    "fft.irfft": (mx.fft.irfft, COMPLEX),
    "fft.istft": (lambda z: mx.fft.istft(z, 16), SPECTRUM),
    "fft.stft": (lambda a: mx.fft.stft(a, 16), SIGNAL),
    "from_fp8": (lambda a: mx.from_fp8(a, mx.float32), mx.array([56, 48], mx.uint8)),
    "full": (lambda a: mx.full((2, 3), a), VECTOR),
    "gather": (lambda a: a[INTEGERS], X),
    "gather_mm": (lambda a, b: mx.gather_mm(a, b, rhs_indices=mx.array([1, 0])),
                  mx.stack([X, Y]), mx.stack([Y, X])),
    "gather_qmm": (lambda a: mx.gather_qmm(a, *[c[None] for c in CODES], rhs_indices=mx.array([0])), WIDE[None]),
    "hadamard_transform": (mx.hadamard_transform, WIDE),
    "imag": (mx.imag, COMPLEX),
    "left_shift": (mx.left_shift, INTEGERS, INTEGERS),
    "linalg.cholesky_inv": (mx.linalg.cholesky_inv, mx.linalg.cholesky(X)),
    "linalg.cross": (mx.linalg.cross, VECTOR, Y[0]),
    "linalg.solve_triangular": (lambda a, b: mx.linalg.solve_triangular(a, b, upper=True), mx.triu(X), Y),
    "linalg.tri_inv": (mx.linalg.tri_inv, mx.tril(X)),
    "linspace": (lambda: mx.linspace(0, 1, 5),),
    "masked_scatter": (lambda a, b: masked(a, b), VECTOR, VECTOR),
    "meshgrid": (lambda a, b: mx.meshgrid(a, b), VECTOR, VECTOR),
    "moveaxis": (lambda a: mx.moveaxis(a, 0, 1), X),
    "partition": (lambda a: mx.partition(a, 1), X),
    "argpartition": (lambda a: mx.argpartition(a, 1), X),
    "pad": (lambda a: mx.pad(a, 1), X),
    "put_along_axis": (lambda a, b: mx.put_along_axis(a, INTEGERS[None], b, 0), X, Y[:1]),
    "quantize": (lambda a: mx.quantize(a, 64, 4), WIDE),
    "quantized_matmul": (lambda a: mx.quantized_matmul(a, *CODES), WIDE),
    "random.bernoulli": (lambda p: mx.random.bernoulli(p, key=KEY), VECTOR),
    "random.bits": (lambda: mx.random.bits((3,), key=KEY),),
    "random.categorical": (lambda a: mx.random.categorical(a, key=KEY), X),
    "random.gumbel": (lambda: mx.random.gumbel((3,), key=KEY),),
    "random.laplace": (lambda: mx.random.laplace((3,), key=KEY),),
    "random.multivariate_normal": (lambda m, c: mx.random.multivariate_normal(m, c, key=KEY), VECTOR, X),
    "random.normal": (lambda m, s: mx.random.normal((3,), loc=m, scale=s, key=KEY), VECTOR, VECTOR),
    "random.permutation": (lambda a: mx.random.permutation(a, key=KEY), X),
    "random.randint": (lambda: mx.random.randint(0, 9, (3,), key=KEY),),
    "random.split": (lambda k: mx.random.split(k), KEY),
    "random.truncated_normal": (lambda a, b: mx.random.truncated_normal(a - 1, b, key=KEY), VECTOR, VECTOR),
    "random.uniform": (lambda a, b: mx.random.uniform(a, b + 1, (3,), key=KEY), VECTOR, VECTOR),
    "real": (mx.real, COMPLEX),
    "conjugate": (mx.conjugate, COMPLEX),
    "reshape": (lambda a: mx.reshape(a, (9,)), X),
    "right_shift": (mx.right_shift, INTEGERS, INTEGERS),
    "roll": (lambda a: mx.roll(a, 1), X),
    "scatter": (lambda a, b: assigned(a, INTEGERS, b), X, Y),
    "scatter_add": (lambda a, b: a.at[INTEGERS].add(b), X, Y),
    "scatter_add_axis": (lambda a, b: a.at[INTEGERS].add(b), X, Y),
    "scatter_max": (lambda a, b: a.at[INTEGERS].maximum(b), X, Y),
    "scatter_min": (lambda a, b: a.at[INTEGERS].minimum(b), X, Y),
    "scatter_prod": (lambda a, b: a.at[INTEGERS].multiply(b), X, Y),
    "searchsorted": (lambda a: mx.searchsorted(mx.sort(a), mx.array([0.5])), VECTOR),
    "segmented_mm": (lambda a, b: mx.segmented_mm(a, b, mx.array([[0, 1], [1, 3]], mx.uint32)), X, Y),
    "slice": (lambda a: mx.slice(a, mx.array([1]), (0,), (2, 3)), X),
    "slice_update": (lambda a, b: mx.slice_update(a, b, mx.array([1]), (0,)), X, Y[:1]),
    "slice_update_add": (lambda a, b: a.at[1:].add(b), X, Y[1:]),
    "slice_update_max": (lambda a, b: a.at[1:].maximum(b), X, Y[1:]),
    "slice_update_min": (lambda a, b: a.at[1:].minimum(b), X, Y[1:]),
    "slice_update_prod": (lambda a, b: a.at[1:].multiply(b), X, Y[1:]),
    "split": (lambda a: mx.split(a, 3), X),
    "stack": (lambda a, b: mx.stack([a, b]), X, Y),
    "swapaxes": (lambda a: mx.swapaxes(a, 0, 1), X),
    "take": (lambda a: mx.take(a, INTEGERS, 0), X),
    "take_along_axis": (lambda a: mx.take_along_axis(a, INTEGERS[None], 0), X),
    "tensordot": (lambda a, b: mx.tensordot(a, b, 1), X, Y),
    "tile": (lambda a: mx.tile(a, 2), X),
    "topk": (lambda a: mx.topk(a, 2), X),
    "repeat": (lambda a: mx.repeat(a, 2, 0), X),
    "unflatten": (lambda a: mx.unflatten(a, 0, (3, 1)), X),
    "unique": (lambda a: mx.unique(a, 4), INTEGERS),
    "view": (lambda a: a.view(mx.int32), X),
    "where": (lambda a, b: mx.where(BOOLS, a, b), X, Y),
    "kron": (mx.kron, X, Y),
    "linalg.norm": (lambda a: mx.linalg.norm(a), X),
    "qqmm": (lambda a: mx.qqmm(a, *mx.quantize(WIDE, mode="nvfp4"), mode="nvfp4"), WIDE),
    "gather_qqmm": (lambda a: gathered(a), WIDE[None]),
    "fast.cross_entropy": (lambda a: mx.fast.cross_entropy(a, INTEGERS), X),
}
ALIASES = {"acosh": "arccosh", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
           "concat": "concatenate", "conj": "conjugate"}
OPERATORS = {
    "operator==": "equal", "operator!=": "not_equal", "operator>": "greater", "operator>=": "greater_equal",
    "operator<": "less", "operator<=": "less_equal", "operator-": "subtract", "operator&&": "logical_and",
    "operator||": "logical_or", "operator+": "add", "operator*": "multiply", "operator/": "divide",
    "operator%": "remainder", "operator&": "bitwise_and", "operator|": "bitwise_or", "operator^": "bitwise_xor",
    "operator<<": "left_shift", "operator>>": "right_shift", "operator~": "bitwise_invert",
}


# Calls of what is there to say that it is not: they raise.
REFUSED: dict[str, Callable[[], Any]] = {
    "core.fast.metal_kernel": lambda: mx.fast.metal_kernel("f", ["a"], ["b"], "b[0] = a[0];"),
}


def is_refused(name: str) -> bool:
    """Whether a function of Python raises whatever it is given."""
    if name not in REFUSED:
        return False
    try:
        REFUSED[name]()
    except (ValueError, RuntimeError, NotImplementedError):
        return True
    return False


def masked(a: mx.array, b: mx.array) -> mx.array:
    a = a + 0
    a[BOOLS] = b[:2]
    return a


def assigned(a: mx.array, at: mx.array, b: mx.array) -> mx.array:
    a = a + 0
    a[at] = b
    return a


def gathered(a: mx.array) -> mx.array:
    codes = [c[None] for c in mx.quantize(WIDE, mode="nvfp4")]
    return mx.gather_qqmm(a, *codes, rhs_indices=mx.array([0]), mode="nvfp4")


@functools.cache
def functions() -> list[generator.Function]:
    return generator.all_functions()[0]


def by_types(name: str) -> Sample | None:
    """Returns a call that is made of the types of the parameters that must be given."""
    for f in functions():
        if ".".join(filter(None, (f.namespace, f.name))) == name:
            break
    else:
        return None
    places: list[Any] = []
    arrays: list[mx.array] = []
    for p in f.parameters:
        if p.default is not None or p.keyword:
            break
        if p.type in ("array", "operand"):
            places.append(None)
            arrays.append(Y if arrays else X)
        elif p.type == "arrays":
            return None
        else:
            places.append(BY_TYPE[p.type])
    function = named(name)

    def call(*given: mx.array) -> Any:
        rest = iter(given)
        return function(*[next(rest) if place is None else place for place in places])

    return call, *arrays


def named(name: str) -> Callable[..., Any]:
    where: Any = mx
    for part in name.split("."):
        where = getattr(where, part)
    return where


def sample(name: str) -> Sample | None:
    name = OPERATORS.get(name) or ALIASES.get(name, name)
    return SAMPLES.get(name) or by_types(name)


def leaves(result: Any) -> list[mx.array]:
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in leaves(part)]
    return [result] if isinstance(result, mx.array) else []


def is_smooth(a: mx.array) -> bool:
    return mx.issubdtype(a.dtype, mx.inexact)


def numbers(a: mx.array) -> list[complex]:
    """Returns the elements, row-major."""
    values = a.astype(mx.complex64 if a.dtype == mx.complex64 else mx.float64).reshape(-1).tolist()
    return values


def close(x: complex, y: complex) -> bool:
    return x == y or (x != x and y != y) or abs(x - y) <= 1e-4 + 1e-3 * abs(y)


def near(a: list[mx.array], b: list[mx.array]) -> bool:
    return len(a) == len(b) and all(
        x.shape == y.shape and all(map(close, numbers(x), numbers(y))) for x, y in zip(a, b))


def weights(like: list[mx.array], seed: int) -> list[mx.array]:
    """Returns numbers to multiply derivatives with."""
    return [mx.random.normal(a.shape, key=mx.random.key(seed + k)).astype(a.dtype) for k, a in enumerate(like)]


def paired(a: list[mx.array], b: list[mx.array]) -> float:
    return sum((complex(p).conjugate() * q).real for x, y in zip(a, b) for p, q in zip(numbers(x), numbers(y)))


def derivatives(function: Callable[..., Any], arrays: list[mx.array]) -> dict[str, str]:
    """Returns whether products with the Jacobian and its transpose exist; they must agree."""
    smooth = [k for k, a in enumerate(arrays) if is_smooth(a)]

    def restricted(*given: mx.array) -> list[mx.array]:
        taken = dict(zip(smooth, given))
        return [r for r in leaves(function(*[taken.get(k, a) for k, a in enumerate(arrays)])) if is_smooth(r)]

    primals = [arrays[k] for k in smooth]
    results = restricted(*primals) if smooth else []
    if not results:
        return {"vjp": NATURE, "jvp": NATURE}
    tangents, cotangents = weights(primals, 3), weights(results, 11)
    found, products = {}, {}
    for name, call in (("vjp", lambda: mx.vjp(restricted, primals, cotangents)[1]),
                       ("jvp", lambda: mx.jvp(restricted, primals, tangents)[1])):
        try:
            products[name] = call()
            mx.eval(products[name])
            found[name] = YES
        except (ValueError, RuntimeError):
            found[name] = NO
    if len(products) == 2:
        back, ahead = paired(products["vjp"], tangents), paired(cotangents, products["jvp"])
        if not math.isclose(back, ahead, rel_tol=1e-2, abs_tol=1e-2) and not (math.isnan(back) and math.isnan(ahead)):
            raise AssertionError(f"vjp and jvp disagree: {back} and {ahead}")
    return found


def batching(function: Callable[..., Any], arrays: list[mx.array], draws: bool) -> str:
    """Returns whether a batch of two first arguments gives what each of them gives."""
    if not arrays:
        return NATURE
    first, rest = arrays[0], arrays[1:]
    other = first[::-1] if first.ndim and not is_smooth(first) else first * 0.9 if is_smooth(first) else first
    try:
        batched = mx.vmap(lambda a: leaves(function(a, *rest)))(mx.stack([first, other]))
        mx.eval(batched)
    except (ValueError, RuntimeError):
        return NO
    each = [leaves(function(one, *rest)) for one in (first, other)]
    mx.eval(each)
    for k, alone in enumerate(each):
        if not draws and not near([b[k] for b in batched], alone):
            raise AssertionError("a batch differs from its elements")
    return YES


def exporting(function: Callable[..., Any], arrays: list[mx.array], results: list[mx.array]) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        path = str(Path(scratch) / "f.weft")
        try:
            mx.export_function(path, lambda *given: leaves(function(*given)), *arrays)
            again = mx.import_function(path)(*arrays)
            mx.eval(again)
        except (ValueError, RuntimeError):
            return NO
        if not near(leaves(again), results):
            raise AssertionError("an imported function differs")
    return YES


def measured(name: str) -> dict[str, str] | None:
    """Returns what each of CHECKS says of a function, None where no call is known."""
    call = sample(name)
    if call is None:
        return None
    function, *arrays = call
    try:
        results = leaves(function(*arrays))
        mx.eval(results)
    except (ValueError, RuntimeError, TypeError) as error:
        raise AssertionError(f"{name}: its call does not run, SAMPLES needs one: {error}") from error
    try:
        return {"CPU": YES, **derivatives(function, arrays),
                "vmap": batching(function, arrays, name.startswith("random.")),
                "export": exporting(function, arrays, results)}
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error
