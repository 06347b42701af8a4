"""Memory and streams of a GPU, shared with PyTorch, CuPy and JAX: nothing is copied, the order is kept under load."""

import gc

import numpy as np
import pytest
import weft.core as mx
from support import host
from weft.core import kernel as k

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not (mx.cuda.is_available() and torch.cuda.is_available()), reason="Weft and PyTorch need a GPU"
)
GPU = "cuda"


def busy(stream, seconds=0.3):
    """Gives a stream work that takes a while, so that what is not ordered behind it comes too early."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(int(seconds * 1.5e9))


def pending(stream):
    return not stream.query()


@pytest.fixture(params=["default", "other"])
def stream(request):
    """PyTorch's default stream, or another one."""
    return torch.cuda.default_stream() if request.param == "default" else torch.cuda.Stream()


DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 4), (), (5,), (0, 2)])
def test_tensors_pass_both_ways(dtype, shape):
    t = (torch.arange(int(np.prod(shape)), device=GPU).reshape(shape) % 5).to(getattr(torch, dtype))
    x = mx.from_dlpack(t, copy=False if dtype == "float64" else None)  # which becomes float32 otherwise
    assert x.shape == shape
    if t.numel():
        assert x.__dlpack_device__() == (2, 0)
    back = torch.from_dlpack(x)
    assert back.dtype == t.dtype and torch.equal(back.to(GPU), t)
    if t.numel():
        assert back.data_ptr() == t.data_ptr()


def test_views_are_shared_as_they_lie():
    t = torch.arange(24.0, device=GPU).reshape(4, 6)
    for part in (t.T, t[1:, ::2], t[2], t[:, 3], t.expand(2, 4, 6), t[::2].T):
        x = mx.from_dlpack(part)
        np.testing.assert_array_equal(host(x), part.cpu().numpy())
        with mx.stream(mx.gpu):
            np.testing.assert_array_equal(host(x * 2 + 1), part.cpu().numpy() * 2 + 1)
    with mx.stream(mx.gpu):
        a = mx.arange(24.0).reshape(4, 6)
        mx.eval(a)
        for view in (a.T, a[1:, ::2], a[::-1], mx.broadcast_to(a, (2, 4, 6))):
            np.testing.assert_array_equal(torch.from_dlpack(view).cpu().numpy(), host(view))
        turned = torch.from_dlpack(mx.from_dlpack(t).T)
    assert turned.stride() == (1, 6) and turned.data_ptr() == t.data_ptr()


def test_where_an_array_lies_and_where_it_is_asked_for():
    on_cpu = mx.ones(3, stream=mx.cpu)
    on_gpu = mx.ones(3, stream=mx.gpu)
    assert on_cpu.__dlpack_device__() == (1, 0) and on_gpu.__dlpack_device__() == (2, 0)
    assert torch.from_dlpack(on_gpu).is_cuda and not torch.from_dlpack(on_cpu).is_cuda
    assert np.from_dlpack(on_gpu, device="cpu").tolist() == [1, 1, 1]
    with pytest.raises(BufferError):
        on_gpu.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        on_gpu.__dlpack__(dl_device=(2, 99))
    with pytest.raises(ValueError, match="ambiguous"):
        on_gpu.__dlpack__(stream=0)
    for good in (None, -1, 1, 2, torch.cuda.Stream().cuda_stream):
        on_gpu.__dlpack__(stream=good)
        on_gpu.__dlpack__(stream=good, max_version=(1, 0))
    t = torch.ones(3, device=GPU)
    copied = mx.from_dlpack(t, copy=True)
    t += 1
    torch.cuda.synchronize()
    assert copied.tolist() == [1, 1, 1]


def test_an_array_waits_for_the_tensor_and_the_host_does_not(stream):
    t = torch.zeros(1 << 20, device=GPU)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        busy(stream)
        t += 3
        x = mx.from_dlpack(t)
        y = mx.add(x, 1, stream=mx.gpu)
        mx.async_eval(y)
        assert pending(stream)  # nobody has waited
    assert mx.all(y == 4, stream=mx.gpu).item()


def late(value):
    """A number that a GPU takes a while to compute; its kernels are compiled and chosen before."""

    def begun():
        with mx.stream(mx.gpu):
            big = mx.full((4096, 4096), 1e-3)
            slow = big
            for _ in range(30):
                slow = slow @ big * 0.1
            return mx.sum(slow * 0) + value

    mx.eval(begun())
    return begun()


def test_a_tensor_waits_for_the_array_and_the_host_does_not(stream):
    y = late(7)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        t = torch.from_dlpack(y) + 1
        waiting = pending(stream)
        assert t.item() == 8
    assert waiting


