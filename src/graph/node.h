#pragma once
// The graph: immutable nodes that say what is to be computed. A Value is one output of a node. Nodes are made by `make`
// (graph/build.h), which checks them against their row of the operator table; they are shared, and freed when nobody
// can reach them.
//
// The one thing about a node that changes: `materialise` gives its outputs storage and lets go of its inputs, once the
// value has been computed. From then on it is a leaf. `structure()` is the lock for this: shared to read inputs or
// storage of a node that another thread may evaluate, exclusive to materialise.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/number.h"
#include "kernel/reducer.h"
#include "kernel/scalar.h"
#include "runtime/buffer.h"
#include "weft/shape.h"

namespace weft::graph {

enum class Op : uint8_t {
  // leaves
  parameter,  // a placeholder, or (with storage) data
  constant,   // rank 0: attrs.number
  iota,       // 0, 1, … along attrs.axes[0] of attrs.shape
  // movement
  reshape,
  permute,
  broadcast,
  slice,
  pad,
  concat,
  window,
// elementwise: arguments of one shape and dtype (select's condition is bool); first the scalar operators, by the names
// of kernel::ScalarOp
#define WEFT_ENUMERATOR(name) name,
  WEFT_ELEMENTWISE_OPERATORS(WEFT_ENUMERATOR)
#undef WEFT_ENUMERATOR
      select,
  cast,
  bitcast,
  stop_gradient,
  real,
  imag,
  complex,  // parts of complex64, and complex64 of its parts (graph/complex/complex.h)
  // reductions, contraction, indexing, random
  reduce,
  cumulative,
  dot,
  gather,
  scatter,
  assign,
  random_bits,
  depends,  // the first input, computed anew after the others (graph/ops/depends.cpp)
  call,     // a routine on whole arrays that is not generated code: attrs.call (graph/calls/call.h)
  cond,
  while_loop,
  scan,       // control flow: attrs.control (graph/control/control.h)
  composite,  // a named region with a body in primitives
  count_
};

enum class ScatterMode : uint8_t { set, add, max, min, prod };
std::string_view name(ScatterMode mode);
kernel::ScalarOp combine(ScatterMode mode);  // of all but `set`: add, max, min, mul; takes what is there and what comes
enum class Generator : uint8_t { threefry, philox };

struct Type {
  Shape shape;
  Dtype dtype = float32;
  int rank() const { return static_cast<int>(shape.size()); }
  friend bool operator==(const Type& a, const Type& b) { return a.dtype == b.dtype && a.shape == b.shape; }
};
inline bool is_inexact(Dtype t) { return is_float(t) || t == complex64; }  // real or complex
std::string to_string(const Type& type);                                   // "f32(2,3)"

class Node;
struct Control;
struct Value {
  std::shared_ptr<Node> node;
  int index = 0;

  explicit operator bool() const { return node != nullptr; }
  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  Dtype dtype() const { return type().dtype; }
  friend bool operator==(const Value&, const Value&) = default;
};
using Values = std::vector<Value>;

/// What a kernel class for softmax attention must know of a region that is attention (inputs q, k, v, [mask]; results o
/// and the rows' logsumexp) or its derivative (inputs q, k, v, [mask], o, logsumexp, cotangent of o; results those of
/// q, k and v).
struct AttentionRegion {
  double scale = 1;
  bool causal = false;  // row i sees columns up to i + offset
  int64_t offset = 0;
  bool mask = false;  // bool: false hides; floating: added to the scores
  bool derivative = false;
};

/// A region with a name. `body` builds the meaning from the inputs in primitives (or other composites); it must depend
/// on nothing else but the inputs and `key`. The rules, where given, replace what follows from the body:
///   vjp   one cotangent for each input (empty: none flows)
///   jvp   one tangent for each output (empty: zero)
///   vmap  as a row's: inputs with axes[k] >= 0 carry a batch axis there, the results carry theirs in front
struct Composite {
  std::string name;
  std::string
      key;  // everything beside the inputs' types that the body depends on, as text: part of the structural hash
  std::function<Values(std::span<const Value> inputs)> body;
  std::function<Values(std::span<const Value> inputs, std::span<const Value> outputs,
                       std::span<const Value> cotangents)>
      vjp;
  std::function<Values(std::span<const Value> inputs, std::span<const Value> outputs, std::span<const Value> tangents)>
      jvp = {};
  std::function<Values(std::span<const Value> inputs, std::span<const int> axes)> vmap = {};
  std::string call =
      {};  // a routine that answers for the whole region on targets that offer it: operands and results as the region's
  std::vector<int64_t> integers = {};             // its integers, as in kernel::CallDesc
  std::optional<AttentionRegion> attention = {};  // the compiler may answer for the region with its attention class
};

/// Which fields an operator reads is said in its row (`attributes`); all others stay empty.
struct Attrs {
  std::vector<int64_t> axes;   // iota, concat, window: [axis]; permute: source axis of each result axis; reduce: the
                               // reduced axes, ascending; gather, scatter: the indexed axis of the operand for each
                               // index array; dot: contracted axes of the left operand
  std::vector<int64_t> axes2;  // dot: contracted axes of the right operand, pairwise with axes
  std::vector<int64_t> batch, batch2;  // dot: batch axes of the left and of the right operand, pairwise
  Shape shape;  // reshape, broadcast, iota: the result's shape; slice, gather: sizes of the slice; random_bits: the
                // result's shape
  std::vector<int64_t> start, step;  // slice, assign: first element and step (never 0) along each axis
  std::vector<int64_t> low,
      high;  // pad: elements added before and after along each axis (non-negative), of attrs.number
  std::vector<int64_t>
      window;  // window: elements of a window, step between windows, step between a window's elements (all at least 1)
  Dtype dtype = float32;  // constant, iota, cast, bitcast, parameter: the result's dtype; dot: the result's dtype
                          // (accumulation is at least float32)
  Number number;          // constant, pad
  kernel::Reducer reducer = kernel::Reducer::sum;  // reduce
  ScatterMode mode = ScatterMode::set;             // scatter
  Generator generator = Generator::threefry;       // random_bits
  int64_t slot = -1;                               // parameter: its number among a graph's inputs, for printing
  bool packed =
      false;  // reshape: the result is asked for row-major in memory, so it is never a view; its values are no others
  std::string call;  // call: its name
  std::vector<int64_t>
      integers;          // call: numbers whose meaning is said where the call is listed; cumulative: its switches
  bool literal = false;  // constant: written by a user as a number; eager evaluation passes it as data, so that new
                         // values compile nothing
  std::shared_ptr<const Composite> composite;
  std::shared_ptr<const Control> control;  // cond, while_loop, scan
};

/// Attributes as a node holds them: whoever copies the node shares them. Most nodes have none.
class SharedAttrs {
 public:
  SharedAttrs() : attrs_(none()) {}
  SharedAttrs(Attrs attrs) : attrs_(std::make_shared<Attrs>(std::move(attrs))) {}
  const Attrs& operator*() const { return *attrs_; }
  const Attrs* operator->() const { return attrs_.get(); }
  operator const Attrs&() const { return *attrs_; }
  /// For whoever fills them in: no longer those of other nodes.
  Attrs& edit() {
    if (attrs_.use_count() > 1) attrs_ = std::make_shared<Attrs>(*attrs_);
    return *attrs_;
  }

