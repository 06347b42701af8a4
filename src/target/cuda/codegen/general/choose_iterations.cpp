// Decides who runs the iterations of a user's parallel loops: warps of a block, each an iteration at a time; blocks of
// a cluster, which then run one program; or all threads of a program, one iteration after another. The launch may say
// which; else the rule is here.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/error.h"
#include "kernel/op_info.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Block;
using kernel::Inst;
using kernel::Op;
using kernel::Ref;
using kernel::Value;

namespace {

constexpr int in_turn = 1, on_warps = 2, on_blocks = 3;  // as a launch says
constexpr int64_t most_warps = 16, most_blocks = 8;      // every device with clusters has 8 blocks
constexpr int64_t most_of_a_warp = 1024, most_of_a_thread = 32;
constexpr int64_t elements_of_thread = 8;  // of a program whose iterations run in turn (choose_general_threads)

template <class Visit>
void visit_all(const Inst& inst, const Visit& visit) {
  visit(inst);
  for (const Block& block : inst.blocks)
    for (const Inst& inner : block.insts) visit_all(inner, visit);
}

/// Returns "file:line: " of an instruction; empty where it has no line.
std::string line_of(const kernel::Kernel& kernel, const Inst& inst) {
  const kernel::SourceLine& line = kernel.lines[static_cast<size_t>(inst.line)];
  return line.line > 0 ? fmt::format("{}:{}: ", line.file, line.line) : "";
}

bool stores(const Inst& inst) {
  const kernel::Access access = kernel::info(inst.op).access;
  return access == kernel::Access::writes || access == kernel::Access::updates;
}

/// Returns the largest number up to `most` that divides n.
int64_t divisor_up_to(int64_t n, int64_t most) {
  int64_t out = std::min(n, most);
  while (n % out != 0) --out;
  return out;
}

}  // namespace

/// Collects what parallel loops have to do with the rest of the kernel.
Renderer::ParallelLoops Renderer::parallel_loops() const {
  ParallelLoops out;
  for (const Inst& i : kernel_.body.insts) {
    if (i.op == Op::loop && i.parallel) out.all.push_back(&i);
    visit_all(i, [&](const Inst& inner) {
      out.multiplies = out.multiplies || inner.op == Op::dot || inner.op == Op::dot_async;
      out.asynchronous = out.asynchronous || kernel::is_asynchronous(inner.op);
    });
  }
  if (out.all.empty()) return out;
  const auto count = known_values_.find(out.all[0]->args[1]);
  check(count != known_values_.end(), "cuda render", "the iterations of a parallel loop are not known");
  out.count = count->second;
  std::map<Value, const Inst*> made;
  for (const Inst& i : kernel_.body.insts)
    for (const Value v : i.results) made[v] = &i;
  for (const Inst* const loop : out.all) {
    // What is the same everywhere, or counts elements, any thread makes for itself.
    for (const Value v : kernel::reads(*loop)) {
      if (v == kernel::no_value || type(v).rank() == 0) continue;
      const auto maker = made.find(v);
      const bool own = maker != made.end() && (maker->second->op == Op::constant || maker->second->op == Op::arange);
      out.takes_tile = out.takes_tile || !own;
    }
    visit_all(*loop, [&](const Inst& i) {
      out.walks = out.walks || (&i != loop && i.op == Op::loop);
      for (const Value v : i.results) out.tile = std::max(out.tile, type(v).size());
      if (i.op == Op::store || i.op == Op::scatter) out.tile = std::max(out.tile, type(i.args[0]).size());
    });
  }
  return out;
}

/// Finds the buffers that iterations store, and that are accessed outside of their loop as well: where blocks run the
/// iterations, these lie in the first one. Returns why they cannot lie there; empty where they can.
std::string Renderer::find_in_first(const ParallelLoops& loops) {
  std::map<Ref, std::set<const Inst*>> touched;  // by loop, or null for what stands outside
  std::set<Ref> stored, between;
  std::string why;
  size_t begun = 0;
  for (const Inst& i : kernel_.body.insts) {
    const bool iterates = i.op == Op::loop && i.parallel;
    begun += iterates ? 1 : 0;
    const bool others_follow = begun < loops.all.size();
    visit_all(i, [&](const Inst& inner) {
      const bool acts = inner.op == Op::print || (inner.op == Op::inline_code && inner.code->effects);
      if (!iterates && acts && others_follow)
        why = "what stands before them prints, or runs code with effects, and each block would";
      if (inner.op == Op::alloc || inner.op == Op::symbol || inner.ref < 0 || !is_local(inner.ref)) return;
      touched[inner.ref].insert(iterates ? &i : nullptr);
      if (iterates && stores(inner)) stored.insert(inner.ref);
      if (!iterates && stores(inner) && begun > 0 && others_follow) between.insert(inner.ref);
    });
  }
  for (const Ref ref : stored)
    if (touched[ref].size() > 1) in_first_.insert(ref);
  for (const Ref ref : in_first_)
    if (between.contains(ref)) why = "scratch that they store is stored between two loops as well";
  for (const Inst& i : kernel_.body.insts)
    visit_all(i, [&](const Inst& inner) {
      const bool updates = kernel::info(inner.op).access == kernel::Access::updates;
      if (updates && in_first_.contains(inner.ref)) why = "they update scratch by atomics";
    });
  return why;
}

