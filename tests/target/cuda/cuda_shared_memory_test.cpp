// What shared memory launches ask for.
#include <doctest/doctest.h>

#include "kernel/tile.h"
#include "target/cuda/codegen/executable.h"
#include "target/cuda/codegen/render.h"

using namespace weft;
using namespace weft::target;
using namespace weft::kernel;

namespace {

/// A product of 64 × 64 × 64 by one program.
Kernel product(Dtype operands, DotPrecision precision) {
  Builder b("product");
  const Ref x = b.param("x", operands, false), y = b.param("y", operands, false), z = b.param("z", float32, true);
  const Value zero = b.index(0);
  const std::vector<Value> sum = b.loop(
      zero, b.index(64), b.index(16), {b.constant(float32, Number::of_real(0), {64, 64})},
      [&](Value k, const std::vector<Value>& carried) {
        const Value left = b.load(x, k, {64, 16}, {64, 1}), right = b.load(y, b.mul(k, b.index(64)), {16, 64}, {64, 1});
        return std::vector<Value>{b.dot(left, right, carried[0], precision)};
      });
  b.store(z, sum[0], zero, {64, 1});
  Kernel out = b.finish();
  out.any_size = true;
  return out;
}

bool spreads(const Kernel& kernel) {
  return cuda::render(expand(kernel, cuda::operators), "k", {}, {.warpgroups = true, .clusters = true}).spreads;
}

}  // namespace

TEST_CASE("products by fused multiply-adds have an SM each, where there is one for each") {
  CHECK(spreads(product(float32, DotPrecision::exact)));
  CHECK(!spreads(product(float32, DotPrecision::tf32)));
  CHECK(!spreads(product(bfloat16, DotPrecision::exact)));
  const cuda::Entry several{.shared_bytes = 95744, .alone_bytes = 116736}, other{.shared_bytes = 95744},
      large{.shared_bytes = 200000, .alone_bytes = 116736};
  CHECK(cuda::shared_bytes_of(several, 128, true, 132) == 116736);
  CHECK(cuda::shared_bytes_of(several, 133, true, 132) == 95744);
  CHECK(cuda::shared_bytes_of(several, 128, false, 132) == 95744);
  CHECK(cuda::shared_bytes_of(other, 128, true, 132) == 95744);
  CHECK(cuda::shared_bytes_of(large, 128, true, 132) == 200000);
}
