#pragma once
// Kernels of the explicit level: shared memory with layouts, asynchronous copies in groups and by barriers, pipelines,
// roles. Each computes what a plain loop computes as well (`wanted`).
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "weft/kernel_async.h"

namespace test_kernels {

namespace k = weft::k;

/// A kernel from a float32 array, or two, to one.
struct AsyncKernel {
  k::Program program;
  std::function<std::vector<float>(const std::vector<std::vector<float>>&)> wanted;
};

inline k::Param floats(k::Use use, std::vector<int64_t> dims) { return {use, weft::float32, std::move(dims)}; }

/// y = 2 x + 1, row by row through a ring of `stages` slots and groups of copies.
inline AsyncKernel ring_of_groups(int64_t stages, k::SharedLayout layout) {
  constexpr int64_t programs = 2, rows = 5, columns = 70;
  const auto body = [=](std::span<const k::AnyRef> r) {
    const k::In<float, 3> x(r[0]);
    const k::Out<float, 3> y(r[1]);
    const auto slots = k::shared<float>({stages, columns}, layout);
    const auto p = k::program_id(0);
    const auto begin = [&](const k::Index& row) {
      k::copy_async(slots(row % stages, k::all), x(p, row, k::all));  // zeros after the last row
      k::commit_copies();
    };
    for (int64_t s = 0; s + 1 < stages; ++s) begin(k::Index(s));
    k::loop(rows, [&](k::Index row) {
      begin(row + (stages - 1));
      k::wait_copies(stages - 1);
      y(p, row, k::all) = slots(row % stages, k::all) * 2.f + 1.f;
    });
    k::wait_copies();
  };
  const auto wanted = [](const std::vector<std::vector<float>>& in) {
    std::vector<float> out;
    for (const float v : in[0]) out.push_back(v * 2 + 1);
    return out;
  };
  return {k::trace("ring_of_groups",
                   {floats(k::Use::in, {programs, rows, columns}), floats(k::Use::out, {programs, rows, columns})},
                   {programs}, body),
          wanted};
}

/// Row maxima beside a product under way: y = a·b + row maxima of a.
inline AsyncKernel product_under_way() {
  constexpr int64_t m = 16, n = 24, depth = 32;
  const auto body = [](std::span<const k::AnyRef> r) {
    const k::In<float, 2> a(r[0]), b(r[1]);
    const k::Out<float, 2> y(r[2]);
    const auto left = a(k::all, k::all).load();
    k::Mut sum = k::zeros<float>({m, n});
    k::loop(2, [&](k::Index) {
      const auto product = k::dot_async(left, b(k::all, k::all), sum.get());
      const auto most = k::max(left, 1);
      sum = product.wait() * 0.5f + k::col(most);
    });
    y(k::all, k::all) = sum;
  };
  const auto wanted = [](const std::vector<std::vector<float>>& in) {
    std::vector<float> sum(static_cast<size_t>(m * n), 0.f);
    for (int step = 0; step < 2; ++step)
      for (size_t i = 0; i < m; ++i) {
        const auto* const row = in[0].data() + i * depth;
        const float most = *std::max_element(row, row + depth);
        for (size_t j = 0; j < n; ++j) {
          float& v = sum[i * n + j];
          for (size_t d = 0; d < depth; ++d) v = std::fma(row[d], in[1][d * n + j], v);
          v = v * 0.5f + most;
        }
      }
    return sum;
  };
  return {k::trace("product_under_way",
                   {floats(k::Use::in, {m, depth}), floats(k::Use::in, {depth, n}), floats(k::Use::out, {m, n})}, {1},
                   body),
          wanted};
}

/// Sums of rows, chunk by chunk: one program fills the pipeline and empties it. The last chunk is a part.
inline AsyncKernel sums_alone() {
  constexpr int64_t rows = 4, columns = 150, chunk = 64, stages = 2, chunks = 3;
  const auto body = [=](std::span<const k::AnyRef> r) {
    const k::In<float, 2> x(r[0]);
    const k::Out<float, 1> y(r[1]);
    const auto slots = k::shared<float>({stages, rows, chunk}, k::SharedLayout::padded);
    const k::Pipeline pipe(stages);
    const auto fill = [&](const k::Index& i) {
      pipe.acquire(i);
      pipe.copy(i, slots(pipe.slot(i), k::all, k::all), x(k::all, k::ds(i * chunk, chunk)));
      pipe.commit(i);
    };
    fill(k::Index(0));
    k::Mut sum = k::zeros<float>({rows});
    k::loop(chunks, [&](k::Index i) {
      k::when(i + 1 < chunks, [&] { fill(i + 1); });
      pipe.wait(i);
      sum += k::sum(slots(pipe.slot(i), k::all, k::all).load(), 1);
      pipe.release(i);
    });
    y(k::all) = sum;
  };
  const auto wanted = [=](const std::vector<std::vector<float>>& in) {
    std::vector<float> out(rows, 0);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) out[static_cast<size_t>(i)] += in[0][static_cast<size_t>(i * columns + j)];
    return out;
  };
  return {k::trace("sums_alone", {floats(k::Use::in, {rows, columns}), floats(k::Use::out, {rows})}, {1}, body),
          wanted};
}

