// Elementwise operators in the loads and stores of kernels.
#include "kernel/derive/absorb.h"

#include "derive_run.h"

using namespace weft;
using namespace weft::testing;
using Kind = kernel::ElementwiseOp::Argument::Kind;

namespace {

/// Softmax of rows, whose tiles are wider than the array.
k::Program wide_rows() {
  return k::trace("rows", {{k::Use::in, float64, {3, 5}}, {k::Use::out, float64, {3, 5}}}, {3},
                  [](std::span<const k::AnyRef> r) {
                    const k::In<double, 2> x(r[0]);
                    const k::Out<double, 2> y(r[1]);
                    const auto row = k::program_id(0);
                    const auto v = x(row, k::ds(0, 8)).load(-1e30);
                    const auto e = k::exp(v - k::max(v, 0));
                    y(row, k::ds(0, 8)) = e / k::sum(e, 0);
                  });
}

Doubles interpreted(const kernel::Kernel& k, std::vector<Doubles> arrays, size_t result) {
  std::vector<kernel::HostBuffer> buffers;
  for (Doubles& a : arrays) buffers.push_back({a.data(), static_cast<int64_t>(a.size())});
  kernel::interpret(k, buffers, {}, 3);
  return arrays[result];
}

}  // namespace

TEST_CASE("an operator in a load: what lies outside of the array stays as the load says") {
  const k::Program rows = wide_rows();
  const kernel::Kernel& k = rows.data().kernel;
  REQUIRE(kernel::can_absorb_load(k, 0, {3, 5}, 3));
  const Doubles a = random_doubles(15, 1), b = random_doubles(15, 2);
  Doubles x(15);
  for (size_t i = 0; i < 15; ++i) x[i] = a[i] * b[i];
  kernel::ElementwiseOp op;
  op.scalar_op = kernel::ScalarOp::mul;
  op.dtype = float64;
  op.args = {{Kind::array, float64, 0}, {Kind::array, float64, 1}};
  op.arrays = {float64, float64};
  const kernel::Kernel fused = kernel::with_absorbed_load(k, 0, op);
  CHECK(fused.params.size() == 3);
  CHECK(interpreted(fused, {a, b, Doubles(15)}, 2) == interpreted(k, {x, Doubles(15)}, 1));
}

TEST_CASE("an operator in a store") {
  const k::Program rows = wide_rows();
  const kernel::Kernel& k = rows.data().kernel;
  REQUIRE(kernel::can_absorb_store(k, 1, {3, 5}, 3));
  const Doubles x = random_doubles(15, 1), b = random_doubles(15, 2);
  kernel::ElementwiseOp op;
  op.scalar_op = kernel::ScalarOp::sub;
  op.dtype = float64;
  op.args = {{Kind::array, float64, 0}, {Kind::stored, float64}};
  op.arrays = {float64};
  const Doubles got = interpreted(kernel::with_absorbed_store(k, 1, op), {x, b, Doubles(15)}, 2);
  const Doubles y = interpreted(k, {x, Doubles(15)}, 1);
  for (size_t i = 0; i < 15; ++i) CHECK(got[i] == b[i] - y[i]);
}

TEST_CASE("an element that a program reads twice, or several programs read, is computed outside") {
  const auto reads = [](int64_t step, bool again) {
    return k::trace("reads", {{k::Use::in, float64, {16}}, {k::Use::out, float64, {16}}}, {4},
                    [&](std::span<const k::AnyRef> r) {
                      const k::In<double, 1> x(r[0]);
                      const k::Out<double, 1> y(r[1]);
                      const auto id = k::program_id(0);
                      auto v = x(k::ds(id * step, 4)).load();
                      if (again) v = v + x(k::ds(id * step, 4)).load();
                      y(k::ds(id * 4, 4)) = v;
                    });
  };
  CHECK(kernel::can_absorb_load(reads(4, false).data().kernel, 0, {16}, 4));
  CHECK(!kernel::can_absorb_load(reads(4, true).data().kernel, 0, {16}, 4));
  CHECK(!kernel::can_absorb_load(reads(3, false).data().kernel, 0, {16}, 4));
}
