"""Golden files: a list of cases in JSON lines, and the bytes of their arrays.

A file is a deflated .npz with two arrays of bytes, `cases` and `data`. An array is written in a case as [dtype,
shape, offset into data]. Equal bytes are stored
once, entries carry no date, and so a second run writes the same file.
"""

import io
import json
import zipfile

import mlx.core as mx
import numpy as np

CLASSES = (ValueError, IndexError, RuntimeError, TypeError, OverflowError)


def name_of(dtype):
    """Returns "float32" for mx.float32, and "bool" for mx.bool_."""
    name = str(dtype).split(".")[-1]
    return "bool" if name == "bool_" else name


def bytes_of(a):
    """Returns the elements of an MLX array in row-major order."""
    a = mx.contiguous(a)
    mx.eval(a)
    if a.size == 0:
        return b""
    if a.dtype == mx.bfloat16:
        a = mx.view(a.reshape(-1), mx.uint16)
    return np.array(a).tobytes()


class Store:
    def __init__(self):
        self.cases, self.data, self.places = [], io.BytesIO(), {}

    def array(self, a):
        """Stores the elements and returns how a case names them."""
        content = bytes_of(a)
        if content not in self.places:
            self.places[content] = self.data.tell()
            self.data.write(content)
        return [name_of(a.dtype), list(a.shape), self.places[content]]

    def add(self, case, function):
        """Adds a case with what `function` returns (an array, or several), or with the class of what it throws."""
        try:
            out = function()
            out = list(out) if isinstance(out, (list, tuple)) else [out]
            mx.eval(out)
            case["out"] = [self.array(a) for a in out]
        except CLASSES as error:
            kind = next(
                c for c in (IndexError, ValueError, TypeError, OverflowError, RuntimeError) if isinstance(error, c)
            )
            case["throws"], case["message"] = kind.__name__, str(error).split("\n")[0][:160]
        self.cases.append(case)

    def write(self, path):
        lines = "".join(json.dumps(c, separators=(",", ":"), ensure_ascii=True) + "\n" for c in self.cases)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, content in (("cases", lines.encode()), ("data", self.data.getvalue())):
                member = io.BytesIO()
                np.save(member, np.frombuffer(content, dtype=np.uint8))
                entry = zipfile.ZipInfo(name + ".npy", date_time=(1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, member.getvalue())
