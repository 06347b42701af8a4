// The call `scatter_rows` as tile kernels: adds up rows by id (the gradient of an embedding), for any number of
// duplicates. Ids are sorted together with the rows' positions. Each program adds up the runs of equal ids in a chunk
// of the sorted list, in registers. A run within a chunk is finished there. Partial sums of longer runs are stored, and
// one program a run adds them up in order. The sums are the same in every run.
#include <algorithm>
#include <bit>

#include "kernel/routines/routine.h"
#include "kernel/routines/routine_keys.h"

namespace weft::kernel {

namespace {

constexpr int64_t chunk = 32, widest_panel = 256;

class ScatterRoutine {
 public:
  ScatterRoutine(const CallDesc& desc, int64_t lanes)
      : lanes_(lanes), ids_(desc.inputs[0].dtype), from_(desc.inputs[1].dtype), to_(desc.outputs[0].dtype) {
    count_ = desc.inputs[0].extents[0];
    rows_ = desc.outputs[0].extents[0];
    width_ = desc.outputs[0].extents[1];
    key_ = rows_ < 0xffff ? uint16 : uint32;
    sum_ = is_low_float(to_) ? float32 : to_;
    panel_ =
        std::min<int64_t>({static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(width_))), widest_panel, lanes});
    panels_ = (width_ + panel_ - 1) / panel_;
    chunks_ = (count_ + chunk - 1) / chunk;
  }

  Routine run() {
    if (count_ == 0 || rows_ == 0 || width_ == 0) return {};
    // Operands 0, 1, 2; then ids as keys, sorted keys, positions, partial sums, scratch of the sort.
    out_.scratch = {count_ * key_.size(), count_ * key_.size(), count_ * 4, chunks_ * 2 * width_ * sum_.size()};
    launch(keys_kernel(), {0, keys}, (count_ + tile() - 1) / tile());
    const CallDesc sort{"sort", {{key_, {count_}}}, {{key_, {count_}}, {uint32, {count_}}}, {0}};
    add(sort_routine(sort, lanes_), {keys, sorted, positions});
    launch(chunk_kernel(), {sorted, positions, 1, 2, parts}, chunks_ * panels_);
    launch(runs_kernel(), {sorted, 2, parts}, chunks_ * panels_);
    return std::move(out_);
  }

 private:
  enum Buffer : int { keys = 3, sorted, positions, parts, first_free };

  void launch(Kernel kernel, std::vector<int> buffers, int64_t grid) {
    out_.launches.push_back({out_.kernels.size(), std::move(buffers), {}, grid});
    out_.kernels.push_back(std::move(kernel));
  }

  /// Appends another routine that works on our operands.
  void add(Routine other, const std::vector<int>& operands) {
    const size_t kernels = out_.kernels.size();
    for (Routine::Launch launch : other.launches) {
      launch.kernel += kernels;
      for (int& b : launch.buffers)
        b = b < static_cast<int>(operands.size()) ? operands[static_cast<size_t>(b)]
                                                  : b - static_cast<int>(operands.size()) + first_free;
      out_.launches.push_back(std::move(launch));
    }
    for (Kernel& k : other.kernels) out_.kernels.push_back(std::move(k));
    out_.scratch.insert(out_.scratch.end(), other.scratch.begin(), other.scratch.end());
  }

  int64_t tile() const { return std::min<int64_t>(lanes_, 1024); }

  /// A negative id counts from the end; one outside becomes the largest key.
  Kernel keys_kernel() const {
    Builder b("scatter_keys");
    const Ref in = b.param("ids", ids_, false), out = b.param("keys", key_, true);
    const int64_t lanes = tile();
    const Value first = b.mul(b.program_id(), b.index(lanes)), left = b.sub(b.index(count_), first);
    const auto splat = [&](int64_t v) { return b.broadcast(b.index(v), {lanes}); };
    Value id = b.cast(b.load(in, first, {lanes}, {1}, {left}), int64);
    if (!is_unsigned(ids_)) id = b.select(b.lt(id, splat(0)), b.add(id, splat(rows_)), id);
    const Value inside = b.scalar(ScalarOp::bit_and, {b.scalar(ScalarOp::le, {splat(0), id}), b.lt(id, splat(rows_))});
    b.store(out, b.cast(b.select(inside, id, splat(rows_)), key_), first, {1}, {left});
    return b.finish();
  }

  // Scalars of the sorted list.
  Value key_at(Builder& b, Ref list, Value at) const {
    return b.cast(b.load(list, b.max(b.index(0), b.min(at, b.index(count_ - 1))), {}, {}), int64);
  }
  Value both(Builder& b, Value x, Value y) const { return b.scalar(ScalarOp::bit_and, {x, y}); }
  Value none(Builder& b, Value x) const { return b.scalar(ScalarOp::bit_not, {x}); }
  Value equal(Builder& b, Value x, Value y) const { return b.scalar(ScalarOp::eq, {x, y}); }

  struct Range {  // of the list and of a row
    Value number, start, end, column, left;
  };
  Range range_of(Builder& b) const {
    const Value pid = b.program_id(), c = b.scalar(ScalarOp::floordiv, {pid, b.index(panels_)}),
                column = b.mul(b.scalar(ScalarOp::mod, {pid, b.index(panels_)}), b.index(panel_));
    const Value start = b.mul(c, b.index(chunk));
    return {c, start, b.min(b.add(start, b.index(chunk)), b.index(count_)), column, b.sub(b.index(width_), column)};
  }
  Value part_offset(Builder& b, Value number, int64_t which, Value column) const {
    return b.add(b.mul(b.add(b.mul(number, b.index(2)), b.index(which)), b.index(width_)), column);
  }

