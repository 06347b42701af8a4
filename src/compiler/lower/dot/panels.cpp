// Matmuls of a few rows with a large matrix whose columns are adjacent in memory. They are limited by reading the
// matrix. A program has a panel of columns, wide enough for full memory bandwidth, and goes through k a few rows of the
// matrix at a time; the sums lie in scratch. Each element of C is one chain of fused multiply-adds over ascending k, as
// in the other forms.
#include <algorithm>
#include <functional>

#include "compiler/lower/dot/dot.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::Value;

namespace {

constexpr int64_t most_panel_rows = 8;     // more rows are limited by arithmetic
constexpr int64_t depth_at_once = 8;       // rows of the matrix that are read together, of four rows half as many
constexpr int64_t widest_panel = 2048;     // columns: two pages of each row of the matrix
constexpr int64_t most_sums = 4096;        // of a panel: they stay in the L1 cache
constexpr int64_t least_matrix = 1 << 15;  // elements: of smaller ones the order does not matter

}  // namespace

/// Returns whether the panel form takes the matmul. With `exchanged`, A is the matrix.
bool DotLowering::panels_fit(bool exchanged) const {
  const auto dims = plan_.extents.end();
  const bool fixed = std::all_of(dims - 3, dims, [](const Dim& d) { return d.is_static(); });
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;
  return fixed && (exchanged ? d_.a_m : d_.b_n) == 1 && rows <= most_panel_rows &&
         columns >= 4 * cx_.target.machine().lanes(size_of(t_)) && d_.k >= 4 * depth_at_once &&
         columns * d_.k >= least_matrix;
}

void DotLowering::panels_form(bool exchanged) {
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n,
                width = 2 * cx_.target.machine().lanes(size_of(t_));
  int64_t panel = widest_panel;
  while (panel > 2 * width && (columns < cx_.target.machine().processors * panel || rows * panel > most_sums))
    panel /= 2;
  Value m0, n0;
  tiles(exchanged ? panel : rows, exchanged ? rows : panel, m0, n0);
  const Side &left = exchanged ? bb_ : a_, &right = exchanged ? a_ : bb_;
  const Value r0 = exchanged ? n0 : m0, c0 = exchanged ? m0 : n0, zero = b_.index(0);
  const bool even = columns % width == 0;
  const Value exist = b_.sub(b_.index(columns), c0),
              end = columns % panel == 0 ? b_.index(panel) : b_.min(exist, b_.index(panel));
  const int64_t depth = rows < 4 ? depth_at_once : depth_at_once / 2, whole = d_.k / depth * depth;
  const kernel::Ref sums = b_.local(t_, rows * panel);
  const auto each = [&](Value lo, Value hi, int64_t step, const std::function<void(Value)>& body) {
    b_.loop(lo, hi, b_.index(step), {}, [&](Value at, const std::vector<Value>&) {
      body(at);
      return std::vector<Value>{};
    });
  };
  const auto sums_at = [&](Value j) { return b_.load(sums, j, {rows, width}, {panel, 1}); };
  const auto limit = [&](Value j) { return even ? no_value : b_.sub(exist, j); };
  const auto add_rows = [&](Value k, int64_t count) {
    const Value l = load(left, r0, k, {rows, count}, {Along::row, Along::depth}, {no_value, no_value});
    each(zero, end, width, [&](Value j) {
      const Value r = load(right, b_.add(c0, j), k, {count, width}, {Along::depth, Along::row}, {no_value, limit(j)});
      b_.store(sums, b_.dot(l, r, sums_at(j)), j, {panel, 1});
    });
  };
  each(zero, end, width, [&](Value j) { b_.store(sums, nothing({rows, width}), j, {panel, 1}); });
  each(zero, b_.index(whole), depth, [&](Value k) { add_rows(k, depth); });
  each(b_.index(whole), b_.index(d_.k), 1, [&](Value k) { add_rows(k, 1); });
  const std::vector<int64_t> strides =
      exchanged ? std::vector<int64_t>{d_.c_n, d_.c_m} : std::vector<int64_t>{d_.c_m, d_.c_n};
  each(zero, end, width, [&](Value j) {
    const Value column = b_.add(c0, j);
    store(sums_at(j), exchanged ? column : r0, exchanged ? r0 : column, strides, {no_value, limit(j)}, exchanged);
  });
}

}  // namespace weft::compiler
