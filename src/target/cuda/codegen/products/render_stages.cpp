// Renders asynchronous copies of tiles to shared memory, and the loops that copy what later iterations multiply while
// they compute: a ring of stages, one a slot. An iteration waits for its own stage, has all threads meet, and begins
// the copy into the slot that the iteration before has left.
#include <fmt/format.h>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

/// Renders the copy of a tile, in chunks of 16 bytes; what lies past an edge becomes 0.
void Renderer::copy_tile(const Operand& x, const std::string& space) {
  const Inst& load = *x.load;
  const size_t inner = x.lines_last ? 0 : 1, outer = 1 - inner;
  const int64_t per = x.per(), chunks = x.length / per, all = x.lines * chunks, size = x.dtype.size();
  const Value lines = load.args[1 + outer], length = load.args[1 + inner];
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", (all + threads_ - 1) / threads_));
  add(fmt::format("const int e = c * {} + t, line = e / {}, chunk = e % {};", threads_, chunks, chunks));
  if (all % threads_ != 0) open(fmt::format("if (e < {})", all));
  const std::string to = fmt::format("{} + {}", space, x.position("line", "chunk")),
                    from = fmt::format("{} + line * {}ll + chunk * {}", at(load.args[0]), load.strides[outer], per);
  if (lines == kernel::no_value && length == kernel::no_value) {
    add(fmt::format("copy_async({}, {} + {});", to, buffer(load.ref), from));
  } else {
    std::string bytes = "16";
    if (length != kernel::no_value)
      bytes = fmt::format("(int)imax<i64>(imin<i64>(({} - chunk * {}) * {}, 16), 0)", at(length), per, size);
    if (lines != kernel::no_value) bytes = fmt::format("line < {} ? {} : 0", at(lines), bytes);
    add(fmt::format("const int bytes = {};", bytes));
    add(fmt::format("copy_async({}, {} + (bytes > 0 ? {} : 0), bytes);", to, buffer(load.ref), from));
  }
  if (all % threads_ != 0) close();
  close();
}

/// Copies a tile and waits for it.
void Renderer::copy_now(const Operand& x) {
  if (kept_before_.contains(x.load)) finish_products(in_flight_.size());
  sync();
  copy_tile(x, fmt::format("shared_address(stages) + {}", x.offset));
  add("commit_copies(); wait_copies<0>();");
  if (warpgroups_ > 0) add("fence_for_wgmma();");
  sync();
}

std::string Renderer::slot_of(const Inst& loop) const {
  if (producer_) return "slot";
  return "slot" + fresh(loop.blocks[0].arguments[0]);
}

/// Begins the copy of what the iteration at `step` reads, if there is one. The scalars of the loop's body that
/// addresses are made of are computed for that iteration.
void Renderer::copy_stage(const Inst& loop, const std::string& step, const std::string& slot) {
  const Ring& ring = rings_of_loops_.at(&loop);
  const Value counter = loop.blocks[0].arguments[0];
  const std::vector<std::string> names = names_;
  open("");
  add(fmt::format("const i64 ahead = {};", step));
  name(counter, "ahead");
  open(fmt::format("if (ahead < {})", at(loop.args[1])));
  for (const Inst* i : ring.scalars) inst(*i);
  for (const Value v : ring.loads) {
    const Operand& x = copied_tiles_.at(v);
    copy_tile(x, fmt::format("shared_address(stages) + {} + {} * {}", ring.offset + x.offset, slot, ring.stage_bytes));
  }
  close();
  close();
  add("commit_copies();");
  names_ = names;
  shared_end_ = std::string::npos;
}

/// Begins the first copies of a loop.
void Renderer::begin_ring(const Inst& loop) {
  if (sets_ > 1) return begin_turn(loop);
  if (producer_) return;
  const Ring& ring = rings_of_loops_.at(&loop);
  const int ahead = ring.stages - ring.read;
  sync();
  for (int k = 0; k < ahead; ++k)
    copy_stage(loop, fmt::format("{} + {} * {}ll", at(loop.args[0]), at(loop.args[2]), k), std::to_string(k));
  add(fmt::format("int {} = 0;", slot_of(loop)));
}

/// Waits for the stage of the iteration that begins, and begins the copy of another one.
void Renderer::next_stage(const Inst& loop) {
  if (producer_) return;
  const Ring& ring = rings_of_loops_.at(&loop);
  const int stages = ring.stages, ahead = stages - ring.read;
  const std::string slot = slot_of(loop);
  add(fmt::format("wait_copies<{}>();", ahead - 1));
  if (warpgroups_ > 0) add("fence_for_wgmma();");
  sync();
  copy_stage(loop, fmt::format("{} + {} * {}ll", fresh(loop.blocks[0].arguments[0]), at(loop.args[2]), ahead),
             fmt::format("({0} < {1} ? {0} + {2} : {0} - {1})", slot, ring.read, ahead));
}

/// Ends an iteration.
void Renderer::end_ring(const Inst& loop) {
  if (producer_) return add(fmt::format("if (++slot == {}) slot = 0, phase ^= 1u;", rings_of_loops_.at(&loop).stages));
  const std::string slot = slot_of(loop);
  add(fmt::format("{0} = {0} == {1} ? 0 : {0} + 1;", slot, rings_of_loops_.at(&loop).stages - 1));
}

/// Waits for the copies and products that are under way after the last iteration.
void Renderer::finish_ring(const Inst& loop) {
  if (!producer_) add("wait_copies<0>();");
  if (sets_ > 1) end_turn(loop);
  const bool beside = rings_of_loops_.at(&loop).read > 1;
  if (beside) add("wgmma_wait<0>();");
  if (beside && producer_) {
    open(fmt::format("if ({} < {})", at(loop.args[0]), at(loop.args[1])));
    for (const auto& [result, product] : products_)
      if (product.loop == &loop && product.in_place) release(product, before_slot(loop));
    close();
  }
  if (sets_ > 1) skip_slots(loop, false);
}

}  // namespace weft::target::cuda
