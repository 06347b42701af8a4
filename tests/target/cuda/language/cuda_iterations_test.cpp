// Parallel iterations of users' kernels as they are rendered for a GPU: by warps, by blocks of a cluster and in turn
// they give the interpreter's bits; who runs them is decided by rule or by the launch.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/language/parallel_kernels.h"
#include "target/cuda/cuda.h"
#include "target/cuda/cuda_support.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/host_kernels.h"
#include "target/cuda/language/traced_case.h"

using namespace weft;
using namespace weft::test;
namespace cuda = weft::target::cuda;

namespace {

constexpr cuda::Features ampere{}, hopper{.warpgroups = true, .clusters = true};
constexpr int in_turn = 1, by_warps = 2, by_blocks = 3;

kernel::Kernel kernel_of(const k::Program& program, const kernel::LaunchOptions& launch) {
  kernel::Kernel out = kernel::expand(program.data().kernel);
  out.launch = launch;
  return out;
}

cuda::Rendered rendered(const k::Program& program, const kernel::LaunchOptions& launch = {},
                        const cuda::Features& features = hopper) {
  return cuda::render(kernel_of(program, launch), "k", {}, features);
}

std::string refusal(const k::Program& program, const kernel::LaunchOptions& launch,
                    const cuda::Features& features = hopper) {
  try {
    rendered(program, launch, features);
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Returns who runs the iterations: "8 warps", "4 blocks of a cluster", "all threads in turn".
std::string who(const cuda::Rendered& r) {
  const std::string before = "parallel iterations by ";
  const size_t at = r.source.find(before) + before.size();
  const std::string line = r.source.substr(at, r.source.find('\n', at) - at);
  return line.substr(0, std::min(line.find(':'), line.find(',')));
}

std::vector<k::Program> programs() {
  std::vector<k::Program> out;
  for (const int64_t parts : {2, 5, 8, 32}) out.push_back(test_kernels::by_parts(parts));
  for (const int64_t parts : {4, 6, 16}) {
    out.push_back(test_kernels::two_loops(parts));
    out.push_back(test_kernels::rows_of_scratch(parts));
    out.push_back(test_kernels::lanes_of_parts(parts));
  }
  return out;
}

std::vector<RandomCase> cases_with(const kernel::LaunchOptions& launch) {
  std::vector<RandomCase> out;
  for (const k::Program& p : programs()) {
    out.push_back(traced_case(p));
    out.back().kernel.launch = launch;
  }
  return out;
}

/// Checks that what a case writes ends near what the interpreter leaves.
void check_near(const RandomCase& got, const RandomCase& wanted) {
  for (size_t p = 0; p < got.buffers.size(); ++p) {
    const auto values = [&](const RandomCase& x) {
      const char* const data = reinterpret_cast<const char*>(x.buffers[p].data());
      return decode({data, data + x.buffers[p].size()}, x.kernel.params[p].dtype);
    };
    if (got.kernel.params[p].written) CHECK(beside_largest(values(got), values(wanted)) < 1e-5);
  }
}

void check_near(const RandomCase& c, target::Target& device) {
  RandomCase got = c;
  run_compiled(device, got);
  check_near(got, interpreted(c));
}

/// Checks that a product ends as the interpreter leaves it, but for the order in which tensor cores add.
void check_product(const kernel::LaunchOptions& launch, const cuda::Features& features) {
  RandomCase c = traced_case(test_kernels::divided_depth(4));
  c.kernel.launch = launch;
  const HostKernels host(std::vector{c}, {}, features);
  RandomCase got = c;
  host.run(0, got);
  check_near(got, interpreted(c));
}

}  // namespace

TEST_CASE("parallel iterations give the interpreter's bits by rule, thread by thread") {
  if (!can_run_kernels()) return;
  check_on_host(cases_with({}), {}, ampere);
  check_on_host(cases_with({}), {}, hopper);
}

TEST_CASE("parallel iterations give the interpreter's bits by warps, blocks and in turn, thread by thread") {
  if (!can_run_kernels()) return;
  check_on_host(cases_with({.iterations = by_warps}), {}, ampere);
  check_on_host(cases_with({.warps = 4, .iterations = by_warps}), {}, ampere);
  check_on_host(cases_with({.iterations = by_blocks}), {}, hopper);
  check_on_host(cases_with({.cluster = 2}), {.aligned = false}, hopper);
  check_on_host(cases_with({.iterations = in_turn}), {}, hopper);
}

TEST_CASE("products of parallel iterations by blocks of a cluster, thread by thread") {
  if (!can_run_kernels()) return;
  check_product({.iterations = by_blocks}, hopper);
  check_product({.cluster = 2}, {.clusters = true});
  check_product({}, ampere);
}

TEST_CASE("the rule: warps where their tiles suit, blocks where the device has clusters, else in turn") {
  using namespace test_kernels;
  CHECK(who(rendered(by_parts(8))) == "8 warps");
  CHECK(rendered(by_parts(8)).threads == 256);
  CHECK(who(rendered(by_parts(32), {}, ampere)) == "16 warps");
  CHECK(who(rendered(by_parts(6))) == "2 warps");
  CHECK(who(rendered(by_parts(5))) == "5 blocks of a cluster");  // a loop each, and no even number
  CHECK(rendered(by_parts(5)).blocks == 5);
  CHECK(who(rendered(by_parts(5), {}, ampere)) == "all threads in turn");
  CHECK(who(rendered(divided_depth(4))) == "4 blocks of a cluster");
  CHECK(who(rendered(divided_depth(4), {}, ampere)) == "all threads in turn");
  CHECK(who(rendered(shared_tile(4))) == "all threads in turn");  // too little for a cluster
  CHECK(who(rendered(by_parts(8), {.warps = 4})) == "4 warps");
  CHECK(who(rendered(by_parts(8), {.iterations = in_turn})) == "all threads in turn");
  CHECK(who(rendered(by_parts(8), {.cluster = 4})) == "4 blocks of a cluster");
}

TEST_CASE("a launch whose iterations cannot run as it asks is refused with the line and the reason") {
  using namespace test_kernels;
  const std::string tile = refusal(shared_tile(4), {.iterations = by_warps});
  CHECK(has(tile, "[kernel shared_tile] "));
  CHECK(has(tile, "parallel_kernels.h:"));
  CHECK(has(tile, "its 4 parallel iterations are asked to run by warps, which they cannot: an iteration reads a tile"));
  CHECK(has(refusal(divided_depth(4), {.iterations = by_warps}), "the kernel multiplies matrices"));
  CHECK(has(refusal(by_parts(8), {.iterations = by_blocks}, ampere), "this GPU has no clusters"));
  CHECK(has(refusal(by_parts(4), {.cluster = 8}), "a cluster of 8 blocks is asked for, and 4 is the most"));
  CHECK(has(refusal(by_parts(4), {.warps = 1, .iterations = by_warps}), "the launch asks for one warp"));
  const auto twice = [](const auto& between) {
    return k::trace("twice", {array_of(k::Use::out, {4})}, {1}, [&](std::span<const k::AnyRef> r) {
      const k::Out<float, 1> y(r[0]);
      const auto kept = k::scratch<float>({4});
      k::parallel(4, [&](const k::Index& i) { kept(i) = k::cast<float>(i); });
      between(kept);
      k::parallel(4, [&](const k::Index& i) { y(i) = k::sum(kept(k::all).load(), 0); });
    });
  };
  const kernel::LaunchOptions blocks{.iterations = by_blocks};
  CHECK(has(refusal(twice([](const auto& kept) { kept(0) = 1.0f; }), blocks), "is stored between two loops as well"));
  CHECK(has(refusal(twice([](const auto&) { k::print("here"); }), blocks), "what stands before them prints"));
  CHECK(refusal(twice([](const auto&) {}), blocks).empty());
  CHECK(who(rendered(twice([](const auto& kept) { kept(0) = 1.0f; }))) == "4 warps");
  const auto plain = k::trace("plain", {array_of(k::Use::out, {2})}, {2}, [](std::span<const k::AnyRef> r) {
    const k::Out<float, 1> y(r[0]);
    y(k::program_id(0)) = 1.0f;
  });
  CHECK(has(refusal(plain, {.iterations = by_warps}), "parallel iterations side by side, and has none"));
  CHECK(has(refusal(plain, {.cluster = 2}), "clusters of 2 blocks, and has no parallel loop"));
}

TEST_CASE("parallel iterations compile for GPUs of several kinds") {
  std::string why;
  if (!cuda::nvrtc_available(&why)) {
    MESSAGE("skipped: " << why);
    return;
  }
  std::vector<k::Program> all = programs();
  all.push_back(test_kernels::divided_depth(4));
  all.push_back(test_kernels::shared_tile(4));
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"}) {
    CAPTURE(arch);
    const cuda::Features features = cuda::features_of(target::gpu_of(arch));
    std::string source(cuda::prelude());
    int number = 0;
    const auto add = [&](const k::Program& p, const kernel::LaunchOptions& launch) {
      source += cuda::render(kernel_of(p, launch), "k" + std::to_string(number++), {}, features).source;
    };
    for (const k::Program& p : all) {
      add(p, {});
      if (refusal(p, {.iterations = by_warps}, features).empty()) add(p, {.iterations = by_warps});
      if (features.clusters) add(p, {.iterations = by_blocks});
    }
    CHECK(!cuda::compile_ptx(source, arch).empty());
    if (arch == std::string("sm_90a")) CHECK(!cuda::compile(source, arch).empty());
  }
}

TEST_CASE("parallel iterations give the interpreter's results on the device") {
  if (!on_device()) return;
  target::Target& device = target_under_test();
  for (const kernel::LaunchOptions& launch : std::vector<kernel::LaunchOptions>{
           {}, {.iterations = in_turn}, {.iterations = by_warps}, {.iterations = by_blocks}, {.cluster = 2}}) {
    if (!device.machine().has_clusters() && (launch.iterations == by_blocks || launch.cluster > 1)) continue;
    CAPTURE(launch.iterations);
    for (const RandomCase& c : cases_with(launch)) {
      CAPTURE(c.kernel.name);
      agree(c);  // bit for bit, but those with functions of the device's own
      check_near(c, device);
    }
    RandomCase product = traced_case(test_kernels::divided_depth(4));
    product.kernel.launch = launch;
    if (launch.iterations != by_warps) check_near(product, device);
  }
}
