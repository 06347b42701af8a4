#include "kernel/describe/epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernel/rules.h"

namespace weft::kernel {

using Kind = EpilogueStep::Kind;

void Epilogue::hash(Hasher& h) const {
  h.number(operands.size()).number(steps.size()).number(result).number(stored.size()).number(functions.size());
  for (const EpilogueOperand& x : operands) {
    h.number(x.dtype.val()).number(x.m).number(x.n).number(x.batch.size());
    for (const int64_t stride : x.batch) h.number(stride);
    for (const Jump& jump : {x.m_jump, x.n_jump}) h.number(jump.period).number(jump.by);
  }
  for (const EpilogueStep& s : steps) {
    h.number(s.kind).number(s.dtype.val()).number(s.op).number(s.operand).number(s.inputs.size());
    for (const int input : s.inputs) h.number(input);
    if (s.kind != Kind::constant) continue;
    if (is_float(s.dtype)) h.number(s.number.real());
    else h.number(s.number.i);
  }
  for (const int step : stored) h.number(step);
  for (const EpilogueFunction& f : functions) h.text(f.name).number(f.input).number(f.result);
}

namespace {

/// Returns "f32 row", "bf16 element".
std::string text(const EpilogueOperand& x) {
  const char* shape = x.has_m() && x.has_n() ? "element" : x.has_n() ? "row" : x.has_m() ? "column" : "number";
  return kernel::to_string(Type{x.dtype, {}}) + " " + shape;
}

}  // namespace

std::string Epilogue::to_string() const {
  std::string out = "+";
  for (const EpilogueStep& s : steps) {
    if (s.kind == Kind::operand) out += " (" + text(operands[static_cast<size_t>(s.operand)]) + ")";
    if (s.kind == Kind::scalar) out += fmt::format(" {}", info(s.op).name);
    if (s.kind == Kind::cast) out += " " + kernel::to_string(Type{s.dtype, {}});
  }
  if (!stored.empty()) out += fmt::format(", stores {} more", stored.size());
  return out;
}

void verify(const Epilogue& epilogue, bool prologue) {
  const auto require = [&](bool ok, const char* what) {
    if (!ok) throw_internal("epilogue", fmt::format("{}: {}", what, epilogue.to_string()));
  };
  const int count = static_cast<int>(epilogue.steps.size());
  const auto exists = [&](int step) { return step >= 0 && step < std::max(count, 1); };
  for (int k = 0; k < count; ++k) {
    const EpilogueStep& s = epilogue.steps[static_cast<size_t>(k)];
    require((s.kind == Kind::dot) == (k == 0 && !prologue), "step 0 and no other is the matmul's result");
    for (const int input : s.inputs) require(input >= 0 && input < k, "a step reads steps before it");
    if (s.kind == Kind::operand)
      require(s.operand >= 0 && s.operand < static_cast<int>(epilogue.operands.size()) &&
                  epilogue.operands[static_cast<size_t>(s.operand)].dtype == s.dtype,
              "an operand exists and has its step's dtype");
    if (s.kind == Kind::scalar)
      require(static_cast<int>(s.inputs.size()) == info(s.op).arity,
              "an operator has as many arguments as its row says");
    if (s.kind == Kind::cast) require(s.inputs.size() == 1, "a cast has one argument");
  }
  require(exists(epilogue.result), "the result is a step");
  require(!prologue || epilogue.stored.empty(), "a prologue stores nothing");
  for (const EpilogueOperand& x : epilogue.operands)
    require(prologue || (x.m_jump.period == 0 && x.n_jump.period == 0), "an epilogue's operands have strides alone");
  for (const int step : epilogue.stored) require(exists(step) && step != epilogue.result, "a stored value is a step");
  for (const EpilogueFunction& f : epilogue.functions)
    require(exists(f.input) && exists(f.result) && f.input < f.result, "a function's argument comes before its result");
}

}  // namespace weft::kernel
