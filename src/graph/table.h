#pragma once
// The operator table: one row an operator, in one small constexpr array a family (leaves.cpp, movement.cpp, window.cpp,
// elementwise.cpp, complex.cpp, ops/reduce.cpp, dot.cpp, indexed.cpp, assign.cpp, random.cpp, composite.cpp). Whatever
// must know all operators walks the table; nothing else lists them.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "graph/node.h"
#include "kernel/interval.h"

namespace weft::graph {

/// Why a column may be empty. There are no other reasons.
enum class None : uint8_t {
  given,      // the column is filled
  leaf,       // no inputs: nothing to differentiate, batch or bound
  discrete,   // the result changes in steps or not at all with the inputs: derivatives are zero
  by_body,    // a composite: derived from its body
  unbounded,  // no useful bound on the values
};

template <class F>
struct Column {
  F* rule = nullptr;
  None reason = None::given;
  constexpr Column(F* f) : rule(f) {}
  constexpr Column(None why) : reason(why) {}
  constexpr bool filled() const { return (rule != nullptr) == (reason == None::given); }
};

using kernel::Interval;

/// How a dimension may be split over devices (einsum's view of an operator): each dimension of each input and output
/// carries a factor; equal factors are split together. A factor that no output carries is summed over; -1 must stay
/// whole.
struct Factors {
  std::vector<std::vector<int>> inputs, outputs;
};

/// Values on the host, for the reference evaluation: row-major, symbols at their bounds.
struct HostTensor {
  Type type;
  std::vector<Number> data;
};

using ShapeRule = std::vector<Shape>(const Attrs& attrs,
                                     std::span<const Type> inputs);  // throws std::invalid_argument "[op] …"
using DtypeRule = std::vector<Dtype>(const Attrs& attrs, std::span<const Type> inputs);  // likewise
using IntervalRule = Interval(const Attrs& attrs, std::span<const Interval> inputs, const Type& result);
/// One cotangent for each input, empty where none flows. `outputs` are the node's own results; `cotangents` has an
/// empty Value where an output's is zero.
using VjpRule = Values(const Node& node, std::span<const Value> inputs, std::span<const Value> outputs,
                       std::span<const Value> cotangents);
/// One tangent for each output; an empty tangent is zero.
using JvpRule = Values(const Node& node, std::span<const Value> inputs, std::span<const Value> outputs,
                       std::span<const Value> tangents);
/// Inputs with axis[k] >= 0 carry a batch axis there, of the same extent; the results carry theirs in front. A result
/// of the node's own type is the same for the whole batch.
using VmapRule = Values(const Node& node, std::span<const Value> inputs, std::span<const int> axes);
using FactorRule = Factors(const Attrs& attrs, std::span<const Type> inputs, std::span<const Type> outputs);
using ReferenceRule = std::vector<HostTensor>(const Attrs& attrs, std::span<const HostTensor> inputs,
                                              std::span<const Type> outputs);
using ScalarColumn = kernel::ScalarOp;

struct Row {
  Op op;
  std::string_view name;       // in prints, errors and exported files
  int min_inputs, max_inputs;  // max -1: any number
  ShapeRule* shape;
  DtypeRule* dtype;
  Column<IntervalRule> interval;
  Column<VjpRule> vjp;
  Column<JvpRule> jvp;
  Column<VmapRule> vmap;
  Column<FactorRule> factors;
  int scalar = -1;  // kernel::ScalarOp of an elementwise operator, else -1
  ReferenceRule* reference;
  double ulp;  // compiled results stay within this many float32 ulp of the reference (0: equal), for reductions and
               // dots per √n
  // docs/operators.md:
  std::string_view meaning;          // of the result, in one line; a, b, … are the inputs
  std::string_view attributes = "";  // the fields of Attrs that it reads; verifiers refuse a node with another one set
  std::string_view dtypes = "";      // that it takes; empty: any, or of an elementwise operator its scalar's
};

const Row& row(Op op);
std::span<const Row* const> table();  // every row, in the order of Op
/// Returns the first attribute that is set although the operator's row does not list it; "" where there is none.
std::string_view unread_attribute(Op op, const Attrs& attrs);
std::string_view name(const Node& node);  // of its row; regions and calls have their own

/// docs/operators.md: the rows, and the reasons of empty columns.
std::string operators_page();

/// The reference evaluation of a whole graph: float results computed in double and rounded once for each operator.
std::vector<HostTensor> evaluate_reference(const Graph& graph, std::span<const HostTensor> inputs);

}  // namespace weft::graph
