#pragma once
// Kernels as users trace them, written with the builder: for tests of kernels as calls.
#include <string>
#include <utility>
#include <vector>

#include "graph/calls/kernel_call.h"

namespace weft::graph::testing {

using ProgramRef = std::shared_ptr<const KernelProgram>;

/// Elements that a program of these kernels works on.
inline constexpr int64_t kernel_tile = 8;

struct KernelBlock {
  kernel::Builder b;
  kernel::Value first = kernel::no_value, left = kernel::no_value;  // its first element, and how many there are from it

  explicit KernelBlock(const std::string& name) : b(name) {}
  void begin(int64_t elements) {
    first = b.mul(b.program_id(), b.index(kernel_tile));
    left = b.sub(b.index(elements), first);
  }
  kernel::Value load(kernel::Ref ref) { return b.load(ref, first, {kernel_tile}, {1}, {left}); }
  void store(kernel::Ref ref, kernel::Value v) { b.store(ref, v, first, {1}, {left}); }
};

inline int64_t kernel_programs(int64_t elements) { return (elements + kernel_tile - 1) / kernel_tile; }

/// y = a * x + b, element by element; b has no axes.
inline ProgramRef affine_program(const Shape& shape, Dtype dtype, double a, const std::string& name = "affine") {
  const int64_t elements = num_elements(shape);
  KernelBlock k(name);
  const kernel::Ref x = k.b.param("x", dtype, false), b = k.b.param("b", dtype, false), y = k.b.param("y", dtype, true);
  k.begin(elements);
  const kernel::Value shift = k.b.broadcast(k.b.load(b, k.b.index(0), {}, {}), {kernel_tile});
  const kernel::Value factor = k.b.constant(
      dtype, is_float(dtype) ? Number::of_real(a) : Number::of_int(static_cast<int64_t>(a)), {kernel_tile});
  k.store(y, k.b.add(k.b.mul(k.load(x), factor), shift));
  return kernel_program(
      {k.b.finish(),
       {{KernelUse::in, {shape, dtype}}, {KernelUse::in, {{}, dtype}}, {KernelUse::out, {shape, dtype}}},
       kernel_programs(elements)});
}

/// Adds x to state in place, and gives what state was: results (state, before). The parameters lie in another order
/// than the node's inputs and results.
inline ProgramRef accumulate_program(const Shape& shape, Dtype dtype, const std::string& name = "accumulate") {
  const int64_t elements = num_elements(shape);
  KernelBlock k(name);
  const kernel::Ref state = k.b.param("state", dtype, true), x = k.b.param("x", dtype, false),
                    before = k.b.param("before", dtype, true);
  k.begin(elements);
  const kernel::Value was = k.load(state);
  k.store(before, was);
  k.store(state, k.b.add(was, k.load(x)));
  return kernel_program(
      {k.b.finish(),
       {{KernelUse::in_out, {shape, dtype}}, {KernelUse::in, {shape, dtype}}, {KernelUse::out, {shape, dtype}}},
       kernel_programs(elements)});
}

/// Takes rows of a table by their numbers, clamped, one a program, and doubles them: x [rows, width], ids [count].
inline ProgramRef doubled_rows_program(int64_t rows, int64_t width, int64_t count) {
  kernel::Builder b("doubled_rows");
  const kernel::Ref x = b.param("x", float32, false), ids = b.param("ids", int32, false),
                    y = b.param("y", float32, true);
  const kernel::Value program = b.program_id();
  const kernel::Value id = b.min(b.max(b.cast(b.load(ids, program, {}, {}), int64), b.index(0)), b.index(rows - 1));
  const kernel::Value lanes = b.arange(kernel_tile), limit = b.constant(int64, Number::of_int(width), {kernel_tile});
  const auto row = [&](kernel::Value r) { return b.add(b.broadcast(b.mul(r, b.index(width)), {kernel_tile}), lanes); };
  const kernel::Value mask = b.lt(lanes, limit);
  const kernel::Value v = b.gather(x, row(id), mask);
  b.scatter(y, b.add(v, v), row(program), mask);
  return kernel_program({b.finish(),
                         {{KernelUse::in, {{rows, width}, float32}},
                          {KernelUse::in, {{count}, int32}},
                          {KernelUse::out, {{count, width}, float32}}},
                         count});
}

}  // namespace weft::graph::testing
