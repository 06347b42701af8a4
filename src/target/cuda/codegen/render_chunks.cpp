// Finds tiles of integers that ascend by one within each chunk of a thread, whatever they do between chunks: what a
// gather reads at such positions lies side by side and is loaded in words. Movements that keep runs of elements (the
// pixels of a window, a part of each row) are gathers of this kind.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Op;
using kernel::ScalarOp;

namespace {

constexpr int64_t largest_divisor = int64_t{1} << 30;

int64_t two_power_in(int64_t v) { return v == 0 ? largest_divisor : std::min(largest_divisor, v & -v); }

}  // namespace

std::optional<Renderer::Chunks> Renderer::chunks(Value v) const {
  if (type(v).rank() == 0) return Chunks{0, divisor(v)};
  const auto known = chunks_.find(v);
  return known == chunks_.end() ? std::nullopt : std::optional(known->second);
}

void Renderer::find_chunks(const Inst& inst) {
  if (inst.results.size() != 1 || inst.type.rank() > 1 || !is_integer(inst.type.dtype)) return;
  const Value result = inst.results[0];
  if (inst.op == Op::constant) {
    constants_[result] = inst.number.i;
    if (inst.type.rank() == 1) chunks_[result] = {0, two_power_in(inst.number.i)};
    return;
  }
  if (inst.type.rank() == 0) return;
  const Layout layout = layout_of(inst.type);
  if (layout.vec == 1 || layout.repeated() || layout.register_tiles) return;
  std::optional<Chunks> found;
  if (inst.op == Op::arange) found = {1, layout.vec};
  else if (inst.op == Op::broadcast && type(inst.args[0]).rank() == 0) found = chunks(inst.args[0]);
  else if (inst.op == Op::cast && is_integer(type(inst.args[0]).dtype)) found = chunks(inst.args[0]);
  else if (inst.op == Op::scalar && inst.args.size() == 2) found = chunks_of(inst, layout.vec);
  if (found) chunks_[result] = *found;
}

/// Returns what is known of the chunks of an operator's result. A division by a multiple of the chunk's size has one
/// quotient in each chunk that begins at a multiple of it.
std::optional<Renderer::Chunks> Renderer::chunks_of(const Inst& inst, int vec) const {
  const auto a = chunks(inst.args[0]), b = chunks(inst.args[1]);
  if (!a || !b) return {};
  const auto constant = constants_.find(inst.args[1]);
  const int64_t by = constant == constants_.end() ? 0 : constant->second;
  const bool whole = a->step == 0 || (a->step == 1 && a->divisor % vec == 0 && by % vec == 0);
  switch (inst.scalar_op) {
    case ScalarOp::add: return Chunks{a->step + b->step, std::min(a->divisor, b->divisor)};
    case ScalarOp::sub: return Chunks{a->step - b->step, std::min(a->divisor, b->divisor)};
    case ScalarOp::mul:
      if (a->step != 0 || b->step != 0) return {};
      return Chunks{0, std::min(largest_divisor, a->divisor * b->divisor)};
    case ScalarOp::floordiv: return by > 0 && whole ? std::optional(Chunks{0, 1}) : std::nullopt;
    case ScalarOp::mod:
      return by > 0 && whole ? std::optional(Chunks{a->step, std::min(a->divisor, two_power_in(by))}) : std::nullopt;
    default: return {};
  }
}

bool Renderer::gather_words(const Inst& inst) {
  const auto found = chunks(inst.args[0]);
  const Layout layout = layout_of(inst.type);
  const int64_t bytes = static_cast<int64_t>(layout.vec) * dtype_of(inst.ref).size();
  if (inst.type.rank() != 1 || !found || found->step != 1 || found->divisor % layout.vec != 0 || layout.vec == 1 ||
      bytes < 4 || layout.ragged() || layout.repeated() || layout.register_tiles || inst.args[1] != kernel::no_value ||
      inst.type.dtype == bool_ || is_local(inst.ref) || !variant_.aligned)
    return false;
  declare(inst.results[0]);
  const int64_t word = std::min<int64_t>(bytes, 16);
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", layout.registers() / layout.vec));
  add(fmt::format("const auto* const from = {} + {};", buffer(inst.ref),
                  at(inst.args[0], fmt::format("(c * {})", layout.vec))));
  add(fmt::format("EACH (int k = 0; k < {1}; ++k) ((W{0}*)({2} + c * {3}))[k] = ((const W{0}*)from)[k];", word,
                  bytes / word, fresh(inst.results[0]), layout.vec));
  close();
  return true;
}

}  // namespace weft::target::cuda
