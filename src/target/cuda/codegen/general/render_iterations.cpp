// Renders parallel loops of users' kernels whose iterations run side by side (choose_iterations.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Block;

/// Renders iterations that warps take: warp w has iterations w, w + warps, …. It acts as a program of its own: tiles
/// are distributed over its 32 lanes, and it exchanges through its own part of shared memory. Only scalars come from
/// outside. What iterations store in scratch lies in the block's memory, so that a barrier shows it to all.
void Renderer::iterations_by_warps(const Inst& loop) {
  const Block& body = loop.blocks[0];
  sync();
  dirty_.clear(), read_.clear();
  const int block_threads = std::exchange(threads_, 32);
  const int64_t block_exchange = std::exchange(exchange_bytes_, 0);
  std::string before = std::exchange(body_, {});
  shared_end_ = std::string::npos;
  sync_ = "__syncwarp();", indent_ += 2;
  const std::string counter = fresh(body.arguments[0]);
  name(body.arguments[0], counter);
  loop_hazards(body);
  block(body);
  sync_ = "SYNC", indent_ -= 2;
  const int64_t bytes = (exchange_bytes_ + 15) / 16 * 16;
  threads_ = block_threads;
  exchange_bytes_ = std::max(block_exchange, bytes * iterations_);
  const std::string inside = std::exchange(body_, std::move(before));
  shared_end_ = std::string::npos;
  open("");
  add("const int block_t = t;");
  add("u8* const block_shared = shared;");
  open(fmt::format("for (i64 {0} = block_t >> 5; {0} < {1}; {0} += {2})", counter, at(loop.args[1]), iterations_));
  add("const int t = block_t % 32;");
  add(fmt::format("u8* const shared = block_shared + (block_t >> 5) * {};", bytes));
  body_ += inside;
  close();
  close();
  sync();
  dirty_.clear(), read_.clear();
}

/// Renders iterations that blocks of a cluster take: block b has iterations b, b + blocks, …. Every block does what
/// stands before the loops and between them, for itself; the first one alone goes on behind the last loop. What
/// iterations store in scratch and others read (in_first_) lies in the first block, which the others reach from the
/// first loop on. A barrier of the cluster stands before the first loop, as all blocks must have begun, and around
/// each.
void Renderer::iterations_by_blocks(const Inst& loop) {
  const Block& body = loop.blocks[0];
  const bool first = iterations_begun_++ == 0, last = iterations_begun_ == parallel_loops_;
  const bool ends = last && &loop + 2 == kernel_.body.insts.data() + kernel_.body.insts.size();  // but for the yield
  if (first && local_bytes_ > 0) add("cluster_wait();");
  if (!in_first_.empty()) {
    add("cluster_arrive(), cluster_wait();");
    if (first) add("u8* const first_locals = in_block(locals, 0);");
    reaches_first_ = true;
  } else {
    sync();
  }
  dirty_.clear(), read_.clear();
  const std::string counter = fresh(body.arguments[0]);
  name(body.arguments[0], counter);
  loop_hazards(body);
  open(fmt::format("for (i64 {0} = cluster_rank(); {0} < {1}; {0} += {2})", counter, at(loop.args[1]), cluster_));
  block(body);
  close();
  if (!ends || !in_first_.empty()) add("cluster_arrive(), cluster_wait();");
  if (last && !ends) add("if (cluster_rank() != 0) return;");
  if (last) reaches_first_ = false;
  dirty_.clear(), read_.clear();
}

}  // namespace weft::target::cuda
