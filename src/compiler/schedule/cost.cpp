#include "compiler/schedule/cost.h"

#include <algorithm>
#include <cmath>

namespace weft::compiler {

namespace {

/// Returns the share of the machine that a launch's programs keep busy: the last wave of programs leaves processors
/// without work.
double busy_share(const Division& division) {
  if (division.one_thread) return 1 / division.processors;
  if (division.programs <= 0) return 1;
  const double waves = std::ceil(division.programs / division.processors);
  return division.programs / (waves * division.processors);
}

double over(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

}  // namespace

double memory_seconds(const Reuse& reuse, const target::Rates& rates) {
  double seconds = 0;
  for (size_t k = 0; k < reuse.size(); ++k)
    if (reuse[k] > 0) seconds += over(reuse[k], rates.copy[k]);
  return seconds;
}

double seconds_of(const LaunchWork& work, const Reuse& reuse, const Division& division, const target::Rates& rates) {
  const double share = busy_share(division);
  const double arithmetic = over(work.products, rates.matmul_rate(work.arithmetic, work.products)) +
                            over(work.operations, rates.vector) + over(work.row_sums, rates.rows);
  return over(1, rates.launch) + std::max(memory_seconds(reuse, rates), arithmetic / share);
}

double floor_seconds(const LaunchWork& work, const Reuse& reuse, const target::Rates& rates) {
  double moving = 0, distance = target::Rates::least_footprint;
  for (const double bytes : reuse) {
    if (bytes > 0) moving += over(bytes, rates.peak_bandwidth(distance));
    distance *= 2;
  }
  return std::max(moving, over(work.flops, rates.peak(work.arithmetic)));
}

double floor_seconds(double bytes, double flops, Arithmetic arithmetic, const target::Rates& rates) {
  return std::max(over(bytes, rates.memory()), over(flops, rates.peak(arithmetic)));
}

}  // namespace weft::compiler
