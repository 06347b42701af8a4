// Renders sorts and histograms.
#include <fmt/format.h>

#include <bit>

#include "target/cuda/codegen/general/index.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

/// Renders a sort: a bitonic network (Batcher 1968) moves the numbers of the elements of each line, among as many as
/// are a power of two; those past the end of the line come last. Then every tile is read in that order.
void Renderer::sort(const Inst& inst) {
  const kernel::Type& keys = type(inst.args[0]);
  const Lines lines(keys.dims, inst.axis);
  if (lines.extent == 1) {
    for (size_t k = 0; k < inst.args.size(); ++k) alias(inst.results[k], inst.args[k]);
    return;
  }
  const auto width = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(lines.extent)));
  const std::string order = exchange(int32, lines.count * width);
  const std::vector<std::string> spaces = spaces_of(inst, (lines.count * width * 4 + 15) / 16 * 16);
  sync();
  for (size_t k = 0; k < spaces.size(); ++k) put(inst.args[k], spaces[k]);
  add(fmt::format("for (int k = t; k < {}; k += {}) {}[k] = k % {};", lines.count * width, threads_, order, width));
  open(fmt::format("for (int whole = 2; whole <= {}; whole *= 2) for (int half = whole / 2; half > 0; half /= 2)",
                   width));
  sync();
  open(fmt::format("for (int k = t; k < {}; k += {})", lines.count * width / 2, threads_));
  add(fmt::format("const int line = k / {0}, low = k % {0} / half * half * 2 + k % {0} % half;", width / 2));
  add(fmt::format("i32* const a = {} + line * {} + low;", order, width));
  add("i32* const b = a + half;");
  const auto key = [&](const std::string& number) {
    return conversion(fmt::format("{}[{} + {} * {}]", spaces[0], lines.start("line"), number, lines.step), keys.dtype,
                      is_low_float(keys.dtype) ? float32 : keys.dtype);
  };
  add(fmt::format("const bool ordered = *a >= {0} || *b >= {0} ? *a < *b : comes_before({1}, *a, {2}, *b, {3});",
                  lines.extent, key("*a"), key("*b"), inst.reverse));
  add("if (ordered != ((low & whole) == 0)) { const i32 other = *a; *a = *b, *b = other; }");
  close();
  close();
  sync();
  const std::string line = lines.line("e"),
                    source = fmt::format("{} + {}[{} * {} + {}] * {}", lines.start(fmt::format("({})", line)), order,
                                         line, width, lines.position("e"), lines.step);
  for (size_t k = 0; k < spaces.size(); ++k) each_element(inst.results[k], fmt::format("{}[{}]", spaces[k], source));
}

/// Renders a histogram: threads count their elements in shared memory.
void Renderer::histogram(const Inst& inst) {
  const Layout s = layout_of(inst.args[0]);
  const int64_t bins = inst.type.size();
  const std::string space = exchange(int32, bins);
  sync();
  add(fmt::format("for (int k = t; k < {}; k += {}) {}[k] = 0;", bins, threads_, space));
  sync();
  open(fmt::format("EACH (int r = 0; r < {}; ++r)", s.registers()));
  add(fmt::format("const i64 bin = (i64){};", at(inst.args[0])));
  add(fmt::format("if ({} && bin >= 0 && bin < {}) atomicAdd((u32*){} + bin, 1u);", owner(s), bins, space));
  close();
  sync();
  each_element(inst.results[0], space + "[e]");
}

}  // namespace weft::target::cuda
