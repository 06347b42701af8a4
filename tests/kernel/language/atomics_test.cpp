// Atomic updates: what they order among programs, in the interpreter; locks and the last program.
#include <doctest/doctest.h>

#include <numeric>

#include "kernel/language/errors.h"
#include "kernel/language/run.h"

namespace {

using namespace test_kernels;
using k::AnyRef;
using k::MemoryOrder;

k::Param held(std::vector<int64_t> dims, Dtype t = int32) { return {k::Use::in_out, t, std::move(dims)}; }

/// Each program writes an element; the last one adds all of them up.
k::Program sum_by_the_last(MemoryOrder order) {
  return k::trace("last", {held({8}), held({1}), held({1})}, {8}, [order](std::span<const AnyRef> r) {
    const k::InOut<int32_t, 1> parts(r[0]), counter(r[1]), sum(r[2]);
    const k::Index own = k::program_id(0);
    parts(own) = k::cast<int32_t>(own) * 3 + 1;
    const auto before = k::atomic({"add", order}, counter, 1, k::Index(0));
    k::when(before == 7, [&] { sum(0) = k::sum(parts(k::all), 0); });
  });
}

TEST_CASE("the last program sees what all have written before it") {
  std::vector<int32_t> parts(8), counter(1), sum(1);
  run(sum_by_the_last(MemoryOrder::acq_rel), parts, counter, sum);
  CHECK(sum[0] == 3 * 28 + 8);
  const auto program = k::trace("last_of", {held({8}), held({1}), held({1})}, {2, 4}, [](std::span<const AnyRef> r) {
    const k::InOut<int32_t, 1> elements(r[0]), count(r[1]), total(r[2]);
    const auto own = k::program_id(0) * 4 + k::program_id(1);
    elements(own) = k::cast<int32_t>(own);
    k::when(k::last_program(count, k::Index(0)), [&] { total(0) = k::sum(elements(k::all), 0); });
  });
  counter[0] = sum[0] = 0;
  run(program, parts, counter, sum);
  CHECK(sum[0] == 28);
  CHECK(counter[0] == 8);
}

TEST_CASE("a counter that orders nothing, or too little, is no reason to read what others write") {
  for (const MemoryOrder order : {MemoryOrder::relaxed, MemoryOrder::acquire, MemoryOrder::release}) {
    std::vector<int32_t> parts(8), counter(1), sum(1);
    void* const pointers[] = {parts.data(), counter.data(), sum.data()};
    CHECK_THROWS_WITH_AS(sum_by_the_last(order).interpret(pointers),
                         doctest::Contains("race: reads element 0, which another program wrote"), std::runtime_error);
  }
}

TEST_CASE("what is written after a release is not seen by it") {
  const auto program = k::trace("late", {held({2}), held({2}), held({1})}, {2}, [](std::span<const AnyRef> r) {
    const k::InOut<int32_t, 1> data(r[0]), flag(r[1]), seen(r[2]);
    const k::Index own = k::program_id(0);
    k::when(own == 0, [&] {
      data(0) = 5;
      k::atomic({"exchange", MemoryOrder::release}, flag, 1, k::Index(0));
      data(1) = 6;
    });
    k::when(own == 1, [&] {
      const auto there = k::atomic({"add", MemoryOrder::acquire}, flag, 0, k::Index(0));
      seen(0) = data(0) + there;  // ordered
      seen(0) = data(1) + there;  // not
    });
  });
  std::vector<int32_t> data(2), flag(2), seen(1);
  void* const pointers[] = {data.data(), flag.data(), seen.data()};
  CHECK_THROWS_WITH_AS(program.interpret(pointers),
                       doctest::Contains("race: reads element 1, which another program wrote"), std::runtime_error);
}

TEST_CASE("a lock lets programs change the same elements one after the other") {
  const auto program =
      k::trace("locked", {held({4}), held({1}), held({4}, float32)}, {6}, [](std::span<const AnyRef> r) {
        const k::InOut<int32_t, 1> counts(r[0]), lock(r[1]);
        const k::InOut<float, 1> sums(r[2]);
        const k::Mutex mutex(lock, 0);
        mutex.locked([&] {
          counts(k::all) += 1;
          sums(k::all) += k::cast<float>(k::program_id(0));
        });
      });
  std::vector<int32_t> counts(4), lock(1);
  std::vector<float> sums(4);
  run(program, counts, lock, sums);
  CHECK(counts == std::vector<int32_t>(4, 6));
  CHECK(sums == std::vector<float>(4, 15.f));
  CHECK(lock[0] == 0);
}

TEST_CASE("slices are updated at once, and give what was there") {
  const auto program = k::trace("slices", {held({10}), held({4, 10})}, {4}, [](std::span<const AnyRef> r) {
    const k::InOut<int32_t, 1> bins(r[0]);
    const k::InOut<int32_t, 2> before(r[1]);
    before(k::program_id(0), k::ds(0, 10)) = k::atomic("add", bins(k::ds(2, 10)), k::cast<int32_t>(k::arange(10)));
    k::atomic("max", bins(k::ds(-1, 3)), 100);
  });
  std::vector<int32_t> bins(10), before(40);
  run(program, bins, before);
  for (size_t i = 0; i < 10; ++i) CHECK(bins[i] == (i < 2 ? 100 : 4 * (static_cast<int32_t>(i) - 2)));
  CHECK(before[3 * 10 + 5] == 15);
  CHECK(before[9] == 0);
}

TEST_CASE("atomics show their order") {
  const std::string text = sum_by_the_last(MemoryOrder::acq_rel).to_string();
  CHECK(text.find("acq_rel device") != std::string::npos);
  CHECK(sum_by_the_last(MemoryOrder::relaxed).to_string().find("device") == std::string::npos);
}

TEST_CASE("atomics of slices that are wrong are refused") {
  refused({"atomic: array 0 is an input"}, [](Test& t) { t.at(__LINE__), k::atomic("add", t.x, everything, v({})); });
  refused({"atomic: f32[7] goes into elements of shape [8]"},
          [](Test& t) { t.at(__LINE__), k::atomic("add", k::Out<float, 2>(t.y)(0, k::all), line(7)); });
  refused({"atomic: bit_or is not defined on float32"},
          [](Test& t) { t.at(__LINE__), k::atomic("bit_or", k::Out<float, 2>(t.y)(0, k::all), line(8)); });
}

}  // namespace
