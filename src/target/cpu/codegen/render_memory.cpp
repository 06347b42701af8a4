// Renders loads and stores of tiles, row by row. Elements past a limit are never accessed: vector accesses are masked,
// and single elements are redirected to a spare slot on the stack, which needs no branch.
#include <algorithm>
#include <array>
#include <bit>

#include "target/cpu/codegen/renderer.h"

namespace weft::target {

using namespace kernel;

// Returns the limits of an access; a limit that is known to cover the whole tile is dropped.
std::vector<IrValue> Renderer::limits(const Inst& inst, const Type& tile, size_t first) {
  std::vector<IrValue> out;
  for (size_t axis = 0; axis < tile.dims.size(); ++axis) {
    IrValue v = single(inst.args[first + axis]);
    int64_t known = 0;
    if (v && Ir::known(v, known) && known >= tile.dims[axis]) v = nullptr;
    out.push_back(v);
  }
  return out;
}

Renderer::Guard Renderer::guard(IrValue row_limit, IrValue lane_limit, int64_t row) {
  Guard g;
  if (row_limit) g.row = ir_.compare(LLVMIntSLT, ir_.index(row), row_limit);
  g.limit = lane_limit;
  return g;
}

// Returns the mask of lanes below the limit, compared in integers as wide as the data, so that mask and data have one
// register shape.
IrValue Renderer::mask(const Guard& g, int64_t lanes, int bits, bool backwards) {
  IrValue m = nullptr;
  if (g.limit) {
    if (lanes == 1) {
      m = ir_.compare(LLVMIntSGT, g.limit, ir_.index(0));
    } else {
      const int enough = lanes < 128 ? 8 : lanes < 32768 ? 16 : 32;
      const IrType t = ir_.integer(std::max(bits, enough));
      IrValue clamped = ir_.intrinsic("llvm.smin", {g.limit, ir_.index(lanes)});
      clamped = ir_.intrinsic("llvm.smax", {clamped, ir_.index(0)});
      if (t != ir_.i64) clamped = ir_.trunc(clamped, t);
      if (backwards) clamped = ir_.sub(LLVMConstInt(t, static_cast<unsigned long long>(lanes), 0), clamped);
      m = ir_.compare(backwards ? LLVMIntUGE : LLVMIntULT, ir_.iota(t, lanes), ir_.splat(clamped, lanes));
    }
  }
  if (!g.row) return m;
  const IrValue rows = ir_.splat(g.row, lanes);
  return m ? ir_.bit_and(m, rows) : rows;
}

IrValue Renderer::spare(Dtype t, bool for_stores) {
  IrValue& slot = spares_[{t.size(), for_stores}];
  if (!slot) slot = ir_.local(ir_.integer(t.size() * 8), 1, 8);
  return slot;
}

IrValue Renderer::spare_row(Dtype t, int64_t lanes) {
  const int64_t bytes = t.size() * lanes;
  IrValue& slot = spare_rows_[bytes];
  if (!slot) slot = ir_.local(ir_.i8, bytes, 64);
  return slot;
}

IrValue Renderer::tagged(IrValue access, Ref ref) {
  if (is_local(ref)) return access;
  const std::string kind = written(ref) ? "alias.scope" : "noalias";
  LLVMSetMetadata(access, LLVMGetMDKindIDInContext(ir_.context, kind.data(), static_cast<unsigned>(kind.size())),
                  written_scope_);
  return access;
}

// ---------------------------------------------------------------- lanes without masks

// Returns how many lanes of a row exist.
IrValue Renderer::existing(const Guard& g, int64_t lanes) {
  IrValue count = ir_.index(lanes);
  if (g.limit) count = ir_.intrinsic("llvm.smax", {ir_.intrinsic("llvm.smin", {g.limit, count}), ir_.index(0)});
  return g.row ? ir_.select(g.row, count, ir_.index(0)) : count;
}

// Copies elements begin … end - 1 one by one; `ref` is the buffer of one side.
void Renderer::copy_lanes(Ref ref, IrValue to, IrValue from, IrValue begin, IrValue end) {
  const IrType element = memory_element(ref_dtype(ref));
  const unsigned align = static_cast<unsigned>(ref_dtype(ref).size());
  const LLVMBasicBlockRef before = ir_.here(), body = ir_.block("lane"), after = ir_.block("lanes");
  LLVMBuildCondBr(ir_.b, ir_.compare(LLVMIntSLT, begin, end), body, after);
  ir_.go(body);
  const IrValue k = LLVMBuildPhi(ir_.b, ir_.i64, "");
  ir_.store(ir_.load(element, ir_.at(element, from, k), align), ir_.at(element, to, k), align);
  IrValue values[] = {begin, ir_.add(k, ir_.index(1))};
  LLVMBasicBlockRef blocks[] = {before, body};
  LLVMAddIncoming(k, values, blocks, 2);
  LLVMBuildCondBr(ir_.b, ir_.compare(LLVMIntSLT, values[1], end), body, after);
  ir_.go(after);
}

// Loads the lanes that exist, and takes the others from `left_out`, by a row on the stack. A whole row that may not
// exist is loaded from there.
IrValue Renderer::load_lanes(Ref ref, IrValue first, IrValue left_out, const Guard& g, bool backwards) {
  const IrType row = LLVMTypeOf(left_out);
  const int64_t n = ir_.lanes(left_out);
  const unsigned align = static_cast<unsigned>(ref_dtype(ref).size());
  const IrValue slot = spare_row(ref_dtype(ref), n);
  ir_.store(left_out, slot, align);
  if (!g.limit) return ir_.load(row, ir_.select(g.row, first, slot), align);
  const IrValue count = existing(g, n);
  copy_lanes(ref, slot, first, backwards ? ir_.sub(ir_.index(n), count) : ir_.index(0),
             backwards ? ir_.index(n) : count);
  return ir_.load(row, slot, align);
}

void Renderer::store_lanes(Ref ref, IrValue value, IrValue address, const Guard& g) {
  const unsigned align = static_cast<unsigned>(ref_dtype(ref).size());
  const IrValue slot = spare_row(ref_dtype(ref), ir_.lanes(value));
  if (!g.limit) {
    ir_.store(value, ir_.select(g.row, address, slot), align);
    return;
  }
  ir_.store(value, slot, align);
  copy_lanes(ref, address, slot, ir_.index(0), existing(g, ir_.lanes(value)));
}

// ---------------------------------------------------------------- loads

void Renderer::load(const Inst& inst) {
  const Type& t = inst.type;
  const std::vector<IrValue> limit = limits(inst, t, 1);
  const IrValue offset = single(inst.args[0]);
  const int64_t m = rows_of(t), n = lanes_of(t), rank = t.rank();
  const int64_t stride = rank == 0 ? 0 : inst.strides.back(), row_stride = rank == 2 ? inst.strides[0] : 0;
  const IrValue lane_limit = rank == 0 ? nullptr : limit.back(), row_limit = rank == 2 ? limit[0] : nullptr;
  if (splatted_[static_cast<size_t>(inst.results[0])]) {  // m·n single elements
    Rows all;
    const IrType e = memory_element(t.dtype);
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t k = 0; k < n; ++k) {
        Guard g = guard(row_limit, nullptr, r);
        if (lane_limit) {
          const IrValue inside = ir_.compare(LLVMIntSLT, ir_.index(k), lane_limit);
          g.row = g.row ? ir_.bit_and(g.row, inside) : inside;
        }
        all.push_back(load_row(
            inst.ref,
            ir_.at(e, buffers_[static_cast<size_t>(inst.ref)], ir_.add(offset, ir_.index(r * row_stride + k * stride))),
            1, 0, g, inst.number));
      }
    }
    return define(inst, std::move(all));
  }
  // Contiguous along the rows' axis: loaded transposed, then transposed in registers.
  if (rank == 2 && row_stride == 1 && stride != 1 && stride != 0 && m >= 4 && n >= 2)
    return define(inst,
                  transpose(load_tile(inst.ref, offset, n, m, stride, row_stride, lane_limit, row_limit, inst.number)));
  define(inst, load_tile(inst.ref, offset, m, n, row_stride, stride, row_limit, lane_limit, inst.number));
}

