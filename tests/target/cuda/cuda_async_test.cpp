// Kernels of the explicit level as they are rendered for a GPU: they compile for each architecture, use the hardware's
// copies and barriers, and give the interpreter's bits, thread by thread.
#include <doctest/doctest.h>

#include "target/async_cases.h"
#include "target/cuda/cuda.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/host_kernels.h"

using namespace weft;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

constexpr cuda::Features hopper{.warpgroups = true, .clusters = true};

std::string rendered(const k::Program& program, const cuda::Features& features = {}) {
  return cuda::render(kernel::expand(program.data().kernel), "k", {}, features).source;
}

bool has(const std::string& source, const std::string& text) { return source.find(text) != std::string::npos; }

bool no_compiler() {
  std::string why;
  if (cuda::nvrtc_available(&why)) return false;
  MESSAGE("skipped: " << why);
  return true;
}

/// Whole tiles in row-major slots: rows that the hardware copies by itself.
k::Program whole_rows() {
  constexpr int64_t rows = 8, n = 64;
  return k::trace("whole_rows", {{k::Use::in, float32, {rows, n}}, {k::Use::out, float32, {rows, n}}}, {1},
                  [](std::span<const k::AnyRef> r) {
                    const k::In<float, 2> x(r[0]);
                    const k::Out<float, 2> y(r[1]);
                    const auto slots = k::shared<float>({2, 2, n});
                    const k::Pipeline pipe(2);
                    k::roles({{.warps = 1,
                               .body =
                                   [&] {
                                     k::loop(rows / 2, [&](k::Index i) {
                                       pipe.acquire(i);
                                       pipe.copy(i, slots(pipe.slot(i), k::all, k::all), x(k::ds(i * 2, 2), k::all));
                                       pipe.commit(i);
                                     });
                                   }},
                              {.warps = 1, .body = [&] {
                                 k::loop(rows / 2, [&](k::Index i) {
                                   pipe.wait(i);
                                   y(k::ds(i * 2, 2), k::all) = slots(pipe.slot(i), k::all, k::all) * 3.f;
                                   pipe.release(i);
                                 });
                               }}});
                  });
}

/// Tiles that pass the edges of an array, as one box each: turned in shared memory.
k::Program boxes(k::SharedLayout layout, int64_t side) {
  constexpr int64_t rows = 70, n = 44;
  return k::trace("boxes", {{k::Use::in, float32, {rows, n}}, {k::Use::out, float32, {n, rows}}},
                  {k::cdiv(rows, side), k::cdiv(n, side)}, [=](std::span<const k::AnyRef> r) {
                    const k::In<float, 2> x(r[0]);
                    const k::Out<float, 2> y(r[1]);
                    const auto down = k::ds(k::program_id(0) * side, side),
                               across = k::ds(k::program_id(1) * side, side);
                    const auto first = k::shared<float>({3});
                    const auto kept = k::shared<float>({2, side, side}, layout);
                    const k::Barrier come;
                    first(0) = 1.f;
                    come.copy(kept(1, k::all, k::all), x(down, across));
                    come.arrive();
                    come.wait(0);
                    y(across, down) = k::trans(kept(1, k::all, k::all)) * first(0);
                  });
}

}  // namespace

TEST_CASE("kernels of the explicit level give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  std::vector<RandomCase> cases = async_cases();
  cases.push_back(case_of(whole_rows()));
  cases.push_back(case_of(boxes(k::SharedLayout::swizzle128, 32)));
  cases.push_back(case_of(boxes(k::SharedLayout::swizzle64, 16)));
  check_on_host(cases);
  check_on_host(cases, {.aligned = false});
  check_on_host(cases, {}, hopper);
}

TEST_CASE("kernels of the explicit level compile for GPUs of several kinds") {
  if (no_compiler()) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    std::string source(cuda::prelude());
    std::vector<RandomCase> cases = async_cases();
    cases.push_back(case_of(whole_rows()));
    cases.push_back(case_of(boxes(k::SharedLayout::swizzle128, 32)));
    for (size_t k = 0; k < cases.size(); ++k)
      source += cuda::render(kernel::expand(cases[k].kernel), "k" + std::to_string(k), {},
                             std::string(arch) == "sm_90a" ? hopper : cuda::Features{})
                    .source;
    CHECK(!cuda::compile(source, arch).empty());
  }
}

TEST_CASE("copies and barriers are the hardware's where rows are aligned") {
  const std::string groups = rendered(test_kernels::sums_by_roles(1).program);
  CHECK(has(groups, "swizzled<128, 4>("));
  CHECK(has(groups, "copy_async(shared_address("));
  CHECK(has(groups, "track_copies(shared_address("));
  CHECK(has(groups, "sync_role<2, 64>();"));
  CHECK(has(groups, "begin_barrier(shared_address("));
  const std::string few = rendered(test_kernels::ring_of_groups(3, k::SharedLayout::row_major).program);
  CHECK(has(few, "copy_few_async<8>("));
  CHECK(has(few, "wait_copies<2>();"));
  const std::string bulk = rendered(whole_rows(), hopper);
  CHECK(has(bulk, "copy_bulk(shared_address("));
  CHECK(has(bulk, ", 512);"));  // two rows of 256 bytes
  CHECK(!has(rendered(whole_rows()), "copy_bulk("));
  const std::string box = rendered(boxes(k::SharedLayout::swizzle128, 32), hopper);
  CHECK_MESSAGE(has(box, "copy_box(shared_address("), box);
  CHECK(has(box, "TensorMap map0"));
  CHECK(!has(rendered(boxes(k::SharedLayout::padded, 32), hopper), "copy_box("));
  CHECK(!has(rendered(boxes(k::SharedLayout::swizzle128, 32)), "copy_box("));
}

TEST_CASE("roles get their registers on a device that can share them out") {
  const k::Program product = test_kernels::product_by_roles().program;
  const std::string source = rendered(product, hopper);
  CHECK(has(source, "set_registers<false, 40>();"));
  CHECK(has(source, "set_registers<false, 160>();"));
  CHECK(has(source, "__launch_bounds__(256, 1)"));
  CHECK(!has(rendered(product), "set_registers"));
}
