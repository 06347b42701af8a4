#pragma once
// What a thread's last nodes were made of: eager code makes nodes like its last ones, whose attributes and types need
// not be made again.
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "graph/node.h"

namespace weft::graph {

/// Return the attributes that are a shape alone (reshape, broadcast), those of a reduction, and those of a constant or,
/// with no number, of a cast; `literal`: a user wrote the constant.
SharedAttrs only_shape(const Shape& shape);
SharedAttrs only_reduction(kernel::Reducer reducer, const std::vector<int64_t>& axes);
SharedAttrs only_number(Dtype dtype, const Number& number, bool literal);

/// The types of results by operator, attributes and types of the inputs, of a thread's last nodes: eager code makes
/// nodes like its last ones, whose rules need not run again. Attributes and types are told apart by their address,
/// which is theirs as long as an entry holds them.
class RecentResults {
 public:
  /// Returns the types of a node like this one, or null.
  const SharedTypes* find(Op op, const SharedAttrs& attrs, const Values& inputs) const {
    if (!takes(attrs, inputs)) return nullptr;
    const size_t at = slot(op, attrs, inputs);
    for (const size_t way : {at, at ^ 1})  // two: nodes that take turns may share a slot
      if (const std::optional<Entry>& entry = entries_[way]; entry && is_of(*entry, op, attrs, inputs))
        return &entry->results;
    return nullptr;
  }
  void keep(Op op, const SharedAttrs& attrs, const Values& inputs, const SharedTypes& results) {
    if (!takes(attrs, inputs)) return;
    Entry entry{op, attrs, {}, results};
    for (const Value& v : inputs) entry.inputs.emplace_back(v.node->shared_types(), v.index);
    const size_t at = slot(op, attrs, inputs);
    entries_[at ^ 1] = std::move(entries_[at]);
    entries_[at] = std::move(entry);
  }

 private:
  struct Entry {
    Op op;
    SharedAttrs attrs;
    std::vector<std::pair<SharedTypes, int>> inputs;
    SharedTypes results;
  };
  static bool is_of(const Entry& entry, Op op, const SharedAttrs& attrs, const Values& inputs) {
    if (entry.op != op || &*entry.attrs != &*attrs || entry.inputs.size() != inputs.size()) return false;
    for (size_t k = 0; k < inputs.size(); ++k)
      if (entry.inputs[k].second != inputs[k].index || &*entry.inputs[k].first != types_of(inputs[k])) return false;
    return true;
  }
  /// What composites, control flow and kernels hold would live on; long lists of inputs seldom come again.
  static bool takes(const SharedAttrs& attrs, const Values& inputs) {
    return inputs.size() <= 3 && !attrs->composite && !attrs->control && !attrs->kernel;
  }
  static const std::vector<Type>* types_of(const Value& v) { return &*v.node->shared_types(); }
  static size_t slot(Op op, const SharedAttrs& attrs, const Values& inputs) {
    size_t at = static_cast<size_t>(op) * 0x9e3779b97f4a7c15 ^ reinterpret_cast<uintptr_t>(&*attrs) >> 4;
    for (const Value& v : inputs) at = at * 0x9e3779b97f4a7c15 + (reinterpret_cast<uintptr_t>(types_of(v)) >> 4);
    return (at >> 32) % count;
  }
  static constexpr size_t count = 256;
  std::array<std::optional<Entry>, count> entries_;
};

}  // namespace weft::graph
