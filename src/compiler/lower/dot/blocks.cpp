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

/// The block form of a matmul. With `exchanged`, A is the right operand, and C is computed as [n, m].
class DotLowering::Blocks {
 public:
  Blocks(DotLowering& dot, bool exchanged)
      : dot_(dot), b_(dot.b_), exchanged_(exchanged), left_(exchanged ? dot.bb_ : dot.a_),
        right_(exchanged ? dot.a_ : dot.bb_), lanes_(dot.cx_.target.machine().lanes(size_of(dot.t_))),
        width_(2 * lanes_), height_(dot.cx_.target.machine().vector_registers >= 32 ? 12 : 6),
        pitch_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(height_)))),
        rows_(exchanged ? dot.d_.n : dot.d_.m), columns_(exchanged ? dot.d_.m : dot.d_.n) {
    choose_sizes();
  }

  void run() {
    begin();
    if (one_piece_) return piece(zero_, dot_.k_, true);
    each(zero_, rows_left_, height_, [&](Value i) {
      each(zero_, columns_left_, width_, [&](Value j) {
        b_.store(sums_, dot_.nothing({height_, width_}), b_.add(b_.mul(i, b_.index(block_columns_)), j),
                 {block_columns_, 1});
      });
    });
    const Value step = b_.index(depth_),
                pieces = b_.scalar(ScalarOp::floordiv, {b_.add(dot_.k_, b_.index(depth_ - 1)), step});
    const Value last = b_.mul(b_.sub(pieces, b_.index(1)), step);
    each(zero_, last, depth_, [&](Value k0) { piece(k0, step, false); });
    piece(last, b_.sub(dot_.k_, last), true);
  }

 private:
  /// Chooses the extents of a block and of a K slice, so that there are programs for several threads.
  void choose_sizes() {
    block_rows_ = part(rows_, most_rows, height_), block_columns_ = part(columns_, most_columns, width_);
    int64_t batches = 1;
    for (int64_t n : dot_.d_.batch) batches *= n;
    const auto programs = [&] {
      return batches * ((rows_ + block_rows_ - 1) / block_rows_) * ((columns_ + block_columns_ - 1) / block_columns_);
    };
    while (programs() < 8 && block_columns_ > 4 * width_) block_columns_ = round_up(block_columns_ / 2, width_);
    while (programs() < 8 && block_rows_ > 6 * height_) block_rows_ = round_up(block_rows_ / 2, height_);
    depth_ = part(dot_.d_.k, most_depth, unroll);
    one_piece_ = depth_ >= dot_.d_.k;
    const Dim& row_dim = *(dot_.plan_.extents.end() - (exchanged_ ? 2 : 3));
    const Dim& column_dim = *(dot_.plan_.extents.end() - (exchanged_ ? 3 : 2));
    even_columns_ = column_dim.is_static() && columns_ % width_ == 0;
    even_rows_ = row_dim.is_static() && rows_ % height_ == 0;
  }

  /// Emits the block's position and makes its local buffers.
  void begin() {
    Value m0, n0;
    dot_.tiles(exchanged_ ? block_columns_ : block_rows_, exchanged_ ? block_rows_ : block_columns_, m0, n0);
    r0_ = exchanged_ ? n0 : m0, c0_ = exchanged_ ? m0 : n0;
    rows_left_ = b_.min(b_.sub(exchanged_ ? dot_.n_ : dot_.m_, r0_), b_.index(block_rows_));
    columns_left_ = b_.min(b_.sub(exchanged_ ? dot_.m_ : dot_.n_, c0_), b_.index(block_columns_));
    packed_right_ = b_.local(dot_.t_, depth_ * block_columns_), packed_left_ = b_.local(dot_.t_, depth_ * pitch_);
    sums_ = one_piece_ ? -1 : b_.local(dot_.t_, block_rows_ * block_columns_);
    zero_ = b_.index(0);
  }

  Value columns_from(Value j) { return even_columns_ ? no_value : b_.sub(columns_left_, j); }
  Value rows_from(Value i) { return even_rows_ ? no_value : b_.sub(rows_left_, i); }

  void each(Value lo, Value hi, int64_t step, const std::function<void(Value)>& body) {
    b_.loop(lo, hi, b_.index(step), {}, [&](Value at, const std::vector<Value>&) {
      body(at);
      return std::vector<Value>{};
    });
  }

  /// Packs the right operand in panels [k][width], one after another. Where k is contiguous, `at_once` steps of k are
  /// transposed together.
  void pack_right(Value k0, Value steps) {
    const int64_t at_once = right_.depth == 1 && right_.row != 1 ? lanes_ : 1;
    each(zero_, steps, at_once, [&](Value k) {
      const Value limit = at_once == 1 ? no_value : b_.sub(steps, k);
      each(zero_, columns_left_, width_, [&](Value j) {
        Value v = dot_.load(right_, b_.add(c0_, j), b_.add(k0, k), {at_once, width_}, {Along::depth, Along::row},
                            {limit, columns_from(j)});
        b_.store(packed_right_, v, b_.add(b_.mul(j, b_.index(depth_)), b_.mul(k, b_.index(width_))), {width_, 1},
                 {limit, no_value});
      });
    });
  }

  /// Packs a panel of the left operand, [k][pitch], of which `height` are used.
  void pack_left(Value i, Value k0, Value steps) {
    const int64_t at_once = left_.depth == 1 && left_.row != 1 ? lanes_ : 1;
    const Value exist = even_rows_ ? b_.index(height_) : b_.min(b_.sub(rows_left_, i), b_.index(height_));
    each(zero_, steps, at_once, [&](Value k) {
      const Value limit = at_once == 1 ? no_value : b_.sub(steps, k);
      Value v = dot_.load(left_, b_.add(r0_, i), b_.add(k0, k), {at_once, pitch_}, {Along::depth, Along::row},
                          {limit, exist});
      b_.store(packed_left_, v, b_.mul(k, b_.index(pitch_)), {pitch_, 1}, {limit, no_value});
    });
  }

  /// Returns a tile of sums `c` with the products of the packed panels over k from `from` to `to` added.
  Value update(Value j, Value from, Value to, int64_t step, Value c) {
    const Value panel = b_.mul(j, b_.index(depth_));
    return b_.loop(from, to, b_.index(step), {c}, [&](Value k, const std::vector<Value>& carried) {
      Value l = b_.load(packed_left_, b_.mul(k, b_.index(pitch_)), {height_, step}, {1, pitch_});
      Value r = b_.load(packed_right_, b_.add(panel, b_.mul(k, b_.index(width_))), {step, width_}, {width_, 1});
      return std::vector<Value>{b_.dot(l, r, carried[0])};
    })[0];
  }

  /// Computes a tile over one K slice. The last slice stores C, the others keep the sums.
  void tile(Value i, Value j, Value steps, bool last) {
    const Value position = b_.add(b_.mul(i, b_.index(block_columns_)), j);
    Value c =
        one_piece_ ? dot_.nothing({height_, width_}) : b_.load(sums_, position, {height_, width_}, {block_columns_, 1});
    const Value whole = b_.mul(b_.scalar(ScalarOp::floordiv, {steps, b_.index(unroll)}), b_.index(unroll));
    c = update(j, zero_, whole, unroll, c);
    int64_t known_steps = 0, known_whole = 0;
    if (!(b_.known(steps, known_steps) && b_.known(whole, known_whole) && known_steps == known_whole))
      c = update(j, whole, steps, 1, c);
    if (!last) return b_.store(sums_, c, position, {block_columns_, 1});
    const std::vector<int64_t> strides =
        exchanged_ ? std::vector<int64_t>{dot_.d_.c_n, dot_.d_.c_m} : std::vector<int64_t>{dot_.d_.c_m, dot_.d_.c_n};
    const Value row = b_.add(r0_, i), column = b_.add(c0_, j);
    dot_.store(c, exchanged_ ? column : row, exchanged_ ? row : column, strides, {rows_from(i), columns_from(j)},
               exchanged_);
  }

  void piece(Value k0, Value steps, bool last) {
    pack_right(k0, steps);
    each(zero_, rows_left_, height_, [&](Value i) {
      pack_left(i, k0, steps);
      each(zero_, columns_left_, width_, [&](Value j) { tile(i, j, steps, last); });
    });
  }

  DotLowering& dot_;
  kernel::Builder& b_;
  const bool exchanged_;
  const Side &left_, &right_;
  const int64_t lanes_, width_, height_, pitch_;  // a tile of `height` rows: its sums take 2 · height registers
  const int64_t rows_, columns_;
  int64_t block_rows_ = 0, block_columns_ = 0, depth_ = 0;
  bool one_piece_ = false, even_rows_ = false, even_columns_ = false;
  Value r0_ = no_value, c0_ = no_value, rows_left_ = no_value, columns_left_ = no_value, zero_ = no_value;
  kernel::Ref packed_right_ = -1, packed_left_ = -1, sums_ = -1;
};

void DotLowering::blocks_form(bool exchanged) { Blocks(*this, exchanged).run(); }

}  // namespace weft::compiler
