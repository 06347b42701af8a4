#!/usr/bin/env python3
"""Holds every include of the tree against the layers of docs/design.md, and every file against its length.

usage: check_layers.py [ROOT]

A layer sees itself and what is below it. Public headers belong to the layer that implements them (PUBLIC). External
headers stay where THIRD_PARTY says. Prints one line for each breach and exits with 1 where there is one.
"""
import re
import sys
from pathlib import Path

MAX_LINES = 600
MAX_FILES = 24  # of a folder of src

# Bottom to top; the layers of one line do not see each other. `target` is the contract that all targets share.
LAYERS = [
    ["base"],
    ["runtime"],
    ["dist"],
    ["kernel"],
    ["target"],
    ["kernels"],
    ["target/null", "target/cpu", "target/cuda"],
    ["graph"],
    ["compiler"],
    ["array"],
    ["transforms"],
    ["io"],
    ["text"],
    ["data"],
    ["optim"],
    ["nn"],
    ["c"],
    ["models"],
    ["examples"],  # their ladders of kernels are what `weft bench ladder` times
    ["tools", "python", "bench"],
]
# The folders of a layer, bottom to top; "" is the layer's own folder. As with layers, a folder sees itself and those
# below it, and the folders of one line do not see each other. A file of the layer's own folder that stands higher than
# the others is listed as "STEM.*".
FOLDERS = {
    "kernel": [["forms"], [""], ["code", "describe", "expand", "family", "lanes", "rules", "steps", "text"],
               ["interpreter"], ["operators"], ["routines", "legalize"], ["language"], ["derive"]],
    "target/cpu": [["codegen", "routines"], ["libraries", "linalg"], [""]],
    "target/cuda": [["driver"], ["codegen/text"], ["codegen"], ["codegen/general"], ["codegen/products"],
                    ["handwritten/convolution"], ["handwritten"], ["libraries"], [""]],
    "graph": [[""], ["calls", "regions"], ["complex"], ["derive"], ["control"], ["ops", "walks"]],
    "compiler": [[""], ["ir"], ["layout", "rewrite", "user_kernels"], ["region"], ["schedule"], ["schedule/steps"],
                 ["fusion"], ["lower"], ["lower/loops", "lower/dot", "lower/attention"], ["tune"], ["plan"],
                 ["pipeline.*"], ["program"], ["eager"]],
    "array": [[""], ["ops", "routines", "einsum"]],
    "io": [[""], ["gguf", "program", "torch"]],
}
RANK = {layer: rank for rank, layers in enumerate(LAYERS) for layer in layers}

# Public header -> its layer.
PUBLIC = {
    "api.h": "base", "shape.h": "base", "dtype.h": "base", "numerics.h": "base",
    **{f"{name}.h": "kernel" for name in ("kernel", "kernel_async", "kernel_code", "kernel_group", "kernel_library")},
    **{f"kernel/library/{name}.h": "kernel" for name in ("grid", "loops", "merge", "rank", "scaled", "states")},
    **{f"kernel/{name}.h": "kernel" for name in ("atomics", "block", "debug", "erased", "erased_async", "fragments",
                                                 "functions", "lanes", "order", "packed", "programs", "random", "slice",
                                                 "tile")},
    "schedule/steps.h": "kernel", "schedule.h": "array",
    "array.h": "array", "device.h": "array", "memory.h": "array", "ops.h": "array", "random.h": "array",
    "fast.h": "array", "fft.h": "array", "linalg.h": "array",
    "einsum.h": "array", "indexing.h": "array", "stream.h": "array", "utils.h": "array", "backends.h": "array",
    "graph_utils.h": "array", "evaluation.h": "array",
    "interop.h": "array", "kernel_function.h": "array", "kernel_tuning.h": "array",
    "distributed.h": "array",
    **{f"ops/{name}.h": "array" for name in ("arithmetic", "comparison", "convolution", "creation", "indexing",
                                             "layout", "matmul", "ordering", "quantized", "reductions",
                                              "shape")},
    "transforms.h": "transforms", "compile.h": "transforms", "control.h": "transforms", "profile.h": "transforms",
    "tree.h": "transforms",
    "io.h": "io", "io/gguf.h": "io", "io/torch.h": "io", "export.h": "io", "text.h": "text",
    "data.h": "data", "optim.h": "optim",
    "optim/adaptive.h": "optim", "optim/optimizer.h": "optim", "optim/loss_scale.h": "optim",
    "optim/schedules.h": "optim", "optim/sgd.h": "optim", "nn.h": "nn",
    **{f"nn/{name}.h": "nn" for name in ("activations", "attention", "convolution", "distributed", "functions", "init",
                                         "layers", "losses", "module", "norms", "positional", "precision", "quantized",
                                         "recurrent", "transformer")}, "weft.h": "models",
    "c.h": "c",
    "c/operations.h": "c",
}