  void add_to_row(Builder& b, Ref rows, Value key, const Range& s, Value sum) const {
    b.when(b.lt(key, b.index(rows_)), [&] {
      const Value offset = b.add(b.mul(key, b.index(width_)), s.column),
                  before = b.cast(b.load(rows, offset, {panel_}, {1}, {s.left}), sum_);
      b.store(rows, b.cast(b.add(before, sum), to_), offset, {1}, {s.left});
    });
  }

  Kernel chunk_kernel() const {
    Builder b("scatter_chunks");
    const Ref list = b.param("keys", key_, false), where = b.param("places", uint32, false),
              updates = b.param("updates", from_, false), rows = b.param("rows", to_, true),
              kept = b.param("parts", sum_, true);
    const Range s = range_of(b);
    const Value zero = b.constant(sum_, Number::of_real(0), {panel_});
    b.loop(s.start, s.end, b.index(1), {zero, s.start}, [&](Value j, const std::vector<Value>& carried) {
      const Value key = key_at(b, list, j), next = b.add(j, b.index(1)),
                  position = b.cast(b.load(where, j, {}, {}), int64);
      const Value row =
          b.cast(b.load(updates, b.add(b.mul(position, b.index(width_)), s.column), {panel_}, {1}, {s.left}), sum_);
      const Value sum = b.add(carried[0], row), run_start = carried[1];
      const Value ends = b.scalar(ScalarOp::bit_or, {b.scalar(ScalarOp::le, {b.index(count_), next}),
                                                     none(b, equal(b, key_at(b, list, next), key))});
      const Value done = b.scalar(ScalarOp::bit_or, {ends, b.scalar(ScalarOp::le, {s.end, next})});
      const Value from_before = both(b, both(b, equal(b, run_start, s.start), b.lt(b.index(0), s.start)),
                                     equal(b, key_at(b, list, b.sub(s.start, b.index(1))), key));
      b.when(both(b, done, from_before),
             [&] { b.store(kept, sum, part_offset(b, s.number, 0, s.column), {1}, {s.left}); });
      b.when(both(b, both(b, done, none(b, from_before)), none(b, ends)),
             [&] { b.store(kept, sum, part_offset(b, s.number, 1, s.column), {1}, {s.left}); });
      b.when(both(b, both(b, done, none(b, from_before)), ends), [&] { add_to_row(b, rows, key, s, sum); });
      return std::vector<Value>{b.select(b.broadcast(done, {panel_}), zero, sum), b.select(done, next, run_start)};
    });
    return b.finish();
  }

  /// Adds up runs that begin in a chunk and extend past it.
  Kernel runs_kernel() const {
    Builder b("scatter_runs");
    const Ref list = b.param("keys", key_, false), rows = b.param("rows", to_, true),
              kept = b.param("parts", sum_, false);
    const Range s = range_of(b);
    const Value key = key_at(b, list, b.sub(s.end, b.index(1)));
    const Value goes_on = both(b, b.lt(s.end, b.index(count_)), equal(b, key_at(b, list, s.end), key));
    const Value from_before = both(b, both(b, equal(b, key_at(b, list, s.start), key), b.lt(b.index(0), s.start)),
                                   equal(b, key_at(b, list, b.sub(s.start, b.index(1))), key));
    b.when(both(b, goes_on, none(b, from_before)), [&] {
      // A binary search for the end of the run.
      const auto found =
          b.loop(b.index(0), b.index(static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(count_)))), b.index(1),
                 {s.end, b.index(count_)}, [&](Value, const std::vector<Value>& range) {
                   const Value open = b.lt(range[0], range[1]),
                               middle = b.scalar(ScalarOp::shr, {b.add(range[0], range[1]), b.index(1)});
                   const Value same = both(b, open, equal(b, key_at(b, list, middle), key));
                   return std::vector<Value>{b.select(same, b.add(middle, b.index(1)), range[0]),
                                             b.select(both(b, open, none(b, same)), middle, range[1])};
                 });
      const Value last = b.scalar(ScalarOp::floordiv, {b.sub(found[0], b.index(1)), b.index(chunk)});
      const Value first = b.load(kept, part_offset(b, s.number, 1, s.column), {panel_}, {1}, {s.left});
      const auto sum = b.loop(b.add(s.number, b.index(1)), b.add(last, b.index(1)), b.index(1), {first},
                              [&](Value c, const std::vector<Value>& carried) {
                                return std::vector<Value>{b.add(
                                    carried[0], b.load(kept, part_offset(b, c, 0, s.column), {panel_}, {1}, {s.left}))};
                              });
      add_to_row(b, rows, key, s, sum[0]);
    });
    return b.finish();
  }

  int64_t lanes_;
  Dtype ids_, from_, to_, key_ = uint32, sum_ = float32;
  int64_t count_ = 0, rows_ = 0, width_ = 0, panel_ = 1, panels_ = 1, chunks_ = 0;
  Routine out_;
};

}  // namespace

Routine scatter_routine(const CallDesc& desc, int64_t lanes) { return ScatterRoutine(desc, lanes).run(); }

}  // namespace weft::kernel
