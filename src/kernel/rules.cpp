#include "kernel/rules.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include <fmt/format.h>

#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

using std::string;

/// Returns the fields that differ from their defaults.
unsigned fields_set(const Inst& inst) {
  static const Inst none;
  const auto bit = [](bool set, Field field) { return set ? unsigned{field} : 0U; };
  return bit(inst.scalar_op != none.scalar_op, scalar_op_field) | bit(inst.reducer != none.reducer, reducer_field) |
         bit(!(inst.number == none.number), number_field) | bit(inst.ref != none.ref, ref_field) |
         bit(inst.left != none.left || inst.right != none.right, matrices_field) |
         bit(inst.axis != none.axis, axis_field) | bit(!inst.strides.empty(), strides_field) |
         bit(!(inst.schedule == none.schedule), schedule_field) | bit(inst.streaming, streaming_field) |
         bit(inst.parallel, parallel_field) | bit(!inst.sources.empty(), sources_field) |
         bit(!inst.axes.empty(), axes_field) | bit(inst.reverse, reverse_field) |
         bit(inst.precision != none.precision, precision_field) | bit(!inst.text.empty(), text_field);
}

// Collects the first complaint.
struct Rules {
  const Kernel& kernel;
  const Inst& inst;
  string wrong = {};

  bool require(bool ok, const char* message) {
    if (!ok && wrong.empty()) wrong = message;
    return wrong.empty();
  }
  const Type& arg(size_t k) const { return kernel.types[static_cast<size_t>(inst.args[k])]; }
  bool int64_scalar(size_t k) const { return arg(k).dtype == int64 && arg(k).rank() == 0; }
  bool absent(size_t k) const { return inst.args[k] == no_value; }

  bool shape_of_inst() {
    if (!require(inst.op <= Op::yield, "there is no such instruction")) return false;
    const OpInfo& row = info(inst.op);
    if (row.results == 0) require(inst.results.empty(), "an effect has no result");
    else if (row.results == 1) require(inst.results.size() == 1, "one result is wanted");
    for (Value v : inst.results)
      if (v < 0 || static_cast<size_t>(v) >= kernel.types.size())
        return require(false, "a result is not a value of the kernel");
    for (Value v : inst.args)
      if (v != no_value && (v < 0 || static_cast<size_t>(v) >= kernel.types.size()))
        return require(false, "an argument is not a value of the kernel");
    if (!inst.results.empty())
      require(kernel.types[static_cast<size_t>(inst.results[0])] == inst.type, "the type differs from the result's");
    for (Value v : inst.results) type(kernel.types[static_cast<size_t>(v)]);
    require((fields_set(inst) & ~row.fields) == 0, "a field is set that the instruction does not read");
    if (inst.op == Op::matmul)
      return require(inst.blocks.size() == size_t{inst.left < 0} + size_t{inst.right < 0},
                     "a block for each computed side is wanted");
    if (row.blocks < 0) return require(inst.blocks.size() <= 1, "one body at most is wanted");
    return require(inst.blocks.size() == static_cast<size_t>(row.blocks), row.blocks == 1 ? "one body is wanted"
                                                                          : row.blocks    ? "two bodies are wanted"
                                                                                          : "a body is not wanted");
  }
  void type(const Type& t) {
    require(t.dtype != complex64, "complex64 is no type of a tile");
    require(t.rank() <= most_axes, "a tile has at most four axes");
    for (int64_t d : t.dims) require(d >= 1, "a tile's extents are positive");
  }
  // n arguments; those from `optional` on may be absent.
  bool args(size_t n, size_t optional = SIZE_MAX) {
    if (!require(inst.args.size() == n, "the number of arguments is wrong")) return false;
    for (size_t k = 0; k < n && k < optional; ++k) require(!absent(k), "an argument is missing");
    return wrong.empty();
  }
  void number() {
    require(round_to(inst.number, inst.type.dtype) == inst.number, "the number is not one of the dtype");
  }
  bool memory(Dtype t) {
    return require(is_ref(kernel, inst.ref), "the reference names no parameter or local buffer") &&
           require(ref_dtype(kernel, inst.ref) == t, "the dtype differs from the buffer's");
  }
  void writable() {
    if (is_ref(kernel, inst.ref) && !is_local(kernel, inst.ref))
      require(kernel.params[static_cast<size_t>(inst.ref)].written, "the parameter is not declared as written");
  }

