// Kernels of rows on CPUs: extremes in chains, sums in place, exponents known to be at most 0, the next row prefetched,
// and a row stored while the next one is computed. Each keeps the bits.
#include <limits>
#include <string>

#include "kernel/derive/rows.h"
#include "kernel/language/kernels.h"
#include "kernel/language/run.h"

namespace {

namespace k = weft::k;
namespace kernel = weft::kernel;
using k::AnyRef;
using test_kernels::Bytes;

k::Param in(std::vector<int64_t> dims, weft::Dtype t = weft::float32) { return {k::Use::in, t, std::move(dims)}; }
k::Param out(std::vector<int64_t> dims, weft::Dtype t = weft::float32) { return {k::Use::out, t, std::move(dims)}; }

kernel::Kernel legal(const kernel::Kernel& source, bool avx512 = true) {
  const kernel::VectorRegisters registers = avx512 ? kernel::VectorRegisters{64, 32} : kernel::VectorRegisters{32, 16};
  kernel::Kernel made = kernel::legalize(kernel::expand(source), registers);
  kernel::verify(made);
  return made;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

k::Program softmax(int64_t rows, int64_t columns) {
  return k::trace("softmax", {in({rows, columns}), out({rows, columns})}, {rows}, [](std::span<const AnyRef> r) {
    const k::In<float, 2> x(r[0]);
    const k::Out<float, 2> y(r[1]);
    const auto row = k::program_id(0);
    const auto v = x(row, k::all).load();
    const auto e = k::exp(v - k::max(v, 0));
    y(row, k::all).store(e / k::sum(e, 0), k::Cache::streaming);
  });
}

/// Compares a kernel with one whose programs are joined, as it is written and rewritten for registers.
void check_joined(const k::Program& program, int64_t count) {
  const auto& data = program.data();
  const std::vector<Bytes> arrays = test_kernels::random_arrays(program, 5);
  const std::vector<Bytes> wanted = test_kernels::interpreted(kernel::expand(data.kernel), arrays, data.programs);
  const kernel::Kernel joined = kernel::with_joined_programs(data.kernel, count, kernel::Length::number(data.programs));
  const int64_t programs = (data.programs + count - 1) / count;
  for (const kernel::Kernel& form : {kernel::expand(joined), legal(joined, true), legal(joined, false)}) {
    const std::vector<Bytes> got = test_kernels::interpreted(form, arrays, programs);
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(std::memcmp(got[i].data.data(), wanted[i].data.data(), got[i].data.size()) == 0);
  }
}

TEST_CASE("rows of joined programs are stored while the next ones are computed") {
  for (const int64_t columns : {64, 512, 1000, 1024})
    for (const int64_t rows : {1, 4, 7})
      for (const int64_t joined : {1, 4}) check_joined(softmax(rows, columns), joined);
  const k::Program program = softmax(256, 1024);
  CHECK(kernel::programs_to_join(program.data().kernel, 256) == 4);
  CHECK(kernel::programs_to_join(program.data().kernel, 1 << 20) == 16);
  CHECK(kernel::programs_to_join(program.data().kernel, 255) == 1);
  const std::string text =
      kernel::print(legal(kernel::with_joined_programs(program.data().kernel, 4, kernel::Length::number(256))));
  CAPTURE(text);
  CHECK(count(text, "streaming") == 2);    // while the next row is computed, and of the last row
  CHECK(count(text, "prefetch p0") == 2);  // in the first row, and in the others
  const size_t store = text.find("streaming");
  CHECK(text.find("exp", 0) == std::string::npos);
  CHECK(text.substr(store, text.find("}", store) - store).find("fma") != std::string::npos);  // in one loop
}

TEST_CASE("programs that do more than rows stay apart") {
  const auto traced = [](const auto& body) {
    return k::trace("rows", {in({4096, 64}), out({4096, 64})}, {4096},
                    [&](std::span<const AnyRef> r) { body(k::In<float, 2>(r[0]), k::Out<float, 2>(r[1])); });
  };
  const k::Program plain = traced([](const k::In<float, 2>& x, const k::Out<float, 2>& y) {
    const auto row = k::program_id(0);
    y(row, k::all).store(x(row, k::all).load() * 2.0f, k::Cache::streaming);
  });
  CHECK(kernel::programs_to_join(plain.data().kernel, 4096) == 1);  // reduces nothing
  const k::Program cached = traced([](const k::In<float, 2>& x, const k::Out<float, 2>& y) {
    const auto row = k::program_id(0);
    const auto v = x(row, k::all).load();
    y(row, k::all) = v - k::max(v, 0);
  });
  CHECK(kernel::programs_to_join(cached.data().kernel, 4096) == 1);  // stores into the caches
}

TEST_CASE("an iteration that reads what another one stores is not overlapped with it") {
  const k::Program program = k::trace("steps", {in({6, 256}), out({6, 256})}, {1}, [](std::span<const AnyRef> r) {
    const k::In<float, 2> x(r[0]);
    const k::Out<float, 2> y(r[1]);
    k::loop(0, 6, 1, [&](k::Index row) {
      const auto v = x(row, k::all).load();
      const auto e = k::exp(v - k::max(v, 0));
      const auto f = e / k::sum(e, 0);
      y(row, k::all).store(k::flip(f, 0) * f, k::Cache::streaming);
    });
  });
  test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 3));
}

