#pragma once
// The state of reversing one kernel, shared by reverse*.cpp.
//
// A program of the result runs the source's program, and then its instructions from the last to the first, each of
// which turns cotangents of its results into cotangents of its arguments. Values of loops and conditions are computed
// again where they are read; what a loop carries is kept on a tape, which is scratch.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernel/derive/activity.h"
#include "kernel/derive/copier.h"
#include "kernel/derive/derive.h"
#include "kernel/derive/footprint.h"
#include "kernel/derive/live.h"

namespace weft::kernel {

/// Returns the dtype of the cotangents of values and buffers, which add up: float32 in place of 16 bits and less.
inline Dtype sum_dtype(Dtype t) { return t.size() < 4 ? float32 : t; }

class Reverser : public Copier {
 public:
  Reverser(const Source& source, const Kernel& kernel, const Activity& active, const std::vector<char>& given);
  Derivative run();

 private:
  using Role = DerivedArray::Role;
  using Values = std::vector<Value>;
  using Dims = std::vector<int64_t>;

  /// The buffer of the cotangents of a buffer of the source.
  struct Cotangent {
    Ref ref = -1;
    Dtype dtype = float32;
    bool adds = true;    // elements are read several times: their cotangents add up
    bool clears = true;  // elements are stored several times: a store ends the influence of those before
    bool reads = true;   // a store's cotangent is there: the result has one
  };

  // reverse.cpp: arrays, programs, control flow
  void declare();
  void declare_cotangents();
  Cotangent cotangent_of_param(size_t k, DerivedArray& array);
  Cotangent cotangent_of_result(size_t k, DerivedArray& array);
  void plan_parts();
  void clear_locals();
  void group();
  void program();
  void visit(const Inst& inst) override;
  void forward_loop(const Inst& inst);
  void backward(const Block& b);
  void backward(const Inst& inst);
  void backward_loop(const Inst& inst);
  void backward_condition(const Inst& inst);
  void replay(const Block& b);
  Values outer_values(const Inst& inst) const;
  void forget(const Block& b);
  void check_replayed(const Live& live) const;
  bool changes_later(const Inst& inst) const;
  void find_changes(const Block& b, int64_t outermost);
  Value fragile(const Inst& inst, Value v);

  // reverse_rules.cpp: instructions on tiles
  void rule(const Inst& inst);
  void scalar_rule(const Inst& inst, Value g);
  void dot_rule(const Inst& inst, Value g);
  void extreme_rule(const Inst& inst, Value g);
  void take_rule(const Inst& inst, Value g);
  void cat_rule(const Inst& inst, Value g);
  void sort_rule(const Inst& inst);
  Value unbroadcast(Value g, const Dims& dims);
  Value unslice(const Inst& inst, Value g);
  Value along(Value v, int64_t before, int64_t n, int64_t behind, size_t axis);

  // reverse_memory.cpp
  void memory_rule(const Inst& inst);
  void add_to(const Inst& load, Value g);
  void add_at(const Inst& gather, Value g);
  void sum_equal(const Cotangent& to, Value index, Value mask, Value g);
  Value stored(const Inst& inst, const Cotangent& from);

  /// Adds to the cotangent of a value.
  void add(Value v, Value g);
  Value cotangent(Value v) const { return cotangents_[static_cast<size_t>(v)]; }
  Value cotangent_or_zero(Value v);
  Value zeros(const Type& t) { return b_.real(t.dtype, 0, t.dims); }

  const Source& source_;
  const Activity& active_;
  const std::vector<char>& given_;
  Footprints footprints_;
  Values cotangents_;                 // by value of the source
  std::vector<Cotangent> buffers_;    // by buffer of the source
  std::vector<DerivedArray> arrays_;  // of the result
  int64_t parts_ = 0, share_ = 1;     // programs of the result where some arrays have parts, source programs of each
  Value part_ = no_value;
  std::map<Ref, int64_t> part_sizes_;  // of arrays of the result with parts: their elements
  std::map<const Inst*, std::vector<Ref>> tapes_;
  std::map<const Inst*, int64_t> order_;  // where an access stands, or the outermost loop around it
  std::map<Ref, int64_t> last_change_;    // where the last store to a buffer stands
  int64_t next_ = 0;
  bool replaying_ = false;
  std::vector<std::pair<Value, const Inst*>> fragile_;  // values that are not what they were, and why
};

}  // namespace weft::kernel
