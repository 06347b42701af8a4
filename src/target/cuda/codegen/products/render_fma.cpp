// Renders exact products of float32: fused multiply-adds over operands in shared memory.
#include <fmt/format.h>

#include <numeric>
#include <string>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Value;

/// The rows of A, or the columns of B, that a thread reads: number i is `first` + `step`, of which only `first` depends
/// on the thread. Columns come in pairs of neighbours.
struct Lines {
  int64_t count;
  std::string first, step;
  bool pairs;
};

/// Returns the bytes from the beginning of an operand to the element at a line and at `k`, which begins a chunk where
/// chunks run along k. Both are constants, or neither: lines are padded, so that addresses are sums.
static std::string bytes_of(const Operand& x, const std::string& line, const std::string& k) {
  return x.depth_inside ? fmt::format("(({}) * {} + ({}) / 4) * 16", line, x.chunks(), k)
                        : fmt::format("({}) * {} + ({}) * 4", k, x.chunks() * 16, line);
}

/// Returns the statement that reads all lines of a thread, at `from`, into `to`: step `k`, and the three behind it
/// where they follow each other in memory.
static std::string read(const Operand& x, const std::string& from, const std::string& to, const Lines& lines) {
  const std::string at = fmt::format("{} + ({})", from, bytes_of(x, lines.step, "k"));
  if (x.depth_inside)
    return fmt::format("EACH (int i = 0; i < {}; ++i) *(W16*){}[i] = *(const W16*)({});", lines.count, to, at);
  if (!lines.pairs)
    return fmt::format("EACH (int i = 0; i < {}; ++i) {}[i][0] = *(const f32*)({});", lines.count, to, at);
  return fmt::format(
      "EACH (int i = 0; i < {0}; i += 2) {{ alignas(8) f32 z[2]; *(W8*)z = *(const W8*)({1}); {2}[i][0] = z[0]; "
      "{2}[i + 1][0] = z[1]; }}",
      lines.count, at, to);
}

/// Renders an exact product of float32 by fused multiply-adds, over the fragments that tensor cores would leave: a
/// thread has two rows and two columns of each. Each sum takes the steps along k in their order.
///
/// Sixteen steps are unrolled: the assembler reads ahead within them. With 32 a product of 64 sums a thread is slower
/// (4096³ in slices of 32 on an H200: 35.8 TFLOP/s in place of 39.4), probably for the size of its code. Addresses
/// begin at a number that the compiler cannot take apart, and go on by constants, which instructions hold: NVRTC adds
/// the constant to the thread's part otherwise, and both to the stage's at each load.
void Renderer::product_by_fma(const Product& p) {
  const Value result = p.result();
  each(result, at(p.start()));
  const auto [a, b] = stage_operands(p, "");
  const Layout& s = p.layout;
  const int64_t rows = s.row_fragments() * 2, columns = s.column_fragments() * 2, depth = type(p.dot->args[0]).dims[1],
                unrolled = std::gcd(depth, 16);
  open("");
  const Lines of_a{rows, "(t >> 2 & 7) + " + s.first_row("0"), "(i >> 1) * 16 + (i & 1) * 8", false},
      of_b{columns, s.first_column() + " + (t & 3) * 2", "(i >> 1) * 8 + (i & 1)", true};
  const auto begin = [&](const char* name, const Operand& x, const std::string& from, const Lines& lines) {
    add(fmt::format("const u8* const {} = shared + opaque((int)({} - shared_address(shared)) + {});", name, from,
                    bytes_of(x, lines.first, "0")));
  };
  begin("a", p.a, a, of_a);
  begin("b", p.b, b, of_b);
  add(fmt::format("alignas(16) f32 x[{}][4], y[{}][4];", rows, columns));
  if (unrolled < depth) open(fmt::format("for (int m = 0; m < {}; m += {})", depth, unrolled));
  open(fmt::format("EACH (int n = 0; n < {}; ++n)", unrolled));
  add(unrolled < depth ? "const int k = m + n;" : "const int k = n;");
  const auto operand = [&](const Operand& x, const std::string& text) {
    add(x.depth_inside ? "if (n % 4 == 0) " + text : text);
  };
  operand(p.a, read(p.a, "a", "x", of_a));
  operand(p.b, read(p.b, "b", "y", of_b));
  const auto step = [](const Operand& x) { return x.depth_inside ? "n % 4" : "0"; };
  const std::string sum =
      fmt::format("{}[((i >> 1) * {} + (j >> 1)) * 4 + (i & 1) * 2 + (j & 1)]", fresh(result), columns / 2);
  const std::string numbers[] = {fmt::format("x[i][{}]", step(p.a)), fmt::format("y[j][{}]", step(p.b)), sum};
  add(fmt::format("EACH (int i = 0; i < {}; ++i) EACH (int j = 0; j < {}; ++j) {} = {};", rows, columns, sum,
                  expression(kernel::ScalarOp::fma, float32, numbers)));
  close();
  if (unrolled < depth) close();
  close();
}

}  // namespace weft::target::cuda
