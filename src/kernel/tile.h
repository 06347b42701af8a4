#pragma once
// The tile IR: what the compiler's kernel classes build, what every target renders and what the interpreter runs.
//
// A Kernel is a function of buffers and of 64-bit symbols, run once for each program id of a one-dimensional grid;
// programs of one launch are independent. Its body is SSA with regions: a Value is a tile (rank 0 to 4, static extents)
// of one dtype. Memory is touched only by load, store, gather, scatter and atomics; the order of effects is the
// order of the instructions, and program ids are unordered among each other. Addresses count elements. There is no
// other state: `verify` says what is well-formed, `canonical` renumbers before hashing.
//
// Targets render a part of the instructions, on tiles of up to two axes (`is_basic` in kernel/rules.h); the passes of
// kernel/legalize rewrite all others into those.
//
//   kernel @scale(p0: f32, p1: out f32; s0) {
//     %0 = program_id
//     %1 = constant 64 : i64
//     %2 = mul %0 %1 : i64
//     s0 = symbol ref(0)
//     %3 = sub s0 %2 : i64                 // elements left
//     %4 = load p0[%2] stride(1) limit(%3) other(0) : f32[64]
//     %5 = constant 2 : f32[64]
//     %6 = mul %4 %5 : f32[64]
//     store p1[%2] %6 stride(1) limit(%3)
//   }
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/number.h"
#include "kernel/forms/inline_code.h"
#include "kernel/forms/lane_op.h"
#include "kernel/jump.h"
#include "kernel/reducer.h"
#include "kernel/scalar.h"

