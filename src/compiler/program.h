#pragma once
// A Program is a compiled graph: a list of launches, library calls and copies with their buffers, run in order by any
// thread. It is immutable once built, and several threads may call `run` at once, since each call has its own arena.
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/arithmetic.h"
#include "base/hash.h"
#include "graph/node.h"
#include "target/rates.h"
#include "target/target.h"

namespace weft::compiler {

/// How to choose if a group may run in several ways. off: by the heuristic. cached: by an earlier measurement if there
/// is one, else by the heuristic. on: measure what has not been measured yet (eager evaluation, whose programs may run
/// once, uses cached instead). force: measure everything again, once in a process.
enum class Tuning : uint8_t { off, cached, on, force };

/// Chosen variants of groups, by the tuner's keys.
using TuneChoices = std::map<Digest, std::string>;

/// Everything besides the graph that may change results or speed. It is printed, and part of every key. It is never
/// read from the environment.
struct Policy {
  bool libraries = true;        // library calls are candidates for dots and for regions that name one
  Numerics numerics{};          // which accuracy may be given up for speed
  bool update_in_place = true;  // state may be overwritten once its old value is no longer needed
  // Kernels take lengths as arguments where others of their kind have been compiled for other lengths
  // (program/share_code.h): for programs that may run once.
  bool share_code = false;
  // Bytes for values that live between steps: if they would not fit, some are computed again.
  int64_t memory_budget = INT64_MAX;
  Tuning tuning = Tuning::off;
  // The choices that an earlier run was built with (compiler/tune/tune.h): used in every mode, before anything is
  // looked up or measured.
  std::shared_ptr<const TuneChoices> choices = nullptr;
  Digest digest() const;
  std::string to_string() const;
};
const Policy& default_policy();
void set_default_policy(const Policy& policy);

/// A policy with its digest.
struct DigestedPolicy {
  Policy policy;
  Digest digest;
};
/// Returns the policy of eager evaluation: the default one without measurements. What may run only once is not worth
/// measuring, but known choices are used.
const DigestedPolicy& eager_policy();

/// Output `output` is the next value of input `input` and takes over its buffer. Where its value cannot be computed
/// there, it is copied there at the end; one that is `optional` then has a buffer of its own, as other outputs have.
struct Update {
  int output, input;
  bool optional = false;
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

/// Times of the compiler's stages in milliseconds, and counts of steps and bytes.
struct Stats {
  std::vector<std::pair<std::string, double>> passes;  // those that applied (compiler/pipeline.h), in order
  // compile_ms: with compilation in the background, only the time to start it.
  double simplify_ms = 0, group_ms = 0, lower_ms = 0, tune_ms = 0, compile_ms = 0;
  double wait_ms = 0;    // for plans of libraries
  double verify_ms = 0;  // of the verifiers after each pass, where they ran
  int launches = 0;      // kernel launches: sibling segments count once
  int library_calls = 0;
  int copies = 0;
  // Results that lie in an input which they do not update, or in an earlier result: a bound program copies them.
  int shared_results = 0;
  int64_t arena_bytes = 0;
  // Bytes of memory that a run holds: inputs, the arena, and results that take over no input's memory.
  int64_t peak_bytes = 0;
  // The most bytes of the arena in use at one step: what a perfect placement for this order would need.
  int64_t live_bytes = 0;
  int count() const { return launches + library_calls + copies; }
  /// Adds what one run of another program takes.
  void add_run(const Stats& other) {
    launches += other.launches;
    library_calls += other.library_calls;
    copies += other.copies;
  }
};

/// A program bound to lengths, for repeated runs: the caller sets addresses and calls `run`. All data is row-major. A
/// result that takes over an input's memory has that input's address. Not thread-safe.
class BoundProgram {
 public:
  virtual ~BoundProgram() = default;
  virtual void run() = 0;
  std::vector<void*> inputs, outputs;
};

/// A launch, library call or copy of a Program, as profiles, traces and `weft explain` show it.
struct StepInfo {
  std::string name;       // "row_12", "dot f32 []x64x64x32"
  std::string what;       // "max sub exp sum div -> f32(64,64)", "onednn brg:avx512_core"
  const char* kind;       // "kernel", "library", "nested" (control flow), "copy"
  int segments;           // of a kernel: how many groups share the launch
  double bytes, flops;    // compiler/schedule/work.h
  Arithmetic arithmetic;  // of the matmul in it; vector: there is none
};

/// A step's time on a machine of some rates.
struct Prediction {
  double seconds = 0;  // that it is expected to take: schedule/cost.h
  double floor = 0;    // that moving its bytes and computing its operations takes at the peaks
};

/// Where an output lies after a run: in storage of its own, or in that of the input which it updates.
struct Output {
  graph::Storage storage;  // empty if it lies in an input's
  int input = -1;
};

class Program {
 public:
  virtual ~Program() = default;
  /// Runs the program on `inputs`, in the graph's order, and returns where each output lies. The storage of updated
  /// inputs is overwritten: the caller makes sure that it has no other readers (see `evaluate` and weft::compile).
  /// `symbols` holds the value of each symbol, in the order of `symbols()`; throws std::invalid_argument if one is
  /// outside 1..bound.
  virtual std::vector<Output> execute(std::span<const graph::Storage* const> inputs,
                                      std::span<const int64_t> symbols) const = 0;
  /// The same with one storage for each output: that of an updated input is returned as its output's.
  std::vector<graph::Storage> run(std::span<const graph::Storage> inputs, std::span<const int64_t> symbols = {}) const;
  /// Binds the program to lengths. The program must outlive the result. `symbols` as for `run`. `arena`: the memory for
  /// values between steps, stats().arena_bytes on the program's device; null: the result allocates its own.
  virtual std::unique_ptr<BoundProgram> bind(std::span<const int64_t> symbols, void* arena = nullptr) const = 0;
  /// Returns the input in whose buffer an output lies, or -1.
  virtual int input_of(size_t output) const = 0;
  /// Returns whether a device can record a run: nothing in it waits for the device.
  virtual bool recordable() const = 0;
  /// Returns the seconds that a run is expected to take the thread that calls it, where it needs nothing from
  /// elsewhere: computing, or giving a device its work. Infinity where that is not known: control flow, routines
  /// without a cost model, calls that wait for the device, and before the first run, which may wait for code.
  virtual double host_seconds() const = 0;
  /// Returns whether it has run code that it shares with other lengths (Policy::share_code) for so long that code of
  /// its own pays.
  virtual bool outgrown() const = 0;
  virtual const std::vector<const Symbol*>& symbols() const = 0;
  virtual const Stats& stats() const = 0;
  virtual const std::vector<StepInfo>& steps() const = 0;
  /// Predicts the time of each step in runs that follow each other.
  virtual std::vector<Prediction> predict(const target::Rates& rates) const = 0;
  /// Returns the program's number in this process, from 1, which its steps carry in a timeline.
  virtual int64_t number() const = 0;
  /// Returns what WEFT_DUMP prints: a stage ("graph", "groups", "schedules", "tune", "kernels", "plan"), the table of
  /// passes with their times ("passes"), or, if a BuildRecord kept it, the result of a pass ("after:simplify"). Throws
  /// std::invalid_argument, with all names, for any other name.
  virtual std::string print(const std::string& stage) const = 0;
};

/// Compiles a graph: runs the passes of compiler/pipeline.h, then the target's code generator.
std::shared_ptr<const Program> build(const Source& source, target::Target& target,
                                     const Policy& policy = default_policy());

/// Returns the program of that number (Program::number, Slice::program), or null if it is gone.
std::shared_ptr<const Program> find_program(int64_t number);

/// Returns the key of a Program in the table: the digests of its Source, of the target and of the policy.
Digest program_key(const Digest& source, target::Target& target, const Digest& policy);
/// Returns the program of that key, or null if none has been built.
std::shared_ptr<const Program> lookup(const Digest& key);
/// Builds a program as `build` does, unless one for the same structural digest exists. Thread-safe.
std::shared_ptr<const Program> lookup_or_build(const Source& source, target::Target& target,
                                               const Policy& policy = default_policy());
/// Builds a program again without shared code, for one that is outgrown, and returns it; it takes that one's place.
std::shared_ptr<const Program> rebuild(const Source& source, target::Target& target, const Policy& policy);

/// Returns the target of a device: the CPU for -1, else the CUDA device of that number.
target::Target& target_of(int device);
/// Returns the target for which compiled functions build their programs: the one set by set_default_target, else that
/// of the calling thread's stream. With the null target everything is traced, compiled and planned, and nothing is
/// computed.
target::Target& default_target();
void set_default_target(target::Target& target);

/// Records, while it lives, the programs that the calling thread builds or finds in the table, in order. Tests,
/// benchmarks and `weft explain` use it to get a function's program.
class BuildRecord {
 public:
  /// `texts`: keeps the dumps, so that "groups", "schedules" and "after:PASS" can be printed later.
  explicit BuildRecord(bool texts = false);
  ~BuildRecord();
  BuildRecord(const BuildRecord&) = delete;
  BuildRecord& operator=(const BuildRecord&) = delete;
  const std::vector<std::shared_ptr<const Program>>& programs() const { return programs_; }

 private:
  static void add(const std::shared_ptr<const Program>& program);
  friend std::shared_ptr<const Program> build(const Source&, target::Target&, const Policy&);
  friend std::shared_ptr<const Program> lookup(const Digest&);
  bool texts_;
  std::vector<std::shared_ptr<const Program>> programs_;
  BuildRecord* outer_;
};

/// What an evaluation stores besides the values that it was asked for. held: where that is switched on (eager/held.h),
/// intermediate values that something outside of their graph refers to, an array mostly, unless they are cheap to
/// compute again. nothing: their nodes stay as they
/// are, for a transform that still needs the graph.
enum class Keep : uint8_t { held, nothing };

/// Computes pending values (eager evaluation) and materialises their nodes. Changes nothing if it throws.
void evaluate(std::span<const graph::Value> values, Keep keep = Keep::held);
/// Starts computing pending values, and what is held, and returns. The stream keeps an error for the next caller that
/// waits; the values then stay pending.
void evaluate_async(std::span<const graph::Value> values);

}  // namespace weft::compiler
