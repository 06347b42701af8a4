#include "compiler/user_kernels/elementwise.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "compiler/ir/index_map.h"
#include "compiler/ir/rewriter.h"
#include "graph/calls/kernel_call.h"
#include "graph/table.h"
#include "kernel/derive/absorb.h"

namespace weft::compiler {
namespace {

using graph::KernelArray;
using graph::KernelProgram;
using graph::KernelUse;
using graph::Op;
using kernel::ElementwiseOp;
using Kind = ElementwiseOp::Argument::Kind;

bool is_kernel(const IrNode& n) { return n.op == Op::call && n.attrs->kernel; }

std::vector<int64_t> dims_of(const graph::Type& t) { return bounds(t.shape); }

/// Float16 and bfloat16 stay outside: groups compute with them in float32, and what a kernel rounds decides how exactly
/// it computes.
bool fits(Dtype t) { return t == bool_ || is_integer(t) || t == float32 || t == float64; }

/// Puts kernels behind everything that does not depend on them, so that whatever the operator behind one reads is there
/// before.
class Delayed {
 public:
  explicit Delayed(Ir ir) : from_(std::move(ir)), renamed_(from_.nodes.size(), -1) {}

  Ir run() {
    for (NodeId id = 0; id < from_.size(); ++id)
      if (!is_kernel(from_[id])) emit(id);
    for (NodeId id = 0; id < from_.size(); ++id) emit(id);
    for (const NodeId id : from_.inputs) to_.inputs.push_back(renamed_[id]);
    for (const NodeId id : from_.outputs) to_.outputs.push_back(renamed_[id]);
    carry_labels(from_, to_, [&](NodeId id) { return renamed_[id]; });
    sort_regions(to_);
    return std::move(to_);
  }

 private:
  void emit(NodeId id) {
    if (renamed_[id] >= 0) return;
    IrNode node = from_[id];
    for (const NodeId input : from_[id].inputs) emit(input);
    for (NodeId& input : node.inputs) input = renamed_[input];
    to_.nodes.push_back(std::move(node));
    renamed_[id] = to_.size() - 1;
  }

  Ir from_, to_;
  IndexedVector<NodeId, NodeId> renamed_;
};

/// A kernel that an operator moves into: the node of the operator, and what becomes of the call.
struct Absorption {
  NodeId op;
  bool stores = false;
  size_t array = 0;  // of the kernel: what is loaded or stored
  size_t input = 0;  // loads: the operand that goes; both: where those of the operator come
  ElementwiseOp what;
  std::vector<NodeId> inputs;  // of the operator, without numbers
};

class KernelFuser : Rewriter {
 public:
  explicit KernelFuser(Ir ir) : Rewriter(std::move(ir)), users_(from_) {}

  /// Moves at most one operator into each kernel; returns whether there was one.
  bool run(Ir& out) {
    find();
    if (absorptions_.empty()) {
      out = std::move(from_);
      return false;
    }
    out = eliminate_dead_code(rewrite([&](NodeId id, IrNode node) -> NodeId {
      if (const auto at = becomes_.find(id); at != becomes_.end()) return renamed(at->second);
      if (is_kernel(node))
        if (const auto at = absorptions_.find(call_key(from_[id])); at != absorptions_.end())
          return add(absorbed(std::move(node), at->second));
      return add(std::move(node));
    }));
    return true;
  }

 private:
  void find() {
    for (NodeId id = 0; id < from_.size(); ++id)
      if (is_kernel(from_[id])) results_[call_key(from_[id])].push_back(id);
    for (const auto& [key, results] : results_) {
      if (!find_load(key, results)) find_store(key, results);
    }
  }

  bool is_output(NodeId id) const {
    return std::find(from_.outputs.begin(), from_.outputs.end(), id) != from_.outputs.end();
  }

  /// Returns the number that every element of a node is, if there is one.
  std::optional<Number> splat(NodeId id) const {
    while (from_[id].op == Op::broadcast || from_[id].op == Op::reshape) id = from_[id].inputs[0];
    if (from_[id].op != Op::constant) return {};
    return from_[id].attrs->number;
  }

  /// Describes an operator that may move: not one that reads what other operators compute for nothing. `stored` is the
  /// input that the kernel makes.
  bool describe(NodeId id, NodeId stored, Absorption& out) const {
    const IrNode& n = from_[id];
    if (!is_elementwise(n.op) || n.fused || n.materialized || taken_.contains(id) || !fits(n.type.dtype)) return false;
    out.what.op = n.op == Op::cast ? kernel::Op::cast : n.op == Op::bitcast ? kernel::Op::bitcast : kernel::Op::scalar;
    if (n.op != Op::cast && n.op != Op::bitcast) {
      if (graph::row(n.op).scalar < 0) return false;
      out.what.scalar_op = static_cast<kernel::ScalarOp>(graph::row(n.op).scalar);
    }
    out.what.dtype = n.type.dtype;
    for (const NodeId input : n.inputs) {
      const Dtype dtype = from_[input].type.dtype;
      if (!fits(dtype) || from_[input].type.shape != n.type.shape) return false;
      if (input == stored) {
        out.what.args.push_back({Kind::stored, dtype});
      } else if (const std::optional<Number> number = splat(input)) {
        out.what.args.push_back({Kind::number, dtype, -1, *number});
      } else {
        if (is_movement(from_[input].op) || from_[input].op == Op::iota || from_[input].op == Op::constant)
          return false;
        const auto known = std::find(out.inputs.begin(), out.inputs.end(), input);
        out.what.args.push_back({Kind::array, dtype, static_cast<int>(known - out.inputs.begin())});
        if (known != out.inputs.end()) continue;
        out.inputs.push_back(input);
        out.what.arrays.push_back(dtype);
      }
    }
    out.op = id;
    return true;
  }

