#pragma once
#include <string>

#include "weft/api.h"
#include "weft/dtype.h"

namespace weft::nn {

/// In which numbers a model is kept and computes. Norms, softmax and losses compute in float32 inside, whatever comes
/// in and goes out; sums (of products, of the gradients of biases and norms) are float32's too.
///
///     nn::Precision{}                                                                  // float32 throughout
///     nn::mixed(bfloat16) // products in bfloat16, everything that is kept in float32
///     nn::Precision{.compute = bfloat16, .float8 = true} // the linear layers of blocks in 8-bit floats, everything
///       else in bfloat16
///     nn::Precision{.parameters = bfloat16, .compute = bfloat16, .residual = bfloat16} // half the bytes of
///       parameters, gradients and activations
///
/// What an optimizer makes of parameters of 16 bits (float32 masters, or stochastic rounding) is its own affair:
/// optim::Rounding. float16 overflows at 65504: train it with an optim::LossScale.
struct Precision {
  Dtype parameters = float32;  ///< what parameters are kept in, and their gradients come in
  Dtype compute = float32;     ///< of the operands and results of products and attention
  Dtype residual = float32;    ///< of the sum that blocks add to
  bool float8 = false;  ///< products of the blocks' linear layers have operands of 8 bits, where their sizes allow it
                        ///< (Linear::float8); everything else is as `compute` says
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// Products in `compute`; parameters and residual stream in float32 (float64 where products are).
WEFT_API Precision mixed(Dtype compute);
/// "bfloat16", or "bfloat16, parameters float32, residual float32" where they differ.
WEFT_API std::string to_string(const Precision& precision);
/// Throws std::invalid_argument "[op] …" where one of the dtypes is not floating, or products would be wider than what
/// they are added to.
WEFT_API void check(const char* op, const Precision& precision);

}  // namespace weft::nn
