#pragma once
// Targets that run nothing or interpret, and what their kernels read: for tests of how often an array is read.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "compiler/ir/verify.h"
#include "compiler/lower/interpreted.h"
#include "compiler/pipeline.h"
#include "compiler/rewrite/framed_sums.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "compiler/verify/semantic.h"
#include "kernel/expand/expand.h"

namespace weft::compiler::testing {

/// A stated machine. Keeps the kernels; nothing runs.
class Planned final : public target::Target {
 public:
  explicit Planned(const char* name) { machine_ = target::stated_machine(name); }
  std::string fingerprint() const override { return "planned " + machine_.name; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> all) override {
    kernels.insert(kernels.end(), all.begin(), all.end());
    return target::null().compile(all);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  target::CompileStats stats() const override { return {}; }

  std::vector<kernel::Kernel> kernels;
};

/// A GPU whose kernels are interpreted: tiles as wide as a GPU's take a CPU's code generator minutes.
class Interpreted final : public weft::test::SimtTarget {
 public:
  using SimtTarget::SimtTarget;
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    std::vector<std::shared_ptr<const target::Executable>> out;
    for (const kernel::Kernel& k : kernels) out.push_back(std::make_shared<InterpretedKernel>(kernel::expand(k)));
    return out;
  }
};

/// Counts the elements that a program loads from its parameters. All loops have bounds that follow from constants and
/// from the numbers of parallel loops' iterations.
class Loads {
 public:
  explicit Loads(const kernel::Kernel& k) : kernel_(k) {}
  int64_t count() { return count(kernel_.body); }

 private:
  int64_t count(const kernel::Block& block) {
    int64_t total = 0;
    for (const kernel::Inst& inst : block.insts) {
      evaluate(inst);
      if (inst.op == kernel::Op::load && inst.ref < static_cast<kernel::Ref>(kernel_.params.size())) {
        int64_t elements = 1;
        for (const int64_t extent : inst.type.dims) elements *= extent;
        if (inst.args.size() > 1 && known_.contains(inst.args.back()))
          elements = std::min(elements, known_[inst.args.back()]);
        total += elements;
      }
      for (const kernel::Block& inner : inst.blocks)
        if (inst.op == kernel::Op::loop) total += iterations(inst, inner);
        else total += count(inner);
    }
    return total;
  }

  int64_t iterations(const kernel::Inst& inst, const kernel::Block& body) {
    for (size_t k = 0; k < 3; ++k) REQUIRE(known_.contains(inst.args[k]));
    const int64_t first = known_[inst.args[0]], last = known_[inst.args[1]], step = known_[inst.args[2]];
    if (!inst.parallel) return first < last ? (last - first + step - 1) / step * count(body) : 0;
    int64_t total = 0;
    for (int64_t k = first; k < last; k += step) known_[body.arguments[0]] = k, total += count(body);
    return total;
  }

  /// Computes integer scalars as far as they are known.
  void evaluate(const kernel::Inst& inst) {
    if (inst.results.empty() || inst.type.rank() > 0 || is_float(inst.type.dtype)) return;
    if (inst.op == kernel::Op::constant) known_[inst.results[0]] = inst.number.i;
    if (inst.op != kernel::Op::scalar) return;
    std::vector<Number> args;
    for (const kernel::Value v : inst.args) {
      if (!known_.contains(v)) return void(known_.erase(inst.results[0]));
      args.push_back(Number::of_int(known_[v]));
    }
    const Dtype t = kernel_.types[static_cast<size_t>(inst.args.back())].dtype;
    known_[inst.results[0]] = kernel::reference(inst.scalar_op, t, args.data()).i;
  }

  const kernel::Kernel& kernel_;
  std::map<kernel::Value, int64_t> known_;
};

/// Returns the elements that a program of each kernel that a graph is compiled to loads, all together.
inline int64_t loads_of_programs(Planned& target, const graph::Graph& g) {
  target.kernels.clear();
  build({g, {}, {}}, target);
  int64_t elements = 0;
  for (const kernel::Kernel& k : target.kernels) elements += Loads(k).count();
  return elements;
}

/// Returns how often those kernels read a row's elements from memory; a program computes a row.
inline double reads_of_row(Planned& target, const graph::Graph& g, int64_t row) {
  return static_cast<double>(loads_of_programs(target, g)) / static_cast<double>(row);
}

/// Returns how many reductions are left where every framed sum is joined, and checks that the graph computes what it
/// did.
inline int64_t joined_reductions(const graph::Graph& g) {
  const Ir plain = eliminate_dead_code(simplify(import({g, {}, {}})));
  const Ir joined = eliminate_dead_code(join_framed_sums(plain, [](const Ir&, const FramedSum&) { return true; }));
  compiler::verify(joined);
  const std::vector<graph::HostTensor> in = random_inputs(plain);
  CHECK(disagreement(evaluate(joined, in), evaluate(plain, in), 1e-6) == "");
  using State = std::pair<std::vector<int64_t>, std::vector<NodeId>>;  // axes and operands
  std::set<State> states;                                              // the results of one reduction count once
  int64_t count = 0;
  for (const IrNode& n : joined.nodes)
    if (n.op == graph::Op::reduce) count += !has_results(n) || states.insert({n.attrs->axes, n.inputs}).second;
  return count;
}

/// Returns whether the target's program for a graph has a reduction of this kind.
inline bool reduces_by(kernel::Reducer reducer, target::Target& target, const graph::Graph& g) {
  const Policy policy;
  const Source source{g, {}, {}};
  const Compilation made = run_passes({source, target, policy}, false);
  return std::any_of(made.ir.nodes.begin(), made.ir.nodes.end(),
                     [&](const IrNode& n) { return n.op == graph::Op::reduce && n.attrs->reducer == reducer; });
}

/// A tensor in a buffer that the interpreter's bound lies inside of.
inline graph::Storage roomy(const graph::HostTensor& t) {
  const graph::Storage plain = to_storage(t);
  const graph::Storage wide{runtime::allocate(size_t{1} << 24), 0, plain.strides};
  std::memcpy(wide.buffer->data(), plain.buffer->data(), t.data.size() * t.type.dtype.size());
  return wide;
}

}  // namespace weft::compiler::testing
