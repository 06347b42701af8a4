// Runs the steps in order over two models of memory: which node's value each array holds (fusion/memory_state), and
// which array each byte of the arena belongs to.
#include "compiler/plan/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "compiler/fusion/memory_state.h"
#include "compiler/plan/arena.h"
#include "compiler/plan/arena_state.h"
#include "kernel/op_info.h"

namespace weft::compiler {

namespace {

/// Adds the buffers that instructions write.
void add_written(const kernel::Block& block, std::set<kernel::Ref>& written) {
  for (const kernel::Inst& inst : block.insts) {
    const kernel::Access access = kernel::info(inst.op).access;
    if (access == kernel::Access::writes || access == kernel::Access::updates) written.insert(inst.ref);
    for (const kernel::Block& inner : inst.blocks) add_written(inner, written);
  }
}

/// Returns whether instructions read a buffer before any has stored something there, in their order. `stored`: whether
/// one before them has.
bool reads_first(const kernel::Block& block, kernel::Ref ref, bool& stored) {
  for (const kernel::Inst& inst : block.insts) {
    const bool names = inst.ref == ref;
    if (names && !stored &&
        (inst.op == kernel::Op::load || inst.op == kernel::Op::gather || inst.op == kernel::Op::atomic_add))
      return true;
    stored = stored || (names && (inst.op == kernel::Op::store || inst.op == kernel::Op::scatter));
    for (const kernel::Block& inner : inst.blocks)
      if (reads_first(inner, ref, stored)) return true;
  }
  return false;
}

class StepVerifier {
 public:
  StepVerifier(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const StepPlan& plan)
      : ir_(ir), grouping_(grouping), order_(ordering), plan_(plan), position_(grouping.groups.size(), -1),
        memory_(ir, ordering.buffer_owner) {}

  void run() {
    for (NodeId id = 0; id < ir_.size(); ++id)
      if (owner(id) != id && is_leaf(ir_, owner(id))) updated_.insert(owner(id));
    for (const Copy& copy : order_.last) updated_.insert(copy.to);
    check(plan_.digests.size() == plan_.kernels.size(), "verify", "a plan has a digest for each kernel");
    if (plan_.placed) placed();
    else unplaced();
    for (s_ = 0; s_ < plan_.steps.size(); ++s_) {
      const Step& step = plan_.steps[s_];
      groups(step);
      if (step.kind == Step::Kind::launch) launch(step);
      else operands(step);
      if (step.kind == Step::Kind::copy) copy(step);
      else compute(step);
    }
    all_groups();
    outputs();
  }

 private:
  [[noreturn]] void fail(std::string_view rule, std::string_view what) const {
    throw_internal("verify", s_ < plan_.steps.size()
                                 ? fmt::format("{}: step {} ({}), {}", rule, s_, plan_.steps[s_].name, what)
                                 : fmt::format("{}: {}", rule, what));
  }
  void require(bool ok, std::string_view rule, NodeId node) const {
    if (!ok) fail(rule, node >= 0 && node < ir_.size() ? print(ir_, node) : fmt::format("buffer %{}", node));
  }
  void require_step(bool ok, std::string_view rule) const {
    if (!ok) fail(rule, fmt::format("groups {}", fmt::join(plan_.steps[s_].groups, " ")));
  }

  NodeId owner(NodeId node) const { return order_.buffer_owner[node]; }
  bool is_node(NodeId buffer) const { return buffer >= 0 && buffer < ir_.size(); }
  const Location& location(NodeId buffer) const {
    const auto it = plan_.locations.find(buffer);
    require(it != plan_.locations.end(), "a buffer has a location", buffer);
    return it->second;
  }
  bool in_arena(NodeId buffer) const { return plan_.placed && location(buffer).in == Location::In::arena; }
  int64_t bytes(NodeId buffer) const {
    if (is_node(buffer)) {
      const graph::Type& type = ir_[buffer].type;
      const bool root = grouping_.is_root[buffer];
      return (root ? stored_elements(type.shape, grouping_.strides[buffer]) : volume(type.shape)) * type.dtype.size();
    }
    const auto it = plan_.scratch_bytes.find(buffer);
    require(it != plan_.scratch_bytes.end(), "a buffer that is no node's has a size", buffer);
    return it->second;
  }
  bool is_empty(GroupId g) const {
    const std::vector<Root>& roots = grouping_.groups[g].roots;
    return std::all_of(roots.begin(), roots.end(), [&](const Root& r) { return volume(ir_[r.node].type.shape) == 0; });
  }

