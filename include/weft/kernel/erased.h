#pragma once
// The type-erased layer of the kernel language: values of any dtype and shape, references to arrays, control flow. It
// can say everything; weft/kernel.h puts types over it. Bindings to other languages, and kernels that are written for
// many dtypes at once, use it directly.
//
// All functions append to the trace of the calling thread (`trace` begins one). They throw std::invalid_argument
// "[kernel NAME] file:line: what, shapes, what to do".
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/api.h"
#include "weft/dtype.h"
#include "weft/shape.h"

namespace weft::k {

/// The line of a user's program that an instruction comes from. As a default argument `Line at = Line::here()` it is
/// the caller's; without a number it stands for the line of the instruction before.
struct Line {
  /// The path of the source file.
  const char* file = "";
  /// The line, from 1 on.
  int number = 0;
  /// Returns the line of the call.
  static constexpr Line here(const char* file = __builtin_FILE(), int number = __builtin_LINE()) {
    return {file, number};
  }
};

/// A number as an operand: an integer, or a float.
struct Scalar {
  /// Whether it is an integer.
  bool integral = true;
  /// The integer.
  int64_t i = 0;
  /// The number as a float.
  double f = 0;
  constexpr Scalar() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Scalar(T v)
      : integral(std::is_integral_v<T>), i(integral ? static_cast<int64_t>(v) : 0), f(static_cast<double>(v)) {}
};

/// A tile of the trace: a handle, cheap to copy. It is used on the thread and in the trace that made it, within the
/// block that made it.
class WEFT_API Any {
 public:
  Any() = default;
  Any(int32_t id, uint64_t trace, uint32_t block) : id_(id), block_(block), trace_(trace) {}
  /// Returns whether it is a value.
  explicit operator bool() const { return id_ >= 0; }
  /// Returns the dtype of the elements.
  Dtype dtype(Line at = Line::here()) const;
  /// Returns the extents; none of a scalar.
  const std::vector<int64_t>& dims(Line at = Line::here()) const;
  /// Returns the number of axes.
  int rank(Line at = Line::here()) const { return static_cast<int>(dims(at).size()); }

  /// Returns its number in the trace.
  int32_t id() const { return id_; }
  /// Returns the number of its trace.
  uint64_t trace() const { return trace_; }
  /// Returns the number of the block that made it.
  uint32_t block() const { return block_; }

 private:
  int32_t id_ = -1;
  uint32_t block_ = 0;
  uint64_t trace_ = 0;
};

/// A mutable variable of a trace: what loops and conditions carry. Assignment keeps dtype and shape.
class WEFT_API Cell {
 public:
  explicit Cell(const Any& initial, Line at = Line::here());
  ~Cell();
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;
  /// Returns the value that it has now.
  Any get(Line at = Line::here()) const;
  /// Assigns a value of the same dtype and shape.
  void set(const Any& v, Line at = Line::here());

 private:
  size_t slot_;
  uint64_t trace_;
};

/// How a kernel uses an array.
enum class Use : uint8_t { in, out, in_out };

/// An array that a kernel takes: row-major. An extent is known when it is traced, or is a run-time scalar: a symbol, in
/// memory at its bound.
struct Param {
  /// How the kernel uses it.
  Use use = Use::in;
  /// The dtype of its elements.
  Dtype dtype = float32;
  /// Its extents; of symbols the bounds.
  std::vector<int64_t> dims;
  /// Its name in messages and prints; empty: "p0", "p1", ….
  std::string name = {};
  /// The symbol of each extent, null of one that is a number; empty: all are numbers.
  std::vector<const Symbol*> symbols = {};
};

/// A reference to an array of a kernel, or to a view of it: axis k of the view has dims[k] elements, strides[k] apart.
struct WEFT_API AnyRef {
  /// The number of the array, or of a scratch buffer behind them; -1: none.
  int32_t param = -1;
  /// The number of its trace.
  uint64_t trace = 0;
  /// The dtype of its elements.
  Dtype dtype = float32;
  /// The element at which the view begins.
  int64_t offset = 0;
  /// Its extents, and the elements between neighbours along each axis. Of an extent that is a run-time scalar, dims has
  /// the largest.
  std::vector<int64_t> dims = {}, strides = {};
  /// The run-time scalar of each extent, none of one that is a number; empty: all are numbers.
  std::vector<Any> extents = {};
  /// A run-time part of where the view begins, an int64 scalar; none: `offset` says it.
  Any base = {};

