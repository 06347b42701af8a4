// Counts the operations of a kernel from its instructions, for predictions and profiles.
#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/calls/kernel_call.h"
#include "kernel/op_info.h"

namespace weft::graph {
namespace {

using kernel::Inst;

class Count {
 public:
  explicit Count(const kernel::Kernel& kernel) : kernel_(kernel), known_(kernel.types.size()) {}

  KernelWork run(int64_t grid) {
    block(kernel_.body, static_cast<double>(grid));
    return work_;
  }

 private:
  double elements(kernel::Value v) const { return static_cast<double>(kernel_.types[static_cast<size_t>(v)].size()); }
  std::optional<int64_t> known(kernel::Value v) const { return known_[static_cast<size_t>(v)]; }

  /// Returns the number of iterations, 1 where the bounds are not known.
  double iterations(const Inst& loop) const {
    const auto lo = known(loop.args[0]), hi = known(loop.args[1]), step = known(loop.args[2]);
    if (!lo || !hi || !step || *step <= 0) return 1;
    return std::max(0.0, std::ceil(static_cast<double>(*hi - *lo) / static_cast<double>(*step)));
  }

  void block(const kernel::Block& b, double times) {
    for (const Inst& inst : b.insts) count(inst, times);
  }

  void product(const Inst& dot, double flops, Dtype operands) {
    if (flops >= largest_) {
      largest_ = flops;
      work_.operands = operands;
      work_.tf32 = dot.precision == kernel::DotPrecision::tf32;
    }
    work_.products += flops;
  }

  /// Adds the operations of an instruction that runs `times` times.
  void count(const Inst& inst, double times) {
    const double results = inst.results.empty() ? 0 : elements(inst.results[0]);
    move(inst, times);
    switch (inst.op) {
      case kernel::Op::constant:
        if (inst.type.rank() == 0 && inst.number.integral) known_[static_cast<size_t>(inst.results[0])] = inst.number.i;
        return;
      case kernel::Op::scalar: work_.operations += times * results * kernel::info(inst.scalar_op).flops; return;
      case kernel::Op::reduce:
      case kernel::Op::scan: return combine(inst, times * elements(inst.args[0]));
      case kernel::Op::sort: {
        const double log = std::log2(std::max(2.0, elements(inst.args[0])));
        work_.operations += times * elements(inst.args[0]) * log * log / 2;
        return;
      }
      case kernel::Op::dot:
      case kernel::Op::dot_async: {
        const kernel::Type& a = kernel_.types[static_cast<size_t>(inst.args[0])];
        return product(inst, times * 2 * results * static_cast<double>(a.dims.back()), a.dtype);
      }
      case kernel::Op::loop: return block(inst.blocks[0], times * iterations(inst));
      case kernel::Op::when:
      case kernel::Op::while_loop:
      case kernel::Op::branch:
      case kernel::Op::roles:
        for (const kernel::Block& inner : inst.blocks) block(inner, times);
        return;
      default: return;
    }
  }

  /// Adds the bytes that an instruction moves between the arrays and a program.
  void move(const Inst& inst, double times) {
    const bool copies = inst.op == kernel::Op::copy_async;
    const kernel::Ref ref = copies ? inst.left : inst.ref;
    const kernel::Access access = kernel::info(inst.op).access;
    if (!copies && (access == kernel::Access::none || inst.op == kernel::Op::prefetch)) return;
    if (ref < 0 || static_cast<size_t>(ref) >= kernel_.params.size()) return;
    double count = 1;
    if (copies) count = static_cast<double>(inst.type.size());
    else if (!inst.results.empty()) count = elements(inst.results[0]);
    else if (!inst.args.empty()) count = elements(inst.args[0]);
    work_.moved += times * count * static_cast<double>(kernel_.params[static_cast<size_t>(ref)].dtype.size());
  }

  /// Of a reduction or scan that combines `pairs` elements: by a reducer one operation, else those of its block.
  void combine(const Inst& inst, double pairs) {
    if (inst.blocks.empty()) work_.operations += pairs;
    for (const kernel::Block& inner : inst.blocks) block(inner, pairs);
  }

  const kernel::Kernel& kernel_;
  std::vector<std::optional<int64_t>> known_;  // integer scalars, by value
  KernelWork work_;
  double largest_ = 0;
};

}  // namespace

KernelWork work_of(const kernel::Kernel& kernel, int64_t grid) { return Count(kernel).run(grid); }

}  // namespace weft::graph