  void scalar();
  void permute();
  void part();
  void cat();
  bool combined(bool drops);
  bool scalars(const Block& body, size_t count);
  void take();
  void sort();
  void branches();
  void atomic();
  void broadcast();
  void reshape();
  void dot();
  void matmul();
  bool parameter(Ref ref);
  bool computed(bool right);
  void slice(const Type& tile);
  void indexed(const Type& tile, size_t index);
  void loop();
  void when();
  void leaf();
  void movement();
  void access();
  void check();
};

void Rules::scalar() {
  if (!require(inst.scalar_op < ScalarOp::count_, "there is no such scalar operator")) return;
  const ScalarInfo& row = info(inst.scalar_op);
  if (!args(static_cast<size_t>(row.arity))) return;
  const bool select = inst.scalar_op == ScalarOp::select;
  const Dtype t = arg(select ? 1 : 0).dtype;
  if (select) require(arg(0).dtype == bool_, "a select's condition is a bool");
  for (size_t k = 0; k < inst.args.size(); ++k) {
    require(arg(k).dims == inst.type.dims, "the arguments and the result have one shape");
    if (!(select && k == 0)) require(arg(k).dtype == t, "the arguments have one dtype");
  }
  require(takes(row, t), "the operator is not defined on this dtype");
  const Dtype result = row.result == ScalarResult::boolean ? bool_ : t;
  require(inst.type.dtype == result, "the result's dtype is not the operator's");
}

void Rules::broadcast() {
  if (!args(1)) return;
  const auto &from = arg(0).dims, &to = inst.type.dims;
  bool ok = from.size() <= to.size() && !to.empty();
  for (size_t k = 1; ok && k <= from.size(); ++k) {
    const int64_t extent = from[from.size() - k];
    ok = extent == 1 || extent == to[to.size() - k];
  }
  require(ok, "the shape does not broadcast: from the last axis on, extents are equal or 1");
  require(inst.type.dtype == arg(0).dtype, "the dtype changes");
}

void Rules::reshape() {
  if (!args(1)) return;
  require(arg(0).size() == inst.type.size(), "the number of elements changes");
  require(inst.type.dtype == arg(0).dtype, "the dtype changes");
}

void Rules::permute() {
  if (!args(1)) return;
  const Type& from = arg(0);
  if (!require(inst.axes.size() == from.dims.size() && inst.type.rank() == from.rank(),
               "an axis of the argument for each axis of the result is wanted"))
    return;
  std::vector<bool> seen(inst.axes.size(), false);
  for (size_t k = 0; k < inst.axes.size(); ++k) {
    const int64_t axis = inst.axes[k];
    if (!require(axis >= 0 && axis < from.rank() && !seen[static_cast<size_t>(axis)], "the axes are no permutation"))
      return;
    seen[static_cast<size_t>(axis)] = true;
    require(inst.type.dims[k] == from.dims[static_cast<size_t>(axis)], "the result is not the permuted argument");
  }
  require(inst.type.dtype == from.dtype, "the dtype changes");
}

void Rules::part() {
  if (!args(1)) return;
  const Type& from = arg(0);
  const size_t rank = from.dims.size();
  if (!require(inst.axes.size() == rank && inst.strides.size() == rank && inst.type.dims.size() == rank,
               "a beginning and a step for each axis are wanted"))
    return;
  for (size_t k = 0; k < rank; ++k) {
    const int64_t last = inst.axes[k] + (inst.type.dims[k] - 1) * inst.strides[k];
    require(inst.axes[k] >= 0 && inst.axes[k] < from.dims[k] && last >= 0 && last < from.dims[k],
            "the slice reaches outside the tile");
  }
  require(inst.type.dtype == from.dtype, "the dtype changes");
}

