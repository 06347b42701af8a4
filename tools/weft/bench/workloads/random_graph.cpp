#include "tools/weft/bench/workloads/random_graph.h"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "weft/data.h"
#include "weft/nn/functions.h"
#include "weft/ops.h"

namespace weft::tool {

namespace {

using Values = std::vector<array>;

/// A graph that grows: the draws of its seed, and the nodes so far.
class Growth {
 public:
  Growth(uint64_t seed, int index, const RandomGraphSizes& sizes)
      : draw_(seed * 1'000'003 + static_cast<uint64_t>(index)), sizes_(sizes) {}

  int below(size_t n) { return static_cast<int>(draw_.below(counter_++, static_cast<uint64_t>(n))); }
  int length() { return sizes_.lengths[static_cast<size_t>(below(sizes_.lengths.size()))]; }
  /// Adds a node and returns its index.
  int add(std::string op, std::vector<int> inputs, std::vector<int> shape, std::vector<int> attributes = {}) {
    nodes.push_back({std::move(op), std::move(inputs), std::move(shape), std::move(attributes)});
    return static_cast<int>(nodes.size()) - 1;
  }
  int input(int rows, int columns) { return add("input", {}, {rows, columns}); }
  /// Returns a value, newer ones twice as often.
  int any() {
    for (;;) {
      const int i = std::max(below(nodes.size()), below(nodes.size()));
      if (nodes[static_cast<size_t>(i)].shape.size() == 2) return i;
    }
  }
  const std::vector<int>& shape(int i) const { return nodes[static_cast<size_t>(i)].shape; }
  /// Returns a value whose shape broadcasts with that of value i to it, other than i where there is one.
  int partner(int i) {
    std::vector<int> fitting;
    for (int k = 0; std::cmp_less(k, nodes.size()); ++k) {
      const auto& s = shape(k);
      if (k != i && s.size() == 2 && (s[0] == shape(i)[0] || s[0] == 1) && (s[1] == shape(i)[1] || s[1] == 1))
        fitting.push_back(k);
    }
    if (fitting.empty()) return input(shape(i)[0], shape(i)[1]);
    return fitting[static_cast<size_t>(below(fitting.size()))];
  }

  std::vector<RandomNode> nodes;

