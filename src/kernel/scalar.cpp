// Conversions between dtypes, and the identities of reducers. (What operators compute: kernel/operators.)
#include "kernel/scalar.h"

#include <cmath>

#include "base/half.h"
#include "kernel/reducer.h"

namespace weft::kernel {
namespace {

int64_t wrap(int64_t v, Dtype t) {
  switch (t.val()) {
    case Dtype::Val::bool_: return v != 0;
    case Dtype::Val::uint8: return static_cast<uint8_t>(v);
    case Dtype::Val::uint16: return static_cast<uint16_t>(v);
    case Dtype::Val::uint32: return static_cast<uint32_t>(v);
    case Dtype::Val::int8: return static_cast<int8_t>(v);
    case Dtype::Val::int16: return static_cast<int16_t>(v);
    case Dtype::Val::int32: return static_cast<int32_t>(v);
    default: return v;
  }
}

// float16 and bfloat16 are rounded from float32: their arithmetic is float32 arithmetic with a rounding after each
// operation.
double round_float(double v, Dtype t) {
  if (t == float64) return v;
  const float f = static_cast<float>(v);
  if (is_low_float(t)) return low_to_float(float_to_low(f, t), t);
  return f;
}

int64_t saturate(double v, Dtype t) {
  if (std::isnan(v)) return 0;
  v = std::trunc(v);
  const int bits = t.size() * 8 - (is_signed(t) ? 1 : 0);
  const double end = std::ldexp(1.0, bits);  // one past the largest value
  if (v >= end) return bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
  if (is_unsigned(t)) return v <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(v));
  return v <= -end ? static_cast<int64_t>(~uint64_t{0} << bits) : static_cast<int64_t>(v);
}

}  // namespace

Number reference_cast(Number v, Dtype from, Dtype to) {
  if (is_float(from)) {
    if (is_float(to)) return Number::of_real(round_float(v.real(), to));
    return Number::of_int(to == bool_ ? v.real() != 0 : saturate(v.real(), to));
  }
  if (!is_float(to)) return Number::of_int(wrap(v.i, to));
  // Rounds once, directly from the integer.
  const bool wide = from == uint64;
  if (to == float64)
    return Number::of_real(wide ? static_cast<double>(static_cast<uint64_t>(v.i)) : static_cast<double>(v.i));
  const float f = wide ? static_cast<float>(static_cast<uint64_t>(v.i)) : static_cast<float>(v.i);
  return Number::of_real(round_float(f, to));
}

Number round_to(Number v, Dtype t) { return reference_cast(v, v.integral ? int64 : float64, t); }

Number identity(Reducer r, Dtype t, size_t component) {
  const double v = info(r).components[component].identity;
  return t == bool_ ? Number::of_int(v > 0) : reference_cast(Number::of_real(v), float64, t);
}

Number constant_of(Reducer r, size_t component, Operand which, Dtype t) {
  if (which == identity_here) return identity(r, t, component);
  return reference_cast(Number::of_real(which == one_here ? 1 : infinite), float64, t);
}

double cost_of_frame(Reducer r) {
  double total = 0;
  for (const Component& component : info(r).components)
    for (const Operation& operation : component.align) total += info(operation.op).flops;
  return total;
}

}  // namespace weft::kernel
