#pragma once
// What a machine can do: the rates that times of kernels are predicted with and compared with. They are measured
// (compiler/program/measured_rates.h) and kept in the cache folder, or stated by a vendor. Programs never depend on
// measured rates, only reports do: a program is the same on every run.
#include <array>
#include <optional>
#include <string>

#include "base/arithmetic.h"
#include "target/machine.h"

namespace weft::target {

// Below this estimate of operations and bytes a launch on a CPU costs less than waking the thread team.
inline constexpr double least_parallel_work = 50e3;

/// Rates per second for the whole machine, with all threads of this process. 0: not known.
struct Rates {
  // Bytes read and written by copies that touch least_footprint · 2^k bytes again and again: small ones stay in caches,
  // the last is memory.
  static constexpr double least_footprint = 1 << 16;
  static constexpr size_t footprints = 13;
  std::array<double, footprints> copy{};
  // Operations of square matmuls of least_side · 2^k, float32 and bfloat16: small ones do not reach the peak.
  static constexpr double least_side = 32;
  static constexpr size_t sides = 8;
  std::array<double, sides> f32_products{}, f16_products{};
  double vector = 0;   // additions of float32 elements in registers
  double rows = 0;     // sums of rows so short that combining the lanes is most of their time
  double launch = 0;   // launches of a kernel that computes next to nothing
  PeakFlops products;  // the best of all sizes, by dtype of the operands

  /// Returns the bandwidth for memory that was last touched `distance` bytes of other traffic ago.
  double bandwidth(double distance) const;
  /// Returns the best bandwidth of that footprint or any larger one: a bound that caches of small sizes do not lower.
  double peak_bandwidth(double distance) const;
  double memory() const { return copy.back(); }
  /// Returns the peak operations per second of a kind of arithmetic. A machine without units for 8-bit floats computes
  /// them as 16-bit ones, and so on to float32.
  double peak(Arithmetic kind) const;
  /// Returns the rate of a matmul of `flops` operations, from square ones of as many.
  double matmul_rate(Arithmetic kind, double flops) const;
};

/// Returns the rates that a vendor states; where it states none, those of a typical machine of the
/// kind (A100, EPYC 7543, Xeon 8358) for as many processors. What is not stated (caches, small matmuls) has the rate of
/// the next larger size.
Rates stated_rates(const Machine& machine);

/// Returns the higher of each rate.
Rates best_of(const Rates& a, const Rates& b);

/// Rates in the cache folder, and how many processes measured them.
struct KeptRates {
  Rates rates;
  int64_t measurements = 0;
};
/// Returns what is kept for a machine and a number of threads, by any process; nothing where none has measured it.
std::optional<KeptRates> kept_rates(const Machine& machine, int threads);
/// Raises what is kept to the best of it and `measured`, and returns that. A measurement of a busy machine therefore
/// never lowers a rate, and a later one raises it. The entry appears whole or not at all; of two processes at a time
/// one measurement may be lost.
KeptRates keep_rates(const Machine& machine, int threads, const Rates& measured);

/// Returns "43.1 GB/s copied, 180 GFLOP/s in float32 products, 900 in bfloat16, 1.2 µs a launch".
std::string to_string(const Rates& rates);

}  // namespace weft::target
