#include "compiler/plan/nested.h"

#include <cstring>

#include "base/error.h"
#include "compiler/ir/index_map.h"
#include "runtime/buffer.h"
#include "runtime/device.h"

namespace weft::compiler {
namespace {

using graph::Control;
using Pointers = std::vector<void*>;

int64_t bytes_of(const graph::Value& v) { return volume(v.shape()) * v.dtype().size(); }

std::vector<int64_t> bytes_of(const graph::Values& values) {
  std::vector<int64_t> out;
  for (const graph::Value& v : values) out.push_back(bytes_of(v));
  return out;
}

std::unique_ptr<BoundProgram> bind(const Program& program, const Nested::SymbolValue& symbol_value) {
  std::vector<int64_t> symbols;
  for (const Symbol* s : program.symbols()) symbols.push_back(symbol_value(s));
  return program.bind(symbols);
}

/// Returns the source of a loop's body: result k of the carry takes over the memory of input constants + k.
Source step_source(const Control& c) {
  Source source{c.bodies.back(), {}, {}};
  for (int k = 0; k < c.carry; ++k) source.updates.push_back({k, static_cast<int>(c.constants) + k});
  return source;
}

class NestedBase : public Nested {
 public:
  NestedBase(std::shared_ptr<const Control> control, std::vector<Source> sources, target::Target& target,
             const Policy& policy)
      : control_(std::move(control)), computes_(&target != &target::null()), device_(target.device()) {
    for (const Source& s : sources) programs_.push_back(lookup_or_build(s, target, policy));
  }

 protected:
  /// Copies the initial carry into the results, unless it is already there.
  void start_carry(std::span<void* const> operands, std::span<void* const> results) const {
    const auto& inputs = control_->bodies.back().inputs;
    for (int64_t k = 0; k < control_->carry; ++k) {
      const auto at = static_cast<size_t>(control_->constants + k);
      const auto bytes = static_cast<size_t>(bytes_of(inputs[at]));
      if (results[static_cast<size_t>(k)] == operands[at]) continue;
      if (device_) device_->copy(results[static_cast<size_t>(k)], operands[at], bytes);
      else std::memcpy(results[static_cast<size_t>(k)], operands[at], bytes);
    }
  }

  /// Reads a computed condition; on a device, waits for it.
  bool truth(const void* at) const {
    bool value = false;
    if (device_) device_->to_host(&value, at, 1);
    else value = *static_cast<const bool*>(at);
    return value;
  }

  std::shared_ptr<const Control> control_;
  bool computes_;  // false for the null target, which computes no conditions
  runtime::Accelerator* device_;
};

/// Runs one of two branches, by a computed condition.
class NestedCond : public NestedBase {
 public:
  NestedCond(std::shared_ptr<const Control> c, target::Target& target, const Policy& policy)
      : NestedBase(c, {{c->bodies[0], {}, {}}, {c->bodies[1], {}, {}}}, target, policy) {}

  void run(std::span<void* const> operands, const SymbolValue& symbol_value) const override {
    const bool taken = !computes_ || truth(operands[0]);
    auto branch = bind(*programs_[taken ? 0 : 1], symbol_value);
    const size_t inputs = control_->bodies[0].inputs.size();
    std::copy_n(operands.begin() + 1, inputs, branch->inputs.begin());
    std::copy(operands.begin() + 1 + static_cast<std::ptrdiff_t>(inputs), operands.end(), branch->outputs.begin());
    branch->run();
  }
};

/// Runs the body as long as the condition program returns true, at most max_steps times.
class NestedWhile : public NestedBase {
 public:
  NestedWhile(std::shared_ptr<const Control> c, target::Target& target, const Policy& policy)
      : NestedBase(c, {{c->bodies[0], {}, {}}, step_source(*c)}, target, policy) {}

  void run(std::span<void* const> operands, const SymbolValue& symbol_value) const override {
    const Control& c = *control_;
    const size_t inputs = c.bodies[1].inputs.size();
    const std::span<void* const> results = operands.subspan(inputs);
    start_carry(operands, results);
    if (!computes_) return;
    auto condition = bind(*programs_[0], symbol_value), step = bind(*programs_[1], symbol_value);
    for (size_t k = 0; k < inputs; ++k) {
      const auto carry = static_cast<int64_t>(k) - c.constants;
      condition->inputs[k] = step->inputs[k] = carry < 0 ? operands[k] : results[static_cast<size_t>(carry)];
    }
    const runtime::BufferRef goes_on = runtime::allocate_on(device_, 1);
    condition->outputs[0] = goes_on->on(device_);
    std::copy(results.begin(), results.end(), step->outputs.begin());
    for (int64_t n = 0; n != c.max_steps; ++n) {
      condition->run();
      if (!truth(condition->outputs[0])) break;
      step->run();
    }
  }
};

/// Runs the body once for each element along the scanned axis.
class NestedScan : public NestedBase {
 public:
  NestedScan(std::shared_ptr<const Control> c, target::Target& target, const Policy& policy)
      : NestedBase(c, {step_source(*c)}, target, policy), input_bytes_(bytes_of(c->bodies[0].inputs)),
        output_bytes_(bytes_of(c->bodies[0].outputs)) {}

  void run(std::span<void* const> operands, const SymbolValue& symbol_value) const override {
    const Control& c = *control_;
    const size_t inputs = input_bytes_.size(), constants = static_cast<size_t>(c.constants),
                 carry = static_cast<size_t>(c.carry);
    const std::span<void* const> results = operands.subspan(inputs);
    start_carry(operands, results);
    auto step = bind(*programs_[0], symbol_value);
    for (size_t k = 0; k < constants; ++k) step->inputs[k] = operands[k];
    for (size_t k = 0; k < carry; ++k) step->inputs[constants + k] = step->outputs[k] = results[k];
    const int64_t length = c.length.symbol() ? symbol_value(c.length.symbol()) : c.length.bound();
    for (int64_t n = 0; n < length; ++n) {
      const int64_t at = c.reverse ? length - 1 - n : n;
      for (size_t k = constants + carry; k < inputs; ++k)
        step->inputs[k] = static_cast<char*>(operands[k]) + at * input_bytes_[k];
      for (size_t k = carry; k < output_bytes_.size(); ++k)
        step->outputs[k] = static_cast<char*>(results[k]) + at * output_bytes_[k];
      step->run();
    }
  }

 private:
  std::vector<int64_t> input_bytes_, output_bytes_;
};

}  // namespace

std::shared_ptr<const Nested> make_nested(graph::Op op, std::shared_ptr<const Control> control, target::Target& target,
                                          const Policy& policy) {
  switch (op) {
    case graph::Op::cond: return std::make_shared<NestedCond>(std::move(control), target, policy);
    case graph::Op::while_loop: return std::make_shared<NestedWhile>(std::move(control), target, policy);
    case graph::Op::scan: return std::make_shared<NestedScan>(std::move(control), target, policy);
    default: throw_internal("nested", "not an operator of control flow");
  }
}

}  // namespace weft::compiler
