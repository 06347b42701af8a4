#pragma once
// The tile IR: what the compiler's kernel classes build, what every target renders and what the interpreter runs.
//
// A Kernel is a function of buffers and of 64-bit symbols, run once for each program id of a one-dimensional grid;
// programs of one launch are independent. Its body is SSA with regions: a Value is a tile (rank 0 to 2, static extents)
// of one dtype. Memory is touched only by load, store, gather, scatter and atomic_add; the order of effects is the
// order of the instructions, and program ids are unordered among each other. Addresses count elements. There is no
// other state: `verify` says what is well-formed, `canonical` renumbers before hashing.
//
//   kernel @scale(p0: f32, p1: out f32; s0) {
//     %0 = program_id
//     %1 = constant 64 : i64
//     %2 = mul %0 %1 : i64
//     %3 = sub s0 %2 : i64                 ; elements left
//     %4 = load p0[%2] stride(1) limit(%3) other(0) : f32[64]
//     %5 = constant 2 : f32[64]
//     %6 = mul %4 %5 : f32[64]
//     store p1[%2] %6 stride(1) limit(%3)
//   }
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/number.h"
#include "kernel/jump.h"
#include "kernel/reducer.h"
#include "kernel/scalar.h"

namespace weft::kernel {

using Value = int32_t;
inline constexpr Value no_value = -1;

struct Type {
  Dtype dtype = float32;
  std::vector<int64_t> dims;  // rank 0: a scalar; rank 1: lanes; rank 2: rows of lanes
  int rank() const { return static_cast<int>(dims.size()); }
  int64_t size() const;
  friend bool operator==(const Type& a, const Type& b) { return a.dtype == b.dtype && a.dims == b.dims; }
};

enum class Op : uint8_t {
  constant,    // number, splat over the type
  program_id,  // int64 scalar
  symbol,      // int64 scalar: run-time argument number `ref`
  arange,      // int64 or int32 [n]: 0 .. n-1
  scalar,      // elementwise `scalar_op`, all arguments of one shape
  cast,        // to the dtype of the result
  bitcast,     // same width
  broadcast,   // scalar → any; [n] → [m,n] (rows repeat); [m,1] → [m,n]; [1,n] → [m,n]
  reshape,     // [n] ↔ [n,1] ↔ [1,n]
  transpose,   // [m,n] → [n,m]
  reduce,  // along `axis`, by `reducer`; a fixed tree: the upper half of the axis is combined onto the lower until one
           // is left (extent a power of two; `verify` refuses others), so that every target gives the same bits. The
           // axis goes: [m,n] → [m] or [n], [n] → scalar. float16 and bfloat16 are reduced in float32 and rounded once,
           // at the end
  shift,     // v, into (one type, one axis): lane i is lane i - `axis` of v if that exists, else lane i of `into`;
             // `axis` may be negative
  exchange,  // v (one axis, its extent a power of two): lane i is lane i xor `axis` of it
  extract,   // lane `axis` of a tile with one axis, as a scalar
  dot,      // a [m,k], b [k,n], c [m,n] → c + a·b; k ascending, one fma each: c = fma(a[:,k], b[k,:], c), in int32 a
            // product and a sum; float16 and bfloat16 accumulate in float32 and are rounded once, at the end
  matmul,   // a whole matmul in memory, for tensor cores. The float32 local buffer `ref` takes a tile:
            // element (i, j) of type.dims, at i·pitch + j, becomes Σ_k A[i,k]·B[k,j]. Arguments: the offsets of
            // A and B (parameters that are not written), the limits of i and j (or no_value), the extent of k; elements
            // past them are 0. `strides`: A's along i and k, B's along k and j, the pitch. A and B are float16,
            // bfloat16, or float32, which is rounded to TF32: 10 bits of mantissa, half away from zero. Products are
            // exact; they are added in float32, in an order that is the target's own and the same at every run.
            // A side may be computed (a prologue): its `left` or `right` is -1, its strides are 0, its argument is the
            // index of its first row or column in the matrix, and a block (A's before B's) makes an element of it from
            // one element of each of its `sources`. The block's arguments are these elements, it works on scalars
            // alone, and yields the element in the dtype of the other side. The arguments end with the sources'
            // offsets. Elements past the limits and past k are 0, whatever the block makes of anything
  load,     // offset (int64 scalar), a limit for each tile axis (int64 scalar or no_value) → tile
  store,    // value, offset, limits
  gather,   // index (int64 tile), mask (bool tile or no_value) → tile of the index's shape
  scatter,  // value, index, mask: lanes in ascending order, the last one wins
  atomic_add,  // value, index, mask
  prefetch,  // offset: the elements from there up to `number.i` further on are read soon. A hint: it may point outside
             // the buffer
  alloc,  // local scratch of `number.i` elements, named by its ref (see Kernel::locals): in the outermost block, once,
          // before its first use
  loop,   // lo, hi, step (int64 scalars; step > 0), then initial values; block arguments: induction variable, carried
          // values
  when,   // condition (bool scalar); one block without results. Or condition (bool tile or scalar) and values of
          // its shape; one block that yields as many: lanes where the condition holds take what the block yields,
          // others those values. Such a block has no effects and moves no lanes: a target runs it for whole tiles
          // or for single lanes, and leaves it out where no lane needs it, which is taken to be the usual case
  yield,  // ends a block: the values carried on
};

struct Inst;

struct Block {
  std::vector<Value> arguments;
  std::vector<Inst> insts;  // the last is a yield
};

/// The buffer of a memory access: a parameter of the kernel (0, 1, …) or a local scratch buffer (params.size() + k).
using Ref = int32_t;

/// The schedule of a matmul: K slices of `depth`, `stages` of them in flight or in use; a warp computes `rows` by
/// `columns` of the tile.
struct MatmulSchedule {
  int depth = 32, stages = 3, rows = 64, columns = 64;
  friend bool operator==(const MatmulSchedule&, const MatmulSchedule&) = default;
};

/// An array that a computed side of a matmul reads. Element (i, k) of the side, i counted from the matrix's first row
/// (of B its first column), is made from the element at offset + i·stride + k·depth_stride, with what the jumps add.
struct MatmulSource {
  Ref ref = -1;
  bool right = false;  // it belongs to B
  int64_t stride = 0, depth_stride = 0;
  Jump jump = {}, depth_jump = {};
  friend bool operator==(const MatmulSource&, const MatmulSource&) = default;
};

struct Inst {
  Op op = Op::yield;
  Type type = {};                   // of the (first) result; matmul: of its tile
  std::vector<Value> results = {};  // one, except loop (its carried values), when (its values) and the effects (none)
  std::vector<Value> args = {};
  ScalarOp scalar_op = ScalarOp::add;
  Reducer reducer = Reducer::sum;
  Number number =
      {};        // constant; load and gather: the value of what the limit or mask leaves out; prefetch, alloc: elements
  Ref ref = -1;  // load, store, gather, scatter, atomic_add, prefetch, alloc; matmul: where to; symbol: its number
  Ref left = -1, right = -1;  // matmul: A and B
  int axis = 0;               // reduce; shift: by how many lanes; exchange: the bits that change; extract: the lane
  std::vector<int64_t> strides =
      {};                        // load, store: elements between neighbours along each tile axis; matmul: as it says
  MatmulSchedule schedule = {};  // matmul
  std::vector<MatmulSource> sources = {};  // matmul: what its computed sides read, A's before B's
  bool streaming = false;  // store: the data is not read again soon (non-temporal where the target can); load: it is
                           // read once, and the load must not be delayed
  bool parallel = false;   // loop: its iterations may run concurrently. Such loops are outermost, have equally many
                           // iterations from 0 by 1, and carry nothing. No iteration reads what others of its loop
                           // write; their stores to local buffers are visible after the loop
  std::vector<Block> blocks = {};  // loop, when, matmul
};

/// Returns the block that computes side B (`right`) or A of a matmul; null where the side lies in memory as it is.
const Block* computed_side(const Inst& matmul, bool right);

/// Returns the values that an instruction reads: its arguments, and values from outside that its blocks use.
std::vector<Value> reads(const Inst& inst);

struct Param {
  std::string name;
  Dtype dtype;
  bool written = false;   // out or in-out; a parameter that is not written may be cached and never aliases one that is
  bool constant = false;  // complete before the preceding launch ends, because no launch still running writes it: the
                          // kernel may read it before it waits for that launch (programmatic dependent launch)
};

struct Local {
  Dtype dtype;
  int64_t elements;
  int64_t share = 0;  // > 0: only iterations of parallel loops touch it, iteration k nothing but the elements from
                      // k·share up to (k + 1)·share, so that each may have its own
};

struct Kernel {
  std::string name;  // for people: "row_softmax"; not hashed
  std::vector<Param> params;
  std::vector<std::string> symbols;  // names of the int64 run-time arguments
  std::vector<Local> locals;         // per program, uninitialised
  std::vector<Type> types;           // of each Value
  Block body;
};

/// Throws internal_error naming the instruction: undefined or out-of-scope values, shapes and dtypes that do not fit,
/// stores to parameters that are not `written`, reduce extents that are no power of two, loop-carried types that
/// change.
void verify(const Kernel& kernel);
std::string print(const Kernel& kernel);
/// Returns the kernel with values renumbered in program order and names dropped: equal text, equal kernel.
Kernel canonical(const Kernel& kernel);
Digest digest(const Kernel& kernel);  // of the canonical form

/// Appends instructions, inferring and checking types (internal_error). Scalar operators take scalars (rank 0) together
/// with tiles. Known integer scalars are folded, and so are sums, products and extremes of known floats, floats
/// combined with a neutral number, loops of at most one step and known conditions.
class Builder {
 public:
  explicit Builder(std::string name);

