// Shapes with symbolic lengths: interned symbols, sizes, strides, broadcasting, printing.
#include "weft/shape.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <stdexcept>

#include "base/error.h"

namespace weft {

const Symbol* symbol(const std::string& name, int64_t bound) {
  if (bound < 1)
    throw_invalid("symbol",
                  "the bound of " + name + " is " + std::to_string(bound) + ", but a length lies in [1, bound]");
  if (name.empty()) throw_invalid("symbol", "a symbolic length needs a name");
  static std::mutex mutex;
  static auto& table =
      *new std::map<std::pair<std::string, int64_t>, std::unique_ptr<const Symbol>>;  // outlives every thread
  std::lock_guard lock(mutex);
  auto& entry = table[{name, bound}];
  if (!entry) entry = std::make_unique<const Symbol>(Symbol{name, bound});
  return entry.get();
}

namespace {

std::string to_string(const Dim& d) {
  return d.is_static() ? std::to_string(d.bound()) : d.symbol()->name + "<=" + std::to_string(d.bound());
}

bool is_empty(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const Dim& d) { return d.bound() == 0; });
}

[[noreturn]] void throw_too_large(const Shape& shape) {
  throw std::overflow_error("[num_elements] an array of shape " + to_string(shape) + " has more than 2^63 elements");
}

}  // namespace

void Dim::throw_symbolic() const {
  throw_invalid("shape", "the length " + to_string(*this) +
                             " is known only when the compiled program is called; use bound() for "
                             "its largest value, or compile this part with a static length");
}

int64_t num_elements(const Shape& shape) {
  for (const Dim& d : shape)
    if (d.bound() < 0) throw_invalid("num_elements", "negative length in shape " + to_string(shape));
  if (is_empty(shape)) return 0;
  int64_t n = 1;
  for (const Dim& d : shape)
    if (__builtin_mul_overflow(n, d.bound(), &n)) throw_too_large(shape);
  return n;
}

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static(); });
}

Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.size());
  const bool empty = is_empty(shape);  // nothing is ever addressed: any stride will do
  int64_t stride = 1;
  for (size_t k = shape.size(); k-- > 0;) {
    strides[k] = stride;
    if (__builtin_mul_overflow(stride, shape[k].bound(), &stride)) {
      if (!empty) throw_too_large(shape);
      stride = 0;
    }
  }
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t k = 0; k < shorter.size(); ++k) {
    Dim& d = result[lead + k];
    if (d == shorter[k] || shorter[k] == 1) continue;
    if (d != 1)
      throw_invalid("broadcast_shapes", "shapes " + to_string(a) + " and " + to_string(b) +
                                            " cannot be broadcast: counted from the right, lengths must be equal or 1");
    d = shorter[k];
  }
  return result;
}

int normalize_axis(const char* op, int axis, int ndim) {
  if (axis < -ndim || axis >= ndim)
    throw_out_of_range(op, "axis " + std::to_string(axis) + " is out of range for an array with " +
                               std::to_string(ndim) + (ndim == 1 ? " dimension" : " dimensions"));
  return axis < 0 ? axis + ndim : axis;
}

std::string to_string(const Shape& shape) {
  std::string out = "(";
  for (size_t k = 0; k < shape.size(); ++k) {
    if (k) out += ",";
    out += to_string(shape[k]);
  }
  return out += ")";
}

std::ostream& operator<<(std::ostream& os, const Shape& shape) { return os << to_string(shape); }

}  // namespace weft
