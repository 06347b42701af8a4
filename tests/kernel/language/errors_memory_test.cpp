// Kernels that are wrong in what they do with arrays, and what the interpreter finds when they run.
#include "kernel/language/errors.h"

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace test_kernels;

TEST_CASE("slices that an array does not have are refused") {
  refused({"load: 1 indices for an array of 2 axes, [4,8]: give one for each"},
          [](Test& t) { t.at(__LINE__), k::load(t.x, std::array{whole}); });
  refused({"store: 3 indices for an array of 2 axes"}, [](Test& t) {
    t.at(__LINE__), k::store(t.y, std::array{whole, whole, whole}, v({}));
  });
  refused({"load: 0 elements by steps of 1 of axis 1 of [4,8]", "size of 1 or more"},
          [](Test& t) { t.at(__LINE__), k::In<float, 2>(t.x)(0, k::ds(0, 0)).load(); });
  refused({"load: -3 elements"}, [](Test& t) { t.at(__LINE__), k::In<float, 2>(t.x)(0, k::ds(0, -3)).load(); });
  refused({"load: 4 elements by steps of 0 of axis 1", "a step that is not 0"},
          [](Test& t) { t.at(__LINE__), k::In<float, 2>(t.x)(0, k::ds(0, 4, 0)).load(); });
  refused({"store: 4 elements by steps of 0"},
          [](Test& t) { t.at(__LINE__), k::Out<float, 2>(t.y)(0, k::ds(0, 4, 0)) = 1; });
  refused({"load: axis 0 of [4,8] has no element 4: it has 4"},
          [](Test& t) { t.at(__LINE__), k::In<float, 2>(t.x)(4, k::all) + 1; });
  refused({"load: axis 1 of [4,8] has no element -1"},
          [](Test& t) { t.at(__LINE__), k::In<float, 2>(t.x)(0, -1).load(); });
  refused({"store: axis 0 of [4,8] has no element 9"},
          [](Test& t) { t.at(__LINE__), k::Out<float, 2>(t.y)(9, k::all) = 0; });
  refused({"load: 0 elements by steps of 1 of axis 0 of [0,3]"},
          [](Test& t) { t.at(__LINE__), k::In<float, 2>(t.empty)(k::all, k::all).load(); });
  refused({"load: a tile has at most four axes, not the 5 of [2,2,2,2,2]"}, [](Test& t) {
    t.at(__LINE__), k::load(t.cube, std::array{whole, whole, whole, whole, whole});
  });
  refused({"load: axis 1 begins at f32, not at an int64 scalar"},
          [](Test& t) { t.at(__LINE__), k::load(t.x, both(whole, {.start = v({}), .size = 2})); });
  refused({"load: axis 0 begins at i64[2]"},
          [](Test& t) { t.at(__LINE__), k::load(t.x, both({.start = k::iota(2), .size = 2}, whole)); });
  refused({"load: a tile has fewer than 2^31 elements"},
          [](Test& t) { t.at(__LINE__), k::load(t.x, both(from(0, INT64_MAX), whole)); });
  refused({"load: 9 elements by steps of 4611686018427387904", "reach too far"},
          [](Test& t) { t.at(__LINE__), k::load(t.x, both(whole, from(0, 9, int64_t{1} << 62))); });
}

TEST_CASE("prefetches of what is near, or of very much, are refused") {
  refused({"prefetch: a buffer of the program is near already", "a slice of an array"}, [](Test& t) {
    const auto own = k::scratch<float>({4});
    t.at(__LINE__), k::prefetch(own(k::all));
  });
  refused({"prefetch: [65] elements of [4,8] are 65 runs of adjacent ones, more than 64"},
          [](Test& t) { t.at(__LINE__), k::prefetch(k::In<float, 2>(t.x)(k::ds(0, 65), 0)); });
}

