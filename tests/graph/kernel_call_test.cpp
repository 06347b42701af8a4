// Kernels as nodes: types, the reference evaluation, batches against a loop, derivatives, digests, errors.
#include <doctest/doctest.h>

#include "checks.h"
#include "graph/derive/derive.h"
#include "graph/rows.h"
#include "kernels.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::graph::testing;

namespace {

HostTensor filled(const Type& type, uint64_t seed = 1) {
  Random r(seed);
  return random_tensor(r, type);
}

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// Element k of a tensor along an axis.
HostTensor element(const HostTensor& t, int axis, int64_t k) {
  const Value v = parameter(t.type);
  return evaluate_reference({{v}, {squeeze(slice_axis(v, axis, k, 1), {axis})}}, std::span(&t, 1))[0];
}

/// Maps a kernel over axes (-1: none) of its inputs; compares with a run for each element.
void check_batch(const ProgramRef& program, const std::vector<int>& axes, int64_t extent) {
  Graph one, all;
  std::vector<HostTensor> data;
  std::vector<Batched> to;
  size_t next = 0;
  for (const KernelArray& array : program->arrays) {
    if (array.use == KernelUse::out) continue;
    const int axis = axes[next++];
    Type type = array.type;
    one.inputs.push_back(parameter(type));
    if (axis >= 0) type.shape.insert(type.shape.begin() + axis, extent);
    all.inputs.push_back(parameter(type));
    data.push_back(filled(type, 7 + next));
    to.push_back({all.inputs.back(), axis});
  }
  one.outputs = kernel_call(program, one.inputs);
  for (const Batched& b : batch(one.outputs, one.inputs, to)) all.outputs.push_back(batched(b.value, b.axis, extent));
  const std::vector<HostTensor> got = evaluate_reference(all, data);
  for (int64_t k = 0; k < extent; ++k) {
    std::vector<HostTensor> of_one;
    for (size_t i = 0; i < data.size(); ++i) of_one.push_back(axes[i] >= 0 ? element(data[i], axes[i], k) : data[i]);
    const std::vector<HostTensor> expected = evaluate_reference(one, of_one);
    for (size_t i = 0; i < expected.size(); ++i) CHECK(element(got[i], 0, k).data == expected[i].data);
  }
}

}  // namespace

TEST_CASE("a kernel is a node of its arrays, in the order of its parameters") {
  const Type matrix{{3, 5}, float32};
  const Value x = parameter(matrix), b = parameter({{}, float32});
  const Values y = kernel_call(affine_program(matrix.shape, float32, 3), {x, b});
  REQUIRE(y.size() == 1);
  CHECK(y[0].type() == matrix);
  CHECK(name(*y[0].node) == "affine");
  const HostTensor in = filled(matrix), shift = filled({{}, float32}, 2);
  const HostTensor out = evaluate_reference({{x, b}, y}, std::vector{in, shift})[0];
  for (size_t k = 0; k < 15; ++k)
    CHECK(out.data[k].f == static_cast<float>(static_cast<float>(in.data[k].f * 3) + shift.data[0].f));
  verify({{x, b}, y});
}

TEST_CASE("an in-out array is an input that stays, and a result") {
  const Type list{{21}, int32};
  const Value state = parameter(list), x = parameter(list);
  const Values y = kernel_call(accumulate_program(list.shape, int32), {state, x});
  REQUIRE(y.size() == 2);
  const HostTensor before = filled(list), by = filled(list, 2);
  const auto out = evaluate_reference({{state, x}, {y[0], y[1], state}}, std::vector{before, by});
  for (size_t k = 0; k < 21; ++k) CHECK(out[0].data[k].i == before.data[k].i + by.data[k].i);
  CHECK(out[1].data == before.data);
  CHECK(out[2].data == before.data);
}

TEST_CASE("a batch is one launch of more programs") {
  check_batch(affine_program({3, 5}, float32, 2), {0, 0}, 4);
  check_batch(affine_program({3, 5}, float32, 2), {2, -1}, 4);
  check_batch(affine_program({3, 5}, float32, 2), {-1, 0}, 3);
  check_batch(affine_program({5}, float32, 2), {1, 0}, 3);  // one program an element
  check_batch(accumulate_program({20}, int32), {0, 1}, 3);
  check_batch(accumulate_program({20}, int32), {-1, 1}, 3);
  check_batch(accumulate_program({20}, int32), {1, -1}, 1);
  check_batch(doubled_rows_program(3, 5, 4), {0, -1}, 4);
  check_batch(doubled_rows_program(3, 5, 4), {-1, 0}, 2);
  check_batch(doubled_rows_program(3, 5, 4), {1, 1}, 2);
  const Value x = parameter({{4, 2, 3}, float32}), b = parameter({{}, float32});
  const Value inner = parameter({{3}, float32}), middle = parameter({{2, 3}, float32});
  const Values y = kernel_call(affine_program({3}, float32, 2), {inner, b});
  const Batched once = batch(y, std::vector{inner}, std::vector<Batched>{{middle, 0}})[0];
  const Batched twice = batch(std::vector{once.value}, std::vector{middle}, std::vector<Batched>{{x, 0}})[0];
  CHECK(twice.value.node->op() == Op::call);
  CHECK(twice.value.type() == x.type());
  CHECK(twice.value.node->attrs().kernel->grid == 8);
  const HostTensor in = filled(x.type()), shift = filled({{}, float32}, 2);
  const HostTensor out = evaluate_reference({{x, b}, {twice.value}}, std::vector{in, shift})[0];
  for (size_t k = 0; k < in.data.size(); ++k)
    CHECK(out.data[k].f == static_cast<float>(static_cast<float>(in.data[k].f * 2) + shift.data[0].f));
}