namespace weft::kernel {

using Value = int32_t;
inline constexpr Value no_value = -1;
inline constexpr int most_axes = 4;

struct Type {
  Dtype dtype = float32;
  std::vector<int64_t> dims;  // rank 0: a scalar; rank 1: lanes; rank 2: rows of lanes; row-major
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
  broadcast,   // NumPy's rule: axes are matched from the last on, and extents of 1 and missing axes repeat
  reshape,     // row-major order is kept
  permute,     // axis k of the result is axis `axes[k]` of the argument
  slice,       // element i along axis k is element axes[k] + i·strides[k] of the argument; a step may be negative
  cat,         // tiles of one rank one after the other along `axis`
  reduce,  // along `axis`, by `reducer`; a fixed tree: the upper half of the axis is combined onto the lower until one
           // is left, so that every target gives the same bits. Of an extent that is no power of two the elements from
           // the largest one in it on are combined onto the first ones before. The axis goes: [m,n] → [m] or [n],
           // [n] → scalar. float16 and bfloat16 are reduced in float32 and rounded once, at the end. With a block:
           // k tiles of one shape are reduced together; the block takes k scalars of the lower and k of the upper part
           // and yields k, works on scalars alone, and is associative
  scan,    // along `axis`, by `reducer` or a block as of reduce: element i is combined from elements 0 to i (`reverse`:
           // from i to the last). A fixed order: for d = 1, 2, 4, … element i becomes (i - d) combined with i
  shift,   // v, into (one type, one axis): lane i is lane i - `axis` of v if that exists, else lane i of `into`;
           // `axis` may be negative
  exchange,  // v (one axis, its extent a power of two): lane i is lane i xor `axis` of it
  extract,   // lane `axis` of a tile with one axis, as a scalar
  take,  // tile, index (an int64 tile of its rank): element (…, i, …) is element (…, index(…, i, …), …) of the tile,
         // along `axis`; the index is clamped to the axis
  sort,   // k tiles of one shape along `axis`, by the first of them: ascending, or `reverse`; equal elements keep
          // their order and NaN comes last
  lanes,  // groups of `axis` lanes (a power of two up to 32), which lie one after the other along the last axis, do
          // `lane_op` (kernel/forms/lane_op.h): vote, match, exchange, reduce, scan. Argument 0 is the tile; a second
          // one of its shape says which lane each takes (int32), or of a reduce or scan which lanes belong together
          // (uint32, a bit a lane; no_value: all of a group)
  histogram,  // index (an integer tile) → int32 [n]: how often each of 0 … n-1 occurs; others are not counted
  dot,  // a […,m,k], b […,k,n], c […,m,n] → c + a·b; k ascending, one fma each: c = fma(a[:,k], b[k,:], c), of
        // integers a product and a sum. a and b have one dtype and are widened to c's; float16 and bfloat16
        // accumulate in float32 and are rounded once, at the end. `precision` says what float32 operands may lose
  load,        // offset (int64 scalar), a limit for each tile axis (int64 scalar or no_value) → tile
  store,       // value, offset, limits
  gather,      // index (int64 tile), mask (bool tile or no_value) → tile of the index's shape
  scatter,     // value, index, mask: lanes in ascending order, the last one wins
  atomic_add,  // value, index, mask
  atomic,      // value, index, mask → the elements before: each becomes `scalar_op` (add, min, max, bit_and, bit_or,
               // bit_xor) of itself and the value, in an order of the target's own
  exchange_memory,   // value, index, mask → the elements before, each replaced by the value
  compare_exchange,  // expected, value, index, mask → the elements before, each replaced where it is as expected
  wait_until,  // index (int64 scalar) into a written parameter of 32 or 64 bits → the element found: it is read, as an
               // atomic instruction does, until the block, which takes it and yields a bool scalar, says yes. The block
               // works on scalars alone. Another program changes the element: one with a lower number, in a kernel that
               // is `ordered`
  prefetch,  // offset: the elements from there up to `number.i` further on are read soon. A hint: it may point outside
             // the buffer
  alloc,   // local scratch of `number.i` elements, named by its ref (see Kernel::locals): in the outermost block, once,
           // before its first use
  loop,    // lo, hi, step (int64 scalars; step > 0), then initial values; block arguments: induction variable, carried
           // values
  when,    // condition (bool scalar); one block without results. Or condition (bool tile or scalar) and values of
           // its shape; one block that yields as many: lanes where the condition holds take what the block yields,
           // others those values. Such a block has no effects and moves no lanes: a target runs it for whole tiles
           // or for single lanes, and leaves it out where no lane needs it, which is taken to be the usual case
  branch,  // condition (bool scalar) and two blocks that yield values of the same types: those of the one that runs
  while_loop,  // initial values; a block that takes the carried values and yields a bool scalar, and one that takes
               // them and yields the next ones: the second runs while the first yields true. The results are the last
               // values
  copy_async,  // an offset into the local buffer `ref`, one into the parameter `left`, a limit for each tile axis[, the
               // place of a barrier in `right`]: copies a tile of `type` between now and the wait for it. `strides`: of
               // the buffer, then of the parameter. Past the limits `number` is stored. Without a barrier that wait is
               // wait_copies; with one it is that for the barrier's present phase, which does not end before
  commit_copies,  // the copies since the last one, without a barrier, become a group
  wait_copies,    // until all groups but the last `number.i` ones are done
  arrive,         // the place of a barrier in `ref`: counts as one of the arrivals of its phase
  await,          // the place of a barrier in `ref`, a phase: until that phase has ended. Phases count from 0 on; the
                  // phase is the barrier's present one or that before, which at the beginning is -1
  roles,  // a block for each role: they run at once, each on `axes[k]` warps with `strides[k]` registers a thread (0:
          // as many as there are), and take no tiles from outside but constants. They meet at barriers, and at the end
  grid_barrier,  // until all programs of the launch have come here, in the outermost block or loops of it whose bounds
                 // are the same for all: what they did before, all see behind it. All of them run at once
  cluster_barrier,  // the same of the programs of a cluster, in a kernel that has clusters
  dot_async,        // as dot, between now and the wait for it, which alone reads the result
  wait_dot,         // the result of a dot_async: the product
  load_neighbour,   // the number of a program in the cluster, an offset into its local buffer `ref` → a tile of it
  store_neighbour,  // value, the number, the offset
  inline_code,  // tiles of one shape → tiles of it: `code`, of a GPU, element by element. Its block, which takes tiles
                // of the arguments' types and yields the results, says what it computes; a target without such code
                // runs that. Without a block the kernel is for GPUs alone
  source,   // a whole kernel as CUDA C++ (`code`): the only instruction. It may do anything with all parameters
  print,    // its arguments as text, after `text`
  assert_,  // condition (bool tile): where it does not hold the launch fails with `text`
  yield,    // ends a block: the values carried on
};

/// What a dot may lose of float32 operands: nothing; all but the first 10 bits of mantissa (TF32, half away from zero);
/// little, where three products of such parts stand for one.
enum class DotPrecision : uint8_t { exact, tf32, tf32x3 };

/// What an atomic instruction orders among programs: nothing but itself; reads behind it see what was written before
/// the release whose value it saw; what was written before it is seen so; both. And for whom: the program's cluster is
/// its own, a block a program.
enum class MemoryOrder : uint8_t { relaxed, acquire, release, acq_rel };
enum class MemoryScope : uint8_t { block, cluster, device, system };
struct AtomicOrder {
  MemoryOrder order = MemoryOrder::relaxed;
  MemoryScope scope = MemoryScope::device;
  bool acquires() const { return order == MemoryOrder::acquire || order == MemoryOrder::acq_rel; }
  bool releases() const { return order == MemoryOrder::release || order == MemoryOrder::acq_rel; }
  friend bool operator==(const AtomicOrder&, const AtomicOrder&) = default;
};

struct Inst;

struct Block {
  std::vector<Value> arguments;
  std::vector<Inst> insts;  // the last is a yield
};

/// The buffer of a memory access: a parameter of the kernel (0, 1, …) or a local scratch buffer (params.size() + k).
using Ref = int32_t;

struct Inst {
  Op op = Op::yield;
  Type type = {};                   // of the (first) result
  std::vector<Value> results = {};  // one, except loop (its carried values), when (its values) and the effects (none)
  std::vector<Value> args = {};
  ScalarOp scalar_op = ScalarOp::add;
  Reducer reducer = Reducer::sum;
  Number number =
      {};        // constant; load and gather: the value of what the limit or mask leaves out; prefetch, alloc: elements
  Ref ref = -1;  // load, store, gather, scatter, atomic_add, prefetch, alloc; symbol: its number
  Ref left = -1, right = -1;       // copy_async: from where, and its barrier
  int axis = 0;                    // cat, reduce, scan, take, sort; shift: by how many lanes; exchange: the bits that
                                   // change; extract: the lane; loop: stages of its ring, at most (0: as launched)
  std::vector<int64_t> axes = {};  // permute; slice: where it begins; roles: warps
  std::vector<int64_t> strides = {};  // load, store: elements between neighbours along each tile axis; slice: the
                                      // steps; copy_async: as it says; roles: registers
  bool streaming = false;  // store: the data is not read again soon (non-temporal where the target can); load: it is
                           // read once, and the load must not be delayed
  bool parallel = false;   // loop: its iterations may run concurrently. Such loops are outermost, have equally many
                           // iterations from 0 by 1, and carry nothing. No iteration reads what others of its loop
                           // write; their stores to local buffers are visible after the loop
  bool reverse = false;    // scan, sort
  DotPrecision precision = DotPrecision::exact;  // dot, dot_async
  LaneOp lane_op = LaneOp::shuffle;              // lanes
  AtomicOrder ordering = {};                     // atomic, exchange_memory, compare_exchange, wait_until
  std::shared_ptr<const InlineCode> code = {};   // inline_code, source
  std::string text = {};                         // print, assert_
  int32_t line = 0;                              // where the user wrote it: a number in Kernel::lines; not hashed
  std::vector<Block> blocks = {};  // loop, when, branch, while_loop, wait_until; reduce and scan by a function
};

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
  int64_t share = 0;     // > 0: only iterations of parallel loops touch it, iteration k nothing but the elements from
                         // k·share up to (k + 1)·share, so that each may have its own
  int64_t arrivals = 0;  // > 0: the elements are barriers, each of whose phases ends with so many arrivals
  int swizzle = 0;       // bytes (32, 64, 128): in shared memory a chunk of 16 bytes lies where its number in such a
                         // line is exclusive-or'ed with that of the 128 bytes around it
};

