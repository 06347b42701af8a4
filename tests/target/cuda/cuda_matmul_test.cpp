// Products on tensor cores (kernel::Op::matmul): what they are, against float64, by the interpreter and on a device;
// and that their code compiles, without a device.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernel/expand/expand.h"
#include "target/cpu/cpu_support.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/codegen/text/source.h"
#include "target/cuda/cuda.h"
#include "target/cuda/cuda_support.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using namespace weft::kernel;
using namespace weft::test;

namespace {

struct Product {
  int64_t m, n, k;
  Dtype dtype = bfloat16;
  bool a_transposed = false, b_transposed = false;  // m (n) contiguous instead of k
  int64_t step = 1, pad = 0, begin = 0;  // of the contiguous axis; elements behind each line; before the first one
  int64_t rows = 64, columns = 64;
  MatmulSchedule schedule = {32, 3, 32, 32};

  int64_t line(int64_t n_inner) const { return n_inner * step + pad; }
  int64_t a_m() const { return a_transposed ? step : line(k); }
  int64_t a_k() const { return a_transposed ? line(m) : step; }
  int64_t b_k() const { return b_transposed ? step : line(n); }  // turned: [n][k]
  int64_t b_n() const { return b_transposed ? line(k) : step; }
  size_t a_size() const { return static_cast<size_t>(begin + (a_transposed ? k * line(m) : m * line(k))); }
  size_t b_size() const { return static_cast<size_t>(begin + (b_transposed ? n * line(k) : k * line(n))); }
};

/// A tile of C a program; `finish` makes what is stored of the sums.
Kernel tiles_of(const Product& p) {
  Builder b("product");
  const Ref a = b.param("a", p.dtype, false), w = b.param("b", p.dtype, false), out = b.param("c", float32, true);
  const int64_t across = (p.n + p.columns - 1) / p.columns, pitch = p.columns + 8;
  const Ref sums = b.local(float32, p.rows * pitch);
  const Value pid = b.program_id();
  const Value m0 = b.mul(b.scalar(ScalarOp::floordiv, {pid, b.index(across)}), b.index(p.rows)),
              n0 = b.mul(b.scalar(ScalarOp::mod, {pid, b.index(across)}), b.index(p.columns));
  const Value m_limit = p.m % p.rows ? b.sub(b.index(p.m), m0) : no_value,
              n_limit = p.n % p.columns ? b.sub(b.index(p.n), n0) : no_value;
  b.matmul(sums, p.rows, p.columns, pitch,
           {a, b.add(b.index(p.begin), b.mul(m0, b.index(p.a_m()))), p.a_m(), p.a_k(), m_limit},
           {w, b.add(b.index(p.begin), b.mul(n0, b.index(p.b_n()))), p.b_n(), p.b_k(), n_limit}, b.index(p.k),
           p.schedule);
  b.loop(b.index(0), b.index(p.rows), b.index(16), {}, [&](Value at, const std::vector<Value>&) {
    const Value row = b.add(m0, at), position = b.add(b.mul(row, b.index(p.n)), n0);
    b.store(out, b.load(sums, b.mul(at, b.index(pitch)), {16, p.columns}, {pitch, 1}), position, {p.n, 1},
            {m_limit == no_value ? no_value : b.sub(m_limit, at), n_limit});
    return std::vector<Value>{};
  });
  return b.finish();
}

RandomCase case_of(const Product& p) {
  RandomCase c;
  c.kernel = tiles_of(p);
  for (const auto& v : {encode(numbers(p.a_size(), 1), p.dtype), encode(numbers(p.b_size(), 2), p.dtype),
                        encode(std::vector<double>(static_cast<size_t>(p.m * p.n), -7), float32)}) {
    const auto* at = reinterpret_cast<const std::byte*>(v.data());
    c.buffers.emplace_back(at, at + v.size());
  }
  for (const size_t n : {p.a_size(), p.b_size(), static_cast<size_t>(p.m * p.n)})
    c.elements.push_back(static_cast<int64_t>(n));
  c.grid = (p.m + p.rows - 1) / p.rows * ((p.n + p.columns - 1) / p.columns);
  return c;
}

/// The largest error beside Σ|a·b|, in float64; operands as the tensor cores see them.
double worst(const Product& p, const RandomCase& c) {
  const auto values = [&](size_t k, Dtype t) {
    const auto* at = reinterpret_cast<const char*>(c.buffers[k].data());
    auto v = decode(std::vector<char>(at, at + c.buffers[k].size()), t);
    if (t == float32 && k < 2)
      for (double& x : v) x = float_to_tf32(static_cast<float>(x));
    return v;
  };
  const auto a = values(0, p.dtype), b = values(1, p.dtype), out = values(2, float32);
  double most = 0;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0, size = 1e-30;
      for (int64_t k = 0; k < p.k; ++k) {
        const double term = a[static_cast<size_t>(p.begin + i * p.a_m() + k * p.a_k())] *
                            b[static_cast<size_t>(p.begin + k * p.b_k() + j * p.b_n())];
        sum += term, size += std::abs(term);
      }
      const double error = std::abs(out[static_cast<size_t>(i * p.n + j)] - sum) / size;
      most = test::larger(most, error);
    }
  return most;
}

constexpr double bound = 0x1p-18;  // beside Σ|a·b|, for some hundreds of terms

