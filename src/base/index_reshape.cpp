// Reshape as a map of index tuples: inside each group of axes that really merge or split, flatten with the new extents
// and take the old extents' digits. Everything else passes through, so that an affine index stays affine.
#include "base/error.h"
#include "base/index.h"

namespace weft::ix {

namespace {

int64_t product(std::span<const int64_t> shape) {
  int64_t p = 1;
  for (int64_t n : shape)
    if (n <= 0 || __builtin_mul_overflow(p, n, &p)) return -1;
  return p;
}

}  // namespace

std::vector<ReshapeGroup> reshape_groups(std::span<const int64_t> from, std::span<const int64_t> to) {
  const int64_t total = product(from);
  check(total > 0 && total == product(to), "reshape_groups", "the shapes must have equal, non-zero products");
  const int n = static_cast<int>(from.size()), m = static_cast<int>(to.size());
  std::vector<ReshapeGroup> groups;
  int i = 0, j = 0;
  while (i < n || j < m) {
    ReshapeGroup g{i, i, j, j};
    int64_t p = 1, q = 1;
    while (i < n && p == 1) p *= from[i++];
    while (j < m && q == 1) q *= to[j++];
    while (p != q) {
      if (p < q) p *= from[i++];
      else q *= to[j++];
    }
    g.from_end = i;
    g.to_end = j;
    if (p == 1 && !groups.empty()) {  // only ones are left
      groups.back().from_end = i;
      groups.back().to_end = j;
    } else {
      groups.push_back(g);
    }
  }
  return groups;
}

std::vector<Expr> reindex_reshape(Context& cx, std::span<const Expr> index, std::span<const int64_t> from,
                                  std::span<const int64_t> to) {
  check(index.size() == to.size(), "reindex_reshape", "one index for each axis of the reshaped array");
  std::vector<Expr> result(from.size(), cx.constant(0));
  for (const ReshapeGroup& g : reshape_groups(from, to)) {
    Expr flat = cx.constant(0);
    int64_t stride = 1;
    for (int j = g.to_end - 1; j >= g.to_begin; --j) {
      if (to[j] == 1) continue;
      flat = flat + index[j] * stride;
      stride *= to[j];
    }
    int first = g.from_begin;  // the outermost digit needs no modulus: an index in range has none above it
    while (first < g.from_end && from[first] == 1) ++first;
    stride = 1;
    for (int i = g.from_end - 1; i >= g.from_begin; --i) {
      if (from[i] == 1) continue;
      const Expr digit = flat / stride;
      result[i] = i == first ? digit : digit % from[i];
      stride *= from[i];
    }
  }
  return result;
}

Expr linear(Context& cx, std::span<const Expr> index, std::span<const int64_t> strides, int64_t offset) {
  check(index.size() == strides.size(), "index linear", "one stride for each index");
  Expr sum = cx.constant(offset);
  for (size_t k = 0; k < index.size(); ++k) sum = sum + index[k] * strides[k];
  return sum;
}

}  // namespace weft::ix
