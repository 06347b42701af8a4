#pragma once
#include <string>

#include "weft/api.h"
#include "weft/dtype.h"

namespace weft::nn {

/// The dtypes in which a model keeps its parameters and computes. Norms, softmax and losses compute in float32 inside,
/// whatever their inputs and outputs are; sums (of matrix products, of the gradients of biases and norms) are float32
/// too.
///
///     const nn::Precision single{};                    // float32 throughout
///     const nn::Precision half = nn::mixed(bfloat16);  // products in bfloat16, everything that is kept in float32
///     const nn::Precision eight{.compute = bfloat16, .float8 = true};  // linear layers of blocks in 8-bit floats
///     const nn::Precision all{.parameters = bfloat16, .compute = bfloat16, .residual = bfloat16};  // half the bytes
///
/// How an optimizer updates parameters of 16 bits (float32 masters, or stochastic rounding) is its own setting:
/// optim::Rounding. float16 overflows at 65504: train it with an optim::LossScale.
struct Precision {
  Dtype parameters = float32;  ///< of parameters and their gradients
  Dtype compute = float32;     ///< of the operands and results of matrix products and attention
  Dtype residual = float32;    ///< of the sum that blocks add to
  /// Whether matrix products of the blocks' linear layers have 8-bit operands where their sizes allow it
  /// (Linear::float8); everything else is as `compute` says.
  bool float8 = false;
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// Returns matrix products in `compute`; parameters and residual stream in float32 (float64 where products are).
WEFT_API Precision mixed(Dtype compute);
/// Returns "bfloat16", or "bfloat16, parameters float32, residual float32" where they differ.
WEFT_API std::string to_string(const Precision& precision);
/// Throws std::invalid_argument "[op] …" where one of the dtypes is not floating, or products would be wider than what
/// they are added to.
WEFT_API void check(const char* op, const Precision& precision);

}  // namespace weft::nn
