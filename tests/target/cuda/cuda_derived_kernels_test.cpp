// Derivatives of kernels as they are rendered for a GPU: thread by thread on the host with the interpreter's bits, and
// compiled.
#include <doctest/doctest.h>

#include "kernel/derive/derive.h"
#include "kernel/language/trace.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/host_kernels.h"
#include "weft/kernel.h"

using namespace weft;
using namespace weft::kernel;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

using Refs = std::span<const k::AnyRef>;
constexpr k::Use in = k::Use::in, out = k::Use::out;

/// Rows with weights that all programs read, tiles of a product, a loop that carries what is needed again.
std::vector<k::Program> sources() {
  std::vector<k::Program> list;
  list.push_back(
      k::trace("rows", {{in, float32, {40, 33}}, {in, float32, {33}}, {out, float32, {40, 33}}}, {40}, [](Refs r) {
        const k::In<float, 2> x(r[0]);
        const k::In<float, 1> w(r[1]);
        const k::Out<float, 2> y(r[2]);
        const auto row = k::program_id(0);
        const auto v = x(row, k::all).load();
        const auto d = v - k::max(v, 0);
        y(row, k::all) = d / (k::sum(d * d, 0) + 1.0f) * w(k::all).load();
      }));
  list.push_back(k::trace(
      "product", {{in, float32, {20, 24}}, {in, float32, {24, 20}}, {out, float32, {20, 20}}}, {2, 2}, [](Refs r) {
        const k::In<float, 2> a(r[0]), b(r[1]);
        const k::Out<float, 2> c(r[2]);
        const auto rows = k::ds(k::program_id(0) * 16, 16), columns = k::ds(k::program_id(1) * 16, 16);
        k::Mut sum = k::zeros<float>({16, 16});
        k::loop(0, 24, 8, [&](k::Index i) {
          const auto depth = k::ds(i, 8);
          sum = k::dot(a(rows, depth), b(depth, columns), sum.get());
        });
        c(rows, columns) = sum.get() * sum.get();
      }));
  list.push_back(k::trace("powers", {{in, float32, {6, 40}}, {out, float32, {6}}}, {6}, [](Refs r) {
    const k::In<float, 2> x(r[0]);
    const k::Out<float, 1> y(r[1]);
    const auto row = k::program_id(0);
    k::Mut v = k::full<float>({8}, 1.0f);
    k::loop(0, row + 1, 1, [&](k::Index i) { v = v.get() * x(row, k::ds(i * 8, 8)).load(1.0f) + v.get(); });
    y(row) = k::sum(v.get(), 0);
  }));
  return list;
}

struct Made {
  Kernel kernel;
  std::vector<int64_t> elements;
  int64_t programs;
};

std::vector<Made> derived() {
  std::vector<Made> list;
  for (const k::Program& program : sources()) {
    Source source{program.data().kernel, {}, {}, program.programs()};
    std::vector<char> reads, writes;
    for (const k::Param& p : program.params()) {
      source.dims.push_back(p.dims);
      source.begins.push_back(p.use != out);
      reads.push_back(p.use == in), writes.push_back(p.use == out);
    }
    for (const Derivative& d : {forward_derivative(source, reads), reverse_derivative(source, writes)}) {
      std::vector<int64_t> elements;
      for (const DerivedArray& a : d.arrays)
        elements.push_back(static_cast<int64_t>(size_of(source.dims[a.source])) * std::max<int64_t>(a.parts, 1));
      list.push_back({d.kernel, elements, d.programs});
    }
  }
  return list;
}

}  // namespace

TEST_CASE("derivatives of kernels give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases;
  for (Made& made : derived()) cases.push_back(make_case(std::move(made.kernel), made.elements, {}, made.programs));
  check_on_host(cases);
}

TEST_CASE("derivatives of kernels compile for GPUs of several kinds") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  std::string source(cuda::prelude());
  int n = 0;
  for (const Made& made : derived())
    source += cuda::render(expand(made.kernel, cuda::operators), "k" + std::to_string(n++)).source;
  for (const char* arch : {"sm_80", "sm_90a"}) CHECK(!cuda::compile(source, arch).empty());
}
