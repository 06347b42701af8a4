"""The explicit level of kernels in Python: copies ahead, barriers, roles, programs that wait for each other."""

import numpy as np
import pytest
import weft.core as mx
from support import assert_close, assert_equal, draw
from weft.core import kernel as k


@k.kernel(grid=lambda x, y, rows, ahead: k.cdiv(x.dim(0), rows))
def doubled_rows(x: k.In, y: k.Out, rows: int = 8, ahead: int = 4):
    slots = k.shared((ahead, x.dim(1)))
    first = k.program_id(0) * rows

    def begin(row):
        k.copy_async(slots[row % ahead, :], x[first + row, :])  # zeros behind the last row
        k.commit_copies()

    for s in range(ahead - 1):
        begin(k.scalar(s, mx.int64))
    for row in k.range(rows):
        begin(row + (ahead - 1))
        k.wait_copies(ahead - 1)
        y[first + row, :] = slots[row % ahead, :] * 2
    k.wait_copies()


@pytest.mark.parametrize("shape", [(20, 24), (3, 5), (64, 128)])
def test_copies_run_ahead(shape):
    values = draw("float32", shape)
    assert_equal(doubled_rows(mx.array(values)), 2 * values)
    assert_equal(doubled_rows.interpret(mx.array(values)), 2 * values)


