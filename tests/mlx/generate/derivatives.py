"""Derivatives and batched functions: grad, vjp, jvp, vmap, custom functions, checkpoint."""

import mlx.core as mx

from .inputs import Subject, complexes, integers, normal, uniform

SMOOTH = """abs cos cosh degrees erf exp expm1 log log10 log1p log2 negative radians reciprocal rsqrt sigmoid sin sinh
sqrt square tan tanh arctan arcsinh softmax
logsumexp""".split()
INSIDE = "arccos arcsin arctanh erfinv".split()  # of (-1, 1)
COMPLEX = "exp log sqrt sin cos tan sinh cosh tanh square reciprocal abs real imag conjugate negative".split()
BINARY = "add subtract multiply divide maximum minimum power arctan2 logaddexp remainder".split()


def gradient(f, *arguments):
    """Returns the gradients of the weighted sum of f's result (weights 1, 2, 3 …) by every argument."""

    def weighted(*a):
        r = f(*a)
        return mx.sum(r * mx.reshape(mx.arange(1, r.size + 1), r.shape))

    g = mx.grad(weighted, argnums=tuple(range(len(arguments))))(*arguments)
    return list(g) if isinstance(g, (list, tuple)) else [g]


def unary(case):
    p, t = uniform(51, 3, 4, low=0.2, high=2.0), normal(52, 3, 4)
    u = uniform(53, 3, 4, low=-0.9, high=0.9)
    for name in SMOOTH + INSIDE + ["arccosh"]:
        f = getattr(mx, name)
        x = u if name in INSIDE else p + 1.5 if name == "arccosh" else p
        case(
            "unary " + name,
            [x, t],
            lambda x, t, f=f: [
                *gradient(f, x),
                *mx.vjp(f, [x], [f(x) * 0 + 2])[1],
                *mx.jvp(f, [x], [t])[1],
                mx.grad(lambda y: mx.sum(mx.grad(lambda z: mx.sum(f(z)))(y)))(x),
            ],
        )
    for name in BINARY:
        f = getattr(mx, name)
        case(
            "binary " + name,
            [p, p[::-1] + 0.3, t],
            lambda x, y, t, f=f: [*gradient(f, x, y), *gradient(f, x, y[0]), *mx.jvp(f, [x, y], [t, x])[1]],
        )
    for name in COMPLEX:
        f = getattr(mx, name)
        case(
            "complex " + name,
            [complexes(54, 2, 3), complexes(55, 2, 3)],
            lambda z, c, f=f: [
                *mx.vjp(f, [z], [c.real if f(z).dtype == mx.float32 else c])[1],
                mx.grad(lambda a: mx.sum(mx.real(f(a))))(z),
            ],
        )
    for name in ("add", "subtract", "multiply", "divide", "power"):
        f = getattr(mx, name)
        case(
            "complex " + name + " of two",
            [complexes(54, 2, 3), complexes(56, 2, 3), complexes(55, 2, 3)],
            lambda a, b, c, f=f: mx.vjp(f, [a, b], [c])[1],
        )
    case(
        "complex products",
        [complexes(57, 2, 3), complexes(58, 3, 2), complexes(59, 2, 2)],
        lambda a, b, c: [*mx.vjp(mx.matmul, [a, b], [c])[1], *mx.vjp(lambda a: mx.sum(a, 1), [a], [c[0]])[1]],
    )
    case(
        "real by complex",
        [normal(60, 3), complexes(61, 3), complexes(62, 3)],
        lambda x, z, c: mx.vjp(lambda a: a * z, [x], [c])[1],
    )
    case(
        "fft",
        [complexes(63, 8), complexes(64, 8), normal(65, 8), complexes(66, 5)],
        lambda z, c, x, h: [
            *mx.vjp(mx.fft.fft, [z], [c])[1],
            *mx.vjp(mx.fft.ifft, [z], [c])[1],
            *mx.vjp(mx.fft.rfft, [x], [h])[1],
            *mx.vjp(mx.fft.irfft, [h], [x])[1],
        ],
    )


