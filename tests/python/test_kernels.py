"""Kernels of users: what can be seen without a GPU."""

import pytest
import weft.core as mx


def kernel(**options):
    return mx.fast.cuda_kernel("twice", ["x"], ["y"], "y[threadIdx.x] = 2 * x[threadIdx.x];", **options)


def call(f, **options):
    arguments = {
        "inputs": [mx.ones(4)], "output_shapes": [(4,)], "output_dtypes": [mx.float32], "grid": (4, 1, 1),
        "threadgroup": (4, 1, 1), "template": [("T", mx.float32), ("N", 4), ("B", True)],
    }
    return f(**{**arguments, **options})


@pytest.mark.skipif(mx.cuda.is_available(), reason="there is a GPU")
def test_kernels_of_cuda_need_a_gpu():
    with pytest.raises(ValueError, match="twice"):
        mx.eval(call(kernel(), stream=mx.cpu))


@pytest.mark.skipif(not mx.cuda.is_available(), reason="there is no GPU")
def test_kernels_of_cuda_compute():
    (y,) = call(kernel(), stream=mx.gpu)
    assert y.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "mistake",
    [{"inputs": []}, {"output_shapes": []}, {"threadgroup": (2048, 1, 1)}, {"template": [("T", 1.5)]}],
)
def test_mistakes(mistake):
    with pytest.raises(ValueError):
        call(kernel(), **mistake)


def test_metal_is_refused_when_it_is_called():
    kernel = mx.fast.metal_kernel(name="k", input_names=[], output_names=[], source="")
    with pytest.raises(RuntimeError, match="Apple"):
        kernel(inputs=[])
