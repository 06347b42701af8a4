#!/usr/bin/env python3
"""A Weft function inside JAX: pure_callback for its value, custom_vjp for its derivative, both computed with Weft."""

import jax
import jax.numpy as jnp
import numpy as np
import weft.core as mx


@mx.compile
def swish(x):
    """x · sigmoid(x)."""
    return x * mx.sigmoid(x)


@mx.compile
def swish_gradient(x, cotangent):
    """The product of a cotangent with the derivative."""
    _, (product,) = mx.vjp(swish, [x], [cotangent])
    return product


def with_weft(function):
    """A function of NumPy's arrays that Weft computes."""
    return lambda *arrays: np.array(function(*(mx.array(np.asarray(a)) for a in arrays)))


@jax.custom_vjp
def jax_swish(x):
    return jax.pure_callback(with_weft(swish), jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def forward(x):
    return jax_swish(x), x


def backward(x, cotangent):
    return (jax.pure_callback(with_weft(swish_gradient), jax.ShapeDtypeStruct(x.shape, x.dtype), x, cotangent),)


jax_swish.defvjp(forward, backward)


def main():
    x = jnp.linspace(-3, 3, 31, dtype=jnp.float32)
    loss = jax.jit(jax.value_and_grad(lambda v: (jax_swish(v) ** 2).sum()))
    expected = jax.value_and_grad(lambda v: ((v * jax.nn.sigmoid(v)) ** 2).sum())
    np.testing.assert_allclose(loss(x)[0], expected(x)[0], rtol=1e-5)
    np.testing.assert_allclose(loss(x)[1], expected(x)[1], rtol=1e-4, atol=1e-5)
    print(f"gradients agree; loss {loss(x)[0]:.4f}")


if __name__ == "__main__":
    main()