def test_memory_is_used_again_only_behind_its_readers(stream):
    """Arrays that PyTorch reads late are overwritten late, and the other way round."""
    size = 1 << 22
    with torch.cuda.stream(stream):
        for n in range(5):
            with mx.stream(mx.gpu):
                y = mx.full((size,), float(n))
            t = torch.from_dlpack(y)
            busy(stream, 0.05)
            total = t.sum()
            del t, y  # PyTorch has not read it yet
            with mx.stream(mx.gpu):
                mx.async_eval(mx.full((size,), -1.0))  # would take the memory
            assert total.item() == n * size
        for n in range(5):
            t = torch.full((size,), float(n), device=GPU)
            with mx.cuda.stream(stream):
                x = mx.from_dlpack(t)
                slow = mx.sum(x) + 0 * mx.sum(mx.ones((4096, 4096)) @ mx.ones((4096, 4096)))
                mx.async_eval(slow)
            del t, x  # Weft may not have read it yet
            torch.full((size,), -1.0, device=GPU)
            assert slow.item() == n * size


def test_a_block_orders_changes_in_place(stream):
    for warm in (False, True):
        t = torch.ones(1 << 22, device=GPU)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            busy(stream, 0.05)
            t *= 2
            with mx.cuda.stream(torch.cuda.current_stream()):
                total = mx.sum(mx.from_dlpack(t)) + late(0)
                mx.async_eval(total)
            t.zero_()
            assert pending(stream) or not warm
        assert total.item() == 2 << 22
        assert t.sum().item() == 0


def test_a_block_makes_its_gpu_the_device_of_operations():
    with mx.cuda.stream(torch.cuda.current_stream()):
        assert mx.ones(3).__dlpack_device__() == (2, 0)
    for handle in (0, torch.cuda.Stream().cuda_stream, torch.cuda.Stream()):
        with mx.cuda.stream(handle), mx.cuda.stream(handle, device=0):
            assert (mx.ones(3) + 1).tolist() == [2, 2, 2]
    assert mx.ones(3).__dlpack_device__() == ((2, 0) if mx.default_device() == mx.gpu else (1, 0))
    with pytest.raises(TypeError, match="no stream"):
        mx.cuda.stream("fast")
    with pytest.raises(ValueError):
        with mx.cuda.stream(0, device=99):
            pass


def test_tensors_are_given_back():
    before = torch.cuda.memory_allocated()
    for _ in range(20):
        x = mx.from_dlpack(torch.ones(1 << 20, device=GPU))
        assert mx.sum(x, stream=mx.gpu).item() == 1 << 20
        del x
    gc.collect()
    for _ in range(100):
        if torch.cuda.memory_allocated() <= before:
            break
        torch.cuda._sleep(1000000)
        torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() <= before


def test_borrowed_tensors_are_not_written():
    t = torch.ones(64, device=GPU)
    with mx.cuda.stream(torch.cuda.current_stream()):
        state = [mx.from_dlpack(t)]

        def step(v):
            state[0] = state[0] + v
            return mx.sum(state[0])

        step = mx.compile(step, inputs=state, outputs=state)
        assert [step(mx.array(1.0)).item() for _ in range(3)] == [128, 192, 256]
    assert t.sum().item() == 64


def test_work_is_not_captured():
    stream = torch.cuda.Stream()
    t = torch.ones(8, device=GPU)
    with mx.cuda.stream(stream):
        x = mx.from_dlpack(t)
        mx.eval(x + 1)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="captured"):
        with torch.cuda.graph(graph, stream=stream):
            with mx.cuda.stream(stream):
                pass
    torch.cuda.synchronize()
    assert (mx.ones(3, stream=mx.gpu) + 1).tolist() == [2, 2, 2]


@k.kernel(grid=lambda x, y, block: k.cdiv(x.dim(0), block))
def scaled(x: k.In, y: k.Out, block: int = 256, by: float = 2.0):
    at = k.block(k.program_id(0), block)
    y[at] = x[at] * by


@k.kernel(grid=lambda x, y: x.dim(0))
def softmax(x: k.In, y: k.Out):
    row = k.program_id(0)
    v = x[row, :].load()
    e = k.exp(v - k.max(v, 0))
    y[row, :] = e / k.sum(e, 0)


@k.kernel(
    grid=lambda a, b, c, m, n: (k.cdiv(c.dim(0), m), k.cdiv(c.dim(1), n)),
    outputs=lambda a, b: ((a.shape[0], b.shape[1]), mx.float32),
)
def matmul(a: k.In, b: k.In, c: k.Out, m: int = 64, n: int = 64, depth: int = 32):
    rows, columns = k.block(k.program_id(0), m), k.block(k.program_id(1), n)
    total = k.var(k.zeros((m, n)))
    for i in k.range(0, a.dim(1), depth):
        inner = k.ds(i, depth)
        total.value = k.dot(a[rows, inner], b[inner, columns], total)
    c[rows, columns] = total


