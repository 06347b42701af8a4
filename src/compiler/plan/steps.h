#pragma once
// A Program's steps: which code runs on which buffers. Buffers are named by where they lie, so that a run only fills in
// three base addresses.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/fusion/order.h"
#include "compiler/lower/lower.h"
#include "compiler/plan/nested.h"
#include "target/target.h"

namespace weft::compiler {

struct Location {
  enum class In : uint8_t { input, output, arena } in = In::arena;
  int index = 0;       // input or output
  int64_t offset = 0;  // bytes
};

struct StepSegment {
  std::vector<Location> buffers;
  std::vector<SymbolArgument> symbols;
  int64_t grid = 0;
};

struct Step {
  enum class Kind : uint8_t { launch, library, nested, copy } kind = Kind::launch;
  std::string name;
  size_t kernel = 0;  // index of the distinct kernel
  std::vector<StepSegment> segments;
  double work = 0;
  double traffic = 0, flops = 0;  // bytes read and written, operations: compiler/tune/cost.h
  bool half = false;              // a product of 16-bit floats
  std::string what;               // for people: "max sub exp sum div -> f32(64,64)"
  std::shared_ptr<const target::LibraryCall> call;
  std::shared_ptr<const Nested> program;   // nested: control flow
  std::vector<Location> operands;          // library, nested: as target::LibraryCall::run takes them; copy: from, to
  int64_t bytes = 0;                       // copy
  std::vector<GroupId> groups;             // that it runs; merged launches: one for each segment
  std::vector<std::vector<NodeId>> nodes;  // whose memory the buffers of each segment, or the operands, are
};

/// A result: an input's storage handed through, or a buffer of the run.
struct OutputPlan {
  Location location;
  int64_t bytes = 0;   // of an own buffer
  int64_t offset = 0;  // elements
  Strides strides;
  bool owns = false;  // a fresh buffer is made for it at each run
  int same_as = -1;   // an earlier output with the same memory
};

struct StepPlan {
  std::vector<Step> steps;
  std::vector<kernel::Kernel> kernels;  // distinct, in order of first use
  std::vector<OutputPlan> outputs;
  std::map<NodeId, Location> locations;     // of nodes that lie in memory of their own, and of buffers beside nodes
  std::map<NodeId, int64_t> scratch_bytes;  // of those: numbers behind the last node
  int64_t arena_bytes = 0;
  int64_t live_bytes = 0;  // the most of the arena that is in use at one step
  double tune_ms = 0;      // spent on measuring
  std::string tuning;      // a line for each choice that was looked up or measured
};

/// Lists the arena, then each step with where its operands lie and how many programs it has.
std::string print(const StepPlan& plan);

StepPlan make_steps(const Ir& ir, const Grouping& grouping, const Ordering& ordering, target::Target& target,
                    const Policy& policy);

}  // namespace weft::compiler
