#pragma once
// Words of counter-based generators (Salmon et al. 2011) on uint32. Each word of a block is an operator; the expansions
// share the block's work.
#include <algorithm>
#include <bit>

#include "kernel/operators/row.h"

namespace weft::kernel {

inline bool is_uint32(Dtype t) { return t == uint32; }

/// Word `word` of Threefry-2x32-20 of (key0, key1, counter0, counter1).
template <int word>
struct ThreefryWord {
  static constexpr std::string_view meanings[2] = {"word 0 of Threefry-2x32-20 of two key words and two counters",
                                                   "word 1 of Threefry-2x32-20 of two key words and two counters"},
                                    meaning = meanings[word];
  static constexpr Columns columns{.arity = 4, .floats = false, .integers = true, .only = is_uint32, .flops = 75};
  static uint64_t integers(const Integers& v) {
    const uint32_t k0 = static_cast<uint32_t>(v.args[0].i), k1 = static_cast<uint32_t>(v.args[1].i);
    const std::array<uint32_t, 3> key{k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
    constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t x0 = static_cast<uint32_t>(v.args[2].i) + key[0], x1 = static_cast<uint32_t>(v.args[3].i) + key[1];
    for (uint32_t group = 0; group < 5; ++group) {
      for (int r : rotations[group % 2]) {
        x0 += x1;
        x1 = std::rotl(x1, r) ^ x0;
      }
      x0 += key[(group + 1) % 3];
      x1 += key[(group + 2) % 3] + group + 1;
    }
    return word == 0 ? x0 : x1;
  }
  static Expr expansion(std::span<const Expr> a) { return expansion::threefry(a[0], a[1], a[2], a[3], word); }
};

/// Word `word` of Philox-4x32-10 of (key0, key1, counter0, …, counter3).
template <int word>
struct PhiloxWord {
  static constexpr std::string_view meanings[4] = {"word 0 of Philox-4x32-10 of two key words and four counters",
                                                   "word 1 of Philox-4x32-10 of two key words and four counters",
                                                   "word 2 of Philox-4x32-10 of two key words and four counters",
                                                   "word 3 of Philox-4x32-10 of two key words and four counters"},
                                    meaning = meanings[word];
  static constexpr Columns columns{.arity = 6, .floats = false, .integers = true, .only = is_uint32, .flops = 120};
  static uint64_t integers(const Integers& v) {
    uint32_t key[2] = {static_cast<uint32_t>(v.args[0].i), static_cast<uint32_t>(v.args[1].i)}, x[4];
    for (int k = 0; k < 4; ++k) x[k] = static_cast<uint32_t>(v.args[2 + k].i);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * x[0], b = uint64_t{0xCD9E8D57u} * x[2];
      const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
                                static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
      std::copy(next, next + 4, x);
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    return x[word];
  }
  static Expr expansion(std::span<const Expr> a) {
    return expansion::philox({a[0], a[1]}, {a[2], a[3], a[4], a[5]}, word);
  }
};

template <>
struct Row<ScalarOp::threefry0> : Instruction, ThreefryWord<0> {};
template <>
struct Row<ScalarOp::threefry1> : Instruction, ThreefryWord<1> {};
template <>
struct Row<ScalarOp::philox0> : Instruction, PhiloxWord<0> {};
template <>
struct Row<ScalarOp::philox1> : Instruction, PhiloxWord<1> {};
template <>
struct Row<ScalarOp::philox2> : Instruction, PhiloxWord<2> {};
template <>
struct Row<ScalarOp::philox3> : Instruction, PhiloxWord<3> {};

}  // namespace weft::kernel
