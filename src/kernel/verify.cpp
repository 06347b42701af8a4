// The verifier: scopes and structure here, the rules of single instructions in kernel/rules.h.
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/op_info.h"
#include "kernel/rules.h"

namespace weft::kernel {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel), state_(kernel.types.size(), unseen), allocated_(kernel.locals.size(), false) {}

  void run() {
    for (const Param& p : kernel_.params)
      if (is_complex(p.dtype)) refuse(nullptr, "a complex dtype is no type of a parameter");
    for (const Local& l : kernel_.locals)
      if (l.elements < 1 || is_complex(l.dtype))
        refuse(nullptr, "a local buffer has at least one element and no complex dtype");
    if (kernel_.cluster > 0 && (kernel_.ordered || programs_meet(kernel_)))
      refuse(nullptr, "programs of clusters neither begin in order nor meet at barriers of the grid");
    if (!kernel_.body.arguments.empty()) refuse(nullptr, "the outermost block takes no arguments");
    block(kernel_.body, {}, true);
  }

 private:
  enum State : char { unseen, visible, left };

  [[noreturn]] void refuse(const Inst* inst, const std::string& message) const {
    throw_internal("kernel " + kernel_.name,
                   inst ? fmt::format("{}{}: {}", line_of(*inst), print_inst(kernel_, *inst), message) : message);
  }

  /// Returns "file:line: " where the instruction has a line.
  std::string line_of(const Inst& inst) const {
    const auto k = static_cast<size_t>(inst.line);
    if (k >= kernel_.lines.size() || kernel_.lines[k].line == 0) return "";
    return fmt::format("{}:{}: ", kernel_.lines[k].file, kernel_.lines[k].line);
  }

  void define(const Inst* inst, Value v, std::vector<Value>& scope) {
    if (v < 0 || static_cast<size_t>(v) >= state_.size()) refuse(inst, fmt::format("value {} does not exist", v));
    State& state = state_[static_cast<size_t>(v)];
    if (state != unseen) refuse(inst, fmt::format("value {} is defined twice", v));
    state = visible;
    scope.push_back(v);
  }

  void use(const Inst& inst, Value v) const {
    if (v == no_value) return;  // the instruction's rules say whether it may be absent
    if (v < 0 || static_cast<size_t>(v) >= state_.size()) refuse(&inst, fmt::format("value {} does not exist", v));
    const State state = state_[static_cast<size_t>(v)];
    if (state == unseen) refuse(&inst, fmt::format("value {} is used before it is defined", v));
    if (state == left) refuse(&inst, fmt::format("value {} is used outside its block", v));
  }

  /// Checks that a product under way is read by waits alone, and that these wait for one.
  void in_flight(const Inst& inst) const {
    for (const Value v : inst.args)
      if (flights_.contains(v) != (inst.op == Op::wait_dot))
        refuse(&inst, inst.op == Op::wait_dot ? "it waits for what is no product under way"
                                              : "it reads a product under way: wait for it before");
  }

  void allocation(const Inst& inst, bool outermost) {
    if (!is_local(kernel_, inst.ref)) return;
    const size_t k = static_cast<size_t>(inst.ref) - kernel_.params.size();
    if (inst.op == Op::alloc) {
      if (!outermost) refuse(&inst, "local buffers are made in the outermost block");
      if (allocated_[k]) refuse(&inst, "the local buffer is made twice");
      allocated_[k] = true;
    } else if (inst.op != Op::symbol && !allocated_[k]) {
      refuse(&inst, "the local buffer is used before it is made");
    } else if (inst.op != Op::symbol && kernel_.locals[k].share > 0 && !in_iteration_) {
      refuse(&inst, "a local buffer in shares is touched by iterations alone");
    }
  }

  void asynchronous(const Inst& inst) const {
    if (in_iteration_) refuse(&inst, "parallel loops do not work asynchronously");
    if (inst.op == Op::roles && in_roles_) refuse(&inst, "roles stand in roles");
    if (inst.op == Op::copy_async && inst.right >= 0 &&
        !allocated_[static_cast<size_t>(inst.right) - kernel_.params.size()])
      refuse(&inst, "the barrier is used before it is made");
  }

  /// Checks that a role takes no tiles from outside: their elements are spread over other threads.
  void check_captures(const Inst& roles, const Block& body) {
    const auto walk = [&](const auto& self, const Block& b) -> void {
      for (const Inst& inst : b.insts) {
        for (const Value v : inst.args)
          if (v != no_value && state_[static_cast<size_t>(v)] == visible && leaves_.count(v) == 0 &&
              kernel_.types[static_cast<size_t>(v)].rank() > 0)
            refuse(&roles, fmt::format("a role takes a tile from outside, {}", print_inst(kernel_, inst)));
        for (const Block& inner : inst.blocks) self(self, inner);
      }
    };
    walk(walk, body);
  }

  /// Checks that others may end the wait of a program.
  void waiting(const Inst& inst) const {
    if (in_iteration_) refuse(&inst, "iterations of parallel loops have nothing to do with other programs");
    if (inst.op == Op::wait_until && !kernel_.ordered)
      refuse(&inst, "a program waits for another one, and programs begin in any order: the kernel is not ordered");
    if (kernel_.cluster < 1 && (inst.op == Op::cluster_barrier || reaches_neighbour(inst.op)))
      refuse(&inst, "the kernel has no clusters");
    if (is_barrier_of_programs(inst.op) && (in_roles_ || conditions_ > 0))
      refuse(&inst, "all programs come to a barrier of the grid or cluster: it stands in no condition and no role");
    if (reaches_neighbour(inst.op) && in_roles_) refuse(&inst, "a role does not reach neighbours");
  }

  void block(const Block& b, const std::vector<Type>& yields, bool outermost) {
    std::vector<Value> scope;
    for (Value v : b.arguments) define(nullptr, v, scope);
    if (b.insts.empty() || b.insts.back().op != Op::yield) refuse(nullptr, "a block ends with a yield");
    for (const Inst& inst : b.insts) {
      for (Value v : inst.args) use(inst, v);
      in_flight(inst);
      if (const std::string wrong = broken_rule(kernel_, inst); !wrong.empty()) refuse(&inst, wrong);
      if (touches_memory(inst.op)) allocation(inst, outermost);
      if (is_asynchronous(inst.op)) asynchronous(inst);
      if (waits_for_programs(inst.op) || reaches_neighbour(inst.op)) waiting(inst);
      if (inst.op == Op::yield) {
        if (&inst != &b.insts.back()) refuse(&inst, "a yield stands inside a block");
        check_yield(inst, yields);
      }
      if (inst.op == Op::source && (!outermost || b.insts.size() != 2))
        refuse(&inst, "a kernel of source has no other instruction");
      const bool parallel = inst.op == Op::loop && inst.parallel;
      if (parallel) iterations(inst, outermost);
      const Access access = info(inst.op).access;
      wrote_ = wrote_ || (!in_iteration_ && !is_local(kernel_, inst.ref) &&
                          (access == Access::writes || access == Access::updates));
      if (parallel) in_iteration_ = true;
      nested(inst);
      if (parallel) in_iteration_ = false;
      for (Value v : inst.results) define(&inst, v, scope);
      if (inst.op == Op::constant || inst.op == Op::arange) leaves_.insert(inst.results[0]);
      if (inst.op == Op::dot_async) flights_.insert(inst.results[0]);
    }
    for (Value v : scope) state_[static_cast<size_t>(v)] = left;
  }

  void iterations(const Inst& inst, bool outermost) {
    if (!outermost || inst.args.size() > 3)
      refuse(&inst, "parallel loops stand in the outermost block, and carry nothing");
    if (wrote_) refuse(&inst, "nothing is written before a parallel loop, but by iterations");
    if (iterations_ != no_value && iterations_ != inst.args[1])
      refuse(&inst, "parallel loops have equally many iterations");
    iterations_ = inst.args[1];
  }

  void nested(const Inst& inst) {
    const bool condition = inst.op == Op::when || inst.op == Op::branch || inst.op == Op::while_loop;
    conditions_ += condition ? 1 : 0;
    blocks_of(inst);
    conditions_ -= condition ? 1 : 0;
  }

  void blocks_of(const Inst& inst) {
    if (inst.op == Op::when) {
      std::vector<Type> values;
      for (Value v : inst.results) values.push_back(kernel_.types[static_cast<size_t>(v)]);
      block(inst.blocks[0], values, false);
      if (!values.empty()) lane_by_lane(inst.blocks[0], values[0].dims);
    }
    if (inst.op == Op::reduce || inst.op == Op::scan)
      for (const Block& b : inst.blocks) {
        std::vector<Type> scalars;
        for (Value v : inst.args) scalars.push_back({kernel_.types[static_cast<size_t>(v)].dtype, {}});
        block(b, scalars, false);
        lane_by_lane(b, {});
      }
    if (inst.op == Op::wait_until) {
      block(inst.blocks[0], {Type{bool_, {}}}, false);
      lane_by_lane(inst.blocks[0], {});
    }
    if (inst.op == Op::inline_code && !inst.blocks.empty()) {
      std::vector<Type> values;
      for (Value v : inst.results) values.push_back(kernel_.types[static_cast<size_t>(v)]);
      block(inst.blocks[0], values, false);
    }
    if (inst.op == Op::branch || inst.op == Op::while_loop) {
      std::vector<Type> values;
      for (Value v : inst.results) values.push_back(kernel_.types[static_cast<size_t>(v)]);
      block(inst.blocks[0], inst.op == Op::branch ? values : std::vector<Type>{{bool_, {}}}, false);
      block(inst.blocks[1], values, false);
    }
    if (inst.op == Op::roles) {
      in_roles_ = true;
      for (const Block& b : inst.blocks) {
        block(b, {}, false);
        check_captures(inst, b);
      }
      in_roles_ = false;
    }
    if (inst.op != Op::loop) return;
    if (by_constant_.size() < kernel_.types.size()) collect_constants(kernel_.body);
    const int64_t step = by_constant_[static_cast<size_t>(inst.args[2])];
    if (step <= 0) refuse(&inst, "a loop's step is positive");
    std::vector<Type> carried;
    for (size_t k = 3; k < inst.args.size(); ++k) carried.push_back(kernel_.types[static_cast<size_t>(inst.args[k])]);
    block(inst.blocks[0], carried, false);
  }

  /// Checks the block of a condition with results: no lane may depend on whether the block runs for another lane.
  void lane_by_lane(const Block& b, const std::vector<int64_t>& dims) const {
    for (const Inst& inst : b.insts) {
      if (inst.op == Op::constant || inst.op == Op::yield) continue;
      const bool splat = inst.op == Op::broadcast && kernel_.types[static_cast<size_t>(inst.args[0])].rank() == 0;
      const bool lanes = inst.op == Op::scalar || inst.op == Op::cast || inst.op == Op::bitcast || splat ||
                         (inst.op == Op::when && !inst.results.empty());
      if (!lanes) refuse(&inst, "the block of a condition with values works lane by lane, on nothing but values");
      for (Value v : inst.results)
        if (const Type& t = kernel_.types[static_cast<size_t>(v)]; t.rank() != 0 && t.dims != dims)
          refuse(&inst, "in the block of a condition with values all tiles have its shape");
    }
  }

  // Known int64 constants by value; 1 where nothing is known.
  void collect_constants(const Block& b) {
    by_constant_.resize(kernel_.types.size(), 1);
    for (const Inst& inst : b.insts) {
      if (inst.op == Op::constant && inst.number.integral)
        for (Value v : inst.results)
          if (v >= 0 && static_cast<size_t>(v) < by_constant_.size())
            by_constant_[static_cast<size_t>(v)] = inst.number.i;
      for (const Block& inner : inst.blocks) collect_constants(inner);
    }
  }

  void check_yield(const Inst& inst, const std::vector<Type>& yields) const {
    if (inst.args.size() != yields.size())
      refuse(&inst, fmt::format("the block yields {} values, not {}", inst.args.size(), yields.size()));
    for (size_t k = 0; k < yields.size(); ++k)
      if (!(kernel_.types[static_cast<size_t>(inst.args[k])] == yields[k]))
        refuse(&inst, "the type of a carried value changes");
  }

  static bool touches_memory(Op op) { return op == Op::alloc || info(op).access != Access::none; }

  const Kernel& kernel_;
  std::vector<State> state_;
  std::vector<bool> allocated_;
  std::vector<int64_t> by_constant_;
  Value iterations_ = no_value;  // the number of iterations of parallel loops
  bool in_iteration_ = false, in_roles_ = false;
  int conditions_ = 0;       // around the instruction
  std::set<Value> leaves_;   // constants and counts
  std::set<Value> flights_;  // products under way
  bool wrote_ = false;       // a parameter was written outside of parallel iterations
};

}  // namespace

std::vector<Value> reads(const Inst& inst) {
  std::vector<Value> out;
  std::set<Value> inside;
  const auto walk = [&](const auto& self, const Inst& i) -> void {
    for (Value v : i.args)
      if (v != no_value && !inside.contains(v)) out.push_back(v);
    for (const Block& b : i.blocks) {
      inside.insert(b.arguments.begin(), b.arguments.end());
      for (const Inst& inner : b.insts) {
        self(self, inner);
        inside.insert(inner.results.begin(), inner.results.end());
      }
    }
  };
  walk(walk, inst);
  return out;
}

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace weft::kernel
