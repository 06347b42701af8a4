#pragma once
// complex64 as pairs of float32. Derivatives pair cotangents with tangents by Re(conj(g) · t), as MLX and PyTorch do:
// the gradient of a real function f of z = x + iy is ∂f/∂x + i ∂f/∂y, and a holomorphic function's cotangent is g ·
// conj(f'(z)). No target computes with complex numbers: before a graph is compiled or evaluated, each complex value
// becomes two real ones, and in memory it is a float32 array with one more axis of 2 at the end, real part first.
#include "graph/node.h"

namespace weft::graph {

/// A complex value by its parts.
struct Parts {
  Value re, im;
};

/// Whether a complex value occurs among the graph's inputs, results or what lies between.
bool has_complex(const Graph& graph);
/// The type in memory: complex64 (…) is float32 (…, 2); others are themselves.
Type memory_type(const Type& type);
/// The same function in float32: complex inputs and results of memory_type; regions are inlined.
Graph split_complex(const Graph& graph);

/// An operator of the elementwise family on complex numbers, by its principal value with C's branch cuts. Only those
/// that `takes_complex`.
Parts complex_elementwise(Op op, const std::vector<Parts>& arguments);
bool takes_complex(Op op);
/// Whether the node applies one real operator to either part alone: it moves, chooses or adds elements.
bool acts_on_parts(const Node& node);
/// Whether derivatives of the node multiply complex numbers: its rule is then written for g · f'(z).
bool multiplies_complex(const Node& node);
/// Products and extremes, cumulative reductions that are no sums, and sorting (graph/complex/complex_reductions.cpp).
Parts complex_reduce(const Node& node, const Parts& z);
Parts complex_cumulative(const Node& node, const Parts& z);
struct SortedParts {
  Parts values;
  Value order;
};
SortedParts complex_sort(const Node& node, const Parts& z);
Parts multiply(const Parts& a, const Parts& b);
/// |z| without overflow on the way.
Value magnitude(const Parts& z);

}  // namespace weft::graph
