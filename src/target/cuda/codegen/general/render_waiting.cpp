// Renders what programs wait for: their numbers, which they draw, an element that another program changes, and each
// other. One thread of a program waits; the others wait for it.
#include <fmt/format.h>

#include "kernel/rules.h"
#include "target/cuda/codegen/renderer.h"
#include "target/cuda/codegen/text/source.h"

namespace weft::target::cuda {

using kernel::Block;
using kernel::Op;

bool Renderer::meets() const { return kernel::programs_meet(kernel_); }

/// Returns the definitions of counters, by the number of the launch among those that may overlap.
std::string Renderer::counters() const {
  std::string text = cuda_source("target/cuda/codegen/text/programs.cuh");
  if (kernel_.ordered) text += fmt::format("static __device__ u32 {}_numbers[{}];\n", symbol_, most_overlapping);
  if (meets()) text += fmt::format("static __device__ u32 {}_meetings[{}][2];\n", symbol_, most_overlapping);
  return text;
}

void Renderer::wait_until(const Inst& inst) {
  const Block& holds = inst.blocks[0];
  const Value element = holds.arguments[0], result = inst.results[0];
  const std::string type = type_name(inst.type.dtype);
  before_read(inst.ref);
  const std::string space = exchange(inst.type.dtype, 1);
  sync();
  name(element, fresh(element));
  open("if (t == 0) for (;;)");
  add(fmt::format("const {} {} = watched({} + {});", type, fresh(element), buffer(inst.ref), at(inst.args[0])));
  add("bool found = false;");
  on_lane(holds, {"found"});
  add(fmt::format("if (found) {{ {}[0] = {}; break; }}", space, fresh(element)));
  add("__nanosleep(20);");
  close();
  if (inst.ordering.acquires()) add(fence_of(inst.ordering.scope));
  sync();
  name(result, fresh(result));
  add(fmt::format("const {} {} = {}[0];", type, fresh(result), space));
}

void Renderer::grid_barrier() {
  sync();
  add("if (t == 0) meet_blocks(meeting, programs);");
  sync();
  dirty_.clear(), read_.clear();
}

void Renderer::cluster_barrier() {
  finish_copies();
  add("cluster_arrive(), cluster_wait();");
  dirty_.clear(), read_.clear();
}

/// Renders a load or store in the shared memory of another block of the cluster, as one in the block's own.
void Renderer::reach(const Inst& inst) {
  const size_t first = inst.op == Op::store_neighbour ? 1 : 0;
  Inst access = inst;
  access.op = first == 1 ? Op::store : Op::load;
  access.args.erase(access.args.begin() + static_cast<std::ptrdiff_t>(first));
  access.args.resize(access.args.size() + inst.strides.size(), kernel::no_value);
  neighbour_ = fmt::format("near{}", body_.size());
  add(fmt::format("u8* const {} = in_block(locals, (int)({}));", neighbour_, at(inst.args[first])));
  if (first == 1) store(access);
  else access.number = kernel::round_to({}, inst.type.dtype), load(access);
  neighbour_.clear();
}

}  // namespace weft::target::cuda