  Ref param(const std::string& name, Dtype dtype, bool written);
  Ref local(Dtype dtype, int64_t elements, int64_t share = 0);
  Value symbol(const std::string& name);  // the same name gives the same symbol
  Value program_id();

  Value constant(Dtype dtype, Number number, std::vector<int64_t> dims = {});
  Value index(int64_t v) { return constant(int64, Number::of_int(v)); }
  Value real(Dtype dtype, double v, std::vector<int64_t> dims = {}) {
    return constant(dtype, Number::of_real(v), std::move(dims));
  }
  Value arange(int64_t n, Dtype dtype = int64);

  Value scalar(ScalarOp op, std::span<const Value> args);
  Value scalar(ScalarOp op, std::initializer_list<Value> args) {
    return scalar(op, std::span<const Value>(args.begin(), args.size()));
  }
  Value add(Value a, Value b) { return scalar(ScalarOp::add, {a, b}); }
  Value sub(Value a, Value b) { return scalar(ScalarOp::sub, {a, b}); }
  Value mul(Value a, Value b) { return scalar(ScalarOp::mul, {a, b}); }
  Value min(Value a, Value b) { return scalar(ScalarOp::min, {a, b}); }
  Value max(Value a, Value b) { return scalar(ScalarOp::max, {a, b}); }
  Value lt(Value a, Value b) { return scalar(ScalarOp::lt, {a, b}); }
  Value select(Value c, Value a, Value b) { return scalar(ScalarOp::select, {c, a, b}); }
  Value cast(Value v,
             Dtype to);  // v itself where the dtype is `to` already; what was widened from `to` is taken back unrounded
  Value bitcast(Value v, Dtype to);
  Value broadcast(Value v, std::vector<int64_t> dims);  // v itself where the shape fits already
  Value reshape(Value v, std::vector<int64_t> dims);
  Value transpose(Value v);
  Value reduce(Reducer r, Value v, int axis);
  Value shift(Value v, Value into, int64_t by);  // positive: up; `into` itself where no lane of v stays
  Value exchange(Value v, int64_t bits);
  Value extract(Value v, int64_t lane);
  Value dot(Value a, Value b, Value c);
  /// One side of a matmul: its strides along i (or j) and along k, and the limit of i (or j). Of a computed side
  /// `offset` is the index of its first row, `sources` what it reads with the offsets of these arrays, and `prologue`
  /// makes an element of it from one of each.
  struct MatmulSide {
    Ref ref = -1;
    Value offset = no_value;
    int64_t stride = 0, depth_stride = 0;
    Value limit = no_value;
    std::vector<std::pair<MatmulSource, Value>> sources = {};
    std::function<Value(const std::vector<Value>&)> prologue = {};
  };
  void matmul(Ref to, int64_t rows, int64_t columns, int64_t pitch, const MatmulSide& a, const MatmulSide& b, Value k,
              const MatmulSchedule& schedule);

