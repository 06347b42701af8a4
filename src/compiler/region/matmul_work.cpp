#include "compiler/region/matmul_work.h"

#include <algorithm>
#include <utility>

#include "compiler/region/dot_prologue.h"

namespace weft::compiler {

namespace {

constexpr int64_t fragment = 8;  // columns

/// Adds the registers of a thread that makes a warpgroup's operand in fragments: for each row of a slice the words of
/// its columns, of which four threads have each; and the columns of what all rows share, which stay.
void count_registers_of_rows(const kernel::Epilogue& prologue, kernels::GemmWork& out) {
  constexpr int64_t depth = 64;
  constexpr double of_address = 3;
  double of_row = 0;
  for (const kernel::EpilogueOperand& x : prologue.operands) {
    const int64_t period = x.n_jump.period > 0 ? x.n_jump.period : depth;
    if (!x.has_m()) out.kept += 2.0 * static_cast<double>(std::max<int64_t>(1, period / fragment));
    else
      out.kept += of_address, of_row += static_cast<double>(std::max<int64_t>(1, depth / std::max(period, fragment)));
  }
  constexpr double threads_of_word = 4, bytes = 4;
  out.loaded.a = threads_of_word * bytes * of_row / static_cast<double>(depth);
}

}  // namespace

kernels::GemmWork matmul_work(const DotPlan& plan, const target::Machine& machine, bool transposed) {
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
  out.a_shared = shares_arrays(plan.a_prologue.steps), out.b_shared = shares_arrays(plan.b_prologue.steps);
  if (transposed) {
    std::swap(out.loaded.a, out.loaded.b), std::swap(out.operations.a, out.operations.b);
    std::swap(out.a_shared, out.b_shared);
  }
  if (machine.whole_rows_of_products() && d.a.size() == 2 && out.a_shared)
    count_registers_of_rows((transposed ? plan.b_prologue : plan.a_prologue).steps, out);
  for (const int step : e.stored) out.bytes += bytes(e.steps[static_cast<size_t>(step)].dtype);
  for (const kernel::EpilogueOperand& x : e.operands)
    if (x.has_m() && x.has_n()) out.bytes += bytes(x.dtype);
  for (const kernel::EpilogueStep& s : e.steps)
    if (s.kind == kernel::EpilogueStep::Kind::scalar) out.epilogue_operations += kernel::info(s.op).flops;
  return out;
}

bool stores_transposed(const DotPlan& plan) { return plan.desc.c_n != 1 && plan.desc.c_m == 1; }

bool computes_transposed(const DotPlan& plan, const target::Machine& machine) {
  const bool stores = stores_transposed(plan);
  return stores != kernels::exchanges_operands(machine, matmul_work(plan, machine, stores));
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
