#pragma once
// A Program's steps: which code runs on which buffers. The passes of plan/passes.h make the plan; `allocate` places the
// buffers, and from then on they are named by where they lie, so that a run only fills in three base addresses.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/fusion/order.h"
#include "compiler/lower/lower.h"
#include "compiler/plan/nested.h"
#include "compiler/schedule/work.h"
#include "target/target.h"

namespace weft::compiler {

struct Location {
  enum class In : uint8_t { input, output, arena } in = In::arena;
  int index = 0;       // input or output
  int64_t offset = 0;  // bytes
};

/// Bytes that a step reads and writes of a buffer.
struct Traffic {
  NodeId node;  // whose memory it is
  double bytes = 0;
  Location location;  // set by allocate
};

struct StepSegment {
  std::vector<Location> buffers;  // set by allocate
  std::vector<SymbolArgument> symbols;
  int64_t grid = 0;           // programs, at most
  kernel::Length count = {};  // of programs, where it depends on the symbols
};

struct Step {
  enum class Kind : uint8_t { launch, library, nested, copy } kind = Kind::launch;
  std::string name;
  size_t kernel = 0;  // index of the distinct kernel
  std::vector<StepSegment> segments;
  double work = 0;
  bool of_user = false;  // a user's kernel: it stays a launch by its own name
  LaunchWork cost;       // bytes and operations of all segments, for reports
  std::string what;      // for people: "max sub exp sum div -> f32(64,64)"
  std::shared_ptr<const target::LibraryCall> call;
  std::vector<const Symbol*> lengths;      // that the call takes
  std::shared_ptr<const Nested> program;   // nested: control flow
  std::vector<Location> operands;          // library, nested: as target::LibraryCall::run takes them; copy: from, to.
                                           // Set by allocate
  std::vector<int64_t> offsets;            // library: bytes from the buffer's begin to each operand; empty: all 0
  int64_t bytes = 0;                       // copy
  std::vector<GroupId> groups;             // that it runs: one for each segment, or in sequence in one
  std::vector<Traffic> traffic;            // by buffer, of all segments
  std::vector<std::vector<NodeId>> nodes;  // whose memory the buffers of each segment, or the operands, are
};

/// A result: an input's storage handed through, or a buffer of the run.
struct OutputPlan {
  NodeId buffer;  // that holds it at the end
  Strides strides;
  // The members below are set by allocate.
  Location location;
  int64_t bytes = 0;  // of an own buffer
  bool owns = false;  // a fresh buffer is made for it at each run
};

struct StepPlan {
  std::vector<Step> steps;
  std::vector<kernel::Kernel> kernels;  // distinct, in order of first use
  std::vector<Digest> digests;          // by kernel, as it was lowered
  std::vector<OutputPlan> outputs;
  std::map<NodeId, int64_t> scratch_bytes;  // of buffers beside nodes, whose numbers follow the last node's
  std::map<NodeId, int64_t> padded_bytes;   // of nodes' buffers whose rows are padded
  double tune_ms = 0;                       // spent on measuring
  std::string tuning;                       // a line for each choice that was looked up or measured
  // The members below are set by allocate.
  bool placed = false;
  std::map<NodeId, Location> locations;  // of nodes that lie in memory of their own, and of buffers beside nodes
  int64_t arena_bytes = 0;
  int64_t live_bytes = 0;  // the most of the arena that is in use at one step
};

/// Returns the size of a node's buffer, or of one beside nodes, in bytes; symbolic lengths count at their bounds.
int64_t buffer_bytes(const StepPlan& plan, const Ir& ir, NodeId buffer);

/// Adds to a step the groups and the costs of another one that becomes a part of it.
void absorb(Step& step, const Step& other);

/// Returns the nodes whose memory a step writes although it holds a value already: targets of updates, and values that
/// a result takes the place of.
std::set<NodeId> overwritten(const Ir& ir, const Ordering& ordering);

/// Lists the arena, then each step with where its operands lie and how many programs it has. Before allocate, buffers
/// are named by their nodes.
std::string print(const StepPlan& plan);

}  // namespace weft::compiler
