// weft/einsum.h: contracts the operands of a problem in their order, each pair by one dot.
#include "weft/einsum.h"

#include <fmt/format.h>

#include <algorithm>

#include "array/einsum/order.h"
#include "array/einsum/problem.h"
#include "array/op_support.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::has;
using detail::position;
using detail::united;
using Labels = detail::EinsumLabels;
using Tensor = detail::EinsumTensor;

Tensor summed(Tensor t, const Labels& kept, const StreamOrDevice& s) {
  std::vector<int> axes;
  Labels labels;
  for (size_t k = 0; k < t.labels.size(); ++k) {
    if (has(kept, t.labels[k])) labels.push_back(t.labels[k]);
    else axes.push_back(static_cast<int>(k));
  }
  return axes.empty() ? t : Tensor{sum(t.value, axes, false, s), labels};
}

// Returns the axes in the order of `labels`; missing ones have length 1.
array aligned(const Tensor& t, const Labels& labels, const StreamOrDevice& s) {
  std::vector<int> order;
  Shape shape;
  for (int label : labels) {
    const bool present = has(t.labels, label);
    if (present) order.push_back(static_cast<int>(position(t.labels, label)));
    shape.push_back(present ? t.value.shape()[position(t.labels, label)] : Dim(1));
  }
  return reshape(transpose(t.value, order, s), shape, s);
}

Tensor product(Tensor a, Tensor b, const Labels& kept, const StreamOrDevice& s) {
  a = summed(std::move(a), united(kept, b.labels), s);
  b = summed(std::move(b), united(kept, a.labels), s);
  std::vector<int64_t> a_contract, b_contract, a_batch, b_batch;
  Labels batch, free;
  for (size_t k = 0; k < a.labels.size(); ++k) {
    const int label = a.labels[k];
    if (!has(b.labels, label)) {
      free.push_back(label);
      continue;
    }
    (has(kept, label) ? a_batch : a_contract).push_back(static_cast<int64_t>(k));
    (has(kept, label) ? b_batch : b_contract).push_back(static_cast<int64_t>(position(b.labels, label)));
    if (has(kept, label)) batch.push_back(label);
  }
  if (a_contract.empty() || !is_float(promote_types(a.value.dtype(), b.value.dtype()))) {
    const Labels all = united(a.labels, b.labels);
    return summed({multiply(aligned(a, all, s), aligned(b, all, s), s), all}, kept, s);
  }
  const Dtype dtype = promote_types(a.value.dtype(), b.value.dtype());
  Labels labels = united(batch, free);
  for (int label : b.labels)
    if (!has(a.labels, label)) labels.push_back(label);
  return {array(graph::dot(detail::to_dtype(a.value.value(), dtype), detail::to_dtype(b.value.value(), dtype),
                           a_contract, b_contract, a_batch, b_batch)),
          labels};
}

// Contracts the tensors at ascending positions, one after another; the product goes to the end of the list.
void contract(std::vector<Tensor>& list, const std::vector<size_t>& positions, const Labels& output,
              const StreamOrDevice& s) {
  for (size_t done = 1; done < positions.size(); ++done) {
    const size_t i = done == 1 ? positions[0] : list.size() - 1, j = positions[done] - (done == 1 ? 0 : done);
    std::vector<Labels> labels;
    for (const Tensor& t : list) labels.push_back(t.labels);
    Tensor result = product(list[i], list[j], detail::labels_left(labels, {i, j}, output), s);
    list.erase(list.begin() + static_cast<int64_t>(std::max(i, j)));
    list.erase(list.begin() + static_cast<int64_t>(std::min(i, j)));
    list.push_back(std::move(result));
  }
}

}  // namespace

array einsum(const std::string& subscripts, const std::vector<array>& operands, StreamOrDevice s) {
  const detail::OnStream on_stream("einsum", s);
  detail::EinsumProblem p = detail::einsum_problem(subscripts, operands);
  Dtype dtype = bool_;
  for (const array& a : operands) dtype = promote_types(dtype, a.dtype());
  for (const std::vector<size_t>& positions : detail::einsum_order(p).steps)
    contract(p.tensors, positions, p.output, s);
  const Tensor total = summed(p.tensors[0], p.output, s);
  Shape shape;
  for (int label : p.output) shape.push_back(p.sizes.at(label));
  return astype(broadcast_to(aligned(total, p.output, s), shape, s), dtype, s);
}

std::pair<std::vector<std::vector<int>>, std::string> einsum_path(const std::string& subscripts,
                                                                  const std::vector<array>& operands) {
  const detail::EinsumProblem p = detail::einsum_problem(subscripts, operands);
  const detail::EinsumOrder order = detail::einsum_order(p), at_once = detail::einsum_at_once(p);
  std::vector<std::vector<int>> path;
  for (const std::vector<size_t>& positions : order.steps) path.emplace_back(positions.begin(), positions.end());
  return {path, fmt::format("  Complete contraction:  {}\n         Naive scaling:  {}\n     Optimized scaling:  {}\n"
                            "      Naive FLOP count:  {:.0f}\n  Optimized FLOP count:  {:.0f}\n",
                            subscripts, at_once.most_labels, order.most_labels, at_once.operations, order.operations)};
}

}  // namespace weft