/// A line of a user's program.
struct SourceLine {
  const char* file = "";
  int line = 0;
};

/// How a kernel is launched on a GPU; 0: as the renderer chooses. CPUs know none of it.
struct LaunchOptions {
  int warps = 0;      // of a program
  int stages = 0;     // of the ring of a loop that copies ahead, at most
  int cluster = 0;    // blocks of a cluster
  int registers = 0;  // of a thread, at most
  // Whether copies ahead have warps of their own, whether blocks take programs in turns, and whether two programs of a
  // block multiply in turns: 1 yes, 2 no. 3: blocks take programs in turns where they can; else this is left to the
  // target, which has equally long programs do so.
  int specialize = 0, persistent = 0, ping_pong = 0;
  int instruction = 0;  // by which products are multiplied: 1 wgmma, 2 mma.sync, 3 fma
  int iterations = 0;   // of parallel loops: 1 in turn, 2 by warps of a block, 3 by blocks of a cluster
  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

struct Kernel {
  std::string name;                      // for people: "row_softmax"; not hashed
  std::vector<SourceLine> lines = {{}};  // not hashed; the first one stands for none
  std::vector<Param> params;
  std::vector<std::string> symbols;  // names of the int64 run-time arguments
  std::vector<Local> locals;         // per program, uninitialised
  bool any_size = false;             // its tiles have any size, as users write them: a CPU legalizes it first
  int cluster = 0;  // > 0: so many neighbours among the programs run at once, as a cluster; they reach each other's
                    // local buffers between two barriers of the cluster, before the first of which none may
  bool ordered = false;  // programs begin in the order of their numbers: each may wait for those before it
  LaunchOptions launch = {};
  std::vector<Type> types;  // of each Value
  Block body;
};

/// Throws internal_error naming the instruction: undefined or out-of-scope values, shapes and dtypes that do not fit,
/// stores to parameters that are not `written`, loop-carried types that change.
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
  /// Declares a local buffer from within any block; its `alloc` stands at the beginning of the kernel.
  Ref reserve(Dtype dtype, int64_t elements, int swizzle = 0);
  /// Declares barriers; each phase of one ends with `arrivals` arrivals.
  Ref barriers(int64_t count, int64_t arrivals);
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
  Value permute(Value v, std::vector<int64_t> axes);
  Value transpose(Value v) { return permute(v, {1, 0}); }
  Value slice(Value v, std::vector<int64_t> starts, std::vector<int64_t> dims, std::vector<int64_t> steps = {});
  Value cat(const std::vector<Value>& tiles, int axis);
  Value reduce(Reducer r, Value v, int axis);
  /// Returns how the block of a reduce or scan combines scalars: k of the lower part and k of the upper one.
  using Combine = std::function<std::vector<Value>(const std::vector<Value>&, const std::vector<Value>&)>;
  std::vector<Value> reduce(const Combine& combine, const std::vector<Value>& tiles, int axis);
  Value scan(Reducer r, Value v, int axis, bool reverse = false);
  std::vector<Value> scan(const Combine& combine, const std::vector<Value>& tiles, int axis, bool reverse = false);
  Value take(Value v, Value index, int axis);
  std::vector<Value> sort(const std::vector<Value>& tiles, int axis, bool descending = false);
  Value histogram(Value index, int64_t bins);
  /// `other`: which lanes, or which belong together (Op::lanes); `op`: by what a reduce or scan combines.
  Value lanes(LaneOp what, int64_t width, Value v, Value other = no_value, ScalarOp op = ScalarOp::add);
  Value shift(Value v, Value into, int64_t by);  // positive: up; `into` itself where no lane of v stays
  Value exchange(Value v, int64_t bits);
  Value extract(Value v, int64_t lane);
  Value dot(Value a, Value b, Value c, DotPrecision precision = DotPrecision::exact);
  /// `limits[k]`: elements of tile axis k that exist (no_value: all of them); lanes past it load `other` and store
  /// nothing.
  Value load(Ref ref, Value offset, std::vector<int64_t> dims, std::vector<int64_t> strides,
             std::vector<Value> limits = {}, Number other = {}, bool streaming = false);
  void store(Ref ref, Value value, Value offset, std::vector<int64_t> strides, std::vector<Value> limits = {},
             bool streaming = false);
  Value gather(Ref ref, Value index, Value mask = no_value, Number other = {});
  void scatter(Ref ref, Value value, Value index, Value mask = no_value);
  void atomic_add(Ref ref, Value value, Value index, Value mask = no_value);
  Value atomic(ScalarOp op, Ref ref, Value value, Value index, Value mask = no_value, AtomicOrder how = {});
  Value exchange_memory(Ref ref, Value value, Value index, Value mask = no_value, AtomicOrder how = {});
  Value compare_exchange(Ref ref, Value expected, Value value, Value index, Value mask = no_value,
                         AtomicOrder how = {});
  /// Reads an element until `holds` of it, a bool scalar, is true; returns it.
  Value wait_until(Ref ref, Value index, const std::function<Value(Value)>& holds, AtomicOrder how = {});
  void grid_barrier();
  /// Says that `size` neighbours among the programs are a cluster.
  void clustered(int size) { kernel_.cluster = size; }
  void cluster_barrier();
  Value dot_async(Value a, Value b, Value c, DotPrecision precision = DotPrecision::exact);
  Value wait_dot(Value flight);
  Value load_neighbour(Ref ref, Value rank, Value offset, std::vector<int64_t> dims, std::vector<int64_t> strides);
  void store_neighbour(Ref ref, Value value, Value rank, Value offset, std::vector<int64_t> strides);
  /// Says that programs begin in the order of their numbers.
  void ordered() { kernel_.ordered = true; }
  /// Code of a target: results of the dtypes, of the shape `dims`. `counterpart` (or none) computes them.
  using Counterpart = std::function<std::vector<Value>(const std::vector<Value>&)>;
  std::vector<Value> inline_code(InlineCode code, const std::vector<Value>& args, const std::vector<Dtype>& results,
                                 const std::vector<int64_t>& dims, const Counterpart& counterpart);
  void source(InlineCode code);

