// Overlapped iterations: { first; A; middle; B } for each row becomes first; A; middle; { first; A with the previous
// row's B; middle } for each further row; B. B has streaming stores alone; A is the last loop before it that
// goes over the same elements. Of what B reads, A's iteration k writes nothing but the elements that B's iteration k
// reads, so that B's iteration k of the previous row goes before A's.
#include <algorithm>
#include <set>
#include <utility>

#include "kernel/legalize/iterations.h"
#include "kernel/op_info.h"
#include "kernel/rules.h"

namespace weft::kernel {
namespace {

class Overlapping {
 public:
  explicit Overlapping(const Kernel& kernel) : from_(kernel), made_(kernel), out_(kernel) {}

  Kernel run() {
    std::vector<Inst> insts;
    for (const Inst& inst : from_.body.insts) {
      if (is_plain_loop(inst) && plan(inst)) overlap(inst, insts);
      else insts.push_back(inst);
    }
    out_.body.insts = std::move(insts);
    return std::move(out_);
  }

 private:
  bool is_param(Ref ref) const { return static_cast<size_t>(ref) < from_.params.size(); }

  /// Returns whether a loop's iterations have no effects but stores, all of which `allowed` takes.
  static bool only_stores(const Inst& loop, const std::function<bool(const Inst&)>& allowed) {
    const std::vector<Inst>& body = loop.blocks[0].insts;
    return std::all_of(body.begin(), body.end(), [&](const Inst& inst) {
      switch (inst.op) {
        case Op::constant:
        case Op::arange:
        case Op::scalar:
        case Op::cast:
        case Op::bitcast:
        case Op::broadcast:
        case Op::extract:
        case Op::load:
        case Op::prefetch:
        case Op::yield: return true;
        case Op::store: return allowed(inst);
        default: return false;
      }
    });
  }

  /// Finds A and B of a loop, as positions in its body.
  bool plan(const Inst& outer) {
    const std::vector<Inst>& body = outer.blocks[0].insts;
    const Inst* step = made_.of(outer.args[2]);
    if (body.size() < 3 || !step || step->op != Op::constant || step->number.i != 1) return false;
    last_ = body.size() - 2;
    const Inst& b = body[last_];
    if (!is_plain_loop(b) || !stores_results(b)) return false;
    for (first_ = last_; first_-- > 0;) {
      const Inst& a = body[first_];
      const bool same = is_plain_loop(a) && std::equal(a.args.begin(), a.args.end(), b.args.begin(),
                                                       [&](Value x, Value y) { return made_.equal(x, y); });
      if (same) return only_stores(a, [&](const Inst& s) { return !is_param(s.ref); }) && leaves(outer, a, b);
    }
    return false;
  }

  /// Returns whether a loop has streaming stores alone, of results that nobody in the kernel reads.
  bool stores_results(const Inst& b) {
    std::set<Ref> read;
    walk(from_.body, [&](const Inst& inst) {
      if (inst.ref >= 0 && info(inst.op).access != Access::none && inst.op != Op::store) read.insert(inst.ref);
    });
    return only_stores(b, [&](const Inst& s) { return is_param(s.ref) && s.streaming && !read.contains(s.ref); });
  }

  /// Returns whether nothing but B stores to what B stores to, and whether of the local buffers that B reads A alone
  /// writes, at each k, the elements that B reads at k.
  bool leaves(const Inst& outer, const Inst& a, const Inst& b) const {
    const std::map<Value, Value> replaced{{b.blocks[0].arguments[0], a.blocks[0].arguments[0]}};
    bool fits = true;
    walk(outer.blocks[0], [&](const Inst& write) {
      const Access access = info(write.op).access;
      if (access != Access::writes && access != Access::updates) return;
      for (const Inst& inst : b.blocks[0].insts) {
        if (inst.ref != write.ref || &inst == &write || inst.op == Op::prefetch) continue;
        if (inst.op == Op::store) fits = fits && within(b, write);
        if (inst.op == Op::load) fits = fits && within(a, write) && same_elements(write, inst, replaced);
      }
    });
    return fits;
  }

  static bool within(const Inst& loop, const Inst& inst) {
    const std::vector<Inst>& body = loop.blocks[0].insts;
    return !body.empty() && &inst >= body.data() && &inst < body.data() + body.size();
  }

  bool same_elements(const Inst& store, const Inst& load, const std::map<Value, Value>& replaced) const {
    const auto unlimited = [](const Inst& inst, size_t first) {
      return std::all_of(inst.args.begin() + static_cast<std::ptrdiff_t>(first), inst.args.end(),
                         [](Value v) { return v == no_value; });
    };
    return store.op == Op::store && unlimited(store, 2) && unlimited(load, 1) && store.strides == load.strides &&
           type(store.args[0]).dims == load.type.dims && made_.equal(store.args[1], load.args[0], replaced);
  }