# (what the header's name looks like, its name in messages, the layers that may include it). Always in .cpp files only,
# except inside src/target.
THIRD_PARTY = [
    (re.compile(r"^(llvm|llvm-c|clang)/"), "LLVM", {"target/cpu"}),
    (re.compile(r"^(dnnl|oneapi/)"), "oneDNN", {"target/cpu"}),
    (re.compile(r"^Eigen/"), "Eigen", {"target/cpu"}),
    (re.compile(r"^omp\.h$"), "OpenMP", {"runtime"}),
    (re.compile(r"^(cuda|nvrtc|cublas|cudnn|nccl|cufft|cusolver)"), "CUDA", {"target/cuda"}),
    (re.compile(r"^link\.h$"), "the dynamic loader", {"target/cuda"}),
    (re.compile(r"^ucontext\.h$"), "fibers", {"target/cpu"}),
    (re.compile(r"^spawn\.h$"), "child processes", {"compiler"}),
    (re.compile(r"^nlohmann/"), "nlohmann-json", {"io", "text", "data", "models", "tools", "python", "bench"}),
    (re.compile(r"^nanobind/"), "nanobind", {"python"}),
    (re.compile(r"^fmt/"), "fmt", set(RANK)),
    (re.compile(r"^CLI/"), "CLI11", {"tools"}),
    (re.compile(r"^emmintrin\.h$"), "SSE2", {"tools"}),
    (re.compile(r"^zlib\.h$"), "zlib", {"io", "data"}),
    (re.compile(r"^benchmark/"), "Google Benchmark", {"bench"}),
]

C_STANDARD = ("stdbool.h", "stddef.h", "stdint.h")  # for the C interface

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def layer_of_public(name):
    """The layer of a public header; compat/mlx holds MLX's headers over all of Weft's."""
    return "models" if name.startswith("compat/mlx/") else PUBLIC.get(name)


def layer_of_file(path):
    """The layer of a file, by its path from the root; None where the path belongs to none."""
    parts = path.parts
    if parts[0] == "include":
        return layer_of_public("/".join(parts[2:]))
    if parts[0] == "src":
        return layer_of_folder(parts[1:-1])
    return parts[0] if parts[0] in RANK else None


def layer_of_folder(parts):
    for length in (2, 1):
        if "/".join(parts[:length]) in RANK and len(parts) >= length:
            return "/".join(parts[:length])
    return None


def layer_of_include(name):
    """The layer of a header of ours, "" for a header of nobody in this tree."""
    parts = name.split("/")
    if parts[0] == "weft":
        return layer_of_public("/".join(parts[1:]))
    return layer_of_folder(parts[:-1]) or ""


def may_see(layer, other):
    """Whether a file of `layer` may include a header of `other`."""
    return layer == other or RANK[other] < RANK[layer]


def folder_rank(layer, folder):
    """The rank of a folder of `layer`; None where the layer does not list it."""
    return next((rank for rank, folders in enumerate(FOLDERS[layer]) if folder in folders), None)


def folder_of(layer, path):
    """The folder of a file inside its layer, or the file itself, as "STEM.*", where FOLDERS lists it."""
    inside = path.relative_to(layer)
    alone = inside.with_suffix(".*").as_posix()
    return alone if folder_rank(layer, alone) is not None else inside.parent.as_posix().removeprefix(".")


def check_folders(layer, path, name):
    """What is wrong with an include inside a layer that has folders; None where nothing is."""
    if layer not in FOLDERS or not path.as_posix().startswith(f"src/{layer}/"):
        return None
    own, other = (folder_of(layer, Path(p)) for p in (path.relative_to("src"), name))
    ranks = folder_rank(layer, own), folder_rank(layer, other)
    if None in ranks:
        return f"{layer}/{own if ranks[0] is None else other} is not known: enter it in FOLDERS of check_layers.py"
    if own == other or ranks[1] < ranks[0]:
        return None
    return f"{layer}/{own} includes {name}, which is above or beside it"


