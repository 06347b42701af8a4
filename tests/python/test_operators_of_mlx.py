"""Every element-wise function, reduction, scan and sort on every dtype and layout beside MLX's results.

golden/operators.npz has what MLX 0.32.4 gives; golden/operators_differ.txt the cases that differ, with the reason.
"""

import fnmatch
from pathlib import Path

import numpy as np
import operator_cases
import weft.core as mx

GOLDEN = Path(__file__).parent / "golden"
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 1e-6, "complex64": 5e-5}
STORED = {"bool": np.bool_, "bfloat16": np.float32}


def wanted():
    """(name, exception's name or (dtype, values)) of every case."""
    file = np.load(GOLDEN / "operators.npz")
    data, lengths, at, axis = file["data"].tobytes(), file["lengths"], 0, 0
    for name, kind, rank in zip(file["names"], file["kinds"], map(int, file["ranks"])):
        if kind.startswith("!"):
            yield str(name), str(kind[1:])
            continue
        shape = tuple(map(int, lengths[axis : axis + rank]))
        axis += rank
        dtype = np.dtype(STORED.get(str(kind), str(kind)))
        count = int(np.prod(shape)) * dtype.itemsize
        yield str(name), (str(kind), np.frombuffer(data[at : at + count], dtype).reshape(shape))
        at += count


def same(found, expected):
    """Whether two outcomes agree to the digits that matter."""
    if isinstance(found, str) or isinstance(expected, str):
        return isinstance(found, str) and isinstance(expected, str)
    if found[0] != expected[0] or found[1].shape != expected[1].shape:
        return False
    bound = TOLERANCE.get(found[0])
    if bound is None:
        return np.array_equal(found[1], expected[1])
    with np.errstate(all="ignore"):
        return np.allclose(found[1], expected[1], rtol=bound, atol=bound / 10, equal_nan=True)


def differences():
    """(pattern of names, anchor of docs/differences.md) of the cases that differ."""
    for line in (GOLDEN / "operators_differ.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield tuple(part.strip() for part in line.split(":"))


def test_outputs_agree_but_for_those_that_are_listed():
    listed, expected = [pattern for pattern, _ in differences()], dict(wanted())
    used, unexpected, differing = set(), [], 0
    for name, call in operator_cases.calls(mx):
        if same(operator_cases.outcome(mx, call), expected[name]):
            continue
        differing += 1
        pattern = next((p for p in listed if fnmatch.fnmatch(name, p)), None)
        used.add(pattern)
        if pattern is None:
            unexpected.append(name)
    assert not unexpected, f"{len(unexpected)} cases differ: {unexpected[:40]}"
    assert not set(listed) - used, f"these agree now: {sorted(set(listed) - used)}"
    assert differing <= 200, f"{differing} of {len(expected)} differ"


def test_reasons_stand_in_the_document():
    page = (Path(__file__).parents[2] / "docs" / "differences.md").read_text(encoding="utf-8")
    for _, anchor in differences():
        assert f'id="{anchor}"' in page, anchor
