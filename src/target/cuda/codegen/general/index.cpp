#include "target/cuda/codegen/general/index.h"

#include <fmt/format.h>

namespace weft::target::cuda {

namespace {

struct Axis {
  int64_t extent, stride, inner;  // `inner`: elements of the tile for each step along it
};

/// Returns the axes that matter, outermost first: those along which elements are evenly spaced count as one.
std::vector<Axis> axes_of(const Strided& s) {
  std::vector<Axis> out;
  int64_t inner = 1;
  for (size_t k = s.dims.size(); k-- > 0; inner *= s.dims[k]) {
    if (s.dims[k] == 1) continue;
    if (!out.empty() && s.strides[k] == out.front().stride * out.front().extent) out.front().extent *= s.dims[k];
    else out.insert(out.begin(), {s.dims[k], s.strides[k], inner});
  }
  return out;
}

}  // namespace

std::string Strided::text(const std::string& e) const {
  std::string out;
  const std::vector<Axis> axes = axes_of(*this);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto& [extent, stride, inner] = axes[k];
    if (stride == 0) continue;
    std::string position = inner > 1 ? fmt::format("{} / {}", e, inner) : e;
    if (k > 0) position = fmt::format("{} % {}", position, extent);
    out += fmt::format("{}{}", out.empty() ? "" : " + ", position);
    if (stride != 1) out += fmt::format(" * {}", stride);
  }
  if (out.empty()) return fmt::format("{}", offset);
  return offset == 0 ? out : fmt::format("{} + {}", out, offset);
}

bool Strided::in_order() const {
  const std::vector<Axis> axes = axes_of(*this);
  return offset == 0 && (axes.empty() || (axes.size() == 1 && axes[0].stride == 1));
}

std::vector<int64_t> row_major(const std::vector<int64_t>& dims) {
  std::vector<int64_t> out(dims.size(), 1);
  for (size_t k = dims.size(); k-- > 1;) out[k - 1] = out[k] * dims[k];
  return out;
}

Lines::Lines(const std::vector<int64_t>& dims, int axis) : extent(dims[static_cast<size_t>(axis)]) {
  for (size_t k = static_cast<size_t>(axis) + 1; k < dims.size(); ++k) step *= dims[k];
  for (const int64_t d : dims) count *= d;
  count /= extent;
}

std::string Lines::start(const std::string& line) const {
  if (step == 1) return fmt::format("{} * {}", line, extent);
  if (step == count) return line;
  return fmt::format("({0} / {1} * {2} + {0} % {1})", line, step, step * extent);
}

std::string Lines::position(const std::string& e) const {
  return step == 1 ? fmt::format("{} % {}", e, extent) : fmt::format("{} / {} % {}", e, step, extent);
}

std::string Lines::line(const std::string& e) const {
  if (step == 1) return fmt::format("{} / {}", e, extent);
  if (step == count) return fmt::format("{} % {}", e, step);
  return fmt::format("({0} / {1} * {2} + {0} % {2})", e, step * extent, step);
}

}  // namespace weft::target::cuda