@k.kernel(
    grid=lambda a, b, c, m, n: (k.cdiv(c.dim(0), m), k.cdiv(c.dim(1), n)),
    outputs=lambda a, b: (a.shape[0], b.shape[1]),
)
def ring(a: k.In, b: k.In, c: k.Out, m: int = 16, n: int = 32, depth: int = 16, slots: int = 2):
    """A warp copies blocks into a ring of slots, four warps multiply them."""
    steps = k.cdiv(a.dim(1), depth)
    left, right = k.shared((slots, m, depth), layout="padded"), k.shared((slots, depth, n), layout="swizzle64")
    full, empty = k.Barriers(slots), k.Barriers(slots)
    rows, columns = k.block(k.program_id(0), m), k.block(k.program_id(1), n)

    def copies():
        for i in k.range(steps):
            slot = i % slots
            empty.wait(i // slots - 1, slot)
            full.copy(left[slot, :, :], a[rows, k.ds(i * depth, depth)], slot)
            full.copy(right[slot, :, :], b[k.ds(i * depth, depth), columns], slot)
            full.arrive(slot)

    def multiplies():
        total = k.var(k.zeros((m, n)))
        for i in k.range(steps):
            slot = i % slots
            full.wait(i // slots, slot)
            total.value = k.dot(left[slot, :, :], right[slot, :, :], total)
            empty.arrive(slot)
        c[rows, columns] = total

    k.roles((1, copies), (4, multiplies))


@pytest.mark.parametrize("shape", [(16, 16, 32), (33, 70, 40)])
def test_roles_and_barriers(shape):
    rows, inner, columns = shape
    a, b = draw("float32", (rows, inner)), draw("float32", (inner, columns), seed=1)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert_close(ring(mx.array(a), mx.array(b)), wanted, tolerance=1e-4)
    assert_close(ring.interpret(mx.array(a), mx.array(b)), wanted, tolerance=1e-4)


def test_products_under_way():
    @k.kernel(grid=1, outputs=lambda a, b: (a.shape[0], b.shape[1]))
    def product(a: k.In, b: k.In, c: k.Out):
        flight = k.dot_async(a[:, :], b[:, :])
        c[:, :] = k.wait_dot(flight)

    a, b = draw("float32", (8, 4)), draw("float32", (4, 8), seed=1)
    assert_close(product(mx.array(a), mx.array(b)), a.astype(np.float64) @ b.astype(np.float64), tolerance=1e-5)

    @k.kernel(grid=1, outputs=lambda a, b: (a.shape[0], b.shape[1]))
    def forgets(a: k.In, b: k.In, c: k.Out):
        k.dot_async(a[:, :], b[:, :])
        c[:, :] = 0

    with pytest.raises(ValueError, match="test_kernel_async.py"):
        forgets(mx.array(a), mx.array(b))


@pytest.mark.parametrize("by_function", [False, True])
def test_programs_wait_for_those_before_them(by_function):
    @k.kernel(grid=lambda x, y, done: k.Axis(x.dim(0), "ordered"))
    def chain(x: k.In, y: k.InOut, done: k.InOut):
        row = k.program_id(0)
        total = k.var(x[row, :].load())
        with k.when(row > 0):
            k.wait_until(done, (lambda v: v >= 1) if by_function else 1, row - 1)
            total += y[row - 1, :]
        y[row, :] = total
        k.atomic("exchange", done, 1, row, order="release")

    values = draw("int32", (11, 30))
    flags = mx.zeros(11, mx.int32)
    y, done = chain(mx.array(values), mx.zeros((11, 30), mx.int32), flags)
    assert_equal(y, values.cumsum(0, dtype=np.int32))
    assert done.tolist() == [1] * 11 and flags.tolist() == [0] * 11

    @k.kernel(grid=2)
    def unordered(done: k.InOut):
        k.wait_until(done, 1, 0)

    with pytest.raises(ValueError, match="ordered"):
        unordered(flags)


def test_clusters_read_their_neighbours():
    @k.kernel(grid=lambda x, y: (x.dim(0), k.Axis(4, "cluster")), outputs=lambda x: (x.shape[0], 4))
    def sums(x: k.In, y: k.Out):
        row, rank = k.program_id(0), k.cluster_rank()
        part = k.shared(1)
        part[0] = k.sum(x[row, k.ds(rank * 8, 8)])
        k.cluster_barrier()
        total = k.var(0.0)
        for i in k.range(k.cluster_size()):
            total += k.load_neighbour(part[0], i)
        k.cluster_barrier()
        y[row, rank] = total

    values = draw("float32", (3, 32))
    found = sums(mx.array(values))
    assert_close(found, np.repeat(values.astype(np.float64).sum(1)[:, None], 4, 1), tolerance=1e-5)


def test_all_programs_meet():
    @k.kernel(grid=4, outputs=lambda x: [x.shape, x.shape])
    def shifted(x: k.In, y: k.Out, z: k.Out):
        i = k.program_id(0)
        y[i] = x[i] * 2
        k.grid_barrier()
        z[i] = k.gather(y, (i + 1) % 4)

    y, z = shifted(mx.array([1.0, 2.0, 3.0, 4.0]))
    assert y.tolist() == [2, 4, 6, 8] and z.tolist() == [4, 6, 8, 2]


def test_votes_and_shuffles():
    @k.kernel(grid=1, outputs=lambda x: [x.shape, x.shape, (x.shape, mx.uint32)])
    def lanes(x: k.In, a: k.Out, b: k.Out, c: k.Out):
        v = x[:].load()
        a[:] = k.lanes("shuffle_xor", v, 32, 1)
        b[:] = k.lanes("scan", v, 16, op="add")
        c[:] = k.lanes("ballot", v > 0)

    values = draw("float32", (32,))
    a, b, c = lanes(mx.array(values))
    assert_equal(a, values.reshape(-1, 2)[:, ::-1].reshape(-1))
    assert_close(b, values.astype(np.float64).reshape(2, 16).cumsum(1).reshape(-1), tolerance=1e-5)
    assert c.tolist() == [sum(1 << n for n in range(32) if values[n] > 0)] * 32


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda: k.shared(4, layout="odd"), "row_major, padded"),
        (lambda: k.Barriers(0), "give 1 to 4096"),
        (lambda: k.cluster_rank(), "cluster"),
    ],
)
def test_mistakes_of_the_explicit_level(f, words):
    def wrong(x: k.In, y: k.Out):
        f()
        y[:] = x[:]

    with pytest.raises(ValueError, match=words):
        k.kernel(wrong, grid=1)(mx.ones(3))


def test_the_explicit_level_compiles_for_gpus():
    matrices = mx.zeros((64, 64)), mx.zeros((64, 64))
    for f, arrays in [(doubled_rows, [mx.zeros((64, 64))]), (ring, matrices)]:
        try:
            assert ".entry" in f.show("ptx", *arrays, machine="sm_90a")
        except RuntimeError as error:
            pytest.skip(f"NVRTC is missing: {error}")
