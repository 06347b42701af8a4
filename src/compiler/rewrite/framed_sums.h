#pragma once
// Sums whose terms depend on another reduction of the same elements, their frame. Written so, the elements are read
// twice, since no term can be computed before the frame is known. Both are one reduction, whose state holds the frame
// and the sum in it, and which is brought to the frame of what it is combined with (kernel/reducer.h):
//   m = max x, Σ exp(x − m), as in softmax and logsumexp (Milakov and Gimelshein, "Online normalizer calculation for
//   softmax", 2018);
//   m = Σ x / n, Σ (x − m)², as in variances and norms (Welford 1962; Chan, Golub and LeVeque, "Updating formulae and a
//   pairwise algorithm for computing sample variances", 1979).
#include <functional>
#include <map>
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

/// Such a sum, and its frame.
struct FramedSum {
  NodeId sum, frame, operand;  // frame: max x or Σ x; operand: x
  kernel::Reducer reducer;     // whose state holds both: logsumexp or welford
  bool finite = false;         // logsumexp: an infinite m counts as 0
  std::vector<NodeId> inside;  // the nodes from the frame to the sum: functions of m, its broadcast, the terms
};
using FramedSums = std::map<NodeId, FramedSum>;  // by the sum, and by the frame

/// Returns whether a node is x - max x, the maximum along any axes of the same x: at most 0, or NaN.
bool is_below_maximum(const Ir& ir, NodeId difference);
/// Returns the sums that are such sums, along any axes.
std::vector<FramedSum> framed_sums(const Ir& ir);
/// Returns the graph with those sums and their frames as components of one reduction for which `pays` holds.
Ir join_framed_sums(Ir ir, const std::function<bool(const Ir&, const FramedSum&)>& pays);

}  // namespace weft::compiler
