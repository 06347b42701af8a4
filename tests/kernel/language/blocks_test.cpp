// Blocks by their numbers, packed integers, stochastic casts and random words, in the interpreter.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "kernel/language/run.h"
#include "kernel/scalar.h"

namespace {

namespace k = weft::k;
using test_kernels::run;

k::Param in(std::vector<int64_t> dims, weft::Dtype t = weft::float32) { return {k::Use::in, t, std::move(dims)}; }
k::Param out(std::vector<int64_t> dims, weft::Dtype t = weft::float32) { return {k::Use::out, t, std::move(dims)}; }

template <class T, int R>
k::Out<T, R> to(const k::AnyRef& ref) {
  return k::Out<T, R>(ref);
}

std::vector<float> counted(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 1.0f);
  return v;
}

TEST_CASE("blocks: sizes count blocks, squeezed axes and windows count elements") {
  // y[b, i, :] = the sum of the rows of a window of three rows, which overlaps the next one by one.
  const auto program =
      k::trace("blocks", {in({2, 9, 10}), out({2, 4, 10})}, {2, 4, 3}, [](std::span<const k::AnyRef> r) {
        const k::Block rows(std::tuple{k::squeezed, k::window(3), 4}, [](k::Index b, k::Index i, k::Index j) {
          return std::tuple{b, i * 2, j};
        });
        const k::Block results(std::tuple{k::squeezed, k::squeezed, 4}, [](k::Index b, k::Index i, k::Index j) {
          return std::tuple{b, i, j};
        });
        const auto b = k::program_id(0), i = k::program_id(1), j = k::program_id(2);
        results(k::Out<float, 3>(r[1]), b, i, j) = k::sum(rows(k::In<float, 3>(r[0]), b, i, j), 0);
      });
  auto x = counted(2 * 9 * 10);
  std::vector<float> y(2 * 4 * 10);
  run(program, x, y);
  for (size_t b = 0; b < 2; ++b)
    for (size_t i = 0; i < 4; ++i)
      for (size_t j = 0; j < 10; ++j) {
        const size_t at = (b * 9 + 2 * i) * 10 + j;
        CHECK(y[(b * 4 + i) * 10 + j] == x[at] + x[at + 10] + x[at + 20]);
      }
}

TEST_CASE("blocks: a list of integers in memory chooses them") {
  const auto program =
      k::trace("chosen", {in({6, 5}), in({4}, weft::int32), out({4, 5})}, {4}, [](std::span<const k::AnyRef> r) {
        const k::In<int32_t, 1> list(r[1]);
        const k::Block row(std::tuple{1, 8}, [&](k::Index i) { return std::tuple{list(i), 0}; });
        const auto i = k::program_id(0);
        to<float, 2>(r[2])(k::block(i, 1), k::block(0, 8)) = row(k::In<float, 2>(r[0]), i).load() * 2;
      });
  auto x = counted(30);
  std::vector<int32_t> list{5, 0, 5, 3};
  std::vector<float> y(20);
  run(program, x, list, y);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 5; ++j) CHECK(y[i * 5 + j] == 2 * x[static_cast<size_t>(list[i]) * 5 + j]);
}

