// Code of GPUs in kernels, whole kernels of source, and atomics: as they are rendered, and what NVRTC says of them.
#include <doctest/doctest.h>

#include "kernel/language/atomic_programs.h"
#include "kernel/language/code_programs.h"
#include "kernel/language/errors.h"
#include "target/cuda/cuda.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/host_kernels.h"
#include "target/cuda/language/traced_case.h"

using namespace weft;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

using k::AnyRef;

k::Param param(k::Use use, Dtype t, std::vector<int64_t> dims) { return {use, t, std::move(dims)}; }

/// Additions to slices whose old values nobody reads. The sums are exact in every order.
template <class T>
k::Program added(Dtype t) {
  return k::trace("added", {param(k::Use::in_out, t, {1024}), param(k::Use::in_out, t, {256})}, {4},
                  [](std::span<const AnyRef> r) {
                    const k::InOut<T, 1> y(r[0]), all(r[1]);
                    const auto v = k::cast<T>(k::arange(256) % int64_t{7});
                    k::atomic("add", y(k::ds(k::program_id(0) * 256, 256)), v);
                    k::atomic("add", all(k::all), v);
                    k::atomic("add", all(k::ds(k::program_id(0) + 250, 8)), k::full<T>({8}, 1));
                  });
}

/// PTX on words of two bfloat16 elements, and on words of 64 bits.
k::Program assembled() {
  return k::trace("assembled",
                  {param(k::Use::in, bfloat16, {500}), param(k::Use::out, bfloat16, {500}),
                   param(k::Use::in, int64, {60}), param(k::Use::out, int64, {60})},
                  {1}, [](std::span<const AnyRef> r) {
                    const k::Code fma("fma2", "=r,r,r", "fma.rn.bf16x2 $0, $1, $2, $1;", 2);
                    const k::Out<k::bf16, 1> y(r[1]);
                    const auto x = k::In<k::bf16, 1>(r[0])(k::all).load();
                    y(k::all) = k::cuda<k::bf16>(
                        fma, [](auto a, auto b) { return k::fma(a, b, a); }, x, x);
                    const k::Code add("add64", "=l,l",
                                      "{\n  .reg .b64 %t;\n  mov.b64 %t, 5;\n  add.s64 $0, $1, %t;\n}");
                    const k::Out<int64_t, 1> z(r[3]);
                    z(k::all) = k::cuda<int64_t>(
                        add, [](auto a) { return a + int64_t{5}; }, k::In<int64_t, 1>(r[2])(k::all));
                  });
}

/// A whole kernel: the transpose of [rows, columns] by blocks of 8 x 4 threads.
kernel::Kernel transposed(int64_t rows, int64_t columns, const std::string& text) {
  kernel::Builder b("transposed");
  b.param("x", float32, false);
  b.param("y", float32, true);
  kernel::InlineCode code{.name = "transposed", .text = text, .constraints = {}, .inputs = {"x"}, .outputs = {"y"}};
  code.header = fmt::format("constexpr int rows = {}, columns = {};", rows, columns);
  code.block = {8, 4, 1};
  code.grid = {(columns + 7) / 8, (rows + 3) / 4, 1};
  code.file = "user.cu", code.line = 10;
  b.source(std::move(code));
  kernel::Kernel out = b.finish();
  out.any_size = true;
  return out;
}
constexpr const char* transpose_text = R"(
  const unsigned j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < rows && j < columns) y[j * rows + i] = x[i * columns + j];
)";

bool no_compiler() {
  std::string why;
  if (cuda::nvrtc_available(&why)) return false;
  MESSAGE("skipped: " << why);
  return true;
}

