#include "target/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/hash.h"
#include "runtime/cache_dir.h"

namespace weft::target {

namespace {

constexpr int rates_version = 2;  // raise it when a rate changes its meaning: what is kept is then measured again
constexpr const char* cache_kind = "rates";

static_assert(std::is_trivially_copyable_v<KeptRates> && sizeof(Rates) % sizeof(double) == 0);
constexpr size_t fields = sizeof(Rates) / sizeof(double);

std::array<double, fields> numbers(const Rates& rates) { return std::bit_cast<std::array<double, fields>>(rates); }

Digest key_of(const Machine& machine, int threads) {
  return Hasher()
      .text("rates")
      .number(rates_version)
      .text(machine.name)
      .text(machine.arch)
      .number(machine.processors)
      .number(machine.simt ? 0 : threads)
      .finish();
}

/// Returns the value at a position between the entries of a table, linear in it; positions outside have the value of
/// the nearest entry.
template <size_t n>
double at(const std::array<double, n>& table, double position) {
  const double inside = std::clamp(position, 0.0, static_cast<double>(n - 1));
  const auto low = std::min(static_cast<size_t>(inside), n - 2);
  const double part = inside - static_cast<double>(low);
  return (1 - part) * table[low] + part * table[low + 1];
}

double log_footprint(double distance) { return std::log2(std::max(distance, 1.0) / Rates::least_footprint); }

}  // namespace

double Rates::bandwidth(double distance) const { return at(copy, log_footprint(distance)); }

double Rates::peak_bandwidth(double distance) const {
  const auto from = static_cast<size_t>(std::clamp(log_footprint(distance), 0.0, static_cast<double>(footprints - 1)));
  return *std::max_element(copy.begin() + static_cast<std::ptrdiff_t>(from), copy.end());
}

double Rates::peak(Arithmetic kind) const {
  double best = 0;
  switch (kind) {
    case Arithmetic::f64: return products.f64;
    case Arithmetic::f8: best = products.f8; [[fallthrough]];
    case Arithmetic::f16: best = std::max(best, products.f16); break;
    case Arithmetic::tf32: best = products.tf32; break;
    case Arithmetic::vector: best = vector; break;
    case Arithmetic::f32: break;
  }
  return std::max(best, products.f32);
}

double Rates::matmul_rate(Arithmetic kind, double flops) const {
  const bool wide = kind == Arithmetic::f32 || kind == Arithmetic::f64 || kind == Arithmetic::vector;
  const auto& table = wide ? f32_products : f16_products;
  const double best = *std::max_element(table.begin(), table.end());
  if (best <= 0) return peak(kind);
  const double side = std::cbrt(std::max(flops, 1.0) / 2);
  return at(table, std::log2(side / least_side)) * peak(kind) / best;
}

Rates stated_rates(const Machine& machine) {
  Rates r;
  double memory = machine.bandwidth, launch = machine.launch_seconds;
  r.products = machine.peak;
  const Machine& typical = stated_machine(machine.simt ? "sm_80" : machine.vector_bytes >= 64 ? "avx512" : "avx2");
  const double share = static_cast<double>(machine.processors) / static_cast<double>(typical.processors);
  if (memory == 0) memory = typical.bandwidth * share;
  if (launch == 0) launch = typical.launch_seconds;
  if (r.products.f32 == 0)
    r.products = {typical.peak.f64 * share, typical.peak.f32 * share, typical.peak.tf32 * share,
                  typical.peak.f16 * share, typical.peak.f8 * share};
  r.copy.fill(memory);
  r.f32_products.fill(r.products.f32);
  r.f16_products.fill(std::max(r.products.f16, r.products.f32));
  r.vector = r.products.f32 / 2;  // a fused multiply-add counts as two
  // Lanes are added pairwise: about four steps, each with the latency of an addition, in which a unit starts four.
  constexpr double additions_of_sum = 16;
  r.rows = r.vector / (additions_of_sum * static_cast<double>(machine.simt ? machine.warp : machine.lanes(4)));
  r.launch = 1 / launch;
  return r;
}

Rates best_of(const Rates& a, const Rates& b) {
  std::array<double, fields> best = numbers(a);
  const std::array<double, fields> other = numbers(b);
  for (size_t k = 0; k < fields; ++k) best[k] = std::max(best[k], other[k]);
  return std::bit_cast<Rates>(best);
}

std::optional<KeptRates> kept_rates(const Machine& machine, int threads) {
  const auto entry = runtime::cache_get(cache_kind, key_of(machine, threads));
  if (!entry || entry->size() != sizeof(KeptRates)) return std::nullopt;
  KeptRates kept;
  std::memcpy(&kept, entry->data(), sizeof kept);
  return kept;
}

KeptRates keep_rates(const Machine& machine, int threads, const Rates& measured) {
  KeptRates kept = kept_rates(machine, threads).value_or(KeptRates{});
  kept.rates = best_of(kept.rates, measured);
  ++kept.measurements;
  runtime::cache_put(cache_kind, key_of(machine, threads), &kept, sizeof kept);
  return kept;
}

std::string to_string(const Rates& r) {
  return fmt::format("{:.1f} GB/s copied, {:.0f} GFLOP/s in float32 products, {:.0f} in bfloat16, {:.1f} us a launch",
                     r.memory() / 1e9, r.peak(Arithmetic::f32) / 1e9, r.peak(Arithmetic::f16) / 1e9,
                     r.launch > 0 ? 1e6 / r.launch : 0.0);
}

}  // namespace weft::target
