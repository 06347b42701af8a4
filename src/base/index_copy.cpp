// Expressions of one Context as expressions of another.
#include <algorithm>
#include <unordered_map>

#include "base/index_builder.h"

namespace weft::ix {

/// Facts are copied too: they were inferred from the same operands.
const Node* Builder::copy(const Node& from, const Node* a, const Node* b) {
  Node node = from;
  node.a = a;
  node.b = b;
  node.context = &cx;
  node.serial = static_cast<uint32_t>(s.nodes.size());
  if (node.kind == Kind::variable) {
    node.value = static_cast<int64_t>(s.names.size());
    s.names.push_back(from.context->name(from.value));
  } else if (auto it = s.table.find(&node); it != s.table.end()) {
    return *it;
  }
  s.nodes.push_back(node);
  s.table.insert(&s.nodes.back());
  return &s.nodes.back();
}

std::vector<Expr> copy(Context& to, std::span<const Expr> from) {
  std::unordered_map<const Node*, const Node*> copies;
  std::vector<const Node*> nodes, pending;
  const auto meet = [&](const Node* n) {
    if (n && copies.try_emplace(n, nullptr).second) pending.push_back(n);
  };
  for (const Expr e : from) meet(e.get());
  while (!pending.empty()) {
    nodes.push_back(pending.back());
    pending.pop_back();
    meet(nodes.back()->a);
    meet(nodes.back()->b);
  }
  // Operands come before their users, and terms are sorted by age.
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->serial < b->serial; });
  Builder builder(to);
  const auto copied = [&](const Node* n) { return n ? copies.at(n) : nullptr; };
  for (const Node* n : nodes) copies[n] = builder.copy(*n, copied(n->a), copied(n->b));
  std::vector<Expr> out;
  for (const Expr e : from) out.emplace_back(copied(e.get()));
  return out;
}

}  // namespace weft::ix