TEST_CASE("stores of what does not fit are refused") {
  refused({"store: array 0 is an input: declare it as Out or InOut"}, [](Test& t) {
    t.at(__LINE__), k::store(t.x, everything, v({4, 8}));
  });
  refused({"store: array 0 is an input"}, [](Test& t) { t.at(__LINE__), k::Ref<float, 2>(t.x)(0, k::all) = 1; });
  refused({"scatter: array 0 is an input"},
          [](Test& t) { t.at(__LINE__), k::scatter(t.x, two(k::iota(4), k::iota(4)), v({4})); });
  refused({"atomic: array 0 is an input"},
          [](Test& t) { t.at(__LINE__), k::atomic("add", t.x, two(k::iota(4), k::iota(4)), v({4})); });
  refused({"compare_exchange: array 0 is an input"}, [](Test& t) {
    const auto at = two(k::iota(4), k::iota(4));
    t.at(__LINE__), k::compare_exchange(t.x, at, v({4}), v({4}));
  });
  refused({"store: i32[4,8] goes into an array of float32: cast it"}, [](Test& t) {
    t.at(__LINE__), k::store(t.y, everything, v({4, 8}, int32));
  });
  refused({"store: f32[8,4] goes into elements of shape [4,8]", "this shape, or a scalar"},
          [](Test& t) { t.at(__LINE__), k::Out<float, 2>(t.y)(k::all, k::all) = plane(8, 4); });
  refused({"store: f32[1,8] goes into elements of shape [4,8]"},
          [](Test& t) { t.at(__LINE__), k::Out<float, 2>(t.y)(k::all, k::all) = plane(1, 8); });
  refused({"store: f32[7] goes into elements of shape [8]"},
          [](Test& t) { t.at(__LINE__), k::Out<float, 2>(t.y)(0, k::all) = line(7); });
  refused({"store: f32[4] goes into elements of shape []"},
          [](Test& t) { t.at(__LINE__), k::store(t.y, both(single(0), single(0)), v({4})); });
  refused({"scatter: f32[3] goes into elements of shape [4]"}, [](Test& t) {
    const k::Out<float, 2> y(t.y);
    t.at(__LINE__), k::scatter(y, line(3), k::arange(4), k::arange(4));
  });
  refused({"scatter: i32[4] goes into an array of float32"},
          [](Test& t) { t.at(__LINE__), k::scatter(t.y, two(k::iota(4), k::iota(4)), v({4}, int32)); });
  refused({"store: several elements of [4,8] go to one position of a view"}, [](Test& t) {
    t.at(__LINE__), k::store(t.one.broadcast({4, 8}), everything, v({}));
  });
}

TEST_CASE("masks and positions of other types are refused") {
  const auto masked = [](const Any& mask) { return k::Access{.mask = mask}; };
  refused({"load: the mask is f32[4,8], not bool[4,8]"}, [&](Test& t) {
    t.at(__LINE__), k::load(t.x, everything, masked(v({4, 8})));
  });
  refused({"load: the mask is bool[4,7], not bool[4,8]: give it the shape"}, [&](Test& t) {
    t.at(__LINE__), k::load(t.x, everything, masked(v({4, 7}, bool_)));
  });
  refused({"store: the mask is bool[8], not bool[4,8]"},
          [&](Test& t) { t.at(__LINE__), k::store(t.y, everything, v({}), masked(v({8}, bool_))); });
  refused({"store: the mask is bool[7], not bool[8]"}, [](Test& t) {
    const auto mask = line(7) == line(7);
    t.at(__LINE__), k::Out<float, 2>(t.y)(0, k::all).store(1.0, mask);
  });
  refused({"gather: the mask is bool[3], not bool[4]"},
          [&](Test& t) { t.at(__LINE__), k::gather(t.counts, std::array{k::iota(4)}, masked(v({3}, bool_))); });
  refused({"scatter: the mask is i32, not bool[4]"}, [&](Test& t) {
    const std::array at{k::iota(4)};
    t.at(__LINE__), k::scatter(t.counts, at, v({4}, int32), masked(v({}, int32)));
  });
  refused({"atomic: the mask is f32[4]"}, [&](Test& t) {
    const std::array at{k::iota(4)};
    t.at(__LINE__), k::atomic("add", t.counts, at, v({4}, int32), v({4}));
  });
  refused({"gather: position 0 is f32[4], no integer tile: cast it"},
          [](Test& t) { t.at(__LINE__), k::gather(t.counts, std::array{v({4})}); });
  refused({"scatter: position 1 is bool[4], no integer tile"},
          [](Test& t) { t.at(__LINE__), k::scatter(t.y, two(k::iota(4), v({4}, bool_)), v({4})); });
  refused({"gather: 1 positions for an array of 2 axes, [4,8]: give one for each"},
          [](Test& t) { t.at(__LINE__), k::gather(t.x, std::array{k::iota(4)}); });
  refused({"gather: positions: shapes i64[4] and i64[5] do not go together"},
          [](Test& t) { t.at(__LINE__), k::gather(k::In<float, 2>(t.x), k::arange(4), k::arange(5)); });
  refused({"scatter: positions: shapes i64[4] and i64[3]"}, [](Test& t) {
    const k::Out<float, 2> y(t.y);
    t.at(__LINE__), k::scatter(y, line(4), k::arange(4), k::arange(3));
  });
  refused({"atomic: there is no atomic 'mul': add, min, max"}, [](Test& t) {
    const k::InOut<int32_t, 1> counts(t.counts);
    t.at(__LINE__), k::atomic("mul", counts, k::scalar<int32_t>(1), k::Index(0));
  });
  refused({"atomic: add is not defined on bool"},
          [](Test& t) { t.at(__LINE__), k::atomic("add", t.flags, std::array{k::iota(4)}, v({4}, bool_)); });
  refused({"atomic: bit_or is not defined on bfloat16"},
          [](Test& t) { t.at(__LINE__), k::atomic("bit_or", t.half, two(k::iota(4), k::iota(4)), v({4}, bfloat16)); });
  refused({"compare_exchange: f32[4] goes into an array of int32"}, [](Test& t) {
    const std::array at{k::iota(4)};
    t.at(__LINE__), k::compare_exchange(t.counts, at, v({4}), v({4}, int32));
  });
}