 private:
  static const std::shared_ptr<Attrs>& none();
  std::shared_ptr<Attrs> attrs_;
};

/// Where a value lies: element (i, j, …) at data[offset + i·strides[0] + j·strides[1] + …]. Symbolic axes are laid out
/// at their bounds.
struct Storage {
  runtime::BufferRef buffer;
  int64_t offset = 0;  // elements
  Strides strides;
};

class Node {
 public:
  Node(Op op, Values inputs, SharedAttrs attrs, std::vector<Type> types);
  ~Node();  // frees long chains without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Op op() const { return op_; }
  const Values& inputs() const { return inputs_; }
  const Attrs& attrs() const { return *attrs_; }
  const SharedAttrs& shared_attrs() const { return attrs_; }
  const std::vector<Type>& types() const { return types_; }
  int outputs() const { return static_cast<int>(types_.size()); }
  uint64_t id() const { return id_; }     // rises with creation: inputs have smaller ids
  int stream() const { return stream_; }  // on which it is computed: the thread's when the node was made

  /// Storage of output k, or null while it is pending. A node with storage is a leaf, whatever its op was.
  const Storage* storage(int k) const { return storage_.empty() ? nullptr : &storage_[static_cast<size_t>(k)]; }
  void materialise(std::vector<Storage> storage);  // one for each output; drops the inputs

 private:
  Op op_;
  Values inputs_;
  SharedAttrs attrs_;
  std::vector<Type> types_;
  std::vector<Storage> storage_;
  uint64_t id_;
  int stream_;
};

std::shared_mutex& structure();

/// The stream that new nodes of the calling thread belong to; another one while a scope lives. Threads that have none
/// of their own take the process's.
class StreamScope {
 public:
  explicit StreamScope(int stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  static int current();
  static void set(int stream);  // -1: the process's
  static void set_for_process(int stream);

 private:
  int before_;
};

/// A closed function: parameters in order, results in order.
struct Graph {
  Values inputs;  // parameter nodes
  Values outputs;
};

/// Nodes that `outputs` need, inputs before users, each once; leaves (parameters, nodes with storage) included.
std::vector<std::shared_ptr<Node>> topological(std::span<const Value> outputs);
/// The same without the nodes of `stop_at` and what is only reached through them.
std::vector<std::shared_ptr<Node>> topological(std::span<const Value> outputs, std::span<const Value> stop_at);
/// Composites replaced by their bodies, all the way down, and nodes rebuilt where an input changed; those that are
/// `kept` stay.
Graph inline_composites(const Graph& graph, const std::function<bool(const Node&)>& kept = {});
/// `outputs` with each of `from` replaced by the value of `to` at the same position.
Values substitute(std::span<const Value> outputs, std::span<const Value> from, std::span<const Value> to);

/// Everything in the attributes that may make a difference to what is computed.
void hash(Hasher& h, const Attrs& attrs);
/// Operators, attributes, types and who reads whom.
Digest digest(const Graph& graph);

std::string print(const Graph& graph);
/// Throws internal_error where a node breaks its row: arity, dtype rule, shape rule.
void verify(const Graph& graph);

}  // namespace weft::graph
