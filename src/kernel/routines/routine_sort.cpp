// The call `sort` as tile kernels. Each element becomes an item: its key and its position. No two items are equal, so
// the sorted order is unique and stable. Rows that fit into a tile (several short ones share a tile) are sorted by a
// bitonic network (Batcher 1968); the first step of each stage compares mirrored lanes, so that all steps sort upwards.
// Longer rows are sorted a tile at a time, then runs are merged in pairs: every item finds its position in the other
// run by a binary search. The results are read at the sorted positions, so that elements keep their bits. Of a window
// only the stores and the reads for them are fewer.
#include <algorithm>
#include <bit>

#include "kernel/routines/routine.h"
#include "kernel/routines/routine_keys.h"
#include "kernel/routines/sort_key.h"

namespace weft::kernel {

namespace {

/// Items of a tile: key and position in one unsigned integer if both fit, else in two.
struct Items {
  Value key = no_value, at = no_value;  // `at`: no_value where the key holds it
};

class SortRoutine {
 public:
  SortRoutine(const CallDesc& desc, int64_t lanes)
      : dtype_(desc.inputs[0].dtype), values_(desc.outputs[0].used), order_(desc.outputs[1].used) {
    const SortSizes rows = sort_sizes(desc);
    outer_ = rows.outer, inner_ = rows.inner, n_ = rows.n, first_ = rows.first, count_ = rows.count;
    rows_ = outer_ * inner_;
    padded_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n_, 1))));
    run_ = std::min(padded_, lanes);
    lanes_ = std::clamp<int64_t>(
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows_, 1)))) * run_, run_, lanes);
    const int key_bits = 8 * dtype_.size();
    position_bits_ = 32;
    if (const int needed = std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(padded_ - 1))));
        key_bits + needed <= 32) {
      item_ = uint32;
      position_bits_ = needed;
    } else if (key_bits <= 32) {
      item_ = uint64;
    } else {
      item_ = uint64;
      pairs_ = true;
    }
  }

  Routine run() {
    if (rows_ * count_ == 0 || (!values_ && !order_)) return {};
    const bool whole = n_ <= run_;
    const int64_t blocks = whole ? (rows_ * run_ + lanes_ - 1) / lanes_ : rows_ * ((n_ + run_ - 1) / run_);
    out_.kernels.push_back(block_kernel(whole));
    if (whole) {
      out_.launches.push_back({0, with_results({0}), {}, blocks});
      return std::move(out_);
    }
    for (int k = 0; k < 2; ++k) {
      out_.scratch.push_back(rows_ * n_ * item_.size());
      if (pairs_) out_.scratch.push_back(rows_ * n_ * 4);
    }
    out_.launches.push_back({0, with_items({0}, 0), {}, blocks});
    const int64_t tile = merge_lanes(), tiles = rows_ * ((n_ + tile - 1) / tile);
    int from = 0;
    for (int64_t width = run_; width < n_; width *= 2, from = 1 - from) {
      const bool last = 2 * width >= n_;
      if (kernel_of_[last] < 0) {
        kernel_of_[last] = static_cast<int>(out_.kernels.size());
        out_.kernels.push_back(merge_kernel(last));
      }
      const std::vector<int> items = with_items({}, from);
      std::vector<int> buffers = items;
      if (last) {
        buffers.push_back(0);
        buffers = with_results(std::move(buffers));
      } else {
        buffers = with_items(std::move(buffers), 1 - from);
      }
      out_.launches.push_back({static_cast<size_t>(kernel_of_[last]),
                               std::move(buffers),
                               {width, static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(width)))},
                               tiles});
    }
    return std::move(out_);
  }

 private:
  int64_t merge_lanes() const { return std::min<int64_t>(run_, 1024); }

  // Returns the buffers of a launch, in the order of its parameters.
  std::vector<int> with_results(std::vector<int> buffers) const {
    if (values_) buffers.push_back(1);
    if (order_) buffers.push_back(2);
    return buffers;
  }
  std::vector<int> with_items(std::vector<int> buffers, int which) const {
    for (int k = 0; k < (pairs_ ? 2 : 1); ++k) buffers.push_back(3 + which * (pairs_ ? 2 : 1) + k);
    return buffers;
  }

  struct Buffers {
    Ref key = -1, at = -1;
  };
  Buffers items_param(Builder& b, const std::string& name, bool written) const {
    Buffers out;
    out.key = b.param(name, item_, written);
    if (pairs_) out.at = b.param(name + "_at", uint32, written);
    return out;
  }

  Value number(Builder& b, Dtype t, uint64_t v, Value like) const { return splat_bits(b, t, v, b.type(like).dims[0]); }
  Value splat(Builder& b, Value v, int64_t lanes) const { return b.broadcast(v, {lanes}); }

  /// Returns the items of a tile. `at`: positions (int64). An item where `inside` is false sorts after all others.
  Items items(Builder& b, Value bits, Value at, Value inside) const {
    Value key = keys_of(b, bits, dtype_);
    key = b.select(
        inside, key,
        number(b, bits_of(dtype_), dtype_.size() == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * dtype_.size())) - 1, key));
    if (pairs_) return {key, b.cast(at, uint32)};
    const Value high =
        b.scalar(ScalarOp::shl, {b.cast(key, item_), number(b, item_, static_cast<uint64_t>(position_bits_), key)});
    return {b.scalar(ScalarOp::bit_or, {high, b.cast(at, item_)}), no_value};
  }

  Value position(Builder& b, const Items& i) const {  // in int64
    if (pairs_) return b.cast(i.at, int64);
    return b.cast(b.scalar(ScalarOp::bit_and, {i.key, number(b, item_, (uint64_t{1} << position_bits_) - 1, i.key)}),
                  int64);
  }

  Value less(Builder& b, const Items& x, const Items& y) const {
    const Value by_key = b.lt(x.key, y.key);
    if (!pairs_) return by_key;
    return b.scalar(ScalarOp::bit_or,
                    {by_key, b.scalar(ScalarOp::bit_and, {b.scalar(ScalarOp::eq, {x.key, y.key}), b.lt(x.at, y.at)})});
  }

  Items choose(Builder& b, Value condition, const Items& x, const Items& y) const {
    return {b.select(condition, x.key, y.key), pairs_ ? b.select(condition, x.at, y.at) : no_value};
  }

  /// Sorts every `length` lanes of a tile.
  Items network(Builder& b, Items v, int64_t length) const {
    const Value lane = b.arange(lanes_, int32);
    const auto step = [&](int64_t mirror, int64_t top) {
      const Items other{b.exchange(v.key, mirror), pairs_ ? b.exchange(v.at, mirror) : no_value};
      const Value bit = b.constant(int32, Number::of_int(top), {lanes_});
      const Value lower = b.scalar(
          ScalarOp::eq, {b.scalar(ScalarOp::bit_and, {lane, bit}), b.constant(int32, Number::of_int(0), {lanes_})});
      v = choose(b, b.scalar(ScalarOp::eq, {lower, less(b, v, other)}), v, other);
    };
    for (int64_t size = 2; size <= length; size *= 2) {
      step(size - 1, size / 2);
      for (int64_t far = size / 4; far > 0; far /= 2) step(far, far);
    }
    return v;
  }

  /// Returns the address of element `k` of a row of `extent`, lane by lane.
  Value address(Builder& b, Value row, Value k, int64_t extent) const {
    const int64_t lanes = b.type(k).dims[0];
    const auto fixed = [&](int64_t v) { return splat(b, b.index(v), lanes); };
    if (inner_ == 1) return b.add(b.mul(row, fixed(extent)), k);
    const Value o = b.scalar(ScalarOp::floordiv, {row, fixed(inner_)}),
                x = b.scalar(ScalarOp::mod, {row, fixed(inner_)});
    return b.add(b.mul(b.add(b.mul(o, fixed(extent)), k), fixed(inner_)), x);
  }

  /// Stores the elements of the items, and their positions, at element `k` of the row, if that is in the window.
  void results(Builder& b, Ref in, const Items& v, Value row, Value k, Value inside) const {
    if (count_ != n_) {
      const int64_t lanes = b.type(k).dims[0];
      const Value first = splat(b, b.index(first_), lanes), end = splat(b, b.index(first_ + count_), lanes);
      const Value wanted = b.scalar(ScalarOp::bit_and, {b.scalar(ScalarOp::le, {first, k}), b.lt(k, end)});
      inside = b.scalar(ScalarOp::bit_and, {inside, wanted});
      k = b.sub(k, first);
    }
    const Value at = position(b, v), to = address(b, row, k, count_);
    if (values_)
      b.scatter(b.param("values", bits_of(dtype_), true), b.gather(in, address(b, row, at, n_), inside), to, inside);
    if (order_) b.scatter(b.param("order", uint32, true), b.cast(at, uint32), to, inside);
  }

  /// Sorts whole rows, or a run of each.
  Kernel block_kernel(bool whole) const {
    Builder b("sort_block");
    const Ref in = b.param("in", bits_of(dtype_), false);
    const Value lane = b.arange(lanes_), pid = b.program_id();
    Value row, k, inside, offset = no_value, left = no_value;
    if (whole) {
      const Value first = splat(b, b.mul(pid, b.index(lanes_ / run_)), lanes_);
      k = b.scalar(ScalarOp::bit_and, {lane, splat(b, b.index(run_ - 1), lanes_)});
      row = b.add(first, b.scalar(ScalarOp::shr,
                                  {lane, splat(b, b.index(std::countr_zero(static_cast<uint64_t>(run_))), lanes_)}));
      inside = b.lt(row, splat(b, b.index(rows_), lanes_));
      if (run_ != n_) inside = b.scalar(ScalarOp::bit_and, {inside, b.lt(k, splat(b, b.index(n_), lanes_))});
    } else {
      const Value blocks = b.index((n_ + run_ - 1) / run_), line = b.scalar(ScalarOp::floordiv, {pid, blocks}),
                  start = b.mul(b.scalar(ScalarOp::mod, {pid, blocks}), b.index(run_));
      row = splat(b, line, lanes_);
      k = b.add(splat(b, start, lanes_), lane);
      left = b.sub(b.index(n_), start);
      inside = b.lt(lane, splat(b, left, lanes_));
      offset = b.add(b.mul(line, b.index(n_)), start);
    }
    const bool in_line = !whole && inner_ == 1;
    const Value bits =
        in_line ? b.load(in, offset, {lanes_}, {1}, {left}) : b.gather(in, address(b, row, k, n_), inside);
    const Items sorted = network(b, items(b, bits, k, inside), run_);
    if (whole) {
      results(b, in, sorted, row, k, inside);
    } else {
      const Buffers to = items_param(b, "items", true);
      b.store(to.key, sorted.key, offset, {1}, {left});
      if (pairs_) b.store(to.at, sorted.at, offset, {1}, {left});
    }
    return b.finish();
  }

  /// Merges pairs of runs of `width` items. A binary search takes `halvings` steps. A tile lies within one run.
  Kernel merge_kernel(bool last) const {
    Builder b(last ? "sort_last_merge" : "sort_merge");
    const int64_t lanes = merge_lanes();
    const Buffers from = items_param(b, "from", false);
    const Value width = b.symbol("width"), halvings = b.symbol("halvings"), pid = b.program_id(),
                tiles = b.index((n_ + lanes - 1) / lanes);
    const Value row = b.scalar(ScalarOp::floordiv, {pid, tiles}),
                first = b.mul(b.scalar(ScalarOp::mod, {pid, tiles}), b.index(lanes)), base = b.mul(row, b.index(n_));
    const Value left = b.sub(b.index(n_), first), run = b.scalar(ScalarOp::floordiv, {first, width}),
                is_right = b.scalar(ScalarOp::mod, {run, b.index(2)});
    const Value pair = b.mul(b.sub(run, is_right), width),
                other = b.add(pair, b.mul(b.sub(b.index(1), is_right), width));
    const Value length = b.max(b.index(0), b.min(width, b.sub(b.index(n_), other)));
    const Value lane = b.arange(lanes), inside = b.lt(lane, splat(b, left, lanes));
    const Value offset = b.add(base, first), others = splat(b, b.add(base, other), lanes);
    const Items own{b.load(from.key, offset, {lanes}, {1}, {left}),
                    pairs_ ? b.load(from.at, offset, {lanes}, {1}, {left}) : no_value};
    const auto fixed = [&](int64_t v) { return splat(b, b.index(v), lanes); };
    const auto found = b.loop(
        b.index(0), halvings, b.index(1), {fixed(0), splat(b, length, lanes)},
        [&](Value, const std::vector<Value>& range) {
          const Value low = range[0], high = range[1], open = b.scalar(ScalarOp::bit_and, {b.lt(low, high), inside}),
                      middle = b.scalar(ScalarOp::shr, {b.add(low, high), fixed(1)});
          const Value merged = b.add(others, middle);
          const Items there{b.gather(from.key, merged, open), pairs_ ? b.gather(from.at, merged, open) : no_value};
          const Value before = less(b, there, own);
          return std::vector<Value>{
              b.select(b.scalar(ScalarOp::bit_and, {open, before}), b.add(middle, fixed(1)), low),
              b.select(b.scalar(ScalarOp::bit_and, {open, b.scalar(ScalarOp::bit_not, {before})}), middle, high)};
        });
    // The items before it in its own run and in the other.
    const Value k = b.add(b.add(splat(b, b.sub(b.add(pair, first), b.mul(run, width)), lanes), lane), found[0]);
    if (last) {
      const Ref in = b.param("in", bits_of(dtype_), false);
      results(b, in, own, splat(b, row, lanes), k, inside);
      return b.finish();
    }
    const Buffers to = items_param(b, "to", true);
    const Value merged = b.add(splat(b, base, lanes), k);
    b.scatter(to.key, own.key, merged, inside);
    if (pairs_) b.scatter(to.at, own.at, merged, inside);
    return b.finish();
  }

  Dtype dtype_, item_ = uint64;
  bool values_, order_, pairs_ = false;
  int position_bits_ = 32;
  int64_t outer_ = 1, n_ = 0, inner_ = 1, rows_ = 0;
  int64_t first_ = 0, count_ = 0;  // the sorted positions that are stored
  int64_t padded_ = 1, run_ = 1,
          lanes_ = 1;            // the row's length as a power of two; elements that are sorted together; of a tile
  int kernel_of_[2] = {-1, -1};  // merges: the last, and all others
  Routine out_;
};

}  // namespace

Routine sort_routine(const CallDesc& desc, int64_t lanes) { return SortRoutine(desc, lanes).run(); }

}  // namespace weft::kernel
