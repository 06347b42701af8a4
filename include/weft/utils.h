#pragma once
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Helpers with MLX's names.
namespace weft {

inline Dtype result_type(const array& a, const array& b) { return promote_types(a.dtype(), b.dtype()); }
inline Dtype result_type(const array& a, const array& b, const array& c) { return promote_types(result_type(a, b), c.dtype()); }
WEFT_API Dtype result_type(const std::vector<array>& arrays);  ///< bool for none

/// -1 counts from the end; throws std::invalid_argument, with the prefix first.
WEFT_API int normalize_axis_index(int axis, int ndim, const std::string& msg_prefix = "");
/// A size as an array holds it; throws std::overflow_error where it does not fit into 64 bits.
template <class T> int64_t safe_cast(T dim, std::string_view op = "") {
  if (!std::in_range<int64_t>(dim)) throw std::overflow_error("[" + std::string(op) + "] a dimension is beyond 64 bits");
  return static_cast<int64_t>(dim);
}
constexpr bool is_power_of_2(int n) { return n > 0 && (n & (n - 1)) == 0; }
constexpr int next_power_of_2(int n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

/// How arrays are printed. precision: digits after the point, or -1 for as many as six significant digits need. edge_items are shown at either end of an axis
/// that is longer than twice as many.
struct PrintOptions {
  int precision{-1};
  int edge_items{3};
};
WEFT_API void set_printoptions(PrintOptions options);
WEFT_API PrintOptions get_printoptions();

/// Limits of a floating type; of complex64, those of its parts.
struct WEFT_API finfo {
  explicit finfo(Dtype dtype);
  Dtype dtype;
  int bits;
  double min, max, eps, smallest_normal;
};

struct WEFT_API iinfo {
  explicit iinfo(Dtype dtype);
  Dtype dtype;
  int bits;
  int64_t min;
  uint64_t max;
};


}  // namespace weft
