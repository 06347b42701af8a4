#pragma once
// Indices that divide: what `ix::affine` refuses of a variable that is divided by a constant, because a reshape splits
// its axis. Bits that share a byte and the scales of groups are read at such indices.
#include <optional>
#include <span>
#include <vector>

#include "base/index.h"
#include "kernel/jump.h"

namespace weft::compiler {

/// e = base + Σ strides[k] · vars[k] + jumps[k].at(vars[k]).
struct Jumping {
  int64_t base = 0;
  std::vector<int64_t> strides;
  std::vector<kernel::Jump> jumps;
};

/// Returns an expression in that form; nothing where it has none: one variable jumps in two ways, or variables meet
/// under a division.
std::optional<Jumping> jumping(ix::Expr e, std::span<const ix::Expr> vars);

/// How an array lies along an axis.
struct AxisLayout {
  int64_t stride = 0;
  kernel::Jump jump = {};
  friend bool operator==(const AxisLayout&, const AxisLayout&) = default;
};

/// Returns how an array lies along the axis that an outer axis and an inner one of `extent` make together; nothing
/// where that is more than a stride and a jump, or needs a new jump and there may be none.
std::optional<AxisLayout> joined(const AxisLayout& outer, const AxisLayout& inner, int64_t extent, bool may_jump);

}  // namespace weft::compiler
