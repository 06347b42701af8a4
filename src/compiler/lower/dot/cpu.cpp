// Products on a CPU: which form of kernels/gemm/cpu.h computes one, and what it calls.
#include <algorithm>

#include "compiler/lower/dot/dot.h"
#include "compiler/region/matmul_work.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;
using kernels::CpuGemmForm;

/// Returns whether the product is large enough for packing its operands to pay.
bool DotLowering::takes_blocks(bool exchanged) const {
  constexpr double least_work = 96.0 * 96 * 96;
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;
  const double work = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(d_.k);
  return work >= least_work && rows >= 12 && columns >= 2 * cx_.target.machine().lanes(size_of(t_)) && d_.k >= 32;
}

/// Returns whether a few rows are multiplied with a large matrix of fixed extents, whose columns are adjacent.
bool DotLowering::takes_panels(bool exchanged) const {
  constexpr int64_t most_rows = 8;  // more rows are limited by arithmetic
  constexpr int64_t least_depth = 32;
  constexpr int64_t least_matrix = 1 << 15;  // elements: of smaller ones the order does not matter
  const auto dims = plan_.extents.end();
  const bool fixed = std::all_of(dims - 3, dims, [](const Dim& d) { return d.is_static(); });
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;
  return fixed && (exchanged ? d_.a_m : d_.b_n) == 1 && rows <= most_rows &&
         columns >= 4 * cx_.target.machine().lanes(size_of(t_)) && d_.k >= least_depth &&
         columns * d_.k >= least_matrix;
}

DotLowering::CpuChoice DotLowering::choose_for_cpu() const {
  if (const bool exchanged = stores_transposed(plan_); takes_blocks(exchanged)) return {CpuGemmForm::blocks, exchanged};
  for (const bool exchanged : {false, true})
    if (takes_panels(exchanged)) return {CpuGemmForm::panels, exchanged};
  const bool b_across = d_.b_n == 1 && (d_.n > 1 || d_.b_k != 1);
  if (!b_across && d_.a_k == 1 && d_.b_k == 1) return {CpuGemmForm::depth, false};
  return {CpuGemmForm::columns, !b_across && d_.a_m == 1 && d_.m > 1};
}

kernels::CpuGemmShape DotLowering::cpu_shape(const CpuChoice& choice) const {
  const target::Machine& machine = cx_.target.machine();
  const auto dims = plan_.extents.end();
  const auto along_depth = [](const Side& side) { return side.depth == 1 && side.row != 1; };
  const auto& [form, exchanged] = choice;
  kernels::CpuGemmShape out{form, batches(), dims[exchanged ? -2 : -3], dims[exchanged ? -3 : -2], dims[-1], t_};
  out.lanes = machine.lanes(size_of(t_)), out.registers = machine.vector_registers, out.processors = machine.processors;
  out.columns_first = exchanged;
  out.left_along_depth = along_depth(exchanged ? bb_ : a_), out.right_along_depth = along_depth(exchanged ? a_ : bb_);
  return out;
}

/// Returns whether the next program's part of B is prefetched: with few rows, loading B is the limit.
bool DotLowering::reads_ahead(const kernels::CpuGemmShape& shape) const {
  constexpr int64_t most_bytes = 64 << 10;  // from one part to the next
  return cx_.target.machine().prefetches() && d_.m <= 8 &&
         bb_.row * kernels::cpu_gemm_part(shape).columns * d_.b.size() <= most_bytes;
}

void DotLowering::cpu_form() {
  const CpuChoice choice = choose_for_cpu();
  const bool exchanged = choice.exchanged;
  kernels::CpuGemm g{.shape = cpu_shape(choice)};
  const k::Grid grid = kernels::cpu_gemm_grid(g.shape);
  for (const k::GridAxis& axis : grid) grid_ *= axis.extent;
  k::Trace trace("dot", b_, grid);
  const k::TraceScope scope(trace);
  begin_batch(trace.ids[0]);

  const auto length = [&](Value v, const Dim& bound) {
    trace.learn(v, {1, bound.bound(), 1});
    return k::Index(trace.any(v));
  };
  g.rows = length(exchanged ? n_ : m_, g.shape.rows), g.columns = length(exchanged ? m_ : n_, g.shape.columns);
  g.depth = length(k_, g.shape.depth);
  const auto value = [&](const k::Index& i) { return trace.value(i.any(), {}); };
  const auto limit = [&](const kernels::GemmLimit& l) { return l ? value(*l) : no_value; };
  const auto operand = [&](const Side& side) {
    return [&, of = &side](const kernels::OperandTile& t) {
      const Piece piece{value(t.first),
                        value(t.depth),
                        {t.count, t.steps},
                        {Along::row, Along::depth},
                        {limit(t.count_limit), limit(t.steps_limit)}};
      return trace.any(load(*of, t.steps_first ? piece.turned() : piece));
    };
  };
  g.left = operand(exchanged ? bb_ : a_), g.right = operand(exchanged ? a_ : bb_);
  g.finish = [&](const kernels::ResultTile& t, const k::Any& sums) {
    store(trace.value(sums, {}), value(t.row), value(t.column), {limit(t.row_limit), limit(t.column_limit)}, exchanged);
  };
  if (choice.form == CpuGemmForm::depth && reads_ahead(g.shape))
    g.ahead = [&](const kernels::OperandTile& t) {
      const Value row = b_.add(bb_.base, b_.mul(value(t.first), b_.index(bb_.row)));
      b_.prefetch(bb_.ref, b_.add(row, value(t.depth)), t.steps);
    };
  const kernels::CpuGemm::Sums store_sums = [&](const k::Index& first, const k::Index& exist, const k::Any& sums) {
    b_.store(emit_.param(plan_.sum, true), b_.cast(trace.value(sums, {}), d_.c), value(first), {1}, {value(exist)});
  };
  if (d_.sum == kernel::OperandSum::a) (exchanged ? g.right_sums : g.left_sums) = store_sums;
  if (d_.sum == kernel::OperandSum::b) (exchanged ? g.left_sums : g.right_sums) = store_sums;
  kernels::cpu_gemm(g);
}

}  // namespace weft::compiler
