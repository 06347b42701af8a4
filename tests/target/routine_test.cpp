// Calls as tile kernels, on tiles short enough that rows need several of them, against the CPU's own routines: equal
// bits.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernel/routines/routine.h"
#include "target/target.h"

using namespace weft;
using kernel::CallDesc;

namespace {

size_t bytes_of(const CallDesc::Array& a) {
  size_t bytes = a.dtype.size();
  for (int64_t n : a.extents) bytes *= static_cast<size_t>(n);
  return bytes;
}

using Buffers = std::vector<std::vector<char>>;

Buffers run_routine(const CallDesc& desc, Buffers operands, int64_t lanes) {
  const auto routine = kernel::routine_for(desc, lanes);
  REQUIRE(routine);
  const auto code = target::cpu().compile(routine->kernels);
  for (int64_t bytes : routine->scratch) operands.emplace_back(static_cast<size_t>(bytes), char{0x55});
  for (const auto& launch : routine->launches) {
    std::vector<void*> buffers;
    for (int b : launch.buffers) buffers.push_back(operands[static_cast<size_t>(b)].data());
    const target::Segment segment{buffers, launch.symbols, launch.grid};
    code[launch.kernel]->run(std::span(&segment, 1), 1);
  }
  operands.resize(desc.inputs.size() + desc.outputs.size());
  return operands;
}

/// Few different elements, with everything that has an order of its own among them.
std::vector<char> elements(const CallDesc::Array& a, uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::vector<char> out(bytes_of(a));
  const auto fill = [&](auto bits, uint64_t infinity, uint64_t sign) {
    using U = decltype(bits);
    const uint64_t special[] = {0, sign,     infinity,     infinity | sign, infinity | 1, infinity | sign | 3,
                                1, sign | 1, ~uint64_t{0}, sign - 1};
    for (size_t k = 0; k < out.size() / sizeof(U); ++k) {
      const U v = static_cast<U>(draw() % 3 == 0 ? special[draw() % 10] : draw() % 2 ? draw() : draw() % 17);
      std::memcpy(out.data() + k * sizeof(U), &v, sizeof v);
    }
  };
  switch (a.dtype.size()) {
    case 1: fill(uint8_t{}, a.dtype == float8_e5m2 ? 0x7c : 0x7e, 0x80); break;
    case 2: fill(uint16_t{}, a.dtype == bfloat16 ? 0x7f80 : 0x7c00, 0x8000); break;
    case 4: fill(uint32_t{}, 0x7f800000u, 0x80000000u); break;
    default: fill(uint64_t{}, uint64_t{0x7ff} << 52, uint64_t{1} << 63); break;
  }
  if (a.dtype == bool_)
    for (char& c : out) c &= 1;
  return out;
}

void check_equal(const CallDesc& desc) {
  Buffers operands{elements(desc.inputs[0], 7), std::vector<char>(bytes_of(desc.outputs[0]), 3),
                   std::vector<char>(bytes_of(desc.outputs[1]), 3)};
  const Buffers got = run_routine(desc, operands, 64);
  std::vector<void*> pointers;
  for (auto& b : operands) pointers.push_back(b.data());
  target::cpu().call(desc)->run(pointers);
  for (size_t k = 0; k < 3; ++k) CHECK(got[k] == operands[k]);
}

/// The sorted positions first … first + count - 1 alone.
void check_window(Dtype dtype, const std::vector<int64_t>& shape, int64_t axis, int64_t first, int64_t count) {
  CAPTURE(dtype_name(dtype));
  CAPTURE(shape[static_cast<size_t>(axis)]);
  CAPTURE(first);
  CAPTURE(count);
  std::vector<int64_t> out = shape;
  out[static_cast<size_t>(axis)] = count;
  check_equal({"sort", {{dtype, shape}}, {{dtype, out}, {uint32, out}}, {axis, first, count}});
}

void check_sort(Dtype dtype, const std::vector<int64_t>& shape, int64_t axis, bool values = true, bool order = true) {
  CAPTURE(dtype_name(dtype));
  CAPTURE(axis);
  CAPTURE(shape.size());
  CAPTURE(shape.back());
  check_equal({"sort", {{dtype, shape}}, {{dtype, shape, values}, {uint32, shape, order}}, {axis}});
}

}  // namespace

TEST_CASE("routines: sorts give the CPU's bits for every dtype") {
  for (Dtype t : {bool_, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32, float64,
                  float8_e4m3, float8_e5m2}) {
    check_sort(t, {3, 50}, 1);
    check_sort(t, {2, 300}, 1);
  }
}

TEST_CASE("routines: sorts of short and long rows, along any axis, with either result") {
  for (int64_t n : {1, 2, 3, 16, 63, 64, 65, 128, 129, 1000}) {
    check_sort(float32, {n}, 0);
    check_sort(float32, {5, n}, 1);
    check_sort(float32, {n, 3}, 0);
    check_sort(bfloat16, {2, n, 3}, 1);
    check_sort(int64, {2, n}, 1);
  }
  check_sort(float32, {100, 7}, 1, true, false);
  check_sort(float32, {3, 200}, 1, false, true);
  check_sort(float64, {3, 200}, 1, true, false);
  check_sort(float32, {0, 5}, 1);
  check_sort(float32, {5, 0}, 1);
}

TEST_CASE("routines: windows of sorts give the CPU's bits, in one tile and after merges") {
  for (Dtype t : {float32, bfloat16, int64, uint8})
    for (int64_t n : {1, 20, 64, 65, 300})
      for (const auto& [first, count] :
           {std::pair<int64_t, int64_t>{0, 1}, {n - 1, 1}, {n / 2, n - n / 2}, {n / 3, 1}}) {
        check_window(t, {3, n}, 1, first, count);
        check_window(t, {2, n, 3}, 1, first, count);
      }
  check_window(float32, {4, 10}, 1, 3, 0);
}

TEST_CASE("routines: searches give the CPU's places") {
  for (Dtype t : {uint8, int32, float32, bfloat16, float64})
    for (int64_t right : {0, 1})
      for (int64_t n : {1, 7, 64, 1000}) {
        const CallDesc::Array rows{t, {3, n}};
        const CallDesc sort{"sort", {rows}, {{rows}, {uint32, {3, n}}}, {1}};
        Buffers sorted = run_routine(
            sort,
            {elements(rows, 11), std::vector<char>(bytes_of(rows)), std::vector<char>(bytes_of({uint32, {3, n}}))}, 64);
        const CallDesc desc{"searchsorted", {rows, {t, {3, 5, 9}}}, {{uint32, {3, 5, 9}}}, {right}};
        Buffers operands{sorted[1], elements(desc.inputs[1], 13), std::vector<char>(bytes_of(desc.outputs[0]), 3)};
        const Buffers got = run_routine(desc, operands, 64);
        std::vector<void*> pointers;
        for (auto& b : operands) pointers.push_back(b.data());
        target::cpu().call(desc)->run(pointers);
        CHECK(got[2] == operands[2]);
      }
}
