// Renders kernel::Op::matmul, a matrix product on tensor cores. Asynchronous copies of 16 bytes fill a ring of K slices
// in shared memory some slices ahead. The accumulators stay in registers and are stored to the local buffer at the end;
// the ring uses that buffer's memory before. There are two ways to multiply: warps that read fragments by ldmatrix
// (mma.sync, sm_80 and later), and warpgroups whose tensor cores read shared memory (wgmma, sm_90a) where K slices have
// depth 64 and the ring at least three stages. A warpgroup computes rows of the tile over all columns.
//
// A slice of an operand consists of lines along the axis that is contiguous in memory, in chunks of 16 bytes: [i][k],
// or [k][i], which is read transposed. Chunk c of line l is stored at c ^ (l mod 8) (swizzled<…> in the prelude), so
// that the same chunk of eight lines lies in different banks. For wgmma, lines are cut into panels of 128 bytes. A side
// that is computed is stored to the same positions (render_prologue.cpp).
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernel/rules.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::no_value;

std::string Renderer::MatmulSide::position() const {
  return panels ? fmt::format("in_panels<{}>", lines()) : fmt::format("swizzled<{}>", chunks());
}

std::string Renderer::MatmulSide::line_end() const {
  if (transposed) return whole_depth ? "" : "depth - k";
  return limit == no_value ? "" : fmt::format("{}_limit", name);
}

std::string Renderer::MatmulSide::inner_end() const {
  if (!transposed) return whole_depth ? "" : "depth - k";
  return limit == no_value ? "" : fmt::format("{}_limit", name);
}

Renderer::MatmulSide Renderer::matmul_side(const Inst& inst, bool right) {
  MatmulSide s{right ? "b" : "a", right ? inst.right : inst.left, inst.args[right ? 1 : 0], inst.args[right ? 3 : 2],
               kernel::matmul_dtype(kernel_, inst, right)};
  s.extent = inst.type.dims[right ? 1 : 0];
  s.depth = inst.schedule.depth;
  s.stride = inst.strides[right ? 3 : 0];
  s.depth_stride = inst.strides[right ? 2 : 1];
  s.panels = by_warpgroups(inst);
  s.whole_depth = divisor(inst.args[4]) % s.depth == 0;
  s.body = kernel::computed_side(inst, right);
  if (s.body) computed_side(inst, s);
  else s.transposed = s.stride == 1 && s.depth_stride != 1;
  s.asynchronous = !s.body && variant_.aligned && s.inner_stride() == 1 && s.line_stride() % s.per() == 0 &&
                   divisor(s.start) % s.per() == 0;
  check(threads_ % s.chunks() == 0, "cuda render", "a line of a matmul's side has more chunks than there are threads");
  return s;
}

int64_t Renderer::ring_bytes(const Inst& inst) const {
  return (by_warpgroups(inst) ? 1024 : 0) + inst.schedule.stages * (inst.type.dims[0] + inst.type.dims[1]) *
                                                inst.schedule.depth * kernel::matmul_dtype(kernel_, inst, false).size();
}

/// Renders what comes before the loop: which chunks a thread copies.
void Renderer::matmul_source(const MatmulSide& s) {
  const char* n = s.name;
  add(fmt::format("const int {0}_line = t / {1}, {0}_chunk = t % {1};", n, s.chunks()));
  add(fmt::format("const {0}* {1}_from = p{2} + {3} + {1}_line * {4}ll + {1}_chunk * {5}ll;", memory_type(s.ref), n,
                  s.ref, at(s.start), s.line_stride(), s.per() * s.inner_stride()));
  if (s.limit != no_value) add(fmt::format("const int {}_limit = (int)imin<i64>({}, {});", n, at(s.limit), s.extent));
}

