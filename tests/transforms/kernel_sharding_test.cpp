// How devices may divide the arrays of kernels: by what programs load and store, or by the user's rule.
#include <functional>

#include "array/routines/kernel_stages.h"
#include "compiler/program.h"
#include "graph/calls/kernel_call.h"
#include "support.h"
#include "weft/compile.h"
#include "weft/kernel_function.h"
#include "weft/kernel_library.h"

using namespace weft;
using namespace weft::testing;

namespace {

array normal(const Shape& shape, uint64_t seed) { return random::normal(shape, float32, 0, 1, random::key(seed)); }

std::string text_of(const k::Program& program) { return graph::factors_text(*graph_program(program)); }

/// y = f(x) by rows of any width.
template <class F>
auto rows(F f) {
  return k::kernel("rows",
                   [f](k::In<float, 2> x, k::Out<float, 2> y) {
                     const auto row = k::program_id(0);
                     f(x, y, row);
                   })
      .grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
}

auto softmax() {
  return rows([](const auto& x, const auto& y, const auto& row) {
    const auto v = x(row, k::all).load();
    const auto e = k::exp(v - k::max(v, 0));
    y(row, k::all) = e / k::sum(e, 0);
  });
}

/// A product by tiles of 16 rows and 8 columns, at edges too.
auto product() {
  return k::kernel("product",
                   [](k::In<float, 2> a, k::In<float, 2> b, k::In<float, 1> bias, k::Out<float, 2> c) {
                     const auto rows = k::ds(k::program_id(0) * 16, 16), columns = k::ds(k::program_id(1) * 8, 8);
                     k::Mut sum = k::zeros<float>({16, 8});
                     k::loop(0, a.dim(1), 8, [&](k::Index i) {
                       sum = k::dot(a(rows, k::ds(i, 8)).load(), b(k::ds(i, 8), columns).load(), sum.get());
                     });
                     c(rows, columns) = sum + k::row(bias(columns).load());
                   })
      .grid([](auto a, auto b, auto, auto) {
        return k::Grid{k::cdiv(a.dim(0), 16), k::cdiv(b.dim(1), 8)};
      })
      .outputs([](const array& a, const array& b, const array&) {
        return Shape{a.shape(0), b.shape(1)};
      });
}

/// Checks on the CPU that elements of a result depend on their own block of each argument alone: others change.
void check_blocks(const std::function<array(const Arrays&)>& f, const k::Program& program, const Arrays& arguments) {
  const auto node = graph_program(program);
  const auto factors = graph::factors_of(*node);
  const std::vector<int>& of_result = factors.back();
  const array before = f(arguments);
  for (size_t axis = 0; axis < of_result.size(); ++axis) {
    if (of_result[axis] < 0) continue;
    // All of the arguments behind half of the axis that the factor has.
    Arrays changed = arguments;
    int64_t kept = before.shape(static_cast<int>(axis));
    for (size_t n = 0; n < arguments.size(); ++n)
      for (size_t k = 0; k < factors[n].size(); ++k) {
        if (factors[n][k] != of_result[axis]) continue;
        const int64_t extent = arguments[n].shape(static_cast<int>(k)), half = extent / 2;
        kept = half * before.shape(static_cast<int>(axis)) / extent;
        const array far = arange(extent, int32) >= static_cast<int>(half);
        Shape shape(arguments[n].ndim(), 1);
        shape[k] = extent;
        changed[n] = where(reshape(far, shape), arguments[n] + 1.0f, arguments[n]);
      }
    const array after = f(changed);
    CHECK(array_equal(split(before, Shape{kept}, static_cast<int>(axis))[0],
                      split(after, Shape{kept}, static_cast<int>(axis))[0])
              .item<bool>());
    CHECK(!array_equal(before, after).item<bool>());
  }
}

}  // namespace