/// Layouts, edges and alignments at which the code differs.
std::vector<Product> products() {
  std::vector<Product> out;
  for (Dtype t : {bfloat16, float16, float32})
    for (const bool a : {false, true})
      for (const bool b : {false, true}) {
        Product whole{64, 128, 96, t, a, b};
        if (t == float32) whole.schedule.depth = 16;
        out.push_back(whole);
        Product ragged = whole;
        ragged.m = 72, ragged.n = 88, ragged.k = 40;
        out.push_back(ragged);
        ragged.m = 67, ragged.n = 45, ragged.k = 71;  // lines begin anywhere: no asynchronous copies
        out.push_back(ragged);
        ragged.pad = 3, ragged.begin = 5;
        out.push_back(ragged);
        Product edge = whole;  // the last chunk of a line is not whole, and lines begin on 16 bytes
        edge.m = 68, edge.n = 60, edge.k = 52, edge.begin = 16;
        edge.pad = 12;
        out.push_back(edge);
      }
  Product apart{33, 40, 50};
  apart.step = 2;  // no axis is contiguous
  out.push_back(apart);
  out.push_back({16, 16, 1});
  out.push_back({80, 72, 0});
  out.push_back({64, 64, 512, bfloat16, false, false, 1, 0, 0, 64, 64, {64, 4, 32, 32}});
  out.push_back({130, 130, 200, bfloat16, false, true, 1, 0, 0, 128, 64, {32, 2, 64, 32}});
  for (const bool a : {false, true})
    for (const bool b : {false, true})
      for (const auto& [rows, columns, warp_rows, warp_columns] :
           {std::array{64, 64, 32, 32},
            {128, 64, 64, 32},
            {128, 128, 64, 64},
            {128, 256, 64, 64}}) {  // by groups of warps, where there are any
        const Dtype t = columns == 128 ? float16 : bfloat16;
        out.push_back({136, 264, 200, t, a, b, 1, 0, 0, rows, columns, {64, 4, warp_rows, warp_columns}});
        out.push_back({67, 100, 333, t, a, b, 1, 0, 0, rows, columns, {64, 3, warp_rows, warp_columns}});
      }
  out.push_back({130, 130, 136, float16, true, false, 1, 0, 0, 64, 128, {16, 5, 16, 64}});
  return out;
}

std::string text(const Product& p) {
  return fmt::format("{}x{}x{} {} {}{} step {} pad {} begin {} tile {}x{} {}x{} {}x{}", p.m, p.n, p.k,
                     dtype_name(p.dtype), p.a_transposed ? "T" : "N", p.b_transposed ? "T" : "N", p.step, p.pad,
                     p.begin, p.rows, p.columns, p.schedule.depth, p.schedule.stages, p.schedule.rows,
                     p.schedule.columns);
}

}  // namespace

TEST_CASE("the interpreter's products are right within the rounding of their sums") {
  int count = 0;
  for (const Product& p : products()) {
    if (++count % 3) continue;  // the definition does not depend on layouts
    CAPTURE(text(p));
    CHECK(worst(p, interpreted(case_of(p))) < bound);
  }
}

TEST_CASE("products on tensor cores compile for three generations of GPUs and spill nothing") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  const Product big{256, 256, 256, bfloat16, false, false, 1, 0, 0, 128, 256, {64, 3, 64, 64}},
      transposed{256, 256, 256, float16, true, true, 1, 0, 0, 128, 128, {64, 3, 64, 64}},
      tf32{256, 256, 256, float32, true, false, 1, 0, 0, 128, 128, {32, 3, 64, 64}},
      odd{131, 133, 77, bfloat16, false, true, 1, 0, 0, 128, 64, {64, 4, 64, 32}};
  for (const auto& generation : {std::pair<std::string, cuda::Features>{"sm_80", {}},
                                 {"sm_90a", {}},
                                 {"sm_90a", {.warpgroups = true}},
                                 {"sm_100a", {}}}) {
    const std::string& arch = generation.first;
    const cuda::Features& has = generation.second;
    if (arch == "sm_100a" && cuda::nvrtc_version() < 12080) continue;
    std::string source(cuda::prelude()), log;
    int compiled = 0;
    for (const Product& p : {big, transposed, tf32, odd})
      source += cuda::render(expand(tiles_of(p)), fmt::format("k{}", compiled++), {}, has).source;
    CHECK((source.find("wgmma.mma_async") != std::string::npos) == has.warpgroups);
    CHECK(!cuda::compile(source, arch, {}, &log).empty());
    const auto usage = cuda::parse_usage(log);
    CHECK(static_cast<int>(usage.size()) == compiled);
    CHECK(log.find("serializ") ==
          std::string::npos);  // what ptxas says where sums of groups of warps are touched too early
    for (const cuda::KernelUsage& use : usage) {
      CAPTURE(arch);
      CAPTURE(use.name);
      CHECK(use.spill_store_bytes == 0);
      CHECK(use.stack_bytes == 0);
      CHECK(use.registers <= 255);
    }
  }
}

TEST_CASE("a device's products are right within the rounding of their sums, and the same at every run") {
  if (!on_device()) return;
  std::vector<Kernel> kernels;
  for (const Product& p : products()) kernels.push_back(tiles_of(p));
  target::gpu(test::gpu_ordinal()).compile(kernels);  // side by side
  int count = 0;
  for (const Product& p : products())
    for (const size_t shift : {0, 4}) {  // bytes: in the second case lines begin anywhere
      if (shift > 0 && ++count % 4) continue;
      CAPTURE(text(p));
      CAPTURE(shift);
      RandomCase first = case_of(p), second = case_of(p);
      run_compiled(target::gpu(test::gpu_ordinal()), first, 0, shift);
      CHECK(worst(p, first) < bound);
      run_compiled(target::gpu(test::gpu_ordinal()), second, 0, shift);
      CHECK(first.buffers[2] == second.buffers[2]);
    }
}