/// Renders the body of `fill`: the copies of the slice that begins at `k` into `slot`.
void Renderer::matmul_copy(const MatmulSide& s, int64_t offset) {
  const std::string n = s.name;
  const int64_t at_once = threads_ / s.chunks(), iterations = std::max<int64_t>(1, s.lines() / at_once);
  const std::string enough =
      s.lines() < at_once ? fmt::format("if ({}_line < {}) ", n, s.lines()) : "";  // both are powers of two
  const std::string line = fmt::format("({}_line + i * {})", n, at_once),
                    to = fmt::format("slot + {} + {}({}, {}_chunk)", offset, s.position(), line, n);
  const std::string from = fmt::format("{}_from + i * {}ll", n, at_once * s.line_stride());
  const std::string line_end = s.line_end(), inner_end = s.inner_end();
  if (s.asynchronous) {
    std::string bytes = inner_end.empty() ? "16" : n + "_bytes";
    if (!inner_end.empty())
      add(fmt::format("const int {}_bytes = imax(0, imin(16, ({} - {}_chunk * {}) * {}));", n, inner_end, n, s.per(),
                      s.dtype.size()));
    if (!line_end.empty()) bytes = fmt::format("{} < {} ? {} : 0", line, line_end, bytes);
    add(fmt::format("{}EACH (int i = 0; i < {}; ++i) copy_async({}, {}{});", enough, iterations, to, from,
                    bytes == "16" ? "" : ", " + bytes));
  } else {
    open(fmt::format("{}_Pragma(\"unroll 1\") for (int i = 0; i < {}; ++i)", enough, iterations));
    add(fmt::format("alignas(16) {} x[{}];", memory_type(s.ref), s.per()));
    std::string guard;
    if (!line_end.empty()) guard = fmt::format("{} < {}", line, line_end);
    if (!inner_end.empty())
      guard += fmt::format("{}{}_chunk * {} + j < {}", guard.empty() ? "" : " && ", n, s.per(), inner_end);
    const std::string element = fmt::format("({})[j * {}ll]", from, s.inner_stride());
    add(fmt::format("EACH (int j = 0; j < {}; ++j) x[j] = {};", s.per(),
                    guard.empty() ? element : fmt::format("{} ? {} : ({})0", guard, element, memory_type(s.ref))));
    add(fmt::format("store_shared({}, *(const W16*)x);", to));
    close();
  }
  add(fmt::format("{}_from += {}ll;", n, s.depth * s.depth_stride));
}

/// Renders reading the fragments of one step along k. A: 16 x 16 (float32: 16 x 8), the lower half of k in the first
/// two of the four registers. B: four registers hold two adjacent column tiles, with the two k halves of each side by
/// side.
void Renderer::matmul_fragments(const MatmulSide& s, int64_t offset, int warp_extent, const std::string& first) {
  const bool right = s.name[0] == 'b', wide = s.dtype == float32;
  // `half` and `depth_half`: which half of i and of k a lane points at.
  const std::string half = right ? "(lane >> 4)" : "(lane >> 3 & 1)",
                    depth_half = right ? "(lane >> 3 & 1)" : "(lane >> 4)";
  const std::string space = fmt::format("slot + {}", offset), to = fmt::format("{}_part[step & 1][i]", s.name);
  open(fmt::format("EACH (int i = 0; i < {}; ++i)", warp_extent / 16));
  if (!s.transposed) {
    add(fmt::format("ldmatrix({}, {} + {}({} + i * 16 + {} * 8 + (lane & 7), step * 2 + {}));", to, space, s.position(),
                    first, half, depth_half));
  } else if (!wide) {
    add(fmt::format("ldmatrix_turned({}, {} + {}(step * 16 + {} * 8 + (lane & 7), {} / 8 + i * 2 + {}));", to, space,
                    s.position(), depth_half, first, half));
  } else {
    const std::string element =
        fmt::format("({} + i * 16 + ({}) * 8 + (lane >> 2))", first, right ? "q >> 1" : "q & 1");
    add(
        fmt::format("EACH (int q = 0; q < 4; ++q) {}[q] = load_shared({} + {}(step * 8 + ({}) * 4 + (lane & 3), {} / "
                    "4) + {} % 4 * 4);",
                    to, space, s.position(), right ? "q & 1" : "q >> 1", element, element));
  }
  if (wide) add(fmt::format("EACH (int q = 0; q < 4; ++q) {0}[q] = to_tf32({0}[q]);", to));
  close();
}

/// Renders the multiplication of one slice by warps. The fragments of the next step are read during the products of
/// this one.
void Renderer::matmul_by_warps(const Inst& inst, const MatmulSide& a, const MatmulSide& b) {
  const kernel::MatmulSchedule& how = inst.schedule;
  const int tall = how.rows / 16, broad = how.columns / 16;
  const int64_t steps = how.depth * a.dtype.size() / 32;
  const char* multiply = a.dtype == bfloat16 ? "mma_bf16" : a.dtype == float16 ? "mma_f16" : "mma_tf32";
  add(fmt::format("u32 a_part[2][{}][4], b_part[2][{}][4];", tall, broad));
  open("const auto fragments = [&](const int step)");
  matmul_fragments(a, 0, how.rows, "row");
  matmul_fragments(b, a.bytes(), how.columns, "column");
  --indent_, add("};");
  add("fragments(0);");
  open(fmt::format("EACH (int step = 0; step < {}; ++step)", steps));
  add(fmt::format("if (step + 1 < {}) fragments(step + 1);", steps));
  add(
      fmt::format("EACH (int i = 0; i < {}; ++i) EACH (int j = 0; j < {}; ++j) {}(sum[i][j], a_part[step & 1][i], "
                  "b_part[step & 1][j >> 1][j % 2 * 2], b_part[step & 1][j >> 1][j % 2 * 2 + 1]);",
                  tall, 2 * broad, multiply));
  close();
}

