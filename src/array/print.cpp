// Printing as MLX prints: nested brackets, a few elements at either end of a long axis, then the dtype.
#include <atomic>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "array/host.h"
#include "weft/array.h"
#include "weft/utils.h"

namespace weft {
namespace {

std::atomic<int> precision{PrintOptions{}.precision}, edge_items{PrintOptions{}.edge_items};

class Printer {
 public:
  Printer(const array& a, PrintOptions options)
      : data_(static_cast<const std::byte*>(a.raw_data())), shape_(a.shape()), strides_(row_major_strides(a.shape())), dtype_(a.dtype()), options_(options) {
    if (options.precision >= 0) out_ << std::fixed << std::setprecision(options.precision);
  }

  std::string text() {
    if (shape_.empty()) element(0);
    else axis(0, 0);
    return out_.str();
  }

 private:
  void element(int64_t index) {
    if (dtype_ == complex64) return complex(reinterpret_cast<const complex64_t*>(data_)[index]);
    const Number v = detail::load_element(data_, dtype_, index);
    if (dtype_ == bool_) out_ << (v.i ? "True" : "False");
    else if (dtype_ == uint64) out_ << static_cast<uint64_t>(v.i);
    else if (v.integral) out_ << v.i;
    else real(v.f);
  }

  void real(double v) {
    if (std::isnan(v)) out_ << "nan";  // whatever its sign bit
    else out_ << v;
  }

  void complex(const complex64_t& c) {
    const double imag = static_cast<double>(c.imag());
    const bool minus = std::signbit(imag) && !std::isnan(imag);
    real(static_cast<double>(c.real()));
    out_ << (minus ? "-" : "+");
    real(std::abs(imag));
    out_ << "j";
  }

  void axis(int64_t index, size_t k) {
    const int64_t n = shape_[k], edge = std::max(options_.edge_items, 0);
    const bool last = k + 1 == shape_.size();
    const std::string indent = last ? "" : std::string(7 + k, ' ');  // under the first bracket after "array("
    out_ << "[";
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) out_ << (last ? ", " : ",\n") << indent;
      if (i == edge && n > 2 * edge) {
        out_ << "...";
        i = n - edge - 1;
      } else if (last) {
        element(index + i * strides_[k]);
      } else {
        axis(index + i * strides_[k], k + 1);
      }
    }
    out_ << "]";
  }

  const std::byte* data_;
  const Shape& shape_;
  Strides strides_;
  Dtype dtype_;
  PrintOptions options_;
  std::ostringstream out_;
};

}  // namespace

void set_printoptions(PrintOptions options) {
  precision = options.precision;
  edge_items = options.edge_items;
}

PrintOptions get_printoptions() { return {precision, edge_items}; }

std::ostream& operator<<(std::ostream& os, const array& a) {
  return os << "array(" << Printer(a, get_printoptions()).text() << ", dtype=" << dtype_name(a.dtype()) << ")";
}

}  // namespace weft
