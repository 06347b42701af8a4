#include "compiler/lower/dot/exact.h"

#include <algorithm>
#include <bit>

namespace weft::compiler {

namespace {

using kernel::Epilogue;
using kernel::EpilogueStep;
using Kind = EpilogueStep::Kind;

constexpr int unknown = 64, of_float32 = 24;

/// The significant bits of a step's values, and whether they are integers.
struct Significant {
  int bits = unknown;
  bool integer = false;
};

int bits_of(Dtype t) {
  if (t == bool_) return 1;
  if (is_integer(t)) return 8 * static_cast<int>(t.size());
  if (t == float8_e5m2) return 3;
  if (t == float8_e4m3) return 4;
  return t == bfloat16 ? 8 : t == float16 ? 11 : t == float32 ? of_float32 : unknown;
}

Significant significant(const Epilogue& e, const EpilogueStep& s, const std::vector<Significant>& before) {
  const auto input = [&](size_t k) { return before[static_cast<size_t>(s.inputs[k])]; };
  const bool integer = is_integer(s.dtype) || s.dtype == bool_;
  switch (s.kind) {
    case Kind::operand: return {bits_of(e.operands[static_cast<size_t>(s.operand)].dtype), integer};
    case Kind::constant:
      if (!s.number.integral || s.number.i < 0) return {bits_of(s.dtype), integer};
      return {static_cast<int>(std::bit_width(static_cast<uint64_t>(s.number.i))), true};
    case Kind::cast:
      return {std::min(input(0).bits, bits_of(s.dtype)), integer || (input(0).integer && input(0).bits <= of_float32)};
    case Kind::scalar:
      if (s.op == kernel::ScalarOp::bit_and) return {std::min(input(0).bits, input(1).bits), true};
      return {bits_of(s.dtype), integer};
    case Kind::dot: break;
  }
  return {};
}

}  // namespace

std::vector<FusedStep> fused_steps(const Epilogue& prologue) {
  std::vector<Significant> values;
  std::vector<FusedStep> out(prologue.steps.size());
  std::vector<int> readers(prologue.steps.size(), 0);
  for (const EpilogueStep& s : prologue.steps) {
    for (const int input : s.inputs) ++readers[static_cast<size_t>(input)];
    values.push_back(significant(prologue, s, values));
  }
  ++readers[static_cast<size_t>(prologue.result)];
  const auto is_exact = [&](int step) {
    const EpilogueStep& s = prologue.steps[static_cast<size_t>(step)];
    if (s.kind != Kind::scalar || s.op != kernel::ScalarOp::mul || s.dtype != float32) return false;
    const Significant &a = values[static_cast<size_t>(s.inputs[0])], &b = values[static_cast<size_t>(s.inputs[1])];
    return (a.integer || b.integer) && a.bits + b.bits <= of_float32 && readers[static_cast<size_t>(step)] == 1;
  };
  for (size_t k = 0; k < out.size(); ++k) {
    const EpilogueStep& s = prologue.steps[k];
    if (s.kind != Kind::scalar || s.op != kernel::ScalarOp::add || s.dtype != float32) continue;
    for (int side = 0; side < 2 && out[k].product < 0; ++side)
      if (const int input = s.inputs[static_cast<size_t>(side)]; is_exact(input))
        out[k].product = side, out[static_cast<size_t>(input)].absorbed = true;
  }
  return out;
}

}  // namespace weft::compiler
