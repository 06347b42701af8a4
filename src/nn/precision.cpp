#include "weft/nn/precision.h"

#include "base/error.h"

namespace weft::nn {

Precision mixed(Dtype compute) {
  const Dtype kept = compute == float64 ? float64 : float32;
  return {.parameters = kept, .compute = compute, .residual = kept};
}

std::string to_string(const Precision& p) {
  std::string text = dtype_name(p.compute);
  if (p.parameters != p.compute) text += std::string(", parameters ") + dtype_name(p.parameters);
  if (p.residual != p.compute) text += std::string(", residual ") + dtype_name(p.residual);
  if (p.float8) text += ", linear layers float8";
  return text;
}

void check(const char* op, const Precision& p) {
  const auto floating = [&](const char* what, Dtype t) {
    if (t != float16 && t != bfloat16 && t != float32 && t != float64)
      throw_invalid(op, std::string("the dtype of ") + what + " must be float16, bfloat16, float32 or float64; it is " +
                            dtype_name(t));
  };
  floating("the parameters", p.parameters);
  floating("matmuls", p.compute);
  floating("the residual stream", p.residual);
  if (p.float8 && p.compute == float64)
    throw_invalid(op, "matmuls in 8-bit floats go with a compute dtype of 16 or 32 bits, not float64");
  if (promote_types(p.residual, p.compute) != p.residual)
    throw_invalid(op, std::string("matmuls in ") + dtype_name(p.compute) + " cannot be added to a residual stream in " +
                          dtype_name(p.residual) + ": take float32 for it, or " + dtype_name(p.compute));
}

}  // namespace weft::nn
