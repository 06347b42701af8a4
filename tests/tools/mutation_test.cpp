// The kernels of src/kernels and the rungs of the ladders, from which one wait, barrier or guard is taken away.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "array/routines/kernel_stages.h"
#include "examples/kernels/ladders/ladder.h"
#include "kernel/language/mutation.h"
#include "target/cuda/host_kernels.h"
#include "tools/weft/kernel/library.h"

using namespace weft;
using test_kernels::Bytes;
using test_kernels::Mutations;

namespace {

/// Returns arrays of random numbers; integers are `integer`, as counters and locks begin.
std::vector<Bytes> arrays_for(const k::Program& program, int64_t integer) {
  std::vector<Bytes> out = test_kernels::random_arrays(program, 7);
  for (size_t k = 0; k < out.size(); ++k)
    for (int64_t i = 0; is_integer(program.params()[k].dtype) && i < out[k].elements; ++i)
      kernel::write_element(out[k].data.data(), program.params()[k].dtype, i, Number::of_int(integer));
  return out;
}

/// Checks that 95 in 100 are found, of guards those that leave out something; others are known, each with its reason.
void check_found(const Mutations& m, const std::map<std::string, std::string>& known) {
  std::string text = fmt::format("{} taken away: {} faults, {} other results, {} guards of nothing; missed:", m.all,
                                 m.faults, m.values, m.idle);
  for (const std::string& what : m.missed) text += "\n  " + what;
  MESSAGE(text);
  CHECK((m.faults + m.values) * 100 >= (m.all - m.idle) * 95);
  for (const std::string& what : m.missed) CHECK_MESSAGE(known.contains(what), what);
}

}  // namespace

TEST_CASE("of what is taken away from the library's own kernels 95 in 100 are found") {
  if (test::sanitized) {
    MESSAGE("skipped: sanitized, which takes minutes");
    return;
  }
  Mutations found;
  for (const char* name : {"avx512", "NVIDIA A100", "NVIDIA H200"}) {
    const target::Machine& machine = target::stated_machine(name);
    for (const tool::LibraryKernel& kernel : tool::library_kernels()) {
      if (!kernel.is_made_for(machine)) continue;
      const tool::SharedProgram program = kernel.make(machine, true);
      if (!program) continue;
      const k::Program traced = traced_program(*program);
      constexpr int64_t keys = 150;  // that decoding sees: all
      found.add(traced, arrays_for(traced, keys));
    }
  }
  const char* const not_stored = "columns past the end are multiplied, and not stored";
  check_found(found, {{"gemm_cpu_blocks: load limit", not_stored},
                      {"gemm_cpu_panels: load limit", not_stored},
                      {"gemm_cpu_depth: load limit", not_stored},
                      {"gemm_cpu_depth: condition", "the limits of its stores hold, too"}});
}

TEST_CASE("of what is taken away from the rungs of ladders 95 in 100 are found") {
  if (test::sanitized) {
    MESSAGE("skipped: sanitized, which takes minutes");
    return;
  }
  Mutations found;
  for (const ladders::Entry& entry : ladders::all()) {
    const ladders::Ladder ladder = entry.make(ladders::Scale::check);
    for (const ladders::Rung& rung : ladder.rungs) {
      const ladders::AnyOrder scope(rung.any_order);
      if (!rung.program) continue;
      const k::Program program = rung.program(ladder.inputs);
      found.add(program, arrays_for(program, 0));
    }
  }
  check_found(found, {{"matmul_roles: await", "a slot that was never filled is free: the first wait ends at once"}});
}
