#pragma once
// Random graphs of maps, reductions, matmuls, gathers and transposes over float32 matrices, as functions of a seed.
#include <cstdint>
#include <string>
#include <vector>

#include "weft/array.h"

namespace weft::tool {

/// One value of a graph: an input, or a row of the table of operators applied to earlier values.
struct RandomNode {
  std::string op;
  std::vector<int> inputs;           ///< indices of earlier nodes
  std::vector<int> shape;            ///< always two axes, but one for the indices of a gather
  std::vector<int> attributes = {};  ///< what the operator wants: an axis, a bound
};

/// A graph: nodes in the order of computation. The outputs are the values that no other node reads.
struct RandomGraph {
  std::string name;  ///< of seed and index, "s7-12"
  std::vector<RandomNode> nodes;
  std::vector<int> outputs;
};

/// The lengths that axes may have, and the number of operators of a graph.
struct RandomGraphSizes {
  std::vector<int> lengths;
  int least_operators = 6, most_operators = 24;
};

/// The operator "where" takes its second input's elements where the first's are larger than this. It is no number that
/// graphs compute exactly, such as the 0 of a difference from a mean.
inline constexpr float where_bound = 0.1f;

/// Returns graph `index` of a seed: the same on every machine.
RandomGraph random_graph(uint64_t seed, int index, const RandomGraphSizes& sizes);
/// Returns the names of all operators, "input" and "indices" first.
std::vector<std::string> random_operators();

/// Returns the graph's inputs, in the order of its nodes: numbers in [-1, 1) and indices that are functions of the
/// element's index and the node's, which bench/torch_random.py computes as well.
std::vector<array> random_inputs(const RandomGraph& graph);
/// Returns the outputs for inputs. With `one_by_one` each node is evaluated by itself, so that nothing is fused.
std::vector<array> apply(const RandomGraph& graph, const std::vector<array>& inputs, bool one_by_one = false);
/// Returns the graph as a line of JSON.
std::string to_json(const RandomGraph& graph);

}  // namespace weft::tool
