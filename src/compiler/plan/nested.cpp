#include "compiler/plan/nested.h"

#include <cstring>

#include "base/error.h"
#include "compiler/ir/index_map.h"
#include "compiler/plan/arena.h"
#include "compiler/plan/loop_carry.h"
#include "runtime/device.h"

namespace weft::compiler {
namespace {

using graph::Control;
using Kind = CarryBuffer::Kind;

std::vector<int64_t> bytes_of(const graph::Values& values) {
  std::vector<int64_t> out;
  for (const graph::Value& v : values) out.push_back(volume(v.shape()) * v.dtype().size());
  return out;
}

void* moved(void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; }

class NestedBase : public Nested {
 public:
  NestedBase(std::shared_ptr<const Control> control, target::Target& target)
      : control_(std::move(control)), computes_(&target != &target::null()), device_(target.device()) {}

 protected:
  /// Builds a program and reserves memory for what it keeps between its steps.
  const Program& add(const Source& source, target::Target& target, const Policy& policy) {
    programs_.push_back(lookup_or_build(source, target, policy));
    arenas_.push_back(reserve(programs_.back()->stats().arena_bytes));
    return *programs_.back();
  }

  /// Returns the offset of `bytes` more of scratch memory.
  int64_t reserve(int64_t bytes) {
    const int64_t offset = scratch_bytes_;
    scratch_bytes_ += (bytes + arena_alignment - 1) / arena_alignment * arena_alignment;
    return offset;
  }

  std::unique_ptr<BoundProgram> bind(size_t program, void* scratch, const SymbolValue& symbol_value) const {
    std::vector<int64_t> symbols;
    for (const Symbol* s : programs_[program]->symbols()) symbols.push_back(symbol_value(s));
    const bool keeps = programs_[program]->stats().arena_bytes > 0;
    return programs_[program]->bind(symbols, keeps ? moved(scratch, arenas_[program]) : nullptr);
  }

  void copy(void* to, const void* from, int64_t bytes) const {
    if (to == from) return;
    if (device_) device_->copy(to, from, static_cast<size_t>(bytes));
    else std::memcpy(to, from, static_cast<size_t>(bytes));
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

 private:
  std::vector<int64_t> arenas_;  // by program: the offset of its arena in the scratch memory
};

/// Runs one of two branches, by a computed condition.
class NestedCond : public NestedBase {
 public:
  NestedCond(std::shared_ptr<const Control> c, target::Target& target, const Policy& policy)
      : NestedBase(std::move(c), target) {
    for (const graph::Graph& branch : control_->bodies) add({branch, {}, {}}, target, policy);
  }

  void run(std::span<void* const> operands, void* scratch, const SymbolValue& symbol_value) const override {
    const bool taken = !computes_ || truth(operands[0]);
    auto branch = bind(taken ? 0 : 1, scratch, symbol_value);
    const size_t inputs = control_->bodies[0].inputs.size();
    std::copy_n(operands.begin() + 1, inputs, branch->inputs.begin());
    std::copy(operands.begin() + 1 + static_cast<std::ptrdiff_t>(inputs), operands.end(), branch->outputs.begin());
    branch->run();
  }
};

/// A loop: the program of its body, and memory for its carry.
class NestedLoop : public NestedBase {
 public:
  NestedLoop(std::shared_ptr<const Control> c, target::Target& target)
      : NestedBase(std::move(c), target), body_(*control_), constants_(static_cast<size_t>(control_->constants)),
        carry_(static_cast<size_t>(control_->carry)), input_bytes_(bytes_of(control_->bodies.back().inputs)) {}

 protected:
  void add_body(target::Target& target, const Policy& policy) {
    body_.settle(add(body_.source, target, policy), *control_);
    for (size_t k = 0; k < carry_; ++k)
      second_.push_back(body_.carry[k].kind == Kind::alternating ? reserve(carry_bytes(k)) : 0);
  }

  int64_t carry_bytes(size_t k) const { return input_bytes_[constants_ + k]; }
  void set_output(BoundProgram& step, size_t result, void* at) const {
    if (body_.output_of[result] >= 0) step.outputs[static_cast<size_t>(body_.output_of[result])] = at;
  }

  LoopBody body_;
  size_t constants_, carry_;
  std::vector<int64_t> input_bytes_;
  std::vector<int64_t> second_;  // by part of the carry: the offset of its second buffer in the scratch memory
};

/// Runs the body as long as the condition program returns true, at most max_steps times.
class NestedWhile : public NestedLoop {
 public:
  NestedWhile(std::shared_ptr<const Control> c, target::Target& target, const Policy& policy)
      : NestedLoop(std::move(c), target) {
    add({control_->bodies[0], {}, {}}, target, policy);
    add_body(target, policy);
    goes_on_ = reserve(1);
  }