Rows Renderer::load_tile(Ref ref, IrValue offset, int64_t m, int64_t n, int64_t row_stride, int64_t stride,
                         IrValue row_limit, IrValue lane_limit, const Number& other) {
  Rows out;
  const IrType e = memory_element(ref_dtype(ref));
  for (int64_t r = 0; r < m; ++r) {
    if (r > 0 && row_stride == 0 && !row_limit) {
      out.push_back(out[0]);
      continue;
    }
    const IrValue address = ir_.at(e, buffers_[static_cast<size_t>(ref)], ir_.add(offset, ir_.index(r * row_stride)));
    out.push_back(load_row(ref, address, n, stride, guard(row_limit, lane_limit, r), other));
  }
  return out;
}

namespace {

// Returns the lanes in the opposite order.
IrValue reversed(Ir& ir, IrValue v) {
  std::vector<int> order(static_cast<size_t>(ir.lanes(v)));
  for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int>(order.size() - 1 - k);
  return ir.shuffle(v, v, order);
}

}  // namespace

// Loads one row of n lanes, by its stride: one element splat, a vector (masked if guarded), which a stride of -1 turns
// around, or a gather.
IrValue Renderer::load_row(Ref ref, IrValue address, int64_t n, int64_t stride, const Guard& g, const Number& other) {
  const Dtype t = ref_dtype(ref);
  const IrType e = memory_element(t);
  const IrValue rest = splat_number(other, t, n);
  if (n == 1 || stride == 0) {
    const IrValue any = mask(g, 1, 0);
    const IrValue from = any ? ir_.select(any, address, spare(t, false)) : address;
    const IrValue one = from_memory(tagged(ir_.load(e, from, t.size()), ref), t);
    const IrValue all = ir_.splat(one, n);
    return g.any() ? ir_.select(mask(g, n, t.size() * 8), all, rest) : all;
  }
  const IrValue m = g.any() ? mask(g, n, t.size() * 8) : nullptr;
  if (stride == 1 || stride == -1) {
    const IrType row = ir_.vec(e, n);
    const bool back = stride == -1;
    IrValue first = back ? ir_.at(e, address, ir_.index(1 - n)) : address;
    const auto in_order = [&](IrValue v) { return back ? reversed(ir_, v) : v; };
    if (!m) return from_memory(in_order(tagged(ir_.load(row, first, t.size()), ref)), t);
    const IrValue left_out = to_memory(rest, t);
    if (t.size() < isa_.masked_bytes) return from_memory(in_order(load_lanes(ref, first, left_out, g, back)), t);
    // A masked load faults nowhere, but is very slow where no page is mapped, even if it loads nothing: a part of a
    // concatenation that is not there may lie far outside of its array (docs/notes/cpu-kernels.md).
    first = ir_.select(mask(g, 1, 0), first, buffers_[static_cast<size_t>(ref)]);
    const IrValue there = back ? mask(g, n, t.size() * 8, true) : m;
    return from_memory(
        in_order(tagged(ir_.masked("llvm.masked.load", row, ir_.ptr, {first, there, left_out}, 0, t.size()), ref)), t);
  }
  const IrValue addresses = ir_.at(e, ir_.splat(address, n), ir_.iota(ir_.i64, n, stride));
  return load_gathered(ref, addresses, m, other);
}