  /// body(induction variable, carried values) returns the next carried values; the loop's results are the last ones.
  using LoopBody = std::function<std::vector<Value>(Value, const std::vector<Value>&)>;
  std::vector<Value> loop(Value lo, Value hi, Value step, const std::vector<Value>& initial, const LoopBody& body);
  /// The same for a caller that appends the body itself, between the two calls. A loop that has no iteration has no
  /// body either: end_loop returns its initial values whatever it is given.
  struct OpenLoop {
    Value lo = no_value, hi = no_value, step = no_value;
    std::vector<Value> initial = {};
    bool runs = true, once = false;   // there is an iteration; it is the only one, and stands in the block around
    Value index = no_value;           // of the body
    std::vector<Value> carried = {};  // of the body
  };
  OpenLoop begin_loop(Value lo, Value hi, Value step, std::vector<Value> initial);
  std::vector<Value> end_loop(const OpenLoop& loop, std::vector<Value> next);
  /// Says that the loop that was appended last is parallel.
  void mark_parallel() { frames_.back().block.insts.back().parallel = true; }
  /// A parallel loop: body(round), for each of two iterations or more.
  void parallel(int64_t iterations, const std::function<void(Value)>& body);
  /// `count` contiguous elements from `offset` on are read soon, by this program or by the next one.
  void prefetch(Ref ref, Value offset, int64_t count);
  void when(Value condition, const std::function<void()>& body);
  /// Lane by lane: what `body` returns where the condition holds, else `otherwise`.
  std::vector<Value> when(Value condition, const std::vector<Value>& otherwise,
                          const std::function<std::vector<Value>()>& body);

