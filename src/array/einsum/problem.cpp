#include "array/einsum/problem.h"

#include <algorithm>
#include <utility>

#include "array/einsum/parse.h"
#include "array/op_support.h"
#include "base/error.h"
#include "weft/ops.h"

namespace weft::detail {
namespace {

using Terms = std::vector<EinsumTerm>;

class Builder {
 public:
  Builder(const std::string& subscripts, const std::vector<array>& operands)
      : subscripts_(subscripts), operands_(operands), text_(parse_einsum(subscripts)) {}

  EinsumProblem build() {
    if (text_.operands.size() != operands_.size())
      throw_invalid("einsum", std::to_string(text_.operands.size()) + " operands are named in \"" + subscripts_ +
                                  "\", got " + std::to_string(operands_.size()));
    for (size_t k = 0; k < operands_.size(); ++k) enter_operand(k);
    infer_lengths();
    for (size_t k = 0; k < operands_.size(); ++k) {
      EinsumTensor t = opened(k);
      problem_.written.push_back(united({}, t.labels));
      problem_.tensors.push_back(without_ones(distinct(std::move(t))));
    }
    enter_output();
    return std::move(problem_);
  }

 private:
  std::string name_of(int label) const {
    return label >= ellipsis_label ? "..." : text_.names[static_cast<size_t>(label)];
  }
  std::string term_text(const EinsumTerm& term) const {
    std::string text;
    for (const EinsumTerm::Part& part : term.parts)
      text +=
          (text.empty() ? "" : "+") + (part.factor == 1 ? "" : std::to_string(part.factor) + "*") + name_of(part.label);
    return text + (term.offset == 0 ? "" : "+" + std::to_string(term.offset));
  }

  // Expands the ellipsis of operand k, and takes the lengths of its plain axes.
  void enter_operand(size_t k) {
    const EinsumOperand& text = text_.operands[k];
    const array& a = operands_[k];
    const auto named = static_cast<int>(text.terms.size()), rank = static_cast<int>(a.ndim());
    if (text.ellipsis < 0 ? named != rank : named > rank)
      throw_invalid("einsum", std::to_string(named) + " axes are named for operand " + std::to_string(k) + ", " +
                                  describe(a) + ", in \"" + subscripts_ + "\"");
    Terms terms = text.terms;
    for (int j = 0; text.ellipsis >= 0 && j < rank - named; ++j)
      terms.insert(terms.begin() + text.ellipsis, EinsumTerm{{{ellipsis_label + j, 1}}, 0});
    if (text.ellipsis >= 0) hidden_ = std::max(hidden_, rank - named);
    for (size_t axis = 0; axis < terms.size(); ++axis)
      if (!terms[axis].affine()) enter_size(terms[axis].parts[0].label, a.shape()[axis], a);
    terms_.push_back(std::move(terms));
  }

  void enter_size(int label, Dim n, const array& operand) {
    const auto [at, added] = problem_.sizes.emplace(label, n);
    if (added || at->second == n || n == 1) return;
    if (!(at->second == 1))
      throw_invalid("einsum", "axis " + name_of(label) + " has lengths " + to_string(Shape{at->second}) + " and " +
                                  to_string(Shape{n}) + ", in " + describe(operand));
    at->second = n;
  }

  // Gives each index that only sums name the largest length that fits all of them, a few at a time: a sum tells one
  // index when it knows the others.
  void infer_lengths() {
    for (;;) {
      EinsumSizes found;
      std::string waiting;
      for (size_t k = 0; k < terms_.size(); ++k)
        for (size_t axis = 0; axis < terms_[k].size(); ++axis) {
          const EinsumTerm& term = terms_[k][axis];
          if (!term.affine()) continue;
          const auto unknown = [&](const EinsumTerm::Part& part) { return !problem_.sizes.contains(part.label); };
          const auto n = std::count_if(term.parts.begin(), term.parts.end(), unknown);
          if (n > 1) waiting = term_text(term) + ", of " + describe(operands_[k]);
          if (n != 1) continue;
          const int label = std::find_if(term.parts.begin(), term.parts.end(), unknown)->label;
          const int64_t length = fitting(k, axis, label);
          const auto [at, added] = found.emplace(label, length);
          if (!added) at->second = std::min(at->second.bound(), length);
        }
      if (found.empty() && waiting.empty()) return;
      if (found.empty())
        throw_invalid("einsum", "all but one index of a sum must have a length from another axis: " + waiting +
                                    ", in \"" + subscripts_ + "\"");
      problem_.sizes.merge(found);
    }
  }

  // Returns the number of values of the label for which the axis has elements, the other indices being at their last.
  int64_t fitting(size_t k, size_t axis, int label) const {
    const EinsumTerm& term = terms_[k][axis];
    int64_t room = length_of(k, axis) - term.offset, factor = 1;
    for (const EinsumTerm::Part& part : term.parts) {
      if (part.label == label) factor = part.factor;
      else room -= (number_of(part.label) - 1) * part.factor;
    }
    if (room <= 0 && term.parts.size() > 1) refuse_short(k, axis, term);
    return room <= 0 ? 0 : (room - 1) / factor + 1;
  }

  int64_t length_of(size_t k, size_t axis) const {
    const Dim n = operands_[k].shape()[axis];
    if (!n.is_static())
      throw_invalid("einsum", "an axis that a sum reads must have a length that is a number, got " +
                                  term_text(terms_[k][axis]) + " of " + describe(operands_[k]));
    return n;
  }
  int64_t number_of(int label) const {
    const Dim n = problem_.sizes.at(label);
    if (!n.is_static())
      throw_invalid("einsum", "index " + name_of(label) + " of a sum must have a length that is a number, in \"" +
                                  subscripts_ + "\"");
    return n;
  }

