#pragma once
// The state of a kernel while it is traced: the builder of its tile IR, its arrays and grid, its mutable variables, and
// what is known of its integers. The functions of weft/kernel/erased.h append to the thread's trace.
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/interpret.h"
#include "kernel/length.h"
#include "kernel/tile.h"
#include "weft/kernel/erased.h"

namespace weft::k {

/// What is known of an integer scalar: its bounds, a number that divides it, and a scalar that it is smaller than.
struct Known {
  int64_t low = INT64_MIN, high = INT64_MAX, divisor = 1;
  kernel::Value below = kernel::no_value;
};
/// Returns what is known of a scalar operator's result.
Known known_of(kernel::ScalarOp op, const Known& a, const Known& b);

/// A value that the user named for the debugger.
struct NamedValue {
  std::string name;
  kernel::Value value = kernel::no_value;
};

class Trace {
 public:
  Trace(const std::string& name, std::vector<Param> params);
  /// Traces into a kernel that is being built: its arrays are the builder's, and `grid` divides its program's number.
  Trace(const std::string& name, kernel::Builder& into, const Grid& grid);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Returns the thread's trace. Throws std::invalid_argument where there is none, or where the function of a reduction
  /// does what is not `scalars_alone`.
  static Trace& current(std::string_view what, Line at, bool scalars_alone = false);
  static Trace* of_thread();

  /// Throws std::invalid_argument "[kernel NAME] file:line: message"; without a line, that of the last instruction.
  [[noreturn]] void refuse(Line at, const std::string& message) const;
  /// Returns the builder's value of a handle. Throws if the handle belongs to another trace or to a block that is
  /// closed.
  kernel::Value value(const Any& v, Line at) const;
  Any any(kernel::Value v) const;
  kernel::Builder& at(Line at);
  const kernel::Type& type(const Any& v, Line at) const { return builder.type(value(v, at)); }

  kernel::Value index(int64_t v) { return builder.index(v); }
  /// Computes a scalar operator of integer scalars, and what is known of the result.
  kernel::Value whole(kernel::ScalarOp op, kernel::Value a, kernel::Value b);
  kernel::Value add(kernel::Value a, kernel::Value b) { return whole(kernel::ScalarOp::add, a, b); }
  kernel::Value mul(kernel::Value a, kernel::Value b) { return whole(kernel::ScalarOp::mul, a, b); }
  Known known(kernel::Value v) const;
  void learn(kernel::Value v, const Known& what);

  /// Computes the grid: what it does with integers is kept as expressions of symbols.
  void choose_grid(const std::function<Grid()>& choose);
  /// Returns a scalar of the grid as an expression of symbols; nothing where it is none.
  kernel::Length length(kernel::Value v) const;
  /// Returns the symbol's value, and adds the symbol where it is new.
  kernel::Value symbol(const Symbol* s);
  /// Returns whether one scalar is known not to exceed another one.
  bool at_most(kernel::Value v, kernel::Value end) const;

  /// Runs `body` in a block of its own: values and variables that it makes are not used after it, and what it assumes
  /// of values holds within it alone.
  void in_block(const std::function<void()>& body);
  /// The same for a body that is traced between the two calls.
  struct OpenBlock {
    uint32_t number;            // of the block
    size_t variables, learned;  // before it
  };
  OpenBlock open_block();
  void close_block(const OpenBlock& block);
  /// Counts conditions around what is traced.
  void enter_condition() { ++conditions_; }
  void leave_condition() { --conditions_; }
  /// Returns the number of the innermost open block.
  uint32_t innermost() const { return open_.back(); }
  /// Runs the function of a reduction in a block of its own.
  void in_combine(const std::function<void()>& body);
  bool combining() const { return combining_; }
  /// Runs the body of a condition, or of a loop as long as one holds, in a block of its own.
  void in_conditional(const std::function<void()>& body);
  bool in_condition() const { return conditions_ > 0; }
  /// Returns whether programs begin in the order of their numbers.
  bool ordered() const;
  /// Returns the number of programs of a cluster; 0: there are none.
  int cluster() const { return grid.back().order == Order::cluster ? static_cast<int>(grid.back().extent) : 0; }
  /// Runs the user's function: from now on blocks are the user's.
  void in_body(const std::function<void()>& body);
  bool in_nested_block() const { return open_.size() > outer_; }
  /// The variables that live, and their values; the same from values.
  std::vector<size_t> living() const;
  std::vector<kernel::Value> variables(const std::vector<size_t>& slots) const;
  void set_variables(const std::vector<size_t>& slots, const std::vector<kernel::Value>& values);