  /// Runs one of two bodies, which return as many values of the same types. Without values, and with nothing to do
  /// otherwise, it is a `when`.
  std::vector<Value> branch(Value condition, const std::function<std::vector<Value>()>& then,
                            const std::function<std::vector<Value>()>& otherwise);
  /// Opens a body that the caller appends, and closes it as one that runs where the condition holds: end_branch returns
  /// `then`, which the body made, where it ran, else `otherwise`.
  void begin_branch() { open(); }
  std::vector<Value> end_branch(Value condition, std::vector<Value> then, std::vector<Value> otherwise);
  /// While condition(carried) holds, carried = body(carried).
  std::vector<Value> while_loop(const std::vector<Value>& initial,
                                const std::function<Value(const std::vector<Value>&)>& condition,
                                const std::function<std::vector<Value>(const std::vector<Value>&)>& body);
  /// A copy as Op::copy_async says.
  struct Copy {
    Ref from = -1, to = -1;
    Value from_offset = no_value, to_offset = no_value;
    std::vector<int64_t> dims = {}, from_strides = {}, to_strides = {};
    std::vector<Value> limits = {};
    Number other = {};
    Ref barrier = -1;
    Value index = no_value;
  };
  void copy_async(const Copy& copy);
  void commit_copies();
  void wait_copies(int64_t left);
  void arrive(Ref barriers, Value index);
  void await(Ref barriers, Value index, Value phase);
  /// One of the bodies that run at once.
  struct Role {
    int64_t warps = 4, registers = 0;
    std::function<void()> body;
  };
  void roles(const std::vector<Role>& roles);
  void print(const std::string& text, std::vector<Value> values);
  void assert_(Value condition, const std::string& text);

