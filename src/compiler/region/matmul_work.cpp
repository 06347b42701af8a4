#include "compiler/region/matmul_work.h"

#include <algorithm>
#include <utility>

#include "compiler/region/dot_prologue.h"

namespace weft::compiler {

kernels::GemmWork matmul_work(const DotPlan& plan, bool transposed) {
  const auto bytes = [](Dtype t) { return static_cast<double>(t.size()); };
  const kernel::Epilogue& e = plan.epilogue;
  const kernel::DotDesc& d = plan.desc;
  kernels::GemmWork out{d.a, 1, transposed ? d.n : d.m, transposed ? d.m : d.n, d.k};
  for (const int64_t n : d.batch) out.batches *= n;
  out.exact = d.a == float32 && !d.numerics.tf32;
  out.along_depth = !out.exact && d.a_k == 1 && d.b_k == 1 && plan.a_prologue.empty() && plan.b_prologue.empty();
  out.b_across = d.a.size() > 1 && (transposed ? d.a_k != 1 : d.b_k != 1);
  out.bytes = bytes(d.c);
  // Tensor cores read 8 bits along the contracted axis alone: what lies across it passes registers, one for each byte.
  constexpr double register_bytes = 4;
  const auto loaded = [&](const DotPrologue& p, int64_t along_depth) -> double {
    if (p.empty()) return d.a.size() == 1 && along_depth != 1 ? register_bytes : 0;
    return loaded_bytes(p.steps, 16 / d.a.size());
  };
  out.loaded = {loaded(plan.a_prologue, d.a_k), loaded(plan.b_prologue, d.b_k)};
  out.operations = {prologue_operations(plan.a_prologue.steps), prologue_operations(plan.b_prologue.steps)};
  if (transposed) std::swap(out.loaded.a, out.loaded.b), std::swap(out.operations.a, out.operations.b);
  for (const int step : e.stored) out.bytes += bytes(e.steps[static_cast<size_t>(step)].dtype);
  for (const kernel::EpilogueOperand& x : e.operands)
    if (x.has_m() && x.has_n()) out.bytes += bytes(x.dtype);
  for (const kernel::EpilogueStep& s : e.steps)
    if (s.kind == kernel::EpilogueStep::Kind::scalar) out.epilogue_operations += kernel::info(s.op).flops;
  return out;
}

bool takes_matmul_tiles(const DotPlan& plan, const target::Machine& machine) {
  constexpr int64_t least_exact = 32;  // rows and columns: smaller results leave most of a tile empty
  const kernel::DotDesc& d = plan.desc;
  const bool exact = d.a == float32 && !d.numerics.tf32;
  const Dtype sums = plan.epilogue.steps[0].dtype;
  return d.a == d.b && sums != float64 && machine.tensor_core_bytes(d.a) > 0 &&
         (!exact || std::min(d.m, d.n) >= least_exact) && d.m > 1 && d.n > 1 && d.k < (int64_t{1} << 30);
}

}  // namespace weft::compiler
