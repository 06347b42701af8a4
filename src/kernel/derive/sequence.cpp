#include "kernel/derive/sequence.h"

#include "base/error.h"

namespace weft::kernel {

namespace {

/// Rewrites instructions for the joined kernel: values, references and symbols get their new ids.
class Moved {
 public:
  Moved(const Kernel& from, std::span<const Ref> params, size_t all_params, size_t locals, size_t values,
        size_t symbols)
      : own_params_(from.params.size()), params_(params), first_local_(all_params + locals),
        values_(static_cast<Value>(values)), symbols_(static_cast<Ref>(symbols)) {}

  Inst inst(Inst i) const {
    for (Value& v : i.args) v = value(v);
    for (Value& v : i.results) v = value(v);
    if (i.op == Op::symbol) i.ref += symbols_;
    else i.ref = ref(i.ref);
    i.left = ref(i.left), i.right = ref(i.right);
    for (Block& b : i.blocks) {
      for (Value& v : b.arguments) v = value(v);
      for (Inst& inner : b.insts) inner = inst(std::move(inner));
    }
    return i;
  }

 private:
  Value value(Value v) const { return v == no_value ? no_value : v + values_; }
  Ref ref(Ref r) const {
    if (r < 0) return r;
    const auto at = static_cast<size_t>(r);
    return at < own_params_ ? params_[at] : static_cast<Ref>(first_local_ + at - own_params_);
  }

  size_t own_params_;
  std::span<const Ref> params_;
  size_t first_local_;
  Value values_;
  Ref symbols_;
};

}  // namespace

Kernel in_sequence(const Kernel& first, const Kernel& second, std::span<const Ref> params) {
  check(!first.any_size && !second.any_size, "in_sequence", "a user's kernel is launched alone");
  Kernel both = first;
  both.name = first.name + "_" + second.name;
  both.body.insts.clear();
  for (size_t k = 0; k < second.params.size(); ++k) {
    const auto at = static_cast<size_t>(params[k]);
    if (at == both.params.size()) both.params.push_back(second.params[k]);
    Param& p = both.params.at(at);
    check(p.dtype == second.params[k].dtype, "in_sequence", "one parameter with two dtypes");
    p.written = p.written || second.params[k].written;
    p.constant = p.constant && second.params[k].constant;
  }
  std::vector<Ref> kept(first.params.size());
  for (size_t k = 0; k < kept.size(); ++k) kept[k] = static_cast<Ref>(k);
  const Moved a(first, kept, both.params.size(), 0, 0, 0),
      b(second, params, both.params.size(), first.locals.size(), first.types.size(), first.symbols.size());
  both.symbols.insert(both.symbols.end(), second.symbols.begin(), second.symbols.end());
  both.locals.insert(both.locals.end(), second.locals.begin(), second.locals.end());
  both.types.insert(both.types.end(), second.types.begin(), second.types.end());
  for (const Inst& i : first.body.insts)
    if (i.op != Op::yield) both.body.insts.push_back(a.inst(i));
  for (const Inst& i : second.body.insts) both.body.insts.push_back(b.inst(i));
  verify(both);
  return both;
}

}  // namespace weft::kernel
