#include "kernels/attention/decode.h"

#include <array>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/attention/decode_arrays.h"

namespace weft::kernels {

using k::Index;

namespace {

using Flag = k::Tile<bool, 0>;
using Number = k::Tile<float, 0>;
using Row = k::Tile<float, 1>;
using Plane = k::Tile<float, 2>;

/// A softmax over some keys: the largest score, the sum of exp(score - largest), and that of the values so weighted.
struct Softmax {
  Number largest, sum;
  Row values;
};

/// Returns exp(score - largest): 0 where the score is -inf, even if every score so far is.
template <int R>
k::Tile<float, R> weight(const k::Tile<float, R>& score, const Number& largest) {
  return k::exp(score - k::where(largest == -INFINITY, 0.0f, largest));
}

/// Returns what a softmax of this largest score subtracts from scores: they may all be infinite.
Number frame_of(const Number& largest) { return k::where(k::abs(largest) == INFINITY, 0.0f, largest); }

/// Returns the softmax over the keys of both.
Softmax joined(const Softmax& a, const Softmax& b) {
  const Number largest = k::maximum(a.largest, b.largest), frame = frame_of(largest);
  const Number of_a = k::exp(a.largest - frame), of_b = k::exp(b.largest - frame);
  return {largest, a.sum * of_a + b.sum * of_b, a.values * of_a + b.values * of_b};
}

/// Returns the softmax over the keys of several: one in each element of `largest` and `sums`, and row of `values`.
Softmax joined(const Row& largest, const Row& sums, const Plane& values) {
  const Number most = k::max(largest, 0);
  const Row share = k::exp(largest - frame_of(most));
  return {most, k::sum(sums * share, 0), k::sum(values * k::col(share), 0)};
}

/// The newest position: its rows, whether it is one of the keys, and which row of memory it goes to, if to any.
struct Newest {
  DecodeRows rows;
  Flag exists, inside;
  Index position;
};

/// The keys that a program, or an iteration, takes: tiles from `first` on, `step` keys apart, before `end`.
struct Part {
  k::AnyRef keys, values;
  Index first, end;
  int64_t step = 0;
};

/// A program: a head, or a split of its keys.
class Program {
 public:
  /// `joins`: it joins the splits of a head.
  Program(const Decode& d, const AttentionFrame& frame, bool joins = false)
      : d_(d), a_(d.a), f_(frame), columns_(decode_columns(a_.width)), value_columns_(decode_columns(a_.value_width)) {
    for (const Index& i : f_.batch) batch_.push_back(i.any());
    const bool parts = d.splits > 0 && !joins;
    const AttentionArray &o = parts ? d.part_o : a_.o, &lse = parts ? d.part_lse : a_.lse;
    if (o) o_ = matrix(o, parts ? d.splits : 1, a_.value_width);
    if (lse) lse_ = matrix(lse, parts ? d.splits : 1, 0);
  }

  void run(const Index& keys) {
    keys_ = matrix(a_.k, a_.keys.bound(), a_.width), values_ = matrix(a_.v, a_.keys.bound(), a_.value_width);
    if (a_.mask) seen_ = number_seen();
    const Index count = a_.mask ? k::maximum(k::minimum(keys, d_.append ? seen_ - 1 : seen_), 0) : keys;
    if (d_.splits > 0) split(count);
    else if (d_.blocks.sharers > 1) share(count);
    else store(0, attended(0, part(0, count, d_.blocks.rows)));
  }

  /// Joins the splits, weighted by the softmax of their logarithms.
  void join() const {
    const int64_t rows = decode_columns(d_.splits);
    const k::Any values = tile(matrix(d_.part_o, d_.splits, a_.value_width), 0, rows, value_columns_);
    const Row largest(
        k::load(matrix(d_.part_lse, d_.splits, 0), std::array{k::Span{.size = rows}}, {.other = -INFINITY}));
    store(0, joined(largest, k::full<float>({rows}, 1), Plane(k::cast(values, float32))));
  }

