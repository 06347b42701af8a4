// Eager evaluation: the pending graph of some values becomes Programs (looked up by structure), one for each segment on
// a stream. They run, and the values' nodes are materialised. Movement of data becomes views, without a Program.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/half.h"
#include "base/strided.h"
#include "compiler/eager/stream_segments.h"
#include "compiler/ir/index_map.h"
#include "compiler/layout/view.h"
#include "compiler/program.h"
#include "graph/build.h"
#include "runtime/executor.h"

namespace weft::compiler {

namespace {

/// Returns the default policy without measurements: what may run only once is not worth measuring, but known choices
/// are used.
Policy eager_policy() {
  Policy policy = default_policy();
  policy.tuning = std::min(policy.tuning, Tuning::cached);
  return policy;
}

/// Returns whether a literal stays a constant of the program. Frequent constants of formulas do, so that they can be
/// folded; any other literal becomes an input, so that a changing value (a learning rate) does not need a new program.
bool stays_in_code(Number n) {
  double v = n.real();
  return v == 0 || v == 1 || v == -1 || v == 2 || v == 0.5 || std::isinf(v);
}

/// Returns new host storage that holds one number in `dtype`.
graph::Storage scalar_storage(Dtype dtype, Number n) {
  graph::Storage storage{runtime::allocate(dtype.size()), 0, {}};
  void* at = storage.buffer->data();
  auto put = [&](auto v) { std::memcpy(at, &v, sizeof v); };
  switch (dtype.val()) {
    case Dtype::Val::float32: put(static_cast<float>(n.real())); break;
    case Dtype::Val::float64: put(n.real()); break;
    case Dtype::Val::float16: put(float_to_f16(static_cast<float>(n.real()))); break;
    case Dtype::Val::bfloat16: put(float_to_bf16(static_cast<float>(n.real()))); break;
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: put(static_cast<uint8_t>(float_to_low(static_cast<float>(n.real()), dtype))); break;
    case Dtype::Val::bool_: put(static_cast<uint8_t>(n.i != 0)); break;
    case Dtype::Val::complex64: put(complex64_t(static_cast<float>(n.real()), 0)); break;
    default: std::memcpy(at, &n.i, dtype.size());  // little-endian: the low bytes
  }
  return storage;
}

struct Pending {
  Source source;
  std::vector<graph::Storage> inputs;
  std::vector<std::shared_ptr<graph::Node>> nodes;  // their outputs are the graph's outputs, in order
  std::vector<std::pair<std::shared_ptr<graph::Node>, graph::Storage>> views;
  graph::Values views_of_results;  // known once the program has run
  std::shared_ptr<const Program> program;
};

/// Replaces computed nodes with several results by one leaf for each: a Program's input is one buffer.
graph::Values split_leaves(const graph::Values& outputs) {
  graph::Values from, to;
  for (const auto& node : graph::topological(outputs)) {
    if (!node->storage(0) || node->outputs() == 1) continue;
    for (int k = 0; k < node->outputs(); ++k) {
      from.push_back({node, k});
      to.push_back(graph::data(node->types()[static_cast<size_t>(k)], *node->storage(k)));
    }
  }
  return from.empty() ? outputs : graph::substitute(outputs, from, to);
}

/// Adds the pending values that a `depends` node ties to its results, so that they are computed as well.
void add_dependencies(const graph::Node& node, graph::Values& to) {
  if (node.op() != graph::Op::composite || node.attrs().composite->name != "depends") return;
  for (size_t k = static_cast<size_t>(node.outputs()); k < node.inputs().size(); ++k) {
    const graph::Value& v = node.inputs()[k];
    if (v.node->op() != graph::Op::constant && !v.node->storage(v.index)) to.push_back(v);
  }
}

/// Collects what must be computed for `values`: views at once, the rest as a Source with its inputs and its Program.
/// Throws std::invalid_argument if a value is being traced.
Pending collect(std::span<const graph::Value> values, target::Target& target) {
  Pending pending;
  std::set<const graph::Node*> wanted;
  for (const graph::Value& v : values) {
    if (v.node->storage(v.index) || !wanted.insert(v.node.get()).second) continue;
    if (std::optional<graph::Storage> view = view_of(v)) {
      pending.views.emplace_back(v.node, std::move(*view));
      continue;
    }
    const std::optional<graph::Value> base = packed_base(v);
    if (base) pending.views_of_results.push_back(v);
    if (base && !wanted.insert(base->node.get()).second) continue;
    const std::shared_ptr<graph::Node>& computed = base ? base->node : v.node;
    pending.nodes.push_back(computed);
    for (int k = 0; k < computed->outputs(); ++k) pending.source.graph.outputs.push_back({computed, k});
  }
  if (pending.nodes.empty()) return pending;
  pending.source.graph.outputs = split_leaves(pending.source.graph.outputs);
  graph::Values dependencies;
  for (const auto& node : graph::topological(pending.source.graph.outputs)) {
    const graph::Attrs& attrs = node->attrs();
    if (const graph::Storage* storage = node->storage(0)) {
      pending.source.graph.inputs.push_back({node, 0});
      pending.source.layouts.push_back({storage->strides});
      pending.inputs.push_back(*storage);
    } else if (node->op() == graph::Op::constant && attrs.literal && !stays_in_code(attrs.number) &&
               !wanted.contains(node.get())) {
      pending.source.graph.inputs.push_back({node, 0});
      pending.source.layouts.push_back({});
      pending.inputs.push_back(scalar_storage(node->types()[0].dtype, attrs.number));
    } else if (node->op() == graph::Op::composite) {
      add_dependencies(*node, dependencies);
    } else if (node->op() == graph::Op::parameter) {
      throw_invalid("eval",
                    "the value is being traced and has no data: it cannot be looked at inside grad, compile or another "
                    "transform");
    }
  }
  std::erase_if(dependencies, [&](const graph::Value& v) { return wanted.contains(v.node.get()); });
  if (!dependencies.empty()) {
    dependencies.insert(dependencies.end(), values.begin(), values.end());
    return collect(dependencies, target);
  }
  pending.program = lookup_or_build(pending.source, target, eager_policy());
  return pending;
}

/// Returns a row-major copy of a result that is an input passed through, if it is not row-major already.
graph::Storage packed(const graph::Type& type, graph::Storage storage) {
  if (is_row_major(type.shape, storage.strides)) return storage;
  graph::Storage copy{runtime::allocate(static_cast<size_t>(num_elements(type.shape)) * type.dtype.size()), 0,
                      row_major_strides(type.shape)};
  const auto* from =
      static_cast<const std::byte*>(storage.buffer->data()) + storage.offset * static_cast<int64_t>(type.dtype.size());
  copy_strided(from, storage.strides, copy.buffer->data(), copy.strides, type.shape, type.dtype.size());
  return copy;
}

/// Computes the values of one segment by one Program. Another evaluation may have computed some of them already.
///
/// The lock is held while the Program is looked up or built, since the graph must not change meanwhile. It is not held
/// while the Program runs.
void compute(std::span<const graph::Value> values, target::Target& target) {
  Pending pending;
  {
    std::shared_lock lock(graph::structure());
    pending = collect(values, target);
  }
  std::vector<graph::Storage> results;
  if (pending.program) results = pending.program->run(pending.inputs);
  size_t next = 0;
  for (const auto& node : pending.nodes)
    for (int k = 0; k < node->outputs(); ++k, ++next)
      if (node->attrs().packed) results[next] = packed(node->types()[static_cast<size_t>(k)], std::move(results[next]));
  std::unique_lock lock(graph::structure());
  for (auto& [node, view] : pending.views)
    if (!node->storage(0)) node->materialise({std::move(view)});
  next = 0;
  for (const auto& node : pending.nodes) {
    auto begin = results.begin() + static_cast<std::ptrdiff_t>(next);
    next += static_cast<size_t>(node->outputs());
    if (!node->storage(0))
      node->materialise(std::vector<graph::Storage>(begin, results.begin() + static_cast<std::ptrdiff_t>(next)));
  }
  for (const graph::Value& v : pending.views_of_results)
    if (!v.node->storage(0)) v.node->materialise({*view_of(v)});
}

/// The segments of one evaluation, with an event for each: set when its values are ready, or with the error.
struct Work {
  std::vector<Segment> segments;
  std::vector<runtime::EventRef> events;
};

std::string described(const Segment& segment) {
  const graph::Node& node = *segment.wanted[0].node;
  const std::string name(node.op() == graph::Op::composite ? node.attrs().composite->name
                                                           : std::string(graph::row(node.op()).name));
  return fmt::format("{} {}{} on stream {}", name, graph::to_string(node.types()[0]),
                     segment.wanted.size() > 1 ? " and others" : "", segment.stream);
}

/// Asynchronous errors name the segment that failed, since they surface elsewhere.
[[noreturn]] void rethrow_described(const Segment& segment) {
  try {
    throw;
  } catch (const std::exception& e) {
    throw std::runtime_error("[async_eval] " + described(segment) + " failed: " + e.what());
  }
}

/// Waits for the segments that segment k reads, computes it, and sets its event. Errors go to the event and are thrown;
/// with `describe` they name the segment.
void do_segment(const Work& work, size_t k, bool describe) {
  runtime::Event& event = *work.events[k];
  try {
    for (size_t before : work.segments[k].after) work.events[before]->wait();
    try {
      compute(work.segments[k].wanted, target_of(runtime::executor_device(work.segments[k].stream)));
    } catch (...) {
      if (describe) rethrow_described(work.segments[k]);
      throw;
    }
    event.set();
  } catch (...) {
    event.set(std::current_exception());
    throw;
  }
}

std::shared_ptr<Work> work_for(std::span<const graph::Value> values) {
  auto work = std::make_shared<Work>();
  std::shared_lock lock(graph::structure());
  work->segments = segments(values);
  for (size_t k = 0; k < work->segments.size(); ++k) work->events.push_back(std::make_shared<runtime::Event>());
  return work;
}

}  // namespace

void evaluate(std::span<const graph::Value> values) {
  const std::shared_ptr<Work> work = work_for(values);
  if (work->segments.empty()) return;
  const size_t last = work->segments.size() - 1;
  for (size_t k = 0; k < last; ++k)
    runtime::executor(work->segments[k].stream).enqueue([work, k] {
      try {
        do_segment(*work, k, false);
      } catch (...) {  // the event holds the error: the caller that waits rethrows it
      }
    });
  runtime::executor(work->segments[last].stream).run([&] { do_segment(*work, last, false); });
  for (const runtime::EventRef& event : work->events) event->wait();
  std::set<int> devices;
  for (const Segment& segment : work->segments) devices.insert(runtime::executor_device(segment.stream));
  for (int device : devices)
    if (device >= 0) target_of(device).device()->synchronize();
}

void evaluate_async(std::span<const graph::Value> values) {
  const std::shared_ptr<Work> work = work_for(values);
  for (size_t k = 0; k < work->segments.size(); ++k)
    runtime::executor(work->segments[k].stream).enqueue([work, k] { do_segment(*work, k, true); });
}

}  // namespace weft::compiler
