// Chooses the products of a user's kernel that warpgroups multiply (wgmma, sm_90a), and how many warpgroups a program
// has. All products of a kernel are multiplied in one way, because their accumulators meet.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kernel/code/counterpart.h"
#include "kernel/op_info.h"
#include "kernel/rules.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;
using kernel::Type;
using kernel::Value;

namespace {

constexpr int64_t rows_of_group = 64, most_columns = 256;
constexpr int by_wgmma = 1;  // as a launch says
constexpr int64_t registers_of_sm = 65536, most_registers = 255;
constexpr int64_t shared_of_sm = 226 << 10;
constexpr int64_t most_shared_bytes = 227 << 10;   // of a block where there are warpgroups
constexpr int64_t most_bytes_of_warps = 48 << 10;  // of a block whose warps have iterations by rule: any GPU has them

/// Returns the elements of the accumulators that live together: those of a block's products.
int64_t accumulators(const Uses& uses, const std::vector<const Inst*>& dots) {
  std::map<const kernel::Block*, int64_t> of_block;
  for (const Inst* dot : dots) of_block[uses.made.at(dot->results[0]).block] += dot->type.size();
  int64_t most = 0;
  for (const auto& [block, elements] : of_block) most = std::max(most, elements);
  return most;
}

/// `elements`: of accumulators, and whatever else takes a register each.
bool fit(const std::vector<const Inst*>& dots, int64_t elements, int groups) {
  const int64_t has = std::min(most_registers, registers_of_sm / (128 * groups));
  return elements / (128 * groups) + other_registers <= has &&
         std::all_of(dots.begin(), dots.end(),
                     [&](const Inst* dot) { return dot->type.dims[0] % (rows_of_group * groups) == 0; });
}

}  // namespace

std::string Operand::position(const std::string& line, const std::string& chunk) const {
  if (padded) return fmt::format("(({}) * {} + ({})) * 16", line, chunks(), chunk);
  return panel > 0 ? fmt::format("in_panels<{}, {}>({}, {})", lines, panel, line, chunk)
                   : fmt::format("swizzled<{}>({}, {})", chunks(), line, chunk);
}

int64_t Operand::bytes() const {
  return panel > 0 ? (lines * copied_length() * dtype.size() + 1023) / 1024 * 1024
                   : (lines * chunks() * 16 + 127) / 128 * 128;
}

/// Returns why warpgroups do not compute a dot; empty where they do. They read 16-bit operands in any order and others
/// along the contracted axis alone, which 8 bits are staged along.
std::string Renderer::refusal_of_warpgroups(const Uses& uses, const Inst& dot) const {
  const Dtype operands = type(dot.args[0]).dtype;
  if (dot.type.dims[0] % rows_of_group != 0)
    return fmt::format("has {} rows, no multiple of {}", dot.type.dims[0], rows_of_group);
  if (dot.type.dims[1] > most_columns)
    return fmt::format("has {} columns, more than {}", dot.type.dims[1], most_columns);
  if (operands == float32 && dot.precision != kernel::DotPrecision::tf32)
    return dot.precision == kernel::DotPrecision::exact ? "multiplies float32 exactly" : "multiplies TF32 three times";
  if (operands.size() < 4) return "";
  for (const size_t side : {0, 1}) {
    const Operand x = operand_of(uses, products_.at(dot.results[0]), side);
    if (!x.load)
      return fmt::format("multiplies {} that is computed, or not copied in whole words", dtype_name(operands));
    if (!x.depth_inside)
      return fmt::format("multiplies {} whose lines do not run along the contracted axis", dtype_name(operands));
  }
  return "";
}

/// Returns the bytes that an iteration loads into registers, one each, to stage them as operands.
int64_t Renderer::staged_bytes(const Uses& uses, const std::vector<const Inst*>& dots) const {
  int64_t out = 0;
  for (const Inst* dot : dots)
    for (const size_t side : {0, 1}) {
      const Operand x = operand_of(uses, products_.at(dot->results[0]), side);
      if (x.dtype.size() == 1 && !x.load) out += type(x.value).size();
    }
  return out;
}

/// Returns why warpgroups do not multiply the products of the kernel; empty where they do, and then sets their number.
std::string Renderer::choose_warpgroups(const Uses& uses, const std::vector<const Inst*>& dots) {
  if (!no_warpgroups_.empty()) return no_warpgroups_;
  if (!features_.warpgroups) return "it is not compiled for sm_90a";
  if (kernel_.launch.instruction > by_wgmma) return "the launch asks for another instruction";
  for (const Inst* dot : dots)
    if (const std::string why = refusal_of_warpgroups(uses, *dot); !why.empty())
      return fmt::format("dot %{} {}", dot->results[0], why);
  const int64_t elements = accumulators(uses, dots) + staged_bytes(uses, dots);
  if (kernel_.launch.ping_pong == 1 && no_turns_.empty()) {
    if (fit(dots, elements, 1) && elements / 128 + other_registers <= most_of_three &&
        (kernel_.launch.warps == 0 || kernel_.launch.warps == 4)) {
      warpgroups_ = 1, sets_ = 2, blocks_ = 1;
      registers_ = elements / 128 + other_registers;
      return "";
    }
    no_turns_ = kernel_.launch.warps > 4 ? "the launch asks for more than the four warps of a program"
                                         : "its accumulators take more registers than a warpgroup has";
  }
  for (const int groups : {2, 1, 3, 4}) {
    if (kernel_.launch.warps > 0 && kernel_.launch.warps != 4 * groups) continue;
    if (!fit(dots, elements, groups)) continue;
    warpgroups_ = groups;
    const int64_t registers = elements / (128 * groups) + other_registers;
    registers_ = registers;
    blocks_ = registers * 128 * groups * 2 <= registers_of_sm ? 2 : 1;
    return "";
  }
  return "their accumulators take more registers than threads have, or their rows are no multiple of 64 for each "
         "warpgroup";
}

