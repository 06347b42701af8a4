// Products of a few rows with a large matrix whose columns are adjacent in memory. They are limited by reading the
// matrix. A program has a panel of columns, wide enough for full memory bandwidth, and goes through the contracted axis
// a few rows of the matrix at a time; the sums lie in scratch.
#include <algorithm>

#include "kernels/gemm/cpu.h"

namespace weft::kernels {

using k::Index;

namespace {

constexpr int64_t widest_panel = 2048;  // columns: two pages of each row of the matrix
constexpr int64_t most_sums = 4096;     // of a panel: they stay in the L1 cache

/// Returns how many rows of the matrix are read together.
int64_t rows_at_once(int64_t rows) { return rows < 4 ? 8 : 4; }

template <class T>
void by_panels(const CpuGemm& g, const GemmOrigin& at) {
  const int64_t rows = panels_part(g.shape).rows, panel = panels_part(g.shape).columns, width = 2 * g.shape.lanes;
  const GemmLimit exist = limit_of(g.shape.columns, panel, g.columns, at.column);
  const Index end = exist ? Index(k::minimum(*exist, panel)) : Index(panel);
  const GemmLimit row_limit = limit_of(g.shape.rows, rows, g.rows, at.row);
  const auto limit = [&](const Index& j) { return limit_of(g.shape.columns, width, end, j); };
  const auto sums = k::scratch<T>({rows, panel});
  const auto each_part = [&](const auto& f) {
    k::loop(0, end, width, [&](const Index& j) { f(j, sums(k::all, k::ds(j, width))); });
  };
  const auto add = [&](const Index& begin, const Index& behind, int64_t steps) {
    k::loop(begin, behind, steps, [&](const Index& depth) {
      const k::Tile<T, 2> left(g.left({at.row, depth, rows, steps, false, row_limit}));
      each_part([&](const Index& j, const auto& sum) {
        const k::Tile<T, 2> right(g.right({at.column + j, depth, width, steps, true, limit(j)}));
        sum = k::dot(left, right, sum.load());
      });
    });
  };
  each_part([&](const Index&, const auto& sum) { sum = k::zeros<T>({rows, width}); });
  const int64_t together = rows_at_once(rows);
  const Index whole = k::floordiv(g.depth, together) * together;
  add(0, whole, together);
  add(whole, g.depth, 1);
  each_part([&](const Index& j, const auto& sum) {
    g.finish({at.row, at.column + j, row_limit, limit(j)}, sum.load().any());
  });
}

}  // namespace

GemmPart panels_part(const CpuGemmShape& s) {
  const int64_t rows = s.rows.bound();
  int64_t panel = widest_panel;
  while (panel > 4 * s.lanes && (s.columns.bound() < s.processors * panel || rows * panel > most_sums)) panel /= 2;
  return {rows, panel};
}

void gemm_by_panels(const CpuGemm& g, const GemmOrigin& at) {
  with_sums(g.shape.sums, [&]<class T>() { by_panels<T>(g, at); });
}

}  // namespace weft::kernels