void Rules::cat() {
  if (!require(!inst.args.empty(), "there is nothing to join") || !args(inst.args.size())) return;
  if (!require(inst.axis >= 0 && inst.axis < inst.type.rank(), "there is no such axis")) return;
  const auto axis = static_cast<size_t>(inst.axis);
  Type sum = arg(0);
  if (!require(sum.rank() == inst.type.rank(), "the tiles have one rank")) return;
  sum.dims[axis] = 0;
  for (size_t k = 0; k < inst.args.size() && wrong.empty(); ++k) {
    Type part = arg(k);
    if (!require(part.rank() == sum.rank(), "the tiles have one rank")) return;
    const int64_t extent = part.dims[axis];
    part.dims[axis] = sum.dims[axis];
    require(part == sum, "the tiles differ along another axis, or in dtype");
    sum.dims[axis] += extent;
  }
  require(sum == inst.type, "the result is not the joined arguments");
}

/// The arguments and results of what combines tiles of one shape by a reducer or a block.
bool Rules::combined(bool drops) {
  const size_t count = inst.blocks.empty() ? 1 : inst.args.size();
  if (!args(count) || !require(count > 0 && inst.results.size() == count, "a result for each tile is wanted"))
    return false;
  for (size_t k = 0; k < count && wrong.empty(); ++k) {
    const Type& from = arg(k);
    if (!require(inst.axis >= 0 && inst.axis < from.rank(), "there is no such axis")) return false;
    require(from.dims == arg(0).dims, "the tiles have one shape");
    Type result = from;
    if (drops) result.dims.erase(result.dims.begin() + inst.axis);
    require(kernel.types[static_cast<size_t>(inst.results[k])] == result,
            drops ? "the result is not the argument without the axis" : "the result's type is not the argument's");
  }
  if (inst.blocks.empty()) {
    require(takes(inst.reducer, arg(0).dtype), "the reducer is not defined on this dtype");
    return require(components_of(inst.reducer) == 1, "the reducer's state is more than one number (kernel/states.h)");
  }
  require(inst.reducer == Inst{}.reducer, "a reducer is given beside a block");
  return scalars(inst.blocks[0], 2 * count);
}

/// The block of a reduction: scalars of the dtypes of the arguments, those of the lower part before those of the upper.
bool Rules::scalars(const Block& body, size_t count) {
  if (!require(body.arguments.size() == count && !body.insts.empty() && body.insts.back().args.size() == count / 2,
               "the block takes two scalars for each tile and yields one"))
    return false;
  const auto is = [&](Value v, Dtype t) {
    return v >= 0 && static_cast<size_t>(v) < kernel.types.size() &&
           kernel.types[static_cast<size_t>(v)] == Type{t, {}};
  };
  for (size_t k = 0; k < count; ++k)
    require(is(body.arguments[k], arg(k % (count / 2)).dtype), "the block takes scalars of the tiles' dtypes");
  for (size_t k = 0; k < count / 2; ++k)
    require(is(body.insts.back().args[k], arg(k).dtype), "the block yields scalars of the tiles' dtypes");
  return wrong.empty();
}

void Rules::take() {
  if (!args(2)) return;
  const Type &from = arg(0), &index = arg(1);
  if (!require(index.dtype == int64 && index.rank() == from.rank(), "the index is an int64 tile of the tile's rank"))
    return;
  if (!require(inst.axis >= 0 && inst.axis < from.rank(), "there is no such axis")) return;
  for (int k = 0; k < from.rank(); ++k)
    require(k == inst.axis || from.dims[static_cast<size_t>(k)] == index.dims[static_cast<size_t>(k)],
            "tile and index differ along another axis");
  require(inst.type == Type{from.dtype, index.dims}, "the result has not the index's shape and the tile's dtype");
}

void Rules::sort() {
  if (!require(!inst.args.empty(), "there is nothing to sort") || !args(inst.args.size())) return;
  if (!require(inst.results.size() == inst.args.size(), "a result for each tile is wanted")) return;
  require(inst.axis >= 0 && inst.axis < arg(0).rank(), "there is no such axis");
  for (size_t k = 0; k < inst.args.size() && wrong.empty(); ++k) {
    require(arg(k).dims == arg(0).dims, "the tiles have one shape");
    require(kernel.types[static_cast<size_t>(inst.results[k])] == arg(k), "the result's type is not the argument's");
  }
}

