// Products with matrices in a few bits, as they are rendered for a GPU: thread by thread on the host against the
// interpreter.
#include <doctest/doctest.h>

#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/inspect.h"
#include "target/cuda/near_interpreter.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

/// A product with a matrix of codes of a few bits: several share a word, and several a scale. Tiles are loaded with an
/// axis for words, scales or shifts and one for what shares them, which a broadcast repeats. The matrix is the right
/// operand; or, where C is computed transposed and stored so, the left one.
struct Packed {
  Dtype dtype = bfloat16;
  int64_t bits = 4, group = 32, rows = 64, columns = 64, depth = 64, steps = 4;
  bool transposed = false;
  int64_t missing = 0, depth_missing = 0;  // columns, and elements of k, that do not exist
  Dtype result = float32;
};

RandomCase unpacked(const Packed& f) {
  const int64_t codes = 32 / f.bits, whole = f.depth * f.steps, words = whole / codes, groups = whole / f.group;
  Builder b("unpacked");
  const Ref a = b.param("a", f.dtype, false), w = b.param("w", uint32, false),
            scale = b.param("scale", bfloat16, false), shift = b.param("shift", uint32, false),
            y = b.param("y", f.result, true);
  const Value end = f.missing > 0 ? b.index(f.columns - f.missing) : no_value;
  const auto zeros = [&] {
    const int64_t m = f.transposed ? f.columns : f.rows, n = f.transposed ? f.rows : f.columns;
    return b.constant(float32, Number::of_real(0), {m, n});
  };
  const auto repeated = [&](Value v, int64_t parts, int64_t each) {  // [columns, parts] to [columns, parts · each]
    return b.reshape(b.broadcast(b.reshape(v, {f.columns, parts, 1}), {f.columns, parts, each}),
                     {f.columns, parts * each});
  };
  const auto matrix = [&](Value k) {
    const auto divided = [&](int64_t by) { return b.scalar(ScalarOp::floordiv, {k, b.index(by)}); };
    const Value word = repeated(b.load(w, divided(codes), {f.columns, f.depth / codes}, {words, 1}, {end, no_value}),
                                f.depth / codes, codes),
                shifts = b.reshape(b.broadcast(b.reshape(b.load(shift, b.index(0), {codes}, {1}), {1, 1, codes}),
                                               {f.columns, f.depth / codes, codes}),
                                   {f.columns, f.depth}),
                mask = b.constant(uint32, Number::of_int((int64_t{1} << f.bits) - 1), {f.columns, f.depth}),
                code = b.cast(b.scalar(ScalarOp::bit_and, {b.scalar(ScalarOp::shr, {word, shifts}), mask}), float32);
    const Value scales =
        f.group >= f.depth
            ? b.broadcast(
                  b.reshape(b.load(scale, groups == 1 ? b.index(0) : divided(f.group), {f.columns}, {groups}, {end}),
                            {f.columns, 1}),
                  {f.columns, f.depth})
            : repeated(b.load(scale, divided(f.group), {f.columns, f.depth / f.group}, {groups, 1}), f.depth / f.group,
                       f.group);
    Value made = b.cast(b.mul(b.cast(scales, float32), code), f.dtype);
    if (f.depth_missing > 0) {  // as where k is no whole number of slices
      const std::vector<int64_t> dims{f.columns, f.depth};
      const Value i = b.broadcast(b.reshape(b.arange(f.depth), {1, f.depth}), dims),
                  left = b.broadcast(b.sub(b.index(whole - f.depth_missing), k), dims);
      made = b.select(b.lt(i, left), made, b.constant(f.dtype, Number::of_real(0), dims));
    }
    return f.transposed ? made : b.transpose(made);
  };
  const std::vector<Value> sum =
      b.loop(b.index(0), b.index(whole), b.index(f.depth), {zeros()}, [&](Value k, const std::vector<Value>& carried) {
        const Value other =
            f.transposed ? b.load(a, k, {f.depth, f.rows}, {1, whole}) : b.load(a, k, {f.rows, f.depth}, {whole, 1});
        return std::vector<Value>{f.transposed ? b.dot(matrix(k), other, carried[0], DotPrecision::exact)
                                               : b.dot(other, matrix(k), carried[0], DotPrecision::exact)};
      });
  const Value made = b.cast(sum[0], f.result);
  if (f.transposed) b.store(y, made, b.index(0), {1, f.columns}, {end, no_value});
  else b.store(y, made, b.index(0), {f.columns, 1}, {no_value, end});
  RandomCase c =
      moderate(b.finish(), {f.rows * whole, f.columns * words, f.columns * groups, codes, f.rows * f.columns}, 1);
  for (int64_t i = 0; i < c.elements[1]; ++i)
    write_element(c.buffers[1].data(), uint32, i, Number::of_int(i * 2654435761 % (int64_t{1} << 32)));
  for (int64_t i = 0; i < codes; ++i) write_element(c.buffers[3].data(), uint32, i, Number::of_int(i * f.bits));
  return c;
}

