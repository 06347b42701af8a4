#include "array/einsum/order.h"

#include <algorithm>
#include <numeric>

namespace weft::detail {
namespace {

using Lists = std::vector<EinsumLabels>;
using Positions = std::vector<size_t>;

Positions all_of(const Lists& list) {
  Positions all(list.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

EinsumLabels labels_of(const Lists& list, const Positions& positions) {
  EinsumLabels all;
  for (size_t k : positions) all = united(all, list[k]);
  return all;
}

// Two operands that may be contracted next.
struct Pair {
  size_t first, second;
  double removed;  // elements of both, less those of their product
  double cost;
};

class Search {
 public:
  explicit Search(const EinsumProblem& p) : problem_(p), list_(p.written), largest_(elements(p.output)) {
    for (const EinsumLabels& labels : list_) largest_ = std::max(largest_, elements(labels));
    limit_ = cost_of(all_of(list_));
  }

  EinsumOrder at_once() {
    contract(all_of(list_));
    return std::move(order_);
  }

  EinsumOrder greedy() {
    while (list_.size() > 2 || (list_.size() == 2 && !order_.steps.empty())) {
      offer_new(true);
      if (pairs_.empty()) offer_new(false);
      if (pairs_.empty()) break;
      const auto better = [](const Pair& a, const Pair& b) {
        return a.removed != b.removed ? a.removed > b.removed : a.cost < b.cost;
      };
      const Pair best = *std::min_element(pairs_.begin(), pairs_.end(), better);
      contract({best.first, best.second});
      renumber(best);
    }
    return list_.size() > 1 || order_.steps.empty() ? at_once() : std::move(order_);
  }

 private:
  double elements(const EinsumLabels& labels) const {
    double n = 1;
    for (int label : labels) n *= static_cast<double>(problem_.sizes.at(label).bound());
    return n;
  }

  double cost_of(const Positions& positions) const {
    const EinsumLabels all = labels_of(list_, positions);
    const bool sums = labels_left(list_, positions, problem_.output).size() < all.size();
    return elements(all) * static_cast<double>(std::max<size_t>(1, positions.size() - 1) + (sums ? 1 : 0));
  }

  // Offers all pairs at first, later those with the newest product: the others were offered before.
  void offer_new(bool sharing) {
    for (size_t i = 0; i < list_.size(); ++i)
      for (size_t j = order_.steps.empty() ? i + 1 : list_.size() - 1; i < j && j < list_.size(); ++j) {
        const EinsumLabels both = united(list_[i], list_[j]);
        if (!sharing || both.size() < list_[i].size() + list_[j].size()) offer(i, j);
      }
  }

  void offer(size_t i, size_t j) {
    const double product = elements(labels_left(list_, {i, j}, problem_.output)), cost = cost_of({i, j});
    if (product > largest_ || order_.operations + cost > limit_) return;
    pairs_.push_back({i, j, elements(list_[i]) + elements(list_[j]) - product, cost});
  }

  void contract(const Positions& positions) {
    order_.operations += cost_of(positions);
    order_.most_labels = std::max(order_.most_labels, labels_of(list_, positions).size());
    EinsumLabels left = labels_left(list_, positions, problem_.output);
    for (size_t k = positions.size(); k-- > 0;) list_.erase(list_.begin() + static_cast<int64_t>(positions[k]));
    list_.push_back(std::move(left));
    order_.steps.push_back(positions);
  }

  // Drops the pairs of contracted operands, and moves the positions of the others.
  void renumber(const Pair& best) {
    std::erase_if(pairs_, [&](const Pair& pair) {
      return pair.first == best.first || pair.first == best.second || pair.second == best.first ||
             pair.second == best.second;
    });
    const auto moved = [&](size_t k) { return k - (k > best.first ? 1 : 0) - (k > best.second ? 1 : 0); };
    for (Pair& pair : pairs_) pair = {moved(pair.first), moved(pair.second), pair.removed, pair.cost};
  }

  const EinsumProblem& problem_;
  Lists list_;
  double largest_;
  double limit_ = 0;
  std::vector<Pair> pairs_;
  EinsumOrder order_;
};

}  // namespace

EinsumLabels labels_left(const Lists& list, const Positions& positions, const EinsumLabels& output) {
  EinsumLabels left;
  for (int label : labels_of(list, positions)) {
    bool needed = has(output, label);
    for (size_t k = 0; k < list.size() && !needed; ++k)
      needed = std::find(positions.begin(), positions.end(), k) == positions.end() && has(list[k], label);
    if (needed) left.push_back(label);
  }
  return left;
}

EinsumOrder einsum_order(const EinsumProblem& problem) { return Search(problem).greedy(); }

EinsumOrder einsum_at_once(const EinsumProblem& problem) { return Search(problem).at_once(); }

}  // namespace weft::detail