  /// Declares the ids of the program. Parallel axes come from the program's number, the last one fastest; the caller
  /// loops over sequential ones.
  void declare_ids(std::span<const kernel::Value> loops);

 private:
  std::optional<kernel::Builder> own_;

 public:
  kernel::Builder& builder;
  const std::string name;
  const std::vector<Param> params;
  Grid grid;
  std::vector<const Symbol*> symbols;  // of run-time extents
  std::vector<kernel::Value> ids;      // of the program along each axis
  const uint64_t serial;
  struct Variable {
    kernel::Value value = kernel::no_value;
    bool lives = true;
    bool left = false;  // the block that made it is closed
  };
  std::vector<Variable> cells;
  std::vector<NamedValue> names;
  /// Runs the body of a role in a block of its own, which takes no tiles from outside.
  void in_role(const std::function<void()>& body);
  bool in_role() const { return role_block_ > 0; }
  /// Throws where a role uses a tile that was made outside of it, in a block or in a variable.
  void check_role(kernel::Value v, size_t depth, Line at) const;
  void check_role_variable(size_t slot, Line at) const;

 private:
  std::vector<Known> known_;                                  // by value
  std::map<kernel::Value, std::vector<kernel::Value>> ends_;  // what a scalar does not exceed: itself, minima, floors
  struct Quotient {
    std::vector<kernel::Value> ends;  // what the divisor times the quotient does not exceed
    int64_t divisor = 1;
  };
  std::map<kernel::Value, Quotient> quotients_;
  struct Shifted {
    kernel::Value from = kernel::no_value;
    int64_t by = 0;
  };
  std::map<kernel::Value, Shifted> shifted_;  // sums of a scalar and a number
  void compare(kernel::Value v, kernel::ScalarOp op, kernel::Value a, kernel::Value b);
  void bound(kernel::Value v, kernel::ScalarOp op, kernel::Value a, kernel::Value b);
  std::vector<kernel::Value> ends_of(kernel::Value v) const;
  bool choosing_grid_ = false;
  std::map<kernel::Value, kernel::Length> lengths_;  // of scalars that are expressions of symbols
  std::vector<uint32_t> open_ = {0};                 // blocks that are open
  uint32_t blocks_ = 0;
  size_t outer_ = 1;  // open blocks around the user's function
  bool combining_ = false;
  int conditions_ = 0;                                    // that are open
  size_t role_block_ = 0, role_cells_ = 0;                // open blocks and variables outside of the role; 0: in none
  std::vector<std::pair<kernel::Value, Known>> learned_;  // what was known before, for the end of a block
  Line last_;                                             // of the last instruction that has one
};

/// Makes its trace the thread's while it lives.
class TraceScope {
 public:
  explicit TraceScope(Trace& trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Trace* before_;
};

struct Program::Data {
  kernel::Kernel kernel;
  std::vector<Param> params;
  int64_t programs = 1;                     // at most
  kernel::Length count = {};                // of programs, where it depends on the symbols
  std::vector<const Symbol*> symbols = {};  // of the kernel, in its order
  std::vector<NamedValue> names = {};
};

/// Returns the memory of a call, and the numbers of the `results` among the parameters. Throws std::invalid_argument
/// where pointers lack.
std::vector<kernel::HostBuffer> buffers_of(const Program& program, std::span<void* const> arrays,
                                           std::vector<kernel::Ref>& results);

/// Returns the kernel without carried values that do not change, and without instructions that nobody reads. Names go
/// to the values that stand for theirs.
kernel::Kernel without_unchanged(kernel::Kernel kernel, std::span<NamedValue> names);

/// Returns "f32[4,8]" of a handle.
std::string text(const kernel::Type& type);
/// Throw unless extents are those of a tile: four at most, positive, 2^31 - 1 elements at most; and unless a dtype is
/// one of a tile.
void check_extents(const Trace& t, std::string_view what, const std::vector<int64_t>& dims, Line at);
void check_dtype(const Trace& t, std::string_view what, Dtype dtype, Line at);
/// Returns "64,<=8": the extents of an array, of run-time ones the largest.
std::string dims_text(const AnyRef& ref);
/// Returns the address of a view's first element.
kernel::Value origin_of(Trace& t, const AnyRef& ref, Line at);
/// Throws where an array or a buffer belongs to another trace.
void check_own(const Trace& t, std::string_view what, const AnyRef& ref, Line at);
/// Returns the shape to which tiles of one rank, or scalars, are brought: extents of 1 repeat. Throws where there is
/// none.
std::vector<int64_t> common_shape(const Trace& t, std::string_view what, std::span<const kernel::Value> values,
                                  Line at);

}  // namespace weft::k
