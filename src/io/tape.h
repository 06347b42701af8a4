#pragma once
// A graph written down: operators by name with their attributes, in an order in which they can be computed. What an
// exported function is, in memory and as JSON (docs/programs.md).
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/node.h"
#include "weft/array.h"
#include "weft/io.h"

namespace weft::io {

struct Tape {
  /// Value `first` counts the inputs, then the entries; `second` is which of its results.
  using Ref = std::pair<int, int>;
  struct Entry {
    graph::Op op;
    std::vector<Ref> inputs;
    graph::Attrs attrs;                // without a composite or control flow
    std::string name, key;             // of a composite
    std::shared_ptr<const Tape> body;  // of a composite
    std::optional<graph::AttentionRegion> attention =
        {};  // of a composite; attrs.call and attrs.integers are its as well
    /// Of control flow (graph/control/control.h).
    struct Control {
      std::vector<std::shared_ptr<const Tape>> bodies;
      int64_t constants = 0, carry = 0, max_steps = -1;
      Dim length = 0;
      bool reverse = false;
    };
    std::optional<Control> control = {};
  };
  std::vector<graph::Type> inputs;  // axes may be symbolic
  std::vector<Entry> entries;
  std::vector<Ref> outputs;
};

/// Attributes that are lists of whole numbers, by the names of docs/programs.md.
struct AttrList {
  const char* key;
  std::vector<int64_t> graph::Attrs::*member;
};
std::span<const AttrList> attr_lists();

/// One signature of an exported function.
struct TapedFunction {
  Tape tape;                          // inputs: positional arguments, keyword arguments, stored arrays
  size_t arguments = 0;               // positional
  std::vector<std::string> keywords;  // ascending
  std::vector<std::string> stored;    // names of stored arrays
};

/// Composites are written down with their bodies; their own derivatives stay behind.
Tape tape_of(const graph::Graph& graph);

/// The outputs for given inputs: every entry is built anew, by its row's rules. Symbols in attributes take the lengths
/// that the inputs have where the tape's inputs have the symbol. Throws std::invalid_argument where an entry does not
/// fit ("entry 12: [reshape] …").
graph::Values replay(const Tape& tape, std::span<const graph::Value> inputs);

std::string functions_json(const std::vector<TapedFunction>& functions);
/// Throws std::runtime_error with a sentence where the text is not what functions_json writes. Entries are not yet held
/// against their rows: `replay` does that.
std::vector<TapedFunction> functions_from_json(std::string_view json);

/// All that a call needs beside the file: checked by a replay on placeholders.
struct ProgramFile {
  std::string metadata;  // the user's
  std::vector<TapedFunction> functions;
  std::vector<std::vector<array>> stored;  // by function
};
ProgramFile read_program(const std::string& file);
ProgramFile read_program(const std::shared_ptr<Reader>& in);

}  // namespace weft::io