 private:
  data::CounterRandom draw_;
  const RandomGraphSizes& sizes_;
  uint64_t counter_ = 0;
};

using Shapes = std::vector<int>;
using MapOne = array (*)(const array&);
using MapTwo = array (*)(const array&, const array&);
using ReduceAxis = array (*)(const array&, int);

/// A row of the table: how often the operator is taken, how a node of it is added (false where the value does not
/// suit), and what it computes.
struct OperatorRow {
  const char* name;
  int weight;
  std::function<bool(Growth&, const char*)> grow;
  std::function<array(const RandomNode&, const Values&)> compute;
};

OperatorRow map_row(const char* name, MapOne f) {
  return {name, 2,
          [](Growth& g, const char* op) {
            const int x = g.any();
            return g.add(op, {x}, Shapes(g.shape(x))) >= 0;
          },
          [f](const RandomNode&, const Values& in) { return f(in[0]); }};
}

OperatorRow binary_row(const char* name, MapTwo f) {
  return {name, 3,
          [](Growth& g, const char* op) {
            const int x = g.any(), y = g.partner(x);
            return g.add(op, {x, y}, Shapes(g.shape(x))) >= 0;
          },
          [f](const RandomNode&, const Values& in) { return f(in[0], in[1]); }};
}

OperatorRow reduction_row(const char* name, int weight, ReduceAxis f) {
  return {name, weight,
          [](Growth& g, const char* op) {
            const int x = g.any(), axis = g.below(2);
            Shapes shape = g.shape(x);
            if (shape[static_cast<size_t>(axis)] == 1) return false;
            shape[static_cast<size_t>(axis)] = 1;
            return g.add(op, {x}, shape, {axis}) >= 0;
          },
          [f](const RandomNode& n, const Values& in) { return f(in[0], n.attributes[0]); }};
}

OperatorRow along_row(const char* name, ReduceAxis f) {
  return {name, 1,
          [](Growth& g, const char* op) {
            const int x = g.any(), axis = g.below(2);
            return g.add(op, {x}, Shapes(g.shape(x)), {axis}) >= 0;
          },
          [f](const RandomNode& n, const Values& in) { return f(in[0], n.attributes[0]); }};
}

bool grow_where(Growth& g, const char* op) {
  const int x = g.any(), y = g.partner(x), z = g.partner(x);
  return g.add(op, {x, y, z}, Shapes(g.shape(x))) >= 0;
}

/// x w for a new matrix w.
bool grow_matmul(Growth& g, const char* op) {
  const int x = g.any();
  const Shapes shape = g.shape(x);
  if (shape[0] == 1 || shape[1] == 1) return false;
  const int columns = g.length(), w = g.input(shape[1], columns);
  return g.add(op, {x, w}, {shape[0], columns}) >= 0;
}

/// x yᵀ for a value y of as many columns.
bool grow_matmul_transposed(Growth& g, const char* op) {
  const int x = g.any(), y = g.any();
  const Shapes a = g.shape(x), b = g.shape(y);
  if (a[1] == 1 || a[1] != b[1] || a[0] == 1 || b[0] == 1) return false;
  return g.add(op, {x, y}, {a[0], b[0]}) >= 0;
}

array scaled_matmul(const array& a, const array& b) {
  const auto depth = static_cast<float>(static_cast<int64_t>(a.shape(1)));
  return matmul(a, b) * array(1 / std::sqrt(depth));
}

bool grow_gather(Growth& g, const char* op) {
  const int x = g.any();
  const Shapes shape = g.shape(x);
  if (shape[0] == 1) return false;
  const int count = g.length(), ids = g.add("indices", {}, {count}, {shape[0]});
  return g.add(op, {x, ids}, {count, shape[1]}) >= 0;
}

bool grow_transpose(Growth& g, const char* op) {
  const int x = g.any();
  return g.add(op, {x}, {g.shape(x)[1], g.shape(x)[0]}) >= 0;
}

/// [a, h · b] → [h · a, b]: columns are cut into h parts, which become rows.
bool grow_heads(Growth& g, const char* op) {
  const int x = g.any(), heads = 2 << g.below(2);
  const Shapes shape = g.shape(x);
  if (shape[1] % heads != 0 || shape[1] == heads) return false;
  return g.add(op, {x}, {heads * shape[0], shape[1] / heads}, {heads}) >= 0;
}

array heads_of(const RandomNode& n, const Values& in) {
  const int heads = n.attributes[0];
  return reshape(transpose(reshape(in[0], {in[0].shape(0), heads, -1}), {1, 0, 2}), {n.shape[0], n.shape[1]});
}

bool grow_half(Growth& g, const char* op) {
  const int x = g.any(), second = g.below(2);
  const Shapes shape = g.shape(x);
  if (shape[1] % 2 != 0) return false;
  return g.add(op, {x}, {shape[0], shape[1] / 2}, {second}) >= 0;
}

const std::vector<OperatorRow>& operator_table() {
  static const std::vector<OperatorRow> table = {
      map_row("tanh", [](const array& x) { return tanh(x); }),
      map_row("sigmoid", [](const array& x) { return sigmoid(x); }),
      map_row("relu", [](const array& x) { return nn::relu(x); }),
      map_row("silu", [](const array& x) { return nn::silu(x); }),
      map_row("gelu", [](const array& x) { return nn::gelu(x); }),
      map_row("sin", [](const array& x) { return sin(x); }),
      map_row("bell", [](const array& x) { return exp(negative(square(x))); }),
      map_row("root", [](const array& x) { return sqrt(abs(x) + array(1.0f)); }),
      binary_row("add", [](const array& a, const array& b) { return a + b; }),
      binary_row("subtract", [](const array& a, const array& b) { return a - b; }),
      binary_row("multiply", [](const array& a, const array& b) { return a * tanh(b); }),
      binary_row("maximum", [](const array& a, const array& b) { return maximum(a, b); }),
      {"where", 2, grow_where,
       [](const RandomNode&, const Values& in) { return where(in[0] > array(where_bound), in[1], in[2]); }},
      reduction_row("mean", 3, [](const array& x, int axis) { return mean(x, axis, true); }),
      reduction_row("max", 2, [](const array& x, int axis) { return max(x, axis, true); }),
      reduction_row("min", 1, [](const array& x, int axis) { return min(x, axis, true); }),
      reduction_row("var", 2, [](const array& x, int axis) { return var(x, axis, true); }),
      reduction_row("logsumexp", 2, [](const array& x, int axis) { return logsumexp(x, axis, true); }),
      along_row("softmax", [](const array& x, int axis) { return softmax(x, axis); }),
      along_row("center", [](const array& x, int axis) { return x - mean(x, axis, true); }),
      {"matmul", 4, grow_matmul, [](const RandomNode&, const Values& in) { return scaled_matmul(in[0], in[1]); }},
      {"matmul_transposed", 2, grow_matmul_transposed,
       [](const RandomNode&, const Values& in) { return scaled_matmul(in[0], transpose(in[1])); }},
      {"gather", 3, grow_gather, [](const RandomNode&, const Values& in) { return take(in[0], in[1], 0); }},
      {"transpose", 3, grow_transpose, [](const RandomNode&, const Values& in) { return transpose(in[0]); }},
      {"heads", 2, grow_heads, heads_of},
      {"half", 1, grow_half,
       [](const RandomNode& n, const Values& in) { return split(in[0], 2, 1)[static_cast<size_t>(n.attributes[0])]; }},
  };
  return table;
}

const OperatorRow& row_named(const std::string& name) {
  for (const auto& row : operator_table())
    if (name == row.name) return row;
  throw std::invalid_argument("[random] there is no operator '" + name + "'");
}

/// Grows one operator, drawn by weight; draws again where it does not suit.
void grow_operator(Growth& g) {
  int total = 0;
  for (const auto& row : operator_table()) total += row.weight;
  for (;;) {
    int left = g.below(static_cast<size_t>(total));
    const OperatorRow* row = operator_table().data();
    while (left >= row->weight) left -= row++->weight;
    if (row->grow(g, row->name)) return;
  }
}

/// Returns hashed bits of the positions 0 … n - 1, uint32: multiplications and shifts as of MurmurHash3's finaliser.
array hashed_bits(int64_t n, uint32_t node) {
  const auto constant = [](uint32_t v) { return array(v, uint32); };
  array v = arange(0, static_cast<int>(n), 1);
  v = (astype(v, uint32) + constant(node * 0x9E3779B1u)) * constant(0x85EBCA6Bu);
  v = (v ^ (v >> constant(15))) * constant(0xC2B2AE35u);
  return v ^ (v >> constant(13));
}

}  // namespace

std::vector<std::string> random_operators() {
  std::vector<std::string> names{"input", "indices"};
  for (const auto& row : operator_table()) names.emplace_back(row.name);
  return names;
}

RandomGraph random_graph(uint64_t seed, int index, const RandomGraphSizes& sizes) {
  Growth g(seed, index, sizes);
  const int rows = g.length(), columns = g.length();
  g.input(rows, columns);
  if (g.below(2) == 0) g.input(rows, columns);
  if (g.below(2) == 0) g.input(1, columns);
  const int count =
      sizes.least_operators + g.below(static_cast<size_t>(sizes.most_operators - sizes.least_operators + 1));
  for (int i = 0; i < count; ++i) grow_operator(g);
  RandomGraph graph{"s" + std::to_string(seed) + "-" + std::to_string(index), std::move(g.nodes), {}};
  std::vector<bool> read(graph.nodes.size());
  for (const auto& node : graph.nodes)
    for (const int i : node.inputs) read[static_cast<size_t>(i)] = true;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!read[i] && !graph.nodes[i].inputs.empty()) graph.outputs.push_back(static_cast<int>(i));
  return graph;
}

