// Printing as MLX prints: nested brackets, a few elements at either end of a long axis, then the dtype.
#include <cmath>
#include <iomanip>
#include <mutex>
#include <ostream>
#include <sstream>

#include "array/host.h"
#include "weft/array.h"
#include "weft/utils.h"

namespace weft {
namespace {

std::mutex formatter_mutex;

PrintFormatter formatter_now() {
  const std::lock_guard lock(formatter_mutex);
  return get_global_formatter();
}

void print_real(std::ostream& os, double v) {
  if (std::isnan(v)) os << "nan";  // regardless of the sign bit
  else os << v;
}

/// Sets a stream's format to so many digits after the point while it lives; -1 leaves it unchanged.
class Digits {
 public:
  Digits(std::ostream& os, int precision) : os_(os), flags_(os.flags()), before_(os.precision()) {
    if (precision >= 0) os << std::fixed << std::setprecision(precision);
  }
  ~Digits() {
    os_.flags(flags_);
    os_.precision(before_);
  }
  Digits(const Digits&) = delete;
  Digits& operator=(const Digits&) = delete;

 private:
  std::ostream& os_;
  std::ios_base::fmtflags flags_;
  std::streamsize before_;
};

class Printer {
 public:
  Printer(const array& a, PrintFormatter formatter)
      : data_(static_cast<const std::byte*>(a.raw_data())), shape_(a.shape()), strides_(row_major_strides(a.shape())),
        dtype_(a.dtype()), formatter_(formatter) {}

  std::string text() {
    if (shape_.empty()) element(0);
    else axis(0, 0);
    return out_.str();
  }

 private:
  void element(int64_t index) {
    if (dtype_ == complex64) return formatter_.print(out_, reinterpret_cast<const complex64_t*>(data_)[index]);
    if (dtype_ == complex128) return formatter_.print(out_, reinterpret_cast<const complex128_t*>(data_)[index]);
    const Number v = detail::load_element(data_, dtype_, index);
    if (dtype_ == bool_) formatter_.print(out_, v.i != 0);
    else if (dtype_ == uint64) formatter_.print(out_, static_cast<uint64_t>(v.i));
    else if (v.integral) formatter_.print(out_, v.i);
    else formatter_.print(out_, v.f);
  }

  void axis(int64_t index, size_t k) {
    const int64_t n = shape_[k], edge = std::max(formatter_.format_options.edge_items, 0);
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
  PrintFormatter formatter_;
  std::ostringstream out_;
};

}  // namespace

void PrintFormatter::print(std::ostream& os, bool val) const {
  if (capitalize_bool) os << (val ? "True" : "False");
  else os << (val ? "true" : "false");
}
void PrintFormatter::print(std::ostream& os, int64_t val) const { os << val; }
void PrintFormatter::print(std::ostream& os, uint64_t val) const { os << val; }
void PrintFormatter::print(std::ostream& os, float16_t val) const {
  print(os, static_cast<double>(static_cast<float>(val)));
}
void PrintFormatter::print(std::ostream& os, bfloat16_t val) const {
  print(os, static_cast<double>(static_cast<float>(val)));
}
void PrintFormatter::print(std::ostream& os, double val) const {
  const Digits digits(os, format_options.precision);
  print_real(os, val);
}
void PrintFormatter::print(std::ostream& os, complex128_t val) const {
  const Digits digits(os, format_options.precision);
  const double imag = val.imag();
  print_real(os, val.real());
  os << (std::signbit(imag) && !std::isnan(imag) ? "-" : "+");
  print_real(os, std::abs(imag));
  os << "j";
}

PrintFormatter& get_global_formatter() {
  static PrintFormatter formatter;
  return formatter;
}

void set_printoptions(PrintOptions options) {
  const std::lock_guard lock(formatter_mutex);
  get_global_formatter().format_options = options;
}

PrintOptions get_printoptions() { return formatter_now().format_options; }

std::ostream& operator<<(std::ostream& os, const array& a) {
  return os << "array(" << Printer(a, formatter_now()).text() << ", dtype=" << dtype_name(a.dtype()) << ")";
}

}  // namespace weft
