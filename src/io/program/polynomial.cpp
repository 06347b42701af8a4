#include "io/program/polynomial.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "kernel/interval.h"

namespace weft::io {
namespace {

using kernel::wide_t;

/// A fraction of 64 bits; `fits` turns false where one is not enough, and the value then means nothing.
struct Fraction {
  int64_t above = 0, below = 1;
  bool fits = true;

  static Fraction of(wide_t above, wide_t below) {
    if (below == 0) return {0, 1, false};
    wide_t a = above < 0 ? -above : above, b = below < 0 ? -below : below;
    while (b != 0) std::swap(a, b), b %= a;
    if ((below < 0) != (a < 0)) a = -a;
    above /= a, below /= a;
    constexpr wide_t most = wide_t{1} << 62;
    const bool fits = -most < above && above < most && below < most;
    return {static_cast<int64_t>(above), static_cast<int64_t>(below), fits};
  }
  friend Fraction operator+(const Fraction& a, const Fraction& b) {
    const Fraction sum = of(wide_t{a.above} * b.below + wide_t{b.above} * a.below, wide_t{a.below} * b.below);
    return {sum.above, sum.below, sum.fits && a.fits && b.fits};
  }
  friend Fraction operator*(const Fraction& a, const Fraction& b) {
    const Fraction product = of(wide_t{a.above} * b.above, wide_t{a.below} * b.below);
    return {product.above, product.below, product.fits && a.fits && b.fits};
  }
  friend Fraction operator-(const Fraction& a, const Fraction& b) { return a + of(-1, 1) * b; }
  friend Fraction operator/(const Fraction& a, const Fraction& b) { return a * of(b.below, b.above); }
};

Fraction whole(int64_t n) { return Fraction::of(n, 1); }

/// Coefficients by the lengths of their terms.
using Coefficients = std::map<std::vector<int>, Fraction>;

void add(Coefficients& to, const std::vector<int>& lengths, const Fraction& f) {
  const auto [at, fresh] = to.emplace(lengths, f);
  if (!fresh) at->second = at->second + f;
}

/// Adds factor · (n_i - first_i) (n_j - first_j).
void add_product(Coefficients& to, const std::vector<int64_t>& first, int i, int j, const Fraction& factor) {
  const Fraction a = whole(first[static_cast<size_t>(i)]), b = whole(first[static_cast<size_t>(j)]);
  add(to, {i, j}, factor);
  add(to, {i}, factor * whole(-1) * b);
  add(to, {j}, factor * whole(-1) * a);
  add(to, {}, factor * a * b);
}

std::optional<Polynomial> over_one_divisor(const Coefficients& coefficients) {
  constexpr int64_t most = 1 << 20;
  Polynomial out;
  for (const auto& [lengths, f] : coefficients) {
    if (!f.fits || f.below > most) return {};
    out.divisor = std::lcm(out.divisor, f.below);
    if (out.divisor > most) return {};
  }
  for (const auto& [lengths, f] : coefficients) {
    const Fraction c = f * whole(out.divisor);
    if (!c.fits) return {};
    if (c.above != 0) out.terms.push_back({c.above, lengths});
  }
  return out;
}

}  // namespace

std::optional<int64_t> Polynomial::value(std::span<const int64_t> lengths) const {
  wide_t sum = 0;
  for (const Term& t : terms) {
    wide_t product = t.coefficient;
    bool fits = true;
    for (const int k : t.lengths)
      fits = fits && !__builtin_mul_overflow(product, wide_t{lengths[static_cast<size_t>(k)]}, &product);
    if (!fits || __builtin_add_overflow(sum, product, &sum)) return {};
  }
  if (sum % divisor != 0) return {};
  sum /= divisor;
  if (sum < INT64_MIN || sum > INT64_MAX) return {};
  return static_cast<int64_t>(sum);
}

std::vector<std::vector<int64_t>> SamplePoints::points() const {
  std::vector<std::vector<int64_t>> out{first};
  const size_t count = first.size();
  for (size_t i = 0; i < count; ++i)
    for (const auto* changed : {&once, &twice}) {
      out.push_back(first);
      out.back()[i] = (*changed)[i];
    }
  for (size_t i = 0; i < count; ++i)
    for (size_t j = i + 1; j < count; ++j) {
      out.push_back(first);
      out.back()[i] = once[i], out.back()[j] = once[j];
    }
  return out;
}

std::optional<Polynomial> interpolate(const SamplePoints& samples, std::span<const int64_t> values) {
  const int count = static_cast<int>(samples.first.size());
  const auto at = [&](size_t point) { return whole(values[point]); };
  const auto step = [&](const std::vector<int64_t>& changed, int i) {
    return whole(changed[static_cast<size_t>(i)] - samples.first[static_cast<size_t>(i)]);
  };
  Coefficients found;
  add(found, {}, at(0));
  for (int i = 0; i < count; ++i) {
    const size_t once = 1 + 2 * static_cast<size_t>(i);
    const Fraction u = step(samples.once, i), v = step(samples.twice, i), slope = (at(once) - at(0)) / u,
                   square = ((at(once + 1) - at(0)) / v - slope) / (v - u), linear = slope - square * u;
    add(found, {i}, linear);
    add(found, {}, whole(-1) * linear * whole(samples.first[static_cast<size_t>(i)]));
    add_product(found, samples.first, i, i, square);
  }
  size_t pair = 1 + 2 * static_cast<size_t>(count);
  for (int i = 0; i < count; ++i)
    for (int j = i + 1; j < count; ++j, ++pair) {
      const size_t alone_i = 1 + 2 * static_cast<size_t>(i), alone_j = 1 + 2 * static_cast<size_t>(j);
      const Fraction mixed = at(pair) - at(alone_i) - at(alone_j) + at(0);
      add_product(found, samples.first, i, j, mixed / (step(samples.once, i) * step(samples.once, j)));
    }
  return over_one_divisor(found);
}

}  // namespace weft::io
