#pragma once
// Kernels with parallel iterations that several tests run: what iterations leave in scratch, in arrays, to the
// iterations of a second loop; tiles of one and two axes; groups of lanes, scans and conditions within an iteration.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernel/language/kernels.h"
#include "weft/kernel_group.h"

namespace test_kernels {

inline k::Param array_of(k::Use use, std::vector<int64_t> dims, weft::Dtype dtype = weft::float32) {
  return {use, dtype, std::move(dims)};
}

/// logsumexp of rows of 300, `parts` parts of blocks of 8.
inline k::Program by_parts(int64_t parts) {
  return k::trace("by_parts", {array_of(k::Use::in, {3, 300}), array_of(k::Use::out, {3})}, {3},
                  [&](std::span<const k::AnyRef> r) {
                    logsumexp_by_parts(k::In<float, 2>(r[0]), k::Out<float, 1>(r[1]), parts, 8);
                  });
}

/// Softmax of the columns' maxima: the first loop leaves what the iterations of the second one read all of, and scratch
/// that is written before both is read in them.
inline k::Program two_loops(int64_t parts) {
  return k::trace("two_loops",
                  {array_of(k::Use::in, {2, parts, 40}), array_of(k::Use::out, {2, parts}), array_of(k::Use::out, {2})},
                  {2}, [&](std::span<const k::AnyRef> r) {
                    const auto x = k::In<float, 3>(r[0]).fixed(k::program_id(0));
                    const k::Out<float, 2> y(r[1]);
                    const auto most = k::scratch<float>({parts}), weight = k::scratch<float>({40}),
                               shares = k::scratch<float>({parts});
                    weight(k::all) = k::cast<float>(k::arange(40)) * 0.125f;
                    k::parallel(parts, [&](const k::Index& i) { most(i) = k::max(x(i, k::all) * weight(k::all), 0); });
                    const auto largest = k::max(most(k::all).load(), 0);
                    k::parallel(parts, [&](const k::Index& i) {
                      shares(i) = k::exp(most(i).load() - largest);
                      y(k::program_id(0), i) = shares(i).load() / k::sum(k::exp(most(k::all) - largest), 0);
                    });
                    const k::Out<float, 1> z(r[2]);
                    z(k::program_id(0)) = k::sum(shares(k::all), 0) + largest;
                  });
}

/// Rows of scratch that iterations write, read again and reduce, with a scan, a plane and a condition; the last
/// instruction is the loop.
inline k::Program rows_of_scratch(int64_t parts) {
  return k::trace("rows_of_scratch", {array_of(k::Use::in, {2, parts, 6, 16}), array_of(k::Use::out, {2, parts, 16})},
                  {2}, [&](std::span<const k::AnyRef> r) {
                    const auto x = k::In<float, 4>(r[0]).fixed(k::program_id(0));
                    const k::Out<float, 3> y(r[1]);
                    const auto near = k::scratch<float>({parts, 16});
                    k::parallel(parts, [&](const k::Index& i) {
                      near(i, k::all) = k::cumsum(k::sum(x(i, k::all, k::all).load(), 0), 0);
                      k::Mut v = k::flip(near(i, k::all).load(), 0);
                      k::when(i % 3 != 1, [&] { v = v + near(i, k::ds(1, 16)).load(); });
                      y(k::program_id(0), i, k::all) = v;
                    });
                  });
}

/// Sums by groups of lanes of integers, kept in scratch of 16 bits and joined by a tile of two axes.
inline k::Program lanes_of_parts(int64_t parts) {
  return k::trace("lanes_of_parts",
                  {array_of(k::Use::in, {2, parts, 64}, weft::int32), array_of(k::Use::out, {2, 64}, weft::int32)}, {2},
                  [&](std::span<const k::AnyRef> r) {
                    const auto x = k::In<int32_t, 3>(r[0]).fixed(k::program_id(0));
                    const auto kept = k::scratch<int16_t>({parts, 64});
                    k::parallel(parts, [&](const k::Index& i) {
                      const auto v = x(i, k::all).load();
                      kept(i, k::all) = k::cast<int16_t>(k::warp::reduce_add(v) + k::warp::shfl_xor(v, 1));
                    });
                    const k::Out<int32_t, 2> y(r[1]);
                    y(k::program_id(0), k::all) = k::sum(k::cast<int32_t>(kept(k::all, k::all)), 0);
                  });
}

/// Iterations that read a tile from outside.
inline k::Program shared_tile(int64_t parts) {
  return k::trace("shared_tile", {array_of(k::Use::in, {2, 40}), array_of(k::Use::out, {2, parts, 40})}, {2},
                  [&](std::span<const k::AnyRef> r) {
                    const auto v = k::exp(k::In<float, 2>(r[0])(k::program_id(0), k::all).load());
                    const k::Out<float, 3> y(r[1]);
                    k::parallel(parts,
                                [&](const k::Index& i) { y(k::program_id(0), i, k::all) = v * k::cast<float>(i); });
                  });
}

/// A product whose depth iterations divide: each leaves its sum in scratch.
inline k::Program divided_depth(int64_t parts) {
  const int64_t depth = 256;
  return k::trace("divided_depth",
                  {array_of(k::Use::in, {64, depth}, weft::bfloat16), array_of(k::Use::in, {depth, 32}, weft::bfloat16),
                   array_of(k::Use::out, {64, 32})},
                  {1}, [&](std::span<const k::AnyRef> r) {
                    const k::In<weft::bfloat16_t, 2> a(r[0]), b(r[1]);
                    const auto sums = k::scratch<float>({parts, 64, 32});
                    k::parallel(parts, [&](const k::Index& i) {
                      k::Mut sum = k::zeros<float>({64, 32});
                      k::loop(i * (depth / parts), (i + 1) * (depth / parts), 32, [&](const k::Index& at) {
                        sum = k::dot(a(k::all, k::ds(at, 32)), b(k::ds(at, 32), k::all), sum.get());
                      });
                      sums(i, k::all, k::all) = sum;
                    });
                    const k::Out<float, 2> c(r[2]);
                    c(k::all, k::all) = k::sum(sums(k::all, k::all, k::all).load(), 0);
                  });
}

}  // namespace test_kernels