 private:
  /// Returns the matrix of this head: [rows, columns], or [rows] of entries.
  k::AnyRef matrix(const AttentionArray& x, int64_t rows, int64_t columns) const {
    return f_.view(x, rows, columns).fixed(batch_);
  }
  static k::Any tile(const k::AnyRef& from, const Index& first, int64_t rows, int64_t columns) {
    return k::load(from, std::array{k::Span{.start = first.any(), .size = rows}, k::Span{.size = columns}},
                   {.cache = k::Cache::streaming});
  }
  Index number_seen() const {
    const k::Span only{.squeezed = true};
    return Index(k::cast(k::load(matrix(a_.mask, 1, 1), std::array{only, only}), int64));
  }
  Part part(const Index& first, const Index& end, int64_t step) const {
    return {keys_.limit(0, end.any()), values_.limit(0, end.any()), first, end, step};
  }

  /// Stores the result of the program's split, if it has keys; else one of weight 0.
  void split(const Index& count) const {
    const Index number = k::program_id(static_cast<int>(batch_.size())), first = number * d_.split_keys;
    k::when(first < count,
            [&] { store(number, attended(0, part(first, k::minimum(count, first + d_.split_keys), d_.blocks.rows))); });
    k::when(count <= first, [&] {
      store_entry(number, -INFINITY);
      store_values(number, k::zeros<float>({value_columns_}));
    });
  }

  /// Divides the tiles of the head among iterations, whose results are joined behind them.
  void share(const Index& count) const {
    const int64_t n = d_.blocks.sharers, rows = d_.blocks.rows;
    const auto largest = k::scratch<float>({n}), sums = k::scratch<float>({n});
    const auto values = k::scratch<float>({n, value_columns_});
    k::parallel(n, [&](const Index& i) {
      const Softmax own = attended(i, part(i * rows, count, n * rows));
      largest(i) = own.largest, sums(i) = own.sum, values(i, k::all) = own.values;
    });
    const Row all_largest = largest(k::all), all_sums = sums(k::all);
    const Plane all_values = values(k::all, k::all);
    store(0, joined(all_largest, all_sums, all_values));
  }

  /// Returns the softmax over a part. To iteration 0 the newest position is one more key, which it stores.
  Softmax attended(const Index& iteration, const Part& part) const {
    const Tiles begin = tiles(part, part.first);  // on their way while the newest position is computed
    if (!d_.append) return walked(part, begin, queries());
    const Newest newest = newest_position();
    const std::vector<int64_t> every_row{d_.blocks.rows, columns_};
    return with_newest(walked(part, begin, Plane(k::broadcast_to(newest.rows.query.any(), every_row))), newest,
                       iteration == 0);
  }

  /// Returns the query in every row of a tile.
  Plane queries() const {
    const k::AnyRef rows = matrix(a_.q, 1, a_.width).broadcast({d_.blocks.rows, a_.width});
    return Plane(k::cast(k::load(rows, std::array{k::Span{.whole = true}, k::Span{.size = columns_}}), float32));
  }

  struct Tiles {
    k::Any keys, values;  // in the dtypes of memory
  };
  Tiles tiles(const Part& part, const Index& at) const {
    const int64_t rows = d_.blocks.rows;
    const k::Any keys = tile(part.keys, at, rows, columns_);
    return {keys, tile(part.values, at, rows, value_columns_)};
  }

  /// Goes through the tiles of a part; the next one is loaded while one is worked on. Each row of a tile has its own
  /// sum of values until the end.
  Softmax walked(const Part& part, const Tiles& begin, const Plane& query) const {
    const int64_t rows = d_.blocks.rows;
    k::Mut largest = k::scalar<float>(-INFINITY), sum = k::scalar<float>(0);
    k::Mut sums = k::zeros<float>({rows, value_columns_});
    k::Cell keys(begin.keys), values(begin.values);
    k::loop(part.first, part.end, part.step, [&](const Index& at) {
      const Tiles now{keys.get(), values.get()}, next = tiles(part, at + part.step);
      const Plane key(k::cast(now.keys, float32)), value(k::cast(now.values, float32));
      const Row products = k::sum(query * key, 1) * a_.scale;
      const Row scores = k::where(k::arange(rows) < part.end - at, products, -INFINITY);
      const Number most = k::max(scores, 0), larger = k::where(largest < most, most, largest);
      const Row weights = weight(scores, larger);
      const Number shrink = weight(largest.get(), larger);
      sum = k::fma(sum, shrink, k::sum(weights, 0));
      const Plane share = k::broadcast_to(k::col(weights), {rows, value_columns_});
      sums = k::fma(share, value, sums * shrink);
      largest = larger, keys.set(next.keys), values.set(next.values);
    });
    return {largest, sum, k::sum(sums, 0)};
  }