namespace {

// Returns whether a hardware gather is safe. LLVM would widen other lane counts with undefined lanes and may then use
// one register as index and result, which traps.
bool gatherable(Dtype t, int64_t lanes) {
  return t.size() >= 4 && lanes >= 4 && std::has_single_bit(static_cast<uint64_t>(lanes));
}

}  // namespace

IrValue Renderer::load_gathered(Ref ref, IrValue addresses, IrValue m, const Number& other) {
  const Dtype t = ref_dtype(ref);
  const int64_t n = ir_.lanes(addresses);
  // Register by register: LLVM takes time with the square of the lanes for a vector that is put together lane by lane.
  if (n > isa_.vector_bits / 8 / t.size() && n % 2 == 0) {
    const auto half = [&](int64_t at) {
      return load_gathered(ref, ir_.slice(addresses, at, n / 2), m ? ir_.slice(m, at, n / 2) : nullptr, other);
    };
    const IrValue lower = half(0);
    return ir_.concat(lower, half(n / 2));
  }
  const IrType e = memory_element(t), row = ir_.vec(e, n);
  const IrValue rest = splat_number(other, t, n);
  const bool hardware = isa_.gathers && gatherable(t, n);
  if (!hardware) {
    if (m) addresses = ir_.select(m, addresses, ir_.splat(spare(t, false), n));
    IrValue v = LLVMGetPoison(row);
    for (int64_t k = 0; k < n; ++k) v = ir_.insert(v, tagged(ir_.load(e, ir_.extract(addresses, k), t.size()), ref), k);
    v = from_memory(v, t);
    return m ? ir_.select(m, v, rest) : v;
  }
  const bool by_mask = m && isa_.scatters;
  if (m && !by_mask) addresses = ir_.select(m, addresses, ir_.splat(spare(t, false), n));
  const IrValue all = by_mask ? m : ir_.integer_splat(ir_.i1, 1, n);
  const IrValue read = from_memory(tagged(ir_.masked("llvm.masked.gather", row, ir_.vec(ir_.ptr, n),
                                                     {addresses, all, to_memory(rest, t)}, 0, t.size()),
                                          ref),
                                   t);
  return m && !by_mask ? ir_.select(m, read, rest) : read;
}

