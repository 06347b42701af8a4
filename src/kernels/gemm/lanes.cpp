// Products whose operands are read in place, with the sums of a tile in registers: lanes along the columns, or along
// the contracted axis where both operands lie along it.
#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "kernels/gemm/cpu.h"

namespace weft::kernels {

using k::Index;

namespace {

/// Adds up [rows, 1] · [1, columns] for each step of the contracted axis.
template <class T>
void by_columns(const CpuGemm& g, const GemmOrigin& at) {
  const int64_t rows = columns_part(g.shape).rows, columns = columns_part(g.shape).columns;
  const ResultTile tile{at.row, at.column, limit_of(g.shape.rows, rows, g.rows, at.row),
                        limit_of(g.shape.columns, columns, g.columns, at.column)};
  k::Mut<T, 2> sums = k::zeros<T>({rows, columns});
  k::loop(g.depth, [&](const Index& depth) {
    const k::Tile<T, 2> left(g.left({at.row, depth, rows, 1, false, tile.row_limit})),
        right(g.right({at.column, depth, columns, 1, true, tile.column_limit}));
    sums = k::dot(left, right, sums.get());
  });
  g.finish(tile, sums.get().any());
}

template <class T>
k::Tile<T, 2> multiply_add(const k::Tile<T, 2>& a, const k::Tile<T, 2>& b, const k::Tile<T, 2>& c) {
  if constexpr (std::is_integral_v<T>) return a * b + c;
  else return k::fma(a, b, c);
}

/// Returns for each column of a program the sums [rows, lanes]: of the steps of each lane.
template <class T>
std::vector<k::Tile<T, 2>> sums_of_lanes(const CpuGemm& g, const GemmOrigin& at, const GemmLimit& row_limit) {
  const GemmPart part = depth_part(g.shape);
  const int64_t lanes = g.shape.lanes, rows = part.rows;
  std::vector<k::Mut<T, 2>> sums;
  sums.reserve(static_cast<size_t>(part.columns));
  for (int64_t j = 0; j < part.columns; ++j) sums.emplace_back(k::zeros<T>({rows, lanes}));
  const auto add = [&](const Index& depth, const GemmLimit& limit) {
    const k::Tile<T, 2> a(g.left({at.row, depth, rows, lanes, false, row_limit, limit}));
    for (int64_t j = 0; j < part.columns; ++j) {
      // Past the end the last column is repeated, which is not stored.
      const Index column = k::minimum(at.column + j, g.columns - 1);
      if (g.ahead && !limit) g.ahead({column + part.columns, depth, 1, lanes});
      const k::Tile<T, 2> b(g.right({column, depth, 1, lanes, false, {}, limit}));
      k::Mut<T, 2>& sum = sums[static_cast<size_t>(j)];
      sum = multiply_add<T>(a, k::broadcast_to(b, {rows, lanes}), sum.get());
    }
  };
  const Index whole = k::floordiv(g.depth, lanes) * lanes;
  k::loop(0, whole, lanes, [&](const Index& depth) { add(depth, {}); });
  if (const GemmLimit rest = limit_of(g.shape.depth, lanes, g.depth, whole)) add(whole, rest);
  std::vector<k::Tile<T, 2>> out;
  for (const k::Mut<T, 2>& sum : sums) out.push_back(sum.get());
  return out;
}

template <class T>
void by_depth(const CpuGemm& g, const GemmOrigin& at) {
  const GemmPart part = depth_part(g.shape);
  const GemmLimit row_limit = limit_of(g.shape.rows, part.rows, g.rows, at.row),
                  column_limit = limit_of(g.shape.columns, part.columns, g.columns, at.column);
  const std::vector<k::Tile<T, 2>> sums = sums_of_lanes<T>(g, at, row_limit);
  for (size_t j = 0; j < sums.size(); ++j) {
    const auto column = static_cast<int64_t>(j);
    const k::Tile<T, 2> results = k::col(k::sum(sums[j], 1));
    const auto finish = [&] { g.finish({at.row, at.column + column, row_limit, {}}, results.any()); };
    if (column_limit) k::when(*column_limit > column, finish);
    else finish();
  }
}

}  // namespace

GemmPart columns_part(const CpuGemmShape& s) {
  const auto columns = static_cast<uint64_t>(std::min(2 * s.lanes, s.columns.bound()));
  return {std::min<int64_t>(8, s.rows.bound()), static_cast<int64_t>(std::bit_ceil(columns))};
}

void gemm_by_columns(const CpuGemm& g, const GemmOrigin& at) {
  with_sums(g.shape.sums, [&]<class T>() { by_columns<T>(g, at); });
}

GemmPart depth_part(const CpuGemmShape& s) {
  const auto part = [](const Dim& extent) {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(4, extent.bound()))));
  };
  return {part(s.rows), part(s.columns)};
}

void gemm_by_depth(const CpuGemm& g, const GemmOrigin& at) {
  with_sums(g.shape.sums, [&]<class T>() { by_depth<T>(g, at); });
}

}  // namespace weft::kernels
