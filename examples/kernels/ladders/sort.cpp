// float32 in ascending order: by merging runs that are sorted, and by four bits after each other (a radix sort).
#include <algorithm>

#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

using Values = k::In<float, 1>;
using Sorted = k::Out<float, 1>;
using Keys = k::In<uint32_t, 1>;
using Moved = k::Out<uint32_t, 1>;

constexpr int64_t block = 1024;                  // of elements that a program takes
constexpr int64_t bits = 4, digits = 1 << bits;  // of a pass of the radix sort

/// Sorts runs of elements, a program each.
void sort_runs(Values x, Sorted y) {
  const auto at = k::ds(k::program_id(0) * block, block);
  y(at) = k::sort(x(at));
}
/// Merges pairs of runs [pairs, 2, n]: each program finds its part of a pair by itself.
void merge_pairs(k::In<float, 3> x, k::Out<float, 2> y) {
  const auto pair = k::program_id(0), first = k::program_id(1) * block;
  const auto half = [&](int64_t which) {
    return [&x, pair, which](const auto& i) { return k::gather(x, pair, k::Index(which), i); };
  };
  y(pair, k::ds(first, block)) = k::merge_part(half(0), x.dim(2), half(1), x.dim(2), first, block);
}

void to_bits(Values x, Moved y) {
  const auto at = k::ds(k::program_id(0) * block, block);
  y(at) = k::ordered_bits(x(at));
}
void from_bits(Keys x, Sorted y) {
  const auto at = k::ds(k::program_id(0) * block, block);
  y(at) = k::from_ordered_bits<float>(x(at));
}

/// The digits of a block of keys; what lies behind the last key has none.
auto digits_of(Keys keys, int64_t shift) {
  const auto first = k::program_id(0) * block;
  const auto digit = k::cast<int32_t>((keys(k::ds(first, block)) >> shift) & (digits - 1));
  return k::where(first + k::arange(block) < keys.dim(0), digit, static_cast<int32_t>(digits));
}
/// How often each digit occurs in each block: [digits, blocks].
void count(Keys keys, k::Out<int32_t, 2> counts, int64_t shift) {
  counts(k::all, k::program_id(0)) = k::histogram(digits_of(keys, shift), digits);
}
/// Where the first key of each digit of each block goes: the counts before it, digit by digit.
void start(k::In<int32_t, 1> counts, k::Out<int32_t, 1> starts) {
  k::scan_all(
      counts, starts, 4096, 0, [](const auto& a, const auto& b) { return a + b; }, true);
}
/// Moves the keys of a block to their places.
void move(Keys keys, k::In<int32_t, 2> starts, Moved out, int64_t shift) {
  const auto digit = digits_of(keys, shift);
  const auto before = k::take(starts(k::all, k::program_id(0)), k::minimum(digit, digits - 1), 0);
  const auto place = k::cast<int64_t>(before + k::radix_rank(digit, digits).within);
  k::scatter(out, keys(k::ds(k::program_id(0) * block, block)), k::where(digit < digits, place, keys.dim(0)));
}

array merged(const array& x) {
  const int64_t n = x.shape(0);
  int64_t padded = block;
  while (padded < n) padded *= 2;
  const auto runs = k::kernel("sort_runs", sort_runs).grid([](auto v, auto) { return k::Grid{v.dim(0) / block}; });
  const auto pairs = k::kernel("merge_pairs", merge_pairs)
                         .grid([](auto v, auto) {
                           return k::Grid{v.dim(0), 2 * v.dim(2) / block};
                         })
                         .outputs([](const array& v) {
                           return Shape{v.shape(0), 2 * v.shape(2)};
                         });
  array sorted = runs(weft::pad(x, {0, static_cast<int>(padded - n)}, array(INFINITY)));
  for (int64_t size = block; size < padded; size *= 2)
    sorted = pairs(weft::reshape(sorted, Shape{padded / size / 2, 2, size}));
  return weft::slice(weft::reshape(sorted, Shape{padded}), Shape{0}, Shape{n});
}

array by_digits(const array& x) {
  const int64_t blocks = k::cdiv(x.shape(0), block);
  const auto grid = [](auto v, auto...) { return k::Grid{k::cdiv(v.dim(0), block)}; };
  const auto counts = k::kernel("radix_counts", count).grid(grid).outputs([=](const array&) {
    return Shape{digits, blocks};
  });
  const auto starts = k::kernel("radix_starts", start).grid({1});
  const auto moved = k::kernel("radix_move", move).grid(grid);
  array keys = k::kernel("to_bits", to_bits).grid(grid)(x);
  for (int64_t shift = 0; shift < 32; shift += bits) {
    const array first = starts(weft::reshape(counts.config(shift)(keys), Shape{digits * blocks}));
    keys = moved.config(shift)(keys, weft::reshape(first, Shape{digits, blocks}));
  }
  return k::kernel("from_bits", from_bits).grid(grid)(keys);
}

}  // namespace

Ladder sort(Scale scale) {
  const int64_t n = at(scale, 10'007, 1 << 20, 1 << 26);
  Ladder out{.name = "sort", .inputs = {normal({n}, 1)}};
  out.library = one([](const Arrays& in) { return weft::sort(in[0]); });
  out.bytes = 8.0 * static_cast<double>(n);
  out.rungs = {
      loop({{n}},
           [n](auto in, auto to) {
             std::copy_n(in[0], n, to[0]);
             std::sort(to[0], to[0] + n);
           }),
      rung("runs of 1024, merged in pairs", one([](const Arrays& in) { return merged(in[0]); }),
           "on a CPU each element searches by itself, one load after the other"),
      rung("four bits after each other", one([](const Arrays& in) { return by_digits(in[0]); })),
  };
  return out;
}

}  // namespace ladders
