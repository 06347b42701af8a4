// What a renderer finds out about a kernel before it writes a line: how many blocks and warps share its iterations, how
// many threads share its tiles, and how wide their chunks are.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Block;
using kernel::Op;

namespace {

constexpr int most_threads = 1024;
constexpr int64_t few_blocks_bytes = 56 << 10;
constexpr int64_t most_of_a_warp = 1024;
constexpr int64_t registers_of_long_rows = 16;  // that a thread has of a row that is walked by several warps
constexpr int64_t most_kept_bytes = 20 << 10;   // by a warp: 160 registers a thread
constexpr int max_cluster_size = 8;             // in a cluster, on every device that has them

/// Of a block, that take an iteration each.
int warps_of_rows(int iterations) { return iterations >= 256 ? 32 : 16; }

/// Of a parallel loop: the constant that ends it stands in the block before it.
int iterations_of(const Block& block, const kernel::Inst& loop) {
  const auto end = std::find_if(block.insts.begin(), block.insts.end(), [&](const kernel::Inst& i) {
    return i.op == Op::constant && i.results[0] == loop.args[1];
  });
  check(end != block.insts.end(), "cuda render", "the iterations of a parallel loop are not known");
  return static_cast<int>(end->number.i);
}

}  // namespace

/// The largest tile decides on the number of threads, the narrowest elements that lie side by side on the width of a
/// chunk.
void Renderer::analyze(const Block& block) {
  for (const Inst& inst : block.insts) {
    reduces_ = reduces_ || inst.op == Op::reduce || inst.op == Op::dot;
    planes_ = planes_ || (inst.op == Op::reduce && type(inst.args[0]).rank() == 2);
    lines_ = lines_ || (inst.op == Op::reduce && type(inst.args[0]).rank() == 1);
    transposes_ = transposes_ || inst.op == Op::transpose;
    if (inst.op == Op::constant && inst.type.rank() == 0 && is_integer(inst.type.dtype))
      known_values_[inst.results[0]] = inst.number.i;
    if (inst.op == Op::load && inst.type.rank() == 1) {
      const auto limit = known_values_.find(inst.args[1]);
      int64_t& filled = filled_[inst.type.size()];
      filled =
          std::max(filled, limit == known_values_.end() ? inst.type.size() : std::min(limit->second, inst.type.size()));
    }
    loads_ += inst.op == Op::load && inst.type.rank() > 0;
    if (inst.op == Op::load && inst.type.rank() > 0 && !is_local(inst.ref))
      kept_bytes_ += inst.type.size() * inst.type.dtype.size();
    if (inst.op == Op::loop) analyze_loop(inst);
    if (inst.op == Op::loop && inst.parallel && features_.clusters)
      cluster_ = iterations_of(block, inst), ++parallel_loops_;
    for (Value v : inst.results) largest_tile_ = std::max(largest_tile_, type(v).size());
    if (inst.op == Op::store || inst.op == Op::scatter || inst.op == Op::atomic_add)
      largest_tile_ = std::max(largest_tile_, type(inst.args[0]).size());
    if ((inst.op == Op::load || inst.op == Op::store) && !inst.strides.empty() && inst.strides.back() == 1)
      narrowest_ = std::min<int>(narrowest_, dtype_of(inst.ref).size());
    if (inst.op == Op::matmul) {
      const int warps = static_cast<int>(inst.type.size() / (inst.schedule.rows * inst.schedule.columns));
      check(warps_ == 0 || warps_ == warps, "cuda render", "matmuls of one kernel with different numbers of warps");
      warps_ = warps;
      int64_t& ring = rings_[inst.ref];
      ring = std::max(ring, ring_bytes(inst));
    }
    note_pattern(inst);
    for (const Block& inner : inst.blocks) analyze(inner);
  }
}