  static bool computes_low(const kernel::Kernel& kernel) {
    return std::any_of(kernel.types.begin(), kernel.types.end(), [](const kernel::Type& t) { return !fits(t.dtype); });
  }

  bool find_load(const std::string& key, const std::vector<NodeId>& results) {
    const IrNode& call = from_[results[0]];
    const KernelProgram& program = *call.attrs->kernel;
    if (computes_low(program.kernel) || program.tuning) return false;
    size_t input = 0;
    for (size_t k = 0; k < program.arrays.size(); ++k) {
      if (program.arrays[k].use == KernelUse::out) continue;
      const NodeId producer = call.inputs[input++];
      if (program.arrays[k].use != KernelUse::in || is_output(producer)) continue;
      const auto readers = users_[producer];
      const bool alone = std::all_of(readers.begin(), readers.end(),
                                     [&](NodeId u) { return is_kernel(from_[u]) && call_key(from_[u]) == key; });
      if (!alone || std::count(call.inputs.begin(), call.inputs.end(), producer) != 1) continue;
      Absorption found{producer, false, k, input - 1, {}, {}};
      if (!describe(producer, -1, found) ||
          !can_absorb_load(program.kernel, static_cast<kernel::Ref>(k), dims_of(program.arrays[k].type), program.grid))
        continue;
      taken_.insert(producer);
      absorptions_.emplace(key, std::move(found));
      return true;
    }
    return false;
  }

  bool find_store(const std::string& key, const std::vector<NodeId>& results) {
    const IrNode& call = from_[results[0]];
    const KernelProgram& program = *call.attrs->kernel;
    if (computes_low(program.kernel) || program.tuning) return false;
    size_t input = 0;
    int result = 0;
    for (size_t k = 0; k < program.arrays.size(); ++k) {
      const size_t before = input;
      const int number = result;
      input += program.arrays[k].use != KernelUse::out ? 1 : 0;
      result += program.arrays[k].use != KernelUse::in ? 1 : 0;
      if (program.arrays[k].use != KernelUse::out) continue;
      const auto node =
          std::find_if(results.begin(), results.end(), [&](NodeId id) { return from_[id].output == number; });
      if (node == results.end() || is_output(*node) || users_[*node].size() != 1) continue;
      const NodeId op = users_[*node][0];
      Absorption found{op, true, k, before, {}, {}};
      if (!describe(op, *node, found)) continue;
      const NodeId first = *std::min_element(results.begin(), results.end());
      if (std::any_of(found.inputs.begin(), found.inputs.end(), [&](NodeId id) { return id >= first; })) continue;
      if (!can_absorb_store(program.kernel, static_cast<kernel::Ref>(k), dims_of(program.arrays[k].type), program.grid))
        continue;
      taken_.insert(op);
      becomes_.emplace(op, *node);
      absorptions_.emplace(key, std::move(found));
      return true;
    }
    return false;
  }

  IrNode absorbed(IrNode call, const Absorption& a) {
    const KernelProgram& old = *call.attrs->kernel;
    const auto ref = static_cast<kernel::Ref>(a.array);
    KernelProgram program{
        a.stores ? with_absorbed_store(old.kernel, ref, a.what) : with_absorbed_load(old.kernel, ref, a.what),
        {},
        old.grid,
        old.count,
        old.symbols};
    for (size_t k = 0; k < old.arrays.size(); ++k) {
      KernelArray array = old.arrays[k];
      if (k == a.array) {
        for (const Dtype dtype : a.what.arrays) program.arrays.push_back({KernelUse::in, {array.type.shape, dtype}});
        if (!a.stores) continue;
        array.type.dtype = a.what.dtype;
      }
      program.arrays.push_back(array);
    }
    const auto at = call.inputs.begin() + static_cast<std::ptrdiff_t>(a.input);
    const auto next = a.stores ? at : call.inputs.erase(at);
    std::vector<NodeId> inputs;
    for (const NodeId id : a.inputs) inputs.push_back(renamed(id));
    call.inputs.insert(next, inputs.begin(), inputs.end());
    size_t result = 0;
    for (const KernelArray& array : program.arrays) {
      if (array.use == KernelUse::in) continue;
      if (result < call.results.size()) call.results[result] = array.type;
      if (static_cast<int>(result) == call.output) call.type = array.type;
      ++result;
    }
    call.attrs.edit().kernel = graph::kernel_program(std::move(program));
    return call;
  }

  const Users users_;
  std::map<std::string, std::vector<NodeId>> results_;  // by call
  std::map<std::string, Absorption> absorptions_;       // by call
  std::map<NodeId, NodeId> becomes_;                    // operators that go, and the result that they become
  std::set<NodeId> taken_;
};

}  // namespace

Ir fuse_into_kernels(Ir ir) {
  if (std::none_of(ir.nodes.begin(), ir.nodes.end(), is_kernel)) return ir;
  ir = Delayed(std::move(ir)).run();
  while (KernelFuser(Ir(ir)).run(ir)) {
  }
  return ir;
}

}  // namespace weft::compiler
