#include "array/realise.h"

#include <atomic>
#include <mutex>
#include <unordered_set>

#include "array/host.h"
#include "base/error.h"
#include "compiler/eager/held.h"
#include "compiler/program.h"
#include "graph/build.h"
#include "graph/derive/derive.h"
#include "runtime/interrupt.h"
#include "weft/evaluation.h"

namespace weft {

void set_keep_referenced(bool on) { compiler::set_keeps_held(on); }
bool keeps_referenced() { return compiler::keeps_held(); }

void set_interrupt_check(bool (*asked)()) {
  static std::atomic<bool (*)()> function;
  function = asked;
  const auto check = [] {
    if (bool (*const now)() = function.load(); now && now()) throw interrupted();
  };
  runtime::set_interrupt_check(asked ? +check : nullptr);
}

namespace detail {
namespace {

thread_local Trace* innermost = nullptr;

bool stored(const graph::Value& value) {
  std::shared_lock lock(graph::structure());
  return value.node->storage(value.index) != nullptr;
}

graph::Storage storage_of(const graph::Value& value) {
  std::shared_lock lock(graph::structure());
  const graph::Storage* s = value.node->storage(value.index);
  check(s != nullptr, "eval", "a value has no storage after it was computed");
  return *s;
}

// Another thread may have been first; then its storage stays.
void materialise_once(const graph::Value& value, graph::Storage storage) {
  std::unique_lock lock(graph::structure());
  if (!value.node->storage(value.index)) value.node->materialise({std::move(storage)});
}

void fill_constant(const graph::Value& value) {
  graph::Storage storage = allocate_storage(value.type());
  const Dtype part = real_of(value.dtype());
  store_element(storage.buffer->data(), part, 0, value.node->attrs().number);
  if (is_complex(value.dtype())) store_element(storage.buffer->data(), part, 1, Number::of_real(0));
  materialise_once(value, std::move(storage));
}

// What a walk from a value to what it is computed from finds of the traces on this thread.
enum class Dependence { none, watched, placeholder };

Dependence dependence_on_trace(const graph::Value& value) {
  std::unordered_set<const graph::Node*> watched;
  for (const Trace* t = innermost; t; t = t->outer())
    for (const graph::Value& v : t->watched()) watched.insert(v.node.get());
  std::shared_lock lock(graph::structure());
  std::unordered_set<const graph::Node*> seen{value.node.get()};
  std::vector<const graph::Node*> stack{value.node.get()};
  bool found = false;
  while (!stack.empty()) {
    const graph::Node* node = stack.back();
    stack.pop_back();
    found = found || watched.contains(node);
    if (node->storage(0)) continue;
    if (node->op() == graph::Op::parameter) return Dependence::placeholder;
    for (const graph::Value& input : node->inputs())
      if (seen.insert(input.node.get()).second) stack.push_back(input.node.get());
  }
  return found ? Dependence::watched : Dependence::none;
}

// Returns whether a pending value depends on something that a trace on this thread watches; throws where it depends on
// a placeholder.
bool depends_on_trace(const graph::Value& value) {
  const Dependence dependence = dependence_on_trace(value);
  if (dependence == Dependence::placeholder)
    throw_invalid("eval",
                  "this value depends on an argument or on state of a function that is being compiled or mapped: it is "
                  "not known while the function is traced; return it instead, or look at it outside of the function");
  return dependence == Dependence::watched;
}

graph::Storage make_contiguous(const graph::Value& value, const graph::Storage& storage) {
  graph::Storage packed = allocate_storage(value.type());
  copy_strided(address(storage, value.dtype()), storage.strides, packed.buffer->data(), packed.strides, value.shape(),
               value.dtype().size());
  std::unique_lock lock(graph::structure());
  std::vector<graph::Storage> all;
  for (int k = 0; k < value.node->outputs(); ++k) all.push_back(*value.node->storage(k));
  graph::Storage& mine = all[static_cast<size_t>(value.index)];
  if (is_row_major(value.shape(), mine.strides)) return mine;  // another thread was first
  mine = packed;
  value.node->materialise(std::move(all));
  return packed;
}

}  // namespace

Trace::Trace(Kind kind) : kind_(kind), outer_(innermost) { innermost = this; }
Trace::~Trace() { innermost = outer_; }
Trace* Trace::current() { return innermost; }

const Number* constant_number(const graph::Value& value) {
  return value.node->op() == graph::Op::constant ? &value.node->attrs().number : nullptr;
}

const graph::Storage* packed_storage(const graph::Value& value) {
  const graph::Storage* storage = value.node->storage(value.index);
  return storage && is_row_major(value.shape(), storage->strides) ? storage : nullptr;
}

bool has_data(const graph::Value& value) { return value.node->op() == graph::Op::constant || stored(value); }

namespace {

graph::Values pending_among(std::span<const graph::Value> values) {
  graph::Values pending;
  for (const graph::Value& value : values) {
    if (stored(value)) continue;
    if (value.node->op() == graph::Op::constant) fill_constant(value);
    else if (!innermost || !depends_on_trace(value)) pending.push_back(value);
  }
  return pending;
}

}  // namespace

void realise_all(std::span<const graph::Value> values) {
  const graph::Values pending = pending_among(values);
  if (!pending.empty()) compiler::evaluate(pending);
}

void realise_later(std::span<const graph::Value> values) {
  if (innermost && std::any_of(values.begin(), values.end(), [](const graph::Value& value) {
        return dependence_on_trace(value) != Dependence::none;
      }))
    throw_invalid("async_eval",
                  "an array depends on an argument of a function that is being differentiated, batched or compiled: "
                  "evaluate what the function returns instead");
  const graph::Values pending = pending_among(values);
  if (!pending.empty()) compiler::evaluate_async(pending);
}

graph::Storage realise(const graph::Value& value) {
  if (!stored(value) && value.node->op() != graph::Op::constant && innermost && depends_on_trace(value)) {
    const graph::Value copy = graph::alias(value);
    compiler::evaluate(std::span(&copy, 1), compiler::Keep::nothing);
    innermost->keep(copy);
    const graph::Storage storage = storage_of(copy);
    return is_row_major(copy.shape(), storage.strides) ? storage : make_contiguous(copy, storage);
  }
  realise_all(std::span(&value, 1));
  const graph::Storage storage = storage_of(value);
  return is_row_major(value.shape(), storage.strides) ? storage : make_contiguous(value, storage);
}

}  // namespace detail
}  // namespace weft
