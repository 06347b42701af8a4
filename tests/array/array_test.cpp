// Handles: construction, looking, printing, devices, and the errors of all of them.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <thread>

#include "device.h"
#include "graph/node.h"
#include "runtime/trace.h"
#include "weft/array.h"
#include "weft/memory.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

template <class T>
std::string printed(const T& a) {
  std::ostringstream os;
  os << a;
  return os.str();
}

template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("scalars have the dtype of their C++ type") {
  CHECK(array(1).dtype() == int32);
  CHECK(array(true).dtype() == bool_);
  CHECK(array(1.0).dtype() == float32);
  CHECK(array(1.0f).dtype() == float32);
  CHECK(array(int64_t{1}).dtype() == int64);
  CHECK(array(uint8_t{1}).dtype() == uint8);
  CHECK(array(2.5, float64).dtype() == float64);
  CHECK(array(bfloat16_t(1.5f)).dtype() == bfloat16);
  CHECK(array(float16_t(1.5f)).item<float>() == 1.5f);
  CHECK(array(300, uint8).item<int>() == 44);
  CHECK(array(-1, uint32).item<int64_t>() == 4294967295);
  CHECK(array(std::numeric_limits<uint64_t>::max()).item<uint64_t>() == std::numeric_limits<uint64_t>::max());
  CHECK(array(std::numeric_limits<uint64_t>::max()).item<double>() == doctest::Approx(0x1p64));
  CHECK(array(0.1, float64).item<double>() == 0.1);
  CHECK(array(0.1).item<double>() == static_cast<double>(0.1f));
  CHECK(array(2.9, int32).item<int>() == 2);
}

TEST_CASE("a scalar is a literal: it needs no data and no program") {
  const array a(2.5f);
  CHECK(a.value().node->op() == graph::Op::constant);
  CHECK(a.value().node->attrs().literal);
  const auto before = runtime::counters().programs_run.load();
  CHECK(a.item<float>() == 2.5f);
  CHECK(a.data<float>()[0] == 2.5f);
  CHECK(runtime::counters().programs_run == before);
}