void Rules::dot() {
  if (!args(3)) return;
  const Type &a = arg(0), &b = arg(1), &c = arg(2);
  const bool widened = is_float(a.dtype) ? is_float(c.dtype) && a.dtype.size() <= c.dtype.size()
                                         : is_integer(a.dtype) && c.dtype == int32 && a.dtype.size() <= 4;
  require(a.dtype == b.dtype, "the operands have one dtype");
  require(widened, "the operands are floats, or integers that add up in int32; the accumulator is as wide as they are");
  require(inst.precision == DotPrecision::exact || (a.dtype == float32 && c.dtype == float32),
          "a precision is given for float32 alone");
  const size_t rank = c.dims.size();
  if (!require(rank >= 2 && a.dims.size() == rank && b.dims.size() == rank, "the operands have two axes, or more"))
    return;
  for (size_t k = 0; k + 2 < rank; ++k)
    require(a.dims[k] == c.dims[k] && b.dims[k] == c.dims[k], "the operands' leading axes differ");
  require(a.dims[rank - 2] == c.dims[rank - 2] && b.dims[rank - 1] == c.dims[rank - 1] &&
              a.dims[rank - 1] == b.dims[rank - 2],
          "the shapes are not [m,k] [k,n] [m,n]");
  require(inst.type == c, "the result's type is not the accumulator's");
}

/// Requires that a matmul reads a parameter that nobody writes.
bool Rules::parameter(Ref ref) {
  const auto params = static_cast<Ref>(kernel.params.size());
  return require(ref >= 0 && ref < params && !kernel.params[static_cast<size_t>(ref)].written,
                 "the operands are parameters that nobody writes");
}

/// The block of a computed side: an argument for each array that it reads, and one result.
bool Rules::computed(bool right) {
  const Block& body = *computed_side(inst, right);
  std::vector<const MatmulSource*> sources;
  for (const MatmulSource& s : inst.sources)
    if (s.right == right) sources.push_back(&s);
  if (!require(!sources.empty() && body.arguments.size() == sources.size(),
               "a computed side's block takes an element of each of its sources"))
    return false;
  const auto exists = [&](Value v) { return v >= 0 && static_cast<size_t>(v) < kernel.types.size(); };
  for (size_t k = 0; k < sources.size(); ++k) {
    if (!parameter(sources[k]->ref)) return false;
    const Value v = body.arguments[k];
    require(exists(v) && kernel.types[static_cast<size_t>(v)] == Type{ref_dtype(kernel, sources[k]->ref), {}},
            "a computed side's block takes an element of each of its sources");
    require(sources[k]->jump.period >= 0 && sources[k]->depth_jump.period >= 0, "a jump's period is not negative");
  }
  const std::vector<Value> yields = body.insts.empty() ? std::vector<Value>{} : body.insts.back().args;
  require(inst.strides[right ? 3 : 0] == 0 && inst.strides[right ? 2 : 1] == 0, "a computed side has no strides");
  return require(yields.size() == 1 && exists(yields[0]) && kernel.types[static_cast<size_t>(yields[0])].rank() == 0,
                 "a computed side's block yields one scalar");
}

