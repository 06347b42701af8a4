// Batches of convolutions as convolutions: a batch of inputs becomes more examples; a batch of weights, or of both,
// becomes more channels and groups.
#include "graph/build.h"
#include "graph/regions/convolution.h"
#include "graph/rows.h"

namespace weft::graph {
namespace {

Shape part(const Shape& shape, size_t from, size_t to) {
  return Shape(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.begin() + static_cast<std::ptrdiff_t>(to));
}

/// Returns `shape` followed by the other extents.
Shape with(Shape shape, std::initializer_list<Dim> more) {
  shape.insert(shape.end(), more);
  return shape;
}

std::vector<int64_t> counted(int64_t from, int64_t to) {
  std::vector<int64_t> out;
  for (int64_t k = from; k < to; ++k) out.push_back(k);
  return out;
}

/// [B, a…, C] → [a…, groups · B · (C / groups)]: joins each group's channels of the whole batch.
Value channels_joined(const Value& v, int64_t groups) {
  const Shape& s = v.shape();
  const size_t last = s.size() - 1;
  const int64_t batch = s[0].bound(), each = s[last].bound() / groups;
  std::vector<int64_t> order = counted(1, static_cast<int64_t>(last) + 1);
  order.insert(order.end(), {0, static_cast<int64_t>(last) + 1});
  return reshape(permute(reshape(v, with(part(s, 0, last), {groups, each})), order),
                 with(part(s, 1, last), {batch * groups * each}));
}

/// The inverse: [a…, groups · B · (C / groups)] → [B, a…, C].
Value channels_parted(const Value& v, int64_t groups, int64_t batch) {
  const Shape& s = v.shape();
  const size_t last = s.size() - 1;
  const int64_t each = s[last].bound() / (groups * batch);
  std::vector<int64_t> order{static_cast<int64_t>(last) + 1};
  for (const int64_t axis : counted(0, static_cast<int64_t>(last) + 1)) order.push_back(axis);
  order.push_back(static_cast<int64_t>(last) + 2);
  const Shape front = prepend(Dim(batch), part(s, 0, last));
  return reshape(permute(reshape(v, with(part(s, 0, last), {groups, batch, each})), order),
                 with(front, {groups * each}));
}

/// [B, O, a…] → [groups · B · (O / groups), a…], and the inverse.
Value first_joined(const Value& v, int64_t groups) {
  const Shape& s = v.shape();
  const int64_t batch = s[0].bound(), each = s[1].bound() / groups;
  const Shape rest = part(s, 2, s.size());
  std::vector<int64_t> order{1, 0};
  for (const int64_t axis : counted(2, static_cast<int64_t>(s.size()) + 1)) order.push_back(axis);
  const Shape apart = prepend(Dim(batch), prepend(Dim(groups), prepend(Dim(each), rest)));
  return reshape(permute(reshape(v, apart), order), prepend(Dim(batch * groups * each), rest));
}
Value first_parted(const Value& v, int64_t groups, int64_t batch) {
  const Shape& s = v.shape();
  const int64_t each = s[0].bound() / (groups * batch);
  const Shape rest = part(s, 1, s.size());
  std::vector<int64_t> order{1, 0};
  for (const int64_t axis : counted(2, static_cast<int64_t>(s.size()) + 2)) order.push_back(axis);
  const Shape apart = prepend(Dim(groups), prepend(Dim(batch), prepend(Dim(each), rest)));
  return reshape(permute(reshape(v, apart), order), prepend(Dim(batch), prepend(Dim(groups * each), rest)));
}

}  // namespace

Values convolution_vmap(const ConvolutionForm& form, std::span<const Value> in, std::span<const int> axes) {
  const Dim extent = batch_extent(in, axes);
  if (!extent.is_static()) return {};
  const int64_t batch = extent.bound();
  const Value x = axes[0] < 0 ? in[0] : to_front(in[0], axes[0]), w = axes[1] < 0 ? in[1] : to_front(in[1], axes[1]);
  if (axes[1] < 0) {
    if (!x.shape()[1].is_static()) return {};
    const int64_t examples = x.shape()[1].bound();
    const Value y =
        convolution(reshape(x, prepend(Dim(batch * examples), part(x.shape(), 2, x.shape().size()))), w, form);
    return {reshape(y, prepend(extent, prepend(Dim(examples), part(y.shape(), 1, y.shape().size()))))};
  }
  if (axes[0] < 0) return {channels_parted(convolution(x, first_joined(w, form.groups), form), form.groups, batch)};
  ConvolutionForm apart = form;
  apart.groups *= batch;
  return {channels_parted(convolution(channels_joined(x, 1), first_joined(w, 1), apart), 1, batch)};
}

Values convolution_input_vmap(const ConvolutionForm& form, const std::vector<int64_t>& extents,
                              std::span<const Value> in, std::span<const int> axes) {
  const Dim extent = batch_extent(in, axes);
  if (!extent.is_static()) return {};
  const int64_t batch = extent.bound();
  const Value g = axes[0] < 0 ? in[0] : to_front(in[0], axes[0]), w = axes[1] < 0 ? in[1] : to_front(in[1], axes[1]);
  if (axes[1] < 0) {
    if (!g.shape()[1].is_static()) return {};
    const int64_t examples = g.shape()[1].bound();
    const Value x = convolution_input(reshape(g, prepend(Dim(batch * examples), part(g.shape(), 2, g.shape().size()))),
                                      w, form, extents);
    return {reshape(x, prepend(extent, prepend(Dim(examples), part(x.shape(), 1, x.shape().size()))))};
  }
  ConvolutionForm apart = form;
  apart.groups *= batch;
  const Value all = axes[0] < 0 ? broadcast(g, prepend(extent, g.shape())) : g;
  return {channels_parted(convolution_input(channels_joined(all, 1), first_joined(w, 1), apart, extents), 1, batch)};
}

Values convolution_weights_vmap(const ConvolutionForm& form, const std::vector<int64_t>& kernel,
                                std::span<const Value> in, std::span<const int> axes) {
  const Dim extent = batch_extent(in, axes);
  if (!extent.is_static()) return {};
  const int64_t batch = extent.bound();
  const Value x = axes[0] < 0 ? in[0] : to_front(in[0], axes[0]), g = axes[1] < 0 ? in[1] : to_front(in[1], axes[1]);
  if (axes[1] < 0)
    return {channels_parted(convolution_weights(channels_joined(x, form.groups), g, form, kernel), 1, batch)};
  if (axes[0] < 0)
    return {first_parted(convolution_weights(x, channels_joined(g, form.groups), form, kernel), form.groups, batch)};
  ConvolutionForm apart = form;
  apart.groups *= batch;
  return {first_parted(convolution_weights(channels_joined(x, 1), channels_joined(g, 1), apart, kernel), 1, batch)};
}

}  // namespace weft::graph
