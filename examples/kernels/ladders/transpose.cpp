// The transpose of a matrix: 8 bytes an element, and no arithmetic; all that counts is in which order memory is
// touched.
#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Matrix = k::In<float, 2>;
using Turned = k::Out<float, 2>;

/// A program reads a row and writes a column: neighbours in what is written lie a row apart.
void rows_to_columns(Matrix x, Turned y) {
  const auto i = k::program_id(0);
  y(k::all, i) = x(i, k::all);
}

/// A program reads a column and writes a row.
void columns_to_rows(Matrix x, Turned y) {
  const auto j = k::program_id(0);
  y(j, k::all) = x(k::all, j);
}

/// A tile a program, which is turned on its way from registers to memory.
template <int64_t side>
void tiles(Matrix x, Turned y) {
  const auto rows = k::ds(k::program_id(0) * side, side), columns = k::ds(k::program_id(1) * side, side);
  y(columns, rows) = k::trans(x(rows, columns));
}

/// A tile a program by way of near memory: rows are read and rows are written.
template <int64_t side>
void through_scratch(Matrix x, Turned y) {
  k::transpose_tile(x, y, k::program_id(0), k::program_id(1), side, side);
}

/// A tile a program by way of shared memory: a row is stored, a column is read. In rows of 32 elements a column lies in
/// one bank; rows that are padded, or whose words are exchanged, spread it over all.
template <int64_t side, k::SharedLayout layout>
void through_shared(Matrix x, Turned y) {
  const auto rows = k::ds(k::program_id(0) * side, side), columns = k::ds(k::program_id(1) * side, side);
  const auto kept = k::shared<float>({side, side}, layout);
  kept(k::all, k::all) = x(rows, columns);
  y(columns, rows) = kept.permute({1, 0})(k::all, k::all);
}

/// The hardware copies a row at a time into shared memory, and no thread does; a barrier says when all have come.
template <int64_t side>
void bulk_copies(Matrix x, Turned y) {
  const auto rows = k::ds(k::program_id(0) * side, side), columns = k::ds(k::program_id(1) * side, side);
  const auto kept = k::shared<float>({side, side}, k::SharedLayout::padded);
  const k::Barrier come;
  come.copy(kept(k::all, k::all), x(rows, columns));
  come.arrive();
  come.wait(0);
  y(columns, rows) = kept.permute({1, 0})(k::all, k::all);
}

/// All of the tile in one copy of the hardware's (TMA), which swizzles its lines on the way.
void tensor_copies(Matrix x, Turned y) {
  constexpr int64_t side = 32;  // a line of 128 bytes
  const auto rows = k::ds(k::program_id(0) * side, side), columns = k::ds(k::program_id(1) * side, side);
  const auto kept = k::shared<float>({side, side}, k::SharedLayout::swizzle128);
  const k::Barrier come;
  come.copy(kept(k::all, k::all), x(rows, columns));
  come.arrive();
  come.wait(0);
  y(columns, rows) = kept.permute({1, 0})(k::all, k::all);
}

/// The same tiles, neighbours in bands: rows of what is written are still in the cache when their other parts come.
void in_bands(Matrix x, Turned y) {
  constexpr int64_t side = 32;
  const auto [j, i] = k::swizzle2d(k::program_id(0), k::cdiv(x.dim(1), side), k::cdiv(x.dim(0), side), 4);
  const auto rows = k::ds(i * side, side), columns = k::ds(j * side, side);
  y(columns, rows) = k::trans(x(rows, columns));
}

}  // namespace

Ladder transpose(Scale scale) {
  const int64_t m = at(scale, 70, 4096, 16384), n = at(scale, 45, 4096, 16384);
  Ladder out{.name = "transpose", .inputs = {normal({m, n}, 1)}};
  out.library = one([](const Arrays& in) { return weft::contiguous(weft::transpose(in[0])); });
  out.bytes = 8.0 * static_cast<double>(m * n);
  const auto turned = [](const array& x) { return Shape{x.shape(1), x.shape(0)}; };
  const auto squares = [](int64_t side) {
    return [side](auto x, auto) { return k::Grid{k::cdiv(x.dim(0), side), k::cdiv(x.dim(1), side)}; };
  };
  const auto by = [&](const char* name, auto f, auto grid) { return k::kernel(name, f).grid(grid).outputs(turned); };
  out.rungs = {
      loop({{n, m}},
           [m, n](auto in, auto to) {
             for (int64_t i = 0; i < m; ++i)
               for (int64_t j = 0; j < n; ++j) to[0][j * m + i] = in[0][i * n + j];
           }),
      rung("rows to columns", by("rows_to_columns", rows_to_columns, [](auto x, auto) { return k::Grid{x.dim(0)}; })),
      rung("columns to rows", by("columns_to_rows", columns_to_rows, [](auto x, auto) { return k::Grid{x.dim(1)}; }),
           "a line is fetched for each element that is read"),
      rung("tiles of 32", by("transpose_tiles", tiles<32>, squares(32))),
      rung("tiles of 64", by("transpose_large_tiles", tiles<64>, squares(64)), "more lines at once than a cache keeps"),
      rung("shared memory, rows as they are",
           by("transpose_shared", through_shared<32, k::SharedLayout::row_major>, squares(32)),
           "all of a column lies in one bank"),
      rung("shared memory, padded rows",
           by("transpose_padded", through_shared<32, k::SharedLayout::padded>, squares(32))),
      rung("shared memory, swizzled rows",
           by("transpose_swizzled", through_shared<32, k::SharedLayout::swizzle128>, squares(32))),
      rung("tiles of 64, copied in bulk", by("transpose_bulk", bulk_copies<64>, squares(64))),
      rung("tiles of 32, by TMA", by("transpose_tma", tensor_copies, squares(32))),
      rung("tiles of 32 through scratch", by("transpose_scratch", through_scratch<32>, squares(32))),
      rung("tiles of 64 through scratch", by("transpose_large_scratch", through_scratch<64>, squares(64))),
      rung("tiles of 32 in bands",
           by("transpose_bands", in_bands,
              [](auto x, auto) { return k::Grid{k::cdiv(x.dim(0), 32) * k::cdiv(x.dim(1), 32)}; }),
           "rows are still written in parts of 32: scratch is missing"),
  };
  return out;
}

}  // namespace ladders
