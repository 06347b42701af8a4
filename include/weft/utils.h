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
inline Dtype result_type(const array& a, const array& b, const array& c) {
  return promote_types(result_type(a, b), c.dtype());
}
WEFT_API Dtype result_type(const std::vector<array>& arrays);  ///< bool for none

/// -1 counts from the end; throws std::invalid_argument, with the prefix first.
WEFT_API int normalize_axis_index(int axis, int ndim, const std::string& msg_prefix = "");
/// A size as an array holds it; throws std::overflow_error where it does not fit into 64 bits.
template <class T>
int64_t safe_cast(T dim, std::string_view op = "") {
  if (!std::in_range<int64_t>(dim))
    throw std::overflow_error("[" + std::string(op) + "] a dimension is beyond 64 bits");
  return static_cast<int64_t>(dim);
}
constexpr bool is_power_of_2(int n) { return n > 0 && (n & (n - 1)) == 0; }
constexpr int next_power_of_2(int n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

/// How arrays are printed. precision: digits after the point, or -1 for as many as six significant digits need.
/// edge_items are shown at either end of an axis that is longer than twice as many.
struct PrintOptions {
  int precision{-1};
  int edge_items{3};
};
WEFT_API void set_printoptions(PrintOptions options);
WEFT_API PrintOptions get_printoptions();

/// How one element of an array is printed. `capitalize_bool` prints True and False, as Python does, instead of true and
/// false.
struct WEFT_API PrintFormatter {
  void print(std::ostream& os, bool val) const;
  void print(std::ostream& os, int16_t val) const { print(os, int64_t{val}); }
  void print(std::ostream& os, uint16_t val) const { print(os, uint64_t{val}); }
  void print(std::ostream& os, int32_t val) const { print(os, int64_t{val}); }
  void print(std::ostream& os, uint32_t val) const { print(os, uint64_t{val}); }
  void print(std::ostream& os, int64_t val) const;
  void print(std::ostream& os, uint64_t val) const;
  void print(std::ostream& os, float16_t val) const;
  void print(std::ostream& os, bfloat16_t val) const;
  void print(std::ostream& os, float val) const { print(os, static_cast<double>(val)); }
  void print(std::ostream& os, double val) const;
  void print(std::ostream& os, complex64_t val) const;

  bool capitalize_bool{false};
  PrintOptions format_options;
};
/// What arrays are printed with. set_printoptions changes it safely beside threads that print; who writes to it
/// directly does so before they begin.
WEFT_API PrintFormatter& get_global_formatter();

WEFT_API std::ostream& operator<<(std::ostream& os, const Dtype::Kind& k);  ///< one letter: b, u, i, f, c or V
WEFT_API std::ostream& operator<<(std::ostream& os, const float16_t& v);
WEFT_API std::ostream& operator<<(std::ostream& os, const bfloat16_t& v);
WEFT_API std::ostream& operator<<(std::ostream& os, const complex64_t& v);  ///< "1-2j"

WEFT_API bool is_main_thread();  ///< whether the calling thread is the one that called this first

/// Environment variables of a program's own; Weft's results depend on none.
namespace env {
WEFT_API int get_var(const char* name,
                     int default_value);  ///< the number that the text begins with, 0 where it begins with none
WEFT_API std::string get_var(const char* name, const char* default_value);
}  // namespace env

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
