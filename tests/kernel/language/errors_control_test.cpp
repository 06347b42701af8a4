// Kernels that are wrong in their control flow and variables, and values that leave their kernel.
#include "kernel/language/errors.h"

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/kernel_async.h"

namespace {

using namespace test_kernels;

TEST_CASE("variables keep their types, and their blocks") {
  const std::string keeps = "a variable keeps its shape and dtype";
  refused({"a variable of f32[4] is assigned f32[5]", keeps}, [](Test& t) {
    k::Mut m = line(4);
    t.at(__LINE__), m = line(5);
  });
  refused({"a variable of f32[4] is assigned i32[4]", keeps}, [](Test& t) {
    k::Cell m(v({4}));
    t.at(__LINE__), m.set(v({4}, int32));
  });
  refused({"a variable of f32[4] is assigned f32[8]", keeps}, [](Test& t) {
    k::Mut m = line(4);
    k::loop(0, 4, 1, [&](k::Index) { t.at(__LINE__), m = k::cat(m, m); });
  });
  refused({"a variable of f32[1] is assigned f32[4]", keeps}, [](Test& t) {
    k::Mut m = line(1);
    k::when(k::program_id(0) == 1, [&] { t.at(__LINE__), m += line(4); });
  });
  refused({"a value was never assigned"}, [](Test& t) {
    const k::Tile<float, 1> none;
    t.at(__LINE__), none + 1;
  });
  refused({"a value was never assigned"}, [](Test& t) {
    const k::Tile<float, 1> none;
    t.at(__LINE__), k::Mut<float, 1>(none);
  });
  const std::string after = "a value that a loop or a condition made is used after it: carry it in a Mut";
  refused({after}, [](Test& t) {
    k::Tile<float, 1> left;
    k::loop(0, 4, 1, [&](k::Index) { left = line(4) + 1; });
    t.at(__LINE__), left + 1;
  });
  refused({after}, [](Test& t) {
    k::Index left;
    k::loop(4, [&](k::Index i) { left = i; });
    t.at(__LINE__), left + 1;
  });
  refused({after}, [](Test& t) {
    k::Tile<float, 1> left;
    k::when(k::program_id(0) == 0, [&] { left = line(4) * 2; });
    t.at(__LINE__), k::Out<float, 2>(t.y)(0, k::ds(0, 4)) = left;
  });
  refused({after}, [](Test& t) {
    k::Tile<float, 1> left;
    k::loop(0, 1, 1, [&](k::Index) { left = line(4); });  // also where there is one iteration
    t.at(__LINE__), k::exp(left);
  });
  refused({after}, [](Test& t) {
    k::Mut n = k::scalar<int64_t>(4);
    k::Tile<int64_t, 0> left;
    k::while_([&] { return n > 0; }, [&] { left = n - 1, n = left; });
    t.at(__LINE__), left + 1;
  });
  refused({after}, [](Test& t) {
    k::Tile<float, 0> left;
    k::reduce(line(4), 0, [&](auto a, auto b) { return left = a + b; });
    t.at(__LINE__), left + 1;
  });
  refused({after}, [](Test& t) {
    k::Tile<float, 0> left;
    const auto first = [&] { return left = k::sum(line(4)); };
    k::if_else(k::program_id(0) == 0, first, [&] { return t.at(__LINE__), left + 1; });
  });
  refused({"a variable that a loop or a condition made is used after it"}, [](Test& t) {
    std::optional<k::Mut<float, 1>> inner;
    k::loop(0, 4, 1, [&](k::Index) { inner.emplace(line(4)); });
    t.at(__LINE__), k::exp(*inner);
  });
  refused({"while_: the condition assigns a variable: assign it in the body"}, [](Test& t) {
    k::Mut n = k::scalar<int64_t>(4);
    const auto counts = [&] {
      n -= 1;
      return n > 0;
    };
    t.at(__LINE__), k::while_(counts, [] {});
  });
}

TEST_CASE("values of one trace are not used in another, or on another thread") {
  const std::string other = "a value of another kernel, or of another thread's, is used";
  Any kept;
  k::AnyRef array;
  k::trace("first", {{k::Use::in_out, float32, {4, 8}}}, {1}, [&](std::span<const k::AnyRef> r) {
    kept = v({4});
    array = r[0];
  });
  refused({other}, [&](Test& t) { t.at(__LINE__), k::apply("exp", std::array{kept}); });
  refused({other}, [&](Test& t) { t.at(__LINE__), k::Mut<float, 1>(tile<float, 1>(kept)); });
  refused({other}, [&](Test& t) { t.at(__LINE__), k::store(t.y, both(single(0), from(0, 4)), kept); });
  refused({"load: an array of another kernel is used"},
          [&](Test& t) { t.at(__LINE__), k::load(array, both(whole, whole)); });
  refused({"store: an array of another kernel is used"},
          [&](Test& t) { t.at(__LINE__), k::store(array, everything, v({})); });
  refused({"gather: an array of another kernel is used"},
          [&](Test& t) { t.at(__LINE__), k::gather(array, two(k::iota(4), k::iota(4))); });
  refused({"scatter: an array of another kernel is used"},
          [&](Test& t) { t.at(__LINE__), k::scatter(array, two(k::iota(4), k::iota(4)), v({4})); });
  refused({"permute: an array of another kernel is used"}, [&](Test& t) { t.at(__LINE__), array.permute({1, 0}); });
  refused({"a variable of another kernel is used"}, [](Test& t) {
    k::Mut outer = line(4);
    k::trace("wrong", params, {1}, [&](std::span<const k::AnyRef>) { t.at(__LINE__), outer += 1; });
  });

  const std::string none = "there is no kernel being traced on this thread: call it inside the function of a kernel";
  const auto alone = [&](const std::string& what, const std::function<void()>& f, int number) {
    check_message<std::invalid_argument>(f, std::string("[kernel] ") + __FILE__ + ":" + std::to_string(number) + ": ",
                                         {what + ": " + none});
  };
  alone(
      "exp", [&] { k::apply("exp", std::array{kept}); }, __LINE__);
  alone(
      "constant", [] { k::zeros<float>({4}); }, __LINE__);
  alone(
      "program_id", [] { k::program_id(0); }, __LINE__);
  alone(
      "load", [&] { k::load(array, both(whole, whole)); }, __LINE__);
  alone(
      "scratch", [] { k::scratch<float>({4}); }, __LINE__);
  alone(
      "loop", [] { k::loop(Any(), Any(), 1, [](Any) {}); }, __LINE__);
  refused({"permute: the axes 0 of an array"}, [&](Test& t) {
    const Any mine = v({4});
    std::thread([&] {
      alone(
          "add", [&] { apply("add", mine, mine); }, __LINE__);
    }).join();
    t.at(__LINE__), t.x.permute({0});
  });
}

TEST_CASE("control flow on values of other types is refused") {
  const std::string scalar = "not a bool scalar: reduce a tile by all() or any()";
  refused({"when: the condition is bool[4]", scalar}, [](Test& t) { t.at(__LINE__), k::when(v({4}, bool_), [] {}); });
  refused({"when: the condition is i32", scalar}, [](Test& t) { t.at(__LINE__), k::when(v({}, int32), [] {}); });
  const auto one = [] { return Anys{v({})}; };
  refused({"if_else: the condition is f32", scalar}, [&](Test& t) { t.at(__LINE__), k::if_else(v({}), one, one); });
  refused({"while_: the condition is bool[4]", scalar},
          [](Test& t) { t.at(__LINE__), k::while_([] { return v({4}, bool_); }, [] {}); });
  const auto chosen = [] { return (k::program_id(0) == 0).any(); };
  refused({"if_else: value 0 is f32 or i32", "the same types"},
          [&](Test& t) { t.at(__LINE__), k::if_else(chosen(), one, [] { return Anys{v({}, int32)}; }); });
  refused({"if_else: value 0 is f32 or f32[4]"},
          [&](Test& t) { t.at(__LINE__), k::if_else(chosen(), one, [] { return Anys{v({4})}; }); });
  refused({"if_else: value 1 is missing or f32"}, [&](Test& t) {
    t.at(__LINE__), k::if_else(chosen(), one, [] { return Anys{v({}), v({})}; });
  });
  refused({"if_else: value 0 is f32[4] or f32[5]"}, [](Test& t) {
    const auto first = k::program_id(0) == 0;
    t.at(__LINE__), k::if_else(
                        first, [] { return line(4); }, [] { return line(5); });
  });
  const auto nothing = [](Any) {};
  refused({"loop: a bound is f32, no int64 scalar: cast"},
          [&](Test& t) { t.at(__LINE__), k::loop(v({}), v({}, int64), 1, nothing); });
  refused({"loop: a bound is i32"}, [&](Test& t) { t.at(__LINE__), k::loop(v({}, int64), v({}, int32), 1, nothing); });
  refused({"loop: a bound is i64[4]"}, [&](Test& t) { t.at(__LINE__), k::loop(v({}, int64), k::iota(4), 1, nothing); });
  refused({"loop: the step is 0: give 1 or more"}, [](Test& t) { t.at(__LINE__), k::loop(0, 4, 0, [](k::Index) {}); });
  refused({"loop: the step is -1"}, [](Test& t) { t.at(__LINE__), k::loop(4, 0, -1, [](k::Index) {}); });
  const auto no_iteration = [](const k::Index&) {};
  refused({"parallel: there are 0 iterations: give 1 or more"},
          [&](Test& t) { t.at(__LINE__), k::parallel(0, no_iteration); });
  const std::string outermost = "parallel: it stands in a loop, a condition or a grid with a sequential axis";
  refused({outermost}, [&](Test& t) { k::loop(4, [&](k::Index) { t.at(__LINE__), k::parallel(4, no_iteration); }); });
  refused({outermost},
          [&](Test& t) { k::when(k::program_id(0) == 0, [&] { t.at(__LINE__), k::parallel(4, no_iteration); }); });
  refused({outermost},
          [&](Test& t) { k::parallel(4, [&](k::Index) { t.at(__LINE__), k::parallel(4, no_iteration); }); });
  refused({"parallel: 8 iterations follow a parallel loop of 4: make them equally many"}, [&](Test& t) {
    k::parallel(4, no_iteration);
    t.at(__LINE__), k::parallel(8, no_iteration);
  });
  refused({"parallel: an array is written before it"}, [&](Test& t) {
    k::when(k::program_id(0) == 0, [&] { k::store(t.y, everything, v({4, 8})); });
    t.at(__LINE__), k::parallel(4, no_iteration);
  });
  refused({"parallel: an iteration assigns a variable of the outside: store what it makes in scratch"}, [](Test& t) {
    k::Mut sum = line(4);
    t.at(__LINE__), k::parallel(4, [&](k::Index) { sum += 1; });
  });
  refused({"parallel: an iteration works asynchronously or waits (commit_copies)"},
          [](Test& t) { t.at(__LINE__), k::parallel(4, [&](k::Index) { k::commit_copies(); }); });
  refused({"assert_: the condition is f32[4], not a bool"}, [](Test& t) { t.at(__LINE__), k::assert_(v({4}), "no"); });
  refused({"a value was never assigned"}, [](Test& t) { t.at(__LINE__), k::print("x = ", k::Tile<float, 0>()); });
  refused({"scratch: it is made in a loop or a condition: declare it before"},
          [](Test& t) { k::loop(0, 4, 1, [&](k::Index) { t.at(__LINE__), k::scratch<float>({4}); }); });
  refused({"scratch: it is made in a loop"},
          [](Test& t) { k::when(k::program_id(0) == 0, [&] { t.at(__LINE__), k::scratch<float>({4}); }); });
  refused({"scratch: extents are positive", "[4,0]"}, [](Test& t) { t.at(__LINE__), k::scratch<float>({4, 0}); });
  refused({"scratch: extents are positive and their product is small"}, [](Test& t) {
    t.at(__LINE__), k::scratch<float>({int64_t{1} << 40, int64_t{1} << 40});
  });
  refused({"assume_multiple: f32 by 4: an int64 scalar"},
          [](Test& t) { t.at(__LINE__), k::assume_multiple(v({}), 4); });
  refused({"assume_multiple: i64 by 0", "a positive number"},
          [](Test& t) { t.at(__LINE__), k::assume_multiple(k::program_id(0), 0); });
  refused({"assume_multiple: i64[4] by 4"}, [](Test& t) { t.at(__LINE__), k::assume_multiple(k::iota(4), 4); });
  refused({"assume_range: i64 in 4 to 3", "bounds"},
          [](Test& t) { t.at(__LINE__), k::assume_range(k::program_id(0), 4, 3); });
  refused({"assume_range: i32 in 0 to 3"}, [](Test& t) { t.at(__LINE__), k::assume_range(v({}, int32), 0, 3); });
  refused({"cdiv: the divisor is 0: give 1 or more"}, [](Test& t) { t.at(__LINE__), k::cdiv(k::program_id(0), 0); });
}

}  // namespace
