#pragma once
// Python's pickles, protocols 2 to 5: programs of a machine with a stack and a memory, which make values. Here they
// make values of a few kinds; what would call Python is asked of a derived class.
#include <bit>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/bytes.h"

namespace weft::io::torch {

/// A value by its number: values live as long as their pickle, since they may refer to each other in circles.
using Ref = uint32_t;

struct PickleValue {
  enum class Kind : uint8_t { none, boolean, integer, real, text, bytes, list, dict, set, function, storage, tensor };
  Kind kind = Kind::none;       // none: also what is left out, as a dtype; list: also a tuple
  int64_t integer = 0;          // also of a boolean; the bits of a real; the number of a function, storage or tensor
  std::string_view text = {};   // in the file
  std::vector<Ref> items = {};  // of a list; keys and values of a dictionary in turns

  double real() const { return std::bit_cast<double>(integer); }
};

/// The machine. Throws std::runtime_error with the byte of the instruction that is wrong.
class Pickle {
 public:
  Pickle(const Bytes& bytes, uint64_t at) : bytes_(bytes), at_(at) {}
  virtual ~Pickle() = default;
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  /// Runs one pickle and returns its value. The next one begins at `at`.
  Ref load();
  uint64_t at() const { return at_; }
  const PickleValue& operator[](Ref r) const { return values_[r]; }

 protected:
  using Kind = PickleValue::Kind;

  /// Returns what a name of Python stands for, or throws by `refuse`.
  virtual Ref global(std::string_view module, std::string_view name) = 0;
  /// Returns what the function makes of a list of arguments.
  virtual Ref call(Ref function, const std::vector<Ref>& arguments) = 0;
  /// Returns what lies outside of the pickle under this name.
  virtual Ref outside(Ref name) = 0;

  Ref make(PickleValue value);
  PickleValue& value(Ref r) { return values_[r]; }
  [[noreturn]] void refuse(const std::string& what) const { bytes_.fail(what, instruction_); }

 private:
  struct Instruction {
    uint8_t code;
    const char* name;
    void (Pickle::*run)(int argument);
    int argument;
  };
  static const Instruction* find(uint8_t code);
  static const Instruction instructions[];

  std::string_view take(uint64_t n);
  uint64_t number(int width);
  std::string_view line();
  Ref pop();
  Ref top() const;
  std::vector<Ref> pop_to_mark();
  void push(Ref r) { stack_.push_back(r); }
  void push_new(PickleValue value) { push(make(std::move(value))); }

  // The instructions, by what they do; `argument` is a width in bytes, a kind or a count.
  void version(int);
  void frame(int);
  void mark(int);
  void drop(int);
  void drop_to_mark(int);
  void duplicate(int);
  void constant(int kind);
  void boolean(int truth);
  void small_integer(int width);
  void signed_integer(int width);
  void long_integer(int width);
  void real(int);
  void text(int width);
  void raw(int width);
  void empty(int kind);
  void tuple(int count);
  void marked(int kind);
  void append(int);
  void append_marked(int);
  void set_item(int);
  void set_marked(int);
  void remember(int width);
  void remember_next(int);
  void recall(int width);
  void global_lines(int);
  void global_stack(int);
  void apply(int);
  void build(int);
  void persistent(int);

  std::vector<Ref>& items_of(Ref r, Kind kind, const char* what);

  const Bytes& bytes_;
  uint64_t at_, instruction_ = 0;
  std::deque<PickleValue> values_;  // references stay valid
  std::vector<Ref> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Ref> memory_;
};

}  // namespace weft::io::torch
