#pragma once
// Rebuilds a kernel instruction by instruction; the passes of this folder add to what it makes, or replace it.
#include <string>
#include <vector>

#include "kernel/length.h"
#include "kernel/tile.h"

namespace weft::kernel {

class Copier {
 public:
  virtual ~Copier() = default;

 protected:
  Copier(const Kernel& from, const std::string& name) : from_(from), b_(name), now_(from.types.size(), no_value) {
    if (from.ordered) b_.ordered();
    b_.clustered(from.cluster);
    for (const std::string& s : from.symbols) b_.symbol(s);  // in their order, whichever is used first
  }
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  /// Declares the scratch of the source, behind the parameters.
  void declare_locals();
  /// Appends scratch and body of the source behind the parameters, and returns the kernel.
  Kernel copied();
  /// Appends the instructions of a block; returns what it yields.
  std::vector<Value> block(const Block& b);
  virtual void visit(const Inst& inst) { copy(inst); }
  /// Appends an equal instruction. Throws std::invalid_argument where the kind is not one of a user's kernel.
  void copy(const Inst& inst);

  Value now(Value v) const { return v == no_value ? no_value : now_[static_cast<size_t>(v)]; }
  std::vector<Value> now(const std::vector<Value>& list) const;
  void set(Value v, Value made) { now_[static_cast<size_t>(v)] = made; }
  void set(const std::vector<Value>& list, const std::vector<Value>& made);
  const Type& type(Value v) const { return from_.types[static_cast<size_t>(v)]; }
  Ref ref(Ref source) const { return refs_[static_cast<size_t>(source)]; }
  /// Instructions appended from now on come from this one's line.
  void at(const Inst& inst);
  /// Throws std::invalid_argument "[kernel NAME] file:line: KIND: what".
  /// Appends a length of the source, a number or an expression of its symbols.
  Value length(const Length& n);
  [[noreturn]] void refuse(const Inst& inst, const std::string& what) const;

  const Kernel& from_;
  Builder b_;
  std::vector<Value> now_;    // by value of the source
  std::vector<Ref> refs_;     // by buffer of the source
  Value program_ = no_value;  // what stands for the number of the program

 private:
  void copy_memory(const Inst& inst);
  void copy_tile(const Inst& inst);
  std::vector<Value> copy_function(const Block& function, const std::vector<Value>& arguments);
  void copy_code(const Inst& inst, const std::vector<Value>& args);
  bool copy_control(const Inst& inst);
};

/// Calls visit(inst) for the instructions of a block and of those inside.
template <class Visit>
void each_inst(const Block& block, const Visit& visit) {
  for (const Inst& inst : block.insts) {
    visit(inst);
    for (const Block& inner : inst.blocks) each_inst(inner, visit);
  }
}

/// Returns "file:line: " of an instruction, "" where it has no line.
std::string line_of(const Kernel& kernel, const Inst& inst);

}  // namespace weft::kernel
