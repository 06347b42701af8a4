"""Arrays by the name of a case, in one compressed file: what mlx computed. An outcome that is text is the class of an
exception."""

import json
from pathlib import Path

import numpy as np


def outcome(mx, call):
    """The results of a call as NumPy arrays (bfloat16 as float32) with their dtypes, or the class of what it raises."""
    try:
        results = call()
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        mx.eval(results)
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        return type(error).__name__
    named = [(str(x.dtype).rsplit(".", 1)[-1], x) for x in results]
    return [(d, np.array(x.astype(mx.float32) if d == "bfloat16" else x)) for d, x in named]


def save(path, outcomes):
    """Writes outcomes by name. A second run writes the same bytes."""
    index, pieces = {}, []
    for name, found in outcomes.items():
        index[name] = found if isinstance(found, str) else [[d, str(v.dtype), list(v.shape)] for d, v in found]
        if not isinstance(found, str):
            pieces += [np.ascontiguousarray(v).tobytes() for _, v in found]
    text = np.frombuffer(json.dumps(index).encode(), np.uint8)
    np.savez_compressed(path, index=text, data=np.frombuffer(b"".join(pieces), np.uint8))
    print(len(index), "cases,", Path(path).stat().st_size, "bytes")


def load(path):
    """The outcomes by name."""
    with np.load(path) as file:
        index, data = json.loads(file["index"].tobytes()), file["data"].tobytes()
    outcomes, at = {}, 0
    for name, found in index.items():
        if isinstance(found, str):
            outcomes[name] = found
            continue
        outcomes[name] = []
        for dtype, stored, shape in found:
            values = np.frombuffer(data, stored, int(np.prod(shape)), at).reshape(shape)
            at += values.nbytes
            outcomes[name].append((dtype, values))
    return outcomes
