// weft/kernel_function.h: kernels are traced for the shapes of a call, and become nodes of the graph.
#include "weft/kernel_function.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include <fmt/format.h>

#include "array/op_support.h"
#include "array/routines/kernel_stages.h"
#include "base/error.h"
#include "graph/calls/kernel_call.h"
#include "kernel/language/trace.h"

namespace weft::k::detail {

/// What a program was traced for, and the program.
struct Entry {
  std::vector<Shape> shapes;  // of all arrays
  AnyConfig config;
  Program program;
  std::shared_ptr<const graph::KernelProgram> node;
};

using EntryRef = std::shared_ptr<const Entry>;

namespace {

constexpr size_t most_traced = 256;  // programs that a kernel keeps

bool same_config(const AnyConfig& a, const AnyConfig& b) {
  return a.value == b.value || (a.value && b.value && a.equal(a.value.get(), b.value.get()));
}

[[noreturn]] void refuse(const Definition& d, const std::string& what) { throw_invalid("kernel " + d.name, what); }

/// Checks the arguments of a call against the parameters.
void check_arguments(const Definition& d, const std::vector<array>& inputs) {
  size_t next = 0;
  for (const ArrayType& a : d.arrays) {
    if (a.use == Use::out) continue;
    const size_t k = next++;
    if (k >= inputs.size()) continue;
    const array& given = inputs[k];
    if (given.dtype() != a.dtype || given.ndim() != static_cast<size_t>(a.rank))
      refuse(d, fmt::format("argument {} must be {} with {} axes, got {}{}", k, dtype_name(a.dtype), a.rank,
                            weft::detail::describe(given), given.dtype() == a.dtype ? "" : ": convert it with astype"));
    if (!is_static(given.shape()))
      refuse(d, fmt::format("argument {}, {}, has a symbolic length: kernels are traced for fixed shapes", k,
                            weft::detail::describe(given)));
  }
  if (next != inputs.size()) refuse(d, fmt::format("takes {} arrays, got {}", next, inputs.size()));
}

/// Returns the shapes of the Out arrays.
std::vector<Shape> output_shapes(const Definition& d, const std::vector<array>& inputs, const void* config) {
  size_t wanted = 0;
  for (const ArrayType& a : d.arrays) wanted += a.use == Use::out ? 1 : 0;
  std::vector<Shape> shapes;
  if (d.outputs) shapes = d.outputs(inputs, config);
  else if (!inputs.empty()) shapes.assign(wanted, inputs[0].shape());
  if (shapes.size() != wanted)
    refuse(d, fmt::format("has {} results of its own (k::Out), but {} shapes: give them by .outputs", wanted,
                          shapes.size()));
  size_t next = 0;
  for (const ArrayType& a : d.arrays) {
    if (a.use != Use::out) continue;
    const Shape& shape = shapes[next++];
    if (shape.size() != static_cast<size_t>(a.rank) || !is_static(shape))
      refuse(d, fmt::format("result {} has {} axes, its shape would be {}: give shapes by .outputs", next - 1, a.rank,
                            weft::to_string(shape)));
  }
  return shapes;
}

/// Returns the shapes of all arrays.
std::vector<Shape> array_shapes(const Definition& d, const std::vector<array>& inputs, const void* config) {
  check_arguments(d, inputs);
  const std::vector<Shape> outputs = output_shapes(d, inputs, config);
  std::vector<Shape> shapes;
  size_t next_input = 0, next_output = 0;
  for (const ArrayType& a : d.arrays)
    shapes.push_back(a.use == Use::out ? outputs[next_output++] : inputs[next_input++].shape());
  return shapes;
}

/// Returns whether a call stores nothing: it has no programs, or its results no elements. Its function may then make no
/// sense (tiles without elements), and is not called.
bool stores_nothing(const Definition& d, const std::vector<Shape>& shapes, const Grid& grid) {
  const auto none = [](const GridAxis& axis) { return axis.extent == 0; };
  bool empty = true;
  for (size_t k = 0; k < shapes.size(); ++k)
    if (d.arrays[k].use != Use::in && num_elements(shapes[k]) > 0) empty = false;
  return empty || std::any_of(grid.begin(), grid.end(), none);
}

Entry traced(const Definition& d, std::vector<Shape> shapes, const AnyConfig& config) {
  if (!d.grid) refuse(d, "has no grid: give one by .grid");
  std::vector<Param> params;
  std::vector<AnyRef> refs;
  for (size_t k = 0; k < shapes.size(); ++k) {
    const std::vector<int64_t> dims(shapes[k].begin(), shapes[k].end());
    params.push_back({d.arrays[k].use, d.arrays[k].dtype, dims});
    refs.push_back({static_cast<int32_t>(k), 0, d.arrays[k].dtype, 0, dims, row_major_strides(shapes[k])});
  }
  Grid grid = d.grid(refs, config.value.get());
  const bool nothing = stores_nothing(d, shapes, grid);
  if (nothing) grid = {0};
  Program program = k::trace(d.name, std::move(params), grid, [&](std::span<const AnyRef> arrays) {
    if (!nothing) d.body(arrays, config.value.get());
  });
  auto node = graph_program(program);
  return {std::move(shapes), config, std::move(program), std::move(node)};
}

}  // namespace

struct Traced::State {
  Definition definition;
  std::mutex lock;
  std::deque<EntryRef> entries;  // the latest first

  EntryRef find(const std::vector<Shape>& shapes, const AnyConfig& config) {
    const std::scoped_lock held(lock);
    for (const EntryRef& e : entries)
      if (e->shapes == shapes && same_config(e->config, config)) return e;
    return nullptr;
  }

  /// Returns the program of a call, traced now or before.
  EntryRef of(const std::vector<array>& inputs, const AnyConfig& config) {
    if (!config.value) refuse(definition, "has no configuration: give one by .config");
    std::vector<Shape> shapes = array_shapes(definition, inputs, config.value.get());
    if (EntryRef known = find(shapes, config)) return known;
    const auto made = std::make_shared<const Entry>(traced(definition, std::move(shapes), config));
    const std::scoped_lock held(lock);
    entries.push_front(made);
    if (entries.size() > most_traced) entries.pop_back();
    return made;
  }
};

Traced::Traced(Definition definition) : state_(std::make_shared<State>()) {
  state_->definition = std::move(definition);
}

const Definition& Traced::definition() const { return state_->definition; }

std::vector<array> Traced::call(const std::vector<array>& inputs, const AnyConfig& config) const {
  const EntryRef entry = state_->of(inputs, config);
  graph::Values values;
  for (const array& a : inputs) values.push_back(a.value());
  std::vector<array> out;
  for (graph::Value& v : graph::kernel_call(entry->node, std::move(values))) out.emplace_back(std::move(v));
  return out;
}

Program Traced::program(const std::vector<array>& inputs, const AnyConfig& config) const {
  return state_->of(inputs, config)->program;
}

std::vector<array> Traced::interpret(const std::vector<array>& inputs, const AnyConfig& config) const {
  return interpreted(*state_->of(inputs, config)->node, inputs);
}

}  // namespace weft::k::detail
