// Graphs as text, one node a line: `%3 = add %1 %2 : f32(2,3)`. Numbers follow the topological order, so that equal
// graphs print alike.
#include <unordered_map>

#include <fmt/format.h>

#include "graph/calls/kernel_call.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

std::string number_text(const Number& n) { return n.integral ? fmt::format("{}", n.i) : fmt::format("{}", n.f); }

std::string types_text(const std::vector<Type>& types) {
  std::string out;
  for (const Type& t : types) out.append(out.empty() ? "" : ", ").append(to_string(t));
  return out;
}

/// The attributes that the operator reads, as ` name(value)`.
std::string attributes(const Node& node) {
  const Attrs& a = node.attrs();
  switch (node.op()) {
    case Op::parameter: return a.slot < 0 ? "" : fmt::format(" {}", a.slot);
    case Op::constant: return fmt::format(" {}", number_text(a.number));
    case Op::iota:
    case Op::permute:
    case Op::concat: return fmt::format(" axes{}", list(a.axes));
    case Op::assign:
    case Op::slice: return fmt::format(" start{} step{}", list(a.start), list(a.step));
    case Op::pad: return fmt::format(" low{} high{} with({})", list(a.low), list(a.high), number_text(a.number));
    case Op::window: return fmt::format(" axes{} window{}", list(a.axes), list(a.window));
    case Op::reduce: return fmt::format(" {} axes{}", kernel::name(a.reducer), list(a.axes));
    case Op::cumulative:
      return fmt::format(" {} axes{} switches{}", kernel::name(a.reducer), list(a.axes), list(a.integers));
    case Op::dot:
      return fmt::format(" contract{}{} batch{}{}", list(a.axes), list(a.axes2), list(a.batch), list(a.batch2));
    case Op::gather: return fmt::format(" axes{} sizes{}", list(a.axes), weft::to_string(a.shape));
    case Op::scatter: return fmt::format(" {} axes{}", name(a.mode), list(a.axes));
    case Op::call:
      return a.kernel ? fmt::format(" grid {}", a.kernel->grid) : fmt::format("({})", fmt::join(a.integers, ","));
    case Op::random_bits: return a.generator == Generator::philox ? " philox" : "";
    case Op::composite: return a.composite->key.empty() ? "" : fmt::format(" [{}]", a.composite->key);
    default: return "";
  }
}

}  // namespace

std::string_view name(const Node& node) {
  if (node.op() == Op::composite) return node.attrs().composite->name;
  if (node.attrs().kernel) return node.attrs().kernel->kernel.name;
  return node.op() == Op::call ? std::string_view(node.attrs().call) : row(node.op()).name;
}

std::string print(const Graph& graph) {
  std::unordered_map<const Node*, int> numbers;
  const auto name = [&](const Value& v) {
    const std::string base = fmt::format("%{}", numbers.at(v.node.get()));
    return v.node->outputs() == 1 ? base : fmt::format("{}.{}", base, v.index);
  };
  Values roots = graph.inputs;
  roots.insert(roots.end(), graph.outputs.begin(), graph.outputs.end());
  std::string out;
  for (const auto& node : topological(roots)) {
    const int number = static_cast<int>(numbers.size());
    numbers[node.get()] = number;
    out += fmt::format("%{} = {}", number, weft::graph::name(*node));
    for (const Value& v : node->inputs()) out += fmt::format(" {}", name(v));
    out += fmt::format("{}{} : {}\n", attributes(*node), node->storage(0) ? " stored" : "", types_text(node->types()));
  }
  out += "return";
  for (const Value& v : graph.outputs) out += fmt::format(" {}", name(v));
  return out + "\n";
}

}  // namespace weft::graph
