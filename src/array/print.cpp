// Printing as MLX prints: nested brackets, at most three elements at either end of a long axis, then the dtype.
#include <cmath>
#include <ostream>

#include "array/host.h"
#include "weft/array.h"

namespace weft {
namespace {

constexpr int64_t edge = 3;  // elements shown at either end of an axis

void print_element(std::ostream& os, const std::byte* data, Dtype dtype, int64_t index) {
  if (dtype == complex64) {
    const auto& c = reinterpret_cast<const complex64_t*>(data)[index];
    os << c.real() << (std::signbit(c.imag()) ? "" : "+") << c.imag() << "j";
    return;
  }
  const Number v = detail::load_element(data, dtype, index);
  if (dtype == bool_) os << (v.i ? "True" : "False");
  else if (dtype == uint64) os << static_cast<uint64_t>(v.i);
  else if (v.integral) os << v.i;
  else os << v.f;
}

void print_axis(std::ostream& os, const std::byte* data, const array& a, const Strides& strides, int64_t index, size_t axis) {
  const int64_t n = a.shape()[axis];
  const bool last = axis + 1 == a.ndim();
  const std::string indent = last ? "" : std::string(7 + axis, ' ');  // under the first bracket after "array("
  os << "[";
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) os << (last ? ", " : ",\n") << indent;
    if (i == edge && n > 2 * edge) {
      os << "...";
      i = n - edge - 1;
    } else if (last) {
      print_element(os, data, a.dtype(), index + i * strides[axis]);
    } else {
      print_axis(os, data, a, strides, index + i * strides[axis], axis + 1);
    }
  }
  os << "]";
}

}  // namespace

std::ostream& operator<<(std::ostream& os, const array& a) {
  const auto* data = static_cast<const std::byte*>(a.raw_data());
  os << "array(";
  if (a.ndim() == 0) print_element(os, data, a.dtype(), 0);
  else print_axis(os, data, a, row_major_strides(a.shape()), 0, 0);
  return os << ", dtype=" << dtype_name(a.dtype()) << ")";
}

}  // namespace weft
