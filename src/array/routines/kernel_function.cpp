// weft/kernel_function.h: kernels are traced for the shapes of a call, and become nodes of the graph.
#include "weft/kernel_function.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "array/op_support.h"
#include "array/routines/kernel_schedule.h"
#include "array/routines/kernel_stages.h"
#include "array/routines/kernel_traced.h"
#include "base/error.h"
#include "compiler/program.h"
#include "graph/calls/kernel_call.h"
#include "kernel/language/trace.h"
#include "target/foreign_launch.h"

namespace weft::k::detail {

/// What a launch on memory of the caller's was traced for, and its code on each device.
struct RawEntry {
  std::vector<Shape> shapes;
  std::vector<Strides> strides;
  AnyConfig config;
  Program program;
  double work;
  std::mutex lock;
  std::map<int, std::shared_ptr<const target::Executable>> code;  // by device; -1: the CPU

  RawEntry(std::vector<Shape> s, std::vector<Strides> t, AnyConfig c, Program p, double w)
      : shapes(std::move(s)), strides(std::move(t)), config(std::move(c)), program(std::move(p)), work(w) {}

  const target::Executable& on(int device) {
    const std::scoped_lock held(lock);
    std::shared_ptr<const target::Executable>& made = code[device];
    if (!made) made = compiler::target_of(device).compile(std::span(&program.data().kernel, 1))[0];
    return *made;
  }
};

/// The shapes of the arguments of a call whose configuration is chosen, and its node.
struct TunedEntry {
  std::vector<Shape> shapes;
  std::shared_ptr<const graph::KernelProgram> node;
};

using EntryRef = std::shared_ptr<const Entry>;

namespace {

constexpr size_t most_traced = 256;  // programs that a kernel keeps

bool same_config(const AnyConfig& a, const AnyConfig& b) {
  if (a.launch != b.launch || a.steps != b.steps) return false;
  return a.value == b.value || (a.value && b.value && a.equal(a.value.get(), b.value.get()));
}

std::string describe_device(const Device& d) {
  return fmt::format("{} {}", d.type == Device::gpu ? "gpu" : "cpu", d.index);
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

/// Traces the function for arrays with these shapes and strides.
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
                         .ping_pong = l.ping_pong};
  if (!nothing) apply_steps(d.name, config.steps, data->kernel);
  const kernel::LaunchOptions& launch = data->kernel.launch;
  check_launch(d, {launch.warps, launch.stages, launch.cluster, launch.registers});
  return Program(std::move(data));
}

}  // namespace

Entry traced(const Definition& d, std::vector<Shape> shapes, const AnyConfig& config) {
  std::vector<Strides> strides;
  for (const Shape& shape : shapes) strides.push_back(row_major_strides(shape));
  Program program = program_for(d, shapes, strides, config);
  auto node = graph_program(program, d.factors);
  return {std::move(shapes), config, std::move(program), std::move(node)};
}

namespace {

/// Checks the arrays of a raw launch; returns the strides of all.
std::vector<Strides> raw_strides(const Definition& d, const std::vector<RawArray>& arrays) {
  if (arrays.size() != d.arrays.size())
    refuse(d, fmt::format("launch takes {} arrays, got {}", d.arrays.size(), arrays.size()));
  std::vector<Strides> out;
  for (size_t k = 0; k < arrays.size(); ++k) {
    const RawArray& a = arrays[k];
    const auto wrong = [&](const std::string& what) { refuse(d, fmt::format("launch: array {} {}", k, what)); };
    if (a.shape.size() != static_cast<size_t>(d.arrays[k].rank) || !is_static(a.shape))
      wrong(fmt::format("has {} axes, its shape is {}", d.arrays[k].rank, weft::to_string(a.shape)));
    if (!a.strides.empty() && a.strides.size() != a.shape.size())
      wrong(fmt::format("has {} strides for {} axes", a.strides.size(), a.shape.size()));
    if (num_elements(a.shape) > 0 && !a.data) wrong("has elements, but its pointer is null");
    if (reinterpret_cast<uintptr_t>(a.data) % static_cast<uintptr_t>(d.arrays[k].dtype.size()) != 0)
      wrong(fmt::format("does not lie at a multiple of {} bytes, as {} must", d.arrays[k].dtype.size(),
                        dtype_name(d.arrays[k].dtype)));
    out.push_back(a.strides.empty() ? row_major_strides(a.shape) : Strides(a.strides));
    for (size_t axis = 0; axis < a.shape.size(); ++axis)
      if (d.arrays[k].use != Use::in && out[k][axis] == 0 && a.shape[axis].bound() > 1)
        wrong("is written, and repeats its elements: give it strides that are not 0");
  }
  return out;
}

}  // namespace

struct Traced::State {
  Definition definition;
  std::mutex lock;
  std::deque<EntryRef> entries;  // the latest first
  std::deque<TunedEntry> tuned;
  std::deque<std::shared_ptr<RawEntry>> raw_entries;

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

  /// Returns the program of a raw launch, traced now or before.
  std::shared_ptr<RawEntry> of_raw(const std::vector<RawArray>& arrays, const AnyConfig& config) {
    if (!config.value) refuse(definition, "has no configuration: give one by .config");
    std::vector<Strides> strides = raw_strides(definition, arrays);
    std::vector<Shape> shapes;
    for (const RawArray& a : arrays) shapes.push_back(a.shape);
    {
      const std::scoped_lock held(lock);
      for (const auto& e : raw_entries)
        if (e->shapes == shapes && e->strides == strides && same_config(e->config, config)) return e;
    }
    Program program = program_for(definition, shapes, strides, config);
    const graph::KernelWork work = graph::work_of(program.data().kernel, program.programs());
    double total = work.operations + work.products;
    for (size_t k = 0; k < shapes.size(); ++k)
      total += static_cast<double>(num_elements(shapes[k]) * definition.arrays[k].dtype.size());
    const auto made =
        std::make_shared<RawEntry>(std::move(shapes), std::move(strides), config, std::move(program), total);
    const std::scoped_lock held(lock);
    raw_entries.push_front(made);
    if (raw_entries.size() > most_traced) raw_entries.pop_back();
    return made;
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

void Traced::launch(const RawStream& stream, const std::vector<RawArray>& arrays, const AnyConfig& config) const {
  if (!is_available(stream.device))
    refuse(state_->definition,
           fmt::format("launch: this machine has no such device: {}", describe_device(stream.device)));
  const std::shared_ptr<RawEntry> entry = state_->of_raw(arrays, config);
  std::vector<void*> pointers;
  for (const RawArray& a : arrays) pointers.push_back(a.data);
  const target::Segment segment{pointers, {}, entry->program.programs()};
  if (segment.grid == 0) return;
  const target::Executable& code = entry->on(stream.device.type == Device::gpu ? stream.device.index : -1);
  if (const auto* foreign = dynamic_cast<const target::ForeignLaunch*>(&code))
    return foreign->run_on(stream.handle, segment);
  code.run(std::span(&segment, 1), entry->work);
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
