// Loops and conditions whose bodies stand between two calls: the kernel is the one that functions give.
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>

#include "weft/kernel/erased.h"

using namespace weft;

namespace {

using Refs = std::span<const k::AnyRef>;

k::Any whole_number(int64_t v) { return k::constant(int64, v); }
k::Any less(const k::Any& a, int64_t b) { return k::apply("lt", std::array{a, whole_number(b)}); }
k::Any plus(const k::Any& a, const k::Any& b) { return k::apply("add", std::array{a, b}); }
k::Span eight_from(const k::Any& start) { return {.start = start, .size = 8}; }

/// The kernel of a body over an array that it reads and one that it writes, as text without lines.
std::string traced(const std::function<void(Refs)>& body) {
  return k::trace("scoped", {{k::Use::in, float32, {40}}, {k::Use::out, float32, {40}}}, {1}, body).to_string();
}

/// Returns whether tracing the body is refused with words.
bool refused_with(const std::string& words, const std::function<void()>& body) {
  try {
    traced([&](Refs) { body(); });
  } catch (const std::invalid_argument& e) {
    INFO(e.what());
    return std::string(e.what()).find(words) != std::string::npos;
  }
  return false;
}

}  // namespace

TEST_CASE("a loop between two calls is the loop of a function") {
  for (const int64_t end : {40, 33, 8, 3, 0}) {
    CAPTURE(end);
    const auto add = [](Refs a, k::Cell& sum, const k::Any& i) {
      sum.set(plus(sum.get(), k::load(a[0], std::array{eight_from(i)})));
    };
    const std::string by_function = traced([&](Refs a) {
      k::Cell sum(k::constant(float32, 0, {8}));
      k::loop(whole_number(0), whole_number(end), 8, [&](const k::Any& i) { add(a, sum, i); });
      k::store(a[1], std::array{eight_from(whole_number(0))}, sum.get());
    });
    const std::string by_scope = traced([&](Refs a) {
      k::Cell sum(k::constant(float32, 0, {8}));
      k::Scope loop = k::Scope::loop(whole_number(0), whole_number(end), 8);
      CHECK(loop.runs() == (end > 0));
      if (loop.runs()) add(a, sum, loop.index());
      loop.close();
      loop.close();  // once is enough
      k::store(a[1], std::array{eight_from(whole_number(0))}, sum.get());
    });
    CHECK(by_function == by_scope);
  }
}

TEST_CASE("a condition and a parallel loop between two calls are those of functions") {
  const std::string by_function = traced([](Refs a) {
    k::parallel(5, [&](const k::Any& i) {
      const k::Any at = k::apply("mul", std::array{i, whole_number(8)});
      k::store(a[1], std::array{eight_from(at)}, k::load(a[0], std::array{eight_from(at)}));
    });
    k::Cell last(k::constant(float32, 1, {8}));
    k::loop(whole_number(0), whole_number(5), 1,
            [&](const k::Any& i) { k::when(less(i, 3), [&] { last.set(k::load(a[0], std::array{eight_from(i)})); }); });
    k::store(a[1], std::array{eight_from(whole_number(0))}, last.get());
  });
  const std::string by_scope = traced([](Refs a) {
    k::Scope parallel = k::Scope::parallel(5);
    const k::Any at = k::apply("mul", std::array{parallel.index(), whole_number(8)});
    k::store(a[1], std::array{eight_from(at)}, k::load(a[0], std::array{eight_from(at)}));
    parallel.close();
    k::Cell last(k::constant(float32, 1, {8}));
    k::Scope loop = k::Scope::loop(whole_number(0), whole_number(5), 1);
    k::Scope when = k::Scope::when(less(loop.index(), 3));
    last.set(k::load(a[0], std::array{eight_from(loop.index())}));
    when.close();
    loop.close();
    k::store(a[1], std::array{eight_from(whole_number(0))}, last.get());
  });
  CHECK(by_function == by_scope);
}

TEST_CASE("a condition that is known while tracing runs when it holds") {
  std::array<float, 40> x{}, y{};
  x.fill(3);
  const k::Program program =
      k::trace("known", {{k::Use::in, float32, {40}}, {k::Use::out, float32, {40}}}, {1}, [](Refs a) {
        k::store(a[1], std::array{k::Span{.size = 40}}, k::constant(float32, 1, {40}));
        for (const int64_t end : {0, 1}) {
          k::Scope when = k::Scope::when(less(whole_number(0), end));
          k::store(a[1], std::array{eight_from(whole_number(8 * end))},
                   k::load(a[0], std::array{eight_from(whole_number(0))}));
          when.close();
        }
      });
  program.interpret(std::array<void*, 2>{x.data(), y.data()});
  CHECK(y[0] == 1);
  CHECK(y[8] == 3);
  CHECK(y[16] == 1);
}

TEST_CASE("scopes that are left open, or closed in another order, are refused") {
  CHECK(refused_with("left before its end: let its block end by itself",
                     [] { k::Scope::loop(whole_number(0), whole_number(5), 1); }));
  CHECK(refused_with("ends while another one in it is open", [] {
    k::Scope outer = k::Scope::loop(whole_number(0), whole_number(5), 1);
    k::Scope inner = k::Scope::when(less(outer.index(), 3));
    outer.close();
  }));
  CHECK(refused_with("parallel: an iteration assigns a variable of the outside", [] {
    k::Cell v(whole_number(0));
    k::Scope loop = k::Scope::parallel(2);
    v.set(whole_number(1));
    loop.close();
  }));
}
