// Random bits: Threefry-2x32 (Salmon et al. 2011) in the layout that JAX and MLX share. Reads attrs.shape.
//
// N words in row-major order, h = N / 2, o = N mod 2. For i < h, threefry(key, (i, i + h + o)) gives words i and i + h + o; where N is odd,
// word h is the first word of threefry(key, (h, 0)).
#include <array>

#include "base/error.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

std::vector<Shape> random_shape(const Attrs& attrs, TypeSpan in) {
  if (in[0].shape != Shape{2}) throw_invalid("random_bits", "the key must be two words, got " + to_string(in[0]));
  if (!is_static(attrs.shape)) throw_invalid("random_bits", "the shape must be static, got " + weft::to_string(attrs.shape) + ": draw at the bound and slice");
  return {attrs.shape};
}

std::vector<Dtype> random_dtype(const Attrs&, TypeSpan in) {
  if (in[0].dtype != uint32) throw_invalid("random_bits", "the key must be uint32, got " + to_string(in[0]));
  return {uint32};
}

/// Each key draws for itself: the words of one key depend on how many it draws.
Values random_vmap(const Node& node, ValueSpan x, std::span<const int> axes) {
  const Dim extent = batch_extent(x, axes);
  if (!extent.is_static()) throw_invalid("random_bits", "keys cannot be batched along a symbolic axis");
  const Value keys = to_front(x[0], axes[0]);
  if (extent == 0) return {full(prepend(extent, node.attrs().shape), uint32, Number::of_int(0))};
  Values parts;
  for (int64_t k = 0; k < extent; ++k) parts.push_back(expand_dims(random_bits(reshape(slice_axis(keys, 0, k, 1), {2}), node.attrs().shape), {0}));
  return {concat(parts, 0)};
}

Factors random_factors(const Attrs&, TypeSpan, TypeSpan out) { return {{{-1}}, {std::vector<int>(out[0].shape.size(), -1)}}; }

std::vector<HostTensor> random_reference(const Attrs&, std::span<const HostTensor> in, TypeSpan out) {
  HostTensor result = host(out[0]);
  const int64_t n = static_cast<int64_t>(result.data.size()), half = n / 2, odd = n % 2;
  const auto words = [&](int64_t a, int64_t b) {
    const Number args[] = {in[0].data[0], in[0].data[1], Number::of_int(a), Number::of_int(b)};
    return std::pair(kernel::reference(kernel::ScalarOp::threefry0, uint32, args), kernel::reference(kernel::ScalarOp::threefry1, uint32, args));
  };
  for (int64_t i = 0; i < half; ++i) {
    const auto [first, second] = words(i, i + half + odd);
    result.data[static_cast<size_t>(i)] = first;
    result.data[static_cast<size_t>(i + half + odd)] = second;
  }
  if (odd) result.data[static_cast<size_t>(half)] = words(half, 0).first;
  return {result};
}

constexpr auto rows = std::to_array<Row>({
    {Op::random_bits, "random_bits", 1, 1, random_shape, random_dtype, dtype_interval, None::discrete, None::discrete, random_vmap, random_factors, -1,
     random_reference, 0},
});
static_assert(complete(rows, Op::random_bits));

}  // namespace

std::span<const Row> random_rows() { return rows; }

}  // namespace weft::graph
