// Dots, after Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", 2008): the right operand is
// packed into panels of columns, and tiles of the result that fill the registers run through k. Each element is one
// chain of fused multiply-adds over ascending k.
#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "base/error.h"
#include "kernel/legalize/legalizer.h"
#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

constexpr int64_t unroll = 4;               // steps of k in the innermost loop
constexpr int64_t near_bytes = 1024;        // between rows of an operand that is read where it lies
constexpr int64_t packed_rows = 8;          // rows of the right operand that are packed at once
constexpr int64_t few_tiles = 3;            // of rows, for which packing does not pay
constexpr int64_t near_operand = 32 << 10;  // bytes, over all rows, of a right operand that is read where it lies

void add_defined(const Block& block, std::set<Value>& out) {
  out.insert(block.arguments.begin(), block.arguments.end());
  for (const Inst& inst : block.insts) {
    out.insert(inst.results.begin(), inst.results.end());
    for (const Block& inner : inst.blocks) add_defined(inner, out);
  }
}

}  // namespace

/// The part of a dot that one batch index takes.
struct Legalizer::Panels {
  const Inst& inst;
  Dtype dtype;
  int64_t m, n, k;
  int64_t times = 1;            // products that stand for one (tf32x3)
  int64_t rows = 1, lanes = 1;  // of a tile of the result that fills the registers
  std::vector<Value> batch = {};
  View left = {}, right = {}, to = {};  // left [m, k·times] at `batch`; right: panels, or [k, n] as it lies
  bool packed = true;                   // right
};

/// Rounds float32 to TF32, half away from zero; `tail`: what this leaves, rounded so as well.
Value Legalizer::tf32(Value v, bool tail) {
  const Dims dims = b_.type(v).dims;
  const auto word = [&](int64_t n) { return b_.constant(uint32, Number::of_int(n), dims); };
  const auto round = [&](Value x) {
    const Value bits = b_.bitcast(x, uint32);
    const Value special =
        b_.scalar(ScalarOp::eq, {b_.scalar(ScalarOp::bit_and, {bits, word(0x7f800000)}), word(0x7f800000)});
    const Value rounded = b_.scalar(ScalarOp::bit_and, {b_.add(bits, word(0x1000)), word(0xffffe000)});
    return b_.bitcast(b_.select(special, bits, rounded), float32);
  };
  const Value head = round(v);
  return tail ? round(b_.sub(v, head)) : head;
}

/// Returns whether a result may lie in the memory of a tile: a loop carries it, and nothing else in the loop reads it.
bool Legalizer::may_overwrite(Value v) const {
  const auto carried = carried_.find(v);
  return carried != carried_.end() && carried->second == block_ && uses_[static_cast<size_t>(v)] == 1;
}

/// Returns whether a product continues the sum that an instruction loads, and nothing is stored before it does.
bool Legalizer::is_continued(const Inst& load) const {
  if (load.type.rank() != 2 || uses_[static_cast<size_t>(load.results[0])] != 1) return false;
  for (const Inst* next = &load + 1; next != block_->insts.data() + block_->insts.size(); ++next) {
    if (next->op == Op::dot && next->args[2] == load.results[0]) return true;
    const Access access = info(next->op).access;
    if (access == Access::writes || access == Access::updates || !next->blocks.empty()) return false;
  }
  return false;
}

/// Returns where a product is stored if nothing but the store reads it and nothing else happens before, and lets that
/// store pass. A sum that is continued elsewhere in the same memory is read before it may be overwritten.
std::optional<View> Legalizer::stored_next(const Inst& inst) {
  const Value v = inst.results[0];
  if (inst.type.rank() != 2 || uses_[static_cast<size_t>(v)] != 1) return std::nullopt;
  const Inst *next = &inst + 1, *const end = block_->insts.data() + block_->insts.size();
  const auto is_number = [&](const Inst& i) {
    return (i.op == Op::scalar || i.op == Op::constant || i.op == Op::cast) && type(i.results[0]).rank() == 0;
  };
  for (; next != end && is_number(*next); ++next) scalar_inst(*next);
  if (next == end || next->op != Op::store || next->args[0] != v || next->strides.back() != 1 ||
      std::any_of(next->args.begin() + 2, next->args.end(), [](Value limit) { return limit != no_value; }))
    return std::nullopt;
  View to{.ref = next->ref,
          .dtype = inst.type.dtype,
          .offset = scalar(next->args[1]),
          .dims = inst.type.dims,
          .strides = next->strides};
  to.limits.assign(to.dims.size(), no_value);
  const auto& sum = held(inst.args[2]).view;
  if (sum && sum->ref == to.ref && (sum->offset != to.offset || sum->strides != to.strides)) return std::nullopt;
  done_.insert(next);
  return to;
}

