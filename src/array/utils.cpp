#include "weft/utils.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <ostream>
#include <thread>

#include "array/op_support.h"
#include "base/error.h"

namespace weft {
namespace {

/// A program's libraries are loaded by its first thread.
const std::thread::id loading_thread = std::this_thread::get_id();

}  // namespace

Dtype result_type(const std::vector<array>& arrays) {
  Dtype t = bool_;
  for (const array& a : arrays) t = promote_types(t, a.dtype());
  return t;
}

int normalize_axis_index(int axis, int ndim, const std::string& msg_prefix) {
  if (axis < -ndim || axis >= ndim)
    throw std::out_of_range(msg_prefix + "Axis " + std::to_string(axis) + " is out of bounds for array with " +
                            std::to_string(ndim) + " dimensions.");
  return axis < 0 ? axis + ndim : axis;
}

bool is_main_thread() { return std::this_thread::get_id() == loading_thread; }

std::ostream& operator<<(std::ostream& os, const Dtype::Kind& k) {
  switch (k) {
    case Dtype::Kind::b: return os << "b";
    case Dtype::Kind::u: return os << "u";
    case Dtype::Kind::i: return os << "i";
    case Dtype::Kind::f: return os << "f";
    case Dtype::Kind::c: return os << "c";
    case Dtype::Kind::V: break;
  }
  return os << "V";
}
std::ostream& operator<<(std::ostream& os, const float16_t& v) { return os << static_cast<float>(v); }
std::ostream& operator<<(std::ostream& os, const bfloat16_t& v) { return os << static_cast<float>(v); }
std::ostream& operator<<(std::ostream& os, const complex64_t& v) { return os << complex128_t(v); }
std::ostream& operator<<(std::ostream& os, const complex128_t& v) {
  return os << v.real() << (v.imag() >= 0 ? "+" : "") << v.imag() << "j";
}

int env::get_var(const char* name, int default_value) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : default_value;
}
std::string env::get_var(const char* name, const char* default_value) {
  const char* text = std::getenv(name);
  return text ? text : default_value;
}

finfo::finfo(Dtype t) : dtype(real_of(t)), bits(8 * dtype.size()) {
  // Significand digits, smallest and largest exponent of 2^e with 1 <= significand < 2.
  struct Format {
    int digits, low, high;
  };
  if (!is_float(dtype)) throw_invalid("finfo", std::string("a floating type is needed, got ") + dtype_name(t));
  const Format f = dtype == float16    ? Format{11, -14, 15}
                   : dtype == bfloat16 ? Format{8, -126, 127}
                   : dtype == float64  ? Format{53, -1022, 1023}
                                       : Format{24, -126, 127};
  const auto power = [](int e) { return std::ldexp(1.0, e); };
  eps = power(1 - f.digits);
  max = (2 - eps) * power(f.high);
  min = -max;
  smallest_normal = power(f.low);
}

iinfo::iinfo(Dtype t) : dtype(t), bits(8 * t.size()) {
  if (!is_integer(t)) throw_invalid("iinfo", std::string("an integer type is needed, got ") + dtype_name(t));
  const int value_bits = is_signed(t) ? bits - 1 : bits;
  max = std::numeric_limits<uint64_t>::max() >> (64 - value_bits);
  min = is_signed(t) ? -static_cast<int64_t>(max) - 1 : 0;
}

}  // namespace weft