  /// `limits[k]`: elements of tile axis k that exist (no_value: all of them); lanes past it load `other` and store
  /// nothing.
  Value load(Ref ref, Value offset, std::vector<int64_t> dims, std::vector<int64_t> strides,
             std::vector<Value> limits = {}, Number other = {}, bool streaming = false);
  void store(Ref ref, Value value, Value offset, std::vector<int64_t> strides, std::vector<Value> limits = {},
             bool streaming = false);
  Value gather(Ref ref, Value index, Value mask = no_value, Number other = {});
  void scatter(Ref ref, Value value, Value index, Value mask = no_value);
  void atomic_add(Ref ref, Value value, Value index, Value mask = no_value);

  /// body(induction variable, carried values) returns the next carried values; the loop's results are the last ones.
  using LoopBody = std::function<std::vector<Value>(Value, const std::vector<Value>&)>;
  std::vector<Value> loop(Value lo, Value hi, Value step, const std::vector<Value>& initial, const LoopBody& body);
  /// A parallel loop: body(round), for each of two iterations or more.
  void parallel(int64_t iterations, const std::function<void(Value)>& body);
  /// `count` contiguous elements from `offset` on are read soon, by this program or by the next one.
  void prefetch(Ref ref, Value offset, int64_t count);
  void when(Value condition, const std::function<void()>& body);
  /// Lane by lane: what `body` returns where the condition holds, else `otherwise`.
  std::vector<Value> when(Value condition, const std::vector<Value>& otherwise,
                          const std::function<std::vector<Value>()>& body);