TEST_CASE("extremes and sums of integers are reduced in chains, with the same bits") {
  for (const int64_t n : {1, 31, 300, 1024, 4096, 5000}) {
    for (const weft::Dtype t : {weft::float32, weft::int32, weft::bfloat16}) {
      const k::Program program = k::trace("extremes", {in({n}, t), out({3}, t)}, {1}, [&](std::span<const AnyRef> r) {
        const auto body = [&](auto zero) {
          using T = decltype(zero);
          const k::In<T, 1> x(r[0]);
          const k::Out<T, 1> y(r[1]);
          const auto v = x(k::all).load();
          y(0) = k::max(v, 0), y(1) = k::min(v, 0), y(2) = k::sum(v, 0);
        };
        if (t == weft::float32) body(0.0f);
        else if (t == weft::int32) body(int32_t{0});
        else body(k::bf16{});
      });
      std::vector<Bytes> arrays = test_kernels::random_arrays(program, 11);
      test_kernels::compare_rewritten(program, arrays);
      if (t != weft::float32) continue;
      auto* x = reinterpret_cast<float*>(arrays[0].data.data());
      for (int64_t i = 0; i < n; ++i) x[i] = i % 3 == 0 ? -0.0f : 0.0f;
      test_kernels::compare_rewritten(program, arrays);
      x[n / 2] = std::numeric_limits<float>::quiet_NaN();
      test_kernels::compare_rewritten(program, arrays);
    }
  }
  const k::Program program = k::trace("largest", {in({4096}), out({1})}, {1}, [](std::span<const AnyRef> r) {
    const k::In<float, 1> x(r[0]);
    const k::Out<float, 1> y(r[1]);
    y(0) = k::max(x(k::all).load(), 0);
  });
  const std::string text = kernel::print(legal(program.data().kernel));
  CAPTURE(text);
  CHECK(count(text, "alloc") == 0);
  CHECK(count(text, "carry") == 1);
}

TEST_CASE("a sum of products that a loop carries stays where it is") {
  const k::Program program =
      k::trace("matmul", {in({96, 256}), in({256, 64}), out({96, 64})}, {1}, [](std::span<const AnyRef> r) {
        const k::In<float, 2> a(r[0]), b(r[1]);
        const k::Out<float, 2> c(r[2]);
        k::Mut sum = k::zeros<float>({96, 64});
        k::loop(0, 256, 64,
                [&](k::Index i) { sum = k::dot(a(k::all, k::ds(i, 64)), b(k::ds(i, 64), k::all), sum.get()); });
        c(k::all, k::all) = sum;
      });
  test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 2));
  CHECK(count(kernel::print(legal(program.data().kernel)), "f32[6144]") == 1);  // the sums, once
}

TEST_CASE("what is left of a tile without its largest element needs no limit before exp") {
  const auto limits = [](int axis, int back, bool of_itself) {
    const k::Program program = k::trace("rows", {in({64, 64}), out({64, 64})}, {1}, [&](std::span<const AnyRef> r) {
      const k::In<float, 2> x(r[0]);
      const k::Out<float, 2> y(r[1]);
      const auto v = x(k::all, k::all).load();
      const k::Tile<float, 2> other = v * 0.5f;
      const auto shifted = v - k::expand_dims(k::max(of_itself ? v : other, axis), back);
      y(k::all, k::all) = k::exp(shifted) + k::exp2(shifted);
    });
    test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 9));
    const std::string text = kernel::print(kernel::expand(program.data().kernel));
    return count(text, "constant 89 :") + count(text, "constant 129 :");
  };
  CHECK(limits(0, 0, true) == 0);
  CHECK(limits(1, 1, true) == 0);
  CHECK(limits(1, 0, true) == 2);  // the largest of each row, taken off columns
  CHECK(limits(0, 0, false) == 2);
}

TEST_CASE("a row of one element that does not move ends where its array ends") {
  const k::Program program = k::trace("repeated", {in({4}), out({4, 16})}, {1}, [](std::span<const AnyRef> r) {
    k::AnyRef column = r[0];
    column.dims = {4, 1}, column.strides = {1, 0};
    const auto all = [](int64_t rows) { return std::vector<k::Span>{{.size = rows}, {.size = 16}}; };
    k::store(r[1], all(4), k::load(column, all(4)));
  });
  const std::vector<Bytes> arrays = test_kernels::random_arrays(program, 4);
  test_kernels::compare_rewritten(program, arrays);
  const std::vector<Bytes> got = test_kernels::interpreted(legal(program.data().kernel), arrays, 1);
  const auto* y = reinterpret_cast<const float*>(got[1].data.data());
  CHECK(y[0] != 0);
  CHECK(y[1] == 0);
}

}  // namespace
