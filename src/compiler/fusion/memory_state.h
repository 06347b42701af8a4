#pragma once
// Tracks which value each buffer holds while groups overwrite one another's results. The verifiers of orders replay an
// order on it.
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

class MemoryState {
 public:
  /// Inputs hold themselves, all else nothing. `buffer_owner[node]`: in whose memory it lies.
  MemoryState(const Ir& ir, const std::vector<int>& owner) : home_(owner), holds_(ir.nodes.size(), -1) {
    for (const int id : ir.inputs) holds_[static_cast<size_t>(id)] = id;
  }
  /// The node whose value lies in the memory of `node`; -1 before there is any.
  int in_memory_of(int node) const { return holds_[static_cast<size_t>(home_[static_cast<size_t>(node)])]; }
  bool holds(int node) const { return in_memory_of(node) == node; }
  void write(int node) { store(node, node); }
  /// The value of `node` into the memory of `to`.
  void store(int node, int to) { holds_[static_cast<size_t>(home_[static_cast<size_t>(to)])] = node; }

 private:
  const std::vector<int>& home_;
  std::vector<int> holds_;
};

}  // namespace weft::compiler