/// The same by roles: one warp copies, others add; `consumers` of them share the rows.
inline AsyncKernel sums_by_roles(int64_t consumers) {
  constexpr int64_t rows = 4, columns = 200, chunk = 32, stages = 3, chunks = 7, programs = 2;
  const auto body = [=](std::span<const k::AnyRef> r) {
    const k::In<float, 3> x(r[0]);
    const k::Out<float, 2> y(r[1]);
    const auto slots = k::shared<float>({stages, rows, chunk}, k::SharedLayout::swizzle128);
    const k::Pipeline pipe(stages, 1, consumers);
    const auto p = k::program_id(0);
    std::vector<k::Role> roles;
    roles.push_back({.warps = 1, .body = [&] {
                       k::loop(chunks, [&](k::Index i) {
                         pipe.acquire(i);
                         pipe.copy(i, slots(pipe.slot(i), k::all, k::all), x(p, k::all, k::ds(i * chunk, chunk)));
                         pipe.commit(i);
                       });
                     }});
    const int64_t own = rows / consumers;
    for (int64_t c = 0; c < consumers; ++c)
      roles.push_back({.warps = 2, .body = [&, c] {
                         k::Mut sum = k::zeros<float>({own});
                         k::loop(chunks, [&](k::Index i) {
                           pipe.wait(i);
                           sum += k::sum(slots(pipe.slot(i), k::ds(c * own, own), k::all).load(), 1);
                           pipe.release(i);
                         });
                         y(p, k::ds(c * own, own)) = sum;
                       }});
    k::roles(std::span<const k::Role>(roles));
  };
  const auto wanted = [=](const std::vector<std::vector<float>>& in) {
    std::vector<float> out(programs * rows, 0);
    for (size_t i = 0; i < out.size(); ++i)
      for (size_t j = 0; j < columns; ++j) out[i] += in[0][i * columns + j];
    return out;
  };
  return {k::trace("sums_by_roles_" + std::to_string(consumers),
                   {floats(k::Use::in, {programs, rows, columns}), floats(k::Use::out, {programs, rows})}, {programs},
                   body),
          wanted};
}

/// A product: one role copies blocks of both operands, another multiplies them.
inline AsyncKernel product_by_roles() {
  constexpr int64_t m = 40, n = 30, depth = 50, bm = 32, bn = 32, bk = 16, stages = 2, steps = 4;
  const auto body = [=](std::span<const k::AnyRef> r) {
    const k::In<float, 2> a(r[0]), b(r[1]);
    const k::Out<float, 2> c(r[2]);
    const auto as = k::shared<float>({stages, bm, bk}, k::SharedLayout::swizzle64);
    const auto bs = k::shared<float>({stages, bk, bn}, k::SharedLayout::padded);
    const k::Pipeline pipe(stages);
    const auto i = k::program_id(0);
    k::roles({{.warps = 4,
               .registers = 40,
               .body =
                   [&] {
                     k::loop(steps, [&](k::Index s) {
                       pipe.acquire(s);
                       pipe.copy(s, as(pipe.slot(s), k::all, k::all), a(k::ds(i * bm, bm), k::ds(s * bk, bk)));
                       pipe.copy(s, bs(pipe.slot(s), k::all, k::all), b(k::ds(s * bk, bk), k::ds(0, bn)));
                       pipe.commit(s);
                     });
                   }},
              {.warps = 4, .registers = 160, .body = [&] {
                 k::Mut sum = k::zeros<float>({bm, bn});
                 k::loop(steps, [&](k::Index s) {
                   pipe.wait(s);
                   sum = k::dot(as(pipe.slot(s), k::all, k::all), bs(pipe.slot(s), k::all, k::all), sum.get());
                   pipe.release(s);
                 });
                 c(k::ds(i * bm, bm), k::ds(0, bn)) = sum;
               }}});
  };
  const auto wanted = [=](const std::vector<std::vector<float>>& in) {
    std::vector<float> out(m * n, 0);
    for (size_t i = 0; i < m; ++i)
      for (size_t d = 0; d < depth; ++d)
        for (size_t j = 0; j < n; ++j)
          out[i * n + j] = std::fma(in[0][i * depth + d], in[1][d * n + j], out[i * n + j]);
    return out;
  };
  return {k::trace("product_by_roles",
                   {floats(k::Use::in, {m, depth}), floats(k::Use::in, {depth, n}), floats(k::Use::out, {m, n})},
                   {k::cdiv(m, bm)}, body),
          wanted};
}

