#include "compiler/plan/predict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "runtime/threads.h"

namespace weft::compiler {

namespace {

using target::Rates;

/// Sums of values at positions, over any range, in logarithmic time (P. Fenwick, A New Data Structure for Cumulative
/// Frequency Tables, 1994).
class PrefixSums {
 public:
  explicit PrefixSums(size_t count) : tree_(count + 1) {}
  void add(size_t at, double value) {
    for (size_t k = at + 1; k < tree_.size(); k += k & (~k + 1)) tree_[k] += value;
  }
  double before(size_t end) const {
    double sum = 0;
    for (size_t k = end; k > 0; k -= k & (~k + 1)) sum += tree_[k];
    return sum;
  }

 private:
  std::vector<double> tree_;
};

/// Returns the part of a Reuse that a distance belongs to.
size_t part_of(double distance) {
  const double part = std::ceil(std::log2(std::max(distance, Rates::least_footprint) / Rates::least_footprint));
  return std::min(static_cast<size_t>(part), Rates::footprints - 1);
}

}  // namespace

/// Each buffer's distance is what all buffers that were touched since its last use hold: each counts once, at its last
/// use (the stack distance of a cache that replaces what was used longest ago; Mattson et al., Evaluation techniques
/// for storage hierarchies, 1970).
std::vector<Reuse> reuse_of(const StepPlan& plan) {
  using Key = std::tuple<Location::In, int, int64_t>;
  size_t touches = 0;
  for (const Step& step : plan.steps) touches += step.traffic.size();
  std::vector<Reuse> out(plan.steps.size());
  std::map<Key, std::pair<size_t, double>> last;  // use of a buffer: when, and its bytes
  PrefixSums recent(2 * touches);
  size_t now = 0;
  for (int run = 0; run < 2; ++run)
    for (size_t k = 0; k < plan.steps.size(); ++k)
      for (const Traffic& t : plan.steps[k].traffic) {
        const auto [at, fresh] = last.try_emplace({t.location.in, t.location.index, t.location.offset}, now, t.bytes);
        double distance = INFINITY;
        if (!fresh) {
          auto& [when, bytes] = at->second;
          distance = t.bytes + recent.before(now) - recent.before(when + 1);
          recent.add(when, -bytes);
          when = now, bytes = t.bytes;
        }
        recent.add(now++, t.bytes);
        if (run == 1) out[k][part_of(distance)] += t.bytes;
      }
  return out;
}

std::vector<Prediction> predict(const StepPlan& plan, const target::Machine& machine, const Rates& rates) {
  const std::vector<Reuse> reuse = reuse_of(plan);
  std::vector<Prediction> out(plan.steps.size());
  for (size_t k = 0; k < plan.steps.size(); ++k) {
    const Step& step = plan.steps[k];
    if (step.kind == Step::Kind::nested) continue;
    Division division;
    division.processors =
        machine.simt ? static_cast<double>(machine.processors) : static_cast<double>(runtime::num_threads());
    for (const StepSegment& s : step.segments) division.programs += static_cast<double>(s.grid);
    division.one_thread = !machine.simt && step.kind == Step::Kind::launch &&
                          (division.programs <= 1 || step.work < target::least_parallel_work);
    out[k] = {seconds_of(step.cost, reuse[k], division, rates), floor_seconds(step.cost, reuse[k], rates)};
  }
  return out;
}

}  // namespace weft::compiler