void Rules::matmul() {
  if (inst.args.size() != 5 + inst.sources.size() || inst.strides.size() != 5)
    return void(require(false, "five arguments, one for each source, and five strides are wanted"));
  for (size_t k = 0; k < inst.args.size(); ++k)
    require((absent(k) && (k == 2 || k == 3)) || (!absent(k) && int64_scalar(k)),
            "offsets, limits and the depth are int64 scalars");
  for (size_t k = 1; k < inst.sources.size(); ++k)
    require(!inst.sources[k - 1].right || inst.sources[k].right, "A's sources come before B's");
  for (const MatmulSource& s : inst.sources)
    require((s.right ? inst.right : inst.left) < 0, "a source belongs to a computed side");
  if (!(inst.left < 0 ? computed(false) : parameter(inst.left))) return;
  if (!(inst.right < 0 ? computed(true) : parameter(inst.right))) return;
  const Dtype t = matmul_dtype(kernel, inst, false);
  require((t == float16 || t == bfloat16 || t == float32) && matmul_dtype(kernel, inst, true) == t,
          "the operands are both float16, bfloat16 or float32");
  const auto params = static_cast<Ref>(kernel.params.size());
  if (!require(is_local(kernel, inst.ref) && ref_dtype(kernel, inst.ref) == float32,
               "the result goes to a float32 local buffer"))
    return;
  if (!require(inst.type.dtype == float32 && inst.type.rank() == 2, "the tile is float32 with two axes")) return;
  const int64_t rows = inst.type.dims[0], columns = inst.type.dims[1], pitch = inst.strides[4];
  require(pitch >= columns &&
              (rows - 1) * pitch + columns <= kernel.locals[static_cast<size_t>(inst.ref - params)].elements,
          "the tile does not fit into the local buffer");
  const MatmulSchedule& how = inst.schedule;
  const auto part = [](int n, int grain, int64_t of) {
    return n >= grain && n % grain == 0 && of % n == 0 && std::has_single_bit(static_cast<uint64_t>(of));
  };
  require(part(how.rows, 16, rows) && part(how.columns, 16, columns),
          "tile and warps are powers of two, and a warp has at least 16 by 16");
  require(how.stages >= 2 && how.depth >= 16 && std::has_single_bit(static_cast<unsigned>(how.depth)),
          "a piece of K is a power of two from 16 on, and there are two of them at least");
}

// offset and limits of a load or store, whose tile is `tile`
void Rules::slice(const Type& tile) {
  const size_t rank = tile.dims.size(), limits = first_limit(inst.op);
  if (!memory(tile.dtype) || !require(inst.strides.size() == rank, "one stride for each axis is wanted")) return;
  require(int64_scalar(limits - 1), "the offset is an int64 scalar");
  for (size_t k = limits; k < limits + rank; ++k) require(absent(k) || int64_scalar(k), "a limit is an int64 scalar");
}

void Rules::indexed(const Type& tile, size_t index) {
  if (!memory(tile.dtype)) return;
  require(arg(index).dtype == int64 && arg(index).dims == tile.dims, "the index is an int64 tile of the value's shape");
  if (!absent(index + 1))
    require(arg(index + 1).dtype == bool_ && arg(index + 1).dims == tile.dims,
            "the mask is a bool tile of the value's shape");
}

void Rules::atomic() {
  const bool bits =
      inst.scalar_op == ScalarOp::bit_and || inst.scalar_op == ScalarOp::bit_or || inst.scalar_op == ScalarOp::bit_xor;
  const bool numbers =
      inst.scalar_op == ScalarOp::add || inst.scalar_op == ScalarOp::min || inst.scalar_op == ScalarOp::max;
  require(bits || numbers, "an atomic adds, takes an extreme, or combines bits");
  require(bits ? is_integer(inst.type.dtype) : inst.type.dtype != bool_, "the atomic is not defined on this dtype");
}

void Rules::loop() {
  if (!require(inst.args.size() >= 3, "the number of arguments is wrong") || !args(inst.args.size())) return;
  const size_t carried = inst.args.size() - 3;
  for (size_t k = 0; k < 3; ++k) require(int64_scalar(k), "a loop's bounds and step are int64 scalars");
  require(inst.results.size() == carried, "one result for each carried value is wanted");
  if (!require(inst.blocks[0].arguments.size() == carried + 1,
               "the body takes the induction variable and the carried values"))
    return;
  for (Value v : inst.blocks[0].arguments)
    if (!require(v >= 0 && static_cast<size_t>(v) < kernel.types.size(),
                 "an argument of the body is not a value of the kernel"))
      return;
  auto type_of = [&](Value v) -> const Type& { return kernel.types[static_cast<size_t>(v)]; };
  require(type_of(inst.blocks[0].arguments[0]) == Type{int64, {}}, "the induction variable is an int64 scalar");
  for (size_t k = 0; k < carried && wrong.empty(); ++k) {
    require(type_of(inst.results[k]) == arg(3 + k), "the type of a carried value changes");
    require(type_of(inst.blocks[0].arguments[1 + k]) == arg(3 + k), "the type of a carried value changes");
  }
}

