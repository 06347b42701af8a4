// Analyses a kernel before it is rendered: how its parallel iterations map to blocks and warps, how many threads a
// program has, and how many elements a chunk has.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/rules.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Block;
using kernel::Op;

namespace {

constexpr int most_threads = 1024;
constexpr int registers_of_sm = 65536;
constexpr int64_t few_blocks_bytes = 56 << 10;
constexpr int64_t most_of_a_warp = 1024;
constexpr int64_t registers_of_long_rows = 16;  // per thread, of a row that several warps walk
constexpr int64_t most_kept_bytes = 20 << 10;   // per warp: 160 registers a thread
constexpr int max_cluster_size = 8;             // every device with clusters supports 8 blocks
// Operations of straight code for a thread: about 32 KiB. On an H100 a kernel of 78 KiB waited for its instructions
// four times as long as it took to issue them (sums of columns of tanh(tanh(x)), `weft bench random --seed 20261125`,
// graph 50).
constexpr int64_t most_instructions = 1280;

/// Returns how many warps of a block take one iteration each, in a kernel whose warps store partial rows or states.
int warps_of_rows(int iterations) { return iterations >= 256 ? 32 : 16; }

/// Returns the number of iterations of a parallel loop. Its end is a constant in the block that contains the loop.
int iterations_of(const Block& block, const kernel::Inst& loop) {
  const auto end = std::find_if(block.insts.begin(), block.insts.end(), [&](const kernel::Inst& i) {
    return i.op == Op::constant && i.results[0] == loop.args[1];
  });
  check(end != block.insts.end(), "cuda render", "the iterations of a parallel loop are not known");
  return static_cast<int>(end->number.i);
}

/// Returns whether an instruction needs more of a program than threads that hold the elements of one row: programs that
/// share a warp must take the same way through the kernel and meet only where they reduce.
bool leaves_row(const kernel::Inst& inst) {
  switch (inst.op) {
    case Op::permute:
    case Op::shift:
    case Op::exchange:
    case Op::extract:
    case Op::dot:
    case Op::scatter:
    case Op::atomic_add:
    case Op::alloc: return true;
    case Op::when: return inst.results.empty();
    case Op::loop: return inst.parallel;
    default: return false;
  }
}

/// Returns whether an instruction moves elements between threads, other than by reducing rank-1 tiles.
bool moves_elements(const kernel::Kernel& kernel, const kernel::Inst& inst) {
  switch (inst.op) {
    case Op::slice:
    case Op::cat:
    case Op::permute:
    case Op::scan:
    case Op::shift:
    case Op::exchange:
    case Op::extract:
    case Op::take:
    case Op::sort:
    case Op::lanes:
    case Op::histogram:
    case Op::dot: return true;
    case Op::reduce:
      return kernel.types[static_cast<size_t>(inst.args[0])].rank() > 1 || !kernel::is_basic(kernel, inst);
    case Op::broadcast: return !kernel::is_basic(kernel, inst);
    default: return false;
  }
}

}  // namespace

/// Notes tiles of integers that a constant masks, so that the bits of a float hold them whole. Their conversion is an
/// operation on bits and a subtraction, which GPUs do twice as often as conversions.
void Renderer::find_mask(const Inst& inst) {
  constexpr int64_t most = int64_t{1} << 23;
  if (inst.type.dtype != uint32 || inst.type.rank() == 0 || inst.results.size() != 1) return;
  if (inst.op == Op::constant) constants_[inst.results[0]] = inst.number.i;
  if (inst.op != Op::scalar || inst.scalar_op != kernel::ScalarOp::bit_and) return;
  for (const size_t k : {0, 1})
    if (const auto mask = constants_.find(inst.args[k]); mask != constants_.end() && mask->second < most)
      masks_[inst.results[0]] = {inst.args[1 - k], mask->second};
}

