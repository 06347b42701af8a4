// Pooling.
#include <algorithm>
#include <limits>

#include "graph/build.h"
#include "nn/support.h"
#include "weft/nn/convolution.h"

namespace weft::nn {

namespace {

std::vector<int64_t> window_axes(const char* op, const char* what, const std::vector<int>& given, size_t space,
                                 int least) {
  if (given.size() != 1 && given.size() != space)
    throw_invalid(op, std::string(what) + " needs one number, or one for each of " + std::to_string(space) +
                          " axes; got " + std::to_string(given.size()));
  std::vector<int64_t> out(space, given[0]);
  if (given.size() == space) std::copy(given.begin(), given.end(), out.begin());
  for (const int64_t v : out)
    if (v < least)
      throw_invalid(op,
                    std::string(what) + " must be at least " + std::to_string(least) + "; got " + std::to_string(v));
  return out;
}

/// The windows over axes 1 … space, each followed by the axis of its elements: a view of x padded with `fill`. Windows
/// that do not overlap are a reshape.
struct Windows {
  array view;
  std::vector<int> elements;  // the axes to reduce
};

Windows windows(const char* op, const array& x, const std::vector<int>& kernel, const std::vector<int>& stride,
                const std::vector<int>& padding, double fill) {
  if (x.ndim() < 3 || !issubdtype(x.dtype(), floating))
    throw_invalid(op, "the input must be floating, [batch, space…, channels]; it is " + to_string(x.shape()) + " " +
                          dtype_name(x.dtype()));
  const size_t space = x.ndim() - 2;
  const auto size = window_axes(op, "the kernel", kernel, space, 1),
             step = stride.empty() ? size : window_axes(op, "stride", stride, space, 1),
             edge = padding.empty() ? std::vector<int64_t>(space, 0) : window_axes(op, "padding", padding, space, 0);
  std::vector<int64_t> around(x.ndim(), 0);
  for (size_t k = 0; k < space; ++k) {
    if (2 * edge[k] > size[k])
      throw_invalid(op, "padding must be at most half of the kernel, so that every window sees the input");
    if (x.shape()[k + 1].bound() + 2 * edge[k] < size[k])
      throw_invalid(op, "windows of " + std::to_string(size[k]) + " do not fit into axis " + std::to_string(k + 1) +
                            " of " + to_string(x.shape()));
    around[k + 1] = edge[k];
  }
  graph::Value v = x.value();
  if (std::any_of(edge.begin(), edge.end(), [](int64_t e) { return e > 0; }))
    v = graph::pad(v, around, around, Number::of_real(fill));
  Windows out{x, {}};
  for (size_t k = 0; k < space; ++k) {
    const auto axis = static_cast<int>(1 + 2 * k);
    const int64_t n = v.shape()[static_cast<size_t>(axis)].bound();
    if (step[k] == size[k]) {
      const int64_t count = n / size[k];
      if (count * size[k] != n) v = graph::slice_axis(v, axis, 0, count * size[k]);
      Shape shape = v.shape();
      shape[static_cast<size_t>(axis)] = count;
      shape.insert(shape.begin() + axis + 1, Dim(size[k]));
      v = graph::reshape(v, shape);
    } else {
      v = graph::window(v, axis, size[k], step[k]);
    }
    out.elements.push_back(axis + 1);
  }
  out.view = array(v);
  return out;
}

}  // namespace

array max_pool(const array& x, const std::vector<int>& kernel, const std::vector<int>& stride,
               const std::vector<int>& padding) {
  const Windows w = windows("max_pool", x, kernel, stride, padding, -std::numeric_limits<double>::infinity());
  return max(w.view, w.elements);
}

array avg_pool(const array& x, const std::vector<int>& kernel, const std::vector<int>& stride,
               const std::vector<int>& padding) {
  const Windows w = windows("avg_pool", x, kernel, stride, padding, 0);
  return mean(w.view, w.elements);
}

Pool::Pool(Scope scope, Kind kind, int space, PoolOptions options)
    : Layer(std::move(scope)), kind_(kind), space_(space), options_(std::move(options)) {}

array Pool::operator()(const array& x) const {
  if (x.ndim() != static_cast<size_t>(space_) + 2)
    throw_invalid("Pool", "the input must be [batch, " + std::to_string(space_) +
                              " axes of space, channels]; its shape is " + to_string(x.shape()));
  return kind_ == Kind::max ? max_pool(x, options_.kernel, options_.stride, options_.padding)
                            : avg_pool(x, options_.kernel, options_.stride, options_.padding);
}

std::string Pool::describe() const {
  std::string kernel;
  for (const int k : options_.kernel) kernel += (kernel.empty() ? "" : ", ") + std::to_string(k);
  return (kind_ == Kind::max ? "MaxPool" : "AvgPool") + std::to_string(space_) + "d(" + kernel + ")";
}

}  // namespace weft::nn