  /// Returns whether the extent of an axis is a run-time scalar.
  bool is_symbolic(size_t axis) const { return axis < extents.size() && extents[axis]; }
  /// Returns the extent of an axis, -1 being the last one. Throws where it is a run-time scalar.
  int64_t dim(int axis, Line at = Line::here()) const;
  /// Returns the extent of an axis, which may be a run-time scalar, as an int64 scalar.
  Any extent(int axis, Line at = Line::here()) const;
  /// Returns the extent of an axis, of a run-time scalar the largest.
  int64_t bound(int axis, Line at = Line::here()) const;
  /// Returns the view whose axis ends at `extent`, an int64 scalar from 0 to its bound: what lies behind is outside.
  AnyRef limit(int axis, const Any& extent, Line at = Line::here()) const;
  /// Returns the view of one element along each of the first axes, which go. An index is an int64 scalar of which it is
  /// known that it lies within its axis.
  AnyRef fixed(std::span<const Any> indices, Line at = Line::here()) const;
  /// Returns the view with its axes in another order: axis k is axis axes[k].
  AnyRef permute(const std::vector<int>& axes, Line at = Line::here()) const;
  /// Returns the view with another shape, by NumPy's rule: what repeats has stride 0.
  AnyRef broadcast(const std::vector<int64_t>& shape, Line at = Line::here()) const;
  /// Returns the view of a part: elements start, start + step, … along each axis.
  AnyRef part(const std::vector<int64_t>& starts, const std::vector<int64_t>& counts, const std::vector<int64_t>& steps,
              Line at = Line::here()) const;
};

/// A part of one axis: `size` elements from `start` on, `step` apart; or the one element at `start` (`squeezed`), which
/// leaves no axis; or all of them.
struct Span {
  /// Where the part begins, an int64 scalar; none: `first` says it.
  Any start = {};
  /// Where the part begins.
  int64_t first = 0;
  /// The number of elements, and the distance from one to the next.
  int64_t size = 1, step = 1;
  /// Whether the axis goes; whether it is taken whole.
  bool squeezed = false, whole = false;
};

/// How the data of an access is cached: as usual; or read once, written and not read soon.
enum class Cache : uint8_t { usual, streaming };

/// The options of an access.
struct Access {
  /// A bool tile of the slice's shape: elements where it is false are not touched.
  Any mask = {};
  /// What a load gives outside of the array, and where the mask is false.
  Scalar other = {};
  /// How the data is cached.
  Cache cache = Cache::usual;
};

/// Loads a slice. Elements outside of the array are `other`.
WEFT_API Any load(const AnyRef& ref, std::span<const Span> slice, const Access& access = {}, Line at = Line::here());
/// Stores a tile into a slice. Elements outside of the array are left out.
WEFT_API void store(const AnyRef& ref, std::span<const Span> slice, const Any& value, const Access& access = {},
                    Line at = Line::here());
/// Says that a slice of an array is read soon, by this program or by another one: it is brought into a cache. A hint,
/// which changes no result; the slice may lie outside of the array.
WEFT_API void prefetch(const AnyRef& ref, std::span<const Span> slice, Line at = Line::here());
/// Loads elements at positions: an int64 tile for each axis of the array; they broadcast together.
WEFT_API Any gather(const AnyRef& ref, std::span<const Any> position, const Access& access = {},
                    Line at = Line::here());
/// Stores elements at positions.
WEFT_API void scatter(const AnyRef& ref, std::span<const Any> position, const Any& value, const Access& access = {},
                      Line at = Line::here());
/// What an atomic operation orders: nothing but itself; what follows it, which sees all that was done before the
/// release whose value it found; what is before it; both.
enum class MemoryOrder : uint8_t { relaxed, acquire, release, acq_rel };
/// For whom: the program, its cluster, its device, all devices and the host.
enum class MemoryScope : uint8_t { block, cluster, device, system };
/// How an atomic operation is ordered.
struct Ordering {
  /// What it orders.
  MemoryOrder order = MemoryOrder::relaxed;
  /// For whom.
  MemoryScope scope = MemoryScope::device;
};
/// Updates elements at positions in an order of the device's own and returns what was there. `op`: "add", "min", "max",
/// "bit_and", "bit_or", "bit_xor" or "exchange".
WEFT_API Any atomic(std::string_view op, const AnyRef& ref, std::span<const Any> position, const Any& value,
                    const Any& mask = {}, Ordering how = {}, Line at = Line::here());
/// Updates the elements of a slice.
WEFT_API Any atomic(std::string_view op, const AnyRef& ref, std::span<const Span> slice, const Any& value,
                    const Any& mask = {}, Ordering how = {}, Line at = Line::here());
/// Replaces elements that are as expected, and returns what was there.
WEFT_API Any compare_exchange(const AnyRef& ref, std::span<const Any> position, const Any& expected, const Any& value,
                              const Any& mask = {}, Ordering how = {}, Line at = Line::here());

/// Returns the value of a symbol, an int64 scalar from 1 to its bound: a dynamic length, whether or not an axis of the
/// kernel's arrays has it.
WEFT_API Any value_of(const Symbol* symbol, Line at = Line::here());

/// Returns a scratch buffer of each program, not initialised.
WEFT_API AnyRef scratch(Dtype dtype, const std::vector<int64_t>& dims, Line at = Line::here());

/// Returns the number of this program along an axis of the grid.
WEFT_API Any program(int axis, Line at = Line::here());
/// Returns the number of programs along an axis of the grid. Throws where it is a run-time scalar.
WEFT_API int64_t num_programs(int axis, Line at = Line::here());
/// Returns the number of programs along an axis of the grid, which may be a run-time scalar.
WEFT_API Any programs_along(int axis, Line at = Line::here());

/// Returns a tile that a number fills.
WEFT_API Any constant(Dtype dtype, Scalar number, const std::vector<int64_t>& dims = {}, Line at = Line::here());
/// Returns 0, 1, … n-1.
WEFT_API Any iota(int64_t n, Dtype dtype = int64, Line at = Line::here());
/// Computes a scalar operator by its name in docs/operators.md. Scalars and axes of extent 1 repeat.
WEFT_API Any apply(std::string_view op, std::span<const Any> args, Line at = Line::here());
/// Converts the elements to another dtype.
WEFT_API Any cast(const Any& v, Dtype to, Line at = Line::here());
/// Reads the bits of the elements as another dtype of the same width.
WEFT_API Any bitcast(const Any& v, Dtype to, Line at = Line::here());
/// Repeats a tile to a shape by NumPy's rule.
WEFT_API Any broadcast_to(const Any& v, const std::vector<int64_t>& dims, Line at = Line::here());
/// Returns the elements, in row-major order, in another shape.
WEFT_API Any reshape(const Any& v, const std::vector<int64_t>& dims, Line at = Line::here());
/// Returns the tile whose axis k is axis axes[k] of v.
WEFT_API Any permute(const Any& v, const std::vector<int>& axes, Line at = Line::here());
/// Returns a part of a tile: `dims` elements from `starts` on, by `steps`.
WEFT_API Any slice(const Any& v, const std::vector<int64_t>& starts, const std::vector<int64_t>& dims,
                   const std::vector<int64_t>& steps = {}, Line at = Line::here());
/// Joins tiles along an axis.
WEFT_API Any cat(std::span<const Any> tiles, int axis, Line at = Line::here());
/// Reduces a tile along an axis by a reducer ("sum", "prod", "max", "min", "all", "any", "xor", "argmax", "argmin",
/// "logsumexp"), or by a function of the states of two parts, which are scalars: the lower part's, the upper part's.
/// The function is associative; the order is fixed (docs/kernels.md).
WEFT_API Any reduce(std::string_view reducer, const Any& v, int axis, Line at = Line::here());
/// The function by which reductions and scans combine two parts.
using CombineAny = std::function<std::vector<Any>(const std::vector<Any>&, const std::vector<Any>&)>;
/// Reduces tiles of one shape together by a function.
WEFT_API std::vector<Any> reduce(const CombineAny& combine, std::span<const Any> tiles, int axis,
                                 Line at = Line::here());
/// Combines each element with those before it along an axis (`reverse`: with those behind it).
WEFT_API Any scan(std::string_view reducer, const Any& v, int axis, bool reverse = false, Line at = Line::here());
WEFT_API std::vector<Any> scan(const CombineAny& combine, std::span<const Any> tiles, int axis, bool reverse = false,
                               Line at = Line::here());
/// Returns along `axis` the elements of v that the index names.
WEFT_API Any take(const Any& v, const Any& index, int axis, Line at = Line::here());
/// Sorts tiles along an axis by the first of them. Equal elements keep their order; NaN comes last.
WEFT_API std::vector<Any> sort(std::span<const Any> tiles, int axis, bool descending = false, Line at = Line::here());
/// Counts how often each of 0 … bins-1 occurs.
WEFT_API Any histogram(const Any& index, int64_t bins, Line at = Line::here());

/// What a product of float32 may lose.
enum class Precision : uint8_t { exact, tf32, tf32x3 };
/// Returns c + a·b, of a […,m,k], b […,k,n], c […,m,n]; without c the sum begins at 0, in float32 (int32 of integers,
/// float64 of float64).
WEFT_API Any dot(const Any& a, const Any& b, const Any& c = {}, Precision precision = Precision::exact,
                 Line at = Line::here());

/// Runs body(i) for i = lo, lo + step, … below hi. `step` is positive.
WEFT_API void loop(const Any& lo, const Any& hi, int64_t step, const std::function<void(Any)>& body,
                   Line at = Line::here());
/// Runs body(i) for i = 0 … n-1, iterations that may run at once: none reads what another one writes. Behind the loop
/// all see what they stored in scratch. It stands in no loop and no condition, and assigns no variables of the outside;
/// parallel loops of a kernel have equally many iterations, and nothing else writes arrays before one.
WEFT_API void parallel(int64_t n, const std::function<void(Any)>& body, Line at = Line::here());
/// Runs the body if the condition, a bool scalar, holds.
WEFT_API void when(const Any& condition, const std::function<void()>& body, Line at = Line::here());
/// Runs one of two functions and returns its values, which have the same types.
WEFT_API std::vector<Any> if_else(const Any& condition, const std::function<std::vector<Any>()>& then,
                                  const std::function<std::vector<Any>()>& otherwise, Line at = Line::here());
/// Runs the body while the condition, computed before each iteration, holds.
WEFT_API void while_(const std::function<Any()>& condition, const std::function<void()>& body, Line at = Line::here());

/// A loop or a condition whose body is what the thread traces until it is closed: for bindings to languages in which a
/// block is no function. Scopes are closed in the opposite order; a kernel that leaves one open is refused.
class WEFT_API Scope {
 public:
  /// Opens the body of a loop, as `loop` runs it.
  static Scope loop(const Any& lo, const Any& hi, int64_t step, Line at = Line::here());
  /// Opens an iteration of a parallel loop, as `parallel` runs it.
  static Scope parallel(int64_t n, Line at = Line::here());
  /// Opens what runs if the condition, a bool scalar, holds.
  static Scope when(const Any& condition, Line at = Line::here());
  /// Returns whether there is a body: a loop that is known to have no iteration has none. It is closed all the same.
  bool runs() const;
  /// Returns the index of a loop's body; none of a condition.
  const Any& index() const;
  /// Closes the body.
  void close(Line at = Line::here());

