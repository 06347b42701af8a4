#pragma once
// Evaluation of graphs for `eval`, `item`, `data`, printing and compiled functions; and the traces of the thread, since
// a value that is read inside a transform must keep its graph.
#include <span>
#include <vector>

#include "graph/node.h"

namespace weft::detail {

/// Returns the storage of a value, row-major and contiguous; computes what is pending. The node keeps it, except inside
/// `grad` and the like (see Trace).
graph::Storage realise(const graph::Value& value);
/// Returns the storage of a value if it has one that is row-major, else null. The caller holds graph::structure(),
/// shared; the address stays valid while the value's node lives.
const graph::Storage* packed_storage(const graph::Value& value);
/// Computes several values in one program.
void realise_all(std::span<const graph::Value> values);
/// Starts the same computation and returns before it is done (inside `grad` and the like: after).
void realise_later(std::span<const graph::Value> values);
/// Returns whether the value has storage or is a constant.
bool has_data(const graph::Value& value);
/// Returns the number of a constant, or null.
const Number* constant_number(const graph::Value& value);

/// Lives while a transform runs a user's function on the calling thread. Traces nest.
///
/// differentiate: values that depend on a watched one are computed on a copy of the graph when they are read, so that
/// derivatives still find the graph; the data lives until the trace ends. compile, batch: values that depend on a
/// parameter cannot be read.
class Trace {
 public:
  enum class Kind { differentiate, compile, batch };
  explicit Trace(Kind kind);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void watch(const graph::Value& value) { watched_.push_back(value); }
  void keep(graph::Value value) { kept_.push_back(std::move(value)); }
  Kind kind() const { return kind_; }
  Trace* outer() const { return outer_; }
  const graph::Values& watched() const { return watched_; }

  /// batch: the mapped arguments. A random key that is drawn from the default sequence inside is split for the batch
  /// and added to them.
  void set_extent(Dim extent) { extent_ = extent; }
  const Dim& extent() const { return extent_; }
  void map_key(graph::Value placeholder, graph::Value keys) {
    key_placeholders_.push_back(std::move(placeholder));
    keys_.push_back(std::move(keys));
  }
  const graph::Values& key_placeholders() const { return key_placeholders_; }
  const graph::Values& keys() const { return keys_; }

  static Trace* current();  // innermost of the calling thread, or null

 private:
  Kind kind_;
  Trace* outer_;
  graph::Values watched_, kept_, key_placeholders_, keys_;
  Dim extent_;
};

}  // namespace weft::detail