TEST_CASE("packed integers of any width and sign are unpacked and packed again") {
  for (const int bits : {1, 2, 4, 8}) {
    CAPTURE(bits);
    const int64_t words = 3, parts = 32 / bits;
    const auto program = k::trace("packed",
                                  {in({2, words}, weft::uint32), out({2, words * parts}, weft::int8),
                                   out({2, words * parts}, weft::uint16), out({2, words}, weft::uint32)},
                                  {1}, [&](std::span<const k::AnyRef> r) {
                                    const auto v = k::In<uint32_t, 2>(r[0])(k::all, k::all).load();
                                    const auto integers = k::unpack<int8_t>(v, bits);
                                    to<int8_t, 2>(r[1])(k::all, k::all) = integers;
                                    to<uint16_t, 2>(r[2])(k::all, k::all) = k::unpack<uint16_t>(v, bits);
                                    to<uint32_t, 2>(r[3])(k::all, k::all) = k::pack<uint32_t>(integers, bits);
                                  });
    std::vector<uint32_t> x{0x80f1c3d5, 0, 0xffffffff, 0x12345678, 0x9abcdef0, 1}, again(6);
    std::vector<int8_t> signs(static_cast<size_t>(2 * words * parts));
    std::vector<uint16_t> plain(signs.size());
    run(program, x, signs, plain, again);
    for (size_t i = 0; i < signs.size(); ++i) {
      const size_t word = i / static_cast<size_t>(parts), part = i % static_cast<size_t>(parts);
      const uint32_t wanted = x[word] >> (part * static_cast<size_t>(bits)) & ((1u << bits) - 1);
      CHECK(plain[i] == wanted);
      CHECK(signs[i] == (wanted >> (bits - 1) ? static_cast<int>(wanted) - (1 << bits) : static_cast<int>(wanted)));
    }
    CHECK(again == x);
  }
}

/// Rounds v with n random numbers to a dtype, and returns all results as float32.
template <class T>
std::vector<float> rounded(float v, int64_t n) {
  const auto program = k::trace("round", {in({1}), out({n})}, {1}, [&](std::span<const k::AnyRef> r) {
    const auto bits = k::philox(k::scalar<uint64_t>(7), k::arange(n))[0];
    const auto x = k::broadcast_to(k::In<float, 1>(r[0])(k::all).load(), {n});
    to<float, 1>(r[1])(k::all) = k::cast<float>(k::cast_stochastic<T>(x, bits));
  });
  std::vector<float> x{v}, y(static_cast<size_t>(n));
  run(program, x, y);
  return y;
}

template <class T>
void check_rounding(float v, float below, float above) {
  CAPTURE(v);
  const int64_t n = 4000;
  const std::vector<float> all = rounded<T>(v, n);
  int64_t ups = 0;
  for (const float y : all) {
    CHECK((y == below || y == above));
    ups += y == above && above != below;
  }
  if (above == below) return;
  const double chance = (double{v} - below) / (double{above} - below);
  const double spread = std::sqrt(chance * (1 - chance) / static_cast<double>(n));
  CHECK(std::abs(static_cast<double>(ups) / static_cast<double>(n) - chance) <= 4.5 * spread + 1e-9);
}

TEST_CASE("cast_stochastic gives a neighbour, each as often as it is near") {
  check_rounding<k::bf16>(1.001953125f, 1.0f, 1.0078125f);  // a quarter of the way
  check_rounding<k::bf16>(-3.0f, -3.0f, -3.0f);
  check_rounding<k::bf16>(0x1.4p-133f, 0x1p-133f, 0x1p-132f);  // subnormal
  check_rounding<k::f16>(1.0f + 0x1p-12f, 1.0f, 1.0f + 0x1p-10f);
  check_rounding<k::f16>(0x1.8p-24f, 0x1p-24f, 0x1p-23f);  // subnormal
  check_rounding<k::f16>(-0x1p-26f, -0x1p-24f, -0.0f);
  check_rounding<k::e4m3>(9.25f, 9.0f, 10.0f);
  check_rounding<k::e4m3>(0x1.4p-9f, 0x1p-9f, 0x1p-8f);
  check_rounding<k::e5m2>(-5.25f, -6.0f, -5.0f);
  for (const float v : rounded<k::f16>(INFINITY, 40)) CHECK(v == INFINITY);
  for (const float v : rounded<k::bf16>(NAN, 40)) CHECK(std::isnan(v));
}