  /// Checks that no buffer has a location yet, nor anything that follows from one.
  void unplaced() const {
    check(plan_.locations.empty() && plan_.arena_bytes == 0, "verify", "no buffer has a location before allocate");
    for (const OutputPlan& out : plan_.outputs) require(!out.owns, "no output has memory before allocate", out.buffer);
    for (const kernel::Kernel& kernel : plan_.kernels)
      for (const kernel::Param& param : kernel.params)
        if (param.constant) fail("no parameter is constant before allocate", kernel.name);
  }

  /// Checks the location of every buffer.
  void placed() {
    for (const auto& [buffer, at] : plan_.locations) {
      require(!is_node(buffer) || owner(buffer) == buffer, "only the owner of a buffer is placed", buffer);
      if (at.in == Location::In::arena) {
        require(at.offset >= 0 && at.offset + bytes(buffer) <= plan_.arena_bytes, "a buffer lies within the arena",
                buffer);
        require(at.offset % arena_alignment == 0, "a buffer is aligned", buffer);
      } else if (at.in == Location::In::input) {
        require(at.index >= 0 && at.index < static_cast<int>(ir_.inputs.size()) &&
                    ir_.inputs[static_cast<size_t>(at.index)] == buffer && at.offset == 0,
                "an input lies in itself", buffer);
      } else {
        const bool exists = at.index >= 0 && at.index < static_cast<int>(plan_.outputs.size());
        require(exists && at.offset == 0 && plan_.outputs[static_cast<size_t>(at.index)].owns &&
                    plan_.outputs[static_cast<size_t>(at.index)].bytes == bytes(buffer),
                "what lies in an output's buffer fills it", buffer);
        require(in_output_.insert(at.index).second, "an output's buffer has one owner", buffer);
      }
    }
  }

  // ---------------------------------------------------------------- what each step runs

  /// Checks that a step's groups run once and after the groups that they wait for, and records their positions.
  void groups(const Step& step) {
    if (step.kind == Step::Kind::copy) return require_step(step.groups.empty(), "a copy runs no group");
    require_step(!step.groups.empty(), "a step runs a group");
    sequence_ = step.segments.size() <= 1;
    require_step(sequence_ || step.segments.size() == step.groups.size(),
                 "a merged launch has a segment for each group");
    const auto now = static_cast<int>(s_);
    for (const GroupId g : step.groups) {
      require_step(g >= 0 && g < static_cast<int>(position_.size()) && position_[g] < 0, "a group is run by one step");
      for (const int before : order_.after[g]) {
        const int at = position_[before];
        require_step(at >= 0 || is_empty(before), "a step comes after those that it waits for");
      }
      if (sequence_) position_[g] = now;
    }
    for (const GroupId g : step.groups) position_[g] = now;
  }

  void all_groups() {
    for (size_t g = 0; g < position_.size(); ++g)
      if (position_[g] < 0 && !is_empty(static_cast<int>(g)))
        throw_internal("verify", fmt::format("every group is run: group {}, {}", g,
                                             print(ir_, grouping_.groups[g].roots[0].node)));
  }

  /// Checks the kernel, buffers, symbols and parameters of each segment of a launch.
  void launch(const Step& step) {
    require_step(step.kernel < plan_.kernels.size() && !step.segments.empty() &&
                     step.nodes.size() == step.segments.size() && !step.call && !step.program,
                 "a launch has a kernel and buffers");
    const kernel::Kernel& kernel = plan_.kernels[step.kernel];
    std::set<kernel::Ref> written;
    add_written(kernel.body, written);
    for (size_t s = 0; s < step.segments.size(); ++s) {
      const StepSegment& segment = step.segments[s];
      require_step(step.nodes[s].size() == kernel.params.size(), "a kernel has a buffer for each parameter");
      require_step(segment.buffers.size() == (plan_.placed ? kernel.params.size() : 0),
                   "each buffer of a launch has a location, after allocate and not before");
      require_step(segment.symbols.size() == kernel.symbols.size(), "a kernel has a number for each symbol");
      require_step(segment.grid > 0, "a launch has programs");
      const std::set<NodeId> results = results_of(step, s);
      for (size_t k = 0; k < kernel.params.size(); ++k) {
        const NodeId node = step.nodes[s][k];
        const kernel::Param& param = kernel.params[k];
        if (step.of_user && !is_node(node) && param.written) continue;  // a result that nobody reads
        require(is_node(node) && param.dtype == ir_[node].type.dtype, "a parameter has its buffer's dtype", node);
        require(!plan_.placed || same(segment.buffers[k], location(node)), "a buffer lies where its node was placed",
                node);
        require(param.written == results.contains(node), "a kernel writes its groups' results and nothing else", node);
        require(!param.written || step.of_user || written.contains(static_cast<kernel::Ref>(k)),
                "a kernel stores each of its results", node);
        bool stored = false;
        require(!param.written || step.of_user || memory_.in_memory_of(node) >= 0 ||
                    !reads_first(kernel.body, static_cast<kernel::Ref>(k), stored),
                "a kernel reads of a new array only what it has stored there", node);
        require(!param.written || !is_leaf(ir_, node) || updated_.contains(node),
                "an input is written only where it is updated", node);
        require(!param.constant || may_be_constant(step, param, node),
                "what a kernel may read early is written by nobody before it", node);
      }
    }
  }

