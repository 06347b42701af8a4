// weft/kernel_function.h: kernels are traced for the shapes of a call, and become nodes of the graph.
#include "weft/kernel_function.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include <fmt/format.h>

#include "array/op_support.h"
#include "array/routines/kernel_launch.h"
#include "array/routines/kernel_schedule.h"
#include "array/routines/kernel_stages.h"
#include "array/routines/kernel_traced.h"
#include "base/error.h"
#include "graph/calls/kernel_call.h"
#include "kernel/language/trace.h"

namespace weft::k::detail {

/// The shapes of the arguments of a call whose configuration is chosen, and its node.
struct TunedEntry {
  std::vector<Shape> shapes;
  std::shared_ptr<const graph::KernelProgram> node;
};

using EntryRef = std::shared_ptr<const Entry>;

bool same_config(const AnyConfig& a, const AnyConfig& b) {
  if (a.launch != b.launch || a.steps != b.steps) return false;
  return a.value == b.value || (a.value && b.value && a.equal(a.value.get(), b.value.get()));
}

namespace {

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
    if (shape.size() != static_cast<size_t>(a.rank))
      refuse(d, fmt::format("result {} has {} axes, its shape would be {}: give shapes by .outputs", next - 1, a.rank,
                            weft::to_string(shape)));
  }
  return shapes;
}

}  // namespace

std::vector<Shape> array_shapes(const Definition& d, const std::vector<array>& inputs, const void* config) {
  check_arguments(d, inputs);
  const std::vector<Shape> outputs = output_shapes(d, inputs, config);
  std::vector<Shape> shapes;
  size_t next_input = 0, next_output = 0;
  for (const ArrayType& a : d.arrays)
    shapes.push_back(a.use == Use::out ? outputs[next_output++] : inputs[next_input++].shape());
  return shapes;
}

namespace {

/// Returns whether a call stores nothing: it has no programs, or its results no elements. Its function may then make no
/// sense (tiles without elements), and is not called.
bool stores_nothing(const Definition& d, const std::vector<Shape>& shapes, const Grid& grid) {
  const auto none = [](const GridAxis& axis) { return axis.extent == 0 && !axis.count; };
  bool empty = true;
  for (size_t k = 0; k < shapes.size(); ++k)
    if (d.arrays[k].use != Use::in && num_elements(shapes[k]) > 0) empty = false;
  return empty || std::any_of(grid.begin(), grid.end(), none);
}

/// Refuses launch options that no kernel can have.
void check_launch(const Definition& d, const LaunchOptions& l) {
  const auto outside = [&](int n, int high, const char* what) {
    if (n < 0 || n > high) refuse(d, fmt::format("its launch asks for {} {}: 0 to {} are possible", n, what, high));
  };
  outside(l.warps, 32, "warps"), outside(l.stages, 32, "stages");
  outside(l.cluster, 16, "blocks of a cluster"), outside(l.registers, 255, "registers");
  outside(l.ping_pong, 1, "as ping_pong");
  if (l.warps > 0 && (l.warps & (l.warps - 1)) != 0 && l.warps != 12)
    refuse(d, fmt::format("its launch asks for {} warps: give it a power of two, or 12 where products have three "
                          "warpgroups",
                          l.warps));
}

}  // namespace

