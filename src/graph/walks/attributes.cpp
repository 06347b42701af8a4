// Compares the attributes that a node sets with those that the operator's row lists.
#include <array>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

struct Field {
  std::string_view name;
  bool (*set)(const Attrs&);  // whether it differs from its default
};

constexpr auto fields = std::to_array<Field>({
    {"axes", [](const Attrs& a) { return !a.axes.empty(); }},
    {"axes2", [](const Attrs& a) { return !a.axes2.empty(); }},
    {"batch", [](const Attrs& a) { return !a.batch.empty(); }},
    {"batch2", [](const Attrs& a) { return !a.batch2.empty(); }},
    {"shape", [](const Attrs& a) { return !a.shape.empty(); }},
    {"start", [](const Attrs& a) { return !a.start.empty(); }},
    {"step", [](const Attrs& a) { return !a.step.empty(); }},
    {"low", [](const Attrs& a) { return !a.low.empty(); }},
    {"high", [](const Attrs& a) { return !a.high.empty(); }},
    {"window", [](const Attrs& a) { return !a.window.empty(); }},
    {"dtype", [](const Attrs& a) { return a.dtype != Attrs().dtype; }},
    {"number", [](const Attrs& a) { return !(a.number == Number()); }},
    {"reducer", [](const Attrs& a) { return a.reducer != Attrs().reducer; }},
    {"mode", [](const Attrs& a) { return a.mode != Attrs().mode; }},
    {"generator", [](const Attrs& a) { return a.generator != Attrs().generator; }},
    {"slot", [](const Attrs& a) { return a.slot != Attrs().slot; }},
    {"packed", [](const Attrs& a) { return a.packed; }},
    {"call", [](const Attrs& a) { return !a.call.empty(); }},
    {"integers", [](const Attrs& a) { return !a.integers.empty(); }},
    {"literal", [](const Attrs& a) { return a.literal; }},
    {"composite", [](const Attrs& a) { return a.composite != nullptr; }},
    {"control", [](const Attrs& a) { return a.control != nullptr; }},
    {"kernel", [](const Attrs& a) { return a.kernel != nullptr; }},
});

using Mask = uint32_t;
static_assert(fields.size() <= 32);

Mask bit_of(std::string_view name, const Row& row) {
  for (size_t k = 0; k < fields.size(); ++k)
    if (fields[k].name == name) return Mask{1} << k;
  throw_internal(row.name, "its row lists an attribute that does not exist: " + std::string(name));
}

/// Returns the fields that a row lists: "start, shape, step".
Mask listed(const Row& row) {
  Mask mask = 0;
  for (std::string_view rest = row.attributes; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    mask |= bit_of(rest.substr(0, comma), row);
    rest.remove_prefix(std::min(rest.find_first_not_of(", ", comma), rest.size()));
  }
  return mask;
}

}  // namespace

std::string_view unread_attribute(Op op, const Attrs& attrs) {
  static const std::vector<Mask> read = [] {
    std::vector<Mask> out;
    for (const Row* row : table()) out.push_back(listed(*row));
    return out;
  }();
  for (size_t k = 0; k < fields.size(); ++k)
    if ((read[static_cast<size_t>(op)] >> k & 1) == 0 && fields[k].set(attrs)) return fields[k].name;
  return {};
}

}  // namespace weft::graph