def third_party(path, layer, name):
    """What is wrong with an external include; None where nothing is."""
    for pattern, label, layers in THIRD_PARTY:
        if not pattern.match(name):
            continue
        if layer not in layers:
            return f"{label} belongs in {', '.join(sorted(layers))} only"
        if path.suffix == ".h" and not layer.startswith("target/") and layer != "python":
            return f"{label} must not be included by a header"
        return None
    is_standard = "/" not in name and "." not in name or layer == "c" and name in C_STANDARD
    is_system = re.match(r"^(sys/|sched\.h|unistd\.h|fcntl\.h|cxxabi\.h|dlfcn\.h|pthread\.h|immintrin\.h|x86intrin\.h|"
                         r"sanitizer/|signal\.h|termios\.h|poll\.h)", name)
    if is_standard:
        return None
    if is_system:
        return "a public header includes the C++ standard library only" if path.parts[0] == "include" else None
    return "is not known to this check: enter it in THIRD_PARTY"


def check_file(root, path):
    """All breaches of one file."""
    text = (root / path).read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield f"{path}: {lines} lines are more than {MAX_LINES}: a file is one idea"
    layer = layer_of_file(path)
    if layer is None:
        yield f"{path}: belongs to no layer: enter it in check_layers.py"
        return
    for match in INCLUDE.finditer(text):
        name, place = match.group(2), f"{path}:{text.count(chr(10), 0, match.start(2)) + 1}"
        other = layer_of_include(name)
        if other is None:
            yield f"{place}: {name} is in no layer: enter it in PUBLIC of check_layers.py"
        elif other == "":
            beside = (root / path).parent / name
            if match.group(1) == '"' and beside.exists():
                continue
            problem = third_party(path, layer, name)
            if problem:
                yield f"{place}: {name}: {problem}"
        elif not may_see(layer, other):
            yield f"{place}: {layer} includes {name} of {other}, which is above or beside it"
        elif layer == other and not name.startswith("weft/") and check_folders(layer, path, name):
            yield f"{place}: {check_folders(layer, path, name)}"
        elif path.parts[0] == "include" and not name.startswith("weft/"):
            yield f"{place}: a public header includes {name}, which is not installed"


def full_folders(files):
    """The folders of src that hold more files than a reader takes in."""
    counts = {}
    for path in files:
        counts[path.parent] = counts.get(path.parent, 0) + 1
    for folder, count in sorted(counts.items()):
        if folder.parts[0] == "src" and count > MAX_FILES:
            yield f"{folder}: {count} files are more than {MAX_FILES}: cut it by mechanism"


def layers_of_build(root):
    """WEFT_LAYERS of the build must be in this order too."""
    cmake = root / "cmake" / "WeftLayers.cmake"
    if not cmake.exists():
        return
    listed = re.search(r"set\(WEFT_LAYERS ([^)]*)\)", cmake.read_text()).group(1).split()
    unknown = [layer for layer in listed if layer not in RANK]
    if unknown:
        yield f"cmake/WeftLayers.cmake: layers unknown to check_layers.py: {', '.join(unknown)}"
    elif [RANK[layer] for layer in listed] != sorted(RANK[layer] for layer in listed):
        yield "cmake/WeftLayers.cmake: WEFT_LAYERS is not in the order of the layers"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    folders = ("include", "src", "models", "tools", "python", "examples", "bench")
    files = sorted(path.relative_to(root) for folder in folders
                   for path in (root / folder).rglob("*") if path.suffix in (".h", ".cpp"))
    breaches = list(layers_of_build(root)) + list(full_folders(files))
    for path in files:
        breaches += check_file(root, path)
    for path in sorted(p.relative_to(root) for p in (root / "tests").rglob("*") if p.suffix in (".h", ".cpp")):
        lines = (root / path).read_text(encoding="utf-8").count("\n")
        if lines > MAX_LINES:
            breaches.append(f"{path}: {lines} lines are more than {MAX_LINES}: a file is one idea")
    for breach in breaches:
        print(breach)
    print(f"{len(files)} files, {len(breaches)} breaches")
    return 1 if breaches or not files else 0


if __name__ == "__main__":
    sys.exit(main())
