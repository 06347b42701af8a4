// Warps, cooperative groups and fragments: what they compute, and what is refused.
#include <doctest/doctest.h>

#include <bit>
#include <numeric>

#include "kernel/language/errors.h"
#include "kernel/language/lane_programs.h"
#include "kernel/language/run.h"

namespace {

using namespace test_kernels;
using k::AnyRef;

template <class T>
k::Param taken(std::vector<int64_t> dims) {
  return {k::Use::in, k::detail::dtype_of<T>(), std::move(dims)};
}
template <class T>
k::Param given(std::vector<int64_t> dims) {
  return {k::Use::out, k::detail::dtype_of<T>(), std::move(dims)};
}

template <class T, int R>
k::Out<T, R> out(const AnyRef& ref) {
  return k::Out<T, R>(ref);
}

TEST_CASE("functions of lanes keep their bits when they become other instructions") {
  for (const Dtype t : lane_dtypes) {
    const k::Program program = LaneProgram(t).make();
    compare_rewritten(program, random_arrays(program, 7));
  }
}

TEST_CASE("a warp votes, matches and shuffles as CUDA's does") {
  std::vector<int32_t> x(64), up(64), rotated(64), crossed(64), down(64);
  std::vector<uint32_t> votes(64), same(64), all(64);
  for (int k = 0; k < 64; ++k) x[static_cast<size_t>(k)] = k < 32 ? k % 5 : 9;
  const auto program =
      k::trace("warp",
               {taken<int32_t>({64}), given<int32_t>({64}), given<int32_t>({64}), given<int32_t>({64}),
                given<int32_t>({64}), given<uint32_t>({64}), given<uint32_t>({64}), given<uint32_t>({64})},
               {1}, [](std::span<const AnyRef> r) {
                 const k::Tile<int32_t, 1> v = k::In<int32_t, 1>(r[0])(k::all), lane = k::cast<int32_t>(k::arange(64));
                 out<int32_t, 1>(r[1])(k::all) = k::warp::shfl_up(lane, 3);
                 out<int32_t, 1>(r[2])(k::all) = k::warp::shfl(lane, lane + 1);
                 out<int32_t, 1>(r[3])(k::all) = k::warp::shfl_xor(lane, 5, 16);
                 out<int32_t, 1>(r[4])(k::all) = k::warp::shfl_down(lane, 2, 8);
                 out<uint32_t, 1>(r[5])(k::all) = k::warp::ballot(v == 2);
                 out<uint32_t, 1>(r[6])(k::all) = k::warp::match_any(v);
                 out<uint32_t, 1>(r[7])(k::all) = k::warp::match_all(v);
               });
  run(program, x, up, rotated, crossed, down, votes, same, all);
  for (int k = 0; k < 64; ++k) {
    const auto at = static_cast<size_t>(k);
    CHECK(up[at] == (k % 32 < 3 ? k : k - 3));
    CHECK(rotated[at] == k / 32 * 32 + (k + 1) % 32);
    CHECK(crossed[at] == (k ^ 5));
    CHECK(down[at] == (k % 8 + 2 < 8 ? k + 2 : k));
    uint32_t equal = 0, two = 0;
    for (int j = 0; j < 32; ++j) {
      equal |= uint32_t{x[static_cast<size_t>(k / 32 * 32 + j)] == x[at]} << j;
      two |= uint32_t{x[static_cast<size_t>(k / 32 * 32 + j)] == 2} << j;
    }
    CHECK(votes[at] == two);
    CHECK(same[at] == equal);
    CHECK(all[at] == (k < 32 ? 0 : 0xffffffffU));
  }
}

TEST_CASE("bits are counted and found, and halves travel in pairs") {
  std::vector<uint32_t> x = {0, 1, 2, 0x80000000U, 0xffffffffU, 0x00f0f000U, 12, 0x40000001U};
  std::vector<int32_t> counts(8), lowest(8);
  std::vector<weft::float16_t> a(8), b(8), moved_a(8), moved_b(8);
  for (size_t k = 0; k < 8; ++k) a[k] = weft::float16_t(0.5f * static_cast<float>(k)), b[k] = weft::float16_t(-3.f);
  const auto program = k::trace("bits",
                                {taken<uint32_t>({8}), given<int32_t>({8}), given<int32_t>({8}), taken<k::f16>({8}),
                                 taken<k::f16>({8}), given<k::f16>({8}), given<k::f16>({8})},
                                {1}, [](std::span<const AnyRef> r) {
                                  const k::In<uint32_t, 1> words(r[0]);
                                  out<int32_t, 1>(r[1])(k::all) = k::popc(words(k::all));
                                  out<int32_t, 1>(r[2])(k::all) = k::ffs(words(k::all));
                                  const auto pair =
                                      k::pack(k::In<k::f16, 1>(r[3])(k::all), k::In<k::f16, 1>(r[4])(k::all));
                                  const auto [low, high] = k::unpack<k::f16>(k::warp::shfl_xor(pair, 1, 8));
                                  out<k::f16, 1>(r[5])(k::all) = low;
                                  out<k::f16, 1>(r[6])(k::all) = high;
                                });
  run(program, x, counts, lowest, a, b, moved_a, moved_b);
  for (size_t k = 0; k < 8; ++k) {
    CHECK(counts[k] == std::popcount(x[k]));
    CHECK(lowest[k] == (x[k] == 0 ? 0 : std::countr_zero(x[k]) + 1));
    CHECK(static_cast<float>(moved_a[k]) == static_cast<float>(a[k ^ 1]));
    CHECK(static_cast<float>(moved_b[k]) == -3.f);
  }
}

TEST_CASE("cooperative groups reduce, scan and choose one thread") {
  constexpr int64_t n = 96;
  std::vector<int32_t> x(n), warp(n), before(n), labeled(n), rank(n), members(n), block(1), prefix(n), chosen(n),
      odd(n);
  for (size_t k = 0; k < n; ++k) x[k] = static_cast<int32_t>(k * 7 % 13);
  std::vector<k::Param> params{taken<int32_t>({n})};
  for (int k = 0; k < 5; ++k) params.push_back(given<int32_t>({n}));
  params.push_back(given<int32_t>({1}));
  for (int k = 0; k < 3; ++k) params.push_back(given<int32_t>({n}));
  const auto program = k::trace("groups", params, {1}, [](std::span<const AnyRef> r) {
    const auto to = [&](size_t k) { return out<int32_t, 1>(r[k])(k::all); };
    const k::Tile<int32_t, 1> v = k::In<int32_t, 1>(r[0])(k::all);
    const auto threads = k::this_thread_block(96);
    const auto tile = k::tiled_partition<16>(threads);
    to(1) = k::reduce(tile, v, k::By::add);
    to(2) = k::exclusive_scan(tile, v, k::By::max);
    const auto group = k::labeled_partition(tile, v % 3);
    to(3) = k::inclusive_scan(group, v, k::By::add);
    to(4) = group.thread_rank();
    to(5) = group.size();
    k::invoke_one(threads, [&] { out<int32_t, 1>(r[6])(0) = k::reduce(threads, v, k::By::add); });
    to(7) = k::exclusive_scan(threads, v, k::By::add);
    k::invoke_one(group, [&](const auto& first) { to(8) = k::cast<int32_t>(first); });
    const auto odds = k::coalesced_threads(tile, v % 2 == 1);
    to(9) = k::reduce(odds, v, k::By::add);
  });
  run(program, x, warp, before, labeled, rank, members, block, prefix, chosen, odd);
  int32_t sum = 0;
  for (size_t k = 0; k < n; ++k) {
    int32_t all = 0, most = INT32_MIN, same = 0, same_before = 0, same_count = 0, odds = 0;
    for (size_t j = k / 16 * 16; j < k / 16 * 16 + 16; ++j) {
      const bool alike = x[j] % 3 == x[k] % 3;
      all += x[j], odds += x[j] % 2 ? x[j] : 0, same_count += alike;
      if (j < k) most = std::max(most, x[j]), same_before += alike;
      if (j <= k && alike) same += x[j];
    }
    CHECK(warp[k] == all);
    CHECK(before[k] == most);
    CHECK(labeled[k] == same);
    CHECK(rank[k] == same_before);
    CHECK(members[k] == same_count);
    CHECK(prefix[k] == sum);
    CHECK(chosen[k] == (same_before == 0));
    CHECK(odd[k] == (x[k] % 2 ? odds : x[k]));
    sum += x[k];
  }
  CHECK(block[0] == sum);
}

TEST_CASE("lanes that belong together shuffle by their ranks") {
  constexpr int64_t n = 64;
  std::vector<int32_t> x(n), first(n), up(n), down(n);
  for (size_t k = 0; k < n; ++k) x[k] = static_cast<int32_t>(k * 11 % 29);
  const auto program =
      k::trace("ranked", {taken<int32_t>({n}), given<int32_t>({n}), given<int32_t>({n}), given<int32_t>({n})}, {1},
               [](std::span<const AnyRef> r) {
                 const k::Tile<int32_t, 1> v = k::In<int32_t, 1>(r[0])(k::all);
                 const auto tile = k::tiled_partition<32>(k::this_thread_block(64));
                 const auto group = k::labeled_partition(tile, v % 4);
                 out<int32_t, 1>(r[1])(k::all) = group.shfl(v, 0);
                 out<int32_t, 1>(r[2])(k::all) = group.shfl_up(v, 2);
                 out<int32_t, 1>(r[3])(k::all) = group.shfl_down(v, group.thread_rank());
               });
  run(program, x, first, up, down);
  for (size_t k = 0; k < n; ++k) {
    std::vector<int32_t> group;
    size_t rank = 0;
    for (size_t j = k / 32 * 32; j < k / 32 * 32 + 32; ++j)
      if (x[j] % 4 == x[k] % 4) {
        if (j == k) rank = group.size();
        group.push_back(x[j]);
      }
    CHECK(first[k] == group[0]);
    CHECK(up[k] == (rank >= 2 ? group[rank - 2] : x[k]));
    CHECK(down[k] == (2 * rank < group.size() ? group[2 * rank] : x[k]));
  }
}

TEST_CASE("groups know their threads, in a block and in the grid") {
  std::vector<int32_t> lane(32), group(32), elected(32);
  std::vector<int64_t> thread(6 * 32);
  const auto program = k::trace(
      "ranks", {given<int32_t>({4, 8}), given<int32_t>({4, 8}), given<int32_t>({4, 8}), given<int64_t>({6, 4, 8})},
      {2, 3}, [](std::span<const AnyRef> r) {
        const auto threads = k::this_thread_block({4, 8});
        const auto tile = k::tiled_partition<4>(threads);
        const auto grid = k::this_grid(threads);
        CHECK(grid.size() == 6 * 32);
        CHECK(tile.meta_group_size() == 8);
        out<int64_t, 3>(r[3])(grid.block_rank(), k::all, k::all) = grid.thread_rank();
        k::when(grid.block_rank() == 0, [&] {
          out<int32_t, 2>(r[0])(k::all, k::all) = tile.thread_rank();
          out<int32_t, 2>(r[1])(k::all, k::all) = tile.meta_group_rank();
          out<int32_t, 2>(r[2])(k::all, k::all) = k::cast<int32_t>(k::warp::elect(tile.thread_rank() >= 2, 4));
        });
      });
  run(program, lane, group, elected, thread);
  for (int32_t k = 0; k < 32; ++k) {
    CHECK(lane[static_cast<size_t>(k)] == k % 4);
    CHECK(group[static_cast<size_t>(k)] == k / 4);
    CHECK(elected[static_cast<size_t>(k)] == (k % 4 == 2));
  }
  for (int64_t k = 0; k < 6 * 32; ++k) CHECK(thread[static_cast<size_t>(k)] == k);
}

/// A product of fragments, against sums in float64.
template <class T, class S, int M, int N, int K>
void check_fragments(double tolerance) {
  using Element = typename k::Fragment<k::Matrix::a, M, N, K, T>::Element;
  std::vector<Element> a(M * 2 * K), b(2 * K * N);
  std::vector<S> c(M * N);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<Element>(static_cast<float>(i * 5 % 17) - 8.f * (sizeof(T) > 1));
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<Element>(static_cast<float>(i * 3 % 11) - 5.f * (sizeof(T) > 1));
  const auto program = k::trace("fragments", {taken<Element>({M, 2 * K}), taken<Element>({2 * K, N}), given<S>({M, N})},
                                {1}, [](std::span<const AnyRef> r) {
                                  k::Fragment<k::Matrix::accumulator, M, N, K, S> sum;
                                  k::fill_fragment(sum, 0);
                                  k::loop(0, 2 * K, K, [&](k::Index i) {
                                    k::Fragment<k::Matrix::a, M, N, K, T> left;
                                    k::Fragment<k::Matrix::b, M, N, K, T> right;
                                    k::load_matrix_sync(left, k::In<Element, 2>(r[0])(k::all, k::ds(i, K)));
                                    k::load_matrix_sync(right, k::In<Element, 2>(r[1])(k::ds(i, K), k::all));
                                    k::mma_sync(sum, left, right, sum);
                                  });
                                  k::store_matrix_sync(out<S, 2>(r[2])(k::all, k::all), sum);
                                });
  run(program, a, b, c);
  for (size_t i = 0; i < M; ++i)
    for (size_t j = 0; j < N; ++j) {
      double want = 0;
      for (size_t d = 0; d < 2 * K; ++d)
        want += static_cast<double>(a[i * 2 * K + d]) * static_cast<double>(b[d * N + j]);
      CHECK(std::abs(static_cast<double>(c[i * N + j]) - want) <= tolerance);
    }
}

TEST_CASE("fragments multiply as WMMA's") {
  check_fragments<k::f16, float, 16, 16, 16>(0);
  check_fragments<k::bf16, float, 32, 8, 16>(0);
  check_fragments<k::f16, k::f16, 8, 32, 16>(1);
  check_fragments<k::tf32, float, 16, 16, 8>(0);
  check_fragments<double, double, 8, 8, 4>(0);
  check_fragments<int8_t, int32_t, 16, 16, 16>(0);
  check_fragments<uint8_t, int32_t, 32, 8, 16>(0);
}

TEST_CASE("memcpy_async copies to scratch before what reads it") {
  std::vector<float> x(64), y(64);
  std::iota(x.begin(), x.end(), 1.f);
  const auto program = k::trace("copy", {taken<float>({64}), given<float>({64})}, {1}, [](std::span<const AnyRef> r) {
    const auto block = k::this_thread_block(64);
    const auto buffer = k::scratch<float>({64});
    k::memcpy_async(block, buffer(k::all), k::In<float, 1>(r[0])(k::all));
    k::wait(block);
    out<float, 1>(r[1])(k::all) = k::flip(buffer(k::all).load(), 0);
  });
  run(program, x, y);
  for (size_t k = 0; k < 64; ++k) CHECK(y[k] == x[63 - k]);
}

TEST_CASE("lanes that are wrong are refused") {
  const auto of = [](const char* what, const Any& tile, int64_t width, const Any& other = {}, const char* op = "add",
                     k::Line at = k::Line::here()) { k::lanes(what, tile, width, other, op, at); };
  refused({"reduce: the last axis of f32[4,40] is not made of groups of 32 lanes: pad it, or take fewer lanes"},
          [&](Test& t) {
            t.at(__LINE__), of("reduce", v({4, 40}), 32);
          });
  refused({"ballot: a group has 1, 2, 4, 8, 16 or 32 lanes, not 12"},
          [&](Test& t) { t.at(__LINE__), of("ballot", v({12}, bool_), 12); });
  refused({"shuffle: a group has 1, 2, 4, 8, 16 or 32 lanes, not 64"},
          [&](Test& t) { t.at(__LINE__), of("shuffle", v({64}), 64, v({}, int32)); });
  refused({"shuffle: f32 is a scalar: give a tile"},
          [&](Test& t) { t.at(__LINE__), of("shuffle", v({}), 1, v({}, int32)); });
  refused({"lanes: there is no function 'vote' of lanes: shuffle, shuffle_up"},
          [&](Test& t) { t.at(__LINE__), of("vote", v({32}), 32); });
  refused({"any: f32[32] is no condition: compare it"}, [&](Test& t) { t.at(__LINE__), of("any", v({32}), 32); });
  refused({"shuffle_up: it takes the lanes: give a number or a tile of integers"},
          [&](Test& t) { t.at(__LINE__), of("shuffle_up", v({32}), 32); });
  refused({"shuffle_down: f32[32] is no tile of lanes, which are integers: cast it"},
          [&](Test& t) { t.at(__LINE__), of("shuffle_down", v({32}), 32, v({32})); });
  refused({"shuffle_xor: f32[32] and i32[64] differ in shape: broadcast one of them"},
          [&](Test& t) { t.at(__LINE__), of("shuffle_xor", v({32}), 32, v({64}, int32)); });
  refused({"scan: i32[32] is no tile of masks, which are u32: cast it"},
          [&](Test& t) { t.at(__LINE__), of("scan", v({32}), 32, v({32}, int32)); });
  refused({"match_any: it takes one tile: leave the other out"},
          [&](Test& t) { t.at(__LINE__), of("match_any", v({32}), 32, v({32}, int32)); });
  refused({"reduce: lanes do not combine f32[32] by bit_or: cast it"},
          [&](Test& t) { t.at(__LINE__), of("reduce", v({32}), 32, {}, "bit_or"); });
  refused({"reduce: lanes do not combine by 'sub': add, mul, min, max"},
          [&](Test& t) { t.at(__LINE__), of("reduce", v({32}), 32, {}, "sub"); });
  refused({"group: f32[64] is no tile of a block [32]: give one value for each thread"}, [](Test& t) {
    const auto warp = k::tiled_partition<32>(k::this_thread_block(32));
    t.at(__LINE__), k::reduce(warp, line(64), k::By::add);
  });
  refused({"thread_rank: the last axis of a block [40] is not made of groups of 32"}, [](Test& t) {
    const auto warp = k::tiled_partition<32>(k::this_thread_block(40));
    t.at(__LINE__), warp.thread_rank();
  });
  refused({"reduce: a group does not combine f32[32] by bit_xor: cast it"}, [](Test& t) {
    const auto block = k::this_thread_block(32);
    t.at(__LINE__), k::reduce(block, line(32), k::By::bit_xor);
  });
}

TEST_CASE("lanes that do not agree on which belong together are found") {
  const auto program = k::trace("apart", {{k::Use::out, float32, {4}}}, {1}, [](std::span<const AnyRef> r) {
    const Any members = k::cast(k::apply("add", two(k::iota(4, int32), k::constant(int32, 8))), weft::uint32);
    const Any sum = k::lanes("reduce", k::constant(float32, 1, {4}), 4, members);
    k::store(r[0], std::array{whole}, sum);
  });
  std::vector<float> y(4);
  void* const pointers[] = {y.data()};
  CHECK_THROWS_WITH_AS(program.interpret(pointers), doctest::Contains("lanes that belong together have one mask"),
                       std::runtime_error);
}

}  // namespace
