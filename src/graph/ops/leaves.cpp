// Leaves: parameter, constant, iota.
#include <array>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

std::vector<Shape> attrs_shape(const Attrs& attrs, TypeSpan) { return std::vector<Shape>(1, attrs.shape); }
std::vector<Shape> scalar_shape(const Attrs&, TypeSpan) { return {Shape{}}; }
std::vector<Dtype> attrs_dtype(const Attrs& attrs, TypeSpan) { return {attrs.dtype}; }

std::vector<Shape> iota_shape(const Attrs& attrs, TypeSpan) {
  if (attrs.axes.size() != 1 || attrs.axes[0] < 0 || attrs.axes[0] >= static_cast<int64_t>(attrs.shape.size()))
    throw_invalid("iota", "needs one axis of its shape " + weft::to_string(attrs.shape) + ", got " + list(attrs.axes));
  return {attrs.shape};
}

std::vector<Dtype> iota_dtype(const Attrs& attrs, TypeSpan) {
  if (!is_integer(attrs.dtype) && !is_float(attrs.dtype))
    throw_invalid("iota", std::string("counts in integers or floats, not in ") + dtype_name(attrs.dtype));
  return {attrs.dtype};
}

Interval constant_interval(const Attrs& attrs, std::span<const Interval>, const Type& result) {
  if (is_float(result.dtype)) return {};
  return {attrs.number.i, attrs.number.i};
}

Interval iota_interval(const Attrs& attrs, std::span<const Interval>, const Type& result) {
  const int64_t n = attrs.shape[static_cast<size_t>(attrs.axes[0])].bound();
  return n == 0 ? range_of(result.dtype) : fit(result.dtype, 0, wide_t{n} - 1);
}

// A counted result can be split along every axis except the one that counts.
Factors iota_factors(const Attrs& attrs, TypeSpan, TypeSpan outputs) {
  Factors f{{}, {factors_from(0, outputs[0].rank())}};
  f.outputs[0][static_cast<size_t>(attrs.axes[0])] = -1;
  return f;
}

std::vector<HostTensor> parameter_reference(const Attrs& attrs, std::span<const HostTensor>, TypeSpan) {
  throw_internal("parameter",
                 "number " + std::to_string(attrs.slot) + " has no value: it is not among the graph's inputs");
}

std::vector<HostTensor> constant_reference(const Attrs& attrs, std::span<const HostTensor>, TypeSpan outputs) {
  return {{outputs[0], {attrs.number}}};
}

std::vector<HostTensor> iota_reference(const Attrs& attrs, std::span<const HostTensor>, TypeSpan outputs) {
  HostTensor out = host(outputs[0]);
  const size_t axis = static_cast<size_t>(attrs.axes[0]);
  each_index(bounds(attrs.shape), [&](const auto& index, int64_t at) {
    out.data[static_cast<size_t>(at)] = kernel::reference_cast(Number::of_int(index[axis]), int64, attrs.dtype);
  });
  return {out};
}

constexpr auto leaves_table = std::to_array<Row>({
    {Op::parameter, "parameter", 0, 0, attrs_shape, attrs_dtype, dtype_interval, None::leaf, None::leaf, None::leaf,
     None::leaf, -1, parameter_reference, 0, "an input: a placeholder, or data", "shape, dtype, slot"},
    {Op::constant, "constant", 0, 0, scalar_shape, attrs_dtype, constant_interval, None::leaf, None::leaf, None::leaf,
     None::leaf, -1, constant_reference, 0, "a scalar constant", "dtype, number, literal"},
    {Op::iota, "iota", 0, 0, iota_shape, iota_dtype, iota_interval, None::leaf, None::leaf, None::leaf, iota_factors,
     -1, iota_reference, 0, "0, 1, … along one axis", "shape, axes, dtype", "floats, integers"},
});
static_assert(complete(leaves_table, Op::parameter));

}  // namespace

std::span<const Row> leaf_rows() { return leaves_table; }

}  // namespace weft::graph
