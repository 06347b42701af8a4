#include "compiler/rewrite/sort_window.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/ir/rewriter.h"
#include "graph/calls/call.h"

namespace weft::compiler {

using graph::Op;
using graph::SortWindow;

namespace {

bool is_sort(const IrNode& n) { return n.op == Op::call && n.attrs->call == "sort"; }

SortWindow window_of(const Ir& ir, const IrNode& sort) {
  const auto axis = static_cast<size_t>(sort.attrs->integers[0]);
  return graph::sort_window(sort.attrs->integers, ir[sort.inputs[0]].type.shape[axis].bound());
}

/// The positions along the sorted axis that are read of a call's results: [first, end).
struct Read {
  int64_t first = INT64_MAX, end = 0;
  bool all = false;
};

class SortNarrower : Rewriter {
 public:
  explicit SortNarrower(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    if (std::none_of(from_.nodes.begin(), from_.nodes.end(), is_sort)) return std::move(from_);
    find_reads();
    return rewrite([&](NodeId id, IrNode node) -> NodeId {
      if (const Read* read = narrowed(id)) return sort(std::move(node), *read);
      if (node.op == Op::slice)
        if (const Read* read = narrowed(from_[id].inputs[0]); read) return slice(std::move(node), from_[id], *read);
      return add(std::move(node));
    });
  }

 private:
  void find_reads() {
    for (NodeId id = 0; id < from_.size(); ++id)
      for (const NodeId input : from_[id].inputs)
        if (is_sort(from_[input])) note(from_[id], input);
    for (const NodeId id : from_.outputs)
      if (is_sort(from_[id])) reads_[call_key(from_[id])].all = true;
  }

  /// Notes what a reader reads of a result of a sort.
  void note(const IrNode& reader, NodeId sort) {
    Read& read = reads_[call_key(from_[sort])];
    if (reader.op != Op::slice) {
      read.all = true;
      return;
    }
    const size_t axis = window_of(from_, from_[sort]).axis;
    const int64_t count = reader.type.shape[axis].bound(), start = reader.attrs->start[axis];
    if (count == 0) return;
    const int64_t last = start + (count - 1) * (reader.attrs->step.empty() ? 1 : reader.attrs->step[axis]);
    read.first = std::min({read.first, start, last});
    read.end = std::max({read.end, start + 1, last + 1});
  }

  /// Returns what is read of the sort's results if that is less than all positions, else null.
  const Read* narrowed(NodeId id) const {
    if (!is_sort(from_[id])) return nullptr;
    const auto found = reads_.find(call_key(from_[id]));
    if (found == reads_.end() || found->second.all) return nullptr;
    const Read& read = found->second;
    return read.first < read.end && read.end - read.first < window_of(from_, from_[id]).count ? &read : nullptr;
  }

  NodeId sort(IrNode node, const Read& read) {
    const SortWindow old = window_of(to_, node);
    const int64_t count = read.end - read.first;
    node.attrs.edit().integers = {static_cast<int64_t>(old.axis), old.first + read.first, count};
    for (graph::Type& result : node.results) result.shape[old.axis] = count;
    node.type.shape[old.axis] = count;
    return add(std::move(node));
  }

  /// Returns the slice of the narrowed result; the result itself where that is all of it.
  NodeId slice(IrNode node, const IrNode& old, const Read& read) {
    const size_t axis = window_of(from_, from_[old.inputs[0]]).axis;
    node.attrs.edit().start[axis] -= read.first;
    const bool forward =
        std::all_of(node.attrs->step.begin(), node.attrs->step.end(), [](int64_t s) { return s == 1; });
    if (forward && node.type.shape == to_[node.inputs[0]].type.shape) return node.inputs[0];
    return add(std::move(node));
  }

  std::map<std::string, Read> reads_;  // by call
};

}  // namespace

Ir narrow_sorts(Ir ir) { return SortNarrower(std::move(ir)).run(); }

}  // namespace weft::compiler
