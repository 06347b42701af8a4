// Renders products by warpgroups: the tensor cores read operands from shared memory, where they lie in panels of
// swizzled lines, or A from the registers that another product left.
#include <fmt/format.h>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

namespace {

const char* tag_of(Dtype t) { return t == bfloat16 ? "Bf16" : "F16"; }

/// What of an operand in shared memory a matrix descriptor says, and how far apart its parts are, in units of 16 bytes.
struct Matrix {
  int64_t panels = 1, groups = 0;  // between panels, and between groups of eight lines
  int lines = 1;                   // their width, as descriptors have it
  std::string step;                // of 16 elements of k, as text of `k`
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

/// Returns the definition of `wgmma` for one form.
std::string definition_of(const WarpgroupForm& f) {
  const int64_t sums = f.columns / 2;  // registers of a thread
  const char* type = f.dtype == bfloat16 ? "bf16" : "f16";
  std::string registers, operands;
  for (int64_t r = 0; r < sums; ++r) {
    registers += fmt::format("{}%{}", r ? ", " : "", r);
    operands += fmt::format("{}\"+f\"(c[{}])", r ? ", " : "", r);
  }
  const int64_t n = sums;
  const std::string guard = fmt::format("WGMMA_{}_{}_{}{}{}", type, f.columns, f.a_in_registers ? "r" : "",
                                        f.a_turned ? 1 : 0, f.b_turned ? 1 : 0);
  const std::string a = f.a_in_registers ? fmt::format("{{%{}, %{}, %{}, %{}}}, %{}", n, n + 1, n + 2, n + 3, n + 4)
                                         : fmt::format("%{}, %{}", n, n + 1);
  const std::string inputs =
      f.a_in_registers ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))" : R"("l"(a), "l"(b))";
  const std::string major =
      f.a_in_registers ? fmt::format("{:d}", f.b_turned) : fmt::format("{:d}, {:d}", f.a_turned, f.b_turned);
  return fmt::format(
      "#if defined(__CUDACC__) && !defined({0})\n#define {0}\n"
      "FN void wgmma({1}, f32* c, {2} a, const u64 b, const int more) {{\n"
      "  asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{3}, 0; wgmma.mma_async.sync.aligned.m64n{4}k16.f32.{5}.{5} "
      "{{{6}}}, {7}, p, 1, 1, {8};}}\"\n               : {9}\n               : {10}, \"r\"(more) : "
      "\"memory\");\n}}\n#endif\n",
      guard, fmt::format("Wgmma<{}, {}, {}, {}>", tag_of(f.dtype), f.columns, f.a_turned, f.b_turned),
      f.a_in_registers ? "const u32*" : "const u64", f.a_in_registers ? n + 5 : n + 2, f.columns, type, registers, a,
      major, operands, inputs);
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
  const Value result = p.result(), c = p.start();
  const bool from_zero = !p.sum && splat_[static_cast<size_t>(c)] && at(c) == literal(Number::of_real(0), float32);
  if (p.in_place) name(result, fresh(c));
  else if (from_zero) declare(result);
  else each(result, at(c));
  const bool staged_a = !p.a.load && !p.a.in_registers, staged_b = !p.b.load;
  const std::string b = operand_address(p, p.b, staged_a ? p.a.bytes() : 0);
  const std::string a = p.a.in_registers ? "" : operand_address(p, p.a, 0);
  if (staged_a || staged_b) {
    sync();
    if (staged_a) stage(p.a, a);
    if (staged_b) stage(p.b, b);
    add("fence_for_wgmma();");
    sync();
  }
  const WarpgroupForm form{p.a.dtype, p.layout.columns, p.a.in_registers, !p.a.in_registers && !p.a.depth_inside,
                           !p.b.depth_inside};
  forms_.insert(definition_of(form));
  const auto matrix = [&](const char* n, const Operand& x, const std::string& from) {
    const Matrix m = matrix_of(x);
    add(fmt::format("const u64 {} = matrix_at({}, {}, {}, {});", n, from, m.panels, m.groups, m.lines));
    return m;
  };
  open("");
  if (producer_)
    for (const Operand* x : {&p.a, &p.b})
      if (x->ahead) add(fmt::format("barrier_wait({}, phase);", full(*x, "slot")));
  if (p.a.in_registers) registers_of_a(p);
  const int64_t fragments = p.layout.row_fragments(), steps = type(p.dot->args[0]).dims[1] / 16;
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
  add(fmt::format("  wgmma(Wgmma<{}, {}, {}, {}>(), {} + i * {}, {}, b + ({}), {});", tag_of(form.dtype), form.columns,
                  form.a_turned, form.b_turned, fresh(p.in_place ? c : result), form.columns / 2, left, right.step,
                  from_zero ? "k > 0" : "1"));
  add("wgmma_commit();");
  add(p.in_place ? "wgmma_wait<1>();" : "wgmma_wait<0>();");
  if (producer_ && p.loop && !p.in_place) release(p, "slot");
  if (producer_ && p.in_place)
    open(fmt::format("if ({} != {})", fresh(p.loop->blocks[0].arguments[0]), at(p.loop->args[0]))),
        release(p, before_slot(*p.loop)), close();
  close();
}

}  // namespace weft::target::cuda
