// Renders reductions and scans along any axis, by a reducer or a block, in shared memory. The order is that of
// kernel/tile.h.
#include <fmt/format.h>

#include <bit>

#include "target/cuda/codegen/general/index.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Type;

/// Returns the dtype in which tile k is combined. A reducer combines low floats in float32.
Dtype Renderer::combined_in(const Inst& inst, size_t k) const {
  const Dtype t = type(inst.args[k]).dtype;
  return inst.blocks.empty() && is_low_float(t) ? float32 : t;
}

/// Returns the text of tile k as it is combined.
std::string Renderer::wide(const Inst& inst, size_t k) const {
  return conversion(at(inst.args[k]), type(inst.args[k]).dtype, combined_in(inst, k));
}

/// Reserves a space of its own for each argument, from byte `offset` of the exchange space on.
std::vector<std::string> Renderer::spaces_of(const Inst& inst, int64_t offset) {
  std::vector<std::string> out;
  for (size_t k = 0; k < inst.args.size(); ++k) {
    const Dtype t = combined_in(inst, k);
    const int64_t elements = type(inst.args[k]).size();
    out.push_back(exchange(t, elements, offset));
    offset += (elements * static_cast<int64_t>(t.size()) + 15) / 16 * 16;
  }
  return out;
}

/// Renders low[k], high[k] → to[k]: texts of what is combined, and of where the result goes.
void Renderer::combine(const Inst& inst, const std::vector<std::string>& low, const std::vector<std::string>& high,
                       const std::vector<std::string>& to) {
  if (inst.blocks.empty()) {
    const std::string args[] = {low[0], high[0]};
    return add(fmt::format("{} = {};", to[0], expression(kernel::combine(inst.reducer), combined_in(inst, 0), args)));
  }
  const kernel::Block& body = inst.blocks[0];
  std::vector<std::string> made;
  for (size_t k = 0; k < body.arguments.size(); ++k) {
    const Value v = body.arguments[k];
    name(v, fresh(v));
    const std::string& from = k < low.size() ? low[k] : high[k - low.size()];
    add(fmt::format("const {} {} = {};", type_name(type(v).dtype), fresh(v), from));
  }
  for (size_t k = 0; k < to.size(); ++k) {
    made.push_back(fmt::format("made{}", k));
    add(fmt::format("{} {};", type_name(combined_in(inst, k)), made[k]));
  }
  on_lane(body, made);
  for (size_t k = 0; k < to.size(); ++k) add(fmt::format("{} = {};", to[k], made[k]));
}

/// Renders a reduction. Each step combines the upper part of every line with its first elements; the first step leaves
/// a power of two, later ones a half.
void Renderer::reduce_along(const Inst& inst) {
  const Type& from = type(inst.args[0]);
  const Lines lines(from.dims, inst.axis);
  if (lines.extent == 1) {
    for (size_t k = 0; k < inst.args.size(); ++k) alias(inst.results[k], inst.args[k]);
    return;
  }
  const std::vector<std::string> spaces = spaces_of(inst);
  sync();
  for (size_t k = 0; k < spaces.size(); ++k) put_text(layout_of(inst.args[k]), spaces[k], wide(inst, k));
  const auto kept = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(lines.extent - 1)));
  open(fmt::format("for (int n = {}, kept = {}; n > 1; n = kept, kept /= 2)", lines.extent, kept));
  sync();
  open(fmt::format("for (int k = t; k < {} * (n - kept); k += {})", lines.count, threads_));
  if (lines.step == 1) add("const int line = k / (n - kept), i = k % (n - kept);");
  else add(fmt::format("const int line = k % {0}, i = k / {0};", lines.count));
  add(fmt::format("const int at = {} + i * {};", lines.start("line"), lines.step));
  std::vector<std::string> low, high;
  for (const std::string& space : spaces) {
    low.push_back(space + "[at]");
    high.push_back(fmt::format("{}[at + kept * {}]", space, lines.step));
  }
  combine(inst, low, high, low);
  close();
  close();
  sync();
  for (size_t k = 0; k < spaces.size(); ++k)
    each_element(inst.results[k], conversion(fmt::format("{}[{}]", spaces[k], lines.start("e")), combined_in(inst, k),
                                             type(inst.args[k]).dtype));
}

/// Renders a scan (Kogge and Stone 1973): element i is combined from ever more elements before it, which other threads
/// publish in every step.
void Renderer::scan(const Inst& inst) {
  const Type& from = type(inst.args[0]);
  const Lines lines(from.dims, inst.axis);
  const Layout s = layout_of(inst.args[0]);
  const std::vector<std::string> spaces = spaces_of(inst);
  std::vector<std::string> own, published;
  for (size_t k = 0; k < spaces.size(); ++k) {
    const std::string w = fmt::format("own{}", inst.results[k]);
    add(fmt::format("{} {}[{}];", type_name(combined_in(inst, k)), w, s.registers()));
    add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {};", s.registers(), w, wide(inst, k)));
    own.push_back(w + "[r]");
    published.push_back(fmt::format("{}[e {} d * {}]", spaces[k], inst.reverse ? '+' : '-', lines.step));
  }
  open(fmt::format("for (int d = 1; d < {}; d *= 2)", lines.extent));
  sync();
  for (size_t k = 0; k < spaces.size(); ++k) put_text(s, spaces[k], own[k]);
  sync();
  open(fmt::format("EACH (int r = 0; r < {}; ++r)", s.registers()));
  add(fmt::format("const int e = {}, i = {};", s.inside("r"), lines.position("e")));
  open(inst.reverse ? fmt::format("if (i + d < {})", lines.extent) : "if (i >= d)");
  combine(inst, published, own, own);
  close();
  close();
  close();
  for (size_t k = 0; k < spaces.size(); ++k)
    each(inst.results[k], conversion(own[k], combined_in(inst, k), type(inst.args[k]).dtype));
}

}  // namespace weft::target::cuda
