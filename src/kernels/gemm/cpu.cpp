// What all forms of a CPU's matrix products begin with: where the part of a program lies, and sums of operands.
#include "kernels/gemm/cpu.h"

#include <algorithm>
#include <array>

namespace weft::kernels {

using k::Index;

namespace {

struct Form {
  GemmPart (*part)(const CpuGemmShape& shape);
  void (*append)(const CpuGemm& g, const GemmOrigin& at);
};

Form form_of(const CpuGemmShape& shape) {
  switch (shape.form) {
    case CpuGemmForm::blocks: return {blocks_part, gemm_by_blocks};
    case CpuGemmForm::panels: return {panels_part, gemm_by_panels};
    case CpuGemmForm::columns: return {columns_part, gemm_by_columns};
    case CpuGemmForm::depth: break;
  }
  return {depth_part, gemm_by_depth};
}

/// Returns where the part of this program begins. The remainder along the outermost axis changes nothing but tells
/// targets the bound, from which they know which elements exist; the other axes have one.
GemmOrigin first_of_part(const CpuGemmShape& s, const GemmPart& part) {
  int64_t outside = 1;
  std::array<Index, 3> id;
  for (const int axis : {0, 1, 2}) {
    const int64_t programs = k::num_programs(axis);
    id[static_cast<size_t>(axis)] = outside == 1 ? Index(k::mod(k::program_id(axis), programs)) : k::program_id(axis);
    outside *= programs;
  }
  return {id[0], id[s.columns_first ? 2 : 1] * part.rows, id[s.columns_first ? 1 : 2] * part.columns};
}

/// Adds `count` rows of an operand up along the contracted axis, from `first` on; `end` is behind the last one.
void add_up(const CpuGemm& g, const CpuGemm::Load& load, const CpuGemm::Sums& store, const Index& first, int64_t count,
            const Index& end) {
  const int64_t lanes = std::min(g.shape.lanes, count);
  with_sums(g.shape.sums, [&]<class T>() {
    k::loop(0, count, lanes, [&](const Index& i) {
      const Index from = first + i, limit = k::minimum(end - from, count - i);
      k::Mut<T, 2> total = k::zeros<T>({1, lanes});
      k::loop(g.depth, [&](const Index& depth) { total += k::Tile<T, 2>(load({from, depth, lanes, 1, true, limit})); });
      store(from, limit, k::reshape(total, {lanes}).any());
    });
  });
}

}  // namespace

GemmPart cpu_gemm_part(const CpuGemmShape& shape) { return form_of(shape).part(shape); }

k::Grid cpu_gemm_grid(const CpuGemmShape& s) {
  const GemmPart part = cpu_gemm_part(s);
  const int64_t down = k::cdiv(s.rows.bound(), part.rows), across = k::cdiv(s.columns.bound(), part.columns);
  if (s.columns_first) return {s.batches, across, down};
  return {s.batches, down, across};
}

void cpu_gemm(const CpuGemm& g) {
  const Form form = form_of(g.shape);
  const GemmPart part = form.part(g.shape);
  const GemmOrigin at = first_of_part(g.shape, part);
  // The programs of the first column (row) of parts also add up the operand.
  if (g.left_sums) k::when(at.column == 0, [&] { add_up(g, g.left, g.left_sums, at.row, part.rows, g.rows); });
  if (g.right_sums) k::when(at.row == 0, [&] { add_up(g, g.right, g.right_sums, at.column, part.columns, g.columns); });
  form.append(g, at);
}

}  // namespace weft::kernels