  /// Sets the line of the user's program that instructions appended from now on come from.
  void at(const char* file, int line);
  const std::string& name() const { return kernel_.name; }
  const Kernel& kernel() const { return kernel_; }  // as far as it goes
  /// The block that is open, as far as it goes.
  const Block& open_block() const { return frames_.back().block; }
  const Type& type(Value v) const { return kernel_.types.at(static_cast<size_t>(v)); }
  Dtype dtype(Ref ref) const;  // of a parameter or local
  /// The known value of an integer scalar, where it is a constant (simple folding happens as instructions are
  /// appended).
  bool known(Value v, int64_t& out) const;
  Kernel finish();  // adds the closing yield and verifies

 private:
  struct Frame {  // an open block: loop and when move it into their instruction when it is complete
    Block block = {};
    std::map<std::string, Value> leaves = {};  // constants, symbols, program_id: one instruction each in a scope
    int32_t line = 0;                          // of the instruction that gets the block
  };
  Value append(Inst inst);
  Value leaf(Inst inst);
  Value fold(ScalarOp op, const std::vector<Value>& args, const Type& result);
  Value fold_floats(ScalarOp op, const std::vector<Value>& args, const Type& result);
  Value new_value(const Type& type);
  void open() { frames_.push_back({.line = line_}); }
  Block close(std::vector<Value> results);
  bool splat(Value v, Number& out) const;  // the number that fills v, where v is a constant
  [[noreturn]] void refuse(const std::string& message) const;
  std::vector<Value> several(Inst inst);
  Block combining(const Combine& combine, const std::vector<Value>& tiles);
  std::vector<Value> append_branch(Inst inst);

  Kernel kernel_;
  int32_t line_ = 0;
  std::vector<Inst> reserved_;                 // allocations of `reserve`
  std::vector<Frame> frames_;                  // innermost last
  std::vector<std::optional<Number>> splats_;  // by Value
  std::map<Value, Value> widened_;             // casts from float16 and bfloat16 to what they were cast from
};

}  // namespace weft::kernel
