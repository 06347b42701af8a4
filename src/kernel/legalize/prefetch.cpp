// Prefetches of rows: what a loop's iteration reads row by row, the next iteration reads from the next row on. The
// hardware follows a row, but not from one to the next.
#include <algorithm>
#include <optional>
#include <utility>

#include "kernel/legalize/iterations.h"

namespace weft::kernel {
namespace {

constexpr int64_t most_bytes = 64 << 10;  // of a row: a longer one would evict the row in use

class Prefetching {
 public:
  explicit Prefetching(const Kernel& kernel) : from_(kernel), made_(kernel), out_(kernel) {}

  Kernel run() {
    for (Inst& inst : out_.body.insts)
      if (inst.op == Op::loop && !inst.parallel) rows(inst);
    return std::move(out_);
  }

 private:
  bool is_read_only(Ref ref) const {
    return static_cast<size_t>(ref) < from_.params.size() && !from_.params[static_cast<size_t>(ref)].written;
  }

  std::optional<int64_t> number(Value v) const {
    const Inst* inst = made_.of(v);
    return inst && inst->op == Op::constant ? std::optional(inst->number.i) : std::nullopt;
  }

  /// Adds to the last of the inner loops that read a parameter prefetches of what the next iteration reads there.
  void rows(Inst& outer) {
    const Value variable = outer.blocks[0].arguments[0];
    std::vector<Inst>& body = outer.blocks[0].insts;
    for (Ref ref = 0; ref < static_cast<Ref>(from_.params.size()); ++ref) {
      if (!is_read_only(ref)) continue;
      const auto last = std::find_if(body.rbegin(), body.rend(), [&](const Inst& inner) {
        return inner.op == Op::loop && reads_row(inner, ref, variable);
      });
      if (last != body.rend()) extend(*last, ref, variable, outer.args[2]);
    }
  }

  bool is_row(const Inst& inst, Ref ref, Value variable) const {
    return inst.op == Op::load && inst.ref == ref && inst.type.rank() == 1 && inst.strides == std::vector<int64_t>{1} &&
           made_.depends(inst.args[0], variable) && made_.is_index_of(inst.args[0], variable);
  }

  bool reads_row(const Inst& inner, Ref ref, Value variable) const {
    const auto lo = number(inner.args[0]), hi = number(inner.args[1]), step = number(inner.args[2]);
    if (!lo || !hi || !step) return false;
    int64_t lanes = 0;
    for (const Inst& inst : inner.blocks[0].insts)
      if (is_row(inst, ref, variable)) lanes += inst.type.dims[0];
    return lanes > 0 && (*hi - *lo) / *step * lanes * from_.params[static_cast<size_t>(ref)].dtype.size() <= most_bytes;
  }

  void extend(Inst& inner, Ref ref, Value variable, Value step) {
    std::vector<Inst> body;
    std::optional<InstCopier> next;
    for (Inst& inst : inner.blocks[0].insts) {
      const bool row = is_row(inst, ref, variable);
      const Value at = row ? inst.args[0] : no_value;
      const int64_t lanes = row ? inst.type.dims[0] : 0;
      body.push_back(std::move(inst));
      if (!row) continue;
      if (!next) {
        const Value following = append_index(out_.types, body, ScalarOp::add, variable, step);
        next.emplace(out_.types, std::map<Value, Value>{{variable, following}});
      }
      Inst prefetch{.op = Op::prefetch, .args = {next->copy_index(made_, at, variable, body)}};
      prefetch.ref = ref, prefetch.number = Number::of_int(lanes);
      body.push_back(std::move(prefetch));
    }
    inner.blocks[0].insts = std::move(body);
  }

  const Kernel& from_;
  const Definitions made_;
  Kernel out_;
};

}  // namespace

Kernel with_prefetches(const Kernel& kernel) { return Prefetching(kernel).run(); }

}  // namespace weft::kernel
