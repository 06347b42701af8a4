// The kernels of attention that descriptors ask for (kernels/attention/desc.h): which they take, and what they compute,
// in the interpreter, against float64.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "kernel/interpret.h"
#include "kernels/attention/desc.h"
#include "kernels/attention_desc_case.h"

using namespace weft;
using namespace weft::test;
using kernel::AttentionDesc;

namespace {

const target::Machine& hopper = target::stated_machine("NVIDIA H200");
const target::Machine& ampere = target::stated_machine("NVIDIA A100");

/// An operand. The interpreter wants each in memory of its own, which `begin` elements of packed rows precede.
struct Memory {
  Dtype dtype;
  std::vector<char> bytes;

  Memory(const std::vector<double>& values, Dtype t, int64_t begin = 0) : dtype(t), bytes(encode(values, t)) {
    bytes.erase(bytes.begin(), bytes.begin() + begin * t.size());
  }
  kernel::HostBuffer buffer() { return {bytes.data(), static_cast<int64_t>(bytes.size()) / dtype.size()}; }
  std::vector<double> values() const { return decode(bytes, dtype); }
};

/// Runs the launches of a routine one after another.
void interpret(const kernel::Routine& routine, std::vector<Memory>& operands) {
  std::vector<Memory> scratch;
  for (const int64_t bytes : routine.scratch)
    scratch.emplace_back(std::vector<double>(static_cast<size_t>(bytes) / float32.size(), NAN), float32);
  for (const kernel::Routine::Launch& launch : routine.launches) {
    std::vector<kernel::HostBuffer> buffers;
    for (const int number : launch.buffers) {
      const auto b = static_cast<size_t>(number);
      buffers.push_back(b < operands.size() ? operands[b].buffer() : scratch.at(b - operands.size()).buffer());
    }
    kernel::interpret(routine.kernels[launch.kernel], buffers, launch.symbols, launch.grid);
  }
}

constexpr double untouched = 0.5;

/// Returns packed rows of dQ, dK and dV; what none of them has stays as it was.
std::vector<double> packed_results(const AttentionDesc& d, const std::vector<Memory>& operands) {
  const std::vector<double> dq = operands[6].values(), dk = operands[7].values(), dv = operands[8].values();
  std::vector<double> out(packed_size(d), untouched);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int64_t>(i), column = at % d.q[2];
    const auto of = [&](const std::vector<double>& x, int64_t begin) { return x[static_cast<size_t>(at - begin)]; };
    out[i] = column < k_begin(d) ? of(dq, 0) : column < v_begin(d) ? of(dk, k_begin(d)) : of(dv, v_begin(d));
  }
  return out;
}

/// Runs the forward pass, or the derivative, of packed rows, and checks the results.
void check_desc(const AttentionDesc& d, const target::Machine& machine) {
  CAPTURE(d.to_string());
  CAPTURE(machine.name);
  const std::optional<kernel::Routine> routine = kernels::attention_routine(d, machine);
  REQUIRE(routine);
  PackedAttention x = reference(d);
  const auto given = [&](const std::vector<double>& result) {
    return d.derivative ? result : std::vector<double>(result.size(), untouched);
  };
  std::vector<Memory> operands;
  for (const int64_t begin : {int64_t{0}, k_begin(d), v_begin(d)}) operands.emplace_back(x.qkv, d.dtype, begin);
  operands.emplace_back(given(x.o), d.dtype), operands.emplace_back(given(x.lse), float32);
  if (d.derivative) operands.emplace_back(x.g, d.dtype);
  for (const int64_t begin : {int64_t{0}, k_begin(d), v_begin(d)})
    if (d.derivative) operands.emplace_back(std::vector<double>(x.qkv.size(), untouched), d.dtype, begin);
  interpret(*routine, operands);
  if (!d.derivative) return check_attention(d, x, operands[3].values(), operands[4].values());
  // Rows that the shorter one of queries and keys lacks are nobody's.
  const int64_t longest = std::max(d.queries, d.keys);
  for (size_t i = 0; i < x.dqkv.size(); ++i) {
    const auto at = static_cast<int64_t>(i), row = at / d.q[2] % longest, column = at % d.q[2];
    if (row >= (column < k_begin(d) ? d.queries : d.keys)) x.dqkv[i] = untouched;
  }
  check_derivative(d, x, packed_results(d, operands));
}