  /// Returns the buffers of the results of a segment's groups.
  std::set<NodeId> results_of(const Step& step, size_t segment) const {
    std::set<NodeId> out;
    for (size_t k = 0; k < step.groups.size(); ++k)
      if (sequence_ || k == segment)
        for (const Root& root : grouping_.groups[step.groups[k]].roots)
          if (order_.has_buffer[root.node]) out.insert(owner(root.node));
    return out;
  }

  bool may_be_constant(const Step& step, const kernel::Param& param, NodeId node) const {
    const bool appends_row = grouping_.groups[step.groups[0]].kind == Group::Kind::attention;
    return is_leaf(ir_, node) && !written_inputs_.contains(node) && (!param.written || appends_row);
  }

  /// Checks the operands of a call or copy.
  void operands(const Step& step) {
    require_step(step.segments.empty() && step.nodes.size() == 1 &&
                     (step.offsets.empty() || step.offsets.size() == step.nodes[0].size()),
                 "a call has buffers");
    require_step(step.operands.size() == (plan_.placed ? step.nodes[0].size() : 0),
                 "each operand of a call has a location, after allocate and not before");
    const bool copies = step.kind == Step::Kind::copy;
    require_step(copies || bool(step.call) != bool(step.program), "a call has a routine");
    require_step(!copies || (step.nodes[0].size() == 2 && step.offsets.empty() && step.bytes > 0),
                 "a copy has two buffers");
    for (size_t k = 0; k < step.nodes[0].size(); ++k) {
      const NodeId buffer = step.nodes[0][k];
      const int64_t within = step.offsets.empty() ? 0 : step.offsets[k];
      require(within >= 0 && within <= bytes(buffer), "an operand lies within its buffer", buffer);
      if (copies) require(step.bytes <= bytes(buffer), "a copy fits its buffers", buffer);
      if (!plan_.placed) continue;
      Location at = location(buffer);
      at.offset += within;
      require(same(step.operands[k], at), "an operand lies where its buffer was placed", buffer);
    }
  }

  static bool same(const Location& a, const Location& b) {
    return a.in == b.in && a.offset == b.offset && (a.in == Location::In::arena || a.index == b.index);
  }

  // ---------------------------------------------------------------- what each step reads and writes

  void copy(const Step& step) {
    const NodeId from = step.nodes[0][0], to = step.nodes[0][1];
    require(!(is_node(to) && is_leaf(ir_, to)) || updated_.contains(to), "an input is written only where it is updated",
            to);
    apart(step);
    const NodeId value = is_node(from) ? memory_.in_memory_of(from) : value_of(from);
    require(value >= 0, "what is copied was made before", from);
    read(from);
    write(to);
    if (is_node(to)) memory_.store(value, to);
    else saved_[to] = value;
  }

  NodeId value_of(NodeId buffer) const {
    const auto it = saved_.find(buffer);
    return it == saved_.end() ? NodeId{} : it->second;
  }

  /// Checks what a step that is no copy reads and writes, group by group, and updates the models of memory.
  void compute(const Step& step) {
    apart(step);
    std::set<NodeId> touched;
    for (const std::vector<NodeId>& nodes : step.nodes)
      for (const NodeId buffer : nodes) {
        touched.insert(buffer);
        if (!is_node(buffer)) write(buffer);  // scratch
      }
    std::set<NodeId> known;
    if (!sequence_) independent(step);
    for (const GroupId g : step.groups) {
      reads(g, touched, known);
      if (sequence_) writes(g, touched);
    }
    if (!sequence_)
      for (const GroupId g : step.groups) writes(g, touched);
    for (const GroupId g : step.groups)
      for (const Root& root : grouping_.groups[g].roots) known.insert(owner(root.node));
    for (const NodeId buffer : touched)
      require(!is_node(buffer) || known.contains(buffer), "a step touches only what its groups read and make", buffer);
  }

  /// Checks that no segment reads or writes what another one, which runs at the same time, writes.
  void independent(const Step& step) const {
    std::map<NodeId, GroupId> writer;  // buffer → group
    for (const GroupId g : step.groups)
      for (const Root& root : grouping_.groups[g].roots)
        if (order_.has_buffer[root.node]) {
          const auto [it, fresh] = writer.try_emplace(owner(root.node), g);
          require(fresh || it->second == g, "merged launches are independent", root.node);
        }
    for (const GroupId g : step.groups)
      for (const NodeId node : grouping_.groups[g].reads) {
        const auto it = writer.find(owner(node));
        require(it == writer.end() || it->second == g, "merged launches are independent", node);
      }
  }

