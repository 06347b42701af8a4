#pragma once
// Library descriptors: work that a target may give to a vendor library instead of a generated kernel.
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "weft/dtype.h"
#include "weft/numerics.h"

namespace weft::kernel {

/// An activation after a matmul: max(x, 0); x Φ(x), and its approximation by tanh; 1 / (1 + exp(-x)); tanh x.
enum class Activation : uint8_t { none, relu, gelu, gelu_tanh, sigmoid, tanh };
const char* name(Activation activation);

/// An additional result of a matmul: Σ_k A[m,k] (m elements), Σ_k B[k,n] (n elements: a bias's gradient, computed with
/// that of the weight), or sums of each 128 rows of C (m/128 x n elements, float32; libraries only, without batch
/// axes).
enum class OperandSum : uint8_t { none, a, b, c };
inline constexpr int64_t rows_of_a_sum = 128;

/// The pre-activation Z = Σ_k A · B + bias as an array of C's shape, strides and dtype: an additional result
/// (`stored`), or an operand where C = (Σ_k A · B) · act'(Z), in the backward pass (`derivative`).
enum class PreActivation : uint8_t { none, stored, derivative };

/// C[b,m,n] = act(scales · Σ_k A[b,m,k] · B[b,k,n] (+ bias[n])) (+ residual[b,m,n]). Strides in elements; a batch axis
/// may have stride 0 in A or B.
struct DotDesc {
  Dtype a = float32, b = float32, c = float32;
  std::vector<int64_t> batch;  // extents of the batch axes
  int64_t m = 0, n = 0, k = 0;
  std::vector<int64_t> a_batch, b_batch, c_batch;  // strides of the batch axes
  int64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0, c_m = 0, c_n = 0;
  bool bias = false;  // operand 2: c's dtype, n elements, stride 1
  Activation activation = Activation::none;
  OperandSum sum =
      OperandSum::none;   // of A and B in float32 without batch axes only; operand before C and the argument: stride 1
  bool residual = false;  // operand after the bias: shape, strides and dtype of C
  PreActivation pre_activation =
      PreActivation::none;  // operand before C; of libraries only, and without residual and sums of A and B
  Numerics numerics{};      // what a library may give up
  int64_t scales = 0;  // of 8-bit floats: so many numbers (0 to 2) that the sums are multiplied with; operands before
                       // C, one float32 each; of libraries only
  double flops() const;
  Digest digest() const;
  std::string to_string() const;  // "dot f32 [12]x64x64x32 +bias"
  friend bool operator==(const DotDesc&, const DotDesc&) = default;
};

/// A routine on whole row-major arrays that is not generated code: a sort, a library's convolution or decomposition.
/// graph/calls/call.h defines the names and their integers. Symbolic axes have their bounds as extents.
struct CallDesc {
  struct Array {
    Dtype dtype = float32;
    std::vector<int64_t> extents;
    bool used = true;  // an unused result has memory too, but need not be computed
    friend bool operator==(const Array&, const Array&) = default;
  };
  std::string name;
  std::vector<Array> inputs, outputs;
  std::vector<int64_t> integers;
  Numerics numerics{};  // what a library may give up
  Digest digest() const;
  std::string to_string() const;  // "sort(1) f32[4,8] -> f32[4,8] u32[4,8]"
  friend bool operator==(const CallDesc&, const CallDesc&) = default;
};

}  // namespace weft::kernel