void Rules::when() {
  if (!args(1 + inst.results.size())) return;
  if (inst.results.empty()) require(arg(0) == Type{bool_, {}}, "the condition is a bool scalar");
  require(arg(0).dtype == bool_, "the condition is a bool");
  require(inst.blocks[0].arguments.empty(), "the body takes no arguments");
  for (size_t k = 0; k < inst.results.size() && wrong.empty(); ++k) {
    require(arg(1 + k).dims == arg(0).dims, "the condition and the values have one shape");
    require(kernel.types[static_cast<size_t>(inst.results[k])] == arg(1 + k), "the type of a value changes");
  }
}

/// Control flow with two blocks; the verifier checks what they yield.
void Rules::branches() {
  if (inst.op == Op::branch) {
    if (args(1)) require(arg(0) == Type{bool_, {}}, "the condition is a bool scalar");
    for (const Block& b : inst.blocks) require(b.arguments.empty(), "the bodies take no arguments");
    return;
  }
  if (!args(inst.args.size())) return;
  if (!require(inst.results.size() == inst.args.size(), "one result for each carried value is wanted")) return;
  for (const Block& b : inst.blocks)
    if (!require(b.arguments.size() == inst.args.size(), "the bodies take the carried values")) return;
  for (size_t k = 0; k < inst.args.size() && wrong.empty(); ++k) {
    require(kernel.types[static_cast<size_t>(inst.results[k])] == arg(k), "the type of a carried value changes");
    for (const Block& b : inst.blocks) {
      const Value v = b.arguments[k];
      require(v >= 0 && static_cast<size_t>(v) < kernel.types.size() && kernel.types[static_cast<size_t>(v)] == arg(k),
              "the type of a carried value changes");
    }
  }
}

/// Instructions without arguments.
void Rules::leaf() {
  const Type int64_type{int64, {}};
  switch (inst.op) {
    case Op::constant:
      if (args(0)) number();
      break;
    case Op::program_id:
      if (args(0)) require(inst.type == int64_type, "the result is an int64 scalar");
      break;
    case Op::symbol:
      if (!args(0)) break;
      require(inst.type == int64_type, "the result is an int64 scalar");
      require(inst.ref >= 0 && static_cast<size_t>(inst.ref) < kernel.symbols.size(), "there is no such symbol");
      break;
    case Op::arange:
      if (args(0))
        require((inst.type.dtype == int64 || inst.type.dtype == int32) && inst.type.rank() == 1,
                "the result is int64 or int32 with one axis");
      break;
    default: require(false, "there is no such instruction");
  }
}

