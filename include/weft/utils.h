#pragma once
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/array.h"

/// Dtypes of results, printing, limits of dtypes: helpers with MLX's names.
namespace weft {

/// Returns the dtype that all arrays promote to; bool_ for none.
inline Dtype result_type(const array& a, const array& b) { return promote_types(a.dtype(), b.dtype()); }
inline Dtype result_type(const array& a, const array& b, const array& c) {
  return promote_types(result_type(a, b), c.dtype());
}
WEFT_API Dtype result_type(const std::vector<array>& arrays);

/// Returns the axis counted from the front: -1 is the last. Throws std::out_of_range with the prefix first.
WEFT_API int normalize_axis_index(int axis, int ndim, const std::string& msg_prefix = "");
/// Returns a size as an array holds it; throws std::overflow_error where it does not fit into 64 bits.
template <class T>
int64_t safe_cast(T dim, std::string_view op = "") {
  if (!std::in_range<int64_t>(dim))
    throw std::overflow_error("[" + std::string(op) + "] a dimension is beyond 64 bits");
  return static_cast<int64_t>(dim);
}
/// Returns whether n is 1, 2, 4, ….
constexpr bool is_power_of_2(int n) { return n > 0 && (n & (n - 1)) == 0; }
/// Returns the smallest power of two that is at least n.
constexpr int next_power_of_2(int n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

/// How arrays are printed.
struct PrintOptions {
  int precision{-1};  ///< digits after the point, or -1 for as many as six significant digits need
  int edge_items{3};  ///< shown at either end of an axis that is longer than twice as many
};
/// Sets how arrays are printed from now on.
WEFT_API void set_printoptions(PrintOptions options);
/// Returns how arrays are printed.
WEFT_API PrintOptions get_printoptions();

/// How one element of an array is printed.
struct WEFT_API PrintFormatter {
  /// Prints one element.
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
  void print(std::ostream& os, complex64_t val) const { print(os, complex128_t(val)); }
  void print(std::ostream& os, complex128_t val) const;

  bool capitalize_bool{false};  ///< prints True and False, as Python does, instead of true and false
  PrintOptions format_options;  ///< of the numbers
};
/// Returns what arrays are printed with. set_printoptions may change it while threads print; direct writes must come
/// before.
WEFT_API PrintFormatter& get_global_formatter();

/// Prints a kind as one letter (b, u, i, f, c or V), or a number; complex ones as "1-2j".
WEFT_API std::ostream& operator<<(std::ostream& os, const Dtype::Kind& k);
WEFT_API std::ostream& operator<<(std::ostream& os, const float16_t& v);
WEFT_API std::ostream& operator<<(std::ostream& os, const bfloat16_t& v);
WEFT_API std::ostream& operator<<(std::ostream& os, const complex64_t& v);
WEFT_API std::ostream& operator<<(std::ostream& os, const complex128_t& v);

/// Returns whether the calling thread is the one that loaded the library, which is the program's first one.
WEFT_API bool is_main_thread();

/// Environment variables of a program's own; Weft's results depend on none.
namespace env {
/// Returns the number that the variable's text begins with (0 where it begins with none), or its text; `default_value`
/// where the variable is not set.
WEFT_API int get_var(const char* name, int default_value);
WEFT_API std::string get_var(const char* name, const char* default_value);
}  // namespace env

/// Limits of a floating dtype; of a complex one, those of its parts. Throws std::invalid_argument for any other dtype.
struct WEFT_API finfo {
  explicit finfo(Dtype dtype);
  Dtype dtype;                            ///< of the parts, for a complex dtype
  int bits;                               ///< of an element
  double min, max, eps, smallest_normal;  ///< smallest and largest finite number, distance from 1 to the next number,
                                          ///< smallest normal number
};

/// Limits of an integer dtype. Throws std::invalid_argument for any other dtype.
struct WEFT_API iinfo {
  explicit iinfo(Dtype dtype);
  Dtype dtype;   ///< as given
  int bits;      ///< of an element
  int64_t min;   ///< smallest number
  uint64_t max;  ///< largest number
};

}  // namespace weft