std::vector<RandomCase> packed_cases() {
  std::vector<RandomCase> out;
  for (const int64_t bits : {1, 2, 4, 8})
    for (const int64_t group : {16, 32, 64, 128}) out.push_back(unpacked({.bits = bits, .group = group}));
  out.push_back(unpacked({.columns = 128, .steps = 3}));
  out.push_back(unpacked({.rows = 128, .columns = 192}));
  out.push_back(unpacked({.columns = 112}));  // no whole chunks for each thread
  out.push_back(unpacked({.dtype = float16, .bits = 8, .group = 16, .rows = 256, .columns = 64}));
  out.push_back(unpacked({.dtype = float32, .columns = 32, .depth = 32}));
  out.push_back(unpacked({.dtype = float32, .bits = 8, .group = 16, .rows = 32, .columns = 64, .depth = 16}));
  return out;
}

/// Those that warpgroups multiply with the matrix as A, in registers.
std::vector<RandomCase> transposed_cases() {
  std::vector<RandomCase> out;
  for (const int64_t bits : {1, 2, 4, 8})
    for (const int64_t group : {16, 32, 64, 128})
      out.push_back(unpacked({.bits = bits, .group = group, .rows = 32, .transposed = true, .result = bfloat16}));
  // One scale for each row: a vector of memory, which is loaded with what else A is made of.
  out.push_back(unpacked({.group = 256, .columns = 128, .transposed = true, .result = bfloat16}));
  for (const int64_t steps : {2, 3, 5})
    out.push_back(unpacked({.rows = 16, .columns = 128, .steps = steps, .transposed = true, .result = bfloat16}));
  for (const int64_t missing : {3, 8, 70})  // of rows that are stored: parts of words, words, and more than a warp's
    out.push_back(unpacked(
        {.group = 64, .rows = 48, .columns = 128, .transposed = true, .missing = missing, .result = bfloat16}));
  out.push_back(unpacked({.bits = 8, .group = 64, .rows = 256, .columns = 128, .depth = 128, .transposed = true}));
  out.push_back(unpacked({.dtype = float16, .rows = 80, .transposed = true, .result = float16}));
  out.push_back(unpacked({.rows = 48, .transposed = true, .depth_missing = 32, .result = bfloat16}));
  return out;
}

constexpr cuda::Features hopper{.warpgroups = true, .clusters = true};

}  // namespace

TEST_CASE("matrices in a few bits are unpacked as they are multiplied, thread by thread") {
  if (!can_run_kernels()) return;
  check_near(packed_cases());
  check_near(packed_cases(), hopper);
  const std::string source = cuda::render(expand(unpacked({}).kernel), "k", {}, hopper).source;
  CHECK(source.find("[(r / 8)]") != std::string::npos);  // threads hold what their chunks repeat
}

TEST_CASE(
    "warpgroups multiply matrices in a few bits from registers where they are the left operand, thread by thread") {
  if (!can_run_kernels()) return;
  for (const RandomCase& c : transposed_cases()) {
    const std::string source = cuda::render(expand(c.kernel), "k", {}, hopper).source;
    CAPTURE(source.substr(0, 400));
    CHECK(source.find("A made in registers, beside the copies; copied by TMA") != std::string::npos);
  }
  check_near(transposed_cases(), hopper);
}

// A product in flight reads its A while the next iteration makes its own: of two unrolled iterations each has registers
// of its own.
TEST_CASE("iterations that make A in registers are unrolled by two") {
  if (!cuda::nvrtc_available()) {
    MESSAGE("skipped: there is no NVRTC here");
    return;
  }
  for (const int64_t rows : {32, 256}) {
    const Packed f{.group = 64, .rows = rows, .columns = 128, .steps = 16, .transposed = true, .result = bfloat16};
    const std::string ptx = cuda::gpu_stage(unpacked(f).kernel, "ptx", target::stated_machine("NVIDIA H100"));
    size_t products = 0;
    for (size_t at = 0; (at = ptx.find("wgmma.mma_async", at)) != std::string::npos; ++at) ++products;
    CHECK(products >= static_cast<size_t>(2 * f.depth / 16));
  }
}