Legalizer::Panels Legalizer::panels(const Inst& inst) const {
  const Type &a = type(inst.args[0]), &c = inst.type;
  const size_t rank = c.dims.size();
  Panels p{.inst = inst, .dtype = c.dtype, .m = c.dims[rank - 2], .n = c.dims[rank - 1], .k = a.dims[rank - 1]};
  p.times = inst.precision == DotPrecision::tf32x3 ? 3 : 1;
  p.lanes = 2 * registers_.bytes / c.dtype.size();
  p.rows = registers_.count >= 32 ? 12 : 6;
  // Rows of a tile of the result read the right operand once each: where several do, rows that lie far apart are
  // packed.
  const auto& right = held(inst.args[1]).view;
  const bool as_it_lies = right && right->whole() && right->strides.back() == 1 && right->dtype == c.dtype;
  p.packed = !as_it_lies || inst.precision != DotPrecision::exact ||
             (p.m > few_tiles * p.rows && p.k * right->strides[rank - 2] * c.dtype.size() > near_operand);
  return p;
}

/// Packs the right operands of the products in a loop that are the same in all of its iterations.
void Legalizer::pack_invariant(const Block& body) {
  std::set<Value> inside;
  add_defined(body, inside);
  const std::function<void(const Block&)> pack = [&](const Block& block) {
    for (const Inst& inst : block.insts) {
      if (inst.op == Op::loop) pack(inst.blocks[0]);
      if (inst.op != Op::dot || inst.type.dims.size() != 2 || inside.contains(inst.args[1])) continue;
      Panels p = panels(inst);
      if (!p.packed || packed_before(inst)) continue;
      p.right = scratch(p.dtype, {p.k * p.times, p.n});
      pack_right(p);
      frames_.back().panels[{inst.args[1], inst.precision}] = p.right;
    }
  };
  pack(body);
}

/// Returns the panels of a right operand that were packed before the loop around a product.
std::optional<View> Legalizer::packed_before(const Inst& inst) const {
  for (const Frame& f : frames_)
    if (const auto found = f.panels.find({inst.args[1], inst.precision}); found != f.panels.end()) return found->second;
  return std::nullopt;
}

void Legalizer::dot(const Inst& inst) {
  const Type& c = inst.type;
  const size_t rank = c.dims.size();
  Panels p = panels(inst);
  std::optional<View> to = stored_next(inst);
  if (!to && may_overwrite(inst.args[2])) to = held(inst.args[2]).view;
  p.to = to ? *to : scratch(c.dtype, c.dims);
  const Held& sum = held(inst.args[2]);
  const bool splat = sum.inst && sum.inst->op == Op::constant;
  const std::optional<View> sum_view = sum.view;
  if (!splat && !(sum.view && sum.view->whole() && sum.view->strides.back() == 1)) {
    store_to(inst.args[2], p.to);
    held(inst.args[2]).view = p.to;
  }
  const auto& left = held(inst.args[0]).view;
  // Each panel of columns reads all of the left operand: rows that lie far apart are copied if several do.
  const bool near_rows = p.n <= 2 * p.lanes || (left && left->strides[rank - 2] * c.dtype.size() <= near_bytes);
  const bool exact = inst.precision == DotPrecision::exact;
  bool direct = left && left->whole() && left->dtype == c.dtype && near_rows && exact;
  if (!direct && exact && rank == 2) {  // a copy by rows, which other products read as well
    const View copy = scratch(c.dtype, type(inst.args[0]).dims);
    each_chunk(copy.dims, {}, [&](const Chunk& at) { write(copy, at, b_.cast(value(inst.args[0], at), c.dtype)); });
    if (type(inst.args[0]).dtype == c.dtype) keep(inst.args[0], copy);
    p.left = copy, direct = true;
  } else {
    p.left = direct ? *left : scratch(c.dtype, {p.m, p.k * p.times});
  }
  const std::optional<View> before = packed_before(inst);
  p.right = !p.packed ? *held(inst.args[1]).view : before ? *before : scratch(c.dtype, {p.k * p.times, p.n});
  const std::function<void()> nest = [&] {
    if (p.batch.size() + 2 < rank)
      return each(index(0), index(c.dims[p.batch.size()]), 1, [&](Value i) {
        p.batch.push_back(i);
        nest();
        p.batch.pop_back();
      });
    if (!direct) pack_left(p);
    if (p.packed && !before) pack_right(p);
    multiply(p, direct, splat);
  };
  nest();
  held(inst.args[2]).view = sum_view;
  held(inst.results[0]).view = p.to;
}