TEST_CASE("views that an array does not have are refused") {
  refused({"permute: the axes 0,2 of an array [4,8]: name each of them once"}, [](Test& t) {
    t.at(__LINE__), t.x.permute({0, 2});
  });
  refused({"permute: the axes 1,1 of an array [4,8]"}, [](Test& t) {
    t.at(__LINE__), k::In<float, 2>(t.x).permute({1, 1});
  });
  refused({"permute: the axes 0 of an array [4,8]"}, [](Test& t) { t.at(__LINE__), t.x.permute({0}); });
  const auto index = [](int64_t i) { return std::array{k::Index(i).any()}; };
  refused(
      {"fixed: of the index along axis 0 of [4,8], i64, it is not known that it lies within the axis", "assume_range"},
      [&](Test& t) { t.at(__LINE__), t.x.fixed(index(4)); });
  refused({"fixed: of the index along axis 0"}, [&](Test& t) { t.at(__LINE__), t.x.fixed(index(-1)); });
  refused({"fixed: of the index along axis 0 of [4,8], f32"},
          [](Test& t) { t.at(__LINE__), t.x.fixed(std::array{v({})}); });
  refused({"fixed: 3 indices for an array of 2 axes, [4,8]"}, [](Test& t) {
    const Any zero = k::Index(0).any();
    t.at(__LINE__), t.x.fixed(std::array{zero, zero, zero});
  });
  refused({"broadcast: [4,8] does not repeat to [4,16]"}, [](Test& t) { t.at(__LINE__), t.x.broadcast({4, 16}); });
  refused({"broadcast: [4,8] does not repeat to [8]"},
          [](Test& t) { t.at(__LINE__), k::In<float, 2>(t.x).broadcast({8}); });
  refused({"broadcast: [1,8] does not repeat to [-1,8]"}, [](Test& t) { t.at(__LINE__), t.one.broadcast({-1, 8}); });
  refused({"part: [5,8] elements from (0,0) on", "outside of [4,8]"}, [](Test& t) {
    t.at(__LINE__), t.x.part({0, 0}, {5, 8}, {1, 1});
  });
  refused({"part: [4,5] elements from (0,1) on, by steps of (1,2)"}, [](Test& t) {
    t.at(__LINE__), t.x.part({0, 1}, {4, 5}, {1, 2});
  });
  refused({"part: [4,0]"}, [](Test& t) { t.at(__LINE__), t.x.part({0, 0}, {4, 0}, {1, 1}); });
  refused({"part: [4] elements"}, [](Test& t) { t.at(__LINE__), t.x.part({0}, {4}, {1}); });
  refused({"part: [4,8]", "by steps of (1,0)"}, [](Test& t) { t.at(__LINE__), t.x.part({0, 0}, {4, 8}, {1, 0}); });
}

TEST_CASE("arrays and grids that no kernel has are refused") {
  const auto whole_kernel = [](const std::vector<std::string>& words, const std::vector<k::Param>& list,
                               const k::Grid& grid) {
    check_message<std::invalid_argument>([&] { k::trace("wrong", list, grid, [](std::span<const k::AnyRef>) {}); },
                                         "[kernel wrong] ", words);
  };
  whole_kernel({"the grid has no axis: give one"}, params, {});
  whole_kernel({"axis 1 of the grid has the extent -1: give 0 or more"}, params, {2, -1});
  whole_kernel({"more than 2^63 programs"}, params, {int64_t{1} << 32, int64_t{1} << 32});
  whole_kernel({"array 0 is complex64: pass its real and imaginary parts"}, {{k::Use::in, complex64, {4}}}, {1});
  whole_kernel({"array 1 has extents [4,-1]"}, {params[0], {k::Use::in, float32, {4, -1}}}, {1});
  whole_kernel({"array 0 has extents", "fewer than 2^63"}, {{k::Use::in, float32, {INT64_MAX, 4}}}, {1});
  CHECK_THROWS_AS(k::cdiv(4, 0), std::invalid_argument);
}

