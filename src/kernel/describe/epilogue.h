#pragma once
// What a kernel computes from each element of a matmul's result before it stores it (the epilogue), or to make an
// element of an operand as it loads it (a prologue): a small expression in SSA form.
// Generated kernels print it (compiler/lower/dot); for a library it is matched with the library's own list
// (compiler/region/library_epilogue.h).
//
//   v0 = dot                                     Σ_k A[m,k] · B[k,n]
//   v1 = operand 0   strides m 0, n 1            a row vector: the bias
//   v2 = add v0 v1
//   v3 = sigmoid v2
//   v4 = mul v2 v3                               silu
//   C = v4, also stored: v2
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/number.h"
#include "kernel/jump.h"
#include "kernel/scalar.h"
#include "weft/dtype.h"

namespace weft::kernel {

/// An array that an epilogue reads, in elements: the value at (b…, m, n) lies at Σ of index times stride. A stride of 0
/// is an axis that the array does not have: a row vector has m = 0, a column n = 0, a single number neither. Arrays of
/// a prologue may jump along an axis.
struct EpilogueOperand {
  Dtype dtype = float32;
  std::vector<int64_t> batch;
  int64_t m = 0, n = 0;
  Jump m_jump = {}, n_jump = {};
  bool has_m() const { return m != 0 || m_jump.period > 0; }
  bool has_n() const { return n != 0 || n_jump.period > 0; }
  friend bool operator==(const EpilogueOperand&, const EpilogueOperand&) = default;
};

/// One value. A value of a low-precision float dtype is computed in float32; a cast to such a dtype rounds.
struct EpilogueStep {
  enum class Kind : uint8_t { dot, operand, constant, scalar, cast } kind = Kind::dot;
  Dtype dtype = float32;
  ScalarOp op = ScalarOp::add;  // of `scalar`
  std::vector<int> inputs;      // steps before this one
  int operand = 0;              // of `operand`: which
  Number number;                // of `constant`
  friend bool operator==(const EpilogueStep&, const EpilogueStep&) = default;
};

/// A named function of one argument that some steps compute together: step `result` is name(step `input`). Libraries
/// that have the function need not know its formula.
struct EpilogueFunction {
  std::string name;  // of the composite: "gelu_tanh"
  int input = 0, result = 0;
  friend bool operator==(const EpilogueFunction&, const EpilogueFunction&) = default;
};

/// An epilogue. Step 0 is the matmul's result; without further steps C is that. A prologue has no such step and stores
/// nothing; of its operands, the strides m and n are those along the matrix's own axis and along k.
struct Epilogue {
  std::vector<EpilogueOperand> operands;
  std::vector<EpilogueStep> steps;
  int result = 0;           // the step that is stored as C
  std::vector<int> stored;  // steps that are stored as well, each as an array with C's strides and the step's dtype
  std::vector<EpilogueFunction> functions;
  bool empty() const { return steps.size() <= 1 && stored.empty(); }
  void hash(Hasher& h) const;
  std::string to_string() const;  // "+ operand(n) add sigmoid mul, stores 1 more"
  friend bool operator==(const Epilogue&, const Epilogue&) = default;
};

/// Throws internal_error if a step reads one that is not before it, an operand does not exist, or a dtype does not fit.
/// `prologue`: of an operand.
void verify(const Epilogue& epilogue, bool prologue = false);

}  // namespace weft::kernel