/// Returns why warps cannot run the iterations; empty where they can.
std::string Renderer::no_warps(const ParallelLoops& loops) const {
  if (warps_ > 0) return "the kernel has roles, which have warps of their own";
  if (loops.multiplies) return "the kernel multiplies matrices, for which all warps of a program work together";
  if (loops.takes_tile)
    return "an iteration reads a tile from outside, which all warps hold together: load it in the iteration, or pass "
           "it through scratch";
  return "";
}

/// Returns why blocks of a cluster cannot run the iterations; empty where they can.
std::string Renderer::no_blocks(const ParallelLoops& loops) {
  if (!features_.clusters) return "this GPU has no clusters: those of compute capability 9.0 and later have";
  if (kernel_.cluster > 0) return "its programs are clusters";
  if (counts()) return "its programs wait for each other";
  if (loops.asynchronous) return "the kernel copies asynchronously or has roles, which end with their block";
  return find_in_first(loops);
}

/// Returns the warps that run iterations by rule; 0: none do. They do where as many threads have work as do when all
/// run one iteration after another, and none holds too much.
int Renderer::warps_by_rule(const ParallelLoops& loops) const {
  const int64_t asked = kernel_.launch.warps;
  const auto count = static_cast<uint64_t>(loops.count);
  const int64_t warps = asked > 0 ? asked : std::min<int64_t>(most_warps, int64_t{1} << std::countr_zero(count));
  const int64_t threads = 32 * warps;
  const bool suits = loops.tile <= most_of_a_warp && loops.tile <= threads * elements_of_thread &&
                     largest_tile_ <= threads * most_of_a_thread;
  return warps > 1 && loops.count % warps == 0 && suits && !no_warps_fit_ ? static_cast<int>(warps) : 0;
}

/// Returns the blocks of a cluster that run iterations by rule; 0: none do.
int Renderer::blocks_by_rule(const ParallelLoops& loops) const {
  const int64_t blocks = divisor_up_to(loops.count, most_blocks);
  return blocks > 1 && (loops.walks || loops.tile > most_of_a_warp) ? static_cast<int>(blocks) : 0;
}

/// Sets the warps or blocks that the launch asks for. Throws std::invalid_argument where they cannot run the
/// iterations.
void Renderer::iterate_as_asked(const ParallelLoops& loops, int asked, const std::string& no_warps,
                                const std::string& no_blocks) {
  const kernel::LaunchOptions& launch = kernel_.launch;
  const std::string& why = asked == on_warps ? no_warps : no_blocks;
  const auto refuse = [&](const std::string& what) {
    throw_invalid("kernel " + kernel_.name,
                  fmt::format("{}its {} parallel iterations are asked to run by {}, which they cannot: {}",
                              line_of(kernel_, *loops.all[0]), loops.count,
                              asked == on_warps ? "warps" : "blocks of a cluster", what));
  };
  if (!why.empty()) refuse(why);
  if (asked == on_warps) {
    if (launch.cluster > 1) refuse(fmt::format("the launch asks for clusters of {} blocks as well", launch.cluster));
    const auto all = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(loops.count)));
    iterations_ = static_cast<int>(launch.warps > 0 ? launch.warps : std::min(all, most_warps));
    if (iterations_ < 2) refuse("the launch asks for one warp: ask for more, or for serial iterations");
    return;
  }
  const int64_t divisor = divisor_up_to(loops.count, most_blocks);
  const int64_t blocks = launch.cluster > 1 ? launch.cluster : divisor > 1 ? divisor : most_blocks;
  if (blocks > std::min(loops.count, most_blocks))
    refuse(fmt::format("a cluster of {} blocks is asked for, and {} is the most that has work", blocks,
                       std::min(loops.count, most_blocks)));
  cluster_ = static_cast<int>(blocks);
}

/// Decides who runs the iterations of parallel loops.
void Renderer::choose_iterations() {
  const ParallelLoops loops = kernel_.any_size ? parallel_loops() : ParallelLoops{};
  const kernel::LaunchOptions& launch = kernel_.launch;
  if (loops.all.empty()) return;
  const int asked = launch.iterations > 0 ? launch.iterations : launch.cluster > 1 ? on_blocks : 0;
  parallel_loops_ = static_cast<int>(loops.all.size());
  const std::string no_warps = this->no_warps(loops), no_blocks = this->no_blocks(loops);
  if (asked > in_turn) iterate_as_asked(loops, asked, no_warps, no_blocks);
  if (asked == 0 && no_warps.empty()) iterations_ = std::max(1, warps_by_rule(loops));
  warps_by_rule_ = asked == 0 && iterations_ > 1;
  if (asked == 0 && iterations_ == 1 && no_blocks.empty()) cluster_ = std::max(1, blocks_by_rule(loops));
  const std::string by = iterations_ > 1 ? fmt::format("{} warps", iterations_)
                         : cluster_ > 1  ? fmt::format("{} blocks of a cluster", cluster_)
                         : asked > 0     ? "all threads in turn, as the launch asks"
                                         : fmt::format("all threads in turn: no warps ({}), no blocks ({})",
                                                   no_warps.empty() ? "they would leave threads idle" : no_warps,
                                                   no_blocks.empty() ? "they are short" : no_blocks);
  iterations_note_ = fmt::format("{} parallel iterations by {}", loops.count, by);
}

}  // namespace weft::target::cuda
