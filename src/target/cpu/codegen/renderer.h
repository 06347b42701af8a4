#pragma once
// The state of rendering one kernel, shared by the render_*.cpp files. A tile is kept as its rows: a scalar is one row
// of one lane, [n] is one row of n lanes, [m,n] is m rows of n lanes. A row of one lane is an LLVM scalar, others are
// vectors. float16 and bfloat16 are kept as their 16 bits, bool as i1 (a byte in memory).
#include <map>
#include <string>
#include <vector>

#include "kernel/tile.h"
#include "target/cpu/codegen/ir.h"
#include "target/cpu/codegen/options.h"

namespace weft::target {

using Rows = std::vector<IrValue>;

class Renderer {
 public:
  Renderer(LLVMContextRef context, const kernel::Kernel& kernel, const Isa& isa);
  /// Renders the function and returns its module, which the caller owns.
  LLVMModuleRef render(const std::string& symbol);

 private:
  // render.cpp: the function, regions, and the instructions that are one line each
  void declare(const std::string& symbol);
  void attributes();
  void enter();
  void make_local(size_t index);
  void programs();
  Rows block(const kernel::Block& block);  // the yielded values, row after row
  void instruction(const kernel::Inst& inst);
  void loop(const kernel::Inst& inst);
  void when(const kernel::Inst& inst);
  IrValue any_lane(const Rows& condition);
  void unlikely(IrValue branch);
  void constant(const kernel::Inst& inst);
  void find_splatted(const kernel::Block& block);

  void assign_rows(std::span<const kernel::Value> to, const Rows& all);
  Rows rows_of_all(std::span<const kernel::Value> values) const;

  // render_control.cpp
  void branch(const kernel::Inst& inst);
  void while_loop(const kernel::Inst& inst);
  void update(const kernel::Inst& inst);
  IrValue update_lane(const kernel::Inst& inst, Dtype t, IrValue address, IrValue value, IrValue expected);
  void print(const kernel::Inst& inst);
  void check_condition(const kernel::Inst& inst);

  // render_waiting.cpp
  void wait_until(const kernel::Inst& inst);
  void meet(const kernel::Inst& inst);
  void share_locals();
  void reach(const kernel::Inst& inst);

  // render_roles.cpp
  void make_barriers(const kernel::Inst& alloc);
  void arrive(const kernel::Inst& inst);
  void await(const kernel::Inst& inst);
  void roles(const kernel::Inst& inst);
  IrValue role(const kernel::Block& body, const std::string& name, std::vector<IrValue*> captured);
  void collect_captured(const kernel::Block& body, std::vector<IrValue*>& captured);

  // render_scalar.cpp
  void scalar(const kernel::Inst& inst);
  IrValue apply(kernel::ScalarOp op, Dtype t, std::span<const IrValue> args);
  IrValue apply_float(kernel::ScalarOp op, std::span<const IrValue> args);
  IrValue apply_integer(kernel::ScalarOp op, Dtype t, std::span<const IrValue> args);
  IrValue compare(kernel::ScalarOp op, Dtype t, IrValue a, IrValue b);
  IrValue extremum(bool greatest, IrValue a, IrValue b);
  IrValue bounded(bool greatest, IrValue x, IrValue k, double value);
  IrValue ordered(bool greatest, IrValue a, IrValue b);
  IrValue scaled(IrValue a, IrValue b);
  IrValue by_register(const char* instruction, IrValue a, IrValue b, int number);
  IrValue truncated_quotient(bool sign, IrValue a, IrValue b);
  IrValue divide(bool remainder, bool sign, IrValue a, IrValue b);
  IrValue shift(kernel::ScalarOp op, bool sign, IrValue a, IrValue count);
  IrValue by_lane(const std::string& external, std::span<const IrValue> args);

  // render_cast.cpp
  IrValue convert(IrValue v, Dtype from, Dtype to);
  IrValue widen_float8(IrValue bits, Dtype from);
  IrValue narrow_float8(IrValue value, Dtype to);
  IrValue to_small_integer(IrValue v, Dtype from, Dtype to);
  IrValue widen(IrValue bits, Dtype from);  // float16, bfloat16, 8-bit floats → float32
  IrValue narrow(IrValue value, Dtype to);  // float32 → one of these: nearest even, subnormals kept, NaN quiet
  IrValue narrow_to_bf16(IrValue v);
  IrValue narrow_in_hardware(IrValue v);
  IrValue bitcast(IrValue v, Dtype from, Dtype to);

  // render_tile.cpp
  void broadcast(const kernel::Inst& inst);
  void reshape(const kernel::Inst& inst);
  void reduce(const kernel::Inst& inst);
  void shift_lanes(const kernel::Inst& inst);
  void exchange_lanes(const kernel::Inst& inst);
  void dot(const kernel::Inst& inst);
  Rows transpose(const Rows& rows);
  void transpose_register_tile(Rows& rows);