  /// Checks that a group's operands hold their values; adds their buffers to `known`.
  void reads(GroupId g, const std::set<NodeId>& touched, std::set<NodeId>& known) {
    const Group& group = grouping_.groups[g];
    for (const NodeId node : group.reads) {
      known.insert(owner(node));
      if (!touched.contains(owner(node)) || volume(ir_[node].type.shape) == 0) continue;  // the group only waits
      require(memory_.holds(node), "an array is read after it was made and before it is overwritten", node);
      read(owner(node));
    }
    for (const auto& [node, value, operand] : overlays(ir_, grouping_, group)) {
      require(memory_.in_memory_of(node) == operand || volume(ir_[node].type.shape) == 0,
              "a scatter begins with its operand in its memory", node);
      read(owner(node));
    }
  }

  void writes(GroupId g, const std::set<NodeId>& touched) {
    for (const Root& root : grouping_.groups[g].roots) {
      if (!order_.has_buffer[root.node] || volume(ir_[root.node].type.shape) == 0) continue;
      require(touched.contains(owner(root.node)), "a step has a buffer for each result", root.node);
      memory_.write(root.node);
      write(owner(root.node));
    }
  }

  void read(NodeId buffer) {
    if (!in_arena(buffer)) return;
    require(arena_.written(buffer), "an array in the arena is written before it is read", buffer);
    require(arena_.holds(buffer, location(buffer).offset),
            "an array in the arena is read before its slot is given away", buffer);
  }

  void write(NodeId buffer) {
    if (in_arena(buffer)) arena_.write(buffer, location(buffer).offset, std::max<int64_t>(bytes(buffer), 1));
    if (is_node(buffer) && is_leaf(ir_, buffer)) written_inputs_.insert(buffer);
  }

  /// Checks that the buffers of a step do not overlap in the arena.
  void apart(const Step& step) const {
    std::vector<std::tuple<int64_t, int64_t, int>> used;  // begin, end, buffer
    for (const std::vector<NodeId>& nodes : step.nodes)
      for (const NodeId buffer : nodes)
        if (in_arena(buffer))
          used.emplace_back(location(buffer).offset, location(buffer).offset + bytes(buffer), buffer);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (size_t k = 1; k < used.size(); ++k)
      require(std::get<1>(used[k - 1]) <= std::get<0>(used[k]), "arrays of one step do not overlap in the arena",
              std::get<2>(used[k]));
  }

  // ---------------------------------------------------------------- results

  /// Checks the location and the final contents of each output.
  void outputs() const {
    check(plan_.outputs.size() == ir_.outputs.size(), "verify", "a plan has a buffer for each output");
    for (size_t k = 0; k < plan_.outputs.size(); ++k) {
      const OutputPlan& out = plan_.outputs[k];
      const NodeId id = ir_.outputs[k];
      require(is_node(out.buffer) || plan_.scratch_bytes.contains(out.buffer), "an output's buffer exists", id);
      require(out.strides.size() == ir_[id].type.shape.size(), "an output has a stride for each axis", id);
      if (plan_.placed) output_location(out, k);
      if (volume(ir_[id].type.shape) == 0) continue;
      const NodeId held = is_node(out.buffer) ? memory_.in_memory_of(out.buffer) : value_of(out.buffer);
      require(held == output_node(ir_, id), "an output holds its value at the end", id);
    }
  }

  void output_location(const OutputPlan& out, size_t k) const {
    const NodeId id = ir_.outputs[k];
    require(out.location.in != Location::In::arena, "a result that leaves the program is not in the arena", id);
    require(out.owns == (out.location.in == Location::In::output && out.location.index == static_cast<int>(k)),
            "an output's own buffer is its own", id);
    require(same(out.location, location(out.buffer)), "an output lies where its buffer was placed", id);
  }

  const Ir& ir_;
  const Grouping& grouping_;
  const Ordering& order_;
  const StepPlan& plan_;
  size_t s_ = SIZE_MAX;                   // the step being checked
  bool sequence_ = true;                  // its groups run one after the other
  IndexedVector<GroupId, int> position_;  // by group: its step
  std::set<NodeId> updated_;              // inputs that the program may write
  std::set<int> written_inputs_;
  std::set<int> in_output_;         // outputs whose memory has a buffer
  std::map<NodeId, NodeId> saved_;  // buffers without a node → the node whose value they hold
  MemoryState memory_;
  ArenaState arena_;
};

}  // namespace

void verify(const Ir& ir, const Grouping& grouping, const Ordering& ordering, const StepPlan& plan) {
  StepVerifier(ir, grouping, ordering, plan).run();
}

}  // namespace weft::compiler