def ties(case):
    a, b = mx.array([1.0, 2.0, 3.0, 0.0]), mx.array([1.0, 3.0, 2.0, 0.0])
    case("ties of two", [a, b], lambda a, b: [*gradient(mx.maximum, a, b), *gradient(mx.minimum, a, b)])
    case("ties of clip", [mx.array([0.0, 0.5, 1.0, 2.0])], lambda x: gradient(lambda y: mx.clip(y, 0.0, 1.0), x))
    case(
        "ties of reductions",
        [mx.array([[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])],
        lambda x: [*gradient(lambda y: mx.max(y, 1), x), *gradient(lambda y: mx.min(y, 1), x), *gradient(mx.max, x)],
    )
    case(
        "ties of scans",
        [mx.array([3.0, 3.0, 1.0, 5.0, 5.0])],
        lambda x: [*gradient(mx.cummax, x), *gradient(mx.cummin, x)],
    )
    case("ties of sorts", [mx.array([2.0, 1.0, 2.0, 0.0])], lambda x: [*gradient(mx.sort, x)])
    case(
        "kinks at zero",
        [mx.array([-1.0, 0.0, 2.0])],
        lambda x: [
            *gradient(mx.abs, x),
            *gradient(mx.sign, x),
            *gradient(mx.square, x),
            *gradient(lambda y: mx.maximum(y, 0), x),
            *gradient(lambda y: mx.minimum(y, 0), x),
        ],
    )
    case(
        "updates that equal",
        [mx.array([1.0, 2.0, 3.0]), mx.array([2.0, 2.0])],
        lambda a, u: gradient(lambda a, u: a.at[mx.array([0, 1])].maximum(u), a, u),
    )


def structures(case):
    x, m, w = normal(67, 3, 4), normal(68, 4, 2), normal(69, 4)
    p = uniform(70, 3, 4, low=0.5, high=1.5)
    i = mx.array([2, 0, 2])
    case(
        "reductions",
        [p],
        lambda p: [
            r
            for f in (mx.sum, mx.mean, mx.prod, mx.var, mx.std, mx.logsumexp)
            for r in (*gradient(lambda a: f(a, axis=1), p), *gradient(f, p))
        ],
    )
    case(
        "scans",
        [p],
        lambda p: [
            r
            for f in (mx.cumsum, mx.cumprod, mx.logcumsumexp, mx.cummax)
            for r in (*gradient(lambda a: f(a, axis=1), p), *gradient(lambda a: f(a, axis=1, reverse=True), p))
        ],
    )
    case(
        "movement",
        [x],
        lambda x: [
            r
            for f in (
                lambda a: a.T,
                lambda a: mx.reshape(a, (2, 6)),
                lambda a: a[::-1, 1:],
                lambda a: mx.pad(a, 1),
                lambda a: mx.tile(a, (2, 1)),
                lambda a: mx.roll(a, 2, 1),
                lambda a: mx.broadcast_to(a[:, None], (3, 2, 4)),
                lambda a: mx.concatenate([a, a * 2], 1),
                lambda a: mx.repeat(a, 2, 0),
                lambda a: mx.diag(a[:, :3]),
                lambda a: mx.as_strided(a, (2, 3), (4, 1), 1),
                lambda a: mx.stack([a, a]),
                lambda a: mx.split(a, 2, 1)[1],
            )
            for r in gradient(f, x)
        ],
    )
    case(
        "products",
        [x, m, w],
        lambda x, m, w: [
            *gradient(mx.matmul, x, m),
            *gradient(mx.matmul, x, w),
            *gradient(mx.outer, w, w),
            *gradient(mx.inner, x, w),
            *gradient(lambda a, b: mx.einsum("ij,jk->ki", a, b), x, m),
            *gradient(lambda c, a, b: mx.addmm(c, a, b, 2.0, 0.5), x[:, :2], x, m),
        ],
    )
    case(
        "indexing",
        [x, i],
        lambda x, i: [
            *gradient(lambda a: a[i], x),
            *gradient(lambda a: a[:, i], x),
            *gradient(lambda a: mx.take_along_axis(a, i[:, None], 1), x),
            *gradient(lambda a: a.at[i].add(a), x),
            *gradient(lambda a: mx.where(a > 0, a, a * 3), x),
            *gradient(lambda a: mx.sort(a, 1), x),
            *gradient(lambda a: mx.topk(a, 1, 1), x),
            *gradient(lambda a: mx.put_along_axis(a, i[:, None], a[:, :1] * 2, 1), x),
        ],
    )
    case(
        "power at zero",
        [mx.array([0.0, 1.0, 2.0]), mx.array([2.0, 0.5, 3.0])],
        lambda a, b: [
            *gradient(lambda a: mx.power(a, 2), a),
            *gradient(lambda b: mx.power(a[1:], b[1:]), b),
            mx.grad(lambda a: mx.sum(mx.power(a, 3.0)))(a),
        ],
    )
    case(
        "casts",
        [x],
        lambda x: [
            *gradient(lambda a: a.astype(mx.float16).astype(mx.float32) * 2, x),
            *gradient(lambda a: mx.view(mx.stop_gradient(a), mx.float32) * a, x),
            *gradient(lambda a: mx.floor(a) * a, x),
        ],
    )
    case(
        "through integers",
        [mx.array([1.5, 2.5])],
        lambda x: mx.vjp(lambda a: a.astype(mx.int32), [x], [mx.array([2, 3])])[1],
    )
    case(
        "value_and_grad",
        [x, w],
        lambda x, w: [
            *(lambda v, g: [v, *g])(*mx.value_and_grad(lambda a, b: mx.sum(mx.sin(a @ b)), argnums=(0, 1))(x, w))
        ],
    )
    case(
        "higher orders",
        [w],
        lambda w: [
            mx.grad(mx.grad(mx.grad(lambda s: mx.sin(s) * s)))(w[0]),
            mx.vmap(mx.grad(mx.grad(lambda s: s**4)))(w),
            *mx.jvp(mx.grad(lambda a: mx.sum(mx.tanh(a) ** 2)), [w], [w * w])[1],
        ],
    )
    case("checkpoint", [x], lambda x: gradient(mx.checkpoint(lambda a: mx.exp(mx.sin(a))), x))

    @mx.custom_function
    def scaled(a, b):
        return a * mx.sin(b)

    @scaled.vjp
    def scaled_vjp(primals, cotangent, output):
        return cotangent * 2, cotangent * primals[0]

    case("custom vjp", [x, p], lambda x, p: [scaled(x, p), *gradient(scaled, x, p)])


def batched(case):
    x, m, v = normal(71, 3, 4), normal(72, 3, 4, 2), normal(73, 4)
    case(
        "vmap",
        [x, m, v],
        lambda x, m, v: [
            mx.vmap(mx.matmul)(x, m),
            mx.vmap(lambda a: mx.sum(a))(x),
            mx.vmap(lambda a, b: a + b, in_axes=(1, None))(x, x[:, 0]),
            mx.vmap(mx.add, in_axes=(0, None))(x, v),
            mx.vmap(lambda a: a * 2, out_axes=1)(x),
            mx.vmap(mx.vmap(lambda s: s * s + 1))(x),
            mx.vmap(lambda a: mx.softmax(a))(x),
            mx.vmap(lambda a: mx.cumsum(a))(x),
            mx.vmap(lambda a: mx.sort(a))(x),
            mx.vmap(lambda a: mx.reshape(a, (2, 2)))(x),
            mx.vmap(lambda a: a[::-1])(x),
            mx.vmap(lambda a: mx.concatenate([a, a]))(x),
            mx.vmap(lambda a: mx.argmax(a))(x),
            mx.vmap(lambda a: mx.max(a), in_axes=1)(x),
            mx.vmap(mx.outer)(x, x),
        ],
    )
    case(
        "vmap of indexing",
        [x, integers(74, 3, 2, high=4)],
        lambda x, i: [
            mx.vmap(lambda a, k: a[k])(x, i),
            mx.vmap(lambda a, k: mx.take(a, k), in_axes=(None, 0))(x[0], i),
            mx.vmap(lambda a, k: a.at[k].add(1.0))(x, i),
            mx.vmap(lambda k: x[:, 0][mx.minimum(k, 2)])(i),
            mx.vmap(lambda a, k: mx.take_along_axis(a, k, 0))(x, i),
        ],
    )
    case(
        "gradients of each",
        [x, v],
        lambda x, v: [
            mx.vmap(mx.grad(lambda a: mx.sum(mx.sin(a) * v)))(x),
            mx.vmap(mx.grad(lambda a, b: mx.sum(mx.exp(a * b))), in_axes=(0, None))(x, v),
        ],
    )
    case(
        "vmap of linear algebra",
        [x, mx.matmul(m, mx.swapaxes(m, 1, 2))[:, :2, :2] + mx.eye(2)],
        lambda x, s: [
            mx.vmap(lambda a: mx.linalg.norm(a))(x),
            mx.vmap(mx.linalg.inv)(s),
            mx.vmap(mx.linalg.cholesky)(s),
            mx.vmap(mx.fft.fft)(x),
            mx.vmap(lambda a: mx.linalg.norm(a, ord=1))(x),
        ],
    )


def generate(store):
    case = Subject(store, "derivatives")
    unary(case), ties(case), structures(case), batched(case)