/// Renders the multiplication of one slice by warpgroups, each with a multiple of 64 rows of A and all columns. The
/// wait for it comes one slice later, behind what a thread does for the next slice.
void Renderer::matmul_by_warpgroups(const Inst& inst, const MatmulSide& a, const MatmulSide& b) {
  // Matrix descriptor (PTX ISA, wgmma, 128-byte swizzle): the address, and the strides between panels and between
  // groups of eight lines, in units of 16 bytes.
  const auto matrix = [](const MatmulSide& s, const std::string& at) {
    const uint64_t panels = s.transposed ? static_cast<uint64_t>(s.depth) * 128 / 16 : 1;
    return fmt::format("((u64)(({}) >> 4) | {:#x}ull)", at, panels << 16 | uint64_t{64} << 32 | uint64_t{1} << 62);
  };
  const int64_t blocks = inst.type.dims[0] / 64 / (threads_ / 128), columns = inst.type.dims[1], sums = columns / 2;
  add(fmt::format("const u64 a_matrix = {}, b_matrix = {};", matrix(a, fmt::format("slot + group * {}", blocks * 8192)),
                  matrix(b, fmt::format("slot + {}", a.bytes()))));
  add("wgmma_fence();");
  const char* type = a.dtype == bfloat16 ? "bf16" : "f16";
  std::string registers, operands;
  for (int64_t r = 0; r < sums; ++r) {
    registers += fmt::format("{}%{}", r ? ", " : "", r);
    operands += fmt::format("{}\"+f\"(sum[i][{}][{}])", r ? ", " : "", r / 4, r % 4);
  }
  // 64 rows have 8192 bytes. A step of 16 along k is 32 bytes of a line, or two groups of eight lines.
  add(fmt::format(
      "EACH (int step = 0; step < {}; ++step) EACH (int i = 0; i < {}; ++i) asm volatile(\"{{.reg .pred p; "
      "setp.ne.b32 p, 1, 0; "
      "wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, %{}, %{}, p, 1, 1, {}, {};}}\" : {} : "
      "\"l\"(a_matrix + i * 512 + step * {}), \"l\"(b_matrix + step * {}) : \"memory\");",
      inst.schedule.depth / 16, blocks, columns, type, type, registers, sums, sums + 1, a.transposed ? 1 : 0,
      b.transposed ? 1 : 0, operands, a.transposed ? 128 : 2, b.transposed ? 128 : 2));
  add("wgmma_commit();");
}

bool Renderer::by_warpgroups(const Inst& inst) const {
  const int64_t rows = inst.type.dims[0], columns = inst.type.dims[1],
                groups = inst.type.size() / (inst.schedule.rows * inst.schedule.columns) / 4;
  return features_.warpgroups && kernel::matmul_dtype(kernel_, inst, false).size() == 2 && inst.schedule.depth == 64 &&
         inst.schedule.stages > 2 && groups > 0 && rows % (64 * groups) == 0 && columns >= 64 && columns <= 256 &&
         rows / groups / 64 * columns <= 256;
}

/// Renders the functions that bring a slice into the ring: `fill` copies the sides that lie in memory, and each
/// computed side has a function that loads and one that makes it.
void Renderer::matmul_functions(const MatmulSide& a, const MatmulSide& b) {
  for (const MatmulSide* s : {&a, &b}) s->body ? prologue_source(*s) : matmul_source(*s);
  if (!a.body || !b.body) {
    open("const auto fill = [&](const int k, const u32 slot)");
    if (!a.body) matmul_copy(a, 0);
    if (!b.body) matmul_copy(b, a.bytes());
    --indent_, add("};");
  }
  for (const MatmulSide* s : {&a, &b}) {
    if (!s->body) continue;
    prologue_load(*s);
    prologue_make(*s, s == &a ? 0 : a.bytes());
  }
}

