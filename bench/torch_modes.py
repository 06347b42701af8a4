"""Times PyTorch in each of its modes: eager, torch.compile, and reduce-overhead, which replays a captured CUDA graph.
PyTorch has no such graphs on a CPU, where reduce-overhead is what torch.compile is, and is not measured."""
import json
import math
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.mkdtemp())

import torch


def modes_on(device):
    return ("eager", "compile", "reduce-overhead") if device == "cuda" else ("eager", "compile")


def in_mode(function, mode):
    """The function, compiled where the mode says so."""
    if mode == "eager":
        return function
    torch._dynamo.reset()
    return torch.compile(function, dynamic=False, mode="reduce-overhead" if mode == "reduce-overhead" else None)


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(call, device):
    start = time.perf_counter()
    call()
    wait(device)
    return time.perf_counter() - start


def repetitions(once, total, least, most):
    return int(min(max(total / max(once, 1e-9), least), most))


def median_ms(call, device, each_waited=False):
    """Milliseconds of a call. On a GPU calls are issued in bursts without waiting, as `weft bench` issues them, unless
    each is to be waited for; on a CPU each call is timed."""
    for _ in range(3):
        seconds_of(call, device)
    once = seconds_of(call, device)
    if device == "cpu" or each_waited:
        return 1e3 * statistics.median(seconds_of(call, device) for _ in range(repetitions(once, 2, 7, 100)))
    burst, times = repetitions(once, 0.05, 2, 100), []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(burst):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / burst)
    return statistics.median(times)


def say(bench, **row):
    rounded = {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}
    print(json.dumps({"bench": bench, "peer": "torch", "torch": torch.__version__, **rounded}), flush=True)


def best_of(name, device, modes, make, each_waited=False):
    """Times make(mode)() in every mode and returns {"mode": the fastest, "ms": its time, "eager_ms": …}. A mode that
    PyTorch refuses is named on standard error and left out."""
    row = {}
    for mode in modes:
        try:
            call = make(mode)
            first = seconds_of(call, device)
            row[f"{mode}_ms"] = median_ms(call, device, each_waited)
        except Exception as error:  # torch.compile raises errors of many kinds
            print(f"{name}, {mode}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
            continue
        if row[f"{mode}_ms"] <= row.get("ms", math.inf):
            row.update(mode=mode, ms=row[f"{mode}_ms"], first_step_s=first)
    return row


def prepare(device, threads):
    """Products of float32 may be rounded to TF32 where a row of the table says so (`numerics`)."""
    torch.backends.cudnn.benchmark = True
    if threads and device == "cpu":
        torch.set_num_threads(threads)


def numerics(dtype):
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = dtype == "tf32"


def add_options(parser, device_sizes=("gpu", "cpu", "tiny")):
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sizes", choices=device_sizes, help="the sizes of another device than --device")
    parser.add_argument("--threads", type=int, help="of the CPU (default: PyTorch's)")
    parser.add_argument("--modes", nargs="+", choices=("eager", "compile", "reduce-overhead"),
                        help="measure these alone")
