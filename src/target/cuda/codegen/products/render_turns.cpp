// Renders blocks whose warpgroups have a program each and multiply in turns (ping-pong): while one set of warpgroups
// computes and stores what follows its products, the other one has the tensor cores. Both take their operands from one
// ring of stages, which the producer fills for one program after the other; a set skips the stages of the others.
#include <fmt/format.h>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

std::string Renderer::why_no_turns() const {
  if (sets_ == 1) return "";
  if (!producer_) return no_producer_;
  if (!persistent_) return "its programs are not equally long, or keep memory of their own";
  if (rings_of_loops_.size() != 1) return "several of its loops copy ahead";
  for (const auto& [result, product] : products_)
    for (const Operand* x : {&product.a, &product.b})
      if (!x->ahead && !x->in_registers) return "an operand is computed, or the same in all iterations";
  return "";
}

/// Begins the loop of a block over its programs, or of a set of its warpgroups.
void Renderer::begin_programs(bool producer) {
  if (sets_ == 1 || producer) return open("for (i64 program = first; program < grid; program += gridDim.x)");
  open(fmt::format("for (i64 program = first + set * (i64)gridDim.x; program < grid; program += {} * (i64)gridDim.x)",
                   sets_));
}

/// Skips the stages of the programs before this one's, or of those behind it, among the sets' ones.
void Renderer::skip_slots(const Inst& loop, bool of_first) {
  const int stages = rings_of_loops_.at(&loop).stages;
  open(of_first ? "if (set > 0)" : fmt::format("if (set < {})", sets_ - 1));
  add(fmt::format("const int passed = slot + (int)imax<i64>(({} - {} + {} - 1) / {}, 0){};", at(loop.args[1]),
                  at(loop.args[0]), at(loop.args[2]), at(loop.args[2]),
                  sets_ == 2 ? ""
                  : of_first ? " * set"
                             : fmt::format(" * ({} - set)", sets_ - 1)));
  add(fmt::format("slot = passed % {}, phase ^= (u32)(passed / {}) & 1u;", stages, stages));
  close();
}

/// Waits for the set before to have all its operands: an mbarrier of a stage is waited for in the order of its phases.
void Renderer::begin_turn(const Inst& loop) {
  skip_slots(loop, true);
  const int all = 2 * barriers_ * rings_of_loops_.at(&loop).stages;
  add(fmt::format("barrier_wait(barriers + ({} + set) * 8, turn_phase);", all));
  add("turn_phase ^= 1u;");
}

/// Lets the next set multiply.
void Renderer::end_turn(const Inst& loop) {
  const int all = 2 * barriers_ * rings_of_loops_.at(&loop).stages;
  add(fmt::format("if ((t & 31) == 0) barrier_arrive(barriers + ({} + (set + 1) % {}) * 8);", all, sets_));
}

}  // namespace weft::target::cuda
