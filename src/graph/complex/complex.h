#pragma once
// complex64 and complex128 as pairs of their parts. Derivatives pair cotangents with tangents by Re(conj(g) · t), as
// MLX and PyTorch do: the gradient of a real function f of z = x + iy is ∂f/∂x + i ∂f/∂y, and a holomorphic function's
// cotangent is g · conj(f'(z)). No target computes with complex numbers: before a graph is compiled or evaluated, each
// complex value becomes two real ones, and in memory it is an array of the parts with one more axis of 2 at the end,
// real part first.
#include "graph/node.h"

namespace weft::graph {

/// The parts of a complex value.
struct Parts {
  Value re, im;
};

/// Returns whether the graph contains a complex value.
bool has_complex(const Graph& graph);
/// Returns the type in memory: complex64 (…) is float32 (…, 2), complex128 float64; other types are unchanged.
Type memory_type(const Type& type);
/// Returns the same function in real numbers: complex inputs and results have their memory_type; regions are inlined.
Graph split_complex(const Graph& graph);

/// Computes an elementwise operator on complex numbers, as its principal value with C's branch cuts. Only for operators
/// that `takes_complex` accepts.
Parts complex_elementwise(Op op, const std::vector<Parts>& arguments);
bool takes_complex(Op op);
/// Returns whether the node applies one real operator to each part separately: it moves, chooses or adds elements.
bool acts_on_parts(const Node& node);
/// Returns whether derivatives of the node multiply complex numbers; its rule is then written as g · f'(z).
bool multiplies_complex(const Node& node);
/// Computes products and extremes, cumulative reductions other than sums, and sorting (complex_reductions.cpp).
Parts complex_reduce(const Node& node, const Parts& z);
Parts complex_cumulative(const Node& node, const Parts& z);
struct SortedParts {
  Parts values;
  Value order;
};
SortedParts complex_sort(const Node& node, const Parts& z);
Parts multiply(const Parts& a, const Parts& b);
/// Returns |z| without intermediate overflow.
Value magnitude(const Parts& z);
/// Returns |z| of a complex value, with derivatives of its own: z / |z|, and 0 for 0.
Value absolute(const Value& z);
/// Returns the name of the call that a call with complex values becomes when a graph is split (complex_calls.cpp).
std::string name_on_pairs(const Node& node);

}  // namespace weft::graph
