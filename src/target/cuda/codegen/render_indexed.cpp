// Renders gathers and scatters: element by element, or in words where chunks of a thread have consecutive indices
// (runs.h).
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Op;

const Runs& Renderer::runs(int64_t length) { return runs_.try_emplace(length, kernel_, length).first->second; }

/// Returns whether the indices of a gather or scatter come in runs of `length`, each read or written as a whole or not
/// at all.
bool Renderer::in_runs(const Inst& inst, int64_t length) {
  const size_t first = inst.op == Op::gather ? 0 : 1;
  const kernel::Value index = inst.args[first], mask = inst.args[first + 1];
  const Dtype t = dtype_of(inst.ref);
  if (length < 2 || is_local(inst.ref) || !variant_.aligned || type(index).rank() != 1 || t == bool_ ||
      length * t.size() < 4)
    return false;
  if (mask != kernel::no_value && inst.op == Op::gather && !filling(inst.number, t)) return false;
  return runs(length).consecutive(index) && (mask == kernel::no_value || runs(length).uniform(mask));
}

/// Returns the length of the runs in which a gather, scatter or addition travels; 1: element by element.
int64_t Renderer::run_of(const Inst& inst) {
  const kernel::Value index = inst.args[inst.op == Op::gather ? 0 : 1];
  int64_t length = type(index).rank() == 1 && swizzle_of(inst.ref) == 0 ? layout_of(index).vec : 1;
  while (length > 1 && !in_runs(inst, length)) length /= 2;
  return length;
}

/// Renders a gather of runs. It always reads something (the start of the buffer where the mask is false), so that loads
/// are unconditional and many are in flight.
void Renderer::gather_runs(const Inst& inst, int64_t length) {
  const kernel::Value result = inst.results[0], mask = inst.args[1];
  const std::string first = fmt::format("(c * {})", length), p = buffer(inst.ref), index = at(inst.args[0], first);
  const std::string to = fmt::format("{} + c * {}", fresh(result), length);
  const int64_t bytes = length * static_cast<int64_t>(inst.type.dtype.size());
  const std::string condition = mask == kernel::no_value ? "" : at(mask, first);
  declare(result);
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", layout_of(result).registers() / length));
  if (condition.empty()) add(words(to, fmt::format("{} + {}", p, index), bytes));
  else
    add(fmt::format("const bool there = {}; {}", condition,
                    words_if(to, p, index, *filling(inst.number, inst.type.dtype), bytes)));
  close();
}

/// Returns the length of the chunks for each of which a gather reads one element; 1: none.
int64_t Renderer::shared_of(const Inst& inst) {
  if (type(inst.args[0]).rank() != 1 || is_local(inst.ref) || layout_of(inst.type).ragged()) return 1;
  int64_t length = layout_of(inst.args[0]).vec;
  while (length > 1 && !runs(length).uniform(inst.results[0])) length /= 2;
  return length;
}

/// Renders a gather whose chunks of `length` read one element each.
void Renderer::gather_shared(const Inst& inst, int64_t length) {
  const kernel::Value result = inst.results[0], mask = inst.args[1];
  const std::string first = fmt::format("(c * {})", length), to = fresh(result);
  std::string element =
      fmt::format("{}[{}]{}", buffer(inst.ref), at(inst.args[0], first), inst.type.dtype == bool_ ? " != 0" : "");
  if (mask != kernel::no_value)
    element = fmt::format("{} ? ({}) : {}", at(mask, first), element, literal(inst.number, inst.type.dtype));
  declare(result);
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", layout_of(result).registers() / length));
  add(fmt::format("const auto one = {};", element));
  add(fmt::format("EACH (int r = 0; r < {0}; ++r) {1}[c * {0} + r] = one;", length, to));
  close();
}

void Renderer::scatter_runs(const Inst& inst, int64_t length) {
  const kernel::Value value = inst.args[0], mask = inst.args[2];
  const Layout layout = layout_of(value);
  const std::string first = fmt::format("(c * {})", length);
  const std::string from = in_array(value, memory_type(inst.ref), layout.registers());
  const std::string whole =
      words(fmt::format("{} + {}", buffer(inst.ref), at(inst.args[1], first)), fmt::format("{} + c * {}", from, length),
            length * static_cast<int64_t>(dtype_of(inst.ref).size()));
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", layout.registers() / length));
  add(mask == kernel::no_value ? whole : fmt::format("if ({}) {{ {}}}", at(mask, first), whole));
  close();
}

void Renderer::gather(const Inst& inst) {
  if (is_local(inst.ref)) finish_copies();
  before_read(inst.ref);
  if (const int64_t run = run_of(inst); run > 1) return gather_runs(inst, run);
  if (const int64_t shared = shared_of(inst); shared > 1) return gather_shared(inst, shared);
  const bool flag = inst.type.dtype == bool_, masked = inst.args[1] != kernel::no_value;
  const std::string element =
      fmt::format("{}[{}]{}", buffer(inst.ref), placed_at(inst.ref, at(inst.args[0])), flag ? " != 0" : "");
  std::string guard = masked ? at(inst.args[1]) : "";
  if (layout_of(inst.type).ragged())
    guard += fmt::format("{}{} < {}", guard.empty() ? "" : " && ", layout_of(inst.type).element("r"), inst.type.size());
  each(inst.results[0], guard.empty() ? element
                                      : fmt::format("{} ? {} : {}", guard, flag ? "(" + element + ")" : element,
                                                    literal(inst.number, inst.type.dtype)));
}

void Renderer::scatter(const Inst& inst) {
  before_write(inst.ref);
  if (const int64_t run = run_of(inst); run > 1) return scatter_runs(inst, run);
  const Layout s = layout_of(inst.args[0]);
  std::string guard = inst.args[2] != kernel::no_value ? at(inst.args[2]) : "true";
  if (type(inst.args[0]).rank() == 0) guard += " && t == 0";
  else if (s.repeated()) guard += fmt::format(" && t < {}", s.size);
  else if (s.ragged()) guard += fmt::format(" && {} < {}", s.element("r"), s.size);
  add(fmt::format("EACH (int r = 0; r < {}; ++r) if ({}) {}[{}] = {};", s.registers(), guard, buffer(inst.ref),
                  placed_at(inst.ref, at(inst.args[1])), at(inst.args[0])));
}

}  // namespace weft::target::cuda
