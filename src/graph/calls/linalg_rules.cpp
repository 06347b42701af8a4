#include "graph/calls/linalg_rules.h"

#include <fmt/format.h>

#include "base/error.h"

namespace weft::graph::linalg {

void check_matrices(const char* name, const Type& v, bool square, bool tall) {
  if ((real_of(v.dtype) != float32 && real_of(v.dtype) != float64) || v.rank() < 2)
    throw_invalid(name, "needs matrices of float32, float64, complex64 or complex128 along the last two axes, got " +
                            to_string(v));
  const Dim first = v.shape[v.shape.size() - 2], second = v.shape.back();
  if (!first.is_static() || !second.is_static())
    throw_invalid(name, "the matrices of " + to_string(v) + " have a symbolic axis: decompose matrices of fixed size");
  if (square && first.bound() != second.bound()) throw_invalid(name, "needs square matrices, got " + to_string(v));
  if (tall && second.bound() < first.bound())
    throw_invalid(
        name, fmt::format("needs at least as many rows as columns, got {} columns in {}", first.bound(), to_string(v)));
}

Type batch_of(const Type& v, std::vector<Dim> further, Dtype dtype) {
  Shape shape(v.shape.begin(), v.shape.end() - 2);
  shape.insert(shape.end(), further.begin(), further.end());
  return {shape, dtype};
}

Values batched_call(const Node& node, ValueSpan x, std::span<const int> axes) {
  return call(node.attrs().call, all_batched(x, axes), node.attrs().integers);
}

Factors batch_factors(const Attrs&, TypeSpan in, TypeSpan out) {
  const int batch = in[0].rank() - 2;
  const auto of = [batch](TypeSpan types) {
    std::vector<std::vector<int>> all;
    for (const Type& t : types) {
      std::vector<int> f(t.shape.size(), -1);
      for (int k = 0; k < batch; ++k) f[static_cast<size_t>(k)] = k;
      all.push_back(std::move(f));
    }
    return all;
  };
  return {of(in), of(out)};
}

}  // namespace weft::graph::linalg
