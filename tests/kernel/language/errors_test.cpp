// Kernels that are wrong: each is refused with the line of the user's statement, what is wrong and what to do. Here
// values: operators, movement, reductions.
#include "kernel/language/errors.h"

#include <array>
#include <string>
#include <vector>

namespace {

using namespace test_kernels;

TEST_CASE("operators whose shapes do not go together are refused") {
  const std::vector<std::string> add = {"add: shapes f32[4] and f32[5] do not go together", "row, col, expand_dims"};
  refused(add, [](Test& t) { t.at(__LINE__), line(4) + line(5); });
  refused({"mul: shapes f32[4,8] and f32[8,4]"}, [](Test& t) { t.at(__LINE__), plane(4, 8) * plane(8, 4); });
  refused({"lt: shapes f32[4] and f32[5]"}, [](Test& t) { t.at(__LINE__), static_cast<void>(line(4) < line(5)); });
  refused({"lt: shapes f32[5] and f32[4]"}, [](Test& t) { t.at(__LINE__), static_cast<void>(line(4) > line(5)); });
  refused({"div: shapes f32[4] and f32[3]"}, [](Test& t) { t.at(__LINE__), line(4) / line(3); });
  refused({"floordiv: shapes i32[4] and i32[3]"},
          [](Test& t) { t.at(__LINE__), tile<int32_t, 1>(v({4}, int32)) / tile<int32_t, 1>(v({3}, int32)); });
  refused({"floordiv: shapes i32[4] and i32[3]"},
          [](Test& t) { t.at(__LINE__), tile<int32_t, 1>(v({4}, int32)) % tile<int32_t, 1>(v({3}, int32)); });
  refused({"max: shapes f32[2] and f32[3]"}, [](Test& t) { t.at(__LINE__), k::maximum(line(2), line(3)); });
  refused({"fma: shapes f32[2] and f32[2] and f32[3]"},
          [](Test& t) { t.at(__LINE__), k::fma(line(2), line(2), line(3)); });
  refused({"select: shapes bool[2] and f32[3] and f32 do not go together"},
          [](Test& t) { t.at(__LINE__), k::where(line(2) == line(2), line(3), 0); });
  refused({"add: shapes f32[4] and f32[4,4]"}, [](Test& t) { t.at(__LINE__), apply("add", v({4}), v({4, 4})); });
  refused({"add: shapes f32[4] and f32[5]"}, [](Test& t) {
    k::Mut sum = line(4);
    t.at(__LINE__), sum += line(5);
  });
  refused({"add: shapes f32[4,8] and f32[4,7]"}, [](Test& t) {
    const k::Out<float, 2> y(t.y);
    t.at(__LINE__), y(k::all, k::all) += plane(4, 7);
  });
}

TEST_CASE("operators whose dtypes do not go together, or that are not defined on them, are refused") {
  refused({"add: argument 1 is int32, not float32: cast it"},
          [](Test& t) { t.at(__LINE__), apply("add", v({4}), v({4}, int32)); });
  refused({"lt: argument 1 is float64, not float32"},
          [](Test& t) { t.at(__LINE__), apply("lt", v({}), v({}, float64)); });
  refused({"select: argument 0 is float32, not bool"}, [](Test& t) {
    t.at(__LINE__), k::apply("select", std::array{v({4}), v({4}), v({4})});
  });
  refused({"select: argument 2 is int32, not float32"}, [](Test& t) {
    t.at(__LINE__), k::apply("select", std::array{v({}, bool_), v({}), v({}, int32)});
  });
  refused({"exp is not defined on int32", "cast it"},
          [](Test& t) { t.at(__LINE__), k::apply("exp", std::array{v({4}, int32)}); });
  refused({"exp is not defined on int32"}, [](Test& t) { t.at(__LINE__), k::exp(tile<int32_t, 1>(v({4}, int32))); });
  refused({"bit_and is not defined on float32"}, [](Test& t) { t.at(__LINE__), line(4) & line(4); });
  refused({"shl is not defined on float32"}, [](Test& t) { t.at(__LINE__), line(4) << 2; });
  refused({"there is no scalar operator 'expp'", "docs/operators.md"},
          [](Test& t) { t.at(__LINE__), k::apply("expp", std::array{v({4})}); });
  refused({"add takes 2 arguments, not 1"}, [](Test& t) { t.at(__LINE__), k::apply("add", std::array{v({4})}); });
  refused({"exp takes 1 arguments, not 2"}, [](Test& t) { t.at(__LINE__), apply("exp", v({4}), v({4})); });
  refused({"bitcast: f32[4] and float64 differ in width", "cast"},
          [](Test& t) { t.at(__LINE__), k::bitcast(v({4}), float64); });
  refused({"bitcast: bool[4] and uint8"}, [](Test& t) { t.at(__LINE__), k::bitcast(v({4}, bool_), weft::uint8); });
  refused({"cast: complex64"}, [](Test& t) { t.at(__LINE__), k::cast(v({4}), complex64); });
  refused({"constant: complex64"}, [](Test& t) { t.at(__LINE__), v({4}, complex64); });
  refused({"iota: complex64"}, [](Test& t) { t.at(__LINE__), k::iota(4, complex64); });
  refused({"scratch: complex64"}, [](Test& t) { t.at(__LINE__), k::scratch(complex64, {4}); });
}

TEST_CASE("axes that a tile does not have are refused") {
  refused({"sum: f32[4] has no axis 1: it has 1"}, [](Test& t) { t.at(__LINE__), k::sum(line(4), 1); });
  refused({"max: f32[4] has no axis -2"}, [](Test& t) { t.at(__LINE__), k::max(line(4), -2); });
  refused({"argmax: f32[4] has no axis 3"}, [](Test& t) { t.at(__LINE__), k::argmax(line(4), 3); });
  refused({"logsumexp: f32[2,2] has no axis 2"}, [](Test& t) { t.at(__LINE__), k::logsumexp(plane(2, 2), 2); });
  refused({"all: bool[4] has no axis 1"}, [](Test& t) { t.at(__LINE__), k::all(line(4) == line(4), 1); });
  refused({"sum: f32 has no axis 0: it has 0"}, [](Test& t) { t.at(__LINE__), k::reduce("sum", v({}), 0); });
  refused({"reduce: f32[4] has no axis 1"},
          [](Test& t) { t.at(__LINE__), k::reduce(line(4), 1, [](auto a, auto b) { return a + b; }); });
  refused({"sum: f32[4] has no axis 2"}, [](Test& t) { t.at(__LINE__), k::cumsum(line(4), 2); });
  refused({"scan: f32[4] has no axis -3"},
          [](Test& t) { t.at(__LINE__), k::scan(line(4), -3, [](auto a, auto b) { return a + b; }); });
  refused({"sort: f32[4] has no axis 1"}, [](Test& t) { t.at(__LINE__), k::sort(line(4), 1); });
  refused({"sort: f32 has no axis -1"}, [](Test& t) { t.at(__LINE__), k::sort(k::scalar<float>(1)); });
  refused({"cat: f32[4] has no axis 1"}, [](Test& t) { t.at(__LINE__), k::cat(line(4), line(4), 1); });
  refused({"take: f32[4] has no axis 1"}, [](Test& t) { t.at(__LINE__), k::take(line(4), k::arange(2), 1); });
  refused({"flip: [4] has no axis 1"}, [](Test& t) { t.at(__LINE__), k::flip(line(4), 1); });
  refused({"expand_dims: f32[4] does not get an axis 2", "-2 to 1"},
          [](Test& t) { t.at(__LINE__), k::expand_dims(line(4), 2); });
  refused({"permute: f32[2,2] has no axis 2"}, [](Test& t) { t.at(__LINE__), k::permute(plane(2, 2), {0, 2}); });
  refused({"dim: [4] has no axis 1"}, [](Test& t) { t.at(__LINE__), static_cast<void>(line(4).dim(1)); });
  refused({"dim: [4,8] has no axis 2: it has 2"},
          [](Test& t) { t.at(__LINE__), static_cast<void>(k::In<float, 2>(t.x).dim(2)); });
  refused({"program_id: the grid has no axis 2: give one of its 2"}, [](Test& t) { t.at(__LINE__), k::program_id(2); });
  refused({"program_id: the grid has no axis -1"}, [](Test& t) { t.at(__LINE__), k::program_id(-1); });
  refused({"num_programs: the grid has no axis 5"},
          [](Test& t) { t.at(__LINE__), static_cast<void>(k::num_programs(5)); });
}

TEST_CASE("shapes that tiles do not take are refused") {
  refused({"reshape: f32[4,8] has 32 elements, not those of [5,6]", "same product"}, [](Test& t) {
    t.at(__LINE__), k::reshape(plane(4, 8), {5, 6});
  });
  refused({"reshape: extents of a tile are positive, not [4,0]"}, [](Test& t) {
    t.at(__LINE__), k::reshape(plane(4, 8), {4, 0});
  });
  refused({"reshape: extents of a tile are positive, not [4,-1]"}, [](Test& t) {
    t.at(__LINE__), k::reshape(plane(4, 8), {4, -1});
  });
  refused({"broadcast_to: f32[4] does not repeat to [4,5]", "extents are equal or 1"}, [](Test& t) {
    t.at(__LINE__), k::broadcast_to(line(4), {4, 5});
  });
  refused({"broadcast_to: f32[2,4] does not repeat to [4]"},
          [](Test& t) { t.at(__LINE__), k::broadcast_to(plane(2, 4), {4}); });
  refused({"permute: the axes 0,0 of f32[2,2]"}, [](Test& t) { t.at(__LINE__), k::permute(plane(2, 2), {0, 0}); });
  refused({"permute: the axes 0 of f32[2,2]"}, [](Test& t) { t.at(__LINE__), k::permute(v({2, 2}), {0}); });
  refused({"slice: [3] elements from (2) on", "outside of f32[4]"},
          [](Test& t) { t.at(__LINE__), k::slice(line(4), {2}, {3}); });
  refused({"slice: [2] elements from (0) on by steps of (-1)"},
          [](Test& t) { t.at(__LINE__), k::slice(line(4), {0}, {2}, {-1}); });
  refused({"slice: [2] elements from (0) on by steps of (0)"},
          [](Test& t) { t.at(__LINE__), k::slice(line(4), {0}, {2}, {0}); });
  refused({"slice: extents of a tile are positive, not [0]"},
          [](Test& t) { t.at(__LINE__), k::slice(line(4), {0}, {0}); });
  refused({"slice:", "for each axis"}, [](Test& t) { t.at(__LINE__), k::slice(v({2, 2}), {0}, {1}); });
  refused({"cat: f32[2,3] and f32[2,4] are joined along axis 0"},
          [](Test& t) { t.at(__LINE__), k::cat(plane(2, 3), plane(2, 4), 0); });
  refused({"cat: f32[2] and i32[2]", "dtype"}, [](Test& t) { t.at(__LINE__), k::cat(two(v({2}), v({2}, int32)), 0); });
  refused({"cat: there is nothing to join"}, [](Test& t) { t.at(__LINE__), k::cat(std::span<const Any>(), 0); });
  refused({"join: f32[2] and f32[3] differ in shape"}, [](Test& t) { t.at(__LINE__), k::join(line(2), line(3)); });
  refused({"interleave: f32[2] and f32[3] differ"}, [](Test& t) { t.at(__LINE__), k::interleave(line(2), line(3)); });
  refused({"split: the last axis of f32[2,3] has not two elements: reshape"},
          [](Test& t) { t.at(__LINE__), k::split(plane(2, 3)); });
  refused({"take: f32[2,3] by i64[3,3] along axis 1", "differs along that axis only"}, [](Test& t) {
    t.at(__LINE__), k::take(v({2, 3}), v({3, 3}, int64), 1);
  });
  refused({"take: f32[4] by f32[4]", "integer"}, [](Test& t) { t.at(__LINE__), k::take(v({4}), v({4}), 0); });
  refused({"constant: extents of a tile are positive, not [0]"}, [](Test& t) { t.at(__LINE__), k::zeros<float>({0}); });
  refused({"constant: extents of a tile are positive, not [4,-2]"}, [](Test& t) {
    t.at(__LINE__), k::full<float>({4, -2}, 1);
  });
  refused({"constant: a tile has at most four axes, not the 5 of [1,1,1,1,1]"}, [](Test& t) {
    t.at(__LINE__), v({1, 1, 1, 1, 1});
  });
  refused({"reshape: a tile has at most four axes"}, [](Test& t) { t.at(__LINE__), k::reshape(v({1}), Dims(5, 1)); });
  refused({"constant: a tile has fewer than 2^31 elements", "work on parts"}, [](Test& t) {
    t.at(__LINE__), k::zeros<float>({1 << 20, 1 << 20});
  });
  refused({"iota: extents of a tile are positive, not [0]"}, [](Test& t) { t.at(__LINE__), k::arange(0); });
}

TEST_CASE("what sort, top-k, histogram, dot and reducers do not take is refused") {
  refused({"sort: f32[2,3] and f32[3,2] differ in shape"},
          [](Test& t) { t.at(__LINE__), k::sort_by(plane(2, 3), plane(3, 2)); });
  refused({"sort: there are no tiles"}, [](Test& t) { t.at(__LINE__), k::sort(std::span<const Any>(), 0); });
  refused({"topk: 5 of the last axis of f32[4]: give 1 to 4"}, [](Test& t) { t.at(__LINE__), k::topk(line(4), 5); });
  refused({"topk: 0 of"}, [](Test& t) { t.at(__LINE__), k::topk(line(4), 0); });
  refused({"histogram: extents of a tile are positive, not [0]"},
          [](Test& t) { t.at(__LINE__), k::histogram(k::arange(4), 0); });
  refused({"histogram: f32[4] is no integer tile: cast it"}, [](Test& t) { t.at(__LINE__), k::histogram(v({4}), 3); });
  refused({"dot: inner extents 8 and 4 of f32[4,8] and f32[4,8] differ", "[m,k] and [k,n]"},
          [](Test& t) { t.at(__LINE__), k::dot(plane(4, 8), plane(4, 8)); });
  refused({"dot: f32[4,8] and i32[8,4]", "one dtype"}, [](Test& t) {
    t.at(__LINE__), k::dot(v({4, 8}), v({8, 4}, int32));
  });
  refused({"dot: f32[8] and f32[8]", "two axes at least"}, [](Test& t) { t.at(__LINE__), k::dot(v({8}), v({8})); });
  refused({"dot: f32[2,4,8] and f32[8,4]"}, [](Test& t) { t.at(__LINE__), k::dot(v({2, 4, 8}), v({8, 4})); });
  refused({"dot: the leading axes of f32[2,4,8] and f32[3,8,4] differ"}, [](Test& t) {
    t.at(__LINE__), k::dot(v({2, 4, 8}), v({3, 8, 4}));
  });
  refused({"dot: f32[4,8] and f32[8,4] do not add up in f32[4,5]: give a tile of [4,4]"},
          [](Test& t) { t.at(__LINE__), k::dot(plane(4, 8), plane(8, 4), plane(4, 5)); });
  refused({"dot: products of float32 do not add up in int32"}, [](Test& t) {
    t.at(__LINE__), k::dot(v({4, 8}), v({8, 4}), v({4, 4}, int32));
  });
  refused({"dot: integers of i64[4,8] do not add up in int32: cast"}, [](Test& t) {
    t.at(__LINE__), k::dot(v({4, 8}, int64), v({8, 4}, int64));
  });
  refused({"dot: products of bool"}, [](Test& t) { t.at(__LINE__), k::dot(v({4, 8}, bool_), v({8, 4}, bool_)); });
  refused({"dot: a precision is given for float32 alone"}, [](Test& t) {
    const Any a = v({8, 8}, bfloat16);
    t.at(__LINE__), k::dot(a, a, {}, k::Precision::tf32);
  });
  refused({"reduce: there is no reducer 'mean'", "logsumexp"},
          [](Test& t) { t.at(__LINE__), k::reduce("mean", v({4}), 0); });
  refused({"scan: there is no reducer 'mean'"}, [](Test& t) { t.at(__LINE__), k::scan("mean", v({4}), 0); });
  refused({"reduce: all is not defined on f32[4]"}, [](Test& t) { t.at(__LINE__), k::reduce("all", v({4}), 0); });
  refused({"reduce: logsumexp is not defined on i32[4]"},
          [](Test& t) { t.at(__LINE__), k::reduce("logsumexp", v({4}, int32), 0); });
}

TEST_CASE("functions of reductions that do more than combine scalars are refused") {
  const auto reduced = [](const k::CombineAny& f, k::Line at = k::Line::here()) {
    return k::reduce(f, std::array{v({4})}, 0, at);
  };
  refused({"reduce: the function returns 2 values: return one for each of the 1 tiles"}, [&](Test& t) {
    t.at(__LINE__), reduced([](const Anys& a, const Anys& b) { return Anys{a[0], b[0]}; });
  });
  refused({"reduce: value 0 of the function is bool: return a scalar f32"},
          [&](Test& t) { t.at(__LINE__), reduced([](auto& a, auto& b) { return Anys{apply("lt", a[0], b[0])}; }); });
  refused({"scan: the function returns 0 values"}, [&](Test& t) {
    const k::CombineAny none = [](const Anys&, const Anys&) { return Anys{}; };
    t.at(__LINE__), k::scan(none, std::array{v({4})}, 0);
  });
  refused({"reduce: f32[4,8] and f32[4,1] differ in shape"}, [&](Test& t) {
    const k::CombineAny low = [](const Anys& a, const Anys&) { return a; };
    t.at(__LINE__), k::reduce(low, two(v({4, 8}), v({4, 1})), 0);
  });
  refused({"reduce: there are no tiles"}, [&](Test& t) {
    const k::CombineAny low = [](const Anys& a, const Anys&) { return a; };
    t.at(__LINE__), k::reduce(low, std::span<const Any>(), 0);
  });
  const std::string why =
      "in the function of a reduction or scan, or the condition of a wait: it computes scalars from scalars";
  refused({"mul of a tile", why}, [](Test& t) {
    const auto x = line(4);
    k::reduce(x, 0, [&](auto a, auto b) {
      t.at(__LINE__), x* x;
      return a + b;
    });
  });
  refused({"load", why}, [](Test& t) {
    k::reduce(line(4), 0, [&](auto a, auto) { return t.at(__LINE__), a + k::In<float, 2>(t.x)(0, 0).load(); });
  });
  refused({"store", why}, [](Test& t) {
    k::scan(line(4), 0, [&](auto a, auto b) {
      t.at(__LINE__), k::Out<float, 2>(t.y)(0, 0) = a;
      return a + b;
    });
  });
  refused({"reduce", why}, [](Test& t) {
    const auto x = line(4);
    k::reduce(x, 0, [&](auto a, auto) { return t.at(__LINE__), a + k::sum(x); });
  });
  refused({"if_else", why}, [](Test& t) {
    k::reduce(line(4), 0, [&](auto a, auto b) {
      return t.at(__LINE__), k::if_else(
                                 a < b, [&] { return a; }, [&] { return b; });
    });
  });
  refused({"an assignment to a variable", why}, [](Test& t) {
    k::Mut last = k::scalar<float>(0);
    k::reduce(line(4), 0, [&](auto a, auto b) {
      t.at(__LINE__), last = a;
      return a + b;
    });
  });
}

}  // namespace