/// Turns tiles through shared memory: what is written by rows is read by columns.
inline AsyncKernel turned(k::SharedLayout layout) {
  constexpr int64_t m = 40, n = 48, block = 32;
  const auto body = [=](std::span<const k::AnyRef> r) {
    const k::In<float, 2> x(r[0]);
    const k::Out<float, 2> y(r[1]);
    const auto tile = k::shared<float>({block, block}, layout);
    const auto i = k::program_id(0), j = k::program_id(1);
    tile(k::all, k::all) = x(k::ds(i * block, block), k::ds(j * block, block));
    y(k::ds(j * block, block), k::ds(i * block, block)) = tile.permute({1, 0})(k::all, k::all);
  };
  const auto wanted = [=](const std::vector<std::vector<float>>& in) {
    std::vector<float> out(m * n);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j) out[j * m + i] = in[0][i * n + j];
    return out;
  };
  return {
      k::trace("turned_" + std::to_string(static_cast<int>(layout)),
               {floats(k::Use::in, {m, n}), floats(k::Use::out, {n, m})}, {k::cdiv(m, block), k::cdiv(n, block)}, body),
      wanted};
}

/// Two roles that pass a row back and forth, each changing it: y = (x + 1) · 2 …, by a barrier each.
inline AsyncKernel back_and_forth() {
  constexpr int64_t n = 40, turns = 3;
  const auto body = [=](std::span<const k::AnyRef> r) {
    const k::In<float, 1> x(r[0]);
    const k::Out<float, 1> y(r[1]);
    const auto row = k::shared<float>({n});
    const k::Barrier first, second;
    row(k::all) = x(k::all);
    k::roles({{.warps = 1,
               .body =
                   [&] {
                     k::loop(turns, [&](k::Index i) {
                       row(k::all) += 1.f;
                       first.arrive();
                       second.wait(i);
                     });
                   }},
              {.warps = 2, .body = [&] {
                 k::loop(turns, [&](k::Index i) {
                   first.wait(i);
                   row(k::all) *= 2.f;
                   second.arrive();
                 });
               }}});
    y(k::all) = row(k::all);
  };
  const auto wanted = [=](const std::vector<std::vector<float>>& in) {
    std::vector<float> out = in[0];
    for (float& v : out)
      for (int64_t t = 0; t < turns; ++t) v = (v + 1) * 2;
    return out;
  };
  return {k::trace("back_and_forth", {floats(k::Use::in, {n}), floats(k::Use::out, {n})}, {1}, body), wanted};
}

/// A role that computes what another one stores: squares through a pipeline, and a condition that both follow.
inline AsyncKernel computed_by_roles() {
  constexpr int64_t rows = 6, n = 33, stages = 2;
  const auto body = [=](std::span<const k::AnyRef> r) {
    const k::In<float, 2> x(r[0]);
    const k::Out<float, 2> y(r[1]);
    const auto slots = k::shared<float>({stages, n});
    const k::Pipeline pipe(stages);
    k::roles({{.warps = 1,
               .body =
                   [&] {
                     k::loop(rows, [&](k::Index i) {
                       pipe.acquire(i);
                       const auto v = x(i, k::all).load();
                       k::if_else(
                           i % 2 == 0, [&] { slots(pipe.slot(i), k::all) = v * v; },
                           [&] { slots(pipe.slot(i), k::all) = v; });
                       pipe.commit(i);
                     });
                   }},
              {.warps = 1, .body = [&] {
                 k::loop(rows, [&](k::Index i) {
                   pipe.wait(i);
                   y(i, k::all) = slots(pipe.slot(i), k::all);
                   pipe.release(i);
                 });
               }}});
  };
  const auto wanted = [=](const std::vector<std::vector<float>>& in) {
    std::vector<float> out = in[0];
    for (size_t k = 0; k < out.size(); ++k)
      if (k / n % 2 == 0) out[k] *= out[k];
    return out;
  };
  return {k::trace("computed_by_roles", {floats(k::Use::in, {rows, n}), floats(k::Use::out, {rows, n})}, {1}, body),
          wanted};
}

/// All of them.
inline std::vector<AsyncKernel> asynchronous_kernels() {
  using k::SharedLayout;
  std::vector<AsyncKernel> out{ring_of_groups(3, SharedLayout::row_major),
                               ring_of_groups(2, SharedLayout::swizzle32),
                               sums_alone(),
                               sums_by_roles(1),
                               sums_by_roles(2),
                               product_by_roles(),
                               product_under_way(),
                               back_and_forth(),
                               computed_by_roles()};
  for (const SharedLayout layout : {SharedLayout::row_major, SharedLayout::padded, SharedLayout::swizzle32,
                                    SharedLayout::swizzle64, SharedLayout::swizzle128})
    out.push_back(turned(layout));
  return out;
}

}  // namespace test_kernels
