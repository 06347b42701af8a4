#pragma once
// Sums of exponentials below a maximum: m = max x, s = Σ exp(x − m), as in softmax and logsumexp. Written so, x is read
// twice, since no exponential can be computed before the maximum is known. Both are one reduction of (x, 1) whose state
// is (maximum, sum scaled by its exponential): each sum is brought to the larger maximum before they are added (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", 2018).
#include <functional>
#include <map>
#include <vector>

#include "compiler/ir/ir.h"

namespace weft::compiler {

/// A sum Σ exp(x − m), and its m.
struct ScaledSum {
  NodeId sum, maximum, operand;  // operand: x
  bool finite = false;           // an infinite m counts as 0
  std::vector<NodeId> inside;    // the nodes from m to the sum: functions of m, its broadcast, the exponential
};
using ScaledSums = std::map<NodeId, ScaledSum>;  // by the sum, and by the maximum

/// Returns the sums along the last axes that are such sums.
std::vector<ScaledSum> scaled_sums(const Ir& ir);
/// Returns the graph with those sums and their maxima as components of one reduction for which `pays` holds.
Ir join_scaled_sums(Ir ir, const std::function<bool(const Ir&, const ScaledSum&)>& pays);

}  // namespace weft::compiler