std::vector<array> random_inputs(const RandomGraph& graph) {
  std::vector<array> inputs;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const RandomNode& node = graph.nodes[i];
    if (!node.inputs.empty()) continue;
    int64_t n = 1;
    for (const int length : node.shape) n *= length;
    const array bits = hashed_bits(n, static_cast<uint32_t>(i));
    if (node.op == "indices") {
      inputs.push_back(astype(bits % array(static_cast<uint32_t>(node.attributes[0]), uint32), int32));
      continue;
    }
    const array numbers = astype(bits >> array(8u, uint32), float32) * array(0x1p-23f) - array(1.0f);
    inputs.push_back(reshape(numbers, {node.shape[0], node.shape[1]}));
  }
  return inputs;
}

std::vector<array> apply(const RandomGraph& graph, const std::vector<array>& inputs, bool one_by_one) {
  Values values, results;
  size_t next = 0;
  for (const RandomNode& node : graph.nodes) {
    if (node.inputs.empty()) {
      values.push_back(inputs.at(next++));
      continue;
    }
    Values in;
    for (const int i : node.inputs) in.push_back(values[static_cast<size_t>(i)]);
    values.push_back(row_named(node.op).compute(node, in));
    if (one_by_one) eval(values.back());
  }
  for (const int i : graph.outputs) results.push_back(values[static_cast<size_t>(i)]);
  return results;
}

std::string to_json(const RandomGraph& graph) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const RandomNode& node : graph.nodes) {
    nlohmann::ordered_json json{{"op", node.op}, {"inputs", node.inputs}, {"shape", node.shape}};
    if (!node.attributes.empty()) json["attributes"] = node.attributes;
    nodes.push_back(std::move(json));
  }
  return nlohmann::ordered_json{{"name", graph.name}, {"nodes", nodes}, {"outputs", graph.outputs}}.dump();
}

}  // namespace weft::tool
