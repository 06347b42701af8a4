// Tiles that a broadcast repeats in a flat one, as scales of groups and words of several numbers are where an operand
// is computed: each thread loads what its own chunks repeat, in place of an exchange through shared memory in each
// iteration. What is computed between the load and the broadcast is held in the same way, so that it is computed once
// for what shares it.
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

/// Returns how the source of a broadcast is held where each thread has what it repeats.
std::optional<Layout> Renderer::layout_to_repeat(const Inst& broadcast) const {
  const Type &from = type(broadcast.args[0]), &to = broadcast.type;
  if (from.rank() == 0 || from.size() == to.size()) return {};
  const std::optional<Repeats> repeats = repeats_of(from, to);
  if (!repeats || (repeats->tile > 1 && repeats->element > 1)) return {};
  const Layout wide = layout_of(broadcast.results[0]);
  return repeats->tile > 1 ? repeated_tile(wide, from.size()) : repeated_elements(wide, from.size(), repeats->element);
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
  if (held == held_.end() || splat_[static_cast<size_t>(from)] || held_.contains(result)) return false;
  if (layout_to_repeat(broadcast) != held->second) return false;
  const int wide = layout_of(result).vec, own = held->second.vec;
  if (held->second.held == Held::lanes) each(result, at(from, "(r % " + std::to_string(wide) + ")"));
  else each(result, at(from, "(r / " + std::to_string(wide / own) + ")"));
  return true;
}

}  // namespace weft::target::cuda