/// Collects the facts that the choice of threads and chunks needs: the largest tile sets the number of threads, the
/// narrowest element of a contiguous access sets the width of a chunk.
void Renderer::analyze(const Block& block) {
  for (const Inst& inst : block.insts) {
    reduces_ = reduces_ || inst.op == Op::reduce || inst.op == Op::dot;
    planes_ = planes_ || (inst.op == Op::reduce && type(inst.args[0]).rank() == 2);
    lines_ = lines_ || (inst.op == Op::reduce && type(inst.args[0]).rank() == 1);
    transposes_ = transposes_ || inst.op == Op::permute;
    whole_rows_ = whole_rows_ && !leaves_row(inst);
    moves_ = moves_ || moves_elements(kernel_, inst);
    loops_ += inst.op == Op::loop;
    if (inst.op == Op::constant && inst.type.rank() == 0 && is_integer(inst.type.dtype))
      known_values_[inst.results[0]] = inst.number.i;
    find_mask(inst);
    if (inst.op == Op::load && inst.type.rank() == 1) {
      const auto limit = known_values_.find(inst.args[1]);
      int64_t& filled = filled_[inst.type.size()];
      filled =
          std::max(filled, limit == known_values_.end() ? inst.type.size() : std::min(limit->second, inst.type.size()));
    }
    loads_ += inst.op == Op::load && inst.type.rank() > 0;
    if (inst.op == Op::scalar || inst.op == Op::cast) operations_ += inst.type.size();
    if (inst.op == Op::load && inst.type.rank() > 0 && !is_local(inst.ref))
      kept_bytes_ += inst.type.size() * inst.type.dtype.size();
    if (inst.op == Op::loop) analyze_loop(inst);
    if (inst.op == Op::loop && inst.parallel && features_.clusters && !general_)
      cluster_ = iterations_of(block, inst), ++parallel_loops_;
    for (Value v : inst.results) largest_tile_ = std::max(largest_tile_, type(v).size());
    if (inst.op == Op::store || inst.op == Op::scatter || inst.op == Op::atomic_add)
      largest_tile_ = std::max(largest_tile_, type(inst.args[0]).size());
    if ((inst.op == Op::load || inst.op == Op::store) && !inst.strides.empty() && inst.strides.back() == 1)
      narrowest_ = std::min<int>(narrowest_, dtype_of(inst.ref).size());
    if ((inst.op == Op::gather || inst.op == Op::scatter) &&
        in_runs(inst, std::clamp(16 / dtype_of(inst.ref).size(), 1, 8)))
      narrowest_ = std::min<int>(narrowest_, dtype_of(inst.ref).size());
    for (const int64_t warps : inst.op == Op::roles ? inst.axes : std::vector<int64_t>{})
      warps_ += static_cast<int>(warps);
    note_pattern(inst);
    for (const Block& inner : inst.blocks) analyze(inner);
  }
}

/// Maps the iterations of a parallel loop. By default each block of a cluster takes one. Where there are more than a
/// cluster has blocks, and tiles of two axes (they are small), each warp takes one. Warps also take iterations that
/// store partial rows (render_lines.cpp), or states of columns: first those of a block, then those of further blocks.
void Renderer::distribute_iterations() {
  if (general_ || !planes_ || parallel_loops_ != 1) return;
  const auto loop = std::find_if(kernel_.body.insts.begin(), kernel_.body.insts.end(),
                                 [](const kernel::Inst& i) { return i.op == Op::loop && i.parallel; });
  partial_rows_ = rows_of_iterations(*loop, cluster_);
  if (!partial_rows_.empty()) {
    for (const kernel::Inst& i : kernel_.body.insts)
      if (i.op == Op::load && partial_rows_.contains(i.ref)) partial_row_loads_[i.results[0]] = i.ref;
      else if (i.op == Op::reduce && partial_row_loads_.contains(i.args[0]))
        row_reducers_[partial_row_loads_[i.args[0]]] = i.reducer;
  }
  const bool columns = !partial_rows_.empty() || !lines_;
  if (!columns && cluster_ <= max_cluster_size) return;
  iterations_ = columns ? std::min(cluster_, warps_of_rows(cluster_)) : cluster_ / max_cluster_size;
  check(cluster_ % iterations_ == 0 && (columns || cluster_ == iterations_ * max_cluster_size), "cuda render",
        "the iterations of a parallel loop cannot be distributed evenly");
  cluster_ /= iterations_;
}

void Renderer::analyze_loop(const Inst& loop) {
  if (general_) return;
  for (Value v : loop.results) kept_bytes_ += type(v).rank() > 0 ? type(v).size() * type(v).dtype.size() : 0;
  for (const Inst& inst : loop.blocks[0].insts)
    if (inst.op == Op::exchange)
      for (Value v : loop.results) accumulates_ = accumulates_ || type(v) == inst.type;
    else if (inst.op == Op::reduce && type(inst.args[0]).rank() == 1)
      for (Value v : loop.results)
        if (type(v) == type(inst.args[0])) walked_ = std::max(walked_, type(v).size());
}

/// Returns the width of chunks for rows that several warps walk: 2 where that saves registers compared with 4, else 4.
/// Narrow chunks leave fewer elements past the end of a row that does not fill its tile.
int Renderer::vec_of_long_rows() const {
  const auto filled = filled_.find(walked_);
  const int64_t length = filled == filled_.end() ? walked_ : filled->second, threads = walked_ / registers_of_long_rows;
  const auto registers = [&](int64_t vec) { return (length + threads * vec - 1) / (threads * vec) * vec; };
  return registers(2) < registers(4) ? 2 : 4;
}