void Renderer::gather(const Inst& inst) {
  Rows out;
  for (size_t r = 0; r < rows(inst.args[0]).size(); ++r) {
    const IrValue m = inst.args[1] == no_value ? nullptr : rows(inst.args[1])[r], index = rows(inst.args[0])[r];
    const Dtype t = inst.type.dtype;
    IrValue addresses = ir_.at(memory_element(t), buffers_[static_cast<size_t>(inst.ref)], index);
    if (ir_.lanes(index) > 1) {
      out.push_back(load_gathered(inst.ref, addresses, m, inst.number));
      continue;
    }
    if (m) addresses = ir_.select(m, addresses, spare(t, false));
    const IrValue v = from_memory(tagged(ir_.load(memory_element(t), addresses, t.size()), inst.ref), t);
    out.push_back(m ? ir_.select(m, v, splat_number(inst.number, t, 1)) : v);
  }
  define(inst, std::move(out));
}

// Emits one prefetch instruction a cache line, into the L1 cache. For rows that do not fit there nothing is lost: their
// later reads come from the L2 anyway.
void Renderer::prefetch(const Inst& inst) {
  const Dtype t = ref_dtype(inst.ref);
  const IrValue address = ir_.at(memory_element(t), buffers_[static_cast<size_t>(inst.ref)], single(inst.args[0]));
  constexpr int64_t line = 64;
  for (int64_t byte = 0; byte < inst.number.i * t.size(); byte += line) {
    const IrValue args[] = {ir_.at(ir_.i8, address, ir_.index(byte)), LLVMConstInt(ir_.i32, 0, 0),
                            LLVMConstInt(ir_.i32, 3, 0), LLVMConstInt(ir_.i32, 1, 0)};
    ir_.intrinsic("llvm.prefetch", {ir_.ptr}, args);
  }
}

// ---------------------------------------------------------------- stores