/// Instructions that move the elements of a tile, or change their dtype.
void Rules::movement() {
  switch (inst.op) {
    case Op::cast:
      if (args(1)) require(arg(0).dims == inst.type.dims, "the shape changes");
      break;
    case Op::bitcast:
      if (!args(1)) break;
      require(arg(0).dims == inst.type.dims, "the shape changes");
      require(arg(0).dtype.size() == inst.type.dtype.size() && arg(0).dtype != bool_ && inst.type.dtype != bool_,
              "the width changes, or a bool is involved");
      break;
    case Op::broadcast: broadcast(); break;
    case Op::reshape: reshape(); break;
    case Op::permute: permute(); break;
    case Op::slice: part(); break;
    case Op::cat: cat(); break;
    case Op::take: take(); break;
    case Op::sort: sort(); break;
    case Op::histogram:
      if (!args(1)) break;
      require(is_integer(arg(0).dtype), "the index is an integer tile");
      require(inst.type.dtype == int32 && inst.type.rank() == 1, "the result is int32 with one axis");
      break;
    case Op::shift:
      if (!args(2)) break;
      require(arg(0).rank() == 1 && arg(0) == inst.type && arg(1) == inst.type,
              "the arguments and the result are tiles of one type with one axis");
      if (wrong.empty())
        require(inst.axis != 0 && std::abs(inst.axis) < inst.type.dims[0],
                "the shift is by no lane, or by all of them");
      break;
    case Op::exchange:
      if (!args(1)) break;
      require(arg(0).rank() == 1 && arg(0) == inst.type && (inst.type.dims[0] & (inst.type.dims[0] - 1)) == 0,
              "the argument and the result are tiles of one type with one axis, a power of two long");
      if (wrong.empty()) require(inst.axis > 0 && inst.axis < inst.type.dims[0], "there is no lane to exchange with");
      break;
    case Op::extract:
      if (!args(1)) break;
      require(arg(0).rank() == 1 && inst.type == Type{arg(0).dtype, {}},
              "the result is not one lane of a tile with one axis");
      if (wrong.empty()) require(inst.axis >= 0 && inst.axis < arg(0).dims[0], "there is no such lane");
      break;
    default: require(false, "there is no such instruction");
  }
}

/// Instructions that touch a parameter or a local buffer.
void Rules::access() {
  switch (inst.op) {
    case Op::load:
      if (!args(1 + inst.type.dims.size(), 1)) break;
      slice(inst.type);
      number();
      break;
    case Op::store:
      if (!require(!inst.args.empty() && !absent(0), "the value is missing") || !args(2 + arg(0).dims.size(), 2)) break;
      slice(arg(0));
      writable();
      for (size_t k = 0; k < inst.strides.size(); ++k)
        require(inst.strides[k] != 0 || arg(0).dims[k] == 1, "a stride of 0 stores several lanes to one place");
      break;
    case Op::gather:
      if (!args(2, 1)) break;
      indexed(inst.type, 0);
      number();
      break;
    case Op::scatter:
    case Op::atomic_add:
      if (!args(3, 2)) break;
      indexed(arg(0), 1);
      writable();
      if (inst.op == Op::atomic_add) require(arg(0).dtype != bool_, "bools do not add");
      break;
    case Op::atomic:
    case Op::exchange_memory:
      if (!args(3, 2)) break;
      indexed(arg(0), 1);
      writable();
      require(inst.type == arg(0), "the result's type is not the value's");
      if (inst.op == Op::atomic) atomic();
      break;
    case Op::compare_exchange:
      if (!args(4, 3)) break;
      indexed(arg(1), 2);
      writable();
      require(inst.type == arg(1) && arg(0) == arg(1), "expected, value and result have one type");
      break;
    case Op::prefetch:
      if (!args(1) ||
          !require(is_ref(kernel, inst.ref) && !is_local(kernel, inst.ref), "the reference names no parameter"))
        break;
      require(int64_scalar(0), "the offset is an int64 scalar");
      require(inst.number.integral && inst.number.i > 0, "the number of elements is positive");
      break;
    case Op::alloc:
      if (!args(0) || !require(is_local(kernel, inst.ref), "the reference names no local buffer")) break;
      require(
          inst.number == Number::of_int(kernel.locals[static_cast<size_t>(inst.ref) - kernel.params.size()].elements),
          "the number of elements differs from the local buffer's");
      break;
    default: require(false, "there is no such instruction");
  }
}

void Rules::check() {
  if (!shape_of_inst()) return;
  switch (inst.op) {
    case Op::constant:
    case Op::program_id:
    case Op::symbol:
    case Op::arange: return leaf();
    case Op::cast:
    case Op::bitcast:
    case Op::broadcast:
    case Op::reshape:
    case Op::permute:
    case Op::slice:
    case Op::cat:
    case Op::take:
    case Op::sort:
    case Op::histogram:
    case Op::shift:
    case Op::exchange:
    case Op::extract: return movement();
    case Op::load:
    case Op::store:
    case Op::gather:
    case Op::scatter:
    case Op::atomic_add:
    case Op::atomic:
    case Op::exchange_memory:
    case Op::compare_exchange:
    case Op::prefetch:
    case Op::alloc: return access();
    case Op::scalar: return scalar();
    case Op::reduce: return void(combined(true));
    case Op::scan: return void(combined(false));
    case Op::dot: return dot();
    case Op::matmul: return matmul();
    case Op::loop: return loop();
    case Op::when: return when();
    case Op::branch:
    case Op::while_loop: return branches();
    case Op::print: args(inst.args.size()); return;
    case Op::assert_:
      if (args(1)) require(arg(0).dtype == bool_, "the condition is a bool");
      return;
    case Op::yield: args(inst.args.size()); return;
    default: require(false, "there is no such instruction");
  }
}

}  // namespace