Program program_for(const Definition& d, const std::vector<Shape>& shapes, const std::vector<Strides>& strides,
                    const AnyConfig& config) {
  if (!d.grid) refuse(d, "has no grid: give one by .grid");
  std::vector<Param> params;
  for (size_t k = 0; k < shapes.size(); ++k) {
    Param& p = params.emplace_back(Param{d.arrays[k].use, d.arrays[k].dtype, {}});
    for (const Dim& extent : shapes[k]) p.dims.push_back(extent.bound()), p.symbols.push_back(extent.symbol());
    if (is_static(shapes[k])) p.symbols.clear();
  }
  check_launch(d, config.launch);
  const auto strided = [&](std::span<const AnyRef> arrays) {
    std::vector<AnyRef> out(arrays.begin(), arrays.end());
    for (size_t k = 0; k < out.size(); ++k) out[k].strides = strides[k];
    return out;
  };
  bool nothing = false;
  const auto grid = [&](std::span<const AnyRef> arrays) {
    const Grid chosen = d.grid(strided(arrays), config.value.get());
    nothing = stores_nothing(d, shapes, chosen);
    return nothing ? Grid{0} : chosen;
  };
  const Program program = k::trace_with(d.name, std::move(params), grid, [&](std::span<const AnyRef> arrays) {
    if (nothing) return;
    raster_programs(d.name, config.steps);
    d.body(strided(arrays), config.value.get());
  });
  if (config.launch == LaunchOptions{} && config.steps.empty()) return program;
  auto data = std::make_shared<Program::Data>(program.data());
  const LaunchOptions& l = config.launch;
  data->kernel.launch = {.warps = l.warps,
                         .stages = l.stages,
                         .cluster = l.cluster > 1 ? l.cluster : 0,
                         .registers = l.registers,
                         .ping_pong = l.ping_pong,
                         .iterations = static_cast<int>(l.iterations)};
  if (!nothing) apply_steps(d.name, config.steps, data->kernel);
  const kernel::LaunchOptions& launch = data->kernel.launch;
  check_launch(d, {launch.warps, launch.stages, launch.cluster, launch.registers});
  return Program(std::move(data));
}

Entry traced(const Definition& d, std::vector<Shape> shapes, const AnyConfig& config) {
  std::vector<Strides> strides;
  for (const Shape& shape : shapes) strides.push_back(row_major_strides(shape));
  Program program = program_for(d, shapes, strides, config);
  auto node = graph_program(program, d.factors);
  return {std::move(shapes), config, std::move(program), std::move(node)};
}

struct Traced::State {
  Definition definition;
  std::mutex lock;
  std::deque<EntryRef> entries;  // the latest first
  std::deque<TunedEntry> tuned;
  RawPrograms raw;

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

  /// Returns the node of a call whose configuration is chosen by the compiler.
  std::shared_ptr<const graph::KernelProgram> of_tuned(const std::vector<array>& inputs) {
    check_arguments(definition, inputs);
    std::vector<Shape> shapes;
    for (const array& a : inputs) shapes.push_back(a.shape());
    {
      const std::scoped_lock held(lock);
      for (const TunedEntry& e : tuned)
        if (e.shapes == shapes) return e.node;
    }
    TunedEntry made{std::move(shapes), tuned_program(definition, inputs)};
    const std::scoped_lock held(lock);
    tuned.push_front(made);
    if (tuned.size() > most_traced) tuned.pop_back();
    return made.node;
  }
};

Traced::Traced(Definition definition) : state_(std::make_shared<State>()) {
  state_->definition = std::move(definition);
}

const Definition& Traced::definition() const { return state_->definition; }

std::vector<array> Traced::call(const std::vector<array>& inputs, const AnyConfig& config) const {
  const bool tunes = !state_->definition.tuning.configs.empty();
  const auto node = tunes ? state_->of_tuned(inputs) : state_->of(inputs, config)->node;
  graph::Values values;
  for (const array& a : inputs) values.push_back(a.value());
  std::vector<array> out;
  for (graph::Value& v : graph::kernel_call(node, std::move(values))) out.emplace_back(std::move(v));
  return out;
}

void Traced::launch(const RawStream& stream, const std::vector<RawArray>& arrays, const std::vector<RawExtent>& extents,
                    const AnyConfig& config, Line at) const {
  state_->raw.launch(state_->definition, stream, arrays, extents, config, at);
}

void Traced::debug_launch(const Debugger& debugger, const std::vector<RawArray>& arrays,
                          const std::vector<RawExtent>& extents, const AnyConfig& config, Line at) const {
  state_->raw.debug(state_->definition, debugger, arrays, extents, config, at);
}

Program Traced::program(const std::vector<array>& inputs, const AnyConfig& config) const {
  return state_->of(inputs, config)->program;
}

std::vector<array> Traced::interpret(const std::vector<array>& inputs, const AnyConfig& config) const {
  return interpreted(*state_->of(inputs, config)->node, inputs);
}

std::vector<array> Traced::debug(const Debugger& debugger, const std::vector<array>& inputs,
                                 const AnyConfig& config) const {
  return debugged(state_->of(inputs, config)->program, inputs, debugger);
}

}  // namespace weft::k::detail
