#include "kernel/derive/activity.h"

#include "kernel/derive/copier.h"
#include "kernel/derive/scalar_rules.h"
#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

class ActivityOf {
 public:
  ActivityOf(const Kernel& kernel, const std::vector<char>& seeds) : kernel_(kernel) {
    out_.values.assign(kernel.types.size(), 0);
    out_.refs = seeds;
    out_.refs.resize(kernel.params.size() + kernel.locals.size(), 0);
  }

  Activity run() {
    do {
      changed_ = false;
      each_inst(kernel_.body, [&](const Inst& inst) { visit(inst); });
    } while (changed_);
    return std::move(out_);
  }

 private:
  void mark(Value v, bool active) {
    const auto k = static_cast<size_t>(v);
    if (!active || out_.values[k] || !is_float(kernel_.types[k].dtype)) return;
    out_.values[k] = 1;
    changed_ = true;
  }
  void mark_ref(Ref ref, bool active) {
    if (!active || out_.holds(ref)) return;
    out_.refs[static_cast<size_t>(ref)] = 1;
    changed_ = true;
  }
  bool any(const std::vector<Value>& list) const {
    for (const Value v : list)
      if (out_(v)) return true;
    return false;
  }
  const std::vector<Value>& yielded(const Block& b) const { return b.insts.back().args; }

  /// Of a loop: `first` is the argument that is carried first, `before` the block arguments in front of the carried.
  void carried(const Inst& inst, size_t first, size_t before) {
    for (size_t k = 0; k < inst.results.size(); ++k) {
      const Block& body = inst.blocks.back();
      const bool active = out_(inst.args[first + k]) || out_(yielded(body)[k]);
      for (const Block& b : inst.blocks) mark(b.arguments[before + k], active);
      mark(inst.results[k], active);
    }
  }

  void visit(const Inst& inst) {
    switch (info(inst.op).access) {
      case Access::none: break;
      case Access::reads:
        if (!inst.results.empty()) mark(inst.results[0], out_.holds(inst.ref));
        return;
      default:
        mark_ref(inst.ref, any(inst.args));
        if (!inst.results.empty()) mark(inst.results[0], out_.holds(inst.ref));
        return;
    }
    switch (inst.op) {
      case Op::loop: return carried(inst, 3, 1);
      case Op::while_loop: return carried(inst, 0, 0);
      case Op::when:
        for (size_t k = 0; k < inst.results.size(); ++k)
          mark(inst.results[k], out_(inst.args[k + 1]) || out_(yielded(inst.blocks[0])[k]));
        return;
      case Op::branch:
        for (size_t k = 0; k < inst.results.size(); ++k)
          mark(inst.results[k], out_(yielded(inst.blocks[0])[k]) || out_(yielded(inst.blocks[1])[k]));
        return;
      case Op::scalar:
        if (is_smooth(inst.scalar_op)) mark(inst.results[0], any(inst.args));
        return;
      case Op::sort:
        for (size_t k = 0; k < inst.results.size(); ++k) mark(inst.results[k], out_(inst.args[k]));
        return;
      default:
        for (const Value v : inst.results) mark(v, any(inst.args));
    }
  }

  const Kernel& kernel_;
  Activity out_;
  bool changed_ = false;
};

/// Writes reductions and scans by a function, and those whose derivative is not a sum's or an extreme's, as steps.
class Steps : public Copier {
 public:
  Steps(const Kernel& kernel, const Activity& active) : Copier(kernel, kernel.name), active_(active) {}

  Kernel run() {
    for (const Param& p : from_.params) refs_.push_back(b_.param(p.name, p.dtype, p.written));
    return copied();
  }

 private:
  using Tiles = std::vector<Value>;

  bool is_step(const Inst& inst) const {
    if (inst.op != Op::reduce && inst.op != Op::scan) return false;
    bool any = false;
    for (const Value v : inst.results) any = any || active_(v);
    if (!any) return false;
    if (!inst.blocks.empty() || inst.reducer == Reducer::prod) return true;
    return inst.op == Op::scan && inst.reducer != Reducer::sum;
  }

  void visit(const Inst& inst) override {
    if (!is_step(inst)) return copy(inst);
    const Tiles tiles = now(inst.args);
    set(inst.results, inst.op == Op::reduce ? reduced(inst, tiles) : scanned(inst, tiles));
  }

  /// Returns `count` elements of each tile along an axis, from `first` on.
  Tiles part(const Tiles& tiles, size_t axis, int64_t first, int64_t count) {
    Tiles out;
    for (const Value v : tiles) {
      std::vector<int64_t> dims = b_.type(v).dims, starts(dims.size(), 0);
      starts[axis] = first;
      dims[axis] = count;
      out.push_back(b_.slice(v, starts, dims));
    }
    return out;
  }
  Tiles joined(const Tiles& a, const Tiles& b, size_t axis) {
    Tiles out;
    for (size_t k = 0; k < a.size(); ++k) out.push_back(b_.cat({a[k], b[k]}, static_cast<int>(axis)));
    return out;
  }

  /// Combines tiles element by element: by the reducer, or by the block, whose scalars become tiles.
  Tiles combined(const Inst& inst, const Tiles& low, const Tiles& high) {
    if (inst.blocks.empty()) return {b_.scalar(combine(inst.reducer), {low[0], high[0]})};
    const Block& body = inst.blocks[0];
    Tiles both = low;
    both.insert(both.end(), high.begin(), high.end());
    set(body.arguments, both);
    for (const Inst& inner : body.insts) {
      if (inner.op == Op::yield) {
        Tiles out = now(inner.args);
        for (Value& v : out) v = b_.broadcast(v, b_.type(low[0]).dims);
        return out;
      }
      at(inner);
      copy(inner);
    }
    return {};
  }

  Tiles reduced(const Inst& inst, Tiles tiles) {
    const auto axis = static_cast<size_t>(inst.axis);
    int64_t n = type(inst.args[0]).dims[axis];
    int64_t power = 1;
    while (power * 2 <= n) power *= 2;
    if (power < n) {
      const Tiles first = combined(inst, part(tiles, axis, 0, n - power), part(tiles, axis, power, n - power));
      tiles = n - power < power ? joined(first, part(tiles, axis, n - power, 2 * power - n), axis) : first;
    }
    for (n = power / 2; n >= 1; n /= 2) tiles = combined(inst, part(tiles, axis, 0, n), part(tiles, axis, n, n));
    for (size_t k = 0; k < tiles.size(); ++k) tiles[k] = b_.reshape(tiles[k], type(inst.results[k]).dims);
    return tiles;
  }

  Tiles scanned(const Inst& inst, Tiles tiles) {
    const auto axis = static_cast<size_t>(inst.axis);
    const int64_t n = type(inst.args[0]).dims[axis];
    for (int64_t d = 1; d < n; d *= 2) {
      const Tiles before = part(tiles, axis, 0, n - d), behind = part(tiles, axis, d, n - d);
      if (!inst.reverse) tiles = joined(part(tiles, axis, 0, d), combined(inst, before, behind), axis);
      else tiles = joined(combined(inst, behind, before), part(tiles, axis, n - d, d), axis);
    }
    return tiles;
  }

  const Activity& active_;
};

}  // namespace

Activity activity_of(const Kernel& kernel, const std::vector<char>& seeds) { return ActivityOf(kernel, seeds).run(); }

Kernel with_steps(const Kernel& kernel, const Activity& active) { return Steps(kernel, active).run(); }

}  // namespace weft::kernel
