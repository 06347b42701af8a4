// Programs that wait for each other as they are rendered for a GPU: they compile, draw their numbers, and give the
// interpreter's bits, thread by thread; blocks take turns.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "target/cuda/cuda.h"
#include "target/cuda/host_kernels.h"
#include "target/waiting_cases.h"

using namespace weft;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

constexpr cuda::Features hopper{.warpgroups = true, .clusters = true};

cuda::Rendered rendered(const k::Program& program) {
  return cuda::render(kernel::expand(program.data().kernel), "k", {}, {});
}

bool has(const std::string& source, const std::string& text) { return source.find(text) != std::string::npos; }

}  // namespace

TEST_CASE("programs that wait for each other give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  const std::vector<RandomCase> cases = waiting_cases();
  check_on_host(cases);
  check_on_host(cases, {}, hopper);
}

TEST_CASE("programs of clusters give the interpreter's bits, thread by thread") {
  if (!can_run_kernels()) return;
  check_on_host(cluster_cases(), {}, hopper);
  const cuda::Rendered sums =
      cuda::render(kernel::expand(test_kernels::sums_of_clusters().data().kernel), "k", {}, hopper);
  CHECK(has(sums.source, "__cluster_dims__(4, 1, 1)"));
  CHECK(has(sums.source, "= in_block(locals, (int)("));
  CHECK(has(sums.source, "cluster_arrive(), cluster_wait();"));
  CHECK_THROWS_WITH_AS(rendered(test_kernels::sums_of_clusters()),
                       doctest::Contains("its programs run in clusters of 4, which this GPU does not have"),
                       std::invalid_argument);
}

TEST_CASE("counters are at 0 again behind a launch") {
  if (!can_run_kernels()) return;
  const std::vector<RandomCase> cases = waiting_cases();
  const HostKernels host(cases);
  for (size_t k = 0; k < cases.size(); ++k) {
    RandomCase first = cases[k], second = cases[k];
    host.run(k, first), host.run(k, second);
    CHECK(difference(first, second).empty());
  }
}

TEST_CASE("programs that wait for each other compile for GPUs of several kinds") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  for (const char* arch : {"sm_80", "sm_90a"}) {
    std::string source(cuda::prelude());
    const std::vector<RandomCase> cases = waiting_cases();
    for (size_t k = 0; k < cases.size(); ++k)
      source += cuda::render(kernel::expand(cases[k].kernel), "k" + std::to_string(k), {},
                             std::string(arch) == "sm_90a" ? hopper : cuda::Features{})
                    .source;
    if (std::string(arch) == "sm_90a")
      source += cuda::render(kernel::expand(test_kernels::sums_of_clusters().data().kernel), "c", {}, hopper).source;
    CHECK(!cuda::compile(source, arch).empty());
  }
}

TEST_CASE("programs of ordered grids draw their numbers, and those that meet are launched together") {
  const cuda::Rendered chain = rendered(test_kernels::chain()), rounds = rendered(test_kernels::rounds());
  CHECK(chain.ordered);
  CHECK(!chain.meets);
  CHECK(chain.programs == 1);  // of a block
  CHECK(has(chain.source, "program = draw_number(k_numbers + overlapping, grid, memory);"));
  CHECK(has(chain.source, "= watched("));
  CHECK(!has(chain.source, "meet_blocks(meeting"));
  CHECK(rounds.meets);
  CHECK(!rounds.ordered);
  CHECK(has(rounds.source, "if (t == 0) meet_blocks(meeting, programs);"));
  CHECK(!has(rounds.source, "= draw_number("));
}
