// The program of a whole batch: programs of one more grid axis in front, whose accesses to batched arrays begin at
// their element of the batch.
//
//   %0 = program_id                      %0 = program_id
//   %1 = load p0[%0] …                   %1 = floordiv %0 grid          ; the element of the batch
//                                        %2 = mod %0 grid               ; the program of that element
//                                        %3 = mul %1 size of p0
//                                        %4 = add %2 %3
//                                        %5 = load p0[%4] …
#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "graph/calls/kernel_call.h"
#include "graph/calls/kernel_tuning.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

using kernel::Block;
using kernel::Inst;
using kernel::Ref;
using kernel::ScalarOp;

class Batching {
 public:
  Batching(const KernelProgram& program, const std::vector<bool>& batched) : out_(program.kernel) {
    out_.body.insts.clear();
    begin(program, batched);
    for (const Inst& inst : program.kernel.body.insts) append(out_.body.insts, inst);
  }
  kernel::Kernel take() { return std::move(out_); }

 private:
  /// Appends what all accesses share, in front of everything else.
  void begin(const KernelProgram& program, const std::vector<bool>& batched) {
    std::vector<Inst>& to = out_.body.insts;
    const kernel::Value flat = define(to, {.op = kernel::Op::program_id, .type = {int64, {}}});
    const kernel::Value grid = programs(to, program);
    const bool single = program.grid == 1;
    const kernel::Value element = single ? flat : scalar(to, ScalarOp::floordiv, flat, grid);
    program_ = single ? index(to, 0) : scalar(to, ScalarOp::mod, flat, grid);
    for (size_t k = 0; k < batched.size(); ++k)
      if (batched[k])
        begins_[static_cast<Ref>(k)] =
            scalar(to, ScalarOp::mul, element, index(to, num_elements(program.arrays[k].type.shape)));
  }

  /// Appends the number of programs of one element.
  kernel::Value programs(std::vector<Inst>& to, const KernelProgram& program) {
    if (!program.count) return index(to, program.grid);
    return program.count.computed([&](int64_t n) { return index(to, n); },
                                  [&](int32_t k) {
                                    return define(to, {.op = kernel::Op::symbol, .type = {int64, {}}, .ref = k});
                                  },
                                  [&](ScalarOp op, kernel::Value a, kernel::Value b) { return scalar(to, op, a, b); });
  }

  kernel::Value define(std::vector<Inst>& to, Inst inst) {
    out_.types.push_back(inst.type);
    inst.results = {static_cast<kernel::Value>(out_.types.size() - 1)};
    to.push_back(std::move(inst));
    return to.back().results[0];
  }
  kernel::Value index(std::vector<Inst>& to, int64_t v) {
    return define(to, {.op = kernel::Op::constant, .type = {int64, {}}, .number = Number::of_int(v)});
  }
  kernel::Value scalar(std::vector<Inst>& to, ScalarOp op, kernel::Value a, kernel::Value b) {
    return define(to, {.op = kernel::Op::scalar, .type = {int64, {}}, .args = {a, b}, .scalar_op = op});
  }

  /// Returns an offset, or a tile of indices, moved to the element of the batch.
  kernel::Value moved(std::vector<Inst>& to, kernel::Value at, Ref ref) {
    const auto begin = begins_.find(ref);
    if (begin == begins_.end()) return at;
    const kernel::Type type = out_.types[static_cast<size_t>(at)];
    check(type.dtype == int64, "kernel", "an index is no int64");
    kernel::Value by = begin->second;
    if (type.rank() > 0) by = define(to, {.op = kernel::Op::broadcast, .type = type, .args = {by}});
    return define(to, {.op = kernel::Op::scalar, .type = type, .args = {at, by}, .scalar_op = ScalarOp::add});
  }

  kernel::Value renamed(kernel::Value v) const {
    const auto at = programs_.find(v);
    return at == programs_.end() ? v : at->second;
  }

  /// Appends an instruction with its addresses moved.
  void append(std::vector<Inst>& to, Inst inst) {
    for (kernel::Value& v : inst.args) v = renamed(v);
    const auto move = [&](size_t arg, Ref ref) { inst.args[arg] = moved(to, inst.args[arg], ref); };
    switch (inst.op) {
      case kernel::Op::program_id: programs_[inst.results[0]] = program_; return;
      case kernel::Op::load:
      case kernel::Op::gather:
      case kernel::Op::wait_until:
      case kernel::Op::prefetch: move(0, inst.ref); break;
      case kernel::Op::store:
      case kernel::Op::scatter:
      case kernel::Op::atomic_add:
      case kernel::Op::atomic:
      case kernel::Op::exchange_memory: move(1, inst.ref); break;
      case kernel::Op::compare_exchange: move(2, inst.ref); break;
      case kernel::Op::copy_async: move(1, inst.left); break;
      case kernel::Op::source:
        throw_invalid("kernel " + out_.name,
                      "is CUDA source, which knows nothing of a batch: map the function "
                      "of arrays that calls it by a loop, or give its source the axis");
      default: break;
    }
    for (Block& block : inst.blocks) {
      std::vector<Inst> insts = std::exchange(block.insts, {});
      for (Inst& inner : insts) append(block.insts, std::move(inner));
    }
    to.push_back(std::move(inst));
  }

  kernel::Kernel out_;
  kernel::Value program_ = kernel::no_value;
  std::map<Ref, kernel::Value> begins_;              // by batched parameter: where its element begins
  std::map<kernel::Value, kernel::Value> programs_;  // results of program_id, which are gone
};

}  // namespace

namespace {

/// Returns the configurations of a whole batch.
std::shared_ptr<const KernelTuning> batched_tuning(const KernelTuning& tuning, int64_t extent,
                                                   const std::vector<bool>& batched) {
  KernelTuning out = tuning;
  for (KernelCandidate& c : out.candidates)
    if (c.program) c.program = batched_program(*c.program, extent, batched);
  out.shape_key.push_back(bucket_of(extent));
  return kernel_tuning(std::move(out));
}

}  // namespace

std::shared_ptr<const KernelProgram> batched_program(const KernelProgram& program, int64_t extent,
                                                     const std::vector<bool>& batched) {
  KernelProgram out{Batching(program, batched).take(), program.arrays, extent * program.grid, {}, program.symbols};
  if (program.count) out.count = kernel::Length::apply(ScalarOp::mul, kernel::Length::number(extent), program.count);
  if (program.tuning) out.tuning = batched_tuning(*program.tuning, extent, batched);
  kernel::verify(out.kernel);
  out.factors = program.factors;
  int batch = 0;  // its factor
  for (const std::vector<int>& axes : out.factors)
    for (const int factor : axes) batch = std::max(batch, factor + 1);
  for (size_t k = 0; k < batched.size(); ++k) {
    if (!batched[k]) continue;
    out.arrays[k].type.shape = prepend(extent, program.arrays[k].type.shape);
    if (!out.factors.empty()) out.factors[k].insert(out.factors[k].begin(), batch);
  }
  return kernel_program(std::move(out));
}

}  // namespace weft::graph