 private:
  struct State;
  explicit Scope(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Prints text and values, once a program.
WEFT_API void print(const std::string& text, std::span<const Any> values, Line at = Line::here());
/// Fails the launch where the condition does not hold.
WEFT_API void assert_(const Any& condition, const std::string& text, Line at = Line::here());
/// Returns v, an int64 scalar that `divisor` divides: guards that this makes superfluous are left out. The interpreter
/// and both targets check it.
WEFT_API Any assume_multiple(const Any& v, int64_t divisor, Line at = Line::here());
/// Returns v, an int64 scalar that lies within bounds, as assume_multiple does.
WEFT_API Any assume_range(const Any& v, int64_t low, int64_t high, Line at = Line::here());
/// Returns the tile of an m x n grid of tiles that program (i, j) takes, two int64 scalars, so that programs that run
/// together read few rows and columns: bands of `group` rows, each from column to column. Every tile is taken once.
WEFT_API std::pair<Any, Any> swizzle2d(const Any& i, const Any& j, int64_t m, int64_t n, int64_t group,
                                       Line at = Line::here());

/// How the programs along an axis of a grid run: in any order and at once; one after another, each seeing what those
/// before it stored; or at once, but begun in the order of their numbers, so that one may wait for those before it
/// (wait_until). One ordered axis makes the parallel ones so too. Programs along the last axis, 1 to 8 of them, may be
/// a cluster: they run at once, and reach each other's shared memory.
enum class Order : uint8_t { parallel, sequential, ordered, cluster };
/// One axis of a grid.
struct GridAxis {
  /// The number of programs; of a run-time scalar the largest, once the kernel is traced.
  int64_t extent = 1;
  /// How they run.
  Order order = Order::parallel;
  /// The number of programs as a run-time scalar, an expression of extents of arrays; none: `extent`.
  Any count = {};
  template <std::integral T>
  constexpr GridAxis(T n, Order how = Order::parallel) : extent(static_cast<int64_t>(n)), order(how) {}
  GridAxis(const Any& n, Order how = Order::parallel) : order(how), count(n) {}
  template <class Index>
  requires std::convertible_to<decltype(std::declval<const Index&>().any()), Any> GridAxis(const Index& n,
                                                                                           Order how = Order::parallel)
      : GridAxis(Any(n.any()), how) {}
};
/// Programs of a launch: row-major, the last axis fastest.
using Grid = std::vector<GridAxis>;

/// A traced kernel. Immutable, cheap to copy.
class WEFT_API Program {
 public:
  struct Data;
  explicit Program(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  /// Returns the name.
  const std::string& name() const;
  /// Returns the arrays that the kernel takes.
  const std::vector<Param>& params() const;
  /// Returns the number of independent programs, those along parallel axes: the largest that extents give.
  int64_t programs() const;
  /// Returns the number of independent programs for values of the symbols.
  int64_t programs(std::span<const int64_t> extents) const;
  /// Returns the symbols of run-time extents, in the order in which values are given for them.
  const std::vector<const Symbol*>& symbols() const;
  /// Returns the tile IR as text.
  std::string to_string() const;
  /// Runs the kernel in the interpreter on row-major host memory, one pointer for each parameter. It reports accesses
  /// outside of arrays, programs that interfere, values that were never written and conditions of `assert_`, with the
  /// user's line, as std::runtime_error. `extents`: a value for each of `symbols`; the arrays have room for the bounds.
  void interpret(std::span<void* const> arrays, std::span<const int64_t> extents = {}) const;
  /// Returns the traced kernel, for the library itself.
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

/// Traces a kernel: `body` is called once, on this thread, with a reference to each array.
WEFT_API Program trace(const std::string& name, std::vector<Param> params, const Grid& grid,
                       const std::function<void(std::span<const AnyRef>)>& body);
/// Traces a kernel whose grid is a function of its arrays, so that it may depend on run-time extents.
WEFT_API Program trace_with(const std::string& name, std::vector<Param> params,
                            const std::function<Grid(std::span<const AnyRef>)>& grid,
                            const std::function<void(std::span<const AnyRef>)>& body);

}  // namespace weft::k