  const Type& type(Value v) const { return kernel_.types.at(static_cast<size_t>(v)); }
  Dtype dtype(Ref ref) const;  // of a parameter or local
  /// The known value of an integer scalar, where it is a constant (simple folding happens as instructions are
  /// appended).
  bool known(Value v, int64_t& out) const;
  Kernel finish();  // adds the closing yield and verifies

 private:
  struct Frame {  // an open block: loop and when move it into their instruction when it is complete
    Block block;
    std::map<std::string, Value> leaves;  // constants, symbols, program_id: one instruction each in a scope
  };
  Value append(Inst inst);
  Value leaf(Inst inst);
  Value fold(ScalarOp op, const std::vector<Value>& args, const Type& result);
  Value fold_floats(ScalarOp op, const std::vector<Value>& args, const Type& result);
  Value new_value(const Type& type);
  void open() { frames_.emplace_back(); }
  Block close(std::vector<Value> results);
  bool splat(Value v, Number& out) const;  // the number that fills v, where v is a constant
  [[noreturn]] void refuse(const std::string& message) const;

  Kernel kernel_;
  std::vector<Frame> frames_;                  // innermost last
  std::vector<std::optional<Number>> splats_;  // by Value
  std::map<Value, Value> widened_;             // casts from float16 and bfloat16 to what they were cast from
};

}  // namespace weft::kernel
