// Attention by the kernels of src/kernels, on the arrays of a plan as they lie.
#include <algorithm>
#include <utility>

#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/product.h"
#include "kernel/language/trace.h"
#include "kernels/attention/attention.h"

namespace weft::compiler {

namespace {

class TiledAttention {
 public:
  TiledAttention(const LowerContext& cx, const AttentionPlan& plan, const Numerics& numerics)
      : cx_(cx), plan_(plan), a_(attention_shape(plan, numerics)) {
    a_.widened = !cx.target.machine().simt;
    a_.batch = plan.batch;
    a_.scale = plan.region.scale;
    if (plan.region.causal) a_.after = plan.region.offset;
    a_.q = array(plan.q), a_.k = array(plan.k), a_.v = array(plan.v), a_.mask = array(plan.mask);
    a_.dropout = plan.region.dropout, a_.key = array(plan.key), a_.keyed = plan.keyed;
    a_.o = array(plan.o), a_.lse = array(plan.lse), a_.g = array(plan.g);
    a_.dq = array(plan.dq), a_.dk = array(plan.dk), a_.dv = array(plan.dv);
  }

  LoweredRoutine run(const std::optional<Schedule>& schedule) {
    const kernels::AttentionLimits limits = kernels::attention_limits(cx_.target.machine());
    std::vector<Lowered> kernels;
    if (!plan_.region.derivative) {
      const kernels::AttentionBlocks blocks =
          schedule
              ? kernels::scheduled(a_, {schedule->rows.count(Level::lanes), schedule->loop.count(Level::lanes)}, limits)
              : kernels::forward_blocks(a_, limits);
      kernels.push_back(lowered(kernels::attention_forward(a_, blocks)));
      kernel::LaunchOptions& launch = kernels.back().kernel.launch;
      const int persistent = launch.persistent;
      if (schedule) launch = launch_of(schedule->staging);
      if (launch.persistent == 0) launch.persistent = persistent;
      return routine_of(std::move(kernels), 0);
    }
    const int64_t bytes = add_delta();
    for (kernels::AttentionKernel& kernel : kernels::attention_backward(a_, limits))
      kernels.push_back(lowered(std::move(kernel)));
    return routine_of(std::move(kernels), bytes);
  }

 private:
  kernels::AttentionArray array(const AttentionOperand& x) {
    if (x.node < 0) return {};
    return {buffer(cx_.buffer_owner[x.node]), x.dtype, x.offset, x.batch, x.row, x.column};
  }

  /// Returns the number of a node's buffer; -1 is the routine's own.
  int buffer(NodeId node) {
    const auto found = std::find(buffers_.begin(), buffers_.end(), node);
    if (found != buffers_.end()) return static_cast<int>(found - buffers_.begin());
    buffers_.push_back(node);
    return static_cast<int>(buffers_.size()) - 1;
  }

  /// Places the sums of rows in memory of the routine's own. Returns their bytes.
  int64_t add_delta() {
    a_.delta = {buffer(-1), float32, 0, std::vector<int64_t>(a_.batch.size()), 1, 0};
    int64_t entries = a_.queries.bound();
    for (size_t axis = a_.batch.size(); axis-- > 0;)
      a_.delta.batch[axis] = std::exchange(entries, entries * a_.batch[axis]);
    return entries * float32.size();
  }

  Lowered lowered(kernels::AttentionKernel kernel) const {
    Lowered out;
    out.kernel = kernel.program.data().kernel;
    out.grid = kernel.program.programs();
    out.count = kernel.program.data().count;
    for (const Symbol* s : kernel.program.symbols()) out.symbols.push_back({0, s});
    for (const int number : kernel.buffers) out.params.push_back(buffers_[static_cast<size_t>(number)]);
    return out;
  }

  const LowerContext& cx_;
  const AttentionPlan& plan_;
  kernels::Attention a_;
  std::vector<NodeId> buffers_;
};

}  // namespace

LoweredRoutine lower_tiled_attention(const LowerContext& cx, const Group& group, const Numerics& numerics,
                                     const std::optional<Schedule>& schedule) {
  return TiledAttention(cx, group.attention, numerics).run(schedule);
}

}  // namespace weft::compiler