  [[noreturn]] void refuse_short(size_t k, size_t axis, const EinsumTerm& term) const {
    std::string lengths;
    for (const EinsumTerm::Part& part : term.parts)
      if (problem_.sizes.contains(part.label))
        lengths += (lengths.empty() ? "" : ", ") + name_of(part.label) + "=" + std::to_string(number_of(part.label));
    throw_invalid("einsum", "axis " + std::to_string(axis) + " of " + describe(operands_[k]) + " is too short for " +
                                term_text(term) + " with " + lengths);
  }

  // Returns operand k with an axis for each index of its sums.
  EinsumTensor opened(size_t k) const {
    array value = operands_[k];
    EinsumLabels labels;
    for (size_t axis = terms_[k].size(); axis-- > 0;) {  // from the last: axes before it keep their positions
      const EinsumTerm& term = terms_[k][axis];
      if (term.affine()) value = windowed(k, axis, std::move(value));
      EinsumLabels own;
      for (const EinsumTerm::Part& part : term.parts) own.push_back(part.label);
      labels.insert(labels.begin(), own.begin(), own.end());
    }
    return {std::move(value), std::move(labels)};
  }

  // Returns `value` with axis `axis` as one axis for each index of the sum, which is read at its elements.
  array windowed(size_t k, size_t axis, array value) const {
    const EinsumTerm& term = terms_[k][axis];
    int64_t extent = 1;
    bool none = false;
    for (const EinsumTerm::Part& part : term.parts) {
      extent += (number_of(part.label) - 1) * part.factor;
      none = none || number_of(part.label) == 0;
    }
    const bool strided = term.parts.size() == 1;
    if (none ? !strided : term.offset + extent > length_of(k, axis)) refuse_short(k, axis, term);
    const int at = static_cast<int>(axis);
    if (none) return array(graph::slice_axis(value.value(), at, 0, 0));
    graph::Value v = graph::slice_axis(value.value(), at, term.offset, extent);
    if (strided) {
      std::vector<int64_t> start(v.shape().size(), 0), step(v.shape().size(), 1);
      Shape sizes = v.shape();
      sizes[axis] = number_of(term.parts[0].label);
      step[axis] = term.parts[0].factor;
      return array(graph::slice(v, std::move(start), std::move(sizes), std::move(step)));
    }
    for (size_t j = term.parts.size() - 1; j > 0; --j)
      v = graph::window(v, at, number_of(term.parts[j].label), j == 1 ? term.parts[0].factor : 1, term.parts[j].factor);
    return array(v);
  }

  // Replaces axes of one label by their diagonal.
  EinsumTensor distinct(EinsumTensor t) const {
    for (size_t k = 0; k < t.labels.size();) {
      const auto behind = std::find(t.labels.begin() + static_cast<int64_t>(k) + 1, t.labels.end(), t.labels[k]);
      if (behind == t.labels.end()) {
        ++k;
        continue;
      }
      const auto again = static_cast<size_t>(behind - t.labels.begin());
      if (!(t.value.shape()[k] == t.value.shape()[again]))
        throw_invalid("einsum", "the axes named " + name_of(t.labels[k]) + " of " + describe(t.value) +
                                    " have different lengths: there is no diagonal");
      const int label = t.labels[k];
      t.value = diagonal(t.value, 0, static_cast<int>(k), static_cast<int>(again));
      t.labels.erase(behind);
      t.labels.erase(t.labels.begin() + static_cast<int64_t>(k));
      t.labels.push_back(label);
      k = 0;  // a label may occur three times
    }
    return t;
  }

  // Removes axes of length 1 that are longer in other operands: they broadcast.
  EinsumTensor without_ones(EinsumTensor t) const {
    std::vector<int> ones;
    EinsumLabels labels;
    for (size_t k = 0; k < t.labels.size(); ++k) {
      if (t.value.shape()[k] == 1 && !(problem_.sizes.at(t.labels[k]) == 1)) ones.push_back(static_cast<int>(k));
      else labels.push_back(t.labels[k]);
    }
    return ones.empty() ? t : EinsumTensor{squeeze(t.value, ones), labels};
  }

  void enter_output() {
    for (int label : text_.output) {
      if (label == ellipsis_label)
        for (int j = hidden_; j-- > 0;) problem_.output.push_back(ellipsis_label + j);
      else if (!problem_.sizes.contains(label))
        throw_invalid("einsum",
                      "axis " + name_of(label) + " of the result is in no operand of \"" + subscripts_ + "\"");
      else problem_.output.push_back(label);
    }
  }

  const std::string& subscripts_;
  const std::vector<array>& operands_;
  const EinsumText text_;
  std::vector<Terms> terms_;  // of each operand, one for each axis
  int hidden_ = 0;            // the number of axes of the longest ellipsis
  EinsumProblem problem_;
};

}  // namespace

bool has(const EinsumLabels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

size_t position(const EinsumLabels& labels, int label) {
  return static_cast<size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

EinsumLabels united(const EinsumLabels& a, const EinsumLabels& b) {
  EinsumLabels all = a;
  for (int label : b)
    if (!has(all, label)) all.push_back(label);
  return all;
}

EinsumProblem einsum_problem(const std::string& subscripts, const std::vector<array>& operands) {
  return Builder(subscripts, operands).build();
}

}  // namespace weft::detail
