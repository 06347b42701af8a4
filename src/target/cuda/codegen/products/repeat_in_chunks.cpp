// Tiles that a broadcast repeats in a flat one, as scales of groups and words of several numbers are where an operand
// is computed: each thread loads what its own chunks repeat, in place of an exchange through shared memory in each
// iteration. What is computed between the load and the broadcast is held in the same way, so that it is computed once
// for what shares it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;
using kernel::Type;
using kernel::Value;

namespace {

/// How a broadcast repeats its source: the whole tile, and each element.
struct Repeats {
  int64_t tile = 1, element = 1;
};

/// Returns how; nothing where parts of the tile are repeated on their own.
std::optional<Repeats> repeats_of(const Type& from, const Type& to) {
  const size_t missing = to.dims.size() - from.dims.size();
  const auto extent = [&](size_t k) { return k < missing ? int64_t{1} : from.dims[k - missing]; };
  Repeats out;
  int64_t inner = 1;  // elements of the source along the axes so far
  for (size_t k = to.dims.size(); k-- > 0;) {
    inner *= extent(k);
    if (extent(k) > 1 && out.tile > 1) return {};
    if (extent(k) != to.dims[k]) (inner == 1 ? out.element : out.tile) *= to.dims[k];
  }
  return out;
}

/// Returns whether an instruction makes each element from those at the same place, or from memory.
bool is_pointwise(Op op) {
  return op == Op::scalar || op == Op::cast || op == Op::bitcast || op == Op::reshape || op == Op::load ||
         op == Op::arange;
}

/// Adds to `members` what a value is computed from down to loads, as far as it has as many elements. False: something
/// else is among it.
bool add_makers(const Uses& uses, Value v, std::set<Value>& members) {
  if (uses.is_uniform(v) || members.contains(v)) return true;
  const Inst* const maker = uses.maker(v);
  if (!maker || !is_pointwise(maker->op)) return false;
  members.insert(v);
  return maker->op == Op::load || maker->op == Op::arange ||
         std::all_of(maker->args.begin(), maker->args.end(), [&](Value x) { return add_makers(uses, x, members); });
}

}  // namespace

/// Returns how the source of a broadcast to fragments is held; of whole rows, as the rows of products are.
static std::optional<Layout> parts_to_repeat(const Layout& wide, const Type& from, int64_t tile, int64_t element) {
  if (tile > 1) return parts_of_lines(wide, from.size());
  if (element == wide.columns && from.size() == wide.rows) return rows_of(wide);
  return parts_of_rows(wide, from.size(), element, 16 / static_cast<int>(from.dtype.size()));
}

/// Returns how the source of a broadcast is held where each thread has what it repeats; `wide`: how the result is.
std::optional<Layout> Renderer::layout_to_repeat(const Type& from, const Type& to, const Layout& wide) {
  if (from.rank() == 0 || from.size() == to.size()) return {};
  const std::optional<Repeats> repeats = repeats_of(from, to);
  if (!repeats || (repeats->tile > 1 && repeats->element > 1)) return {};
  if (wide.held == Held::fragments) return parts_to_repeat(wide, from, repeats->tile, repeats->element);
  return repeats->tile > 1 ? repeated_tile(wide, from.size()) : repeated_elements(wide, from.size(), repeats->element);
}

std::optional<Layout> Renderer::layout_to_repeat(const Inst& broadcast) const {
  return layout_to_repeat(type(broadcast.args[0]), broadcast.type, layout_of(broadcast.results[0]));
}

/// Decides which tiles are held as flat tiles repeat them: those that nothing else reads.
void Renderer::repeat_in_chunks(const Uses& uses) {
  for (const Uses::Position& position : uses.order) {
    const Inst& i = *position.inst;
    if (i.op != Op::broadcast || uses.is_uniform(i.args[0]) || held_.contains(i.results[0])) continue;
    const std::optional<Layout> layout = layout_to_repeat(i);
    std::set<Value> members;
    if (!layout || !add_makers(uses, i.args[0], members)) continue;
    const auto reads_alike = [&](const Uses::Position& reader) {
      const Inst& r = *reader.inst;
      if (r.op == Op::broadcast && !held_.contains(r.results[0])) return layout_to_repeat(r) == layout;
      return r.results.size() == 1 && members.contains(r.results[0]);
    };
    if (std::all_of(members.begin(), members.end(), [&](Value v) {
          const std::vector<Uses::Position>& readers = uses.readers.at(v);
          return !held_.contains(v) && std::all_of(readers.begin(), readers.end(), reads_alike);
        }))
      for (const Value v : members) held_.emplace(v, *layout);
  }
}

/// Renders a broadcast of a tile that is held as the result repeats it. False: it is held otherwise.
bool Renderer::repeat(const Inst& broadcast) {
  const Value from = broadcast.args[0], result = broadcast.results[0];
  const auto held = held_.find(from);
  if (held == held_.end() || splat_[static_cast<size_t>(from)]) return false;
  const Layout &own = held->second, wide = layout_of(result);
  if (layout_to_repeat(broadcast) != own) return false;
  const int64_t fragments = wide.held == Held::fragments ? wide.column_fragments() : 1;
  std::string r;
  switch (own.held) {
    case Held::lanes: r = fmt::format("r % {}", wide.vec); break;
    case Held::row_parts:
      r = fmt::format("(r / {} * 2 + (r >> 1 & 1)) * {} + r / 4 % {} / {}", fragments * 4, own.parts_of_row(),
                      fragments, fragments / own.parts_of_row());
      break;
    case Held::line_parts: r = fmt::format("r / 4 % {} * 2 + (r & 1)", std::max<int64_t>(own.size / 8, 1)); break;
    case Held::rows: r = fmt::format("r / {} * 2 + (r >> 1 & 1)", fragments * 4); break;
    default: r = fmt::format("r / {}", wide.vec / own.vec);
  }
  if (wide.held == Held::fragments) arithmetic(result, at(from, "(" + r + ")"));
  else each(result, at(from, "(" + r + ")"));
  return true;
}

}  // namespace weft::target::cuda
