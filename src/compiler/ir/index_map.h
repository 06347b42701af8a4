#pragma once
// Movement operators as maps of indices: given where a consumer looks into a movement node, where does it look into the
// node's input? This is all there is of views inside the compiler.
#include <map>
#include <vector>

#include "base/flat_set.h"
#include "base/index.h"
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// The value of node `node` at `index`; where `valid` is given and 0, the number `other` instead.
struct Access {
  int node;
  std::vector<ix::Expr> index;
  ix::Expr valid;  // empty: always
  Number other;
};

/// One step through a movement node other than concat.
Access push(ix::Context& cx, const Ir& ir, int movement, std::span<const ix::Expr> index);
/// Concat: one branch for each input, in order, with the predicate that the index lies in it.
std::vector<Access> push_concat(ix::Context& cx, const Ir& ir, int concat, std::span<const ix::Expr> index);

/// Steps through movement nodes while they are unconditional: the node behind them, where it is read. Stops at anything
/// else.
Access peel(ix::Context& cx, const Ir& ir, int node, std::vector<ix::Expr> index);

/// The positions where a walk looks, each a number: most steps, those through elementwise operators, stay where they
/// are.
class IndexTuples {
 public:
  IndexTuples() = default;
  IndexTuples(const IndexTuples&) = delete;
  IndexTuples& operator=(const IndexTuples&) = delete;
  int of(std::vector<ix::Expr> index);
  const std::vector<ix::Expr>& operator[](int tuple) const { return *indices_[static_cast<size_t>(tuple)]; }
  /// Whether the walk has not been at this node and position before; `mark` tells walks apart that do not count for
  /// each other.
  bool visit(int node, int tuple, bool mark = false) {
    return seen_.insert(
        (static_cast<uint64_t>(node) << 33 | static_cast<uint64_t>(mark) << 32 | static_cast<uint64_t>(tuple)) + 1);
  }

 private:
  struct Less {
    bool operator()(const std::vector<ix::Expr>& a, const std::vector<ix::Expr>& b) const;
  };
  std::map<std::vector<ix::Expr>, int, Less> ids_;
  std::vector<const std::vector<ix::Expr>*> indices_;
  FlatSet seen_;
};

/// Static extents of a shape, symbols at their bounds.
std::vector<int64_t> bounds(const Shape& shape);
int64_t volume(const Shape& shape);
bool is_row_major(const Shape& shape, const Strides& strides);

/// Variables that run over a shape.
std::vector<ix::Expr> domain(ix::Context& cx, const Shape& shape, const char* prefix);

}  // namespace weft::compiler
