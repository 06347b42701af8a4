// weft/einsum.h: parse, reduce every operand to distinct labels, choose an order, contract pair by pair with dot.
#include "weft/einsum.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "array/op_support.h"
#include "array/routines/einsum_parse.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;
using Labels = std::vector<int>;
using Sizes = std::map<int, int64_t>;
using Path = std::vector<std::vector<int>>;

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }
size_t position(const Labels& labels, int label) {
  return static_cast<size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

// An operand and the label of each of its axes.
struct Tensor {
  array value;
  Labels labels;
};

struct Problem {
  std::vector<Tensor> tensors;
  Labels output;
  Sizes sizes;
};

std::string name_of(int label) {
  return label >= detail::ellipsis_label ? "..." : std::string(1, static_cast<char>(label));
}

void enter_size(Sizes& sizes, int label, int64_t n, const array& operand) {
  const auto [at, added] = sizes.emplace(label, n);
  if (added || at->second == n || n == 1) return;
  if (at->second != 1) {
    throw_invalid("einsum", "axis " + name_of(label) + " has lengths " + std::to_string(at->second) + " and " +
                                std::to_string(n) + ", in " + describe(operand));
  }
  at->second = n;
}

// Returns the operand's terms, one for each axis, with the ellipsis expanded.
std::vector<detail::EinsumTerm> axis_terms(const detail::EinsumOperand& text, const array& a, int& ellipsis_axes) {
  const auto named = static_cast<int>(text.terms.size()), rank = static_cast<int>(a.ndim());
  if (text.ellipsis < 0 ? named != rank : named > rank)
    throw_invalid("einsum", std::to_string(named) + " axes are named for " + describe(a));
  std::vector<detail::EinsumTerm> terms = text.terms;
  if (text.ellipsis < 0) return terms;
  const int hidden = rank - named;
  ellipsis_axes = std::max(ellipsis_axes, hidden);
  for (int j = 0; j < hidden; ++j)
    terms.insert(terms.begin() + text.ellipsis, detail::EinsumTerm{{detail::ellipsis_label + j, 0}, {1, 1}});
  return terms;
}

// Returns axis `axis` as two axes [outer, inner]: (o, k) reads element s·o + d·k.
array windowed(const array& a, size_t axis, int64_t outer, int64_t inner, int64_t s, int64_t d) {
  const int at = static_cast<int>(axis);
  return array(graph::slice_axis(graph::window(a.value(), at, inner, s, d), at, 0, outer));
}

// Replaces axis `axis` of the tensor, read at s·o + d·k, by the axes o and k.
Tensor opened(Tensor t, size_t axis, const detail::EinsumTerm& term, Sizes& sizes) {
  const int64_t n = t.value.shape()[axis], s = term.scale[0], d = term.scale[1];
  if (term.label[1] == 0) {
    const int64_t count = (n + s - 1) / s;
    enter_size(sizes, term.label[0], count, t.value);
    Shape stop = t.value.shape(), step(t.value.ndim(), Dim(1));
    step[axis] = s;
    return {slice(t.value, Shape(t.value.ndim(), Dim(0)), stop, step), std::move(t.labels)};
  }
  const bool first = sizes.contains(term.label[0]), second = sizes.contains(term.label[1]);
  if (!first && !second)
    throw_invalid("einsum", "the length of " + name_of(term.label[0]) + " or of " + name_of(term.label[1]) +
                                " must be known from another operand than " + describe(t.value));
  const auto fitting = [&](int64_t other, int64_t other_scale, int64_t scale) {
    const int64_t room = n - 1 - (other - 1) * other_scale;
    return room < 0 ? int64_t{0} : room / scale + 1;
  };
  const int64_t outer = first ? sizes.at(term.label[0]) : fitting(sizes.at(term.label[1]), d, s);
  const int64_t inner = second ? sizes.at(term.label[1]) : fitting(outer, s, d);
  if (outer < 1 || inner < 1 || (outer - 1) * s + (inner - 1) * d >= n)
    throw_invalid("einsum", "axis " + std::to_string(axis) + " of " + describe(t.value) + " is too short for " +
                                std::to_string(s) + "·" + name_of(term.label[0]) + " + " + std::to_string(d) + "·" +
                                name_of(term.label[1]) + " with lengths " + std::to_string(outer) + " and " +
                                std::to_string(inner));
  sizes[term.label[0]] = outer;
  sizes[term.label[1]] = inner;
  t.value = windowed(t.value, axis, outer, inner, s, d);
  t.labels[axis] = term.label[0];
  t.labels.insert(t.labels.begin() + static_cast<int64_t>(axis) + 1, term.label[1]);
  return t;
}

// Replaces two axes of one label by their diagonal.
Tensor distinct(Tensor t) {
  for (size_t k = 0; k < t.labels.size(); ++k) {
    const size_t again =
        position(Labels(t.labels.begin() + static_cast<int64_t>(k) + 1, t.labels.end()), t.labels[k]) + k + 1;
    if (again >= t.labels.size()) continue;
    if (t.value.shape()[k] != t.value.shape()[again])
      throw_invalid("einsum", "the axes named " + name_of(t.labels[k]) + " of " + describe(t.value) +
                                  " have different lengths: there is no diagonal");
    const int label = t.labels[k];
    t.value = diagonal(t.value, 0, static_cast<int>(k), static_cast<int>(again));
    t.labels.erase(t.labels.begin() + static_cast<int64_t>(again));
    t.labels.erase(t.labels.begin() + static_cast<int64_t>(k));
    t.labels.push_back(label);
    k = static_cast<size_t>(-1);  // starts again: a label may occur three times
  }
  return t;
}

// Removes axes of length 1 that are longer in other operands: they broadcast.
Tensor without_ones(Tensor t, const Sizes& sizes) {
  std::vector<int> ones;
  Labels labels;
  for (size_t k = 0; k < t.labels.size(); ++k) {
    if (t.value.shape()[k] == 1 && sizes.at(t.labels[k]) != 1) ones.push_back(static_cast<int>(k));
    else labels.push_back(t.labels[k]);
  }
  return ones.empty() ? t : Tensor{squeeze(t.value, ones), labels};
}

Problem prepare(const std::string& subscripts, const std::vector<array>& operands) {
  const detail::EinsumText text = detail::parse_einsum(subscripts);
  if (text.operands.size() != operands.size())
    throw_invalid("einsum", std::to_string(text.operands.size()) + " operands are named in \"" + subscripts +
                                "\", got " + std::to_string(operands.size()));
  Problem p;
  int hidden = 0;
  std::vector<std::vector<detail::EinsumTerm>> terms;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!is_static(operands[k].shape()))
      throw_invalid("einsum", "axes must have lengths that are numbers, got " + describe(operands[k]));
    terms.push_back(axis_terms(text.operands[k], operands[k], hidden));
    Labels labels;
    for (size_t axis = 0; axis < terms[k].size(); ++axis) {
      labels.push_back(terms[k][axis].label[0]);
      if (!terms[k][axis].affine()) enter_size(p.sizes, labels.back(), operands[k].shape()[axis], operands[k]);
    }
    p.tensors.push_back({operands[k], labels});
  }
  for (size_t k = 0; k < operands.size(); ++k)
    for (size_t axis = terms[k].size(); axis-- > 0;)  // from the last, so that axes before it keep their positions
      if (terms[k][axis].affine()) p.tensors[k] = opened(std::move(p.tensors[k]), axis, terms[k][axis], p.sizes);
  for (Tensor& t : p.tensors) t = without_ones(distinct(std::move(t)), p.sizes);
  for (int label : text.output) {
    if (label == detail::ellipsis_label)
      for (int j = hidden; j-- > 0;) p.output.push_back(detail::ellipsis_label + j);
    else if (!p.sizes.contains(label))
      throw_invalid("einsum", "axis " + name_of(label) + " of the result is in no operand of \"" + subscripts + "\"");
    else p.output.push_back(label);
  }
  for (const auto& [label, n] : p.sizes)
    if (label >= detail::ellipsis_label && !has(p.output, label))
      throw_invalid("einsum", "the ellipsis of an operand is missing in the result of \"" + subscripts + "\"");
  return p;
}