AttentionDesc changed(const std::function<void(AttentionDesc&)>& change, bool derivative = false) {
  AttentionDesc d = packed(bfloat16, 2, 4, 2, 128, 128, 64, true, derivative);
  change(d);
  return d;
}

}  // namespace

TEST_CASE("attention of descriptors in packed rows, and its derivative, in the interpreter") {
  for (const bool derivative : {false, true}) {
    for (const target::Machine* machine : {&hopper, &ampere}) {
      check_desc(packed(bfloat16, 1, 2, 2, 128, 128, 64, true, derivative), *machine);
      check_desc(packed(float16, 2, 2, 1, 75, 75, 64, true, derivative), *machine);
      check_desc(packed(bfloat16, 1, 4, 2, 33, 75, 64, true, derivative), *machine);
    }
    check_desc(packed(float16, 1, 3, 3, 65, 40, 64, false, derivative), hopper);
    check_desc(packed(bfloat16, 1, 2, 1, 70, 130, 128, false, derivative), hopper);
    check_desc(packed(bfloat16, 1, 1, 1, 129, 129, 128, true, derivative), hopper);
    check_desc(packed(bfloat16, 1, 2, 2, 40, 40, 24, true, derivative), hopper);
  }
}

TEST_CASE("attention of descriptors: heads that lie apart, and values of another width") {
  for (const bool derivative : {false, true}) {
    AttentionDesc d = packed(bfloat16, 2, 2, 2, 65, 65, 64, true, derivative);
    const kernels::Attention in_rows = kernels::attention_of(d);
    CHECK(in_rows.batch == std::vector<int64_t>{2, 2});
    CHECK(in_rows.q.row == 6 * 64);
    d.q = {2 * 65 * 64, 65 * 64, 64, 1}, d.value_width = 32;
    const kernels::Attention apart = kernels::attention_of(d);
    CHECK(apart.q.batch == std::vector<int64_t>{2 * 65 * 64, 65 * 64});
    CHECK(apart.q.row == 64);
    CHECK(apart.value_width == 32);
    CHECK(static_cast<bool>(apart.dk) == derivative);
    CHECK(kernels::attention_routine(d, hopper));
  }
  // Heads that share a key head are an axis of their own, along which the gradients of keys are summed.
  const kernels::Attention shared = kernels::attention_of(packed(bfloat16, 2, 6, 2, 64, 64, 64, true, true));
  CHECK(shared.batch == std::vector<int64_t>{2, 2, 3});
  CHECK(shared.q.batch[1] == 3 * 64);
  CHECK(shared.q.batch[2] == 64);
  for (const kernels::AttentionArray* x : {&shared.k, &shared.v, &shared.dk, &shared.dv}) CHECK(x->batch[2] == 0);
}

TEST_CASE("attention of descriptors: what the kernels do not take") {
  const auto takes = [](const AttentionDesc& d, const target::Machine& machine = hopper) {
    return kernels::attention_routine(d, machine).has_value();
  };
  const auto same = [](AttentionDesc&) {};
  CHECK(takes(changed(same)));
  CHECK(takes(changed(same, true)));
  CHECK_FALSE(takes(changed(same), target::cpu().machine()));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.dtype = float32; })));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.dtype = float64; })));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.q[2] += 1; })));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.k[3] = 2; })));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.v[0] = -d.v[0]; })));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.o[1] = 0; })));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.dv[2] = 0; }, true)));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.g[2] += 4; }, true)));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.keys = 100; })));  // the first queries see no key
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.kv_heads = 3; })));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.queries = 0; })));
  // Sums and scores of such rows have no registers.
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.width = d.value_width = 512; })));
  CHECK_FALSE(takes(changed([](AttentionDesc& d) { d.width = d.value_width = 512; }, true)));
}

TEST_CASE("attention of descriptors is compiled beside a library's only where it takes a while") {
  CHECK_FALSE(kernels::attention_may_win(packed(bfloat16, 2, 4, 4, 128, 128, 64, true)));
  CHECK_FALSE(kernels::attention_may_win(packed(bfloat16, 2, 4, 4, 128, 128, 64, true, true)));
  CHECK(kernels::attention_may_win(packed(bfloat16, 8, 12, 12, 1024, 1024, 64, true)));
  CHECK(kernels::attention_may_win(packed(bfloat16, 8, 12, 12, 1024, 1024, 64, true, true)));
}
