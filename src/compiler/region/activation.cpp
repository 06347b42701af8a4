#include "compiler/region/activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "base/error.h"
#include "compiler/ir/grouping.h"
#include "compiler/rewrite/simplify.h"
#include "graph/build.h"
#include "graph/derive/derive.h"
#include "graph/regions/composites.h"

namespace weft::compiler {

using graph::Op;
using kernel::Activation;
using kernel::ScalarOp;
using kernel::Value;

namespace {

bool commutes(Op op) { return op == Op::add || op == Op::mul || op == Op::max || op == Op::min; }

/// The elementwise expressions of one node and constants, up to 40, each with a hash of its formula.
class Cone {
 public:
  Cone(const Ir& ir, const Users& users, NodeId root) : ir_(ir) {
    keys_[root] = Hasher().text("x").finish();
    std::set<NodeId> pending(users[root].begin(), users[root].end());
    while (!pending.empty() && keys_.size() < largest) {
      const NodeId id = *pending.begin();
      pending.erase(pending.begin());
      if (!is_elementwise(ir[id].op) || !insert(id)) continue;
      pending.insert(users[id].begin(), users[id].end());
    }
  }

  const std::map<NodeId, Digest>& keys() const { return keys_; }

 private:
  static constexpr size_t largest = 40;

  /// Adds a node if all its inputs have keys. Nodes come in ascending order, inputs before users.
  bool insert(NodeId id) {
    std::vector<Digest> inputs;
    for (NodeId input : ir_[id].inputs) {
      const auto found = keys_.find(input);
      const std::optional<Digest> key = found != keys_.end() ? found->second : constant(input);
      if (!key) return false;
      inputs.push_back(*key);
    }
    if (commutes(ir_[id].op)) std::sort(inputs.begin(), inputs.end());
    Hasher h;
    h.number(ir_[id].op).number(ir_[id].type.dtype.val());
    for (const Digest& d : inputs) h.digest(d);
    keys_[id] = h.finish();
    return true;
  }

  std::optional<Digest> constant(NodeId id) const {
    while (ir_[id].op == Op::broadcast || ir_[id].op == Op::reshape) id = ir_[id].inputs[0];
    if (ir_[id].op != Op::constant) return {};
    return Hasher().text("constant").number(ir_[id].attrs->number.real()).finish();
  }

  const Ir& ir_;
  std::map<NodeId, Digest> keys_;
};

/// Returns the activations by the hashes of their simplified formulas.
std::map<Digest, Activation> make_table() {
  using namespace graph;
  std::map<Digest, Activation> table;
  auto insert = [&](Activation activation, weft::graph::Value (*f)(const weft::graph::Value&)) {
    const weft::graph::Value x = parameter({{16, 16}, float32});
    const Ir ir = eliminate_dead_code(simplify(import({{{x}, {f(x)}}, {}, {}})));
    const Cone cone(ir, users(ir), ir.inputs[0]);
    if (auto found = cone.keys().find(ir.outputs[0]); found != cone.keys().end()) table[found->second] = activation;
  };
  insert(Activation::relu, [](const weft::graph::Value& x) { return binary(Op::max, x, zeros_like(x)); });
  insert(Activation::gelu, [](const weft::graph::Value& x) { return gelu(x); });
  insert(Activation::gelu_tanh, [](const weft::graph::Value& x) { return gelu_tanh(x); });
  insert(Activation::sigmoid, [](const weft::graph::Value& x) { return unary(Op::sigmoid, x); });
  insert(Activation::tanh, [](const weft::graph::Value& x) { return tanh(x); });
  return table;
}

/// Hashes of gelu_tanh(x) for x of a 16-bit dtype, and of its derivative at x in float32.
struct GeluKeys {
  Digest value, derivative;
};

/// Returns d if `node` is cast(cast(g) · d), the gradient of an activation for the cotangent `g`; else -1.
NodeId derivative_of(const Ir& ir, NodeId node, NodeId g) {
  if (ir[node].op != Op::cast || ir[ir[node].inputs[0]].op != Op::mul) return -1;
  const IrNode& product = ir[ir[node].inputs[0]];
  for (const int side : {0, 1}) {
    const IrNode& wide = ir[product.inputs[static_cast<size_t>(side)]];
    if (wide.op == Op::cast && wide.type.dtype == float32 && wide.inputs[0] == g)
      return product.inputs[static_cast<size_t>(1 - side)];
  }
  return -1;
}

GeluKeys make_gelu_keys(Dtype dtype) {
  using namespace graph;
  const weft::graph::Value x = parameter({{16, 16}, dtype}), g = parameter({{16, 16}, dtype}), y = gelu_tanh(x);
  const weft::graph::Value dx = pull_back(std::span(&y, 1), std::span(&g, 1), std::span(&x, 1))[0];
  const Ir ir = eliminate_dead_code(simplify(import({{{x, g}, {y, dx}}, {}, {}})));
  const Cone cone(ir, users(ir), ir.inputs[0]);
  const NodeId derivative = derivative_of(ir, ir.outputs[1], ir.inputs[1]);
  check(derivative >= 0 && cone.keys().contains(derivative) && cone.keys().contains(ir.outputs[0]), "activation",
        "gelu's derivative is not what it was");
  return {cone.keys().at(ir.outputs[0]), cone.keys().at(derivative)};
}

const GeluKeys& gelu_keys(Dtype dtype) {
  static const GeluKeys& bf16 = *new GeluKeys(make_gelu_keys(bfloat16));
  static const GeluKeys& f16 = *new GeluKeys(make_gelu_keys(float16));
  return dtype == bfloat16 ? bf16 : f16;
}

bool is_half(Dtype t) { return t == bfloat16 || t == float16; }

}  // namespace

NodeId gelu_of(const Ir& ir, const Users& users, NodeId node) {
  if (!is_half(ir[node].type.dtype)) return -1;
  const Digest& wanted = gelu_keys(ir[node].type.dtype).value;
  const Cone cone(ir, users, node);
  const auto found =
      std::find_if(cone.keys().begin(), cone.keys().end(), [&](const auto& entry) { return entry.second == wanted; });
  return found == cone.keys().end() ? NodeId{} : found->first;
}

std::optional<GeluDerivative> following_gelu_derivative(const Ir& ir, const Users& users, const NodeCounts& outputs,
                                                        NodeId node) {
  if (!is_half(ir[node].type.dtype)) return {};
  NodeId result = node;
  for (int step = 0; step < 3; ++step) {  // cast, mul, cast: each the only reader of the one before
    const std::span<const NodeId> readers = users[result];
    if (readers.size() != 1 || outputs[result] > 0) return {};
    result = readers[0];
  }
  const NodeId derivative = derivative_of(ir, result, node);
  if (derivative < 0 || ir[result].type.dtype != ir[node].type.dtype) return {};
  // The pre-activation is the 16-bit operand of a cast that the derivative is computed from.
  std::set<NodeId> seen;
  std::vector<NodeId> pending{derivative};
  while (!pending.empty() && seen.size() < 40) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (!seen.insert(id).second || !is_elementwise(ir[id].op)) continue;
    if (ir[id].op != Op::cast || ir[ir[id].inputs[0]].type.dtype != ir[node].type.dtype) {
      pending.insert(pending.end(), ir[id].inputs.begin(), ir[id].inputs.end());
      continue;
    }
    const NodeId pre_activation = ir[id].inputs[0];
    const Cone cone(ir, users, pre_activation);
    const auto known = cone.keys().find(derivative);
    if (known != cone.keys().end() && known->second == gelu_keys(ir[node].type.dtype).derivative &&
        ir[pre_activation].type == ir[node].type)
      return GeluDerivative{pre_activation, result};
    return {};
  }
  return {};
}