TEST_CASE("randint stays within its range and reaches both ends") {
  const int64_t n = 3000;
  const auto program = k::trace("randint", {out({n}, weft::int32)}, {1}, [&](std::span<const k::AnyRef> r) {
    to<int32_t, 1>(r[0])(k::all) = k::randint(k::scalar<uint64_t>(3), k::arange(n), -2, 5);
  });
  std::vector<int32_t> y(static_cast<size_t>(n));
  run(program, y);
  std::vector<int> counts(7);
  for (const int32_t v : y) {
    REQUIRE((v >= -2 && v < 5));
    ++counts[static_cast<size_t>(v + 2)];
  }
  for (const int c : counts) CHECK(std::abs(c - 3000 / 7) < 100);
}

TEST_CASE("random_bits are the array's words, whatever part is drawn") {
  for (const int64_t words : {1, 2, 7, 10, 33}) {
    const auto program = k::trace("words", {in({2}, weft::uint32), out({words}, weft::uint32)}, {k::cdiv(words, 4)},
                                  [&](std::span<const k::AnyRef> r) {
                                    const k::In<uint32_t, 1> key(r[0]);
                                    const auto start = k::program_id(0) * 4;
                                    to<uint32_t, 1>(r[1])(k::ds(start, 4)) =
                                        k::random_bits(key(0).load(), key(1).load(), k::arange(4) + start, words);
                                  });
    std::vector<uint32_t> key{11, 0x80000005u}, y(static_cast<size_t>(words));
    run(program, key, y);
    const int64_t half = (words + 1) / 2;
    for (int64_t i = 0; i < words; ++i) {
      const int64_t low = i % half, high = low + half == words ? 0 : low + half;
      const weft::Number args[] = {weft::Number::of_int(key[0]), weft::Number::of_int(key[1]),
                                   weft::Number::of_int(low), weft::Number::of_int(high)};
      const auto word = i < half ? weft::kernel::ScalarOp::threefry0 : weft::kernel::ScalarOp::threefry1;
      CHECK(y[static_cast<size_t>(i)] == static_cast<uint32_t>(weft::kernel::reference(word, weft::uint32, args).i));
    }
  }
}

/// Returns the message of what a kernel of one program throws while it is traced, from the line's number on.
template <class F>
std::string refusal(const F& body) {
  try {
    k::trace("wrong", {in({4, 8}, weft::uint32), out({4, 8})}, {1},
             [&](std::span<const k::AnyRef> r) { body(k::In<uint32_t, 2>(r[0])(k::all, k::all).load()); });
  } catch (const std::invalid_argument& e) {
    const std::string all = e.what();
    const size_t line = all.find("blocks_test.cpp:");
    CHECK(all.starts_with("[kernel wrong] "));
    CHECK(line != std::string::npos);
    return all.substr(all.find(": ", line) + 2);
  }
  return "";
}

TEST_CASE("packed integers and random words: what is wrong is said") {
  using Words = k::Tile<uint32_t, 2>;
  CHECK(refusal([](Words v) { k::unpack<int8_t>(v, 3); }) ==
        "unpack: integers of 3 bits in words of uint32: give 1, 2, 4 or 8");
  CHECK(refusal([](Words v) { k::unpack<int8_t>(k::sum(v), 4); }) ==
        "unpack: a scalar has no axis that the integers lie along: reshape it to [1]");
  CHECK(refusal([](Words v) { k::pack<uint64_t>(v, 4); }) ==
        "pack: the last axis of u32[4,8] is no multiple of the 16 integers of 4 bits in a word of uint64: pad it");
  CHECK(refusal([](Words) { k::randint(k::scalar<uint64_t>(1), k::arange(4), 5, 5); }) ==
        "randint: there are no integers from 5 to 5, or too many: give low < high, 2^31 - 1 apart at most");
  CHECK(refusal([](Words v) { k::random_bits(k::sum(v), k::sum(v), k::arange(4), 0); }) ==
        "random_bits: an array of 0 words: give 1 to 2^32");
  CHECK(refusal([](Words v) {
          k::cast_stochastic<k::bf16>(k::zeros<float>({3, 8}), v);
        }).starts_with("cast_stochastic: "));
}

}  // namespace