bool is_basic(const Kernel& kernel, const Inst& inst) {
  if (!info(inst.op).basic) return false;
  const auto of = [&](Value v) -> const Type& { return kernel.types[static_cast<size_t>(v)]; };
  for (const Value v : inst.results)
    if (of(v).rank() > 2) return false;
  const auto line = [](const Type& t) {
    return t.rank() == 1 || (t.rank() == 2 && (t.dims[0] == 1 || t.dims[1] == 1));
  };
  switch (inst.op) {
    case Op::broadcast: {
      const auto &from = of(inst.args[0]).dims, &to = inst.type.dims;
      if (from.size() == 1) return to.size() == 2 && to[1] == from[0];
      return from.empty() || (from[1] == 1 && from[0] == to[0]) || (from[0] == 1 && from[1] == to[1]);
    }
    case Op::reshape: return line(of(inst.args[0])) && line(inst.type);
    case Op::permute: return inst.axes.size() == 2;
    case Op::reduce:
      return inst.blocks.empty() && of(inst.args[0]).rank() <= 2 &&
             std::has_single_bit(static_cast<uint64_t>(of(inst.args[0]).dims[static_cast<size_t>(inst.axis)]));
    case Op::dot:
      return inst.type.rank() == 2 && of(inst.args[0]).dtype == inst.type.dtype &&
             inst.precision == DotPrecision::exact;
    case Op::store: return of(inst.args[0]).rank() <= 2;
    default: break;
  }
  return std::all_of(inst.blocks.begin(), inst.blocks.end(), [&](const Block& b) {
    return std::all_of(b.insts.begin(), b.insts.end(), [&](const Inst& i) { return is_basic(kernel, i); });
  });
}

bool is_basic(const Kernel& kernel) {
  return std::all_of(kernel.body.insts.begin(), kernel.body.insts.end(),
                     [&](const Inst& i) { return is_basic(kernel, i); });
}

bool is_local(const Kernel& kernel, Ref ref) {
  return ref >= 0 && static_cast<size_t>(ref) >= kernel.params.size() && is_ref(kernel, ref);
}

bool is_ref(const Kernel& kernel, Ref ref) {
  return ref >= 0 && static_cast<size_t>(ref) < kernel.params.size() + kernel.locals.size();
}

Dtype ref_dtype(const Kernel& kernel, Ref ref) {
  const size_t k = static_cast<size_t>(ref), params = kernel.params.size();
  return k < params ? kernel.params[k].dtype : kernel.locals.at(k - params).dtype;
}

const Block* computed_side(const Inst& matmul, bool right) {
  if ((right ? matmul.right : matmul.left) >= 0) return nullptr;
  const size_t at = right && matmul.left < 0 ? 1 : 0;
  return at < matmul.blocks.size() ? &matmul.blocks[at] : nullptr;
}

Dtype matmul_dtype(const Kernel& kernel, const Inst& matmul, bool right) {
  const Block* const body = computed_side(matmul, right);
  return body ? kernel.types.at(static_cast<size_t>(body->insts.back().args.at(0))).dtype
              : ref_dtype(kernel, right ? matmul.right : matmul.left);
}

size_t first_limit(Op op) { return op == Op::store ? 2 : 1; }

std::string broken_rule(const Kernel& kernel, const Inst& inst) {
  Rules rules{kernel, inst};
  rules.check();
  return rules.wrong;
}

}  // namespace weft::kernel
