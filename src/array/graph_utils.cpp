// weft/graph_utils.h: pending graphs as text and for Graphviz.
#include "weft/graph_utils.h"

#include <mutex>
#include <ostream>
#include <set>
#include <shared_mutex>

#include "graph/table.h"

namespace weft {
namespace {

using graph::Node;
using graph::Value;

/// Returns a number that all handles of one result share, and no others.
std::uintptr_t identity(const Value& v) { return v.node->id() << 16 | static_cast<std::uintptr_t>(v.index); }

std::string letters(size_t number) {
  std::string out;
  for (; number > 0; number = (number - 1) / 26) out.insert(out.begin(), static_cast<char>('A' + (number - 1) % 26));
  return out;
}

bool is_input(const Node& node) {
  return node.storage(0) || node.op() == graph::Op::parameter || node.op() == graph::Op::constant;
}

graph::Values results_of(const std::shared_ptr<Node>& node) {
  graph::Values out;
  for (int k = 0; k < node->outputs(); ++k) out.push_back({node, k});
  return out;
}

/// A pending graph: operations after their inputs, and the evaluated inputs in the order in which they are first read.
struct Pending {
  std::vector<std::shared_ptr<Node>> operations;
  graph::Values inputs, outputs;

  explicit Pending(const std::vector<array>& arrays) {
    for (const array& a : arrays) outputs.push_back(a.value());
    for (auto& node : graph::topological(outputs))
      if (!is_input(*node)) operations.push_back(std::move(node));
    std::set<std::uintptr_t> seen;
    const auto add = [&](const Value& v) {
      if (is_input(*v.node) && seen.insert(identity(v)).second) inputs.push_back(v);
    };
    for (const auto& node : operations)
      for (const Value& v : node->inputs()) add(v);
    for (const Value& v : outputs) add(v);
  }
};

class GraphText {
 public:
  GraphText(std::ostream& os, NodeNamer& namer) : os_(os), namer_(namer) {}

  const std::string& name(const Value& v) { return namer_.get_name(array(v)); }
  void values(const graph::Values& all) {
    const char* between = "";
    for (const Value& v : all) {
      os_ << between << name(v) << " [" << to_string(v.shape()) << ", " << dtype_name(v.dtype()) << "]";
      between = ", ";
    }
  }

 private:
  std::ostream& os_;
  NodeNamer& namer_;
};

}  // namespace

const std::string& NodeNamer::get_name(const array& x) {
  const auto [at, added] = names.try_emplace(identity(x.value()));
  if (added) at->second = letters(names.size());
  return at->second;
}

void NodeNamer::set_name(const array& x, std::string n) { names[identity(x.value())] = std::move(n); }

void print_graph(std::ostream& os, NodeNamer namer, const std::vector<array>& outputs) {
  const std::shared_lock lock(graph::structure());
  GraphText text(os, namer);
  const Pending pending(outputs);
  os << "Inputs: ";
  text.values(pending.inputs);
  os << "\nOutputs: ";
  text.values(pending.outputs);
  os << "\n";
  for (const auto& node : pending.operations) {
    os << graph::name(*node) << " ";
    text.values(node->inputs());
    os << " -> ";
    text.values(results_of(node));
    os << "\n";
  }
}

void export_to_dot(std::ostream& os, NodeNamer namer, const std::vector<array>& outputs) {
  const std::shared_lock lock(graph::structure());
  GraphText text(os, namer);
  const Pending pending(outputs);
  std::set<std::uintptr_t> read;
  for (const auto& node : pending.operations)
    for (const Value& v : node->inputs()) read.insert(identity(v));
  os << "digraph {\n";
  for (const Value& v : pending.inputs) os << "{ rank=source; \"" << text.name(v) << "\"; }\n";
  for (const auto& node : pending.operations) {
    os << "{ " << node->id() << " [label=\"" << graph::name(*node) << "\", shape=rectangle]; }\n";
    for (const Value& v : node->inputs()) os << '"' << text.name(v) << "\" -> " << node->id() << "\n";
    for (const Value& v : results_of(node)) {
      os << "{ " << (read.contains(identity(v)) ? "" : "rank=sink; ") << '"' << text.name(v) << "\"; }\n";
      os << node->id() << " -> \"" << text.name(v) << "\"\n";
    }
  }
  os << "}\n";
}

}  // namespace weft
