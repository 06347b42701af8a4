// The rules for instructions that compute, for control flow, and what an instruction looks like in general.
#include "kernel/rules.h"

#include <algorithm>
#include <bit>

#include "kernel/op_info.h"
#include "kernel/rules/checker.h"

namespace weft::kernel {

namespace {

/// Returns the fields that differ from their defaults.
unsigned fields_set(const Inst& inst) {
  static const Inst none;
  const auto bit = [](bool set, Field field) { return set ? unsigned{field} : 0U; };
  return bit(inst.scalar_op != none.scalar_op, scalar_op_field) | bit(inst.reducer != none.reducer, reducer_field) |
         bit(!(inst.number == none.number), number_field) | bit(inst.ref != none.ref, ref_field) |
         bit(inst.left != none.left || inst.right != none.right, matrices_field) |
         bit(inst.axis != none.axis, axis_field) | bit(!inst.strides.empty(), strides_field) |
         bit(inst.streaming, streaming_field) | bit(inst.parallel, parallel_field) |
         bit(!inst.axes.empty(), axes_field) | bit(inst.reverse, reverse_field) |
         bit(inst.precision != none.precision, precision_field) | bit(!inst.text.empty(), text_field) |
         bit(inst.lane_op != none.lane_op, lane_op_field) | bit(!(inst.ordering == none.ordering), ordering_field) |
         bit(inst.code != nullptr, code_field);
}

}  // namespace

bool Rules::shape_of_inst() {
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
  if (inst.op == Op::roles)
    return require(!inst.blocks.empty() && inst.blocks.size() == inst.axes.size(), "a body for each role is wanted");
  if (row.blocks < 0) return require(inst.blocks.size() <= 1, "one body at most is wanted");
  return require(inst.blocks.size() == static_cast<size_t>(row.blocks), row.blocks == 1 ? "one body is wanted"
                                                                        : row.blocks    ? "two bodies are wanted"
                                                                                        : "a body is not wanted");
}

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
    case Op::wait_until:
    case Op::prefetch:
    case Op::alloc: return access();
    case Op::load_neighbour:
    case Op::store_neighbour: return neighbour();
    case Op::grid_barrier:
    case Op::cluster_barrier: args(0); return;
    case Op::scalar: return scalar();
    case Op::reduce: return void(combined(true));
    case Op::scan: return void(combined(false));
    case Op::lanes: return lanes();
    case Op::inline_code:
    case Op::source: return inline_code();
    case Op::dot:
    case Op::dot_async: return dot();
    case Op::wait_dot:
      if (args(1)) require(arg(0) == inst.type, "the result's type is not the product's");
      return;
    case Op::loop: return loop();
    case Op::when: return when();
    case Op::branch:
    case Op::while_loop: return branches();
    case Op::print: args(inst.args.size()); return;
    case Op::assert_:
      if (args(1)) require(arg(0).dtype == bool_, "the condition is a bool");
      return;
    case Op::copy_async:
    case Op::commit_copies:
    case Op::wait_copies:
    case Op::arrive:
    case Op::await:
    case Op::roles: return asynchronous();
    case Op::yield: args(inst.args.size()); return;
    default: require(false, "there is no such instruction");
  }
}

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

bool has_instruction(const Block& block, Op op) {
  return std::any_of(block.insts.begin(), block.insts.end(), [&](const Inst& inst) {
    return inst.op == op || std::any_of(inst.blocks.begin(), inst.blocks.end(),
                                        [&](const Block& inner) { return has_instruction(inner, op); });
  });
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

size_t first_limit(Op op) { return op == Op::store ? 2 : 1; }

std::string broken_rule(const Kernel& kernel, const Inst& inst) {
  Rules rules{kernel, inst};
  rules.check();
  return rules.wrong;
}

}  // namespace weft::kernel
