#pragma once
// Movement operators as maps of indices: from the index at which a consumer reads a movement node to the index at which
// that node reads its input. The compiler represents views in no other way.
#include <map>
#include <vector>

#include "base/flat_set.h"
#include "base/index.h"
#include "compiler/ir/ir.h"

namespace weft::compiler {

/// An access: the value of node `node` at `index`. Where `valid` is given and evaluates to 0, the value is the constant
/// `other`.
struct Access {
  NodeId node;
  std::vector<ix::Expr> index;
  ix::Expr valid;  // empty: always
  Number other;
};

/// Maps an index through one movement node other than concat.
Access push(ix::Context& cx, const Ir& ir, NodeId movement, std::span<const ix::Expr> index);
/// Maps an index through a concat: returns one access for each input, in order, valid where the index lies in that
/// input.
std::vector<Access> push_concat(ix::Context& cx, const Ir& ir, NodeId concat, std::span<const ix::Expr> index);

/// Maps an index through movement nodes as long as each access is unconditional. Returns the first node that is not
/// such a movement, and the index at which it is read.
Access peel(ix::Context& cx, const Ir& ir, NodeId node, std::vector<ix::Expr> index);

/// Interns the index tuples of a walk, so that each is an id. Most steps (those through elementwise operators) keep the
/// tuple.
class IndexTuples {
 public:
  IndexTuples() = default;
  IndexTuples(const IndexTuples&) = delete;
  IndexTuples& operator=(const IndexTuples&) = delete;
  int of(std::vector<ix::Expr> index);
  const std::vector<ix::Expr>& operator[](int tuple) const { return *indices_[static_cast<size_t>(tuple)]; }
  /// Marks a node at an index tuple as visited and returns whether it was not visited before. Visits with different
  /// `mark` are counted separately.
  bool visit(NodeId node, int tuple, bool mark = false) {
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

/// Returns the static extents of a shape, with symbols at their bounds.
std::vector<int64_t> bounds(const Shape& shape);
int64_t volume(const Shape& shape);
bool is_row_major(const Shape& shape, const Strides& strides);
/// Returns the row-major strides of an array whose rows (the last axis) begin at multiples of `elements`.
Strides padded_strides(const Shape& shape, int64_t elements);
/// Returns the elements that an array of the program takes in memory: its own and the padding of its rows.
int64_t stored_elements(const Shape& shape, const Strides& strides);

/// Returns one index variable for each axis of a shape.
std::vector<ix::Expr> domain(ix::Context& cx, const Shape& shape, const char* prefix);

}  // namespace weft::compiler
