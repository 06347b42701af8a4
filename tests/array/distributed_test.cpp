// Collective operations in a group of one.
#include <doctest/doctest.h>

#include "weft/distributed.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

TEST_CASE("a process alone is a group of one, on which collective operations are the identity") {
  const distributed::Group group = distributed::init();
  CHECK(group.rank() == 0);
  CHECK(group.size() == 1);
  CHECK_FALSE(distributed::is_available());
  CHECK_FALSE(distributed::is_available("nccl"));
  const array x({1.0f, 2.0f, 3.0f});
  using Collective = array (*)(const array&, const std::optional<distributed::Group>&, StreamOrDevice);
  for (const Collective operation : {&distributed::all_sum, &distributed::all_max, &distributed::all_min,
                                     &distributed::all_gather, &distributed::sum_scatter}) {
    CHECK(array_equal(operation(x, group, {}), x).item<bool>());
    CHECK(array_equal(operation(x, std::nullopt, {}), x).item<bool>());
    const auto total = [&](const array& a) { return sum(operation(a, group, {}) * a); };
    CHECK(array_equal(grad(UnaryFunction(total))(x), array({2.0f, 4.0f, 6.0f})).item<bool>());
  }
}

TEST_CASE("a process alone has nobody to exchange arrays with") {
  const array x({1.0f});
  const distributed::Group group = distributed::init();
  CHECK_THROWS_WITH_AS(distributed::send(x, 0), doctest::Contains("[send] process 0"), std::invalid_argument);
  CHECK_THROWS_AS(distributed::recv({2}, float32, 0, group), std::invalid_argument);
  CHECK_THROWS_AS(distributed::recv_like(x, 1, group), std::invalid_argument);
  CHECK_THROWS_AS(group.split(0), std::runtime_error);
  CHECK_THROWS_AS(distributed::init(true), std::runtime_error);
  CHECK_THROWS_AS(distributed::init(true, "ring"), std::runtime_error);
  CHECK_THROWS_AS(distributed::init(false, "carrier pigeon"), std::invalid_argument);
}
