// Division of tiles as C++ has it: of integers toward zero, with the remainder's sign that of the dividend.
#include <array>

#include "kernel/language/trace.h"
#include "weft/kernel/tile.h"

namespace weft::k::detail {
namespace {

/// Returns whether rounding down and toward zero are the same: both operands are known not to be negative.
bool never_negative(const Any& a, const Any& b, Line at) {
  Trace& t = Trace::current("division", at, true);
  if (is_unsigned(a.dtype(at))) return true;
  return t.known(t.value(a, at)).low >= 0 && t.known(t.value(b, at)).low >= 0;
}

}  // namespace

Any quotient(const Any& a, const Any& b, Line at) {
  if (is_float(a.dtype(at))) return apply("div", std::array{a, b}, at);
  if (never_negative(a, b, at)) return apply("floordiv", std::array{a, b}, at);
  // The magnitudes' quotient, with the sign of the product. A division by zero gives 0.
  const Any size = apply("floordiv", std::array{apply("abs", std::array{a}, at), apply("abs", std::array{b}, at)}, at);
  const Any sign = apply("mul", std::array{apply("sign", std::array{a}, at), apply("sign", std::array{b}, at)}, at);
  return apply("mul", std::array{sign, size}, at);
}

Any remainder(const Any& a, const Any& b, Line at) {
  if (is_float(a.dtype(at)) || never_negative(a, b, at)) return apply("mod", std::array{a, b}, at);
  return apply("sub", std::array{a, apply("mul", std::array{quotient(a, b, at), b}, at)}, at);
}

}  // namespace weft::k::detail
