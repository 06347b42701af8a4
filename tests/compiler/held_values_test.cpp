// Intermediate values that arrays refer to are stored by the evaluation that computes them.
#include <doctest/doctest.h>

#include <mutex>

#include "array/realise.h"
#include "compiler/eager/pending.h"
#include "weft/array.h"
#include "weft/evaluation.h"
#include "weft/linalg.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

/// Switches it on for a test.
struct Keeping {
  Keeping() { set_keep_referenced(true); }
  ~Keeping() { set_keep_referenced(false); }
};

bool is_stored(const array& a) { return detail::has_data(a.value()); }

/// Returns how many values an evaluation of `a` would store.
size_t stored_by(const array& a) {
  std::shared_lock lock(graph::structure());
  return compiler::collect(std::span(&a.value(), 1), target::cpu(), compiler::Unbuilt::leave).nodes.size();
}

array matrix(int64_t n) { return reshape(sin(arange(static_cast<double>(n * n))), {n, n}); }

}  // namespace

TEST_CASE("an intermediate value that an array refers to is stored") {
  const Keeping keeping;
  const array x = matrix(8);
  const array product = matmul(x, x), total = sum(exp(product));
  eval(total);
  CHECK(is_stored(product));
  CHECK(allclose(product, matmul(x, x)).item<bool>());
}

TEST_CASE("intermediate values to which only the graph refers are not stored, nor are those that cost little") {
  const Keeping keeping;
  const array x = matrix(8);
  eval(x);
  array product = matmul(x, x);
  const array twice = x * 2.0f;
  const array total = sum(exp(matmul(twice, x)) + product);
  CHECK(stored_by(total) == 2);  // the product as well
  product = array(0.0f);
  CHECK(stored_by(total) == 1);
  eval(total);
  CHECK_FALSE(is_stored(twice));  // reading it would cost what computing it does
}

TEST_CASE("what another pending value reads is stored, so that its evaluation does not compute it again") {
  const Keeping keeping;
  const array x = matrix(8);
  eval(x);
  const auto [total, other] = [&] {
    const array hidden = matmul(x, x);
    return std::pair(sum(hidden), hidden + 1.0f);
  }();
  CHECK(stored_by(total) == 2);
  eval(total);
  const graph::Value hidden = other.value().node->inputs()[0];
  CHECK(detail::has_data(hidden));
}

TEST_CASE("a sequence that grows by a step costs each evaluation that step alone") {
  const Keeping keeping;
  array state = matrix(4);
  eval(state);
  for (int step = 0; step < 20; ++step) {
    state = concatenate({state, matmul(slice(state, {0, 0}, {1, 4}), matrix(4))}, 0);
    eval(sum(state));
    REQUIRE(is_stored(state));
  }
  CHECK(state.shape(0) == 24);
}

TEST_CASE("reading a value inside of grad leaves the graph as it is") {
  const Keeping keeping;
  const array x = matrix(4);
  eval(x);
  const auto loss = [](const array& v) {
    const array product = matmul(v, v), squares = product * product;
    CHECK(sum(squares).item<float>() > 0);
    CHECK_FALSE(is_stored(product));
    return sum(squares);
  };
  const array expected = grad([](const array& v) { return sum(square(matmul(v, v))); })(x);
  CHECK(allclose(grad(loss)(x), expected).item<bool>());
}

TEST_CASE("views of a value that is stored are views of its memory") {
  const Keeping keeping;
  const array x = matrix(6), product = matmul(x, x), row = slice(product, {1, 0}, {2, 6});
  eval(sum(exp(product)));
  REQUIRE(is_stored(product));
  CHECK(array_equal(row, slice(matmul(x, x), {1, 0}, {2, 6})).item<bool>());
}

TEST_CASE("of an operation with several results all are stored") {
  const Keeping keeping;
  const array x = matrix(6);
  eval(x);
  const auto [q, r] = linalg::qr(x);
  const array total = sum(q);
  CHECK(stored_by(total) == 2);
  eval(total);
  CHECK(allclose(matmul(q, r), x, 1e-4, 1e-4).item<bool>());
}

TEST_CASE("where it is not switched on, an evaluation stores what it is asked for") {
  CHECK_FALSE(keeps_referenced());
  const array x = matrix(8);
  eval(x);
  const array product = matmul(x, x), total = sum(exp(product));
  CHECK(stored_by(total) == 1);
  eval(total);
  CHECK_FALSE(is_stored(product));
}