/// Returns whether programs that share an SM leave registers to a warp more in each. A quarter of an SM has a quarter
/// of the registers and of the warps.
bool Renderer::registers_for_copies() const {
  constexpr int64_t unit = 8, lanes = 32, quarters = 4;
  const int64_t warps = (blocks_ * (threads_ / lanes + 1) + quarters - 1) / quarters;
  const int64_t registers = registers_ + made_registers_ + early_registers_;
  return registers <= registers_of_sm / quarters / lanes / warps / unit * unit;
}

/// Lets three programs share an SM where products wait for each other's results, as in attention: two leave tensor
/// cores idle while both begin or end.
void Renderer::share_by_three() {
  const bool waits = products_.size() > 1 &&
                     std::none_of(products_.begin(), products_.end(), [](const auto& p) { return p.second.in_place; });
  if (blocks_ != 2 || !waits) return;
  blocks_ = 3;
  if (!registers_for_copies()) blocks_ = 2;
}

/// Returns the bytes of the L1 that what loops load early wants, since a line of scales is read again in the iterations
/// that follow. The L1 has what shared memory leaves of an SM.
int64_t Renderer::early_bytes() const {
  constexpr int64_t line = 128, most = 48 << 10;
  int64_t lines = 0;
  for (const auto& [loop, ring] : early_)
    for (const Inst& i : loop->blocks[0].insts) {
      if (i.results.size() != 1 || std::find(ring.loads.begin(), ring.loads.end(), i.results[0]) == ring.loads.end())
        continue;
      int64_t apart = 1;
      for (size_t axis = 0; axis < i.strides.size(); ++axis)
        if (i.strides[axis] * i.type.dtype.size() >= line) apart *= i.type.dims[axis];
      lines += apart;
    }
  return std::min(most, lines * line);
}

/// Returns the bytes that the stages of a program may take.
int64_t Renderer::bytes_of_stages() const {
  constexpr int64_t of_two_blocks = 96 << 10, reserved = 1 << 10;  // of each block
  if (warpgroups_ == 0) return of_two_blocks;
  const int64_t stored = box_stores_.empty() ? 0 : least_spaces() * BoxStore::bytes * warpgroups_ * sets_;
  const int64_t loaded = box_loads_.empty() ? 0 : load_spaces_ * load_space_bytes_;
  return (shared_of_sm - early_bytes()) / blocks_ - reserved - exchanged_bytes_ - stored - loaded;
}

/// Decides which products accumulate where the loop around them carries their sum, while the next iteration begins:
/// their operands are copied ahead or the same in all iterations, and nothing but the loop reads the sum.
void Renderer::find_in_place(const Uses& uses) {
  // Prints call a function, before which ptxas has all products wait.
  const auto calls = [](const Uses::Position& x) { return x.inst->op == Op::print || x.inst->op == Op::assert_; };
  if (std::any_of(uses.order.begin(), uses.order.end(), calls)) return;
  for (auto& [dot, product] : products_) {
    if (!product.loop || (product.a.in_registers && !made_in_registers_.contains(product.a.value))) continue;
    const kernel::Block& body = product.loop->blocks[0];
    const Value c = product.start(), result = product.result();
    const auto carried = std::find(body.arguments.begin() + 1, body.arguments.end(), c);
    if (carried == body.arguments.end() || !uses.read_once(c) || !uses.read_once(result)) continue;
    if (body.insts.back().args[static_cast<size_t>(carried - body.arguments.begin() - 1)] != result) continue;
    const auto stays = [&](const Operand& x) { return x.ahead || (x.load && uses.made.at(x.value).block != &body); };
    // What an iteration computes is staged while the tensor cores multiply what the one before has staged.
    const auto made = [&](const Operand& x) {
      return !x.load && uses.made.contains(x.value) && uses.made.at(x.value).block == &body;
    };
    product.in_place = (stays(product.a) || made(product.a)) && (stays(product.b) || made(product.b));
    for (Operand* x : {&product.a, &product.b}) x->in_turns = product.in_place && made(*x) && !x->in_registers;
  }
}

/// Renders a kernel; again, where the first attempt finds that something is not possible after all.
static Rendered rendered(const kernel::Kernel& kernel, const std::string& symbol, const Variant& variant,
                         const Features& features) {
  Renderer::Refused refused;
  for (;;) {
    Renderer renderer(kernel, variant, features, refused);
    if (const std::string why = renderer.why_no_turns(); !why.empty()) {
      refused.turns = why;
      continue;
    }
    if (renderer.lacks_singles()) {
      refused.singles = true;
      continue;
    }
    const Rendered out = renderer.run(symbol);
    if (renderer.has_warps_by_rule() && out.shared_bytes > most_bytes_of_warps) {
      refused.warps_of_iterations = true;
      continue;
    }
    const bool fits = !features.warpgroups || out.shared_bytes <= most_shared_bytes || !kernel.any_size;
    if (fits || !refused.warpgroups.empty()) return out;
    refused.warpgroups = fmt::format("its tiles would take {} bytes of shared memory", out.shared_bytes);
  }
}

Rendered render(const kernel::Kernel& kernel, const std::string& symbol, const Variant& variant,
                const Features& features) {
  return rendered(kernel::has_code(kernel.body) ? kernel::without_counterparts(kernel) : kernel, symbol, variant,
                  features);
}

}  // namespace weft::target::cuda
