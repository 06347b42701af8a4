#include "kernel/derive/rows.h"

#include <algorithm>

#include "kernel/derive/copier.h"
#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

constexpr int64_t most_joined = 16, least_joined = 4;
constexpr int64_t least_programs = 64;  // that are left, for several threads

class Joining : public Copier {
 public:
  explicit Joining(const Kernel& kernel) : Copier(kernel, kernel.name) {}

  Kernel run(int64_t count, const Length& programs) {
    for (const Param& p : from_.params) refs_.push_back(b_.param(p.name, p.dtype, p.written));
    declare_locals();
    const Value first = b_.mul(b_.program_id(), b_.index(count));
    Value end = b_.add(first, b_.index(count));
    const bool whole = programs.is_number() && programs.value({}) % count == 0;
    if (!whole) end = b_.min(end, length(programs));
    b_.loop(first, end, b_.index(1), {}, [&](Value program, const std::vector<Value>&) {
      program_ = program;
      block(from_.body);
      return std::vector<Value>{};
    });
    Kernel out = b_.finish();
    for (size_t k = 0; k < out.params.size(); ++k) out.params[k].constant = from_.params[k].constant;
    out.any_size = from_.any_size;
    out.launch = from_.launch;
    return out;
  }
};

bool is_plain(const Inst& inst) {
  switch (inst.op) {
    case Op::constant:
    case Op::program_id:
    case Op::symbol:
    case Op::arange:
    case Op::scalar:
    case Op::cast:
    case Op::bitcast:
    case Op::broadcast:
    case Op::reshape:
    case Op::reduce:
    case Op::load:
    case Op::store:
    case Op::yield: return true;
    default: return false;
  }
}

}  // namespace

int64_t programs_to_join(const Kernel& kernel, int64_t programs) {
  const std::vector<Inst>& body = kernel.body.insts;
  const auto any = [&](auto&& f) { return std::any_of(body.begin(), body.end(), f); };
  const bool plain = std::all_of(body.begin(), body.end(), is_plain) && kernel.locals.empty();
  if (!plain || !any([](const Inst& inst) { return inst.op == Op::reduce; }) ||
      !any([](const Inst& inst) { return inst.op == Op::store && inst.streaming; }))
    return 1;
  const int64_t count = std::min(most_joined, programs / least_programs);
  return count < least_joined ? 1 : count;
}

Kernel with_joined_programs(const Kernel& kernel, int64_t count, const Length& programs) {
  return Joining(kernel).run(count, programs);
}

}  // namespace weft::kernel
