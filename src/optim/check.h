// Checks of options, and numbers in the dtype of a parameter.
#pragma once
#include <string>

#include "base/error.h"
#include "weft/ops.h"

namespace weft::optim {

inline void check_share(const char* op, const char* what, double value) {
  if (!(value >= 0 && value < 1))
    throw_invalid(op, std::string(what) + " must be at least 0 and less than 1; got " + std::to_string(value));
}
inline void check_not_negative(const char* op, const char* what, double value) {
  if (!(value >= 0)) throw_invalid(op, std::string(what) + " must not be negative; it is " + std::to_string(value));
}

inline array as(double value, const array& like) { return array(value, like.dtype()); }

/// Returns β a + (1 - β) b.
inline array average(double beta, const array& a, const array& b) { return a * as(beta, a) + b * as(1 - beta, a); }

}  // namespace weft::optim
