// weft/ops/matmul.h: tensordot, kron, masked, gathered and segmented matrix products, Hadamard transforms.
#include <bit>
#include <cmath>
#include <numeric>

#include "array/op_support.h"
#include "base/error.h"
#include "graph/regions/composites.h"
#include "weft/ops.h"

namespace weft {
namespace {

using detail::describe;
using Signs = std::vector<std::vector<int>>;

// Returns Sylvester's Hadamard matrix of size n = 2^k: the sign of entry (i, j) is the parity of i & j.
Signs sylvester(size_t n) {
  Signs h(n, std::vector<int>(n));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) h[i][j] = std::popcount(i & j) % 2 ? -1 : 1;
  return h;
}

// Returns the Hadamard matrix of size 12 by Paley's second construction for q = 5: the symmetric conference matrix of
// the quadratic residues, doubled.
Signs paley12() {
  constexpr int residue[5] = {0, 1, -1, -1, 1};
  Signs h(12, std::vector<int>(12));
  for (size_t i = 0; i < 6; ++i)
    for (size_t j = 0; j < 6; ++j) {
      const int c = i == j ? 0 : i == 0 || j == 0 ? 1 : residue[(j + 5 - i) % 5];
      const int block[2][2] = {{c + (i == j), c - (i == j)}, {c - (i == j), -c - (i == j)}};
      for (size_t p = 0; p < 2; ++p)
        for (size_t q = 0; q < 2; ++q) h[2 * i + p][2 * j + q] = block[p][q];
    }
  return h;
}

// Returns a Hadamard matrix by Williamson's construction from four circulant matrices, given by their first rows.
Signs williamson(const char* const (&rows)[4]) {
  constexpr int part[4][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
  constexpr int sign[4][4] = {{1, 1, 1, 1}, {-1, 1, -1, 1}, {-1, 1, 1, -1}, {-1, -1, 1, 1}};
  const size_t m = std::char_traits<char>::length(rows[0]);
  Signs h(4 * m, std::vector<int>(4 * m));
  for (size_t i = 0; i < 4 * m; ++i)
    for (size_t j = 0; j < 4 * m; ++j) {
      const size_t bi = i / m, bj = j / m;
      h[i][j] = sign[bi][bj] * (rows[part[bi][bj]][(j % m + m - i % m) % m] == '+' ? 1 : -1);
    }
  return h;
}

Signs odd_hadamard(int64_t m) {
  if (m == 12) return paley12();
  if (m == 20) return williamson({"+----", "+----", "++--+", "+-++-"});
  return williamson({"+------", "++----+", "+-+--+-", "+--++--"});
}

// Multiplies the rows of x [rows, n], n = m·2^k, by the Hadamard matrix. It is a Kronecker product, so x is multiplied
// by its factors one after the other, each along its own axis.
array hadamard_rows(const array& x, int64_t m, int64_t n, const StreamOrDevice& s) {
  constexpr int64_t largest = 64;  // largest factor of 2^k: two matrix products for 4096 columns
  std::vector<Signs> factors;
  Shape split{x.shape()[0]};
  if (m > 1) factors.push_back(odd_hadamard(m));
  for (int64_t left = n / m; left > 1; left /= std::min(left, largest))
    factors.push_back(sylvester(static_cast<size_t>(std::min(left, largest))));
  for (const Signs& f : factors) split.emplace_back(static_cast<int64_t>(f.size()));
  array y = reshape(x, split, s);
  for (const Signs& f : factors) {  // contracts the first factor's axis; its result comes last, so the axes are in
                                    // order again at the end
    std::vector<int> flat;
    for (const auto& row : f) flat.insert(flat.end(), row.begin(), row.end());
    const auto size = static_cast<int64_t>(f.size());
    y = tensordot(y, astype(array(flat.begin(), {size, size}, int32), y.dtype(), s), {1}, {1}, s);
  }
  return reshape(y, x.shape(), s);
}

// Repeats one number for each block over the rows and columns of the block.
array repeat_blocks(const array& mask, int block, int64_t rows, int64_t columns, const StreamOrDevice& s) {
  const array wide = repeat(repeat(mask, block, -2, s), block, -1, s);
  Shape start(wide.ndim(), Dim(0)), stop = wide.shape();
  stop[stop.size() - 2] = rows;
  stop[stop.size() - 1] = columns;
  return slice(wide, start, stop, s);
}

array apply_mask(const array& x, const std::optional<array>& mask, const char* what, int block,
                 const StreamOrDevice& s) {
  if (!mask) return x;
  const int64_t rows = x.shape(-2), columns = x.shape(-1);
  if (mask->ndim() < 2 || mask->shape(-2) != (rows + block - 1) / block ||
      mask->shape(-1) != (columns + block - 1) / block)
    throw_invalid("block_masked_mm", std::string("the mask of ") + what + " needs one number for each block of " +
                                         std::to_string(block) + " by " + std::to_string(block) + ", got " +
                                         describe(*mask) + " for " + describe(x));
  const array whole = repeat_blocks(*mask, block, rows, columns, s);
  return mask->dtype() == bool_ ? where(whole, x, zeros_like(x, s), s) : multiply(x, astype(whole, x.dtype(), s), s);
}

// Matrices with their leading axes merged into one, and their indices, which are 0, 1, … where none are given.
struct Matrices {
  array stacked, indices;
};

Matrices matrices(const array& a, const std::optional<array>& indices, const StreamOrDevice& s) {
  Shape lead(a.shape().begin(), a.shape().end() - 2);
  const int64_t n = num_elements(lead);
  if (indices) detail::require_integer("gather_mm", "indices", *indices);
  const array every = reshape(array(graph::iota({n}, 0, int32)), lead, s);
  return {reshape(a, {n, a.shape(-2), a.shape(-1)}, s), indices ? array(graph::matrix_index(indices->value())) : every};
}

void require_matrix(const char* op, const array& a) {
  if (a.ndim() < 2) throw_invalid(op, "matrices are needed, got " + describe(a));
}

}  // namespace

array vecdot(const array& a, const array& b, int axis, StreamOrDevice s) {
  const detail::OnStream on_stream("vecdot", s);
  detail::one_axis("vecdot", axis, std::max(a.ndim(), b.ndim()));
  return sum(multiply(conjugate(a, s), b, s), axis, false, s);
}

array tensordot(const array& a, const array& b, const std::vector<int>& axes_a, const std::vector<int>& axes_b,
                StreamOrDevice s) {
  const detail::OnStream on_stream("tensordot", s);
  const Dtype dtype = promote_types(a.dtype(), b.dtype());
  if (!is_float(dtype) && !is_complex(dtype))
    throw_invalid("tensordot", "only floating types are supported, got " + describe(a) + " and " + describe(b) +
                                   ": convert them with astype");
  bool fits = axes_a.size() == axes_b.size();
  detail::sorted_axes("tensordot", axes_a, a.ndim());
  detail::sorted_axes("tensordot", axes_b, b.ndim());
  std::vector<int64_t> left, right;
  for (size_t k = 0; fits && k < axes_a.size(); ++k) {
    left.push_back(detail::one_axis("tensordot", axes_a[k], a.ndim()));
    right.push_back(detail::one_axis("tensordot", axes_b[k], b.ndim()));
    fits = a.shape()[static_cast<size_t>(left.back())] == b.shape()[static_cast<size_t>(right.back())];
  }
  if (!fits)
    throw_invalid("tensordot", "the contracted axes of " + describe(a) + " and " + describe(b) +
                                   " must be as many and of equal sizes, pairwise");
  return array(graph::dot(detail::to_dtype(a.value(), dtype), detail::to_dtype(b.value(), dtype), left, right));
}

array tensordot(const array& a, const array& b, const int axis, StreamOrDevice s) {
  if (axis < 0 || axis > static_cast<int>(std::min(a.ndim(), b.ndim())))
    throw_invalid("tensordot",
                  std::to_string(axis) + " axes cannot be contracted between " + describe(a) + " and " + describe(b));
  std::vector<int> left(static_cast<size_t>(axis)), right(left.size());
  std::iota(left.begin(), left.end(), static_cast<int>(a.ndim()) - axis);
  std::iota(right.begin(), right.end(), 0);
  return tensordot(a, b, left, right, s);
}

array kron(const array& a, const array& b, StreamOrDevice s) {
  if (num_elements(a.shape()) == 0 || num_elements(b.shape()) == 0)
    throw_invalid("kron", "arrays with elements are needed, got " + describe(a) + " and " + describe(b));
  const size_t n = std::max(a.ndim(), b.ndim());
  Shape left, right, result;  // axis k of a next to axis k of b, then merged
  for (size_t k = 0; k < n; ++k) {
    const Dim i = k + a.ndim() < n ? Dim(1) : a.shape()[k + a.ndim() - n],
              j = k + b.ndim() < n ? Dim(1) : b.shape()[k + b.ndim() - n];
    left.insert(left.end(), {i, Dim(1)});
    right.insert(right.end(), {Dim(1), j});
    result.push_back(int64_t{i} * int64_t{j});
  }
  return reshape(multiply(reshape(a, left, s), reshape(b, right, s), s), result, s);
}

array hadamard_transform(const array& a, std::optional<float> scale, StreamOrDevice s) {
  const detail::OnStream on_stream("hadamard_transform", s);
  if (a.size() == 0) throw_invalid("hadamard_transform", "empty arrays have no transform, got " + describe(a));
  const int64_t n = a.ndim() == 0 ? 1 : int64_t{a.shape().back()};
  const Dtype dtype = detail::floating_of(a.dtype());
  const double factor = scale ? static_cast<double>(*scale) : 1 / std::sqrt(static_cast<double>(n));
  int64_t m = n;
  while (m % 2 == 0) m /= 2;
  if (m == 3 || m == 5 || m == 7) m *= 4;
  if (n % m != 0 || (m != 1 && m != 12 && m != 20 && m != 28))
    throw_invalid("hadamard_transform", "the last size must be m·2^k with m of 1, 12, 20 or 28, got " + describe(a));
  const array x = astype(a, dtype, s);
  const array scaled = factor == 1 ? x : multiply(x, array(factor, dtype), s);
  return n == 1 ? scaled : reshape(hadamard_rows(reshape(scaled, {-1, n}, s), m, n, s), a.shape(), s);
}

array block_masked_mm(array a, array b, int block_size, std::optional<array> mask_out, std::optional<array> mask_lhs,
                      std::optional<array> mask_rhs, StreamOrDevice s) {
  const detail::OnStream on_stream("block_masked_mm", s);
  if (block_size < 1)
    throw_invalid("block_masked_mm", "the block size must be positive, got " + std::to_string(block_size));
  require_matrix("block_masked_mm", a);
  require_matrix("block_masked_mm", b);
  const array product = matmul(apply_mask(a, mask_lhs, "the first array", block_size, s),
                               apply_mask(b, mask_rhs, "the second array", block_size, s), s);
  return apply_mask(product, mask_out, "the result", block_size, s);
}

array gather_mm(array a, array b, std::optional<array> lhs_indices, std::optional<array> rhs_indices, bool,
                StreamOrDevice s) {
  const detail::OnStream on_stream("gather_mm", s);
  require_matrix("gather_mm", a);
  require_matrix("gather_mm", b);
  if (!lhs_indices && !rhs_indices) return matmul(a, b, s);
  const Matrices left = matrices(a, lhs_indices, s), right = matrices(b, rhs_indices, s);
  const std::vector<array> indices = broadcast_arrays({left.indices, right.indices}, s);
  return matmul(take(left.stacked, indices[0], 0, s), take(right.stacked, indices[1], 0, s), s);
}

// Multiplies with the columns of `a` outside of a segment set to zero.
array segmented_mm(array a, array b, array segments, StreamOrDevice s) {
  const detail::OnStream on_stream("segmented_mm", s);
  if (a.ndim() != 2 || b.ndim() != 2)
    throw_invalid("segmented_mm", "two matrices are needed, got " + describe(a) + " and " + describe(b));
  detail::require_integer("segmented_mm", "segments", segments);
  if (segments.ndim() < 1 || segments.shape(-1) != 2)
    throw_invalid("segmented_mm", "segments are pairs [begin, end) along the last axis, got " + describe(segments));
  Shape lead(segments.shape().begin(), segments.shape().end() - 1);
  const array pairs = reshape(segments, {num_elements(lead), 2}, s);
  const array k(graph::iota({1, 1, a.shape(1)}, 2, int64));
  const auto bound = [&](int which) { return reshape(take(pairs, which, 1, s), {num_elements(lead), 1, 1}, s); };
  const array inside = logical_and(greater_equal(k, bound(0), s), less(k, bound(1), s), s);
  const array products = matmul(where(inside, a, zeros_like(a, s), s), b, s);
  lead.insert(lead.end(), {a.shape(0), b.shape(1)});
  return reshape(products, lead, s);
}

}  // namespace weft
