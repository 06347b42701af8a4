#pragma once
// A scan taken apart, so that rules can move work out of its step. The results are expressions over placeholders: the
// last value of each part of the carry, and stacks of values of the step. A rule replaces placeholders by other values
// of the graph around the scan, and values of the step by new parameters; what nothing needs any more is left out when
// the scan is made again.
#include <memory>
#include <vector>

#include "graph/control/control.h"

namespace weft::graph {

class ScanForm {
 public:
  struct Input {
    Value given, parameter;  // outside, and of the step
  };
  struct Carry {
    Value given, parameter;
    Value next;  // of the step: its value after it
    Value last;  // placeholder: its value after the last step
  };
  struct Stack {
    Value each;  // of the step
    Value all;   // placeholder: its values in all steps
  };

  /// Takes a scan apart. `step`: its body, whose regions may have been inlined. `used`: the results that are read.
  ScanForm(const Node& node, const Graph& step, const std::vector<bool>& used);

  /// Returns the results in terms of a new scan, empty where they are not used.
  Values finish();

  /// Drops what the results do not need. Returns whether there was anything.
  bool prune();
  /// Replaces stacks of the carry before each step by the stack after each step, shifted by one. Returns whether there
  /// were any.
  bool shift_stacks();

  /// Returns the values that the step computes: the next carry, then what is stacked.
  Values roots() const;
  Values parameters(const std::vector<Input>& inputs) const;
  Values carry_parameters() const;
  /// Returns a value of the step that depends on constants alone, outside.
  Value outside(const Value& v) const;
  /// Returns the values of `each` in all steps, outside; empty if that needs another stack.
  Value known_stack(const Value& each) const;
  /// The same, with another stack if that is needed.
  Value stack(const Value& each);
  /// Replaces values of the step.
  void replace_in_step(const Values& from, const Values& to);
  /// Replaces a placeholder in the results.
  void replace_outside(const Value& placeholder, const Value& by);
  /// Returns how many bytes the elements and the stacks of all steps have.
  int64_t stacked_bytes() const;
  int64_t length() const { return length_.bound(); }

  std::vector<Input> constants, xs;
  std::vector<Carry> carry;
  std::vector<Stack> stacks;

 private:
  bool resolve_stacks();

  Dim length_;
  bool reverse_;
  Values results_;
};

/// Bytes of a value; symbolic lengths count at their bounds.
int64_t bytes_of(const Type& type);

/// Memory that rules may spend: what they stack has at most this many times the bytes of what the scan stacks already.
/// An LSTM's gates are four times its state.
constexpr int64_t most_growth = 4;

/// Computes outside what depends on no carry and is worth a launch of its own: for all steps at once, or once where it
/// depends on constants alone. Returns whether there was anything.
bool hoist(ScanForm& scan);
/// Computes a carry that is only added to behind the scan, from stacked values: a sum over time of products is one
/// product. Returns whether there was any.
bool sum_behind(ScanForm& scan);
/// Computes stacked products that no carry needs behind the scan, for all steps at once. Returns whether there were
/// any.
bool stack_behind(ScanForm& scan);

}  // namespace weft::graph
