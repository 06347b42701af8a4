"""Arithmetic with promotion and broadcasting, reductions over several axes, cumulative operations, products of
matrices.
"""

import mlx.core as mx

from .inputs import Subject, bools, complexes, integers, normal, uniform
from .operators import DTYPES, dtype_of


def generate(store):
    case = Subject(store, "arithmetic")
    x, y, v, m = normal(21, 3, 4), normal(22, 2, 3, 4), normal(23, 4), normal(24, 4, 5)
    n, p = integers(25, 3, 4, low=-9, high=9), uniform(26, 3, 4, low=0.5, high=2.0)
    c, d = complexes(27, 3, 4), complexes(28, 4)
    b = bools(29, 3, 4)

    for first in DTYPES:  # one result for each pair of dtypes
        case(
            "promotion of " + first,
            mx.array([1, 0, 3]).astype(dtype_of(first)),
            lambda a: [
                r
                for t in DTYPES
                for r in (
                    mx.add(a, mx.array([2, 1, 1]).astype(dtype_of(t))),
                    mx.maximum(a, mx.array([1, 2, 1]).astype(dtype_of(t))),
                )
            ],
        )
    case(
        "broadcast",
        [x, y, v],
        lambda x, y, v: [
            x + v,
            x * y,
            y - x[:, :1],
            x / v,
            mx.maximum(y, v),
            mx.power(mx.abs(x), v),
            mx.arctan2(y, x),
            mx.logaddexp(x, v),
        ],
    )
    case(
        "numbers",
        [x, n],
        lambda x, n: [
            x + 1,
            2 - x,
            x * 3,
            1 / x,
            x**2,
            n + 1,
            n - n % 2,
            n % 4,
            n % -4,
            -n,
            n & 3,
            n | 8,
            n ^ 5,
            n << 2,
            n >> 1,
            ~n,
            abs(n),
            n / 4,
        ],
    )
    case(
        "comparisons",
        [x, v, n],
        lambda x, v, n: [
            x < v,
            x <= 0,
            x > v,
            n >= 3,
            n == 4,
            n != 4,
            mx.logical_and(x > 0, v > 0),
            mx.logical_or(x > 0, n > 0),
            mx.logical_not(n),
            mx.logical_xor(x > 0, n > 0),
        ],
    )
    case(
        "isclose",
        [x],
        lambda x: [
            mx.isclose(x, x + 1e-6),
            mx.allclose(x, x),
            mx.allclose(x, x + 1),
            mx.array_equal(x, x),
            mx.array_equal(x, x[:2]),
            mx.isclose(x, x + 0.05, rtol=0, atol=0.1),
            mx.array_equal(x * float("nan"), x * float("nan"), equal_nan=True),
            mx.allclose(x * float("nan"), x * float("nan"), equal_nan=True),
        ],
    )
    case(
        "divmod",
        [x, v],
        lambda x, v: [*mx.divmod(x, v), mx.floor_divide(x, v), mx.remainder(x, v), mx.remainder(x, -0.5)],
    )
    case(
        "clip",
        [x, v],
        lambda x, v: [mx.clip(x, -0.5, 0.5), mx.clip(x, None, 0.25), mx.clip(x, v, None), mx.clip(x, v, v + 1)],
    )
    case(
        "nan_to_num",
        mx.array([1.0, float("nan"), float("inf"), float("-inf")]),
        lambda a: [mx.nan_to_num(a), mx.nan_to_num(a, nan=2.0, posinf=9.0), mx.nan_to_num(a, neginf=-1.0)],
    )
    case(
        "rounding",
        mx.array([0.5, 1.5, -2.5, 2.675, -1.005, 1234.5]),
        lambda a: [mx.round(a), mx.round(a, 2), mx.round(a, -2), mx.floor(a), mx.ceil(a), mx.trunc(a)],
    )
    case(
        "rounding of integers",
        mx.array([15, 25, -35, 1234]),
        lambda a: [mx.round(a), mx.round(a, -1), mx.round(a, -2), mx.floor(a)],
    )
    case(
        "float8",
        [x * 100, mx.array([0.0, 1.0, 448.0, 1e-3, -0.5, 17.0])],
        lambda x, e: [mx.to_fp8(x), mx.to_fp8(e), mx.from_fp8(mx.to_fp8(e)), mx.from_fp8(mx.to_fp8(x), mx.float32)],
    )
    case(
        "complex",
        [c, d],
        lambda c, d: [
            c + d,
            c - d,
            c * d,
            c / d,
            -c,
            mx.abs(c),
            mx.conjugate(c),
            mx.real(c),
            mx.imag(c),
            mx.square(c),
            mx.reciprocal(c),
            c + 1,
            2 * c,
            c == d,
            c * mx.array(2.5),
        ],
    )
    case(
        "complex functions",
        [c],
        lambda c: [
            mx.exp(c),
            mx.log(c),
            mx.sqrt(c),
            mx.rsqrt(c),
            mx.sin(c),
            mx.cos(c),
            mx.tan(c),
            mx.sinh(c),
            mx.cosh(c),
            mx.tanh(c),
            mx.power(c, c),
            mx.sign(c),
        ],
    )
    case(
        "complex reductions",
        [c],
        lambda c: [mx.sum(c), mx.sum(c, 0), mx.prod(c, 1), mx.mean(c, 0), mx.all(c), mx.any(c, 1)],
    )
    case("degrees", [x], lambda x: [mx.degrees(x), mx.radians(x)])

    case(
        "reductions",
        [y],
        lambda y: [
            mx.sum(y),
            mx.sum(y, (0, 2)),
            mx.sum(y, 1, keepdims=True),
            mx.sum(y, keepdims=True),
            mx.prod(y, (1, 2)),
            mx.mean(y, 0),
            mx.mean(y, (0, 1), keepdims=True),
            mx.max(y, 2),
            mx.min(y, (0, 1)),
            mx.max(y),
            mx.min(y, keepdims=True),
            mx.sum(y, ()),
        ],
    )
    case(
        "variance",
        [y],
        lambda y: [
            mx.var(y),
            mx.var(y, 1),
            mx.var(y, (0, 2), ddof=1),
            mx.std(y, 0),
            mx.std(y, ddof=1),
            mx.var(y, 2, keepdims=True, ddof=2),
        ],
    )
    case(
        "logic reductions",
        [b, n],
        lambda b, n: [
            mx.all(b),
            mx.any(b),
            mx.all(b, 0),
            mx.any(b, 1, keepdims=True),
            mx.all(n, 1),
            mx.any(n, (0, 1)),
            mx.sum(b),
            mx.sum(b, 0),
            mx.prod(b, 1),
            mx.mean(b),
        ],
    )
    case(
        "logsumexp and softmax",
        [y],
        lambda y: [
            mx.logsumexp(y),
            mx.logsumexp(y, (0, 2)),
            mx.logsumexp(y, 1, keepdims=True),
            mx.softmax(y),
            mx.softmax(y, 1),
            mx.softmax(y, (0, 2)),
            mx.softmax(y, -1, precise=True),
        ],
    )
    case(
        "softmax of half",
        [y],
        lambda y: [
            mx.softmax(y.astype(mx.float16), -1),
            mx.softmax(y.astype(mx.bfloat16), -1, precise=True),
            mx.logsumexp(y.astype(mx.float16), -1),
        ],
    )
    case(
        "cumulative",
        [x, n],
        lambda x, n: [
            mx.cumsum(x),
            mx.cumsum(x, 0),
            mx.cumsum(x, 1, reverse=True),
            mx.cumsum(x, 1, inclusive=False),
            mx.cumprod(x, 1),
            mx.cumprod(x, 0, reverse=True, inclusive=False),
            mx.cummax(x, 1),
            mx.cummin(x, 0),
            mx.cummax(x, 1, reverse=True),
            mx.logcumsumexp(x, 1),
            mx.logcumsumexp(x, 0, reverse=True),
            mx.cumsum(n, 0),
            mx.cumsum(n > 0, 1),
        ],
    )
    case(
        "exclusive",
        [x, n],
        lambda x, n: [
            mx.cummax(x, 1, inclusive=False),
            mx.cummin(n, 0, inclusive=False),
            mx.logcumsumexp(x, 1, inclusive=False),
        ],
    )
    case("diff", [x], lambda x: [mx.diff(x), mx.diff(x, axis=0), mx.diff(x, n=2)])

    case(
        "matmul",
        [x, m, y, v],
        lambda x, m, y, v: [x @ m, y @ m, v @ m, x @ v, v @ v, mx.matmul(y, mx.swapaxes(y, 1, 2)), x.T @ x],
    )
    case(
        "matmul of half",
        [x, m],
        lambda x, m: [
            x.astype(mx.float16) @ m.astype(mx.float16),
            x.astype(mx.bfloat16) @ m.astype(mx.bfloat16),
            x.astype(mx.float16) @ m,
        ],
    )
    case("complex matmul", [c, complexes(30, 4, 2)], lambda c, e: [c @ e, mx.conjugate(c).T @ c])
    case(
        "addmm",
        [x, m, normal(31, 3, 5)],
        lambda x, m, a: [mx.addmm(a, x, m), mx.addmm(a, x, m, alpha=2.0, beta=0.5), mx.addmm(a[0], x, m)],
    )
    case(
        "products",
        [x, v, m],
        lambda x, v, m: [
            mx.outer(v, x[:, 0]),
            mx.inner(x, v),
            mx.inner(v, v),
            mx.tensordot(x, m, 1),
            mx.tensordot(x, x, [[0, 1], [0, 1]]),
            mx.kron(x[:2], v),
            mx.vecdot(x, x),
            mx.tensordot(x, m, 0),
            mx.vecdot(x, x, axis=0),
        ],
    )
    case("complex products", [c, d], lambda c, d: [mx.outer(d, d), mx.inner(c, d), mx.vecdot(c, c), mx.kron(d, d)])
    case(
        "hadamard_transform",
        [normal(32, 2, 8), normal(33, 12)],
        lambda x, y: [mx.hadamard_transform(x), mx.hadamard_transform(x, 0.5), mx.hadamard_transform(y)],
    )
    case(
        "block_masked_mm",
        [normal(34, 64, 64), normal(35, 64, 64), bools(36, 2, 2), uniform(37, 2, 2)],
        lambda a, b, m, w: [
            mx.block_masked_mm(a, b, 32, m),
            mx.block_masked_mm(a, b, 32, None, m, m),
            mx.block_masked_mm(a, b, 32, w, w, m),
        ],
    )
    case(
        "gather_mm",
        [
            normal(38, 3, 2, 4),
            normal(39, 5, 4, 3),
            mx.array([2, 0, 1], dtype=mx.uint32),
            mx.array([4, 4, 0], dtype=mx.uint32),
        ],
        lambda a, b, i, j: [
            mx.gather_mm(a, b, rhs_indices=j),
            mx.gather_mm(a, b, i, j),
            mx.gather_mm(a, b, lhs_indices=i[:2], rhs_indices=j[:2]),
        ],
    )
    case(
        "segmented_mm",
        [normal(40, 3, 8), normal(41, 8, 4), mx.array([[0, 3], [3, 4], [4, 8]], dtype=mx.uint32)],
        lambda a, b, s: mx.segmented_mm(a, b, s),
    )
    t = normal(42, 2, 3, 4, 5)
    case(
        "einsum",
        [x, m, t, y],
        lambda x, m, t, y: [
            mx.einsum("ij,jk->ik", x, m),
            mx.einsum("ij->ji", x),
            mx.einsum("ij->", x),
            mx.einsum("ii->i", m[:, :4]),
            mx.einsum("ij,ij->i", x, x),
            mx.einsum("abcd->dbca", t),
            mx.einsum("abcd,ce->abed", t, m),
            mx.einsum("...ij,jk->...ik", y, m),
            mx.einsum("ij,jk,kl->il", x, m, m.T),
            mx.einsum("i,j->ij", x[0], x[1]),
            mx.einsum("bij,bkj->bik", y, y),
            mx.einsum("ii", m[:, :4]),
            mx.einsum("abc,abc->", y, y),
            mx.einsum("ij,kj->ik", x, x),
        ],
    )
