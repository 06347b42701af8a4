// Checks and small formulas that layers share.
#pragma once
#include <cmath>
#include <initializer_list>
#include <string>

#include "base/error.h"
#include "weft/nn/module.h"

namespace weft::nn {

/// Returns the sizes as a shape; throws "[op] …" where one is not positive.
Shape sizes(const char* op, std::initializer_list<int64_t> values);
/// Throws where x is not floating or its last axis is not `width`.
void check_float(const char* op, const array& x, const Dim& width);
/// Returns x Wᵀ in x's dtype.
array linear_matmul(const array& x, const array& weight);
/// Returns a number as PyTorch prints it: without trailing zeros.
std::string digits(float value);

/// Returns 1/√in, rounded once: the bound of uniform initial weights.
inline float bound_of(int64_t in) { return static_cast<float>(1 / std::sqrt(static_cast<double>(in))); }
inline const char* yes_or_no(bool b) { return b ? "true" : "false"; }
inline std::string number(const Dim& d) { return std::to_string(d.bound()); }
/// Returns a parameter, if there is one, in the dtype of x.
inline std::optional<array> in_dtype_of(const array& x, const std::optional<Parameter>& p) {
  return p ? std::optional<array>(astype(*p, x.dtype())) : std::nullopt;
}

}  // namespace weft::nn
