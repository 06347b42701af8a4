#pragma once
// The tuner: chooses the fastest of several ways to run a group, by measurement.
//
// A candidate must first compute what the rules' choice computes, on data of the right dtypes and ranges: bit by
// bit if it promises the same bits, else within what another order of summation may change. Candidates that throw or
// differ are dropped. The others are timed in turns, each time with caches that hold little of the data. A challenger
// wins if both its median and its best time are 5 % better than the rules'.
//
// A choice is kept on disk and in the process, under a key of the rules' code, the extents, the target and the
// tuner's version. It can be exported as text and passed to a later run in Policy::choices. If all candidates promise
// the same bits, the key includes the number of threads, and choices that there was no time to measure stay open. If
// they do not, there is one choice for a machine, and those that there was no time to measure are settled as the
// heuristic's: results under one mode are the same with a cold and a warm cache, and for any number of threads once the
// choice is recorded. Choices measured on an empty cache may differ between machines and between empty caches; for
// equal bits, pass the choices, or use Tuning::cached or off.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/lower/lower.h"
#include "compiler/program.h"

namespace weft::compiler {

/// One way to run a group: generated code, or a library call.
struct TuneCandidate {
  Variant variant;
  std::shared_ptr<const Lowered> code;
  std::vector<NodeId> params;  // nodes of the code's buffers, in the order of its parameters
  std::shared_ptr<const target::LibraryCall> call;
  std::vector<std::pair<NodeId, int64_t>> operands;  // of the call: nodes, and byte offsets into their buffers
  bool same_bits = true;                             // equal to the first candidate's bits for any data
};

/// Memory of a node, in bytes. The address that code gets is `offset` bytes after its beginning (negative strides).
struct TuneBuffer {
  Dtype dtype = float32;
  int64_t bytes = 0, offset = 0;
  int64_t used = 0;   // bytes from the beginning that are filled and compared
  int64_t range = 0;  // integers lie in [0, range); 0: small ones
  bool written = false;
  bool updated = false;                 // written and read: its old value is put back before each run
  std::optional<double> constant = {};  // all elements, in place of random data
};

/// The candidates of one group, the rules' first, and all buffers that any of them touches.
struct TuneItem {
  std::string name;  // shown to users
  Digest key;
  std::vector<TuneCandidate> candidates;
  std::map<NodeId, TuneBuffer> buffers;
  int64_t length = 0;    // maps of any length run over this many elements; 0: over all
  double seconds = 0;    // rough estimate for one run
  bool equals = false;   // no candidate is the rules': the fastest wins by whatever margin
  bool rotates = false;  // a device's runs take turns among buffers that its caches do not hold together
};

/// The measured times of a candidate.
struct TuneTime {
  std::string dropped;           // why it was not timed
  double median = 0, least = 0;  // seconds
  size_t repeats = 0;
};

struct TuneResult {
  Variant variant;
  std::string note;                  // "map_7: rules 0.120 ms, map;programs=…;lanes=… 0.131, … wrong -> rules"
  std::vector<TuneTime> times = {};  // of the candidates, in their order
};

/// How much measuring may cost.
struct TuneEffort {
  double seconds_of_an_item = 0.03;  // spent on repeats
  size_t most_repeats = 9;           // at least 1
  bool recorded = true;              // results are kept, and their cost counts against the process's budget
};

/// Returns a variant as one word, "rules", "config:" with the word of a configuration, or the text of its
/// schedule, as choices are recorded.
std::string to_string(const Variant& variant);
/// Reads such a word; returns nothing for any other text.
std::optional<Variant> parse_variant(std::string_view text);

/// Returns the recorded choice for a key, from the policy's choices, this process, or the cache on disk, as far as the
/// mode allows.
std::optional<Variant> recorded_choice(const Digest& key, const Policy& policy);

/// Records the choice for a key, in this process and on disk.
void record_choice(const Digest& key, const Variant& variant);

/// Measures the items one after another, as long as the process's time budget lasts, and records the results, unless
/// the effort says otherwise. Errors of candidates are noted, not thrown.
std::vector<TuneResult> measure(const std::vector<TuneItem>& items, target::Target& target,
                                const TuneEffort& effort = {});

/// Returns all choices of this process and of the default policy, as lines "key variant", for a checkpoint;
/// parse_tuning_choices reads them back, and throws std::invalid_argument for any other text.
std::string tuning_choices();
std::shared_ptr<const TuneChoices> parse_tuning_choices(const std::string& text);

/// Sets the seconds that the process may spend on measurements, including the compilation of candidates (1.5 by
/// default); returns the previous value.
double set_tuning_budget(double seconds);
/// Forgets the process's choices and spent time, but not the cache on disk.
void reset_tuning();

}  // namespace weft::compiler