void Renderer::store(const Inst& inst) {
  const Type& t = type(inst.args[0]);
  const std::vector<IrValue> limit = limits(inst, t, 2);
  const IrValue offset = single(inst.args[1]);
  const int64_t rank = t.rank(), m = rows_of(t), n = lanes_of(t);
  const int64_t stride = rank == 0 ? 0 : inst.strides.back(), row_stride = rank == 2 ? inst.strides[0] : 0;
  const IrValue lane_limit = rank == 0 ? nullptr : limit.back(), row_limit = rank == 2 ? limit[0] : nullptr;
  // Lanes have distinct positions, so their order does not matter.
  if (rank == 2 && row_stride == 1 && stride > m - 1 && m >= 4 && n >= 2)
    return store_tile(inst.ref, transpose(rows(inst.args[0])), offset, stride, row_stride, lane_limit, row_limit,
                      inst.streaming);
  store_tile(inst.ref, rows(inst.args[0]), offset, row_stride, stride, row_limit, lane_limit, inst.streaming);
}

void Renderer::store_tile(Ref ref, const Rows& in, IrValue offset, int64_t row_stride, int64_t stride,
                          IrValue row_limit, IrValue lane_limit, bool streaming) {
  const Dtype t = ref_dtype(ref);
  const IrType e = memory_element(t);
  for (size_t r = 0; r < in.size(); ++r) {
    const int64_t row = static_cast<int64_t>(r);
    const IrValue address = ir_.at(e, buffers_[static_cast<size_t>(ref)], ir_.add(offset, ir_.index(row * row_stride)));
    const Guard g = guard(row_limit, lane_limit, row);
    const IrValue v = to_memory(in[r], t);
    const int64_t bits = ir_.lanes(v) * t.size() * 8;
    const bool whole = bits % isa_.vector_bits == 0 && std::has_single_bit(static_cast<uint64_t>(bits));
    if (streaming && stride == 1 && whole && !is_local(ref)) store_streaming(ref, v, address, g);
    else store_row(ref, v, address, stride, g);
  }
}

void Renderer::store_row(Ref ref, IrValue v, IrValue address, int64_t stride, const Guard& g) {
  const Dtype t = ref_dtype(ref);
  const int64_t n = ir_.lanes(v);
  const IrValue m = g.any() ? mask(g, n, t.size() * 8) : nullptr;
  if (n == 1) {
    tagged(ir_.store(v, m ? ir_.select(m, address, spare(t, true)) : address, t.size()), ref);
  } else if (stride != 1) {
    store_scattered(ref, v, ir_.at(memory_element(t), ir_.splat(address, n), ir_.iota(ir_.i64, n, stride)), m);
  } else if (m && t.size() < isa_.masked_bytes) {
    store_lanes(ref, v, address, g);
  } else if (m) {
    tagged(ir_.masked("llvm.masked.store", LLVMTypeOf(v), ir_.ptr, {v, address, m}, 1, t.size()), ref);
  } else {
    tagged(ir_.store(v, address, t.size()), ref);
  }
}

// Emits a streaming store if, at run time, the address is aligned and the whole row exists, else an ordinary store. The
// branch goes the same way for the whole launch except at its edges.
void Renderer::store_streaming(Ref ref, IrValue v, IrValue address, const Guard& g) {
  const IrValue low = ir_.bit_and(LLVMBuildPtrToInt(ir_.b, address, ir_.i64, ""), ir_.index(isa_.vector_bits / 8 - 1));
  IrValue whole = ir_.compare(LLVMIntEQ, low, ir_.index(0));
  if (g.row) whole = ir_.bit_and(whole, g.row);
  if (g.limit) whole = ir_.bit_and(whole, ir_.compare(LLVMIntSGE, g.limit, ir_.index(ir_.lanes(v))));
  const LLVMBasicBlockRef fast = ir_.block("stream"), slow = ir_.block("store"), after = ir_.block("stored");
  LLVMBuildCondBr(ir_.b, whole, fast, slow);
  ir_.go(fast);
  const IrValue s = tagged(ir_.store(v, address, static_cast<unsigned>(isa_.vector_bits / 8)), ref);
  LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(ir_.i32, 1, 0));
  LLVMSetMetadata(s, LLVMGetMDKindIDInContext(ir_.context, "nontemporal", 11),
                  LLVMMetadataAsValue(ir_.context, LLVMMDNodeInContext2(ir_.context, &one, 1)));
  LLVMBuildBr(ir_.b, after);
  ir_.go(slow);
  store_row(ref, v, address, 1, g);
  LLVMBuildBr(ir_.b, after);
  ir_.go(after);
  streams_ = true;
}