def test_kernels_on_arrays_of_a_gpu():
    x = torch.randn(65, 1003, device=GPU)
    with mx.cuda.stream(torch.cuda.current_stream()):
        y = softmax(mx.from_dlpack(x))
        torch.testing.assert_close(torch.from_dlpack(y), torch.softmax(x, -1), rtol=1e-5, atol=1e-6)
        g = torch.randn(65, 1003, device=GPU)
        (slope,) = mx.vjp(softmax, [mx.from_dlpack(x)], [mx.from_dlpack(g)])[1]
        wanted = torch.autograd.functional.vjp(lambda v: torch.softmax(v, -1), x, g)[1]
        torch.testing.assert_close(torch.from_dlpack(slope), wanted, rtol=1e-4, atol=1e-6)
        a, b = torch.randn(200, 300, device=GPU).half(), torch.randn(300, 100, device=GPU).half()
        c = torch.from_dlpack(matmul(mx.from_dlpack(a), mx.from_dlpack(b)))
        torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=1e-2)


def test_kernels_are_launched_into_the_stream(stream):
    x, y = torch.zeros(1 << 20, device=GPU), torch.zeros(1 << 20, device=GPU)
    scaled.launch(x, y, stream=stream)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        busy(stream)
        x += 3
        scaled.launch(x, y, stream=torch.cuda.current_stream())
        assert pending(stream)
        z = y + 1
        assert torch.all(z == 7)
        if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):  # which names the current stream
            busy(stream)
            x += 1
            scaled.launch(x, y)
            assert pending(stream)
            assert torch.all(y == 8)
    with pytest.raises(ValueError, match="different devices"):
        scaled.launch(x, y.cpu(), stream=stream)


def test_launches_are_captured():
    x, y = torch.ones(1000, device=GPU), torch.zeros(1000, device=GPU)
    scaled.launch(x, y, stream=torch.cuda.current_stream())
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scaled.launch(x, y, stream=torch.cuda.current_stream())
    x.fill_(5)
    graph.replay()
    assert torch.all(y == 10)


class Scaled(torch.autograd.Function):
    """A compiled function of Weft's, and its derivative, in PyTorch's order."""

    compute = staticmethod(mx.compile(lambda x: mx.sin(x) * x))
    derive = staticmethod(mx.compile(lambda x, g: mx.vjp(lambda v: mx.sin(v) * v, [x], [g])[1][0]))

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with mx.cuda.stream(torch.cuda.current_stream(x.device)):
            return torch.from_dlpack(Scaled.compute(mx.from_dlpack(x.detach())))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with mx.cuda.stream(torch.cuda.current_stream(x.device)):
            return torch.from_dlpack(Scaled.derive(mx.from_dlpack(x.detach()), mx.from_dlpack(g.contiguous())))


def test_functions_of_autograd_under_load(stream):
    x = torch.randn(512, 512, device=GPU, requires_grad=True)
    with torch.cuda.stream(stream):
        for _ in range(4):
            x.grad = None
            busy(stream, 0.03)
            loss = (Scaled.apply(x * 1.5) ** 2).sum()
            loss.backward()
            found = x.grad.clone()
            x.grad = None
            v = x * 1.5
            ((torch.sin(v) * v) ** 2).sum().backward()
            torch.testing.assert_close(found, x.grad, rtol=1e-4, atol=1e-4)
            with torch.no_grad():
                x -= 0.001 * found


def test_cupy():
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(12, dtype=cupy.float32).reshape(3, 4)
    with mx.cuda.stream(cupy.cuda.get_current_stream()):
        y = mx.from_dlpack(x) * 2
        back = cupy.from_dlpack(y)
    assert cupy.array_equal(back, x * 2)
    assert cupy.from_dlpack(mx.from_dlpack(x)).data.ptr == x.data.ptr
    with pytest.raises(ValueError, match="name the stream"):
        scaled.launch(x.reshape(-1), back.reshape(-1))
    scaled.launch(x.reshape(-1), back.reshape(-1), stream=cupy.cuda.get_current_stream())
    assert cupy.array_equal(back, x * 2)


def test_jax():
    jax = pytest.importorskip("jax")
    if not any(d.platform == "gpu" for d in jax.devices()):
        pytest.skip("JAX has no GPU")
    j = jax.numpy.arange(12.0).reshape(3, 4)
    x = mx.from_dlpack(j)
    assert x.__dlpack_device__() == (2, 0)
    with mx.stream(mx.gpu):
        y = x * 2 + 1
    back = jax.dlpack.from_dlpack(y)
    np.testing.assert_array_equal(np.asarray(back), np.asarray(j) * 2 + 1)
    assert mx.array(j).tolist() == np.asarray(j).tolist()
    assert mx.array(j.astype(jax.numpy.bfloat16)).dtype == mx.bfloat16