TEST_CASE("arrays from lists, iterators and memory") {
  const array v = {1.0f, 2.0f, 3.0f};
  CHECK(v.shape() == Shape{3});
  CHECK(v.dtype() == float32);
  const array m({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(m.dtype() == int32);
  CHECK(m.shape(-1) == 3);
  CHECK(m.shape(0) == 2);
  CHECK(m.strides() == Strides{3, 1});
  CHECK(m.size() == 6);
  CHECK(m.nbytes() == 24);
  CHECK(m.itemsize() == 4);
  CHECK(m.ndim() == 2);
  CHECK(m.to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(m.data<int32_t>()[4] == 5);
  const std::vector<double> source{0.5, -1.5};
  CHECK(array(source.begin(), {2, 1}, float16).to_vector<float>() == std::vector<float>{0.5f, -1.5f});
  const std::vector<int64_t> wide{int64_t{1} << 40, -1};
  CHECK(array(wide.begin(), {2}).to_vector<int64_t>() == wide);
  const std::vector<bfloat16_t> halves{bfloat16_t(0.5f), bfloat16_t(3.0f)};
  CHECK(array(halves.begin(), {2}).dtype() == bfloat16);
  CHECK(array(halves.begin(), {2}).to_vector<float>() == std::vector<float>{0.5f, 3.0f});
  const uint16_t raw[] = {0x3f80, 0xc000};
  CHECK(array::from_data(raw, {2}, bfloat16).to_vector<float>() == std::vector<float>{1.0f, -2.0f});
  const array empty = array::from_data(nullptr, {0, 3}, float32);
  CHECK(empty.size() == 0);
  CHECK(empty.to_vector<float>().empty());
  const array flags = array({1, 0, 7}, bool_);
  CHECK(flags.to_vector<bool>() == std::vector<bool>{true, false, true});
}

TEST_CASE("assignment rebinds the handle and leaves other handles alone") {
  array a = {1.0f, 2.0f};
  const array b = a;
  a = a + a;
  CHECK(b.to_vector<float>() == std::vector<float>{1, 2});
  CHECK(a.to_vector<float>() == std::vector<float>{2, 4});
}

TEST_CASE("nothing is computed until a value is read") {
  const array a = {1.0f, 2.0f};
  const array b = exp(a);
  CHECK(!b.is_available());
  b.eval();
  CHECK(b.is_available());
  const auto runs = runtime::counters().programs_run.load();
  b.eval();
  CHECK(b.to_vector<float>()[0] == doctest::Approx(std::exp(1.0)));
  CHECK(runtime::counters().programs_run == runs);
  const array c = a + 1.0f, d = a * 2.0f;
  eval(c, d);
  CHECK(c.is_available());
  CHECK(d.is_available());
}

TEST_CASE("evaluated arrays are row-major, whatever made them") {
  const array m({1, 2, 3, 4, 5, 6}, {2, 3});
  const array t = transpose(m);
  CHECK(t.to_vector<int>() == std::vector<int>{1, 4, 2, 5, 3, 6});
  CHECK(t.data<int32_t>()[1] == 4);
  CHECK(t.strides() == Strides{2, 1});
}

TEST_CASE("errors of handles") {
  const array v = {1.0f, 2.0f};
  CHECK_THROWS_AS(v.item<float>(), std::invalid_argument);
  CHECK(contains(message([&] { v.item<float>(); }), "[item]"));
  CHECK(contains(message([&] { v.item<float>(); }), "(2)"));
  CHECK_THROWS_AS(v.data<int32_t>(), std::invalid_argument);
  CHECK(contains(message([&] { v.data<double>(); }), "float32"));
  CHECK_THROWS_AS(array({1, 2, 3}, {2, 2}), std::invalid_argument);
  CHECK(array(1.5f, complex64).item<complex64_t>() == complex64_t(1.5f, 0));
  CHECK_THROWS_AS(v.shape(1), std::out_of_range);
  CHECK_THROWS_AS(array::from_data(nullptr, {-1}, float32), std::invalid_argument);
}

TEST_CASE("printing") {
  CHECK(printed(array({1.0f, 2.0f, 3.0f})) == "array([1, 2, 3], dtype=float32)");
  CHECK(printed(array(2.5f)) == "array(2.5, dtype=float32)");
  CHECK(printed(array({1, 0}, bool_)) == "array([true, false], dtype=bool)");
  CHECK(printed(array({1, 2, 3, 4}, {2, 2})) == "array([[1, 2],\n       [3, 4]], dtype=int32)");
  CHECK(printed(array({1, 2, 3, 4}, {2, 1, 2})) == "array([[[1, 2]],\n       [[3, 4]]], dtype=int32)");
  CHECK(printed(arange(10)) == "array([0, 1, 2, ..., 7, 8, 9], dtype=int32)");
  CHECK(printed(arange(6)) == "array([0, 1, 2, 3, 4, 5], dtype=int32)");
  CHECK(printed(zeros({0})) == "array([], dtype=float32)");
  CHECK(printed(array({-1, 200}, int8)) == "array([-1, -56], dtype=int8)");
  CHECK(printed(array({0.5f, -0.25f}, bfloat16)) == "array([0.5, -0.25], dtype=bfloat16)");
  const float odd[] = {INFINITY, -INFINITY};
  CHECK(printed(array::from_data(odd, {2}, float32)) == "array([inf, -inf], dtype=float32)");
  const complex64_t c[] = {{1, 2}, {0, -1}};
  CHECK(printed(array::from_data(c, {2}, complex64)) == "array([1+2j, 0-1j], dtype=complex64)");
  CHECK(printed(array(std::numeric_limits<uint64_t>::max())) == "array(18446744073709551615, dtype=uint64)");
  CHECK(printed(zeros({7, 2})) ==
        "array([[0, 0],\n       [0, 0],\n       [0, 0],\n       ...,\n       [0, 0],\n       [0, 0],\n       [0, 0]], "
        "dtype=float32)");
}

TEST_CASE("devices: the CPU is there, one that is not is refused when the graph is built") {
  const array a = {1.0f};
  const Device none(Device::gpu, 99);
  CHECK(default_device() == Device(test::on_gpu() ? Device::gpu : Device::cpu));
  CHECK(is_available(Device::cpu));
  CHECK(is_available(Device::gpu) == (device_count(Device::gpu) > 0));
  CHECK(!is_available(none));
  CHECK_THROWS_AS(set_default_device(none), std::invalid_argument);
  CHECK_THROWS_AS(add(a, a, none), std::invalid_argument);
  CHECK(contains(message([&] { add(a, a, none); }), "[add] device gpu:99 is not available: there "));
  if (device_count(Device::gpu) == 0)
    CHECK(contains(message([&] { add(a, a, Device::gpu); }), "[add] device gpu:0 is not available: there is no GPU: "));
  CHECK(contains(message([&] { zeros({2}, none); }), "[zeros]"));
  CHECK(add(a, a, Device::cpu).item<float>() == 2);
  CHECK(add(a, a, default_stream(Device::cpu)).item<float>() == 2);
  CHECK_THROWS_AS(default_stream(Device(Device::cpu, 3)), std::invalid_argument);
  synchronize();
}

TEST_CASE("values pass between devices by themselves") {
  if (!test::on_gpu()) return;
  const array a = arange(1000.f, Device::cpu), b = multiply(a, a, Device::gpu), c = add(b, a, Device::cpu),
              d = sum(sqrt(c, Device::gpu), Device::cpu);
  double expected = 0;
  for (int k = 0; k < 1000; ++k) expected += std::sqrt(static_cast<double>(k) * k + k);
  CHECK(d.item<float>() == doctest::Approx(expected).epsilon(1e-5));
}

TEST_CASE("arrays are gone through along their first axis") {
  const array a = reshape(arange(6), {3, 2});
  std::vector<int> seen;
  for (const array& row : a) {
    CHECK(row.shape() == Shape{2});
    for (const array& element : row) seen.push_back(element.item<int>());
  }
  CHECK(seen == std::vector<int>{0, 1, 2, 3, 4, 5});
  for (const array& row : a * 2) seen.push_back(sum(row).item<int>());  // of an array without a name
  CHECK(std::vector<int>(seen.end() - 3, seen.end()) == std::vector<int>{2, 10, 18});
  CHECK(zeros({0, 2}).begin() == zeros({0, 2}).end());
  CHECK(a.end() - a.begin() == 3);
  CHECK((*(a.begin() + 2)).to_vector<int>() == std::vector<int>{4, 5});
  CHECK(a.begin()[1].to_vector<int>() == std::vector<int>{2, 3});
  CHECK(a.begin() < a.end());
  static_assert(std::random_access_iterator<array::ArrayIterator>);
  const std::vector<array> rows(a.begin(), a.end());
  CHECK(array_equal(stack(rows), a).item<bool>());
  CHECK(sum(grad([](const array& x) {
          array total(0.0f);
          for (const array& row : x) total = total + sum(row) * sum(row);
          return total;
        })(astype(a, float32)))
            .item<float>() == 60);
  CHECK_THROWS_AS(array(1).begin(), std::invalid_argument);
}

TEST_CASE("memory is counted") {
  const size_t before = get_active_memory();
  {
    const array big = contiguous(broadcast_to(array(1.5f), {1 << 16}));
    eval(big);
    CHECK(get_active_memory() >= before + (size_t{4} << 16));
    CHECK(get_peak_memory() >= get_active_memory());
  }
  if (test::on_gpu()) CHECK(get_active_memory() < before + (size_t{4} << 16));  // scalars may have stayed there
  else CHECK(get_active_memory() == before);
  clear_cache();
  CHECK(get_cache_memory() == 0);
}

TEST_CASE("several threads build and evaluate") {
  const array shared = exp(arange(64) / 64.0f);
  std::vector<float> sums(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&, t] { sums[t] = sum(shared * static_cast<float>(t + 1)).item<float>(); });
  for (std::thread& t : threads) t.join();
  for (size_t t = 1; t < sums.size(); ++t) CHECK(sums[t] == doctest::Approx(sums[0] * static_cast<float>(t + 1)));
}