  Newest newest_position() const {
    const int64_t keys = a_.keys.bound();
    Newest out;
    out.rows = d_.append(f_.batch);
    const Index last = seen_ - 1;
    out.exists = (0 <= last) & (last < keys);
    out.position = k::where(last < 0, last + keys, last);  // as a scatter's index counts from the end
    out.inside = (0 <= out.position) & (out.position < keys);
    return out;
  }

  /// Stores the newest key and value and adds them to a softmax, where `own` holds.
  Softmax with_newest(const Softmax& before, const Newest& newest, const Flag& own) const {
    k::when(own, [&] {
      store_newest(a_.k, keys_, newest, newest.rows.key);
      store_newest(a_.v, values_, newest, newest.rows.value);
    });
    const Number score = k::sum(newest.rows.query * newest.rows.key, 0) * a_.scale;
    return joined(before, {k::where(newest.exists & own, score, -INFINITY), 1.0f, newest.rows.value});
  }

  /// Stores a row, which one of the programs that share it does.
  void store_newest(const AttentionArray& x, const k::AnyRef& to, const Newest& newest, const Row& row) const {
    Flag stores = newest.inside;
    for (size_t axis = 0; axis < a_.batch.size(); ++axis)
      if (a_.batch[axis] > 1 && x.batch[axis] == 0) stores = stores & (f_.batch[axis] == 0);
    k::when(stores, [&] {
      const Index at = k::minimum(k::maximum(newest.position, 0), a_.keys.bound() - 1);
      store_row(to, at, k::cast(row.any(), x.dtype));
    });
  }

  /// Stores what a softmax gives: of a head, or of a split. Without keys that is 0, and a logarithm of infinity.
  void store(const Index& split, const Softmax& s) const {
    const Flag nothing = s.sum == 0.0f;
    if (lse_.param >= 0) store_entry(split, k::where(nothing, INFINITY, k::log(s.sum) + s.largest));
    store_values(split, s.values * (1.0f / k::where(nothing, 1.0f, s.sum)));
  }
  void store_entry(const Index& split, const Number& v) const {
    k::store(lse_, std::array{k::Span{.start = split.any(), .squeezed = true}}, v.any());
  }
  void store_values(const Index& split, const Row& v) const {
    if (o_.param >= 0) store_row(o_, split, k::cast(v.any(), o_.dtype));
  }
  static void store_row(const k::AnyRef& to, const Index& row, const k::Any& v) {
    const k::Span at{.start = row.any(), .squeezed = true}, columns{.size = v.dims()[0]};
    k::store(to, std::array{at, columns}, v);
  }

  const Decode& d_;
  const Attention& a_;
  const AttentionFrame& f_;
  const int64_t columns_, value_columns_;
  std::vector<k::Any> batch_;
  k::AnyRef keys_, values_, o_, lse_;
  Index seen_;
};

/// Calls body(frame) for the program's head.
void in_frame(const Decode& d, bool joins, std::span<const k::AnyRef> memory,
              const std::function<void(const AttentionFrame&)>& body) {
  check_decode(d);
  const AttentionParams params(d.a, decode_arrays(d, joins));
  std::vector<k::AnyRef> refs;
  for (const int buffer : params.buffers()) {
    if (static_cast<size_t>(buffer) >= memory.size())
      throw_invalid("attention_decode", fmt::format("an array lies in buffer {} of {}: give a reference to each buffer",
                                                    buffer, memory.size()));
    refs.push_back(memory[static_cast<size_t>(buffer)]);
  }
  body(AttentionFrame(d.a, params, refs, batch_ids(d.a, static_cast<int>(d.a.batch.size()))));
}

}  // namespace

void decode(const Decode& d, std::span<const k::AnyRef> memory, const Index& keys) {
  in_frame(d, false, memory, [&](const AttentionFrame& f) { Program(d, f).run(keys); });
}

void decode_join(const Decode& d, std::span<const k::AnyRef> memory) {
  in_frame(d, true, memory, [&](const AttentionFrame& f) { Program(d, f, true).join(); });
}

}  // namespace weft::kernels
