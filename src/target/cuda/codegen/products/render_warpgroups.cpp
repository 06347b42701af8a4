// Renders products by warpgroups: the tensor cores read operands from shared memory, where they lie in panels of
// swizzled lines, or A from the registers that another product left.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "target/cuda/codegen/renderer.h"
#include "target/cuda/codegen/text/wgmma.h"

namespace weft::target::cuda {

namespace {

/// What of an operand in shared memory a matrix descriptor says, and how far apart its parts are, in units of 16 bytes.
struct Matrix {
  int64_t panels = 1, groups = 0;  // between panels, and between groups of eight lines
  int lines = 1;                   // their width, as descriptors have it
  std::string step;                // of 32 bytes along k, as text of `k`
  int64_t block = 0;               // between 64 rows of A
};

Matrix matrix_of(const Operand& x) {
  const int64_t panel = x.panel, whole = x.lines * panel;  // units of a panel
  Matrix out;
  out.groups = 8 * panel, out.lines = panel == 8 ? 1 : panel == 4 ? 2 : 3;
  if (x.depth_inside) {
    out.step = panel == 2 ? fmt::format("k * {}", whole) : fmt::format("k / {0} * {1} + k % {0} * 2", panel / 2, whole);
    out.block = 64 * panel;
  } else {
    out.panels = whole, out.step = fmt::format("k * {}", 16 * panel);
    out.block = 8 / panel * whole;
  }
  return out;
}

/// Returns the type by which kernels choose a form of `wgmma`.
std::string tag_of(const Wgmma& f) {
  std::string operands = operand_name(f.operands);
  operands[0] = static_cast<char>(std::toupper(operands[0]));
  return fmt::format("Wgmma<{}, {}, {}, {}>", operands, f.columns, f.a_m_major, f.b_n_major);
}

/// Returns the definition of `wgmma` for one form.
std::string definition_of(const Wgmma& f) {
  const std::string guard = fmt::format("WGMMA_{}_{}_{}{}{}", operand_name(f.operands), f.columns,
                                        f.a_in_registers ? "r" : "", f.a_m_major ? 1 : 0, f.b_n_major ? 1 : 0);
  return fmt::format(
      "#if defined(__CUDACC__) && !defined({0})\n#define {0}\n"
      "FN void wgmma({1}, {2}* c, {3} a, const u64 b, const int accumulate) {{\n{4}}}\n#endif\n",
      guard, tag_of(f), is_integer(f.operands) ? "i32" : "f32", f.a_in_registers ? "const u32*" : "const u64",
      wgmma_statement(f, [](int64_t r) { return fmt::format("c[{}]", r); }));
}

}  // namespace

/// Renders the registers of A, as another product left them: x[k][i].
void Renderer::registers_of_a(const Product& p) {
  const Value seen = p.dot->args[0];
  const Layout& s = held_.at(p.a.value);
  const Value from = replaced_.contains(seen) ? casts_.at(seen) : seen;
  const int64_t steps = type(seen).dims[1] / 16, fragments = p.layout.row_fragments();
  add(fmt::format("u32 x[{}][{}][4];", steps, fragments));
  open(fmt::format("EACH (int k = 0; k < {}; ++k) EACH (int i = 0; i < {}; ++i)", steps, fragments));
  for (int q = 0; q < 4; ++q) {
    const std::string r = fmt::format("((i * {} + k * 2 + {}) * 4 + {})", s.column_fragments(), q / 2, q % 2 * 2),
                      next = fmt::format("({} + 1)", r);
    add(from == seen ? fmt::format("x[k][i][{}] = (u32){} | (u32){} << 16;", q, at(from, r), at(from, next))
                     : fmt::format("x[k][i][{}] = to_{}_pair({}, {});", q, p.a.dtype == bfloat16 ? "bf16" : "f16",
                                   at(from, r), at(from, next)));
  }
  close();
}

/// Renders a product by warpgroups, each of which has blocks of 64 rows and all columns. Where the loop carries the
/// accumulators, the wait is for the product before this one: the tensor cores multiply while the loop goes on.
void Renderer::product_by_warpgroups(const Product& p) {
  wait_for_kept();
  const auto is_single = [](const Product* q) { return q->a.single || q->b.single; };
  if (std::any_of(in_flight_.begin(), in_flight_.end(), is_single)) finish_products(in_flight_.size());
  const Value result = p.result(), c = p.start();
  const bool integers = is_integer(p.a.dtype), splat = splat_[static_cast<size_t>(c)],
             from_zero =
                 !p.sum && splat && at(c) == literal(integers ? Number::of_int(0) : Number::of_real(0), type(c).dtype);
  if (p.in_place) name(result, fresh(c));
  else if (from_zero) declare(result);
  else each(result, at(c));
  const auto [a, b] = stage_operands(p, "fence_for_wgmma();");
  const Wgmma form{p.a.dtype, p.layout.columns, !p.a.in_registers && !p.a.depth_inside, !p.b.depth_inside,
                   p.a.in_registers};
  forms_.insert(definition_of(form));
  const auto matrix = [&](const char* n, const Operand& x, const std::string& from) {
    const Matrix m = matrix_of(x);
    add(fmt::format("const u64 {} = matrix_at({}, {}, {}, {});", n, from, m.panels, m.groups, m.lines));
    return m;
  };
  open("");
  if (producer_)
    for (const Operand* x : {&p.a, &p.b})
      if (x->ahead || x->single) add(fmt::format("barrier_wait({}, phase);", full(*x, "slot")));
  if (p.a.in_registers) registers_of_a(p);
  const int64_t fragments = p.layout.row_fragments(), steps = type(p.dot->args[0]).dims[1] * p.a.dtype.size() / 32;
  std::string left = "x[k][i]";
  if (!p.a.in_registers) {
    const int64_t block = matrix_of(p.a).block * 16;
    const Matrix m =
        matrix("a", p.a, warpgroups_ == 1 ? a : fmt::format("{} + __shfl_sync(0xffffffffu, t >> 7, 0) * {}", a, block));
    left = fmt::format("a + ({} + i * {})", m.step, m.block * warpgroups_);
  }
  const Matrix right = matrix("b", p.b, b);
  add("wgmma_fence();");
  add(fmt::format("EACH (int k = 0; k < {}; ++k) EACH (int i = 0; i < {}; ++i)", steps, fragments));
  add(fmt::format("  wgmma({}(), {} + i * {}, {}, b + ({}), {});", tag_of(form), fresh(p.in_place ? c : result),
                  form.columns / 2, left, right.step, from_zero ? "k > 0" : "1"));
  add("wgmma_commit();");
  if (p.in_place && !p.a.in_turns && !p.b.in_turns) add("wgmma_wait<1>();"), release_before(p);
  close();
  if (p.in_place) return;
  in_flight_.push_back(&p);
  // The space of what was staged is that of the next exchange.
  const bool staged = (!p.a.load && !p.a.in_registers) || !p.b.load;
  if (!flies_ || staged) finish_products(in_flight_.size());
}

}  // namespace weft::target::cuda
