// Results of a scan that its steps need not compute: y_t = v_t · w, where nothing of the carry depends on y, is one
// product over all steps behind the scan, from the stack of v. The gradient of a recurrent layer's input is such a
// result, and its v is stacked already for the gradients of the weights.
#include <algorithm>
#include <unordered_set>

#include "graph/control/scan_form.h"
#include "graph/derive/derive.h"

namespace weft::graph {
namespace {

using Nodes = std::unordered_set<const Node*>;

/// Returns the nodes of the step that are not the same in all steps.
Nodes varying(const ScanForm& scan) {
  Values changing = scan.carry_parameters();
  for (const ScanForm::Input& x : scan.xs) changing.push_back(x.parameter);
  Nodes out;
  for (const Value& v : changing) out.insert(v.node.get());
  for (const Step& s : history(scan.roots(), changing))
    if (s.depends) out.insert(s.node.get());
  return out;
}

/// Returns the varying factor of a product whose other factor is the same in all steps, through movements of the
/// product; empty for other values.
Value varying_factor(const Value& v, const Nodes& varies) {
  const Node* n = v.node.get();
  while (n->op() == Op::permute || n->op() == Op::reshape) n = n->inputs()[0].node.get();
  if (n->op() != Op::dot) return {};
  const Value &a = n->inputs()[0], &b = n->inputs()[1];
  if (varies.contains(a.node.get()) == varies.contains(b.node.get())) return {};
  return varies.contains(a.node.get()) ? a : b;
}

/// Computes stack k behind the scan, if it is a product that the carry does not need.
bool move_stack(ScanForm& scan, size_t k) {
  const Value each = scan.stacks[k].each, factor = varying_factor(each, varying(scan));
  if (!factor) return false;
  Values carried;
  for (const ScanForm::Carry& c : scan.carry) carried.push_back(c.next);
  const auto needed = topological(carried);
  if (std::find(needed.begin(), needed.end(), each.node) != needed.end()) return false;
  if (!scan.known_stack(factor) && scan.length() * bytes_of(factor.type()) > most_growth * scan.stacked_bytes())
    return false;
  Values elements{factor};
  std::vector<Batched> all{{scan.stack(factor), 0}};
  for (const ScanForm::Input& i : scan.constants) {
    elements.push_back(i.parameter);
    all.push_back({i.given, -1});
  }
  scan.replace_outside(scan.stacks[k].all, batch(std::span(&each, 1), elements, all)[0].value);
  return true;
}

}  // namespace

bool stack_behind(ScanForm& scan) {
  bool changed = false;
  for (size_t k = scan.stacks.size(); k-- > 0;)
    if (move_stack(scan, k)) {
      changed = true;
      scan.stacks.erase(scan.stacks.begin() + static_cast<std::ptrdiff_t>(k));
    }
  return changed;
}

}  // namespace weft::graph
