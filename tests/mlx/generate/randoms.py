"""Random numbers for given keys, and from the default sequence."""

import mlx.core as mx

from .inputs import Subject, normal, uniform


def seeded(function):
    """Calls it after the default sequence was started with 11."""
    mx.random.seed(11)
    out = function()
    mx.eval(out)
    return out


def generate(store):
    case = Subject(store, "random")
    r = mx.random
    k = r.key(5)
    p = uniform(121, 3, 4)
    case("keys", [k], lambda k: [r.key(0), r.key(2**40 + 3), *r.split(k), r.split(k, 4)])
    case(
        "uniform",
        [k, p],
        lambda k, p: [
            r.uniform(shape=(3, 5), key=k),
            r.uniform(-2, 3, (7,), key=k),
            r.uniform(p, p + 1, (3, 4), key=k),
            r.uniform(shape=(4, 3), dtype=mx.float16, key=k),
            r.uniform(shape=(5,), dtype=mx.bfloat16, key=k),
            r.uniform(shape=(), key=k),
        ],
    )
    case(
        "normal",
        [k, p],
        lambda k, p: [
            r.normal((3, 5), key=k),
            r.normal((7,), loc=2.0, scale=0.5, key=k),
            r.normal((4,), dtype=mx.float16, key=k),
            r.normal((3, 4), loc=p, scale=p, key=k),
            r.normal((6,), dtype=mx.bfloat16, key=k),
        ],
    )
    case("complex normal", [k], lambda k: r.normal((2, 3), dtype=mx.complex64, key=k))
    case(
        "truncated_normal",
        [k, p],
        lambda k, p: [
            r.truncated_normal(-1, 1, (8,), key=k),
            r.truncated_normal(p - 1, p, key=k),
            r.truncated_normal(0.5, 2.0, (4,), dtype=mx.float16, key=k),
        ],
    )
    case(
        "laplace and gumbel",
        [k],
        lambda k: [
            r.laplace((9,), key=k),
            r.laplace((4,), loc=1.0, scale=2.0, key=k),
            r.gumbel((9,), key=k),
            r.laplace((5,), dtype=mx.float16, key=k),
            r.gumbel((3,), dtype=mx.bfloat16, key=k),
        ],
    )
    case(
        "bernoulli",
        [k, p],
        lambda k, p: [
            r.bernoulli(0.3, (10,), key=k),
            r.bernoulli(p, key=k),
            r.bernoulli(p, (2, 3, 4), key=k),
            r.bernoulli(key=k),
        ],
    )
    case(
        "randint",
        [k],
        lambda k: [
            r.randint(0, 10, (9,), key=k),
            r.randint(-5, 5, (2, 4), key=k),
            r.randint(0, 200, (6,), dtype=mx.uint8, key=k),
            r.randint(mx.array([0, 10]), mx.array([5, 90]), (3, 2), key=k),
            r.randint(-100, 100, (5,), dtype=mx.int16, key=k),
        ],
    )
    case(
        "categorical",
        [k, normal(122, 3, 5)],
        lambda k, l: [
            r.categorical(l, key=k),
            r.categorical(l, axis=0, key=k),
            r.categorical(l, num_samples=4, key=k),
            r.categorical(l, shape=(6, 3), key=k),
            r.categorical(l[0], num_samples=9, key=k),
        ],
    )
    case(
        "permutation",
        [k, p],
        lambda k, p: [r.permutation(9, key=k), r.permutation(p, key=k), r.permutation(p, axis=1, key=k)],
    )
    case(
        "many keys",
        [k],
        lambda k: [
            mx.vmap(lambda q: r.uniform(shape=(3,), key=q))(r.split(k, 4)),
            mx.vmap(lambda q: r.normal((2,), key=q))(r.split(k, 3)),
        ],
    )
    case(
        "default sequence",
        [],
        lambda: seeded(
            lambda: [
                r.uniform(shape=(3,)),
                r.normal((2,)),
                r.randint(0, 9, (4,)),
                r.bernoulli(0.5, (3,)),
                r.uniform(shape=(2,)),
                r.permutation(5),
            ]
        ),
    )
