#pragma once
// A serialized graph: operators by name with their attributes, in an order in which they can be computed. An exported
// function is one, in memory and as JSON (docs/programs.md).
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/node.h"
#include "weft/array.h"
#include "weft/io.h"

namespace weft::io {

struct Tape {
  /// Which value: `first` counts the inputs, then the entries; `second` is the index of its result.
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

/// The attributes that are lists of integers, by the names of docs/programs.md.
struct AttrList {
  const char* key;
  std::vector<int64_t> graph::Attrs::*member;
};
std::span<const AttrList> attr_lists();

/// Entries whose numbers follow from the lengths of the arguments (io/program/pattern.h).
struct LengthPattern {
  std::string json;              // "entries" and "outputs", with polynomials in the place of numbers
  std::vector<int64_t> example;  // values of the symbols n0, n1, … of the inputs for which it was traced
  std::vector<int64_t> least;    // and the smallest ones for which it was
};

/// One signature of an exported function.
struct TapedFunction {
  Tape tape;                          // inputs: positional arguments, keyword arguments, stored arrays
  size_t arguments = 0;               // positional
  std::vector<std::string> keywords;  // ascending
  std::vector<std::string> stored;    // names of stored arrays
  bool shapeless = false;             // each call replays it with the numbers of its lengths
  std::shared_ptr<const LengthPattern> pattern = nullptr;  // of a shapeless function: the tape has inputs alone
};

/// Returns a tape as JSON, an object of "inputs", "entries" and "outputs" (docs/programs.md), and back. The second
/// throws std::runtime_error where the text is something else.
std::string tape_text(const Tape& tape);
Tape tape_from_text(std::string_view json);

/// Returns the tape for inputs of these types, which the function takes. Throws std::runtime_error where a number of
/// the pattern is no whole one for these lengths.
Tape tape_for(const TapedFunction& f, std::span<const graph::Type> inputs);
/// Returns the types of the inputs, with the lengths of the example where the function has a pattern.
std::vector<graph::Type> example_types(const TapedFunction& f);

/// Serializes a graph. Composites are written with their bodies, without derivatives of their own.
Tape tape_of(const graph::Graph& graph);

/// Returns the outputs for given inputs: every entry is built again, by its row's rules. Symbols in attributes take the
/// lengths that the inputs have where the tape's inputs have the symbol. Throws std::invalid_argument where an entry
/// does not fit ("entry 12: [reshape] …").
graph::Values replay(const Tape& tape, std::span<const graph::Value> inputs);

/// A kernel of a function that is refused: its text, and the line and column of the mistake in it.
struct KernelTextError : std::runtime_error {
  KernelTextError(const std::string& message, std::string kernel, int at_line, int at_column)
      : std::runtime_error(message), text(std::move(kernel)), line(at_line), column(at_column) {}
  std::string text;
  int line, column;
};

std::string functions_json(const std::vector<TapedFunction>& functions);
/// Returns the functions that functions_json wrote. Throws std::runtime_error where the text is something else. Entries
/// are not checked against their rows yet: `replay` does that.
std::vector<TapedFunction> functions_from_json(std::string_view json);

/// The contents of a file of functions, checked by a replay on placeholders.
struct ProgramFile {
  std::string metadata;  // the user's
  std::vector<TapedFunction> functions;
  std::vector<std::vector<array>> stored;  // by function
};
/// Returns an array as such a file holds it: complex128, which safetensors lack, as pairs of float64.
array as_stored(const array& a);
ProgramFile read_program(const std::string& file);
ProgramFile read_program(const std::shared_ptr<Reader>& in);

}  // namespace weft::io
