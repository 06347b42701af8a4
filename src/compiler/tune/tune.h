#pragma once
// The tuner: where a group may run in several ways, the fastest by measurement.
//
// A candidate first has to compute what the heuristic's choice computes, on data of the right dtypes and ranges: bit by
// bit where it promises the same bits, else within what another order of summation may change. One that throws or
// differs is dropped. Then all are timed in turns, each time with caches that hold little of the data; a challenger
// wins if its median and its best time are 5 % better than the heuristic's.
//
// A choice is kept on disk and in the process under a key of the heuristic's code, the extents, the target and the
// tuner's version, and can be written down as text and given to a later run in Policy::choices. Where all candidates
// promise the same bits, the key holds the number of threads too, and what there was no time to measure stays open.
// Where they do not, there is one choice for a machine, and what there was no time to measure is settled in the
// heuristic's favour: results under one mode are the same with a cold and a warm cache, and for any number of threads
// once the choice is recorded. Choices that are measured on an empty cache may differ from one machine, or one empty
// cache, to another; who wants equal bits there gives the choices, or takes Tuning::cached or off.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/lower/lower.h"
#include "compiler/program.h"

namespace weft::compiler {

/// One way to run a group: generated code, or a library call.
struct TuneCandidate {
  Variant variant = Variant::heuristic;
  std::shared_ptr<const Lowered> code;
  std::vector<int> params;  // of the code: nodes, in the order of its parameters
  std::shared_ptr<const target::LibraryCall> call;
  std::vector<std::pair<int, int64_t>> operands;  // of the call: nodes, and bytes added to their buffers' addresses
  bool same_bits = true;                          // as the first candidate, whatever the data
};

/// Memory of a node: `bytes` of it, of which the first `offset` lie before the address that code is given (negative
/// strides).
struct TuneBuffer {
  Dtype dtype = float32;
  int64_t bytes = 0, offset = 0;
  int64_t used = 0;   // of the bytes, from the first on: filled and compared
  int64_t range = 0;  // integers lie in [0, range); 0: small ones
  bool written = false;
  bool updated = false;  // written and read: its old value is put back before each run
};

/// The candidates of one group, the heuristic's first, and all buffers that any of them touches.
struct TuneItem {
  std::string name;  // for people
  Digest key;
  std::vector<TuneCandidate> candidates;
  std::map<int, TuneBuffer> buffers;
  int64_t length = 0;  // maps of any length run over so many elements; 0: over all
  double seconds = 0;  // that a run may take, roughly
};

struct TuneResult {
  Variant variant = Variant::heuristic;
  std::string note;  // "row_7: heuristic 0.120 ms, wider 0.131, second wrong -> heuristic"
};

/// What the policy's choices, this process, or the cache on disk hold for a key, if the mode wants it.
std::optional<Variant> recorded_choice(const Digest& key, const Policy& policy);

/// Measures the items one after the other, as long as the process's time for it lasts, and records what comes out.
/// Errors of candidates are noted, not thrown.
std::vector<TuneResult> measure(const std::vector<TuneItem>& items, target::Target& target);

/// All choices of this process, and those that the default policy gives, as lines "key number", for a checkpoint; and
/// back. Throws std::invalid_argument where the text is none.
std::string tuning_choices();
std::shared_ptr<const TuneChoices> parse_tuning_choices(const std::string& text);

/// Seconds that the process may spend on measuring, compiling the candidates included (1.5 by default); returns what it
/// was.
double set_tuning_budget(double seconds);
/// Forgets what the process chose and spent; what lies on disk stays.
void reset_tuning();

}  // namespace weft::compiler