/// Renders the loop over K slices, with the copies some slices ahead.
void Renderer::matmul_loop(const Inst& inst, const MatmulSide& a, const MatmulSide& b) {
  const kernel::MatmulSchedule& how = inst.schedule;
  const bool groups = by_warpgroups(inst), copies = !a.body || !b.body, makes = a.body || b.body;
  const int ahead = how.stages - (groups ? 2 : 1);  // slices in flight; warpgroups still read one more
  const int64_t stage = a.bytes() + b.bytes(), last = (how.stages - 1) * stage;
  const auto computed = [&](const char* step, const std::string& arguments) {
    std::string calls;
    for (const MatmulSide* s : {&a, &b})
      if (s->body) calls += fmt::format("{}{}_{}({})", calls.empty() ? "" : ", ", s->name, step, arguments);
    return calls;
  };
  sync();  // all reads of earlier data in the ring's memory are done
  if (copies) {
    open(fmt::format("EACH (int s = 0; s < {}; ++s)", ahead));
    add(fmt::format("if (s * {} < depth) fill(s * {}, ring + s * {});", how.depth, how.depth, stage));
    add("commit_copies();");
    close();
  }
  if (makes) {
    add(fmt::format("if (0 < depth) {}, {};", computed("load", "0"), computed("make", "0, ring")));
    add(fmt::format("if ({} < depth) {};", how.depth, computed("load", std::to_string(how.depth))));
  }
  add(fmt::format("u32 slot = ring, next = ring + {};", ahead * stage));
  open(fmt::format("for (int k = 0; k < depth; k += {})", how.depth));
  if (copies) add(fmt::format("wait_copies<{}>();", ahead - 1));
  if (groups) add("fence_for_wgmma();");
  sync();
  if (copies) {
    add(fmt::format("if (k + {0} < depth) fill(k + {0}, next);", ahead * how.depth));
    add("commit_copies();");
  }
  if (groups) matmul_by_warpgroups(inst, a, b);
  else matmul_by_warps(inst, a, b);
  if (makes) {
    const int64_t d = how.depth;
    add(fmt::format("const u32 after = slot == ring + {} ? ring : slot + {};", last, stage));
    add(fmt::format("if (k + {} < depth) {};", d, computed("make", fmt::format("k + {}, after", d))));
    add(fmt::format("if (k + {} < depth) {};", 2 * d, computed("load", fmt::format("k + {}", 2 * d))));
  }
  if (groups) add("wgmma_wait<1>();");
  add(fmt::format("slot = slot == ring + {0} ? ring : slot + {1}, next = next == ring + {0} ? ring : next + {1};", last,
                  stage));
  close();
  if (groups) add("wgmma_wait<0>();");
  if (copies) add("wait_copies<0>();");
  sync();
}

void Renderer::matmul(const Inst& inst) {
  const kernel::MatmulSchedule& how = inst.schedule;
  const MatmulSide a = matmul_side(inst, false), b = matmul_side(inst, true);
  const bool groups = by_warpgroups(inst);
  const int warps_across = static_cast<int>(inst.type.dims[1] / how.columns),
            blocks = static_cast<int>(inst.type.dims[0] / 64) * 128 / threads_;
  const int tall = groups ? blocks : how.rows / 16,
            broad = groups ? static_cast<int>(inst.type.dims[1] / 8) : how.columns / 8;

  open("");
  add(fmt::format("const u32 ring = shared_address({}){};", buffer(inst.ref), groups ? " + 1023u & ~1023u" : ""));
  add(fmt::format("const int depth = (int){}, lane = t & 31;", at(inst.args[4])));
  if (groups)
    add(fmt::format(
        "const int group = __shfl_sync(0xffffffffu, t / 128, 0), row = group * {} + t / 32 % 4 * 16, column = 0;",
        blocks * 64));
  else
    add(fmt::format("const int row = t / {} * {}, column = t / 32 % {} * {};", 32 * warps_across, how.rows,
                    warps_across, how.columns));
  matmul_functions(a, b);
  add(fmt::format("f32 sum[{}][{}][4];", tall, broad));
  add(fmt::format(
      "EACH (int i = 0; i < {}; ++i) EACH (int j = 0; j < {}; ++j) EACH (int q = 0; q < 4; ++q) sum[i][j][q] = 0.0f;",
      tall, broad));
  matmul_loop(inst, a, b);
  open(fmt::format("EACH (int i = 0; i < {}; ++i) EACH (int j = 0; j < {}; ++j) EACH (int h = 0; h < 2; ++h)", tall,
                   broad));
  add(
      fmt::format("*(W8*)({} + (row + i * {} + h * 8 + (lane >> 2)) * {} + column + j * 8 + (lane & 3) * 2) = *(const "
                  "W8*)(sum[i][j] + h * 2);",
                  buffer(inst.ref), groups ? 64 : 16, inst.strides[4]));
  close();
  sync();
  close();
}

}  // namespace weft::target::cuda
