#!/usr/bin/env python3
"""Writes tests/mlx/golden: MLX's results, which the tests of tests/mlx hold Weft to without MLX being there.

    pip install mlx==0.32.4 && scripts/mlx_golden.py    # writes all files
    scripts/mlx_golden.py quantized                     # writes one file
    scripts/mlx_golden.py --show exp/float32            # prints cases whose name contains a text

What is computed stands in tests/mlx/generate. A second run on one machine writes the same bytes; on another, MLX's
last bits may differ, which the tests' bounds allow.
"""

import argparse
import io
import json
import pathlib
import sys
import zipfile

import numpy as np

MLX_VERSION = "0.32.4"
ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "mlx"


def title(case):
    return case.get("name") or "/".join(case[k] for k in ("kind", "op", "dtype", "layout"))


def show(text):
    for path in sorted((ROOT / "golden").glob("*.npz")):
        with zipfile.ZipFile(path) as archive:
            cases, data = (np.load(io.BytesIO(archive.read(n + ".npy"))).tobytes() for n in ("cases", "data"))
        for case in map(json.loads, cases.decode().splitlines()):
            if text not in title(case):
                continue
            print(f"{path.name}: {title(case)}")
            for role in ("in", "out"):
                for dtype, shape, offset in case.get(role, []):
                    count = int(np.prod(shape))
                    stored = np.dtype("uint16" if dtype == "bfloat16" else dtype)
                    values = np.frombuffer(data, stored, count, offset)
                    if dtype == "bfloat16":
                        values = (values.astype(np.uint32) << 16).view(np.float32)
                    print(f"  {role:3} {dtype}{tuple(shape)}", np.array2string(values, max_line_width=140))
            if "throws" in case:
                print("  throws", case["throws"], "-", case.get("message", "a mistake, whose text is not kept"))


def generate(wanted):
    sys.path.insert(0, str(ROOT))
    import mlx.core as mx

    if mx.__version__ != MLX_VERSION:
        sys.exit(f"mlx_golden: these files are of MLX {MLX_VERSION}; this is {mx.__version__}")
    mx.set_default_device(mx.cpu)
    from generate import FILES
    from generate.store import Store

    (ROOT / "golden").mkdir(exist_ok=True)
    for name, modules in FILES.items():
        if wanted and name not in wanted:
            continue
        store = Store()
        for module in modules:
            module.generate(store)
        path = ROOT / "golden" / (name + ".npz")
        store.write(path)
        threw = sum("throws" in c for c in store.cases)
        print(f"{path.name}: {len(store.cases)} cases, {threw} of which throw, {path.stat().st_size} bytes")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--show", metavar="TEXT", help="print the cases whose name contains TEXT")
    arguments.add_argument("files", nargs="*", metavar="FILE", help="the files to write, without .npz; all by default")
    given = arguments.parse_args()
    show(given.show) if given.show else generate(given.files)
