#pragma once
// The graph: immutable nodes that describe a computation. A Value is one output of a node. `make` (graph/build.h) makes
// nodes and checks them against their row of the operator table. They are reference-counted.
//
// A node changes in one way only: once its value is computed, `materialise` gives its outputs storage and drops its
// inputs. It then is a leaf. `structure()` is the lock for this: shared to read inputs or storage of a node that
// another thread may evaluate, exclusive to materialise.
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
  complex,  // parts of complex numbers, and complex numbers of their parts (graph/complex/complex.h)
  // reductions, contraction, indexing, random
  reduce,
  cumulative,
  dot,
  gather,
  scatter,
  assign,
  random_bits,
  depends,    // the first input, computed after the others (graph/ops/depends.cpp)
  scheduled,  // its input, computed as steps say: attrs.call (graph/ops/scheduled.cpp)
  call,       // a routine on whole arrays that is not generated code: attrs.call (graph/calls/call.h)
  cond,
  while_loop,
  scan,       // control flow: attrs.control (graph/control/control.h)
  composite,  // a named region with a body in primitives
  count_
};

enum class ScatterMode : uint8_t { set, add, max, min, prod };
std::string_view name(ScatterMode mode);
kernel::ScalarOp combine(ScatterMode mode);  // of all but `set`: add, max, min, mul
enum class Generator : uint8_t { threefry, philox };

struct Type {
  Shape shape;
  Dtype dtype = float32;
  int rank() const { return static_cast<int>(shape.size()); }
  friend bool operator==(const Type& a, const Type& b) { return a.dtype == b.dtype && a.shape == b.shape; }
};
inline bool is_inexact(Dtype t) { return is_float(t) || is_complex(t); }  // real or complex
std::string to_string(const Type& type);                                  // "f32(2,3)"

class Node;
struct Control;
struct KernelProgram;
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

/// The facts that the attention kernels need of a region that is attention (inputs q, k, v, [mask], [key]; results o
/// and the rows' logsumexp) or its derivative (inputs q, k, v, [mask], [key], o, logsumexp, cotangent of o; results the
/// cotangents of q, k and v).
struct AttentionRegion {
  double scale = 1;
  bool causal = false;  // row i sees columns up to i + offset
  int64_t offset = 0;
  bool mask = false;  // bool: false hides; floating: added to the scores
  bool derivative = false;
  double dropout = 0;  // the share of weights that become 0, by the bits of the key; 0: there is no key
};

/// A named region. `body` builds its result from the inputs in primitives or other composites, and may depend on
/// nothing but the inputs and `key`. Rules that are given replace what follows from the body:
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
  std::optional<AttentionRegion> attention = {};  // kernels of attention may compute it
};

/// An operator's row lists the fields that it reads (`attributes`); all others stay empty.
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
  std::string call;               // call: its name; scheduled: the text of its steps
  std::vector<int64_t> integers;  // call: integers that its rule defines; cumulative: its switches
  bool literal = false;  // constant: written by a user as a number; eager evaluation passes it as data, so that new
                         // values compile nothing
  std::shared_ptr<const Composite> composite;
  std::shared_ptr<const Control> control;       // cond, while_loop, scan
  std::shared_ptr<const KernelProgram> kernel;  // call: the tile program that "kernel" runs (graph/calls/kernel_call.h)
  friend bool operator==(const Attrs&, const Attrs&) = default;
};

/// Attributes as a node holds them: copies of the node share them, and most nodes that a thread makes with equal ones.
/// Most nodes have none.
class SharedAttrs {
 public:
  SharedAttrs() : attrs_(none()) {}
  SharedAttrs(Attrs attrs);
  const Attrs& operator*() const { return *attrs_; }
  const Attrs* operator->() const { return attrs_.get(); }
  operator const Attrs&() const { return *attrs_; }
  /// Returns the attributes for writing; they are no longer shared with other nodes.
  Attrs& edit() {
    if (attrs_.use_count() > 1) attrs_ = std::make_shared<Attrs>(*attrs_);
    return *attrs_;
  }

 private:
  static const std::shared_ptr<Attrs>& none();
  std::shared_ptr<Attrs> attrs_;
};

/// The types of a node's results, shared as attributes are.
class SharedTypes {
 public:
  SharedTypes(std::vector<Type> types);
  const std::vector<Type>& operator*() const { return *types_; }

 private:
  std::shared_ptr<const std::vector<Type>> types_;
};

/// The location of a value: element (i, j, …) is data[offset + i·strides[0] + j·strides[1] + …]. Symbolic axes are laid
/// out at their bounds.
struct Storage {
  runtime::BufferRef buffer;
  int64_t offset = 0;  // elements
  Strides strides;
};

class Node {
 public:
  Node(Op op, Values inputs, SharedAttrs attrs, SharedTypes types);
  ~Node();  // frees long chains without recursion
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Op op() const { return op_; }
  const Values& inputs() const { return inputs_; }
  const Attrs& attrs() const { return *attrs_; }
  const SharedAttrs& shared_attrs() const { return attrs_; }
  const std::vector<Type>& types() const { return *types_; }
  const SharedTypes& shared_types() const { return types_; }
  int outputs() const { return static_cast<int>(types().size()); }
  uint64_t id() const { return id_; }     // increases with creation: inputs have smaller ids
  int stream() const { return stream_; }  // on which it is computed: the thread's when it was made

  /// Returns the storage of output k, or null while it is pending. A node with storage is a leaf, whatever its op.
  const Storage* storage(int k) const { return storage_.empty() ? nullptr : &storage_[static_cast<size_t>(k)]; }
  void materialise(std::vector<Storage> storage);  // one for each output; drops the inputs

 private:
  Op op_;
  Values inputs_;
  SharedAttrs attrs_;
  SharedTypes types_;
  std::vector<Storage> storage_;
  uint64_t id_;
  int stream_;
};

std::shared_mutex& structure();

/// Sets the stream of new nodes of the calling thread while it lives. Threads without one use the process's.
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

/// Returns the nodes that `outputs` need, inputs before users, each once, including leaves (parameters, nodes with
/// storage).
std::vector<std::shared_ptr<Node>> topological(std::span<const Value> outputs);
/// References to nodes, where other nodes or values hold them: they last while the graph is not changed.
using NodeRefs = std::vector<const std::shared_ptr<Node>*>;
/// The same without counting references.
NodeRefs reachable(std::span<const Value> outputs);
/// The same as `topological` without the nodes of `stop_at` and those that are reached through them only.
std::vector<std::shared_ptr<Node>> topological(std::span<const Value> outputs, std::span<const Value> stop_at);
/// Replaces composites by their bodies, recursively, except those that are `kept`; nodes with changed inputs are
/// rebuilt.
Graph inline_composites(const Graph& graph, const std::function<bool(const Node&)>& kept = {});
/// Returns `outputs` with each value of `from` replaced by the value at the same position of `to`.
Values substitute(std::span<const Value> outputs, std::span<const Value> from, std::span<const Value> to);

/// Hashes the attributes that influence the result.
void hash(Hasher& h, const Attrs& attrs);
/// Returns a digest of operators, attributes, types and edges.
Digest digest(const Graph& graph);
/// Returns the digest of the graph of these inputs and outputs, whose nodes are reachable(outputs).
Digest digest(const NodeRefs& inputs, const NodeRefs& nodes, std::span<const Value> outputs);

std::string print(const Graph& graph);
/// Throws internal_error if a node breaks its row: arity, dtype rule, shape rule.
void verify(const Graph& graph);

}  // namespace weft::graph
