// Renders groups of lanes as instructions of warps. The tiles of a kernel with lanes are held in chunks of one element
// by whole warps, so that neighbours of an axis lie in neighbouring lanes.
#include <fmt/format.h>

#include "kernel/lanes.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::LaneInfo;
using kernel::LaneOp;
using kernel::Op;

bool Renderer::has_lanes(const kernel::Block& block) {
  return std::any_of(block.insts.begin(), block.insts.end(), [](const Inst& i) {
    return i.op == Op::lanes || std::any_of(i.blocks.begin(), i.blocks.end(), has_lanes);
  });
}

void Renderer::lanes(const Inst& inst) {
  const LaneInfo& row = info(inst.lane_op);
  const Value v = inst.args[0], second = inst.args[1];
  const Dtype t = type(v).dtype;
  const std::string call = fmt::format("lanes_{}<{}>", row.name, inst.axis);
  if (!row.combines) {
    const std::string other = second == kernel::no_value ? "" : ", " + at(second);
    return each_register(inst.results[0], fmt::format("{}(({}){}{})", call, type_name(t), at(v), other));
  }
  const bool word_of_32_bits = is_integer(t) && t.size() == 4 && inst.scalar_op != kernel::ScalarOp::mul;
  if (inst.lane_op == LaneOp::reduce && second == kernel::no_value && inst.axis == 32 && word_of_32_bits)
    return each_register(inst.results[0],
                         fmt::format("warp_{}(({}){})", info(inst.scalar_op).name, type_name(t), at(v)));
  const Dtype wide = is_low_float(t) ? float32 : t;
  const std::string word = type_name(wide), args[] = {"a", "b"};
  const std::string neutral = fmt::format("({}){}", word, literal(neutral_of_lanes(inst.scalar_op, wide), wide)),
                    own = fmt::format("({}){}", word, conversion(at(v), t, wide)),
                    combined = fmt::format("[&]({0} a, {0} b) {{ return ({0})({1}); }}", word,
                                           expression(inst.scalar_op, wide, args));
  const auto made = [&](const std::string& of) {
    return inst.lane_op == LaneOp::scan_exclusive ? fmt::format("{}({}, {}, {})", call, of, neutral, combined)
                                                  : fmt::format("{}({}, {})", call, of, combined);
  };
  const std::string text = second == kernel::no_value
                               ? made(own)
                               : fmt::format("lanes_apart<{}>({}, {}, {}, [&]({} one) {{ return {}; }})", inst.axis,
                                             own, at(second), neutral, word, made("one"));
  each_register(inst.results[0], conversion(text, wide, t));
}

/// Makes each register of a result from `text`, in all threads alike.
void Renderer::each_register(Value v, const std::string& text) {
  declare(v);
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {};", layout_of(v).registers(), fresh(v), text));
}

}  // namespace weft::target::cuda