// ---- the order ----

Labels united(const Labels& a, const Labels& b) {
  Labels all = a;
  for (int label : b)
    if (!has(all, label)) all.push_back(label);
  return all;
}

double elements(const Labels& labels, const Sizes& sizes) {
  double n = 1;
  for (int label : labels) n *= static_cast<double>(sizes.at(label));
  return n;
}

// Returns the labels of the product of i and j: those that the result or another operand needs.
Labels product_labels(const std::vector<Labels>& list, size_t i, size_t j, const Labels& output) {
  Labels kept;
  for (int label : united(list[i], list[j])) {
    bool needed = has(output, label);
    for (size_t k = 0; k < list.size() && !needed; ++k) needed = k != i && k != j && has(list[k], label);
    if (needed) kept.push_back(label);
  }
  return kept;
}

std::vector<Labels> contracted(const std::vector<Labels>& list, size_t i, size_t j, const Labels& output) {
  std::vector<Labels> rest;
  for (size_t k = 0; k < list.size(); ++k)
    if (k != i && k != j) rest.push_back(list[k]);
  rest.push_back(product_labels(list, i, j, output));
  return rest;
}

struct Order {
  double cost = 0;
  Path path;
};

// Returns the cheapest of all orders of up to five operands (180 of them), by multiplications.
Order best_order(const std::vector<Labels>& list, const Labels& output, const Sizes& sizes) {
  if (list.size() == 1) return {};
  Order best{std::numeric_limits<double>::infinity(), {}};
  for (size_t i = 0; i < list.size(); ++i)
    for (size_t j = i + 1; j < list.size(); ++j) {
      const double cost = elements(united(list[i], list[j]), sizes);
      if (cost >= best.cost) continue;
      Order rest = best_order(contracted(list, i, j, output), output, sizes);
      if (cost + rest.cost >= best.cost) continue;
      rest.path.insert(rest.path.begin(), {static_cast<int>(i), static_cast<int>(j)});
      best = {cost + rest.cost, std::move(rest.path)};
    }
  return best;
}