/// Returns the parts of an operand's elements that are multiplied, in order: of tf32x3 its tail and head.
std::vector<Value> Legalizer::parts(const Panels& p, Value v, bool right) {
  if (p.inst.precision == DotPrecision::tf32) return {tf32(v, false)};
  if (p.inst.precision == DotPrecision::exact) return {b_.cast(v, p.dtype)};
  const Value head = tf32(v, false), tail = tf32(v, true);
  return right ? std::vector<Value>{head, tail, head} : std::vector<Value>{tail, head, head};
}

/// Packs the left operand: rows of k numbers.
void Legalizer::pack_left(const Panels& p) {
  each(index(0), index(p.m), 1, [&](Value i) {
    std::vector<Value> position = p.batch;
    position.push_back(i);
    each_part(p.k, no_value, registers_.bytes / 4 * 2, [&](Value start, int64_t width) {
      const std::vector<Value> list = parts(p, value(p.inst.args[0], {position, start, width}), false);
      for (size_t t = 0; t < list.size(); ++t)
        b_.store(p.left.ref, list[t],
                 add(mul(i, index(p.k * p.times)), add(mul(start, index(p.times)), index(static_cast<int64_t>(t)))),
                 {p.times});
    });
  });
}

/// Packs the right operand: for each panel of columns its rows, one after the other. A tile in memory is read several
/// rows at once, so that one whose columns are adjacent is transposed in registers.
void Legalizer::pack_right(const Panels& p) {
  const Value v = p.inst.args[1];
  const auto put = [&](Value start, int64_t width, Value k, const std::vector<Value>& list,
                       std::vector<int64_t> strides) {
    for (size_t t = 0; t < list.size(); ++t) {
      const Value row = add(mul(k, index(p.times)), index(static_cast<int64_t>(t)));
      b_.store(p.right.ref, list[t], add(mul(start, index(p.k * p.times)), mul(row, index(width))), strides);
    }
  };
  const auto& view = held(v).view;
  // A matrix beyond the limit of an axis of the batch has no rows.
  const auto row_limit = [&] {
    Value limit = view->limits[p.batch.size()];
    for (size_t axis = 0; axis < p.batch.size(); ++axis)
      if (view->limits[axis] != no_value)
        limit = b_.select(shared(ScalarOp::lt, {p.batch[axis], view->limits[axis]}),
                          limit != no_value ? limit : index(p.k), index(0));
    return limit;
  };
  const auto pack = [&](bool guarded) {
    const Value most = view && guarded ? row_limit() : no_value;
    each_part(p.n, no_value, p.lanes, [&](Value start, int64_t width) {
      if (!view)
        return each(index(0), index(p.k), 1, [&](Value k) {
          std::vector<Value> position = p.batch;
          position.push_back(k);
          put(start, width, k, parts(p, value(v, {position, start, width}), true), {1});
        });
      const size_t rank = view->dims.size();
      each_part(p.k, no_value, packed_rows, [&](Value k, int64_t rows) {
        Value at = view->offset;
        for (size_t axis = 0; axis < p.batch.size(); ++axis)
          at = add(at, mul(p.batch[axis], index(view->strides[axis])));
        at = add(at, add(mul(k, index(view->strides[rank - 2])), mul(start, index(view->strides[rank - 1]))));
        const auto left = [&](Value limit, Value from) {
          return guarded && limit != no_value ? shared(ScalarOp::sub, {limit, from}) : no_value;
        };
        const Value tile = b_.load(view->ref, at, {rows, width}, {view->strides[rank - 2], view->strides[rank - 1]},
                                   {left(most, k), left(view->limits[rank - 1], start)}, view->other);
        put(start, width, k, parts(p, tile, true), {p.times * width, 1});
      });
    });
  };
  if (!view || view->whole()) return pack(false);
  Value covered = b_.constant(bool_, Number::of_int(1));
  for (size_t axis = 0; axis < view->dims.size(); ++axis)
    if (const Value limit = view->limits[axis]; limit != no_value) {
      const Value enough = axis < p.batch.size() ? shared(ScalarOp::lt, {p.batch[axis], limit})
                                                 : b_.scalar(ScalarOp::le, {index(view->dims[axis]), limit});
      covered = b_.scalar(ScalarOp::bit_and, {covered, enough});
    }
  const auto arm = [&](bool guarded) {
    in_frame([&] { pack(guarded); });
    return std::vector<Value>{};
  };
  b_.branch(
      covered, [&] { return arm(false); }, [&] { return arm(true); });
}

