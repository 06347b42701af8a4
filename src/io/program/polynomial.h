#pragma once
// Polynomials of lengths: the numbers of an exported function that follow from the lengths of its arguments.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weft::io {

/// A sum of products of at most two lengths, over one divisor: (2 n₀ n₁ + n₀ - 1) / 4.
struct Polynomial {
  struct Term {
    int64_t coefficient = 0;
    std::vector<int> lengths;  // at most two indices, ascending: the product of these lengths
    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms;
  int64_t divisor = 1;  // positive

  /// Returns the value, nothing where it is no whole number of 64 bits.
  std::optional<int64_t> value(std::span<const int64_t> lengths) const;
};

/// Lengths at which a function was traced: a first point, then for each of its lengths two points that differ from the
/// first in this length alone, and for each pair of lengths, in the order (0,1), (0,2), …, (1,2), …, one that has both
/// of the first changes.
struct SamplePoints {
  std::vector<int64_t> first;
  std::vector<int64_t> once, twice;  // by length: its two other values

  /// Returns all points, in this order.
  std::vector<std::vector<int64_t>> points() const;
};

/// Returns the polynomial that has the given values at the points, by divided differences; nothing where its
/// coefficients are no small fractions. Every polynomial of second degree is found.
std::optional<Polynomial> interpolate(const SamplePoints& samples, std::span<const int64_t> values);

}  // namespace weft::io