// Returns an order of many operands: at each step the pair that shrinks the total size most, then the cheapest.
Order greedy_order(std::vector<Labels> list, const Labels& output, const Sizes& sizes) {
  Order order;
  while (list.size() > 5) {
    size_t first = 0, second = 1;
    std::pair<double, double> least{std::numeric_limits<double>::infinity(), 0};
    for (size_t i = 0; i < list.size(); ++i)
      for (size_t j = i + 1; j < list.size(); ++j) {
        const double growth =
            elements(product_labels(list, i, j, output), sizes) - elements(list[i], sizes) - elements(list[j], sizes);
        const std::pair<double, double> rank{growth, elements(united(list[i], list[j]), sizes)};
        if (rank < least) least = rank, first = i, second = j;
      }
    order.cost += elements(united(list[first], list[second]), sizes);
    order.path.push_back({static_cast<int>(first), static_cast<int>(second)});
    list = contracted(list, first, second, output);
  }
  Order rest = best_order(list, output, sizes);
  order.cost += rest.cost;
  order.path.insert(order.path.end(), rest.path.begin(), rest.path.end());
  return order;
}

Order order_of(const Problem& p) {
  std::vector<Labels> list;
  for (const Tensor& t : p.tensors) list.push_back(t.labels);
  return greedy_order(std::move(list), p.output, p.sizes);
}

// ---- the contraction ----

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

}  // namespace

array einsum(const std::string& subscripts, const std::vector<array>& operands, StreamOrDevice s) {
  const detail::OnStream on_stream("einsum", s);
  Problem p = prepare(subscripts, operands);
  Dtype dtype = bool_;
  for (const array& a : operands) dtype = promote_types(dtype, a.dtype());
  std::vector<Tensor> list = p.tensors;
  for (const std::vector<int>& pair : order_of(p).path) {
    const auto i = static_cast<size_t>(pair[0]), j = static_cast<size_t>(pair[1]);
    std::vector<Labels> labels;
    for (const Tensor& t : list) labels.push_back(t.labels);
    Tensor result = product(list[i], list[j], product_labels(labels, i, j, p.output), s);
    list.erase(list.begin() + static_cast<int64_t>(j));
    list.erase(list.begin() + static_cast<int64_t>(i));
    list.push_back(std::move(result));
  }
  const Tensor total = summed(list[0], p.output, s);
  Shape shape;
  for (int label : p.output) shape.emplace_back(p.sizes.at(label));
  return astype(broadcast_to(aligned(total, p.output, s), shape, s), dtype, s);
}

std::pair<Path, std::string> einsum_path(const std::string& subscripts, const std::vector<array>& operands) {
  const Problem p = prepare(subscripts, operands);
  Order order = order_of(p);
  Labels all;
  for (const Tensor& t : p.tensors) all = united(all, t.labels);
  const double naive = elements(all, p.sizes) * std::max<double>(1, static_cast<double>(p.tensors.size()) - 1);
  std::string text = "  Complete contraction:  " + subscripts +
                     "\n         Naive multiplications:  " + std::to_string(naive) +
                     "\n     Optimized multiplications:  " + std::to_string(order.cost) + "\n";
  if (order.path.empty()) order.path.push_back({0});
  return {order.path, text};
}

}  // namespace weft
