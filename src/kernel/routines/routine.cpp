#include "kernel/routines/routine.h"

#include "kernel/routines/routine_keys.h"
#include "kernel/routines/sort_key.h"

namespace weft::kernel {

Dtype bits_of(Dtype t) {
  switch (t.size()) {
    case 1: return uint8;
    case 2: return uint16;
    case 4: return uint32;
    default: return uint64;
  }
}

Value splat_bits(Builder& b, Dtype t, uint64_t v, int64_t lanes) {
  return b.constant(t, Number::of_int(static_cast<int64_t>(v)), {lanes});
}

Value keys_of(Builder& b, Value bits, Dtype t) {
  const KeyRule rule = key_rule(t);
  const Dtype u = bits_of(t);
  const int64_t lanes = b.type(bits).dims[0];
  const uint64_t ones = t.size() == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * t.size())) - 1;
  const auto number = [&](uint64_t v) { return splat_bits(b, u, v, lanes); };
  if (rule.sign == 0) return bits;
  if (rule.infinity == 0) return b.scalar(ScalarOp::bit_xor, {bits, number(rule.sign)});
  const Value size = b.scalar(ScalarOp::bit_and, {bits, number(ones & ~rule.sign)});
  const Value negative = b.scalar(ScalarOp::ne, {b.scalar(ScalarOp::bit_and, {bits, number(rule.sign)}), number(0)});
  Value key = b.select(negative, b.scalar(ScalarOp::bit_xor, {bits, number(ones)}),
                       b.scalar(ScalarOp::bit_or, {bits, number(rule.sign)}));
  key = b.select(b.scalar(ScalarOp::eq, {size, number(0)}), number(rule.sign), key);
  return b.select(b.lt(number(rule.infinity), size), number(ones), key);
}

std::optional<Routine> routine_for(const CallDesc& desc, int64_t lanes) {
  if (desc.name == "sort") return sort_routine(desc, lanes);
  if (desc.name == "searchsorted") return search_routine(desc, lanes);
  if (desc.name == "scatter_rows") return scatter_routine(desc, lanes);
  return std::nullopt;
}

}  // namespace weft::kernel
