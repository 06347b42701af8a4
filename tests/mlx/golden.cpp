#include "mlx/golden.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "weft/io.h"

namespace weft::test {
namespace {

std::vector<Stored> stored(const nlohmann::json& list, const std::byte* data) {
  std::vector<Stored> arrays;
  for (const auto& entry : list) {
    Shape shape;
    for (int64_t n : entry[1]) shape.push_back(n);
    arrays.push_back({dtype_from_name(entry[0].get<std::string>()), shape, data + entry[2].get<size_t>()});
  }
  return arrays;
}

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Element i of a float array, widened exactly. A complex one counts as two.
double number(const std::byte* data, Dtype dtype, size_t i) {
  switch (dtype.val()) {
    case Dtype::Val::float64: return read<double>(data + 8 * i);
    case Dtype::Val::float16: return static_cast<double>(static_cast<float>(read<float16_t>(data + 2 * i)));
    case Dtype::Val::bfloat16: return static_cast<double>(static_cast<float>(read<bfloat16_t>(data + 2 * i)));
    default: return read<float>(data + 4 * i);
  }
}

struct Format {
  int digits;  // of the significand, with the hidden one
  int least;   // exponent of the smallest normal number, as 1.f · 2^least
  double greatest;
};

Format format_of(Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::float64: return {53, -1022, std::numeric_limits<double>::max()};
    case Dtype::Val::float16: return {11, -14, 65504};
    case Dtype::Val::bfloat16: return {8, -126, 3.3895313892515355e38};
    default: return {24, -126, std::numeric_limits<float>::max()};
  }
}

// The distance of neighbours at a magnitude. An infinity counts as what would follow the largest number.
double step_at(double magnitude, const Format& f) {
  int exponent = magnitude > 0 && std::isfinite(magnitude) ? std::max(std::ilogb(magnitude), f.least) : f.least;
  return std::ldexp(1.0, exponent - f.digits + 1);
}

bool close(double a, double b, double magnitude, const Format& f, const Bound& bound) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return a != 0 || !bound.signed_zero || std::signbit(a) == std::signbit(b);
  if (std::isinf(a) && std::isinf(b)) return false;
  double step = step_at(std::max(magnitude, bound.floor), f);
  auto finite = [&](double x) { return std::isinf(x) ? std::copysign(f.greatest, x) : x; };
  double distance = std::abs(finite(a) - finite(b)) + (std::isinf(a) || std::isinf(b) ? step : 0);
  return distance <= bound.ulp * step;
}

std::string at(size_t i, const Shape& shape) {
  std::string position;
  for (size_t axis = shape.size(); axis-- > 0;) {
    auto n = static_cast<size_t>(static_cast<int64_t>(shape[axis]));
    position = std::to_string(i % n) + (position.empty() ? "" : ", ") + position;
    i /= n;
  }
  return "[" + position + "]";
}

bool is_float(Dtype t) { return issubdtype(t, inexact); }

std::string integer_text(const std::byte* data, Dtype t, size_t i) {
  int64_t value = 0;
  std::memcpy(&value, data + i * t.size(), t.size());
  int shift = 64 - 8 * t.size();
  bool is_signed = issubdtype(t, signedinteger);
  value = is_signed ? static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift : value;
  return is_signed ? std::to_string(value) : std::to_string(static_cast<uint64_t>(value));
}

}  // namespace

Arrays Case::inputs() const {
  Arrays arrays;
  for (const Stored& s : in) arrays.push_back(s.make());
  return arrays;
}

Golden::Golden(const std::string& name) {
  auto file = load_npz(std::string(WEFT_SOURCE_DIR) + "/tests/mlx/golden/" + name + ".npz");
  data_ = std::make_shared<array>(file.at("data"));
  const array& text = file.at("cases");
  const auto* bytes = static_cast<const std::byte*>(data_->raw_data());
  std::istringstream lines(std::string(static_cast<const char*>(text.raw_data()), text.nbytes()));
  for (std::string line; std::getline(lines, line);) {
    auto fields = nlohmann::json::parse(line);
    auto field = [&](const char* key) { return fields.value(key, std::string()); };
    cases_.push_back({field("name"), field("kind"), field("op"), field("dtype"), field("layout"),
                      stored(fields.value("in", nlohmann::json::array()), bytes),
                      stored(fields.value("out", nlohmann::json::array()), bytes), field("throws")});
  }
}

std::string difference(const array& result, const Stored& expected, const Bound& bound) {
  std::ostringstream text;
  if (result.dtype() != expected.dtype) text << "dtype " << result.dtype() << ", MLX " << expected.dtype;
  else if (result.shape() != expected.shape) text << "shape " << result.shape() << ", MLX " << expected.shape;
  if (!text.str().empty()) return text.str();
  const auto* ours = static_cast<const std::byte*>(result.raw_data());
  size_t wrong = 0, parts = result.dtype() == complex64 ? 2 : 1;
  for (size_t i = 0; i < result.size(); ++i) {
    std::ostringstream values;
    values.precision(17);
    if (!is_float(result.dtype())) {
      if (std::memcmp(ours + i * result.itemsize(), expected.data + i * result.itemsize(), result.itemsize()) == 0)
        continue;
      values << integer_text(ours, expected.dtype, i) << ", MLX " << integer_text(expected.data, expected.dtype, i);
    } else {
      Format format = format_of(result.dtype());
      double a[2] = {}, b[2] = {};
      for (size_t p = 0; p < parts; ++p)
        a[p] = number(ours, result.dtype(), parts * i + p), b[p] = number(expected.data, result.dtype(), parts * i + p);
      double magnitude = std::max(std::hypot(b[0], b[1]), std::hypot(a[0], a[1]));
      if (!std::isfinite(magnitude)) magnitude = format.greatest;
      if (close(a[0], b[0], magnitude, format, bound) && (parts == 1 || close(a[1], b[1], magnitude, format, bound)))
        continue;
      values << a[0];
      if (parts == 2) values << " + " << a[1] << "i";
      values << ", MLX " << b[0];
      if (parts == 2) values << " + " << b[1] << "i";
      values << " (" << std::abs(a[0] - b[0]) / step_at(magnitude, format) << " ulp)";
    }
    if (wrong++ < 3) text << (wrong > 1 ? "; " : "") << at(i, expected.shape) << " " << values.str();
  }
  if (wrong > 3) text << "; " << wrong << " in all";
  return text.str();
}

std::string difference(const Arrays& results, const std::vector<Stored>& expected, const Bound& bound) {
  if (results.size() != expected.size())
    return std::to_string(results.size()) + " results, MLX " + std::to_string(expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    std::string text = difference(results[i], expected[i], bound);
    if (!text.empty()) return results.size() == 1 ? text : "result " + std::to_string(i) + ": " + text;
  }
  return "";
}

std::string thrown_by(const std::function<void()>& function, std::string* message) {
  auto note = [&](const std::exception& error, const char* name) {
    if (message) *message = error.what();
    return std::string(name);
  };
  try {
    function();
  } catch (const std::invalid_argument& error) {
    return note(error, "ValueError");
  } catch (const std::out_of_range& error) {
    return note(error, "IndexError");
  } catch (const std::runtime_error& error) {
    return note(error, "RuntimeError");
  } catch (const std::exception& error) {
    return note(error, "another exception");
  }
  return "";
}

}  // namespace weft::test
