// Prints the operator tables as a page of documentation: what each row means and has, and why a column is empty.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/complex/complex.h"
#include "graph/table.h"
#include "kernel/operators/rows.h"

namespace weft::graph {
namespace {

/// A column's cell, and the sentence that explains it.
struct Reason {
  None none;
  const char* cell;
  const char* sentence;
};

constexpr Reason reasons[] = {
    {None::leaf, "leaf", "it has no inputs: there is nothing to differentiate, to batch or to bound"},
    {None::discrete, "discrete",
     "its result changes in steps or not at all with the inputs, or is a copy that stops gradients: derivatives are "
     "zero"},
    {None::by_body, "body", "a region is differentiated, batched and split through its body"},
    {None::unbounded, "unbounded", "there is no useful bound on its values"},
};

template <class Rule>
std::string cell(const Column<Rule>& column) {
  if (column.rule) return "yes";
  for (const Reason& r : reasons)
    if (r.none == column.reason) return r.cell;
  return "?";
}

std::string inputs(const Row& r) {
  if (r.max_inputs < 0) return fmt::format("{} or more", r.min_inputs);
  return r.min_inputs == r.max_inputs ? fmt::format("{}", r.min_inputs)
                                      : fmt::format("{} to {}", r.min_inputs, r.max_inputs);
}

std::string kinds(bool floats, bool integers, bool bools, bool complex_numbers) {
  std::vector<std::string_view> out;
  if (floats) out.push_back("floats");
  if (integers) out.push_back("integers");
  if (bools) out.push_back("bools");
  if (complex_numbers) out.push_back("complex");
  return fmt::format("{}", fmt::join(out, ", "));
}

/// Returns the dtypes of an operator on scalars, listed one by one if it takes only some of a kind.
std::string dtypes(const kernel::Columns& columns, bool complex_numbers) {
  if (!columns.only) return kinds(columns.floats, columns.integers, columns.booleans, complex_numbers);
  std::vector<std::string_view> out;
  for (Dtype t : {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64})
    if (takes(columns, t)) out.push_back(dtype_name(t));
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string dtypes(const Row& r) {
  if (!r.dtypes.empty()) return std::string(r.dtypes);
  if (r.scalar < 0 || r.op == Op::select) return "any";
  return dtypes(kernel::info(static_cast<kernel::ScalarOp>(r.scalar)), takes_complex(r.op));
}

bool in_graph(kernel::ScalarOp op) {
  return std::ranges::any_of(table(), [&](const Row* r) { return r->scalar == static_cast<int>(op); });
}

/// Returns the line of an operator that only tile IR has; empty for an operator of the graph.
template <kernel::ScalarOp op>
std::string instruction() {
  using R = kernel::Row<op>;
  if (in_graph(op)) return {};
  return fmt::format("| `{}` | {} | {} | {} |\n", kernel::info(op).name, R::meaning, R::columns.arity,
                     dtypes(R::columns, false));
}
template <size_t... k>
std::string instructions(std::index_sequence<k...>) {
  return (instruction<static_cast<kernel::ScalarOp>(k)>() + ...);
}

}  // namespace

std::string operators_page() {
  std::string out =
      "# Operators\n\nThis page is written from the operator tables (`src/graph/table.h`, `src/kernel/operators`); a "
      "test compares them.\n\n"
      "Inputs are called a, b, …; an elementwise operator takes inputs of one shape and dtype, and its result has that "
      "shape. Attributes are the fields\n"
      "of `graph::Attrs` that an operator reads. Comparisons with NaN are false but for `ne`; integers wrap.\n"
      "A compiled result lies within *ulp* units in the last place of the reference, in float32, plus its own rounding "
      "(0: equal; reductions, dots and\n"
      "scatters: per √n). A rule that is missing gives its reason:\n\n";
  for (const Reason& r : reasons) out += fmt::format("- **{}**: {}\n", r.cell, r.sentence);
  out +=
      "\n## Operators of the graph\n\n"
      "| operator | meaning | inputs | dtypes | attributes | vjp | jvp | vmap | split | interval | ulp |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Row* r : table())
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", r->name, r->meaning, inputs(*r),
                       dtypes(*r), r->attributes, cell(r->vjp), cell(r->jvp), cell(r->vmap), cell(r->factors),
                       cell(r->interval), r->ulp);
  out += "\n## Operators of tile IR alone\n\n| operator | meaning | arguments | dtypes |\n|---|---|---|---|\n" +
         instructions(std::make_index_sequence<static_cast<size_t>(kernel::ScalarOp::count_)>());
  out += "\n## Reducers\n\n| reducer | combines by | dtypes |\n|---|---|---|\n";
  for (const kernel::ReducerInfo& r : kernel::reducers) {
    std::string operators;  // of the components, in order
    for (const kernel::Component& c : r.components)
      operators += fmt::format("{}`{}`", operators.empty() ? "" : ", ", kernel::info(c.combine).name);
    const bool complex = r.floats && r.components.size() == 1;
    out += fmt::format("| `{}` | {} | {} |\n", r.name, operators, kinds(r.floats, r.integers, r.booleans, complex));
  }
  return out;
}

}  // namespace weft::graph
