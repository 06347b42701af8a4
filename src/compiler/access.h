#pragma once
// Movement operators as maps of indices: given where a consumer looks into a movement node, where does it look into the node's input?
// This is all there is of views inside the compiler.
#include <vector>

#include "base/index.h"
#include "compiler/ir.h"

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

/// Steps through movement nodes while they are unconditional: the node behind them, where it is read. Stops at anything else.
Access peel(ix::Context& cx, const Ir& ir, int node, std::vector<ix::Expr> index);

/// Static extents of a shape, symbols at their bounds.
std::vector<int64_t> bounds(const Shape& shape);
int64_t volume(const Shape& shape);
bool is_row_major(const Shape& shape, const Strides& strides);

/// Variables that run over a shape.
std::vector<ix::Expr> domain(ix::Context& cx, const Shape& shape, const char* prefix);

}  // namespace weft::compiler