TEST_CASE("sharding: factors follow from what programs load and store") {
  const array wide = normal({12, 20}, 1), right = normal({20, 24}, 2), one = normal({24}, 3);
  CHECK(text_of(softmax().program(wide)) == "[a -] -> [a -]");
  CHECK(text_of(product().program(normal({64, 20}, 1), right, one)) == "[b -], [- a], [a] -> [b a]");
  CHECK(text_of(product().program(normal({70, 20}, 1), normal({20, 27}, 1), normal({27}, 1))) ==
        "[b -], [- a], [a] -> [b a]");

  const auto transposed = k::kernel("transposed",
                                    [](k::In<float, 2> x, k::Out<float, 2> y) {
                                      const auto rows = k::ds(k::program_id(0) * 4, 4),
                                                 columns = k::ds(k::program_id(1) * 5, 5);
                                      y(columns, rows) = k::trans(x(rows, columns).load());
                                    })
                              .grid(k::Grid{3, 4})
                              .outputs([](const array& x) {
                                return Shape{x.shape(1), x.shape(0)};
                              });
  CHECK(text_of(transposed.program(wide)) == "[b a] -> [a b]");

  // Each program reads its neighbours' elements, too.
  const auto stencil = k::kernel("stencil", [](k::In<float, 1> x, k::Out<float, 1> y) {
                         const auto first = k::program_id(0) * 8;
                         y(k::ds(first, 8)) = x(k::ds(first - 1, 8)).load() + x(k::ds(first + 1, 8)).load();
                       }).grid(k::Grid{3});
  CHECK(text_of(stencil.program(one)) == "[-] -> [a]");

  // Rows that a number names: of the table any.
  const auto taken = k::kernel("taken", [](k::In<float, 2> table, k::In<int32_t, 1> ids, k::Out<float, 2> y) {
                       const auto i = k::program_id(0);
                       y(i, k::all) = table(k::cast<k::i64>(ids(i).load()), k::all).load();
                     }).grid([](auto, auto ids, auto) { return k::Grid{ids.dim(0)}; });
  const auto of_ids = taken.outputs([](const array& t, const array& ids) { return Shape{ids.shape(0), t.shape(1)}; });
  CHECK(text_of(of_ids.program(wide, zeros({6}, int32))) == "[- -], [a] -> [a -]");

  // A sum by programs after one another, and a histogram: whole.
  const auto sums = k::kernel("sums", [](k::In<float, 1> x, k::Out<float, 1> y) {
                      k::reduce_in_order(y, k::sum(x(k::ds(k::program_id(0) * 8, 8)).load(), 0), 0,
                                         [](const auto& a, const auto& b) { return a + b; });
                    }).grid(k::Grid{k::GridAxis(3, k::Order::sequential)});
  CHECK(text_of(sums.outputs([](const array&) { return Shape{1}; }).program(one)) == "[-] -> [-]");
  const auto counts = k::kernel("counts", [](k::In<int32_t, 1> x, k::InOut<int32_t, 1> y) {
                        const auto v = x(k::ds(k::program_id(0) * 8, 8)).load();
                        k::atomic("add", y, k::full<int32_t>({8}, 1), k::cast<k::i64>(v));
                      }).grid(k::Grid{2});
  CHECK(text_of(counts.program(zeros({16}, int32), zeros({4}, int32))) == "[-], [-] -> [-]");
}

TEST_CASE("sharding: a block of a result depends on the same block of arguments alone") {
  const array a = normal({64, 20}, 1), b = normal({20, 32}, 2), bias = normal({32}, 3);
  check_blocks([](const Arrays& x) { return product()(x[0], x[1], x[2]); }, product().program(a, b, bias),
               {a, b, bias});
  check_blocks([](const Arrays& x) { return softmax()(x[0]); }, softmax().program(a), {a});
}

TEST_CASE("sharding: a batch has a factor of its own, and a rule of the user's counts more") {
  const array x = normal({3, 12, 20}, 1);
  const auto text = [&](const auto& f, const array& in) {
    std::string out;
    const compiler::BuildRecord record(true);
    eval(compile([&](const Arrays& v) { return Arrays{vmap([&](const array& row) { return f(row); })(v[0])}; })({in}));
    for (const auto& program : record.programs()) out += program->print("schedules");
    return out;
  };
  CHECK(text(softmax(), x).find("sharding [b a -] -> [b a -]") != std::string::npos);
  CHECK(text(softmax().sharding("r c -> r c"), x).find("sharding [c a b] -> [c a b]") != std::string::npos);
  CHECK(text(softmax().sharding("- - -> - -"), x).find("sharding [a - -] -> [a - -]") != std::string::npos);
}

TEST_CASE("sharding: rules that fit no kernel are refused") {
  const auto refused = [](std::string_view rule, const char* why) {
    CHECK_THROWS_WITH_AS(product().sharding(rule), doctest::Contains(why), std::invalid_argument);
  };
  refused("m k, k n, n", "[kernel product] sharding: \"m k, k n, n\" names factors of arguments, \"->\", and");
  refused("m k, k n -> m n", "has 2 arguments and 1 results, and the kernel 3 and 1");
  refused("m, k n, n -> m n", "names 1 axes in \"m\", and the array has 2");
  refused("m k, k n, n -> m m", "has m twice in \" m m\"");
  const auto updates = k::kernel("updates", [](k::InOut<float, 1> x) {
                         const auto i = k::program_id(0);
                         x(i) = x(i).load() + 1.0f;
                       }).grid(k::Grid{4});
  CHECK_THROWS_WITH_AS(updates.sharding("a -> b"), doctest::Contains("that is updated in two ways"),
                       std::invalid_argument);
  CHECK(updates.sharding("a -> a").name() == "updates");
}