std::optional<ActivationMatch> activation_of(const Ir& ir, const Users& users, const NodeCounts& outputs, NodeId node) {
  static const std::map<Digest, Activation>& table = *new std::map<Digest, Activation>(make_table());
  if (ir[node].type.dtype != float32) return {};
  const Cone cone(ir, users, node);
  for (auto it = cone.keys().rbegin(); it != cone.keys().rend(); ++it) {
    const auto found = table.find(it->second);
    if (found == table.end()) continue;
    // No value between `node` and the result may be an output or have a reader outside.
    std::set<NodeId> inside{it->first};
    std::vector<NodeId> pending{it->first};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      if (id == node) continue;
      for (NodeId input : ir[id].inputs)
        if (cone.keys().contains(input) && inside.insert(input).second) pending.push_back(input);
    }
    auto escapes = [&](NodeId id) {
      const std::span<const NodeId> readers = users[id];
      return id != it->first &&
             (std::any_of(readers.begin(), readers.end(), [&](int reader) { return !inside.contains(reader); }) ||
              outputs[static_cast<size_t>(id)] > 0);
    };
    if (std::none_of(inside.begin(), inside.end(), escapes)) return ActivationMatch{found->second, it->first};
  }
  return {};
}

Value activated(kernel::Builder& b, Activation activation, Value x) {
  const Dtype t = b.type(x).dtype;
  auto number = [&](double v) { return b.real(t, v); };
  auto unary = [&](ScalarOp op, Value v) { return b.scalar(op, {v}); };
  auto half_of = [&](Value v) { return b.mul(b.mul(x, number(0.5)), b.add(v, number(1))); };  // x (1 + v) / 2
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return b.max(x, number(0));
    case Activation::gelu: return half_of(unary(ScalarOp::erf, b.mul(x, number(1 / std::numbers::sqrt2))));
    case Activation::gelu_tanh: {
      Value inner = b.add(b.mul(b.mul(x, x), number(0.044715)), number(1));
      return half_of(unary(ScalarOp::tanh, b.mul(b.mul(x, inner), number(std::sqrt(2 / std::numbers::pi)))));
    }
    case Activation::sigmoid: return unary(ScalarOp::sigmoid, x);
    case Activation::tanh: return unary(ScalarOp::tanh, x);
  }
  return x;
}

}  // namespace weft::compiler
