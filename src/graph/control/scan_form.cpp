#include "graph/control/scan_form.h"

#include <algorithm>
#include <unordered_set>

#include "graph/build.h"
#include "graph/rows.h"

namespace weft::graph {

namespace {

using Reached = std::unordered_set<const Node*>;

Reached reach(const Values& values) {
  Reached out;
  for (const auto& node : topological(values)) out.insert(node.get());
  return out;
}

Values present(const Values& values) {
  Values out;
  std::copy_if(values.begin(), values.end(), std::back_inserter(out), [](const Value& v) { return bool(v); });
  return out;
}

Type stacked(const Type& type, const Dim& length) { return {prepend(length, type.shape), type.dtype}; }

/// Replaces values in a list that may have empty ones.
Values substitute_present(const Values& values, const Values& from, const Values& to) {
  const Values replaced = substitute(present(values), from, to);
  Values out;
  size_t next = 0;
  for (const Value& v : values) out.push_back(v ? replaced[next++] : Value{});
  return out;
}

}  // namespace

int64_t bytes_of(const Type& type) {
  int64_t n = type.dtype.size();
  for (const Dim& d : type.shape) n *= d.bound();
  return n;
}

ScanForm::ScanForm(const Node& node, const Graph& step, const std::vector<bool>& used)
    : length_(node.attrs().control->length), reverse_(node.attrs().control->reverse) {
  const Control& c = *node.attrs().control;
  const auto first = static_cast<size_t>(c.constants), parts = static_cast<size_t>(c.carry);
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    const Value &given = node.inputs()[k], &parameter_of = step.inputs[k];
    if (k < first) constants.push_back({given, parameter_of});
    else if (k >= first + parts) xs.push_back({given, parameter_of});
    else carry.push_back({given, parameter_of, step.outputs[k - first], parameter(given.type())});
  }
  for (size_t k = 0; k < step.outputs.size(); ++k)
    results_.push_back(!used[k] ? Value{} : k < parts ? carry[k].last : stack(step.outputs[k]));
}

Values ScanForm::roots() const {
  Values out;
  for (const Carry& c : carry) out.push_back(c.next);
  for (const Stack& s : stacks) out.push_back(s.each);
  return out;
}

Values ScanForm::parameters(const std::vector<Input>& inputs) const {
  Values out;
  for (const Input& i : inputs) out.push_back(i.parameter);
  return out;
}

Values ScanForm::carry_parameters() const {
  Values out;
  for (const Carry& c : carry) out.push_back(c.parameter);
  return out;
}

Value ScanForm::outside(const Value& v) const {
  Values given;
  for (const Input& i : constants) given.push_back(i.given);
  return substitute(std::span(&v, 1), parameters(constants), given)[0];
}

Value ScanForm::known_stack(const Value& each) const {
  for (const Input& x : xs)
    if (x.parameter == each) return x.given;
  for (const Stack& s : stacks)
    if (s.each == each) return s.all;
  return {};
}

Value ScanForm::stack(const Value& each) {
  if (const Value known = known_stack(each)) return known;
  stacks.push_back({each, parameter(stacked(each.type(), length_))});
  return stacks.back().all;
}

void ScanForm::replace_in_step(const Values& from, const Values& to) {
  const Values replaced = substitute(roots(), from, to);
  size_t next = 0;
  for (Carry& c : carry) c.next = replaced[next++];
  for (Stack& s : stacks) s.each = replaced[next++];
}

void ScanForm::replace_outside(const Value& placeholder, const Value& by) {
  results_ = substitute_present(results_, {placeholder}, {by});
}

int64_t ScanForm::stacked_bytes() const {
  int64_t bytes = 0;
  for (const Input& x : xs) bytes += bytes_of(x.given.type());
  for (const Stack& s : stacks) bytes += bytes_of(s.all.type());
  return bytes;
}

/// Replaces stacks of what is known outside: elements of the scanned arrays.
bool ScanForm::resolve_stacks() {
  const size_t before = stacks.size();
  for (size_t k = stacks.size(); k-- > 0;) {
    const Stack s = stacks[k];
    const auto x = std::find_if(xs.begin(), xs.end(), [&](const Input& i) { return i.parameter == s.each; });
    if (x == xs.end()) continue;
    stacks.erase(stacks.begin() + static_cast<std::ptrdiff_t>(k));
    replace_outside(s.all, x->given);
  }
  return stacks.size() < before;
}

bool ScanForm::prune() {
  bool changed = resolve_stacks();
  const Reached outer = reach(present(results_));
  const auto drop = [&](auto& list, const auto& needless) {
    if (std::erase_if(list, needless) > 0) changed = true;
  };
  drop(stacks, [&](const Stack& s) { return !outer.contains(s.all.node.get()); });
  Values needed;
  for (const Stack& s : stacks) needed.push_back(s.each);
  std::vector<bool> live;
  for (const Carry& c : carry) live.push_back(outer.contains(c.last.node.get()));
  for (size_t k = 0; k < carry.size(); ++k)
    if (live[k]) needed.push_back(carry[k].next);
  Reached inner = reach(needed);
  for (bool again = true; again;) {
    again = false;
    for (size_t k = 0; k < carry.size(); ++k) {
      if (live[k] || !inner.contains(carry[k].parameter.node.get())) continue;
      live[k] = again = true;
      needed.push_back(carry[k].next);
      inner = reach(needed);
    }
  }
  size_t k = 0;
  drop(carry, [&](const Carry&) { return !live[k++]; });
  const auto unread = [&](const Input& i) { return !inner.contains(i.parameter.node.get()); };
  drop(constants, unread);
  drop(xs, unread);
  return changed;
}

bool ScanForm::shift_stacks() {
  bool changed = false;
  if (length_.symbol() || length() == 0) return false;
  for (const Carry& c : carry) {
    const auto before =
        std::find_if(stacks.begin(), stacks.end(), [&](const Stack& s) { return s.each == c.parameter; });
    const Value after = known_stack(c.next);
    if (before == stacks.end() || !after || c.next == c.parameter) continue;
    const Value first = expand_dims(c.given, {0}), rest = slice_axis(after, 0, reverse_ ? 1 : 0, length() - 1);
    const Value all = before->all;
    stacks.erase(before);
    replace_outside(all, length() == 1 ? first : concat(reverse_ ? Values{rest, first} : Values{first, rest}, 0));
    changed = true;
  }
  return changed;
}

Values ScanForm::finish() {
  if (carry.empty() && stacks.empty()) return results_;
  Values given[3], from, to;
  Graph step;
  for (const Input& i : constants) {
    given[0].push_back(i.given);
    step.inputs.push_back(i.parameter);
  }
  for (const Carry& c : carry) {
    given[1].push_back(c.given);
    step.inputs.push_back(c.parameter);
    from.push_back(c.last);
  }
  for (const Input& i : xs) {
    given[2].push_back(i.given);
    step.inputs.push_back(i.parameter);
  }
  for (const Stack& s : stacks) from.push_back(s.all);
  step.outputs = roots();
  return substitute_present(results_, from, scan(given[0], given[1], given[2], std::move(step), length_, reverse_));
}

}  // namespace weft::graph