  /// Appends a loop with overlapped iterations.
  void overlap(const Inst& outer, std::vector<Inst>& to) {
    const Block& body = outer.blocks[0];
    const Value variable = body.arguments[0], lo = outer.args[0], hi = outer.args[1], one = outer.args[2];
    find_carried(body);
    Inst guard{.op = Op::when, .args = {append_index(out_.types, to, ScalarOp::lt, lo, hi)}};
    std::vector<Inst> insts;
    InstCopier begin(out_.types, {{variable, lo}});
    for (size_t k = 0; k < last_; ++k) insts.push_back(begin.copy(body.insts[k]));

    Inst loop{.op = Op::loop, .args = {append_index(out_.types, insts, ScalarOp::add, lo, one), hi, one}};
    loop.line = outer.line;
    for (const Value v : carried_) loop.args.push_back(begin.now(v)), loop.results.push_back(fresh(v));
    loop.blocks = {row(body, one)};
    const std::vector<Value> results = loop.results;
    insts.push_back(std::move(loop));

    const Value last = append_index(out_.types, insts, ScalarOp::sub, hi, one);
    InstCopier end = previous(body, last, results, insts);
    insts.push_back(end.copy(body.insts[last_]));
    insts.push_back({.op = Op::yield});
    guard.blocks = {{{}, std::move(insts)}};
    to.push_back(std::move(guard));
  }

  /// Returns the body of the loop over further rows.
  Block row(const Block& body, Value one) {
    Block out;
    const Value variable = body.arguments[0];
    out.arguments = {fresh(variable)};
    for (const Value v : carried_) out.arguments.push_back(fresh(v));
    InstCopier own(out_.types, {{variable, out.arguments[0]}});
    for (size_t k = 0; k < first_; ++k) out.insts.push_back(own.copy(body.insts[k]));
    const Value before = append_index(out_.types, out.insts, ScalarOp::sub, out.arguments[0], one);
    InstCopier earlier = previous(body, before, {out.arguments.begin() + 1, out.arguments.end()}, out.insts);
    const Inst &a = body.insts[first_], &b = body.insts[last_];
    Inst both = own.copy(a);
    earlier.replace(b.blocks[0].arguments[0], both.blocks[0].arguments[0]);
    std::vector<Inst> stores = earlier.copy(b.blocks[0]).insts;
    stores.pop_back();  // its yield
    both.blocks[0].insts.insert(both.blocks[0].insts.begin(), std::make_move_iterator(stores.begin()),
                                std::make_move_iterator(stores.end()));
    out.insts.push_back(std::move(both));
    for (size_t k = first_ + 1; k < last_; ++k) out.insts.push_back(own.copy(body.insts[k]));
    Inst yield{.op = Op::yield};
    for (const Value v : carried_) yield.args.push_back(own.now(v));
    out.insts.push_back(std::move(yield));
    return out;
  }

  /// Finds what B reads of its row: what is computed from the row's number alone is computed again, the rest carried.
  void find_carried(const Block& body) {
    const Value variable = body.arguments[0];
    inside_ = {variable};
    for (const Inst& inst : body.insts) inside_.insert(inst.results.begin(), inst.results.end());
    carried_.clear(), again_.clear();
    std::set<Value> seen;
    for (const Value v : reads(body.insts[last_])) {
      if (v == variable || !inside_.contains(v) || !seen.insert(v).second) continue;
      (is_index(v, variable) ? again_ : carried_).push_back(v);
    }
  }

  /// Returns whether a value of the body is computed from the row's number and constants alone.
  bool is_index(Value v, Value variable) const {
    if (v == variable || !inside_.contains(v)) return true;
    const Inst& inst = *made_.of(v);
    if (inst.op == Op::constant) return true;
    return inst.op == Op::scalar && inst.type.rank() == 0 && is_integer(inst.type.dtype) &&
           std::all_of(inst.args.begin(), inst.args.end(), [&](Value arg) { return is_index(arg, variable); });
  }

  /// Returns what copies B for another row, whose number and whose values are given.
  InstCopier previous(const Block& body, Value number, const std::vector<Value>& values, std::vector<Inst>& to) {
    const Value variable = body.arguments[0];
    InstCopier out(out_.types, {{variable, number}});
    for (size_t k = 0; k < carried_.size(); ++k) out.replace(carried_[k], values[k]);
    for (const Value v : again_) again(out, v, to);
    return out;
  }

  /// Copies what an index is computed from within the loop.
  void again(InstCopier& out, Value v, std::vector<Inst>& to) {
    const Inst* inst = made_.of(v);
    if (out.now(v) != v || !inst || !inside_.contains(v)) return;
    for (const Value arg : inst->args)
      if (arg != no_value) again(out, arg, to);
    to.push_back(out.copy(*inst));
  }

  Value fresh(Value like) {
    const auto v = static_cast<Value>(out_.types.size());
    out_.types.push_back(Type(out_.types[static_cast<size_t>(like)]));
    return v;
  }
  const Type& type(Value v) const { return from_.types[static_cast<size_t>(v)]; }

  const Kernel& from_;
  const Definitions made_;
  Kernel out_;
  size_t first_ = 0, last_ = 0;  // A and B in the body
  std::set<Value> inside_;       // values of the body
  std::vector<Value> carried_;   // what B reads and the loop carries
  std::vector<Value> again_;     // what B reads and is computed again
};

}  // namespace

Kernel with_overlapped_stores(const Kernel& kernel) { return Overlapping(kernel).run(); }

}  // namespace weft::kernel
