// Kernels of the explicit level on the CPU target: roles take turns as fibers.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "target/async_cases.h"

using namespace weft;
using namespace weft::test;

TEST_CASE("kernels of the explicit level give the interpreter's bits on a CPU") {
  for (const RandomCase& c : async_cases()) agree(c);
}

TEST_CASE("roles that wait for each other on a CPU are a failure of the launch, not its end") {
  const k::Program program = k::trace("stuck", {{k::Use::out, float32, {4}}}, {3}, [](std::span<const k::AnyRef> r) {
    const k::Barrier a, b;
    const k::Out<float, 1> y(r[0]);
    k::roles(
        {{.warps = 1, .body = [&] { a.wait(0), b.arrive(); }}, {.warps = 1, .body = [&] { b.wait(0), a.arrive(); }}});
    y(k::all) = k::zeros<float>({4});
  });
  RandomCase c = case_of(program);
  std::string message;
  try {
    run_compiled(*cpu_target("native"), c);
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  CHECK(message.find("[kernel stuck]") != std::string::npos);
  CHECK(message.find("deadlock: all roles wait for phases that none of them ends") != std::string::npos);
}
