#include "compiler/schedule/steps/product.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "compiler/region/attention_plan.h"
#include "compiler/region/matmul_work.h"
#include "kernels/gemm/gemm.h"

namespace weft::compiler {

using schedule::Kind;
using schedule::Step;
using schedule::Steps;

namespace {

std::vector<NamedAxis> with_batch(size_t batches, const std::function<int64_t(size_t)>& extent) {
  std::vector<NamedAxis> out;
  for (size_t k = 0; k < batches; ++k) out.push_back({fmt::format("b{}", k), extent(k)});
  return out;
}

/// Returns an axis that parts of a tile's extent cover.
AxisDivision tiled(int axis, int64_t extent, Level outer, int64_t tile) {
  return {{axis}, extent, {{outer, (extent + tile - 1) / tile}, {Level::lanes, tile}}};
}

AxisDivision programs_of(const std::vector<NamedAxis>& axes, size_t batches) {
  AxisDivision out{{}, 1, {{Level::grid, 1}}};
  for (size_t k = 0; k < batches; ++k) out.axes.push_back(static_cast<int>(k)), out.extent *= axes[k].extent;
  out.parts[0].count = out.extent;
  return out;
}

}  // namespace

std::vector<NamedAxis> product_axes(const DotPlan& plan) {
  std::vector<NamedAxis> out = with_batch(plan.extents.size() - 3, [&](size_t k) { return plan.extents[k].bound(); });
  const char* const names[] = {"m", "n", "k"};
  for (size_t k = 0; k < 3; ++k) out.push_back({names[k], plan.extents[plan.extents.size() - 3 + k].bound(), k == 2});
  return out;
}

std::vector<NamedAxis> attention_axes(const AttentionPlan& plan) {
  std::vector<NamedAxis> out = with_batch(plan.batch.size(), [&](size_t k) { return plan.batch[k]; });
  out.push_back({"q", plan.tq.bound(), false});
  out.push_back({"k", plan.tk.bound(), true});
  return out;
}

kernels::Attention attention_shape(const AttentionPlan& plan, const Numerics& numerics) {
  kernels::Attention out;
  out.dtype = plan.q.dtype, out.tf32 = plan.q.dtype == float32 && numerics.tf32;
  out.queries = plan.tq, out.keys = plan.tk;
  out.width = plan.width, out.value_width = plan.value_width;
  return out;
}

Schedule product_schedule(const DotPlan& plan, const target::Machine& machine) {
  const bool transposed = computes_transposed(plan, machine);
  kernels::GemmTile tile = kernels::gemm_tiling(machine, matmul_work(plan, machine, transposed)).tile;
  if (transposed) std::swap(tile.rows, tile.columns);
  const std::vector<NamedAxis> axes = product_axes(plan);
  const auto m = static_cast<int>(axes.size()) - 3;
  Schedule out;
  out.kind = RowClass::product;
  out.programs = programs_of(axes, axes.size() - 3);
  if (tile.rows == 0) return out;
  out.rows = tiled(m, plan.desc.m, Level::grid, tile.rows);
  out.lanes = tiled(m + 1, plan.desc.n, Level::grid, tile.columns);
  out.loop = tiled(m + 2, plan.desc.k, Level::serial, tile.depth);
  out.staging.stages = tile.stages;
  out.staging.raster = kernels::usual_band;
  out.staging.ping_pong = tile.ping_pong ? 1 : 0;
  return out;
}

Schedule attention_schedule(const AttentionPlan& plan, const Numerics& numerics, const target::Machine& machine) {
  const kernels::AttentionBlocks blocks =
      kernels::forward_blocks(attention_shape(plan, numerics), kernels::attention_limits(machine));
  const std::vector<NamedAxis> axes = attention_axes(plan);
  const auto q = static_cast<int>(axes.size()) - 2;
  Schedule out;
  out.kind = RowClass::attention;
  out.programs = programs_of(axes, axes.size() - 2);
  out.rows = tiled(q, plan.tq.bound(), Level::grid, blocks.queries);
  out.loop = tiled(q + 1, plan.tk.bound(), Level::serial, blocks.keys);
  return out;
}

namespace {

[[noreturn]] void refuse_tile(const Step& step, const std::string& what) {
  throw_invalid("schedule", schedule::to_string(step) + ": " + what);
}

/// Sets one axis from what steps have made of it: tiles, or all of it.
void set_tile(AxisDivision& d, const DividedAxis& divided, const std::string& name, Level outer) {
  const auto& parts = divided.parts;
  if (parts.size() == 1 && !parts[0].level) return;
  const bool whole = parts.size() == 1, lanes = parts.back().level.value_or(Level::lanes) == Level::lanes;
  if (!lanes || parts.size() > 2 || (!whole && parts[0].level.value_or(outer) != outer))
    throw_invalid(
        "schedule",
        fmt::format("axis {} is divided into parts that a tiled kernel does not have: split it once, and bind "
                    "the outer part to {} (the inner one is the tile)",
                    name, outer == Level::grid ? "program" : "serial"));
  const int64_t tile = parts.back().extent;
  d.parts = {{outer, whole ? 1 : parts[0].extent}, {Level::lanes, tile}};
}

/// Takes the steps of staging and launching.
void set_staging(Staging& s, const Step& step, const std::vector<std::string>& loops) {
  const auto number = [&] { return static_cast<int>(step.numbers[0]); };
  const auto on_off = [&] { return step.word == "on" ? 1 : 2; };
  switch (step.kind) {
    case Kind::pipeline:
      if (std::ranges::find(loops, step.axes[0]) == loops.end())
        refuse_tile(step, fmt::format("{} is no loop that copies ahead: that is {}", step.axes[0], loops[0]));
      s.stages = number();
      return;
    case Kind::stage:
      if (step.axes[0] != "a" && step.axes[0] != "b") refuse_tile(step, "the operands of a product are a and b");
      if (step.word == "row_major")
        refuse_tile(step, "tensor cores read swizzled tiles of shared memory: say shared or swizzled");
      if (s.stages > 0 && s.stages != number()) refuse_tile(step, "both operands have as many stages as the loop");
      s.stages = number();
      return;
    case Kind::specialize: s.specialize = on_off(); return;
    case Kind::persistent: s.persistent = on_off(); return;
    case Kind::ping_pong: s.ping_pong = on_off(); return;
    case Kind::raster: s.raster = number(); return;
    case Kind::warps: s.warps = number(); return;
    case Kind::registers: s.registers = number(); return;
    default: refuse_tile(step, "the step is none of a tiled kernel");
  }
}

/// Returns whether a step leaves no reason for the turns that the rules have chosen.
bool changes_turns(const Step& step) {
  return step.kind == Kind::split || step.kind == Kind::tile || step.kind == Kind::specialize ||
         step.kind == Kind::persistent || step.kind == Kind::warps || step.kind == Kind::registers;
}

/// Returns whether a step makes another number of stages right than the rules have chosen: as many as there is room
/// for.
bool changes_stages(const Step& step) {
  return step.kind == Kind::split || step.kind == Kind::tile || step.kind == Kind::pipeline || step.kind == Kind::stage;
}

/// Applies the steps of loops to the axes of a tiled schedule.
void divide(Schedule& out, const Steps& steps, const std::vector<NamedAxis>& axes, std::vector<std::string>& loops) {
  for (const Step& step : steps.list())
    if (step.kind == Kind::guard || step.kind == Kind::any_length || step.kind == Kind::pad ||
        step.kind == Kind::unroll)
      refuse_tile(step, "tiles are guarded where they pass the end, and their loops are not unrolled by steps");
  for (const DividedAxis& divided : divided_axes(steps, axes)) {
    if (divided.axes.size() != 1) {
      if (divided.axes != out.programs.axes)
        throw_invalid("schedule", "axes of a tiled kernel are not fused: programs count its tiles themselves");
      continue;
    }
    const int axis = divided.axes[0];
    const std::string& name = axes[static_cast<size_t>(axis)].name;
    if (axis == out.rows.axes[0]) set_tile(out.rows, divided, name, Level::grid);
    else if (!out.lanes.axes.empty() && axis == out.lanes.axes[0]) set_tile(out.lanes, divided, name, Level::grid);
    else if (axis == out.loop.axes[0]) {
      set_tile(out.loop, divided, name, Level::serial);
      loops = {divided.parts[0].name, name};
    } else if (divided.parts.size() != 1 || divided.parts[0].level.value_or(Level::grid) != Level::grid) {
      throw_invalid("schedule", fmt::format("axis {} is a batch, whose elements are programs each", name));
    }
  }
}

void require_legal(const Schedule& out, const Steps& steps, const Group& group, const target::Machine& machine,
                   const std::vector<NamedAxis>& axes) {
  if (const std::string why = why_illegal(out, group, machine); !why.empty())
    throw_invalid("schedule", fmt::format("{}: {}; the steps give {} from the axes {}", schedule::to_string(steps), why,
                                          to_string(out), to_string(axes)));
}

}  // namespace

Schedule product_by_steps(const Steps& steps, const Group& group, const target::Machine& machine) {
  const std::vector<NamedAxis> axes = product_axes(group.dot);
  Schedule out;
  out.kind = RowClass::product;
  std::vector<std::string> loops{"k"};
  const bool tiles = takes_matmul_tiles(group.dot, machine);
  if (tiles) out = product_schedule(group.dot, machine);
  const bool silent = std::ranges::all_of(steps.list(), [](const Step& s) { return s.kind == Kind::tensorize; });
  if (!silent && (!tiles || out.rows.axes.empty()))
    refuse_tile(steps.list()[0], fmt::format("products of {} are not tiled on this machine: only tensorize(generated) "
                                             "and tensorize(library) choose among their kernels",
                                             dtype_name(group.dot.desc.a)));
  if (!silent) divide(out, steps, axes, loops);
  if (std::ranges::any_of(steps.list(), changes_stages)) out.staging.stages = 0;
  if (std::ranges::any_of(steps.list(), changes_turns)) out.staging.ping_pong = 0;
  for (const Step& step : steps.list())
    if (step.kind == Kind::tensorize) out.staging.instruction = step.word == "generated" ? "" : step.word;
    else if (!divides_loops(step.kind)) set_staging(out.staging, step, loops);
  require_legal(out, steps, group, machine, axes);
  return out;
}

Schedule attention_by_steps(const Steps& steps, const Group& group, const Numerics& numerics,
                            const target::Machine& machine) {
  const AttentionPlan& plan = group.attention;
  if (!takes_tiled_attention(plan, machine, numerics) || plan.region.derivative)
    refuse_tile(steps.list()[0],
                "this attention is computed by a kernel that steps do not divide: on this machine "
                "online_softmax(off) writes it as products and a softmax");
  Schedule out = attention_schedule(plan, numerics, machine);
  std::vector<std::string> loops{"k"};
  const std::vector<NamedAxis> axes = attention_axes(plan);
  divide(out, steps, axes, loops);
  for (const Step& step : steps.list())
    if (step.kind == Kind::stage || step.kind == Kind::tensorize || step.kind == Kind::raster)
      refuse_tile(step,
                  "attention chooses this itself: its steps are split, pipeline, specialize, persistent, ping_pong, "
                  "warps and registers");
    else if (!divides_loops(step.kind)) set_staging(out.staging, step, loops);
  require_legal(out, steps, group, machine, axes);
  const kernels::AttentionBlocks blocks{out.rows.count(Level::lanes), out.loop.count(Level::lanes)};
  if (!kernels::forward_fits(attention_shape(plan, numerics), blocks, kernels::attention_limits(machine)))
    throw_invalid("schedule",
                  fmt::format("{}: programs of {} queries by {} keys do not have the registers or the shared "
                              "memory for heads of {}: use smaller tiles",
                              schedule::to_string(steps), blocks.queries, blocks.keys, plan.width));
  return out;
}

Steps steps_of_tiles(const Schedule& s, const std::vector<NamedAxis>& axes) {
  Steps out;
  const auto split = [&](const AxisDivision& d) {
    if (d.axes.empty()) return;
    const std::string& name = axes[static_cast<size_t>(d.axes[0])].name;
    const bool loop = d.parts[0].level == Level::serial;
    const std::string outer = name + (loop ? "_step" : "_block");
    out = out.split(name, d.parts[1].count, {outer, name + "_tile"}).bind(outer, loop ? "serial" : "program");
  };
  split(s.rows), split(s.lanes), split(s.loop);
  const Staging& t = s.staging;
  if (!t.instruction.empty()) out = out.tensorize(t.instruction);
  else if (s.rows.axes.empty()) out = out.tensorize("generated");
  if (t.stages > 0) out = out.pipeline(axes[static_cast<size_t>(s.loop.axes[0])].name + "_step", t.stages);
  if (t.raster > 0) out = out.raster(t.raster);
  if (t.specialize > 0) out = out.specialize(t.specialize == 1);
  if (t.persistent > 0) out = out.persistent(t.persistent == 1);
  if (t.ping_pong > 0) out = out.ping_pong(t.ping_pong == 1);
  if (t.warps > 0) out = out.warps(t.warps);
  if (t.registers > 0) out = out.registers(t.registers);
  return out;
}

}  // namespace weft::compiler