/// Traces a kernel of 4 programs on two arrays of 8 floats and runs it; it fails on the line of test.at.
void fails(const std::vector<std::string>& words, const std::function<void(Test&)>& body) {
  Test test;
  const auto program = k::trace("wrong", {{k::Use::in_out, float32, {8}}, {k::Use::in_out, float32, {8}}}, {4},
                                [&](std::span<const k::AnyRef> r) {
                                  test.x = r[0], test.y = r[1];
                                  body(test);
                                });
  std::vector<float> x(8, 1), y(8);
  check_message<std::runtime_error>(
      [&] {
        void* const arrays[] = {x.data(), y.data()};
        program.interpret(arrays);
      },
      std::string("[kernel wrong] ") + __FILE__ + ":" + std::to_string(test.line) + ": ", words);
}

TEST_CASE("the interpreter reports what goes wrong when a kernel runs") {
  fails({"program 1", "race: writes element 0, which another program wrote"},
        [](Test& t) { t.at(__LINE__), k::Out<float, 1>(t.y)(k::all) = 1; });
  fails({"program 1", "race: reads element 0, which another program wrote"}, [](Test& t) {
    const k::InOut<float, 1> y(t.y);
    y(k::program_id(0)) = 1;
    t.at(__LINE__), k::InOut<float, 1>(t.x)(k::program_id(0)) = y(0).load();
  });
  fails({"race: writes element", "which another program read"}, [](Test& t) {
    const k::InOut<float, 1> y(t.y);
    const auto read = y(k::program_id(0) + 1).load();
    t.at(__LINE__), y(k::program_id(0)) = read;
  });
  fails({"race"}, [](Test& t) {
    const k::InOut<float, 1> y(t.y);
    t.at(__LINE__), k::scatter(y, k::scalar<float>(1), k::Index(3));
  });
  fails({"race: adds to element 0, which another program wrote"}, [](Test& t) {
    const k::InOut<float, 1> y(t.y);
    k::when(k::program_id(0) == 0, [&] { y(0) = 1; });
    t.at(__LINE__), k::atomic("add", y, k::scalar<float>(1), k::Index(0));
  });
  fails({"program 2", "the ids are small"},
        [](Test& t) { t.at(__LINE__), k::check(k::program_id(0) < 2, "the ids are small"); });
  fails({"element 3", "all are less"}, [](Test& t) { t.at(__LINE__), k::check(k::arange(8) < 3, "all are less"); });
  fails({"program 1", "assume_multiple: not a multiple of 2"},
        [](Test& t) { t.at(__LINE__), k::assume_multiple(k::program_id(0), 2); });
  fails({"program 3", "assume_range: not within 0 to 2"},
        [](Test& t) { t.at(__LINE__), k::assume_range(k::program_id(0) + 0, 0, 2); });
}

TEST_CASE("arrays that overlap, or are not all there, are not run on") {
  const auto program = k::trace("wrong", {{k::Use::in, float32, {8}}, {k::Use::out, float32, {8}}}, {1},
                                [](std::span<const k::AnyRef>) {});
  std::vector<float> x(12);
  const auto run = [&](std::vector<void*> arrays) { return [&, arrays] { program.interpret(arrays); }; };
  check_message<std::runtime_error>(run({x.data(), x.data() + 4}), "[kernel wrong] ",
                                    {"parameters 0 and 1 overlap in memory, and one of them is written"});
  check_message<std::invalid_argument>(run({x.data()}), "[kernel wrong] ", {"takes 2 arrays, not 1"});
  check_message<std::invalid_argument>(run({x.data(), nullptr}), "[kernel wrong] ", {"the pointer of array 1 is null"});
}

TEST_CASE("positions outside of an array give what the access says, and are not stored") {
  const auto program = k::trace("edges", {{k::Use::in, float32, {4}}, {k::Use::out, float32, {8}}}, {1},
                                [](std::span<const k::AnyRef> r) {
                                  const auto at = k::arange(8) - 2;
                                  const k::Out<float, 1> to(r[1]);
                                  to(k::all) = k::gather(k::In<float, 1>(r[0]), at);
                                  k::scatter(to, k::full<float>({8}, 9), at * 100);
                                });
  std::vector<float> x = {1, 2, 3, 4}, y(8);
  void* const arrays[] = {x.data(), y.data()};
  program.interpret(arrays);
  CHECK(y == std::vector<float>{9, 0, 1, 2, 3, 4, 0, 0});
}

TEST_CASE("what is assumed in a condition holds there alone") {
  const auto program = k::trace("edges", {{k::Use::in_out, float32, {4}}}, {4}, [](std::span<const k::AnyRef> r) {
    const auto i = k::program_id(0) * 3;
    k::when(i < 2, [&] { k::assume_range(i, 0, 1); });
    const k::Out<float, 1> to(r[0]);
    to(i) = 1;
  });
  std::vector<float> y(4);
  void* const arrays[] = {y.data()};
  program.interpret(arrays);
  CHECK(y == std::vector<float>{1, 0, 0, 1});
}

}  // namespace