/// Returns the threads of a program that reduces a row of up to 1024 elements: a warp, or a part of one where whole
/// chunks then fill more of the lanes. A row of 40 16-bit elements fills five of eight threads, where a warp would load
/// pairs; a row of 384 fills 16 threads three times, and 32 threads one and a half times. The programs of a warp reduce
/// their rows by the same instructions.
int Renderer::threads_of_rows() const {
  constexpr int warp = 32, least = 8, most_registers = 24;
  const bool one_pass = loops_ == 0 || (walks() && loops_ == 1);
  if (!lines_ || planes_ || !whole_rows_ || !one_pass || largest_tile_ > most_of_a_warp || warps_ > 0) return warp;
  const auto filled = filled_.find(largest_tile_);
  const int64_t length = filled == filled_.end() ? largest_tile_ : filled->second;
  const auto registers = [&](int64_t threads) { return (length + threads * vec_ - 1) / (threads * vec_) * vec_; };
  auto threads = static_cast<int>(std::clamp<int64_t>(largest_tile_ / vec_, least, warp));
  for (int fewer = threads / 2; fewer >= least && registers(fewer) <= most_registers; fewer /= 2)
    if (fewer * registers(fewer) < threads * registers(threads)) threads = fewer;
  return threads;
}

/// Returns the number of blocks for __launch_bounds__, or 0. With partial rows a bound is needed because ptxas
/// otherwise uses so few registers that few loads are in flight. A kernel that walks rows has a grid sized for as many
/// concurrent programs as fit with all registers that a thread can have (with half of them for long rows).
int Renderer::min_blocks() const {
  if (kernel_.launch.registers > 0)
    return static_cast<int>(registers_of_sm / (kernel_.launch.registers * threads_of_block()));
  if (blocks_ > 0) return blocks_;
  if (!partial_rows_.empty()) return std::max(1, most_threads / threads_);
  return walks() && threads_ > 32 ? std::max(1, (walks_long_rows() ? 512 : 256) / threads_) : 0;
}

/// Chooses the threads of a kernel that is not basic by its largest tile. Where elements move between threads, and
/// where none do, threads have few each. Where rows are only reduced, fewer threads with more elements each exchange
/// less between warps, and more rows are in flight at once: on an H200, softmax of 4096 x 8192 took 0.120 ms with 8
/// elements of float32 a thread.
void Renderer::choose_general_threads() {
  constexpr int few_loads = 3;
  const int64_t elements_of_thread = !lines_ || moves_ ? 8 : loads_ <= few_loads ? 32 : 16;
  if (has_lanes(kernel_.body)) vec_ = 1;
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(1, largest_tile_ / elements_of_thread));
  threads_ = iterations_ > 1 ? 32 * iterations_
             : warps_ > 0    ? 32 * warps_
             : kernel_.launch.warps > 0
                 ? 32 * kernel_.launch.warps
                 : static_cast<int>(std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(wanted)), 32, most_threads));
}

/// Returns a loop that is to have stages and has none; null: there is none.
const kernel::Inst* Renderer::loop_without_ring(const kernel::Block& block) const {
  for (const kernel::Inst& inst : block.insts) {
    if (inst.op == Op::loop && inst.axis > 0 && !rings_of_loops_.contains(&inst)) return &inst;
    for (const kernel::Block& inner : inst.blocks)
      if (const kernel::Inst* const found = loop_without_ring(inner)) return found;
  }
  return nullptr;
}