TEST_CASE("without programs nothing is launched") {
  const Type none{{0, 4}, float32};
  const Value x = parameter(none), b = parameter({{}, float32});
  const Values y = kernel_call(affine_program(none.shape, float32, 3), {x, b});
  CHECK(y[0].type() == none);
  CHECK(y[0].node->op() != Op::call);
  const Value state = parameter({{0}, int32});
  CHECK(kernel_call(accumulate_program({0}, int32), {state, state})[0] == state);
}

TEST_CASE("equal kernels have equal digests, whatever their names") {
  const auto of = [](const ProgramRef& program, int inputs = 2) {
    Graph g;
    for (const KernelArray& a : program->arrays)
      if (a.use != KernelUse::out && inputs-- > 0) g.inputs.push_back(parameter(a.type));
    g.outputs = kernel_call(program, g.inputs);
    return digest(g);
  };
  const Digest d = of(affine_program({16}, float32, 2));
  CHECK(d == of(affine_program({16}, float32, 2, "other")));
  CHECK(!(d == of(affine_program({16}, float32, 3))));
  CHECK(!(d == of(affine_program({4, 4}, float32, 2))));
  CHECK(!(d == of(affine_program({17}, float32, 2))));
}

TEST_CASE("a kernel's derivatives are kernels that follow from its body") {
  const Value x = parameter({{40}, float32}), b = parameter({{}, float32}), t = parameter({{40}, float32});
  const ProgramRef program = affine_program({40}, float32, 2);
  const Value y = kernel_call(program, {x, b})[0];
  const Values g = pull_back(std::vector{y}, Values{t}, Values{x, b}),
               tangent = push_forward(std::vector{y}, Values{x}, Values{t});
  const std::vector<HostTensor> data{filled(x.type(), 1), filled(b.type(), 2), filled(t.type(), 3)};
  const std::vector<HostTensor> got = evaluate_reference({{x, b, t}, {g[0], g[1], tangent[0]}}, data);
  double sum = 0;
  for (size_t k = 0; k < 40; ++k) {
    CHECK(got[0].data[k].real() == 2 * data[2].data[k].real());
    CHECK(got[2].data[k].real() == 2 * data[2].data[k].real());
    sum += data[2].data[k].real();
  }
  CHECK(got[1].data[0].real() == doctest::Approx(sum).epsilon(1e-5));
  const Values one{full_like(y, 1)}, target{x};
  // Integers end derivatives.
  const Value i = cast(x, int32), z = cast(kernel_call(accumulate_program({40}, int32), {i, i})[0], float32);
  CHECK(!pull_back(std::vector{z}, one, target)[0]);
}

TEST_CASE("what is wrong with a kernel or its arguments is said by its name") {
  const ProgramRef program = affine_program({4}, float32, 2);
  const Value x = parameter({{4}, float32}), b = parameter({{}, float32});
  CHECK(message([&] { kernel_call(program, {x}); }) == "[kernel affine] takes 2 arrays, got 1");
  CHECK(message([&] { kernel_call(program, {b, b}); }) == "[kernel affine] argument 0 must be f32(4), got f32()");
  CHECK(message([&] {
          kernel_call(program, {cast(x, int32), b});
        }) == "[kernel affine] argument 0 must be f32(4), got i32(4)");
  CHECK(message([&] { call("kernel", {x}); }).find("[kernel] the node has no program") == 0);

  kernel::Builder empty("empty");
  empty.param("x", float32, false);
  CHECK(message([&, k = empty.finish()] {
          kernel_program({k, {{KernelUse::in, {{4}, float32}}}, 1});
        }) == "[kernel empty] has no result: it takes at least one array that it writes");
  kernel::Builder silent("silent");
  silent.param("y", float32, true);
  CHECK(message([&, k = silent.finish()] {
          kernel_program({k, {{KernelUse::out, {{4}, float32}}}, 1});
        }) == "[kernel silent] array 0 (y), f32(4), is a result, but nothing is ever stored there");
}

TEST_CASE("work is counted from the instructions") {
  const KernelWork work = affine_program({64}, float32, 2)->work;
  CHECK(work.operations >= 2 * 64);  // index arithmetic of the programs besides
  CHECK(work.operations <= 2 * 64 + 8 * 8);
  CHECK(work.products == 0);
  kernel::Builder b("product");
  const kernel::Ref y = b.param("y", float32, true);
  const kernel::Value zero = b.real(float32, 0, {4, 4});
  const auto sum = b.loop(b.index(0), b.index(10), b.index(2), {zero}, [&](kernel::Value, const auto& carried) {
    return std::vector{b.dot(b.real(float32, 1, {4, 2}), b.real(float32, 1, {2, 4}), carried[0])};
  });
  b.store(y, sum[0], b.index(0), {4, 1});
  CHECK(work_of(b.finish(), 3).products == 3 * 5 * 2 * 4 * 4 * 2);
}