// Scatters lanes in ascending order: the last one wins, in hardware as in the loop.
void Renderer::store_scattered(Ref ref, IrValue v, IrValue addresses, IrValue m) {
  const Dtype t = ref_dtype(ref);
  const int64_t n = ir_.lanes(v);
  if (isa_.scatters && gatherable(t, n)) {
    const IrValue all = m ? m : ir_.integer_splat(ir_.i1, 1, n);
    tagged(ir_.masked("llvm.masked.scatter", LLVMTypeOf(v), LLVMTypeOf(addresses), {v, addresses, all}, 1, t.size()),
           ref);
    return;
  }
  if (m) addresses = ir_.select(m, addresses, ir_.splat(spare(t, true), n));
  for (int64_t k = 0; k < n; ++k) tagged(ir_.store(ir_.extract(v, k), ir_.extract(addresses, k), t.size()), ref);
}

void Renderer::scatter(const Inst& inst) {
  const Dtype t = ref_dtype(inst.ref);
  for (size_t r = 0; r < rows(inst.args[0]).size(); ++r) {
    const IrValue m = inst.args[2] == no_value ? nullptr : rows(inst.args[2])[r];
    const IrValue addresses = ir_.at(memory_element(t), buffers_[static_cast<size_t>(inst.ref)], rows(inst.args[1])[r]);
    store_scattered(inst.ref, to_memory(rows(inst.args[0])[r], t), addresses, m);
  }
}

// ---------------------------------------------------------------- atomics

void Renderer::atomic_add(const Inst& inst) {
  const Dtype t = ref_dtype(inst.ref);
  for (size_t r = 0; r < rows(inst.args[0]).size(); ++r) {
    const IrValue value = rows(inst.args[0])[r];
    IrValue addresses = ir_.at(memory_element(t), buffers_[static_cast<size_t>(inst.ref)], rows(inst.args[1])[r]);
    const int64_t n = ir_.lanes(value);
    if (inst.args[2] != no_value)
      addresses = ir_.select(rows(inst.args[2])[r], addresses, ir_.splat(spare(t, true), n));
    for (int64_t k = 0; k < n; ++k) atomic_lane(t, ir_.extract(addresses, k), ir_.extract(value, k));
  }
}

// Adds to one element atomically. 16-bit and 8-bit floats use a compare-and-exchange loop.
void Renderer::atomic_lane(Dtype t, IrValue address, IrValue value) {
  if (!is_low_float(t)) {
    LLVMBuildAtomicRMW(ir_.b, is_float(t) ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd, address, value,
                       LLVMAtomicOrderingMonotonic, 0);
    return;
  }
  const LLVMBasicBlockRef before = ir_.here(), again = ir_.block("retry"), done = ir_.block("added");
  const IrValue first = ir_.load(element(t), address, t.size());
  LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
  LLVMBuildBr(ir_.b, again);
  ir_.go(again);
  const IrValue old = LLVMBuildPhi(ir_.b, element(t), "");
  const std::array<IrValue, 2> args{old, value};
  const IrValue pair = LLVMBuildAtomicCmpXchg(ir_.b, address, old, apply(ScalarOp::add, t, args),
                                              LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingMonotonic, 0);
  IrValue from[] = {first, LLVMBuildExtractValue(ir_.b, pair, 0, "")};
  LLVMBasicBlockRef blocks[] = {before, again};
  LLVMAddIncoming(old, from, blocks, 2);
  LLVMBuildCondBr(ir_.b, LLVMBuildExtractValue(ir_.b, pair, 1, ""), done, again);
  ir_.go(done);
}

}  // namespace weft::target
