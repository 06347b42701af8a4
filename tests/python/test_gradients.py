"""Gradients of all differentiable operations beside mlx's."""

import sys
from pathlib import Path

import numpy as np
import pytest
from gradient_cases import cases, draw, gradients
from support import IS_MLX

import weft.core as mx

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))

import stored  # noqa: E402

EXPECTED = stored.load(GOLDEN / "gradients.npz")
CASES = dict(cases(mx))
# Relative to the largest element: sums over more terms, and functions that amplify rounding.
BOUNDS = {"astype": 2e-3}
# Lines of docs/differences.md.
LISTED = {"divmod": "divmod-slope"}


def distance(got, expected):
    """The largest difference, relative to the largest element where that is above 1."""
    size = max(1.0, np.abs(expected).max(initial=0, where=np.isfinite(expected)))
    return np.abs(got - expected).max(initial=0) / size


def test_cases_are_those_of_the_file():
    assert set(CASES) == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(CASES))
def test_gradient(name):
    found, expected = stored.outcome(mx, CASES[name]), EXPECTED[name]
    assert not isinstance(found, str) and len(found) == len(expected)
    for (dtype, got), (wanted, values) in zip(found, expected):
        assert dtype == wanted and got.shape == values.shape
    agrees = all(distance(got, values) <= BOUNDS.get(name, 5e-6) for (_, got), (_, values) in zip(found, expected))
    assert agrees == (name not in LISTED or IS_MLX)


@pytest.mark.skipif(IS_MLX, reason="MLX's is 0")
def test_gradient_of_divmod():
    x, y = draw(mx, 1, 3, 4), draw(mx, 2, 3, 4)
    got = gradients(mx, lambda x, y: mx.divmod(x, y + 2.5)[1], [x, y])
    expected = gradients(mx, lambda x, y: mx.remainder(x, y + 2.5), [x, y])
    for mine, wanted in zip(got, expected):
        assert mx.array_equal(mine, wanted).item()
