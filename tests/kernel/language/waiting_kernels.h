#pragma once
// Kernels whose programs wait for each other. Arrays of flags begin at 0.
#include <vector>

#include "weft/kernel_async.h"
#include "weft/kernel_group.h"

namespace test_kernels {

namespace k = weft::k;

inline k::Param array_of(k::Use use, weft::Dtype t, std::vector<int64_t> dims) { return {use, t, std::move(dims)}; }

/// Each program adds its row to what the program before it has left: a chain.
inline k::Program chain(k::Order order = k::Order::ordered) {
  using weft::float32, weft::int32;
  constexpr int64_t rows = 11, columns = 70;
  return k::trace("chain",
                  {array_of(k::Use::in, float32, {rows, columns}), array_of(k::Use::in_out, float32, {rows, columns}),
                   array_of(k::Use::in_out, int32, {rows})},
                  {k::GridAxis(rows, order)}, [](std::span<const k::AnyRef> r) {
                    const k::In<float, 2> x(r[0]);
                    const k::InOut<float, 2> y(r[1]);
                    const k::InOut<int32_t, 1> done(r[2]);
                    const auto row = k::program_id(0);
                    k::Mut sum = x(row, k::all).load();
                    k::when(row > 0, [&] {
                      k::wait_until(done, row - 1, 1);
                      sum = sum.get() + y(row - 1, k::all).load();
                    });
                    y(row, k::all) = sum.get();
                    k::atomic({"exchange", k::MemoryOrder::release}, done, 1, row);
                  });
}

/// The same by roles: one waits for the program before and fetches its row, the other one adds it.
inline k::Program chain_by_roles() {
  using weft::float32, weft::int32;
  constexpr int64_t rows = 7, columns = 48;
  return k::trace("chain_by_roles",
                  {array_of(k::Use::in, float32, {rows, columns}), array_of(k::Use::in_out, float32, {rows, columns}),
                   array_of(k::Use::in_out, int32, {rows + 1})},
                  {k::GridAxis(rows, k::Order::ordered)}, [](std::span<const k::AnyRef> r) {
                    const k::In<float, 2> x(r[0]);
                    const k::InOut<float, 2> y(r[1]);
                    const k::InOut<int32_t, 1> done(r[2]);
                    const auto row = k::program_id(0);
                    const auto before = k::shared<float>({columns});
                    const k::Barrier fetched;
                    const auto fetches = [&] {
                      before(k::all) = k::zeros<float>({columns});
                      k::when(row > 0, [&] {
                        k::wait_until(done, row - 1, [](const auto& v) { return v > 0; });
                        before(k::all) = y(row - 1, k::all).load();
                      });
                      fetched.arrive();
                    };
                    const auto adds = [&] {
                      const auto mine = x(row, k::all).load();
                      fetched.wait(0);
                      y(row, k::all) = mine + before(k::all).load();
                      k::atomic({"exchange", k::MemoryOrder::release}, done, 1, row);
                    };
                    k::roles({{.warps = 1, .body = fetches}, {.warps = 2, .body = adds}});
                  });
}

/// A scan in one pass with decoupled look-back (Merrill and Garland 2016): a program publishes the sum of its block,
/// and looks at the sums of the blocks before it until one of them has the sum of everything up to its end. A word
/// holds the number of what it is (1: a block's sum, 2: of all up to there) above the sum.
inline k::Program look_back(int64_t blocks = 9, int64_t block = 64) {
  using weft::int32, weft::int64;
  const int64_t n = blocks * block - 5;
  return k::trace(
      "look_back",
      {array_of(k::Use::in, int32, {n}), array_of(k::Use::out, int32, {n}), array_of(k::Use::in_out, int64, {blocks})},
      {k::GridAxis(blocks, k::Order::ordered)}, [=](std::span<const k::AnyRef> r) {
        const k::In<int32_t, 1> x(r[0]);
        const k::Out<int32_t, 1> y(r[1]);
        const k::InOut<int64_t, 1> state(r[2]);
        constexpr int64_t one = int64_t{1} << 32;
        const auto own = k::program_id(0);
        const auto here = k::ds(own * block, block);
        const auto scanned = k::cumsum(x(here).load(), 0);
        const auto total = k::sum(x(here).load(), 0);
        const auto publish = [&](int64_t what, const k::Tile<int32_t, 0>& sum) {
          const auto word = (k::cast<int64_t>(sum) & (one - 1)) + what * one;
          k::atomic({"exchange", k::MemoryOrder::release}, state, word, own);
        };
        k::when(own > 0, [&] { publish(1, total); });
        k::Mut before = k::scalar<int32_t>(0);
        k::Mut at = own - 1;
        k::while_([&] { return at.get() >= 0; },
                  [&] {
                    const auto found = k::wait_until(state, at.get(), [](const auto& word) { return word != 0; });
                    before = before.get() + k::cast<int32_t>(found & (one - 1));
                    at = k::where(found >= 2 * one, k::scalar<int64_t>(-1), at.get() - 1);
                  });
        publish(2, before.get() + total);
        y(here) = scanned + before.get();
      });
}

/// Programs pass their rows around: each adds in every round what its neighbour had before.
inline k::Program rounds(int64_t programs = 6, int64_t count = 3) {
  using weft::float32;
  constexpr int64_t columns = 40;
  return k::trace(
      "rounds",
      {array_of(k::Use::in, float32, {programs, columns}), array_of(k::Use::in_out, float32, {2, programs, columns})},
      {programs}, [=](std::span<const k::AnyRef> r) {
        const k::In<float, 2> x(r[0]);
        const k::InOut<float, 3> y(r[1]);
        const auto own = k::program_id(0), next = (own + 1) % programs;
        const auto kept = k::scratch<float>({columns});
        y(0, own, k::all) = x(own, k::all).load();
        kept(k::all) = x(own, k::all).load();
        k::Mut scale = k::scalar<float>(1);
        k::loop(count, [&](k::Index i) {
          k::grid_barrier();
          kept(k::all) = kept(k::all).load() + y(i % 2, next, k::all).load() * scale.get();
          scale = scale.get() * 0.5f;
          y((i + 1) % 2, own, k::all) = kept(k::all).load();
        });
        k::this_grid(k::this_thread_block(32)).sync();
        k::when(own == 0, [&] { y(0, 0, k::all) = y(count % 2, programs - 1, k::all).load() + scale.get(); });
      });
}

/// Sums of rows: each program of a cluster sums its part of a row, and adds the parts of all, which it reads of its
/// neighbours; then each sends a line to the next one.
inline k::Program sums_of_clusters(int64_t size = 4, int64_t rows = 3) {
  using weft::float32;
  constexpr int64_t part = 24;
  return k::trace("sums_of_clusters",
                  {array_of(k::Use::in, float32, {rows, size * part}), array_of(k::Use::out, float32, {rows, size}),
                   array_of(k::Use::out, float32, {rows, size * part})},
                  {rows, k::GridAxis(size, k::Order::cluster)}, [=](std::span<const k::AnyRef> r) {
                    const k::In<float, 2> x(r[0]);
                    const k::Out<float, 2> y(r[1]), z(r[2]);
                    const auto row = k::program_id(0);
                    const auto cluster = k::this_cluster();
                    const auto own = cluster.block_rank();
                    const auto sum = k::shared<float>({2});
                    const auto line = k::scratch<float>({2, part});
                    const auto mine = x(row, k::ds(own * part, part)).load();
                    sum(1) = k::sum(mine, 0);
                    line(0, k::all) = mine;
                    cluster.sync();
                    k::Mut all = k::scalar<float>(0);
                    k::loop(cluster.num_blocks(),
                            [&](k::Index i) { all = all.get() + k::neighbour(sum, i)(1).load(); });
                    const auto next = k::neighbour(line, (own + 1) % size);
                    next(1, k::all) = mine * 2.f + next(0, k::all).load();
                    cluster.sync();
                    y(row, own) = all.get();
                    z(row, k::ds(own * part, part)) = line(1, k::all).load();
                  });
}

}  // namespace test_kernels
