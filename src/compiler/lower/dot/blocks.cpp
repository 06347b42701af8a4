// Large matmuls on CPUs, after Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", 2008). A
// program has a block of C and walks through K in slices: it packs its columns of the right operand, then its rows of
// the left operand panel by panel, and for each panel computes tiles of C that fill the vector registers. Sums are kept
// in scratch between slices of K. Each element of C is one chain of fused multiply-adds over ascending k, as in the
// other forms, so the block sizes do not change a bit.
#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"
#include "compiler/lower/dot/dot.h"

namespace weft::compiler {

using kernel::no_value;
using kernel::ScalarOp;
using kernel::Value;

namespace {

constexpr int64_t most_depth = 256;  // length of a K slice: a panel of either operand fits into the L1 cache
// Extents of a block: packed columns and sums fit into the L2.
constexpr int64_t most_rows = 240, most_columns = 512;
constexpr int64_t unroll = 4;  // steps of k in the innermost loop
constexpr double least_work = 96.0 * 96 * 96;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Returns the length of equal parts of `extent`: at most `most`, rounded up to a multiple of `grain`.
int64_t part(int64_t extent, int64_t most, int64_t grain) {
  int64_t count = (extent + most - 1) / most;
  return round_up((extent + count - 1) / count, grain);
}

}  // namespace

/// Returns whether the matmul is large enough for the block form.
bool DotLowering::blocks_fit() const {
  bool exchanged = d_.c_n != 1 && d_.c_m == 1;
  int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;
  double work = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(d_.k);
  return work >= least_work && rows >= 12 && columns >= 2 * cx_.target.machine().lanes(size_of(t_)) && d_.k >= 32;
}

/// Emits the block form. With `exchanged`, A is the right operand, and C is computed as [n, m].
void DotLowering::blocks_form(bool exchanged) {
  const int64_t lanes = cx_.target.machine().lanes(size_of(t_)), width = 2 * lanes;
  // Rows of a tile: its sums take 2 · height registers.
  const int64_t height = cx_.target.machine().vector_registers >= 32 ? 12 : 6;
  const int64_t pitch = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(height)));
  const int64_t rows = exchanged ? d_.n : d_.m, columns = exchanged ? d_.m : d_.n;

  int64_t block_rows = part(rows, most_rows, height), block_columns = part(columns, most_columns, width);
  int64_t batches = 1;
  for (int64_t n : d_.batch) batches *= n;
  auto programs = [&] {
    return batches * ((rows + block_rows - 1) / block_rows) * ((columns + block_columns - 1) / block_columns);
  };
  while (programs() < 8 && block_columns > 4 * width) block_columns = round_up(block_columns / 2, width);
  while (programs() < 8 && block_rows > 6 * height) block_rows = round_up(block_rows / 2, height);
  const int64_t depth = part(d_.k, most_depth, unroll);

  Value m0, n0;
  tiles(exchanged ? block_columns : block_rows, exchanged ? block_rows : block_columns, m0, n0);
  const Side &left = exchanged ? bb_ : a_, &right = exchanged ? a_ : bb_;
  const Value r0 = exchanged ? n0 : m0, c0 = exchanged ? m0 : n0;
  const Value rows_left = b_.min(b_.sub(exchanged ? n_ : m_, r0), b_.index(block_rows));
  const Value columns_left = b_.min(b_.sub(exchanged ? m_ : n_, c0), b_.index(block_columns));
  const bool one_piece = depth >= d_.k;
  const Dim& row_dim = *(plan_.extents.end() - (exchanged ? 2 : 3));
  const Dim& column_dim = *(plan_.extents.end() - (exchanged ? 3 : 2));
  const bool even_columns = column_dim.is_static() && columns % width == 0,
             even_rows = row_dim.is_static() && rows % height == 0;
  auto columns_from = [&](Value j) { return even_columns ? no_value : b_.sub(columns_left, j); };
  auto rows_from = [&](Value i) { return even_rows ? no_value : b_.sub(rows_left, i); };

  const kernel::Ref packed_right = b_.local(t_, depth * block_columns), packed_left = b_.local(t_, depth * pitch);
  const kernel::Ref sums = one_piece ? -1 : b_.local(t_, block_rows * block_columns);
  auto each = [&](Value lo, Value hi, int64_t step, const std::function<void(Value)>& body) {
    b_.loop(lo, hi, b_.index(step), {}, [&](Value at, const std::vector<Value>&) {
      body(at);
      return std::vector<Value>{};
    });
  };
  const Value zero = b_.index(0);

  // Packs the right operand in panels [k][width], one after another. Where k is contiguous, `at_once` steps of k are
  // transposed together.
  auto pack_right = [&](Value k0, Value steps) {
    const int64_t at_once = right.depth == 1 && right.row != 1 ? lanes : 1;
    each(zero, steps, at_once, [&](Value k) {
      const Value limit = at_once == 1 ? no_value : b_.sub(steps, k);
      each(zero, columns_left, width, [&](Value j) {
        Value v = load(right, b_.add(c0, j), b_.add(k0, k), {at_once, width}, {right.depth, right.row},
                       {limit, columns_from(j)});
        b_.store(packed_right, v, b_.add(b_.mul(j, b_.index(depth)), b_.mul(k, b_.index(width))), {width, 1},
                 {limit, no_value});
      });
    });
  };
  // Packs a panel of the left operand, [k][pitch], of which `height` are used.
  auto pack_left = [&](Value i, Value k0, Value steps) {
    const int64_t at_once = left.depth == 1 && left.row != 1 ? lanes : 1;
    const Value exist = even_rows ? b_.index(height) : b_.min(b_.sub(rows_left, i), b_.index(height));
    each(zero, steps, at_once, [&](Value k) {
      const Value limit = at_once == 1 ? no_value : b_.sub(steps, k);
      Value v = load(left, b_.add(r0, i), b_.add(k0, k), {at_once, pitch}, {left.depth, left.row}, {limit, exist});
      b_.store(packed_left, v, b_.mul(k, b_.index(pitch)), {pitch, 1}, {limit, no_value});
    });
  };
  auto update = [&](Value j, Value from, Value to, int64_t step, Value c) {
    const Value panel = b_.mul(j, b_.index(depth));
    return b_.loop(from, to, b_.index(step), {c}, [&](Value k, const std::vector<Value>& carried) {
      Value l = b_.load(packed_left, b_.mul(k, b_.index(pitch)), {height, step}, {1, pitch});
      Value r = b_.load(packed_right, b_.add(panel, b_.mul(k, b_.index(width))), {step, width}, {width, 1});
      return std::vector<Value>{b_.dot(l, r, carried[0])};
    })[0];
  };
  auto tile = [&](Value i, Value j, Value steps, bool last) {
    const Value position = b_.add(b_.mul(i, b_.index(block_columns)), j);
    Value c = one_piece ? nothing({height, width}) : b_.load(sums, position, {height, width}, {block_columns, 1});
    const Value whole = b_.mul(b_.scalar(ScalarOp::floordiv, {steps, b_.index(unroll)}), b_.index(unroll));
    c = update(j, zero, whole, unroll, c);
    int64_t known_steps = 0, known_whole = 0;
    if (!(b_.known(steps, known_steps) && b_.known(whole, known_whole) && known_steps == known_whole))
      c = update(j, whole, steps, 1, c);
    if (!last) return b_.store(sums, c, position, {block_columns, 1});
    const std::vector<int64_t> strides =
        exchanged ? std::vector<int64_t>{d_.c_n, d_.c_m} : std::vector<int64_t>{d_.c_m, d_.c_n};
    const Value row = b_.add(r0, i), column = b_.add(c0, j);
    store(c, exchanged ? column : row, exchanged ? row : column, strides, {rows_from(i), columns_from(j)}, exchanged);
  };
  auto piece = [&](Value k0, Value steps, bool last) {  // the last K slice stores C
    pack_right(k0, steps);
    each(zero, rows_left, height, [&](Value i) {
      pack_left(i, k0, steps);
      each(zero, columns_left, width, [&](Value j) { tile(i, j, steps, last); });
    });
  };

  if (one_piece) return piece(zero, k_, true);
  each(zero, rows_left, height, [&](Value i) {
    each(zero, columns_left, width, [&](Value j) {
      b_.store(sums, nothing({height, width}), b_.add(b_.mul(i, b_.index(block_columns)), j), {block_columns, 1});
    });
  });
  const Value step = b_.index(depth), pieces = b_.scalar(ScalarOp::floordiv, {b_.add(k_, b_.index(depth - 1)), step});
  const Value last = b_.mul(b_.sub(pieces, b_.index(1)), step);
  each(zero, last, depth, [&](Value k0) { piece(k0, step, false); });
  piece(last, b_.sub(k_, last), true);
}

}  // namespace weft::compiler
