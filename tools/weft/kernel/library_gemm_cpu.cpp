// Matrix products on a CPU (kernels/gemm/cpu.h), of float32: a form each, on extents for which the compiler takes it.
#include <array>
#include <utility>

#include "kernel/language/trace.h"
#include "kernels/gemm/cpu.h"
#include "tools/weft/kernel/library.h"

namespace weft::tool {

namespace {

using kernels::CpuGemmForm;
using kernels::CpuGemmShape;

/// Returns a function that loads tiles of an operand, whose view has the contracted axis last.
kernels::CpuGemm::Load tiles_of(const k::AnyRef& x) {
  return [x](const kernels::OperandTile& t) {
    std::array<k::Span, 2> spans{k::ds(t.first, t.count).span, k::ds(t.depth, t.steps).span};
    if (!t.steps_first) return k::load(x, spans);
    std::swap(spans[0], spans[1]);
    return k::load(x.permute({1, 0}), spans);
  };
}

/// Returns c = a b as a kernel of a [rows, depth], b [depth, columns] (or, where it lies along the contracted axis,
/// [columns, depth]) and c [rows, columns].
k::Program traced_product(const std::string& name, const CpuGemmShape& s) {
  const int64_t rows = s.rows.bound(), columns = s.columns.bound(), depth = s.depth.bound();
  const bool along = s.right_along_depth;
  const std::vector<k::Param> params{
      {k::Use::in, s.sums, {rows, depth}},
      {k::Use::in, s.sums, along ? std::vector{columns, depth} : std::vector{depth, columns}},
      {k::Use::out, s.sums, {rows, columns}}};
  return k::trace(name, params, kernels::cpu_gemm_grid(s), [&](std::span<const k::AnyRef> refs) {
    const k::AnyRef right = along ? refs[1] : refs[1].permute({1, 0});
    kernels::CpuGemm g{.shape = s, .rows = rows, .columns = columns, .depth = depth};
    g.left = tiles_of(refs[0]), g.right = tiles_of(right);
    g.finish = [&](const kernels::ResultTile& t, const k::Any& sums) {
      const std::vector<int64_t> dims = sums.dims();
      k::store(refs[2], std::array{k::ds(t.row, dims[0]).span, k::ds(t.column, dims[1]).span}, sums);
    };
    if (s.form == CpuGemmForm::depth)
      g.ahead = [&](const kernels::OperandTile& t) {
        k::prefetch(right, std::array{k::ds(t.first, 1).span, k::ds(t.depth, t.steps).span});
      };
    kernels::cpu_gemm(g);
  });
}

struct CpuProduct {
  std::string name, summary;
  CpuGemmForm form;
  std::array<int64_t, 3> usual, few;  // rows, columns, depth
};

LibraryKernel cpu_product(const CpuProduct& p) {
  return {p.name, p.summary, LibraryKernel::MadeFor::cpus, [p](const target::Machine& machine, bool small) {
            const auto& [rows, columns, depth] = small ? p.few : p.usual;
            CpuGemmShape s{p.form, 1, rows, columns, depth};
            s.lanes = machine.lanes(s.sums.size()), s.registers = machine.vector_registers;
            s.processors = machine.processors;
            s.left_along_depth = true, s.right_along_depth = p.form == CpuGemmForm::depth;
            const k::Program made = traced_product(p.name, s);
            std::vector<graph::Type> types;
            for (const k::Param& x : made.params()) types.push_back({Shape(x.dims.begin(), x.dims.end()), x.dtype});
            return on_arrays(made.data().kernel, made.programs(), types,
                             2.0 * static_cast<double>(rows * columns) * static_cast<double>(depth));
          }};
}

}  // namespace

std::vector<LibraryKernel> cpu_product_kernels() {
  const CpuProduct all[] = {
      {"gemm_cpu_blocks",
       "float32 matrix product on a CPU: operands in panels, sums in registers",
       CpuGemmForm::blocks,
       {1024, 1024, 1024},
       {50, 70, 300}},
      {"gemm_cpu_panels",
       "a few rows with a large matrix whose columns are adjacent",
       CpuGemmForm::panels,
       {4, 4096, 4096},
       {4, 200, 70}},
      {"gemm_cpu_columns", "lanes along the columns", CpuGemmForm::columns, {10, 4096, 1024}, {10, 70, 50}},
      {"gemm_cpu_depth",
       "a row with a matrix whose rows are adjacent: lanes along the contracted axis",
       CpuGemmForm::depth,
       {1, 4096, 4096},
       {1, 70, 300}}};
  std::vector<LibraryKernel> out;
  for (const CpuProduct& p : all) out.push_back(cpu_product(p));
  return out;
}

}  // namespace weft::tool