  void run(std::span<void* const> operands, void* scratch, const SymbolValue& symbol_value) const override {
    const std::span<void* const> results = operands.subspan(input_bytes_.size());
    std::vector<void*> now(operands.begin() + static_cast<std::ptrdiff_t>(constants_),
                           operands.begin() + static_cast<std::ptrdiff_t>(constants_ + carry_));
    for (size_t k = 0; k < carry_; ++k) {
      if (body_.carry[k].kind != Kind::in_place) continue;
      copy(results[k], now[k], carry_bytes(k));
      now[k] = results[k];
    }
    if (computes_) iterate(operands, results, scratch, now, symbol_value);
    for (size_t k = 0; k < carry_; ++k) copy(results[k], now[k], carry_bytes(k));
  }

 private:
  void iterate(std::span<void* const> operands, std::span<void* const> results, void* scratch, std::vector<void*>& now,
               const SymbolValue& symbol_value) const {
    auto condition = bind(0, scratch, symbol_value), step = bind(1, scratch, symbol_value);
    for (size_t k = 0; k < constants_; ++k) condition->inputs[k] = step->inputs[k] = operands[k];
    condition->outputs[0] = moved(scratch, goes_on_);
    for (int64_t n = 0; n != control_->max_steps; ++n) {
      for (size_t k = 0; k < carry_; ++k) condition->inputs[constants_ + k] = step->inputs[constants_ + k] = now[k];
      condition->run();
      if (!truth(condition->outputs[0])) break;
      for (size_t k = 0; k < carry_; ++k) {
        const bool elsewhere = body_.carry[k].kind == Kind::alternating && now[k] == results[k];
        now[k] = elsewhere ? moved(scratch, second_[k]) : results[k];
        set_output(*step, k, now[k]);
      }
      step->run();
    }
  }

  int64_t goes_on_;  // offset of the condition in the scratch memory
};

/// Runs the body once for each element along the scanned axis.
class NestedScan : public NestedLoop {
 public:
  NestedScan(std::shared_ptr<const Control> c, target::Target& target, const Policy& policy)
      : NestedLoop(std::move(c), target), output_bytes_(bytes_of(control_->bodies[0].outputs)) {
    add_body(target, policy);
  }

  bool recordable() const override { return programs_[0]->recordable(); }

  void run(std::span<void* const> operands, void* scratch, const SymbolValue& symbol_value) const override {
    const Dim& steps = control_->length;
    const Memory memory{operands, operands.subspan(input_bytes_.size()), scratch,
                        steps.symbol() ? symbol_value(steps.symbol()) : steps.bound()};
    std::vector<void*> now = start(memory);
    auto step = bind(0, scratch, symbol_value);
    for (size_t k = 0; k < constants_; ++k) step->inputs[k] = operands[k];
    for (int64_t n = 0; n < memory.length; ++n) {
      for (size_t k = 0; k < carry_; ++k) {
        step->inputs[constants_ + k] = now[k];
        now[k] = next(memory, k, n);
        set_output(*step, k, now[k]);
      }
      const int64_t at = position(memory, n);
      for (size_t k = constants_ + carry_; k < input_bytes_.size(); ++k)
        step->inputs[k] = moved(operands[k], at * input_bytes_[k]);
      for (size_t r = carry_; r < output_bytes_.size(); ++r) set_output(*step, r, row(memory, r, n));
      step->run();
    }
    for (size_t k = 0; k < carry_; ++k) copy(memory.results[k], now[k], carry_bytes(k));
  }

 private:
  struct Memory {
    std::span<void*const> inputs, results;
    void* scratch;
    int64_t length;
  };

  int64_t position(const Memory& m, int64_t n) const { return control_->reverse ? m.length - 1 - n : n; }
  void* row(const Memory& m, size_t result, int64_t n) const {
    return moved(m.results[result], position(m, n) * output_bytes_[result]);
  }

  /// Returns where the first step reads the carry.
  std::vector<void*> start(const Memory& m) const {
    std::vector<void*> now;
    for (size_t k = 0; k < carry_; ++k) {
      const CarryBuffer& buffer = body_.carry[k];
      void* given = m.inputs[constants_ + k];
      void* at = given;
      if (buffer.kind == Kind::in_place) at = m.results[k];
      if (m.length > 0 && buffer.kind == Kind::stacked_before) at = row(m, buffer.stack, 0);
      // What was given may lie in the memory of the result, which the first step may write.
      if (m.length > 0 && buffer.kind == Kind::alternating && next(m, k, 0) == given) at = moved(m.scratch, second_[k]);
      copy(at, given, carry_bytes(k));
      now.push_back(at);
    }
    return now;
  }

  /// Returns where step n leaves part k of the carry: the last step that alternates in the result.
  void* next(const Memory& m, size_t k, int64_t n) const {
    const CarryBuffer& buffer = body_.carry[k];
    const int64_t behind = m.length - 1 - n;
    if (buffer.kind == Kind::stacked_after) return row(m, buffer.stack, n);
    if (buffer.kind == Kind::stacked_before && behind > 0) return row(m, buffer.stack, n + 1);
    if (buffer.kind == Kind::alternating && behind % 2 == 1) return moved(m.scratch, second_[k]);
    return m.results[k];
  }

  std::vector<int64_t> output_bytes_;
};

}  // namespace

Stats Nested::stats() const {
  Stats all;
  for (const auto& program : programs_) {
    all.add_run(program->stats());
    all.copies += program->stats().shared_results;
  }
  return all;
}

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
