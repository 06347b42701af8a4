// Kernels of arrays with dynamic axes: one program of `compile` for every length, mapped, differentiated, tuned and
// exported.
#include <filesystem>

#include "runtime/trace.h"
#include "support.h"
#include "weft/compile.h"
#include "weft/export.h"
#include "weft/kernel_function.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int64_t bound = 70, columns = 12;

array normal(const Shape& shape, uint64_t seed) { return random::normal(shape, float32, 0, 1, random::key(seed)); }

/// Softmax down the columns of x [n, columns], one program a column, and the logarithm of each column's sum.
auto column_softmax() {
  return k::kernel("column_softmax",
                   [](k::In<float, 2> x, k::Out<float, 2> y, k::Out<float, 1> log_sum) {
                     const auto column = k::program_id(0);
                     k::Mut most = k::scalar<float>(-INFINITY), sum = k::scalar<float>(0);
                     k::loop(0, x.extent(0), 16, [&](k::Index i) {
                       const auto v = x(k::ds(i, 16), column).load(-INFINITY);
                       const auto larger = k::maximum(most, k::max(v, 0));
                       sum = sum * k::exp(most - larger) + k::sum(k::exp(v - larger), 0);
                       most = larger;
                     });
                     k::loop(0, x.extent(0), 16, [&](k::Index i) {
                       const auto part = k::ds(i, 16);
                       y(part, column) = k::exp(x(part, column).load() - most) / sum;
                     });
                     log_sum(column) = most + k::log(sum);
                   })
      .grid([](auto x, auto, auto) { return k::Grid{x.extent(1)}; })
      .outputs([](const array& x) {
        return std::vector<Shape>{x.shape(), {x.shape()[1]}};
      });
}

/// x [n, columns] times its row's number plus weights [columns]: blocks of 8 rows a program.
auto scaled_rows() {
  return k::kernel("scaled_rows",
                   [](k::In<float, 2> x, k::In<float, 1> w, k::Out<float, 2> y) {
                     const auto rows = k::block(k::program_id(0), 8);
                     const auto number = k::cast<float>(k::program_id(0) * 8 + k::arange(8));
                     const auto v = x(rows, k::all).load();
                     y(rows, k::all) = v * k::col(number) + k::square(v) * k::row(w(k::all).load());
                   })
      .grid([](auto x, auto, auto) { return k::Grid{k::cdiv(x.extent(0), 8)}; });
}

array scaled_rows_of(const array& x, const array& w) {
  const array number = astype(reshape(arange(static_cast<int>(x.shape(0))), {x.shape(0), 1}), float32);
  return x * number + x * x * w;
}

const std::vector<DynamicAxis> rows_of_first{{0, 0, "rows", bound}};

/// Calls a function for several lengths.
template <class F>
void for_lengths(const F& f) {
  for (const int n : {1, 7, 8, 16, 33, 69, static_cast<int>(bound)}) {
    CAPTURE(n);
    f(n);
  }
}

/// Returns how many programs a call builds.
template <class F>
int64_t built_by(const F& f) {
  const int64_t before = runtime::counters().programs_built;
  f();
  return runtime::counters().programs_built - before;
}

}  // namespace

TEST_CASE("one program runs a kernel for every length of an axis") {
  const auto softmax_of = column_softmax();
  const ArrayFunction f = [&](const Arrays& a) {
    auto [y, log_sum] = softmax_of(a[0] * 2.0f);
    return Arrays{y + 1.0f, log_sum};
  };
  const ArrayFunction one = compile(f, {.dynamic = rows_of_first});
  eval(one({normal({bound, columns}, 1)}));
  for_lengths([&](int n) {
    const array x = normal({n, columns}, static_cast<uint64_t>(n));
    eval(x);
    Arrays got;
    CHECK(built_by([&] { eval(got = one({x})); }) == 0);
    check_close(got[0], softmax(x * 2.0f, 0) + 1.0f, 1e-5);
    check_close(got[1], logsumexp(x * 2.0f, 0), 1e-5);
    // The same kernel with a fixed length.
    const Arrays fixed = f({x});
    check_close(got[0], fixed[0], 0);
    check_close(got[1], fixed[1], 0);
  });
}

TEST_CASE("a kernel's grid follows the length") {
  const auto scaled = scaled_rows();
  const ArrayFunction f = [&](const Arrays& a) { return Arrays{scaled(a[0], a[1])}; };
  const ArrayFunction one = compile(f, {.dynamic = rows_of_first});
  const array w = normal({columns}, 5);
  eval(one({normal({bound, columns}, 1), w}));
  for_lengths([&](int n) {
    const array x = normal({n, columns}, static_cast<uint64_t>(n));
    eval(x, w);
    Arrays got;
    CHECK(built_by([&] { eval(got = one({x, w})); }) == 0);
    check_close(got[0], scaled_rows_of(x, w), 1e-5);
    CHECK(got[0].shape() == x.shape());
  });
}

TEST_CASE("vmap runs a kernel of a dynamic axis over other axes") {
  const auto scaled = scaled_rows();
  const ArrayFunction each = [&](const Arrays& a) { return Arrays{scaled(a[0], a[1])}; };
  const ArrayFunction one = compile([&](const Arrays& a) { return vmap(each, {1, 0})(a); }, {.dynamic = rows_of_first});
  const array w = normal({3, columns}, 5);
  for (const int n : {70, 1, 9, 33}) {
    CAPTURE(n);
    const array x = normal({n, 3, columns}, static_cast<uint64_t>(n));
    const array got = one({x, w})[0];
    for (int k = 0; k < 3; ++k)
      check_close(take(got, array(k), 0), scaled_rows_of(take(x, array(k), 1), take(w, array(k), 0)), 1e-5);
  }
}