/// Computes the tiles of the result.
void Legalizer::multiply(const Panels& p, bool direct, bool splat) {
  const size_t axes = p.to.dims.size();
  const int64_t depth = p.k * p.times;
  const auto base = [&](const View& v) {
    Value at = v.offset;
    for (size_t axis = 0; axis < p.batch.size(); ++axis) at = add(at, mul(p.batch[axis], index(v.strides[axis])));
    return at;
  };
  const Value left = direct ? base(p.left) : index(0), to = base(p.to);
  const int64_t row = direct ? p.left.strides[axes - 2] : depth, step = direct ? p.left.strides[axes - 1] : 1;
  const auto tile = [&](Value i, int64_t rows, Value j, int64_t width) {
    const auto at = [&](Value begin, const View& v) {
      return add(begin, add(mul(i, index(v.strides[axes - 2])), mul(j, index(v.strides[axes - 1]))));
    };
    Value sum = no_value;
    if (splat) sum = b_.constant(p.dtype, held(p.inst.args[2]).inst->number, {rows, width});
    else {
      const View& c = *held(p.inst.args[2]).view;
      sum = b_.cast(b_.load(c.ref, at(base(c), c), {rows, width}, {c.strides[axes - 2], c.strides[axes - 1]}), p.dtype);
    }
    const auto more = [&](Value k, int64_t count, Value c) {
      const Value x =
          b_.load(p.left.ref, add(left, add(mul(i, index(row)), mul(k, index(step)))), {rows, count}, {row, step});
      const Value y =
          p.packed ? b_.load(p.right.ref, add(mul(j, index(depth)), mul(k, index(width))), {count, width}, {width, 1})
                   : b_.load(p.right.ref, add(base(p.right), add(mul(k, index(p.right.strides[axes - 2])), j)),
                             {count, width}, {p.right.strides[axes - 2], 1});
      return b_.dot(x, y, c);
    };
    const int64_t whole = depth / unroll * unroll;
    sum = b_.loop(index(0), index(whole), index(unroll), {sum}, [&](Value k, const std::vector<Value>& carried) {
      Value next = no_value;
      in_frame([&] { next = more(k, unroll, carried[0]); });
      return std::vector<Value>{next};
    })[0];
    if (whole < depth) sum = more(index(whole), depth - whole, sum);
    b_.store(p.to.ref, sum, at(to, p.to), {p.to.strides[axes - 2], 1});
  };
  each_part(p.n, no_value, p.lanes, [&](Value j, int64_t width) {
    const int64_t rows = std::min(p.rows, p.m), last = p.m / rows * rows;
    each(index(0), index(last), rows, [&](Value i) { tile(i, rows, j, width); });
    if (last < p.m) tile(index(last), p.m - last, j, width);
  });
}

}  // namespace weft::kernel
