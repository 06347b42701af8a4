#pragma once
// Kernels that use what weft/kernel_library.h has, each traced for one set of shapes. Several tests run them.
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weft/kernel_library.h"

namespace test_kernels {

namespace k = weft::k;
using Refs = std::span<const k::AnyRef>;

inline k::Param read(std::vector<int64_t> dims, weft::Dtype t = weft::float32) {
  return {k::Use::in, t, std::move(dims)};
}
inline k::Param written(std::vector<int64_t> dims, weft::Dtype t = weft::float32) {
  return {k::Use::out, t, std::move(dims)};
}
template <class T, int R>
k::In<T, R> from(const k::AnyRef& r) {
  return k::In<T, R>(r);
}
template <class T, int R>
k::Out<T, R> to(const k::AnyRef& r) {
  return k::Out<T, R>(r);
}

constexpr auto plus = [](const auto& a, const auto& b) { return a + b; };
constexpr auto larger = [](const auto& a, const auto& b) { return k::maximum(a, b); };

/// Partial sums of x [n], one a program.
inline k::Program sums_of(int64_t n, int64_t programs, int64_t block) {
  return k::trace("sums", {read({n}), written({programs})}, {programs}, [&](Refs r) {
    to<float, 1>(r[1])(k::program_id(0)) = k::grid_reduce(from<float, 1>(r[0]), block, 0, plus);
  });
}
/// The largest element of x [n], programs in order.
inline k::Program most_in_order(int64_t n, int64_t block) {
  const int64_t programs = k::cdiv(n, block);
  return k::trace("most", {read({n}), written({1})}, {k::GridAxis(programs, k::Order::sequential)}, [&](Refs r) {
    const auto part = k::block_reduce(from<float, 1>(r[0]), block, -INFINITY, larger);
    k::reduce_in_order(to<float, 1>(r[1]), part, 0, larger);
  });
}
inline k::Program scanned_by_one(int64_t n, int64_t block, bool exclusive) {
  return k::trace("scan_all", {read({n}), written({n})}, {1},
                  [&](Refs r) { k::scan_all(from<float, 1>(r[0]), to<float, 1>(r[1]), block, 0, plus, exclusive); });
}
inline k::Program scanned_in_order(int64_t n, int64_t block) {
  return k::trace("scan_in_order", {read({n}), written({n})}, {k::GridAxis(k::cdiv(n, block), k::Order::sequential)},
                  [&](Refs r) { k::scan_in_order(from<float, 1>(r[0]), to<float, 1>(r[1]), block, 0, plus); });
}
/// The first and the last of the three kernels of a scan: sums of blocks; each block behind what the second one gave.
inline k::Program block_sums(int64_t n, int64_t block) {
  const int64_t programs = k::cdiv(n, block);
  return k::trace("block_sums", {read({n}), written({programs})}, {programs}, [&](Refs r) {
    to<float, 1>(r[1])(k::program_id(0)) = k::block_reduce(from<float, 1>(r[0]), block, 0, plus);
  });
}
inline k::Program block_scans(int64_t n, int64_t block) {
  const int64_t programs = k::cdiv(n, block);
  return k::trace("block_scans", {read({n}), read({programs}), written({n})}, {programs}, [&](Refs r) {
    const auto before = from<float, 1>(r[1])(k::program_id(0)).load();
    k::block_scan(from<float, 1>(r[0]), to<float, 1>(r[2]), block, before, 0, plus);
  });
}

/// One block of keys, ordered by four bits: a pass of a radix sort within a tile.
inline k::Program radix_pass(int64_t n, int64_t shift) {
  using k::u32;
  return k::trace("radix", {read({n}, weft::uint32), written({n}, weft::uint32), written({16}, weft::int32)}, {1},
                  [&](Refs r) {
                    const auto keys = from<u32, 1>(r[0])(k::all).load();
                    const auto ranked = k::radix_rank(k::cast<k::i32>((keys >> shift) & 15), 16);
                    k::scatter(to<u32, 1>(r[1]), keys, k::cast<k::i64>(ranked.rank));
                    to<k::i32, 1>(r[2])(k::all) = ranked.counts;
                  });
}
/// Bits that are ordered as the elements are, and the elements again.
template <class T>
k::Program bits_of(int64_t n, weft::Dtype t) {
  return k::trace("ordered_bits", {read({n}, t), written({n}, weft::uint32), written({n}, t)}, {1}, [&](Refs r) {
    const auto bits = k::ordered_bits(from<T, 1>(r[0])(k::all).load());
    to<k::u32, 1>(r[1])(k::all) = bits;
    to<T, 1>(r[2])(k::all) = k::from_ordered_bits<T>(bits);
  });
}
inline k::Program merged(int64_t n, int64_t m, int64_t block) {
  return k::trace("merge", {read({n}), read({m}), written({n + m})}, {k::cdiv(n + m, block)}, [&](Refs r) {
    const auto first = k::program_id(0) * block;
    to<float, 1>(r[2])(k::ds(first, block)) = k::merge_part(from<float, 1>(r[0]), from<float, 1>(r[1]), first, block);
  });
}
inline k::Program transposed(int64_t m, int64_t n, int64_t rows, int64_t columns) {
  return k::trace("transpose", {read({m, n}), written({n, m})}, {k::cdiv(m, rows), k::cdiv(n, columns)}, [&](Refs r) {
    k::transpose_tile(from<float, 2>(r[0]), to<float, 2>(r[1]), k::program_id(0), k::program_id(1), rows, columns);
  });
}
/// Sums of exponentials of rows, to base 2, as logarithms: [rows, n] to [rows].
inline k::Program log2_sums(int64_t rows, int64_t n, int64_t block) {
  return k::trace("log2_sums", {read({rows, n}), written({rows})}, {1}, [&](Refs r) {
    k::OnlineSoftmax softmax(rows);
    k::loop(0, n, block,
            [&](k::Index i) { softmax.add(from<float, 2>(r[0])(k::all, k::ds(i, block)).load(-INFINITY)); });
    to<float, 1>(r[1])(k::all) = softmax.log2_sum();
  });
}
/// Means and variances of rows: [rows, n] to [rows] each.
inline k::Program variances(int64_t rows, int64_t n, int64_t block) {
  return k::trace("variances", {read({rows, n}), written({rows}), written({rows})}, {1}, [&](Refs r) {
    k::Welford all(rows);
    k::loop(0, n, block, [&](k::Index i) { all.add(from<float, 2>(r[0])(k::all, k::ds(i, block)), n - i); });
    to<float, 1>(r[1])(k::all) = all.get().mean;
    to<float, 1>(r[2])(k::all) = all.variance();
  });
}
/// relu(2 · A · B + bias), tiles in bands.
inline k::Program product(int64_t m, int64_t n, int64_t depth, k::GemmTile tile) {
  const int64_t rows = k::cdiv(m, tile.m), columns = k::cdiv(n, tile.n);
  return k::trace("product", {read({m, depth}), read({depth, n}), read({n}), written({m, n})}, {rows * columns},
                  [&](Refs r) {
                    const auto [i, j] = k::swizzle2d(k::program_id(0), rows, columns, 2);
                    k::gemm(from<float, 2>(r[0]), from<float, 2>(r[1]), i, j, tile,
                            [&](const k::Ds& at, const k::Ds& across, const auto& sum) {
                              const auto bias = k::row(from<float, 1>(r[2])(across));
                              to<float, 2>(r[3])(at, across) = k::maximum(sum * 2.0 + bias, 0.0);
                            });
                  });
}
/// Products of `count` matrices, four a program, and their sums. Three more rows of the depth, and matrices of the last
/// program, lie beyond the arrays, and load as 1 and 2.
inline k::Program batches(int64_t count, int64_t m, int64_t n, int64_t depth) {
  const int64_t programs = k::cdiv(count, 4);
  return k::trace("batches",
                  {read({count, m, depth}), read({count, depth, n}), written({count, m, n}), written({programs, m, n})},
                  {programs}, [&](Refs r) {
                    const auto some = k::ds(k::program_id(0) * 4, 4);
                    const auto left = from<float, 3>(r[0])(some, k::all, k::ds(0, depth + 3)).load(1);
                    const auto right = from<float, 3>(r[1])(some, k::ds(0, depth + 3), k::all).load(2);
                    const auto products = k::dot(left, right);
                    to<float, 3>(r[2])(some, k::all, k::all) = products;
                    to<float, 3>(r[3])(k::program_id(0), k::all, k::all) = k::sum(products, 0);
                  });
}
/// The product of [m,depth] and [depth,n] of T, quantised with as many scales of S along the axes as said; `block` of
/// the depth at once, if any.
template <class T, class S>
k::Program scaled(std::vector<int64_t> shape, std::vector<int64_t> of_a, std::vector<int64_t> of_b, weft::Dtype t,
                  weft::Dtype scale, int64_t block = 0) {
  const int64_t m = shape[0], n = shape[1], depth = shape[2];
  return k::trace(
      "scaled", {read({m, depth}, t), read(of_a, scale), read({depth, n}, t), read(of_b, scale), written({m, n})}, {1},
      [&](Refs r) {
        const auto a = from<T, 2>(r[0]), b = from<T, 2>(r[2]);
        const auto x = from<S, 2>(r[1]), y = from<S, 2>(r[3]);
        const auto c = to<float, 2>(r[4])(k::all, k::all);
        if (block == 0) {
          c.store(k::dot_scaled(a(k::all, k::all), x(k::all, k::all), b(k::all, k::all), y(k::all, k::all)));
          return;
        }
        k::Mut sum = k::zeros<float>({m, n});
        k::loop(depth / block, [&](k::Index i) {
          const auto part = k::ds(i * block, block);
          sum = k::dot_scaled(a(k::all, part), x(k::all, k::ds(i, 1)), b(part, k::all), y(k::ds(i, 1), k::all), sum);
        });
        c.store(sum);
      });
}
/// Attention of `length` queries to as many keys, of which each sees those at most `window` in front of it and itself,
/// with ALiBi's bias; queries below `blind` see none.
template <class T>
k::Program attended(int64_t length, int64_t d, int64_t queries, int64_t block, int64_t window, int64_t blind,
                    weft::Dtype t) {
  const auto x = read({length, d}, t);
  return k::trace(
      "attention", {x, x, x, written({length, d}), written({length})}, {k::cdiv(length, queries)}, [&](Refs r) {
        const auto first = k::program_id(0) * queries;
        const auto rows = k::ds(first, queries);
        const auto query = k::col(first + k::arange(queries));
        const double scale = 1.4426950408889634 / std::sqrt(static_cast<double>(d));
        const auto all = k::attention_loop(
            from<T, 2>(r[0])(rows, k::all), k::maximum(first - window, 0), k::minimum(first + queries, length), block,
            d, [&](const k::Ds& at) { return from<T, 2>(r[1])(at, k::all).load(); },
            [&](const k::Ds& at) { return from<T, 2>(r[2])(at, k::all).load(); },
            [&](const auto& s, const auto& key) {
              const auto apart = query - key;
              const auto seen = (apart >= 0) & (apart <= window) & (query >= blind);
              return k::where(seen, s * scale - k::cast<float>(apart) * 0.25, -INFINITY);
            });
        to<float, 2>(r[3])(rows, k::all) = all.out;
        to<float, 1>(r[4])(rows) = all.log2_sum;
      });
}

/// All of them, at sizes that are multiples of nothing.
inline std::vector<k::Program> library_programs() {
  return {sums_of(1000, 3, 64),
          most_in_order(1000, 96),
          scanned_by_one(500, 48, false),
          scanned_by_one(500, 48, true),
          scanned_by_one(5, 1, true),
          scanned_in_order(500, 48),
          block_sums(500, 48),
          block_scans(500, 48),
          radix_pass(70, 4),
          bits_of<float>(70, weft::float32),
          bits_of<int32_t>(70, weft::int32),
          merged(70, 45, 32),
          transposed(70, 45, 32, 16),
          log2_sums(5, 100, 32),
          variances(5, 100, 32),
          product(70, 45, 50, {32, 16, 24}),
          batches(7, 19, 21, 11),
          scaled<k::e4m3, float>({32, 48, 64}, {32, 2}, {2, 3}, weft::float8_e4m3, weft::float32),
          scaled<k::i8, k::bf16>({12, 10, 96}, {1, 1}, {3, 10}, weft::int8, weft::bfloat16),
          scaled<k::i8, float>({64, 64, 256}, {64, 4}, {4, 64}, weft::int8, weft::float32, 64),
          attended<float>(75, 16, 32, 24, 20, 3, weft::float32),
          attended<k::bf16>(75, 16, 32, 24, 20, 3, weft::bfloat16)};
}

}  // namespace test_kernels
