// weft/ops/arithmetic.h: elementwise functions of floats (one for each row of kernel/operators that is an array
// function by the same name), parts of complex numbers, 8-bit floats.
#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;
using detail::floating_of;
using graph::Op;

array function(const char* op, Op node, const array& a, const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  return array(graph::unary(node, detail::to_dtype(a.value(), floating_of(a.dtype()))));
}

array function(const char* op, Op node, const array& a, const array& b, const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  const Dtype dtype = floating_of(promote_types(a.dtype(), b.dtype()));
  const auto v =
      detail::broadcast_together(op, {detail::to_dtype(a.value(), dtype), detail::to_dtype(b.value(), dtype)});
  return array(graph::binary(node, v[0], v[1]));
}

}  // namespace

#define WEFT_DEFINE(name) \
  array name(const array& a, StreamOrDevice s) { return function(#name, Op::name, a, s); }
WEFT_UNARY_FUNCTIONS(WEFT_DEFINE)
#undef WEFT_DEFINE
#define WEFT_DEFINE(name) \
  array name(const array& a, const array& b, StreamOrDevice s) { return function(#name, Op::name, a, b, s); }
WEFT_BINARY_FUNCTIONS(WEFT_DEFINE)
#undef WEFT_DEFINE

array reciprocal(const array& a, StreamOrDevice s) { return function("reciprocal", Op::recip, a, s); }
array trunc(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("trunc", s);
  if (is_complex(a.dtype()))
    throw_invalid("trunc", "complex numbers have no order to be rounded in, got " + describe(a));
  return is_float(a.dtype()) ? array(graph::unary(Op::trunc, a.value())) : a;
}

array real(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("real", s);
  return is_complex(a.dtype()) ? array(graph::unary(Op::real, a.value())) : a;
}
array imag(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("imag", s);
  return is_complex(a.dtype()) ? array(graph::unary(Op::imag, a.value())) : array(graph::zeros_like(a.value()));
}
array conjugate(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("conjugate", s);
  return is_complex(a.dtype()) ? array(graph::conjugate(a.value())) : a;
}

array to_fp8(const array& a, StreamOrDevice s) {
  const detail::OnStream on_stream("to_fp8", s);
  if (!is_float(a.dtype())) throw_invalid("to_fp8", "floats are needed, got " + describe(a));
  graph::Attrs attrs;
  attrs.dtype = uint8;
  return array(graph::make(Op::bitcast, {graph::cast(a.value(), float8_e4m3)}, std::move(attrs)));
}
array from_fp8(const array& a, Dtype dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("from_fp8", s);
  if (a.dtype() == float8_e4m3) return astype(a, dtype, s);
  if (a.dtype() != uint8) throw_invalid("from_fp8", "uint8 or float8_e4m3 is needed, got " + describe(a));
  graph::Attrs attrs;
  attrs.dtype = float8_e4m3;
  return array(graph::cast(graph::make(Op::bitcast, {a.value()}, std::move(attrs)), dtype));
}

}  // namespace weft