TEST_CASE("kernels of a dynamic axis are differentiated in both modes") {
  const auto scaled = scaled_rows();
  const array w = normal({columns}, 5);
  const auto loss_of = [](const auto& f) {
    return ArrayFunction([f](const Arrays& a) { return Arrays{sum(f(a[0], a[1]) * a[0])}; });
  };
  const auto derivatives = [](const ArrayFunction& loss) {
    return ArrayFunction([loss](const Arrays& a) {
      Arrays out = vjp(loss, a, {array(1.0f)}).second;
      for (const array& t : jvp(loss, a, {a[0] * 0.5f, a[1]}).second) out.push_back(t);
      return out;
    });
  };
  const ArrayFunction one = compile(derivatives(loss_of(scaled)), {.dynamic = rows_of_first}),
                      wanted = derivatives(loss_of(scaled_rows_of));
  for (const int n : {70, 1, 8, 33}) {
    CAPTURE(n);
    const array x = normal({n, columns}, static_cast<uint64_t>(n));
    const Arrays got = one({x, w}), expected = wanted({x, w});
    REQUIRE(got.size() == expected.size());
    for (size_t k = 0; k < got.size(); ++k) check_close(got[k], expected[k], 2e-4 * (1 + n));
  }
}

TEST_CASE("a sum over a dynamic axis is differentiated") {
  // What a loop carries is kept for the most iterations that there may be.
  const auto squares =
      k::kernel("squares",
                [](k::In<float, 1> x, k::Out<float, 0> y) {
                  k::Mut sum = k::scalar<float>(1);
                  k::loop(0, x.extent(0), 1, [&](k::Index i) { sum = sum + sum * k::square(x(i).load()) * 0.01f; });
                  y() = sum;
                })
          .grid({1})
          .outputs([](const array&) { return Shape{}; });
  const ArrayFunction f = [&](const Arrays&a) { return Arrays{squares(a[0])}; },
                      plain = [](const Arrays&a) { return Arrays{prod(1.0f + square(a[0]) * 0.01f)}; };
  const auto slope = [](const ArrayFunction& g) {
    return ArrayFunction([g](const Arrays& a) { return vjp(g, a, {array(1.0f)}).second; });
  };
  const ArrayFunction one = compile(slope(f), {.dynamic = rows_of_first});
  for (const int n : {70, 1, 20}) {
    const array x = normal({n}, static_cast<uint64_t>(n));
    check_close(one({x})[0], slope(plain)({x})[0], 1e-5);
  }
}

TEST_CASE("a program with kernels of dynamic axes is exported and imported") {
  const auto softmax_of = column_softmax();
  const auto scaled = scaled_rows();
  const array w = normal({columns}, 5);
  const ArrayFunction f = [&](const Arrays& a) {
    auto [y, log_sum] = softmax_of(scaled(a[0], w));
    return Arrays{y, log_sum};
  };
  const std::string file = (std::filesystem::temp_directory_path() / "weft_kernel_extents.weft").string();
  ExportOptions options;
  options.dynamic = rows_of_first;
  export_function(file, f, {normal({5, columns}, 1)}, options);
  const auto imported = import_function(file);
  for (const int n : {70, 1, 9}) {
    const array x = normal({n, columns}, static_cast<uint64_t>(n));
    const Arrays got = imported({x}), wanted = f({x});
    check_close(got[0], wanted[0], 0);
    check_close(got[1], wanted[1], 0);
  }
  std::filesystem::remove(file);
}

TEST_CASE("configurations of a kernel of a dynamic axis are chosen once") {
  const auto doubled = k::kernel("doubled", [](k::In<float, 1> x, k::Out<float, 1> y, int block) {
                         const auto part = k::block(k::program_id(0), block);
                         y(part) = x(part) * 2.0f;
                       }).grid([](auto x, auto, int block) {
                           return k::Grid{k::cdiv(x.extent(0), block)};
                         }).configs({{16}, {64}});
  const ArrayFunction one =
      compile([&](const Arrays& a) { return Arrays{doubled(a[0])}; }, {.dynamic = {{0, 0, "n", 1000}}});
  for (const int n : {1000, 1, 17, 900}) check_close(one({normal({n}, 3)})[0], normal({n}, 3) * 2.0f, 0);
}

TEST_CASE("what a kernel cannot do with a dynamic axis is refused by its name") {
  const auto dynamic = [](const auto& f) {
    return message([&] {
      compile([&](const Arrays& a) { return Arrays{f(a[0])}; }, {.dynamic = rows_of_first})({ones({4, columns})});
    });
  };
  const auto fixed = k::kernel("fixed", [](k::In<float, 2> x, k::Out<float, 2> y) {
                       y(0, 0) = x(0, 0);
                     }).grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
  CHECK(contains(dynamic(fixed), "[kernel fixed] "));
  CHECK(contains(dynamic(fixed), "extent(0) is its value"));
  const auto other = k::kernel("other", [](k::In<float, 2> x, k::Out<float, 1> y) { y(0) = x(0, 0); })
                         .grid({1})
                         .outputs([](const array&) { return Shape{symbol("others", 9)}; });
  CHECK(contains(dynamic(other), "others, which no argument has"));
}
