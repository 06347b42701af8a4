// Lowers maps with a loop inside of each program (schedule/invariant.h). A program computes some adjacent tiles of
// lanes, unrolled, for each index of the loop's axes. The index of a tile's first lane is known up to the program's
// block, so that a concat along the lanes reads the one operand that the tile lies in, and tiles share what they read
// at equal indices.
#include <algorithm>

#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

using ix::Expr;
using kernel::no_value;
using kernel::ScalarOp;
using kernel::Value;

/// Emits, before the loop, what the tile computes at indices that do not vary along it.
void RowLowering::hoist_operands(const Statement& statement) {
  const IrNode& node = node_of(statement);
  const auto hoist = [&](const Access& access) {
    if (!access.valid || access.valid.is_constant(1)) emit_.hoist(access.node, access.index, {loop_});
  };
  if (node.op == graph::Op::concat) {
    for (const Access& access : push_concat(*group_.cx, cx_.ir, statement.root.node, statement.root.index))
      hoist(access);
  } else if (is_movement(node.op)) {
    hoist(push(*group_.cx, cx_.ir, statement.root.node, statement.root.index));
  } else if (is_elementwise(node.op)) {
    for (const NodeId input : node.inputs) emit_.hoist(input, statement.root.index, {loop_});
  }
}

void RowLowering::map_with_loop() {
  kernel::Builder& b = emit_.builder();
  ix::Context& icx = *group_.cx;
  const int64_t width = schedule_.tile(), tiles = schedule_.lanes.count(Level::unroll),
                iterations = schedule_.loop.count(Level::serial), chunks = extent_of(serial_) / iterations;
  const Expr row = icx.variable("p", 0, extent_of(outer_) - 1), chunk = icx.variable("c", 0, chunks - 1),
             block = icx.variable("b", 0, blocks_ - 1);
  lane_ = icx.variable("x", 0, width - 1);
  loop_ = icx.variable("j", 0, iterations - 1);
  std::vector<std::vector<Statement>> tiles_of_block;
  for (int64_t k = 0; k < tiles; ++k)
    tiles_of_block.push_back(
        substituted(row, block * schedule_.block() + icx.constant(k * width) + lane_, chunk * iterations + loop_));

  grid_ = extent_of(outer_) * chunks * blocks_;
  const Value program = b.program_id();
  const auto digit = [&](Value number, int64_t extent) {
    return extent == 1 ? b.index(0) : b.scalar(ScalarOp::mod, {number, b.index(extent)});
  };
  const auto rest = [&](Value number, int64_t extent) {
    return extent == 1 ? number : b.scalar(ScalarOp::floordiv, {number, b.index(extent)});
  };
  emit_.bind(block, digit(program, blocks_));
  const Value above = rest(program, blocks_);
  emit_.bind(chunk, digit(above, chunks));
  emit_.bind(row, rest(above, chunks));
  emit_.bind_lanes(lane_, b.index(0), width, no_value);
  for (const std::vector<Statement>& tile : tiles_of_block)
    for (const Statement& statement : tile) hoist_operands(statement);
  b.loop(b.index(0), b.index(iterations), b.index(1), {}, [&](Value at, const std::vector<Value>&) {
    emit_.push_scope();
    emit_.bind(loop_, at);
    for (std::vector<Statement>& tile : tiles_of_block) {
      for (const Statement& statement : tile) emit_.forget(statement.root.node);
      std::swap(statements_, tile);
      step(0, {});
      std::swap(statements_, tile);
    }
    emit_.pop_scope();
    return std::vector<Value>{};
  });
}

}  // namespace weft::compiler
