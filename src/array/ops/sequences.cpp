// weft/ops/creation.h: linspace, grids of coordinates, windows.
#include <cmath>
#include <numbers>

#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

// Returns the window constant + Σ weight[k]·cos(2πk·i / (m - 1)).
array cosine_window(const char* op, int m, double constant, std::initializer_list<double> weights,
                    const StreamOrDevice& s) {
  const detail::OnStream on_stream(op, s);
  if (m < 1) return zeros({0}, s);
  if (m == 1) return ones({1}, s);
  const array position(graph::iota({m}, 0, float32));
  array window = full({m}, array(constant, float32), s);
  double angle = 2 * std::numbers::pi / (m - 1);
  int k = 1;
  for (double weight : weights)
    window =
        add(window, multiply(array(weight, float32), cos(multiply(position, array(k++ * angle, float32), s), s), s), s);
  return window;
}

}  // namespace

array linspace(double start, double stop, int num, bool endpoint, Dtype dtype, StreamOrDevice s) {
  const detail::OnStream on_stream("linspace", s);
  if (num < 0) throw_invalid("linspace", "the number of points must not be negative, got " + std::to_string(num));
  if (dtype == bool_ || is_complex(dtype))
    throw_invalid("linspace", std::string("dtype ") + dtype_name(dtype) + " is not supported");
  const Dtype wide = dtype == float64 ? float64 : float32;
  const int steps = endpoint ? num - 1 : num;
  if (num <= 1) return astype(full({num}, array(start, wide), s), dtype, s);
  // Interpolates between start and stop, so that both ends are exact.
  const array share = divide(array(graph::iota({num}, 0, wide)), array(steps, wide), s);
  const array low = multiply(subtract(array(1, wide), share, s), array(start, wide), s);
  return astype(add(low, multiply(share, array(stop, wide), s), s), dtype, s);
}

std::vector<array> meshgrid(const std::vector<array>& arrays, bool sparse, const std::string& indexing,
                            StreamOrDevice s) {
  const detail::OnStream on_stream("meshgrid", s);
  if (indexing != "xy" && indexing != "ij")
    throw_invalid("meshgrid", "indexing is \"xy\" or \"ij\", got \"" + indexing + "\"");
  const size_t n = arrays.size();
  std::vector<array> grids;
  for (size_t k = 0; k < n; ++k) {
    if (arrays[k].ndim() > 1)
      throw_invalid("meshgrid", "coordinates are scalars or vectors, got " + detail::describe(arrays[k]));
    Shape shape(n, Dim(1));
    const size_t axis = indexing == "xy" && n > 1 && k < 2 ? 1 - k : k;
    shape[axis] = arrays[k].ndim() == 0 ? Dim(1) : arrays[k].shape()[0];
    grids.push_back(reshape(arrays[k], shape, s));
  }
  return sparse ? grids : broadcast_arrays(grids, s);
}

array hanning(int m, StreamOrDevice s) { return cosine_window("hanning", m, 0.5, {-0.5}, s); }
array hamming(int m, StreamOrDevice s) { return cosine_window("hamming", m, 0.54, {-0.46}, s); }
array blackman(int m, StreamOrDevice s) { return cosine_window("blackman", m, 0.42, {-0.5, 0.08}, s); }

array bartlett(int m, StreamOrDevice s) {
  const detail::OnStream on_stream("bartlett", s);
  if (m < 1) return zeros({0}, s);
  if (m == 1) return ones({1}, s);
  const array rise = divide(array(graph::iota({m}, 0, float32)), array(0.5 * (m - 1), float32), s);
  return minimum(rise, subtract(array(2, float32), rise, s), s);
}

}  // namespace weft