/// Refuses what the kernel's launch asks for and its code cannot have.
void Renderer::check_launch() const {
  const kernel::LaunchOptions& asked = kernel_.launch;
  const auto refuse = [&](const std::string& what) { throw_invalid("kernel " + kernel_.name, what); };
  if (asked.warps > 0 && (32 * asked.warps != threads_ || threads_ > most_threads))
    refuse(
        fmt::format("is asked to run by {} warps, which it cannot: its roles or its source have {}, and a block has "
                    "{} at most",
                    asked.warps, threads_ / 32, most_threads / 32));
  if (asked.cluster > 1 && asked.cluster != cluster_)
    refuse(
        fmt::format("is asked to run by clusters of {} blocks, and has no parallel loop whose iterations they could "
                    "share: leave cluster at 1",
                    asked.cluster));
  if (asked.iterations > 1 && iterations_note_.empty())
    refuse("is asked to run parallel iterations side by side, and has none: leave iterations out");
  if (kernel_.cluster > 0 && !features_.clusters)
    refuse(
        fmt::format("its programs run in clusters of {}, which this GPU does not have: run it on one of compute "
                    "capability 9.0 or later",
                    kernel_.cluster));
  constexpr int on = 1, by_wgmma = 1, by_mma = 2;
  if ((asked.instruction == by_wgmma && warpgroups_ == 0) ||
      (asked.instruction == by_mma && (products_.empty() || exact_)))
    refuse(fmt::format("is asked to multiply by {}, and does not: {}: leave tensorize out, or change its tiles",
                       asked.instruction == by_mma ? "mma.sync" : "wgmma",
                       !no_warpgroups_.empty() ? no_warpgroups_
                       : notes_.empty()        ? "it has no product"
                                               : notes_[0]));
  if (asked.specialize == on && !producer_)
    refuse(
        fmt::format("is asked to copy by warps of its own, and has none: {}: leave specialize off, or change what "
                    "its loops copy",
                    no_producer_.empty() ? "no product is multiplied by warpgroups" : no_producer_));
  if (asked.persistent == on && !persistent_)
    refuse(
        "is asked to let blocks take programs in turns, which only those do that copy by warps of their own and keep "
        "no memory: leave persistent off");
  if (const kernel::Inst* const loop = loop_without_ring(kernel_.body))
    refuse(
        fmt::format("is asked to run a loop of {} stages, which copies nothing ahead: pipeline a loop whose products "
                    "read arrays",
                    loop->axis));
  if (asked.registers * threads_of_block() > registers_of_sm)
    refuse(fmt::format("is asked to have {} registers for each of {} threads, more than the {} of an SM: ask for fewer",
                       asked.registers, threads_of_block(), registers_of_sm));
}

void Renderer::choose_threads() {
  vec_ = std::clamp(16 / std::max(1, narrowest_), 1, 8);
  if (const kernel::InlineCode* const code = source_of(kernel_)) {
    threads_ = static_cast<int>(code->block[0] * code->block[1] * code->block[2]);
    exchange_bytes_ = code->shared_bytes;
    return;
  }
  if (general_) return choose_general_threads();
  if (walks_long_rows()) vec_ = std::min(vec_, vec_of_long_rows());
  find_register_tiles();
  if (tile_side_ > 0) {
    threads_ = static_cast<int>(transposed_tile_[0] * transposed_tile_[1] / (tile_side_ * tile_side_));
    return;
  }
  if (iterations_ > 1) {
    threads_ = 32 * iterations_;
    return;
  }
  // Reductions and dots are cheaper with fewer threads that have more registers each, as long as the loaded data fits.
  // Where shared memory leaves room for at most two blocks on an SM, they need many threads.
  const bool few_blocks = local_bytes_ > few_blocks_bytes;
  // Reductions of rank-1 and rank-2 tiles together mean attention of one query: little arithmetic, much latency.
  const bool short_ways = lines_ && planes_;
  const int chunks = few_blocks     ? 1
                     : short_ways   ? std::max(1, 8 / vec_)
                     : cluster_ > 1 ? 1
                     : reduces_     ? (loads_ <= 2 ? 4 : 2)
                     : transposes_  ? 2
                                    : 1;
  // One warp reduces a row of up to 1024 elements alone, or accumulates along it, without exchange between warps; also
  // one of 2048 if enough registers remain.
  const bool one_warp =
      (lines_ || accumulates_) && !short_ways && cluster_ == 1 &&
      (largest_tile_ <= most_of_a_warp || (largest_tile_ <= 2 * most_of_a_warp && kept_bytes_ <= most_kept_bytes));
  const int64_t wanted = one_warp ? 32 : std::max<int64_t>(1, largest_tile_ / (vec_ * chunks));
  if (warps_ > 0) threads_ = 32 * warps_;
  // Rows that are walked: fewer threads make the reduction of a row cheaper, and the carried tiles fill their
  // registers. Rows too long for one warp are exchanged between warps anyway, so twice the threads keep twice the loads
  // in flight.
  else if (walks())
    threads_ = static_cast<int>(
        std::clamp<int64_t>(walked_ / (walks_long_rows() ? registers_of_long_rows : 32), 32, most_threads));
  else
    threads_ = static_cast<int>(
        std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(wanted))), 32, most_threads));
  if (one_warp && threads_ == 32) threads_ = threads_of_rows();
  if (whole_rows_ && !walks() && !planes_ && warps_ == 0)
    while (threads_ < std::min<int64_t>(most_threads, largest_tile_) && operations_ > most_instructions * threads_)
      threads_ *= 2;
}

}  // namespace weft::target::cuda