  // render_memory.cpp
  struct Guard {              // the lanes of a row that exist
    IrValue row = nullptr;    // i1: whether the row exists; null: it does
    IrValue limit = nullptr;  // i64: lanes below it exist; null: all
    bool any() const { return row || limit; }
  };
  void load(const kernel::Inst& inst);
  void store(const kernel::Inst& inst);
  void gather(const kernel::Inst& inst);
  void scatter(const kernel::Inst& inst);
  void atomic_add(const kernel::Inst& inst);
  void prefetch(const kernel::Inst& inst);
  std::vector<IrValue> limits(const kernel::Inst& inst, const kernel::Type& tile, size_t first);
  Guard guard(IrValue row_limit, IrValue lane_limit, int64_t row);
  IrValue mask(const Guard& g, int64_t lanes, int bits, bool backwards = false);
  Rows load_tile(kernel::Ref ref, IrValue offset, int64_t m, int64_t n, int64_t row_stride, int64_t stride,
                 IrValue row_limit, IrValue lane_limit, const Number& other);
  IrValue existing(const Guard& g, int64_t lanes);
  void copy_lanes(kernel::Ref ref, IrValue to, IrValue from, IrValue begin, IrValue end);
  IrValue load_lanes(kernel::Ref ref, IrValue first, IrValue left_out, const Guard& g, bool backwards);
  void store_lanes(kernel::Ref ref, IrValue value, IrValue address, const Guard& g);
  IrValue load_row(kernel::Ref ref, IrValue address, int64_t n, int64_t stride, const Guard& g, const Number& other);
  void store_tile(kernel::Ref ref, const Rows& rows, IrValue offset, int64_t row_stride, int64_t stride,
                  IrValue row_limit, IrValue lane_limit, bool streaming);
  void store_row(kernel::Ref ref, IrValue value, IrValue address, int64_t stride, const Guard& g);
  void store_streaming(kernel::Ref ref, IrValue value, IrValue address, const Guard& g);
  IrValue load_gathered(kernel::Ref ref, IrValue addresses, IrValue mask, const Number& other);
  void store_scattered(kernel::Ref ref, IrValue value, IrValue addresses, IrValue mask);
  IrValue tagged(IrValue access, kernel::Ref ref);
  IrValue from_memory(IrValue v, Dtype t) { return t == bool_ ? ir_.compare(LLVMIntNE, v, ir_.same(v, 0)) : v; }
  IrValue to_memory(IrValue v, Dtype t) { return t == bool_ ? ir_.zext(v, ir_.i8) : v; }
  void atomic_lane(Dtype t, IrValue address, IrValue value);

  // Types and constants.
  IrType element(Dtype t) const;         // of a row
  IrType memory_element(Dtype t) const;  // in memory
  IrValue splat_number(const Number& number, Dtype t, int64_t lanes) const;
  const kernel::Type& type(kernel::Value v) const { return kernel_.types[static_cast<size_t>(v)]; }
  static int64_t rows_of(const kernel::Type& t) { return t.rank() == 2 ? t.dims[0] : 1; }
  static int64_t lanes_of(const kernel::Type& t) { return t.rank() == 0 ? 1 : t.dims.back(); }
  const Rows& rows(kernel::Value v) const { return values_[static_cast<size_t>(v)]; }
  IrValue single(kernel::Value v) const { return v == kernel::no_value ? nullptr : values_[static_cast<size_t>(v)][0]; }
  void define(const kernel::Inst& inst, Rows r) { values_[static_cast<size_t>(inst.results[0])] = std::move(r); }
  Dtype ref_dtype(kernel::Ref ref) const;
  bool is_local(kernel::Ref ref) const { return static_cast<size_t>(ref) >= kernel_.params.size(); }
  bool written(kernel::Ref ref) const { return is_local(ref) || kernel_.params[static_cast<size_t>(ref)].written; }
  IrValue spare(Dtype t, bool for_stores);
  IrValue spare_row(Dtype t, int64_t lanes);

  Ir ir_;
  const kernel::Kernel& kernel_;
  const Isa& isa_;
  std::vector<Rows> values_;
  // By Value: whether a tile is kept as m·n scalars instead of rows, since only dots use it, lane by lane.
  std::vector<char> splatted_;
  std::vector<IrValue> buffers_;  // by Ref
  std::vector<IrValue> symbols_;
  std::vector<IrValue> heap_;  // local buffers too large for the stack
  IrValue program_ = nullptr;
  bool streams_ = false;
  int64_t on_stack_ = 0;  // bytes of local buffers
  std::map<std::pair<int, bool>, IrValue> spares_;
  std::map<int64_t, IrValue> spare_rows_;  // by bytes
  IrValue written_scope_ = nullptr;
  int roles_ = 0;  // that were rendered
};

}  // namespace weft::target