/// Of a parallel loop each block of a cluster takes an iteration; of many iterations with tiles of two axes, which are
/// small, each warp. Warps also take those that leave lines (render_lines.cpp).
void Renderer::distribute_iterations() {
  if (!planes_ || parallel_loops_ != 1) return;
  const auto loop = std::find_if(kernel_.body.insts.begin(), kernel_.body.insts.end(),
                                 [](const kernel::Inst& i) { return i.op == Op::loop && i.parallel; });
  partial_rows_ = rows_of_iterations(*loop, cluster_);
  if (!partial_rows_.empty()) {
    for (const kernel::Inst& i : kernel_.body.insts)
      if (i.op == Op::load && partial_rows_.contains(i.ref)) partial_row_loads_[i.results[0]] = i.ref;
      else if (i.op == Op::reduce && partial_row_loads_.contains(i.args[0]))
        row_reducers_[partial_row_loads_[i.args[0]]] = i.reducer;
    iterations_ = std::min(cluster_, warps_of_rows(cluster_));
    check(cluster_ % iterations_ == 0, "cuda render", "the iterations of a parallel loop cannot be distributed evenly");
    cluster_ /= iterations_;
    return;
  }
  if (cluster_ <= max_cluster_size) return;
  iterations_ = cluster_ / max_cluster_size;
  check(iterations_ * max_cluster_size == cluster_, "cuda render",
        "the iterations of a parallel loop cannot be distributed evenly");
  cluster_ = max_cluster_size;
}

void Renderer::analyze_loop(const Inst& loop) {
  for (Value v : loop.results) kept_bytes_ += type(v).rank() > 0 ? type(v).size() * type(v).dtype.size() : 0;
  for (const Inst& inst : loop.blocks[0].insts)
    if (inst.op == Op::reduce && type(inst.args[0]).rank() == 1)
      for (Value v : loop.results)
        if (type(v) == type(inst.args[0])) walked_ = std::max(walked_, type(v).size());
}

/// Chunks of rows that are walked by several warps: the narrower, the fewer elements lie behind the end of a row that
/// does not fill its tile, and the less there is to exchange between warps. Four elements where two leave no register
/// out.
int Renderer::vec_of_long_rows() const {
  const auto filled = filled_.find(walked_);
  const int64_t length = filled == filled_.end() ? walked_ : filled->second, threads = walked_ / registers_of_long_rows;
  const auto registers = [&](int64_t vec) { return (length + threads * vec - 1) / (threads * vec) * vec; };
  return registers(2) < registers(4) ? 2 : 4;
}

/// Of kernels whose warps leave lines: left to itself, the device's compiler takes so few registers that it has few
/// loads under way. Of kernels that walk rows: their grid is made for as many programs at once as fit with all the
/// registers that a thread can have, or half of them where rows are long.
int Renderer::min_blocks() const {
  if (!partial_rows_.empty()) return std::max(1, most_threads / threads_);
  return walks() && threads_ > 32 ? std::max(1, (walks_long_rows() ? 512 : 256) / threads_) : 0;
}

void Renderer::choose_threads() {
  vec_ = std::clamp(16 / std::max(1, narrowest_), 1, 8);
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
  // Reductions and products are cheaper among fewer threads with more registers each, as long as what is loaded fits
  // into them. Where two blocks at most share an SM's memory, they need many threads.
  const bool few_blocks = local_bytes_ > few_blocks_bytes;
  // What takes sums of lines and of planes (attention of one query) has little to compute and much to wait for.
  const bool short_ways = lines_ && planes_;
  const int chunks = few_blocks     ? 1
                     : short_ways   ? std::max(1, 8 / vec_)
                     : cluster_ > 1 ? 1
                     : reduces_     ? (loads_ <= 2 ? 4 : 2)
                     : transposes_  ? 2
                                    : 1;
  // A row of up to 1024 elements is one warp's, which needs nobody else's sums; so is one of 2048 if that leaves it
  // registers to compute with.
  const bool one_warp =
      lines_ && !short_ways && cluster_ == 1 &&
      (largest_tile_ <= most_of_a_warp || (largest_tile_ <= 2 * most_of_a_warp && kept_bytes_ <= most_kept_bytes));
  const int64_t wanted = one_warp ? 32 : std::max<int64_t>(1, largest_tile_ / (vec_ * chunks));
  if (warps_ > 0) threads_ = 32 * warps_;
  // Rows that are walked: the fewer threads, the cheaper the sums of a row; what is carried from row to row then fills
  // their registers. Rows that are longer than a warp's share out their sums anyway: twice the threads have twice the
  // loads under way.
  else if (walks())
    threads_ = static_cast<int>(
        std::clamp<int64_t>(walked_ / (walks_long_rows() ? registers_of_long_rows : 32), 32, most_threads));
  else
    threads_ = static_cast<int>(
        std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(wanted))), 32, most_threads));
}

}  // namespace weft::target::cuda