std::string refusal(const kernel::Kernel& kernel) {
  cuda::CudaTarget target(target::gpu_of("sm_90a"), false);
  try {
    target.compile(std::vector{kernel});
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

k::Program wrong(const k::Code& code) {
  return k::trace("wrong", {param(k::Use::in, float32, {8}), param(k::Use::out, float32, {8})}, {1},
                  [&](std::span<const AnyRef> r) {
                    const k::Out<float, 1> y(r[1]);
                    y(k::all) = k::cuda<float>(code, k::gpu_only, k::In<float, 1>(r[0])(k::all));
                  });
}

}  // namespace

TEST_CASE("code in CUDA C++ computes what its counterpart does, thread by thread") {
  if (!can_run_kernels()) return;
  check_on_host({traced_case(test_kernels::coded(1)), traced_case(test_kernels::coded(4))});
}

TEST_CASE("a whole kernel of source sees the grid and the block of its user, thread by thread") {
  if (!can_run_kernels()) return;
  constexpr int64_t rows = 19, columns = 37;
  RandomCase c = make_case(transposed(rows, columns, transpose_text), {rows * columns, rows * columns}, {}, 5 * 5);
  const HostKernels host(std::vector{c});
  host.run(0, c);
  const auto* x = reinterpret_cast<const uint32_t*>(c.buffers[0].data());
  const auto* y = reinterpret_cast<const uint32_t*>(c.buffers[1].data());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) CHECK(y[j * rows + i] == x[i * columns + j]);
}

TEST_CASE("programs agree by locks and counters, thread by thread") {
  if (!can_run_kernels()) return;
  check_on_host({traced_case(test_kernels::agreed(), true)});
}

TEST_CASE("additions of neighbours give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  const std::vector<RandomCase> cases{traced_case(added<float>(float32), true),
                                      traced_case(added<k::bf16>(bfloat16), true),
                                      traced_case(added<k::f16>(float16), true)};
  check_on_host(cases);
  check_on_host(cases, {}, {.clusters = true});
  const std::string text = cuda::render(kernel::expand(cases[0].kernel), "k", {}, {.clusters = true}).source;
  CHECK(text.find("add_vector<") != std::string::npos);
}

TEST_CASE("code, atomics and whole kernels of source compile for GPUs of several kinds") {
  if (no_compiler()) return;
  for (const bool late : {false, true}) {
    std::string source(cuda::prelude());
    size_t n = 0;
    const auto add = [&](const kernel::Kernel& kernel) {
      const cuda::Features features{.warpgroups = late, .clusters = late};
      source += cuda::render(kernel::expand(kernel), "k" + std::to_string(n++), {}, features).source;
    };
    for (const k::Program& p : {test_kernels::coded(1), test_kernels::coded(4), assembled(), test_kernels::agreed(),
                                added<float>(float32), added<k::bf16>(bfloat16), added<k::f16>(float16)})
      add(p.data().kernel);
    add(transposed(5, 6, transpose_text));
    CHECK(!cuda::compile(source, late ? "sm_90a" : "sm_80").empty());
  }
}

TEST_CASE("code that does not compile is refused with the compiler's words in the user's lines") {
  if (no_compiler()) return;
  const int line = __LINE__ + 1;
  const k::Code code("typo", {"x"}, {"y"}, "y = x +* 2;");
  const std::string here = std::string(__FILE__) + "(" + std::to_string(line) + ")";
  test_kernels::check_message<std::invalid_argument>(
      [&] {
        cuda::CudaTarget target(target::gpu_of("sm_90a"), false);
        target.compile(std::vector{wrong(code).data().kernel});
      },
      "[kernel wrong] its code does not compile", {here, "error"});
  const std::string message = refusal(transposed(5, 6, "\n  y[0] = x[0];\n  y[1] = undefined_name;\n"));
  CHECK(message.find("[kernel transposed] its code does not compile") == 0);
  CHECK(message.find("user.cu(12)") != std::string::npos);
  CHECK(message.find("undefined_name") != std::string::npos);
  const std::string bad = refusal(wrong(k::Code("bad", "=f,f", "no.such $0, $1;")).data().kernel);
  CHECK(bad.find("its code does not compile") != std::string::npos);
  CHECK(bad.find("known instruction") != std::string::npos);
}

TEST_CASE("code, atomics and whole kernels of source give the interpreter's bits on the device") {
  if (!on_device()) return;
  for (const RandomCase& c :
       {traced_case(test_kernels::coded(1)), traced_case(test_kernels::coded(4)), traced_case(assembled()),
        traced_case(test_kernels::agreed(), true), traced_case(added<float>(float32), true),
        traced_case(added<k::bf16>(bfloat16), true), traced_case(added<k::f16>(float16), true)})
    agree(c);
}
