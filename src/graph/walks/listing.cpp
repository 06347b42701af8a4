// The operator table as a page of documentation: what each row has, and why a column is empty.
#include <fmt/format.h>

#include "graph/table.h"

namespace weft::graph {
namespace {

/// A column's cell, and the sentence behind it.
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
    {None::not_scalar, "not scalar", "it is no elementwise operator"},
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

}  // namespace

std::string operators_page() {
  std::string out =
      "# Operators\n\nThe rows of the operator table (`src/graph/table.h`), in their order. This page is generated "
      "from the table; a test compares them.\n"
      "A compiled result lies within *ulp* units of the last place of the reference, in float32, beside its own "
      "rounding (0: equal; reductions, dots and\n"
      "scatters: per √n). A column that is not filled gives its reason:\n\n";
  for (const Reason& r : reasons) out += fmt::format("- **{}**: {}\n", r.cell, r.sentence);
  out += "\n| operator | inputs | vjp | jvp | vmap | split | interval | ulp |\n|---|---|---|---|---|---|---|---|\n";
  for (const Row* r : table())
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", r->name, inputs(*r), cell(r->vjp), cell(r->jvp),
                       cell(r->vmap), cell(r->factors), cell(r->interval), r->ulp);
  return out;
}

}  // namespace weft::graph
