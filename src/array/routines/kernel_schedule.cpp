#include "array/routines/kernel_schedule.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/language/trace.h"

namespace weft::k::detail {

namespace {

using schedule::Kind;
using schedule::Step;
using schedule::Steps;

[[noreturn]] void refuse_step(const std::string& name, const Step& step, const std::string& what) {
  throw_invalid("kernel " + name, schedule::to_string(step) + ": " + what);
}

/// Lists the loops of a block in the order in which they are written, outer ones before those inside.
void list_loops(kernel::Block& block, std::vector<kernel::Inst*>& out) {
  for (kernel::Inst& inst : block.insts) {
    if (inst.op == kernel::Op::loop) out.push_back(&inst);
    for (kernel::Block& inner : inst.blocks) list_loops(inner, out);
  }
}

kernel::Inst& loop_named(const std::string& name, const Step& step, const std::vector<kernel::Inst*>& loops) {
  for (size_t k = 0; k < loops.size(); ++k)
    if (step.axes[0] == fmt::format("l{}", k)) return *loops[k];
  refuse_step(name, step,
              loops.empty() ? "the kernel has no loops"
                            : fmt::format("there is no loop {}: the kernel has {}, l0 to l{}", step.axes[0],
                                          loops.size(), loops.size() - 1));
}

/// The instructions by which products are multiplied, in the order of LaunchOptions::instruction, from 1 on.
constexpr std::array<std::string_view, 3> instructions{"wgmma", "mma", "fma"};

int instruction_of(const std::string& name, const Step& step) {
  const auto found = std::find(instructions.begin(), instructions.end(), step.word);
  if (found == instructions.end()) refuse_step(name, step, "a kernel's products are multiplied by wgmma, mma or fma");
  return static_cast<int>(found - instructions.begin()) + 1;
}

/// On which levels the iterations of parallel loops run, in the order of LaunchOptions::iterations, from 1 on.
constexpr std::array<std::string_view, 3> levels{"serial", "warp", "cluster"};

int level_of(const std::string& name, const Step& step, const kernel::Inst& loop) {
  const auto found = std::find(levels.begin(), levels.end(), step.word);
  if (found == levels.end())
    refuse_step(
        name, step,
        "a kernel's programs and lanes are its own: the iterations of a parallel loop are bound to warp, cluster "
        "or serial");
  if (!loop.parallel)
    refuse_step(name, step,
                "its iterations run one after another, as they may read what others wrote: write k::parallel "
                "in place of the loop");
  return static_cast<int>(found - levels.begin()) + 1;
}

}  // namespace

void raster_programs(const std::string& name, const Steps& steps) {
  for (const Step& step : steps.list()) {
    if (step.kind != Kind::raster) continue;
    Trace& t = Trace::current("raster", {});
    const size_t n = t.grid.size();
    if (n < 2 || t.grid[n - 1].order != Order::parallel || t.grid[n - 2].order != Order::parallel)
      refuse_step(name, step, "the grid does not end in two parallel axes, the rows and the columns of its tiles");
    if (t.grid[n - 1].count || t.grid[n - 2].count)
      refuse_step(name, step,
                  "the number of programs along the last two axes is known at run time alone: leave it out, or give "
                  "the kernel fixed lengths");
    const int columns = static_cast<int>(n) - 1;
    const auto [i, j] =
        swizzle2d(program(columns - 1), program(columns), t.grid[n - 2].extent, t.grid[n - 1].extent, step.numbers[0]);
    t.ids[n - 2] = t.value(i, {}), t.ids[n - 1] = t.value(j, {});
  }
}

void apply_steps(const std::string& name, const Steps& steps, kernel::Kernel& kernel) {
  std::vector<kernel::Inst*> loops;
  list_loops(kernel.body, loops);
  const auto set = [&](const Step& step, int& member, int64_t value) {
    constexpr int64_t most = 1024;
    if (value > most) refuse_step(name, step, "the number is too large");
    if (member > 0 && member != value)
      refuse_step(name, step, fmt::format("the launch has {} already: say it once", member));
    member = static_cast<int>(value);
  };
  const auto on_off = [](const Step& step) { return step.word == "on" ? 1 : 2; };
  for (const Step& step : steps.list()) switch (step.kind) {
      case Kind::pipeline: set(step, loop_named(name, step, loops).axis, step.numbers[0]); break;
      case Kind::bind: set(step, kernel.launch.iterations, level_of(name, step, loop_named(name, step, loops))); break;
      case Kind::warps: set(step, kernel.launch.warps, step.numbers[0]); break;
      case Kind::registers: set(step, kernel.launch.registers, step.numbers[0]); break;
      case Kind::specialize: set(step, kernel.launch.specialize, on_off(step)); break;
      case Kind::persistent: set(step, kernel.launch.persistent, on_off(step)); break;
      case Kind::ping_pong: set(step, kernel.launch.ping_pong, on_off(step)); break;
      case Kind::tensorize: set(step, kernel.launch.instruction, instruction_of(name, step)); break;
      case Kind::raster: break;  // of the grid, while it was traced
      default:
        refuse_step(name, step,
                    "a kernel divides its work itself, by its grid, its tiles and its loops: its steps are "
                    "bind, tensorize, pipeline, specialize, persistent, ping_pong, raster, warps and registers");
    }
}

Steps steps_of_kernel(const kernel::Kernel& kernel) {
  Steps out;
  int number = 0;
  const std::function<void(const kernel::Block&)> walk = [&](const kernel::Block& block) {
    for (const kernel::Inst& inst : block.insts) {
      if (inst.op == kernel::Op::loop) {
        const std::string loop = fmt::format("l{}", number++);
        if (inst.parallel && kernel.launch.iterations > 0)
          out = out.bind(loop, std::string(levels[static_cast<size_t>(kernel.launch.iterations - 1)]));
        if (inst.axis > 0) out = out.pipeline(loop, inst.axis);
        else if (kernel.launch.stages > 0) out = out.pipeline(loop, kernel.launch.stages);
      }
      for (const kernel::Block& inner : inst.blocks) walk(inner);
    }
  };
  walk(kernel.body);
  const kernel::LaunchOptions& l = kernel.launch;
  if (l.instruction > 0) out = out.tensorize(std::string(instructions[static_cast<size_t>(l.instruction - 1)]));
  if (l.specialize > 0) out = out.specialize(l.specialize == 1);
  if (l.persistent > 0) out = out.persistent(l.persistent == 1);
  if (l.ping_pong > 0) out = out.ping_pong(l.ping_pong == 1);
  if (l.warps > 0) out = out.warps(l.warps);
  if (l.registers > 0) out = out.registers(l.registers);
  return out;
}

}  // namespace weft::k::detail
