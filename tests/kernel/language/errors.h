#pragma once
// What tests of kernels that are wrong have in common: a kernel of eight arrays, and how its message is looked at.
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "weft/kernel.h"

namespace test_kernels {

namespace k = weft::k;
using k::Any;
using weft::bfloat16;
using weft::bool_;
using weft::complex64;
using weft::Dtype;
using weft::float32;
using weft::float64;
using weft::int32;
using weft::int64;
using Dims = std::vector<int64_t>;
using Anys = std::vector<Any>;

/// The arrays of a kernel that is wrong, and the line of what is wrong with it.
struct Test {
  k::AnyRef x, y, counts, flags, half, empty, cube, one;
  int line = 0;
  Test& at(int number) {
    line = number;
    return *this;
  }
};

inline const std::vector<k::Param> params = {{k::Use::in, float32, {4, 8}},          {k::Use::out, float32, {4, 8}},
                                             {k::Use::in_out, int32, {16}},          {k::Use::in_out, bool_, {4}},
                                             {k::Use::in_out, bfloat16, {4, 8}},     {k::Use::in, float32, {0, 3}},
                                             {k::Use::in, float32, {2, 2, 2, 2, 2}}, {k::Use::in_out, float32, {1, 8}}};

template <class Error>
void check_message(const std::function<void()>& f, const std::string& beginning,
                   const std::vector<std::string>& words) {
  try {
    f();
  } catch (const std::exception& e) {
    const std::string message = e.what();
    INFO(message);
    CHECK(typeid(e) == typeid(Error));
    CHECK(message.substr(0, beginning.size()) == beginning);
    for (const std::string& word : words) {
      CAPTURE(word);
      CHECK(message.find(word, beginning.size()) != std::string::npos);
    }
    return;
  }
  FAIL_CHECK("nothing was thrown: " << words[0]);
}

/// Traces a kernel whose body calls test.at(__LINE__) on the line that is refused.
inline void refused(const std::vector<std::string>& words, const std::function<void(Test&)>& body,
                    const char* file = __builtin_FILE()) {
  Test test;
  std::string message;
  try {
    k::trace("wrong", params, {2, 3}, [&](std::span<const k::AnyRef> r) {
      test = {r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]};
      body(test);
    });
    FAIL_CHECK("nothing was thrown: " << words[0]);
  } catch (const std::exception& e) {
    const std::string line = std::to_string(test.line);
    check_message<std::invalid_argument>([&] { throw; }, std::string("[kernel wrong] ") + file + ":" + line + ": ",
                                         words);
  }
}

/// Returns a tile of ones.
inline Any v(const Dims& dims, Dtype t = float32, k::Line at = k::Line::here()) { return k::constant(t, 1, dims, at); }
inline std::array<Any, 2> two(const Any& a, const Any& b) { return {a, b}; }
inline Any apply(std::string_view op, const Any& a, const Any& b, k::Line at = k::Line::here()) {
  return k::apply(op, two(a, b), at);
}
template <class T, int R>
k::Tile<T, R> tile(const Any& a) {
  return k::Tile<T, R>(a);
}
inline k::Tile<float, 1> line(int64_t n) { return k::Tile<float, 1>(v({n})); }
inline k::Tile<float, 2> plane(int64_t m, int64_t n) { return k::Tile<float, 2>(v({m, n})); }
inline k::Span from(int64_t start, int64_t size, int64_t step = 1) {
  return {.first = start, .size = size, .step = step};
}
inline const k::Span whole{.whole = true};
inline k::Span single(int64_t i) { return {.first = i, .squeezed = true}; }
inline std::array<k::Span, 2> both(const k::Span& a, const k::Span& b) { return {a, b}; }
inline const std::array<k::Span, 2> everything = both(whole, whole);

}  // namespace test_kernels
