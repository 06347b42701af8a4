// The call `scatter_rows` as tile kernels: adds up rows by id (the gradient of an embedding), for any number of
// duplicates. Ids are sorted together with the rows' positions; sorted rows are added up as sorted_rows.h says.
#include <algorithm>
#include <span>

#include "kernel/routines/routine.h"
#include "kernel/routines/sorted_rows.h"

namespace weft::kernel {

namespace {

class ScatterRoutine {
 public:
  ScatterRoutine(const CallDesc& desc, int64_t lanes)
      : lanes_(lanes), sizes_{desc.inputs[0].extents[0], desc.outputs[0].extents[0], desc.outputs[0].extents[1],
                              desc.outputs[0].dtype, lanes},
        ids_(desc.inputs[0].dtype), from_(desc.inputs[1].dtype), key_(scatter_key(sizes_.rows)) {}

  Routine run() {
    const int64_t count = sizes_.count;
    if (count == 0 || sizes_.rows == 0 || sizes_.width == 0) return {};
    // Operands 0, 1, 2; then ids as keys, sorted keys, positions, partial sums, scratch of the sort.
    out_.scratch = {count * key_.size(), count * key_.size(), count * 4, sizes_.parts() * sizes_.sum().size()};
    launch(keys_kernel(), {0, keys}, (count + tile() - 1) / tile());
    const CallDesc sort{"sort", {{key_, {count}}}, {{key_, {count}}, {uint32, {count}}}, {0}};
    add(sort_routine(sort, lanes_), {keys, sorted, positions});
    launch(chunk_kernel(), {sorted, positions, 1, 2, parts}, sizes_.grid());
    launch(runs_kernel(), {sorted, 2, parts}, sizes_.grid());
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
    const Value first = b.mul(b.program_id(), b.index(lanes)), left = b.sub(b.index(sizes_.count), first);
    const auto splat = [&](int64_t v) { return b.broadcast(b.index(v), {lanes}); };
    Value id = b.cast(b.load(in, first, {lanes}, {1}, {left}), int64);
    if (!is_unsigned(ids_)) id = b.select(b.lt(id, splat(0)), b.add(id, splat(sizes_.rows)), id);
    const Value inside =
        b.scalar(ScalarOp::bit_and, {b.scalar(ScalarOp::le, {splat(0), id}), b.lt(id, splat(sizes_.rows))});
    b.store(out, b.cast(b.select(inside, id, splat(sizes_.rows)), key_), first, {1}, {left});
    return b.finish();
  }

  SortedRowsProgram::Key key_of(Builder& b, Ref list) const {
    return [&b, list](Value at) { return b.cast(b.load(list, at, {}, {}), int64); };
  }

  Kernel chunk_kernel() const {
    Builder b("scatter_chunks");
    const Ref list = b.param("keys", key_, false), where = b.param("positions", uint32, false),
              updates = b.param("updates", from_, false), rows = b.param("rows", sizes_.dtype, true),
              kept = b.param("parts", sizes_.sum(), true);
    SortedRowsProgram program(b, sizes_, key_of(b, list));
    program.add_chunk(rows, kept, [&](std::span<const Value> at) {
      std::vector<Value> numbers, loaded;
      for (const Value v : at) numbers.push_back(b.cast(b.load(where, v, {}, {}), int64));
      for (const Value v : numbers) {
        const Value offset = b.add(b.mul(v, b.index(sizes_.width)), program.column());
        loaded.push_back(b.cast(b.load(updates, offset, {sizes_.panel()}, {1}, {program.left()}), sizes_.sum()));
      }
      return loaded;
    });
    return b.finish();
  }

  Kernel runs_kernel() const {
    Builder b("scatter_runs");
    const Ref list = b.param("keys", key_, false), rows = b.param("rows", sizes_.dtype, true),
              kept = b.param("parts", sizes_.sum(), false);
    SortedRowsProgram(b, sizes_, key_of(b, list)).add_run(rows, kept);
    return b.finish();
  }

  int64_t lanes_;
  SortedRows sizes_;
  Dtype ids_, from_, key_;
  Routine out_;
};

}  // namespace

Dtype scatter_key(int64_t rows) { return rows < 0xffff ? uint16 : uint32; }

Routine scatter_routine(const CallDesc& desc, int64_t lanes) { return ScatterRoutine(desc, lanes).run(); }

}  // namespace weft::kernel
