#pragma once
// A Program: what a graph becomes. A list of launches, library calls and copies with their buffers, run in order by any
// thread. Immutable once built; `run` may be called from several threads at once (each call has its own arena).
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "graph/node.h"
#include "target/target.h"

namespace weft::compiler {

/// What to do where a group may run in several ways: take what the heuristic says (off); what was measured before, else
/// the heuristic's (cached); measure what has not been measured yet (on; eager evaluation, whose programs may run once,
/// takes cached for it); or measure everything anew, once in a process (force).
enum class Tuning : uint8_t { off, cached, on, force };

/// Choices among variants of groups by the tuner's keys.
using TuneChoices = std::map<Digest, int>;

/// What may change results or speed beside the graph itself: printed, and part of every key. Never read from the
/// environment.
struct Policy {
  bool libraries = true;        // library calls are candidates for dots and for regions that name one
  Numerics numerics{};          // what results may give up for speed
  bool update_in_place = true;  // state may be overwritten where its old value is no longer needed
  int64_t memory_budget =
      INT64_MAX;  // bytes for what lives between steps: values are computed again where they would not fit
  Tuning tuning = Tuning::off;
  std::shared_ptr<const TuneChoices> choices =
      nullptr;  // taken in every mode, before anything is looked up or measured: what an earlier run was built with
                // (compiler/tune/tune.h)
  Digest digest() const;
  std::string to_string() const;
};
const Policy& default_policy();
void set_default_policy(const Policy& policy);

/// Output `output` is the next value of input `input`: it takes over its buffer.
struct Update {
  int output, input;
};

/// How an input lies in memory: part of a Program's key. Default (empty strides): row-major.
struct Layout {
  Strides strides;
};

struct Source {
  graph::Graph graph;           // composites may still be in it
  std::vector<Layout> layouts;  // one for each input, or empty: all row-major
  std::vector<Update> updates;
};

/// Times of the compiler's stages in milliseconds, and how many of each thing there are.
struct Stats {
  std::vector<std::pair<std::string, double>> passes;  // those that applied (compiler/pipeline.h), in order
  double simplify_ms = 0, group_ms = 0, lower_ms = 0, tune_ms = 0,
         compile_ms = 0;  // where code is made in the background, compile_ms is what it takes to begin that
  double wait_ms = 0;     // for plans of libraries
  int launches = 0;       // kernel launches: sibling segments count once
  int library_calls = 0;
  int copies = 0;
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;  // of memory that a run holds: inputs, results that take over no input's memory, the arena
  int64_t live_bytes =
      0;  // the most of the arena in use at one step: what a perfect placement of this order would take
  int count() const { return launches + library_calls + copies; }
};

/// A program with its lengths set, for running it again and again: addresses are set, then it runs. All data lies
/// row-major; a result that takes over an input's memory has that input's address. For one thread.
class BoundProgram {
 public:
  virtual ~BoundProgram() = default;
  virtual void run() = 0;
  std::vector<void*> inputs, outputs;
};

/// A launch, library call or copy of a Program, as profiles, traces and `weft explain` show it.
struct StepInfo {
  std::string name;     // "row_12", "dot f32 []x64x64x32"
  std::string what;     // "max sub exp sum div -> f32(64,64)", "onednn brg:avx512_core"
  const char* kind;     // "kernel", "library", "nested" (control flow), "copy"
  int segments;         // of a kernel: how many groups share the launch
  double bytes, flops;  // compiler/tune/cost.h
  bool half;            // a product of 16-bit floats
};

class Program {
 public:
  virtual ~Program() = default;
  /// `inputs` in the graph's order. Storage of updated inputs is overwritten: the caller has made sure that nobody else
  /// reads it (see `evaluate` and weft::compile). Returns one storage for each output; an updated one is its input's.
  /// `symbols`: value of each symbol, in the order of `symbols()`; throws std::invalid_argument where one is outside
  /// 1..bound.
  virtual std::vector<graph::Storage> run(std::span<const graph::Storage> inputs,
                                          std::span<const int64_t> symbols = {}) const = 0;
  /// The program must outlive it. `symbols` as for `run`.
  virtual std::unique_ptr<BoundProgram> bind(std::span<const int64_t> symbols) const = 0;
  virtual const std::vector<const Symbol*>& symbols() const = 0;
  virtual const Stats& stats() const = 0;
  virtual const std::vector<StepInfo>& steps() const = 0;
  /// Among the Programs of the process, from 1: what the slices of its steps carry in a timeline.
  virtual int64_t number() const = 0;
  /// What WEFT_DUMP prints: a stage ("graph", "groups", "tune", "kernels", "plan"), the table of passes with their
  /// times
  /// ("passes"), or, where a BuildRecord kept it, what a pass made ("after:simplify"). Throws std::invalid_argument,
  /// with all names, for another one.
  virtual std::string print(const std::string& stage) const = 0;
};

/// The compiler: the passes of compiler/pipeline.h, then the target's code generator.
std::shared_ptr<const Program> build(const Source& source, target::Target& target,
                                     const Policy& policy = default_policy());

/// As `build`, but looks the graph up by its structural digest first. Thread-safe.
std::shared_ptr<const Program> lookup_or_build(const Source& source, target::Target& target,
                                               const Policy& policy = default_policy());

/// The target of a device by its number: -1 the CPU, else CUDA's.
target::Target& target_of(int device);
/// The target for which compiled functions build their programs: that of the calling thread's stream, unless somebody
/// asks for another one (with the null target everything is traced, compiled and planned, and nothing is computed).
target::Target& default_target();
void set_default_target(target::Target& target);

/// Programs that the calling thread builds, or finds in the table, while this lives, in order: how tests, benchmarks
/// and `weft explain` get hold of what a function became.
class BuildRecord {
 public:
  /// `texts`: "groups" and "after:PASS" can be printed later.
  explicit BuildRecord(bool texts = false);
  ~BuildRecord();
  BuildRecord(const BuildRecord&) = delete;
  BuildRecord& operator=(const BuildRecord&) = delete;
  const std::vector<std::shared_ptr<const Program>>& programs() const { return programs_; }

 private:
  static void add(const std::shared_ptr<const Program>& program);
  friend std::shared_ptr<const Program> build(const Source&, target::Target&, const Policy&);
  friend std::shared_ptr<const Program> lookup_or_build(const Source&, target::Target&, const Policy&);
  bool texts_;
  std::vector<std::shared_ptr<const Program>> programs_;
  BuildRecord* outer_;
};

/// Computes pending values (eager evaluation): their nodes are materialised. Nothing changes where it throws.
void evaluate(std::span<const graph::Value> values);
/// Returns before they are computed. An error is kept by the stream for whoever waits next; the values then stay
/// pending.
void evaluate_async(std::span<const graph::Value> values);

}  // namespace weft::compiler
