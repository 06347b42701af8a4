#pragma once
// Fragments of matrices, as in WMMA: tiles of the shapes that a warp multiplies on tensor cores, and `dot` of them.
#include "weft/kernel.h"

namespace weft::k {

/// float32 that is multiplied as TF32: 10 bits of mantissa, half away from zero.
struct tf32 {};
/// What a fragment is: the left or right factor of a product, or a sum of products.
enum class Matrix : uint8_t { a, b, accumulator };

namespace detail {

template <class T>
struct FragmentElement {
  using type = T;
};
template <>
struct FragmentElement<tf32> {
  using type = float;
};

template <class T>
constexpr bool fragment_shape(int m, int n, int k) {
  const bool square = m == 16 && n == 16 && k == 16, wide = k == 16 && ((m == 32 && n == 8) || (m == 8 && n == 32));
  if (std::same_as<T, f64>) return m == 8 && n == 8 && k == 4;
  if (std::same_as<T, tf32>) return m == 16 && n == 16 && k == 8;
  return (std::same_as<T, f16> || std::same_as<T, bf16> || std::same_as<T, i8> || std::same_as<T, u8>)&&(square ||
                                                                                                         wide);
}
template <class T>
constexpr bool fragment_sum(int m, int n, int k) {
  if (std::same_as<T, f64>) return fragment_shape<f64>(m, n, k);
  if (std::same_as<T, f32>) return fragment_shape<f16>(m, n, k) || fragment_shape<tf32>(m, n, k);
  return (std::same_as<T, f16> || std::same_as<T, i32>)&&fragment_shape<f16>(m, n, k);
}
template <class T, class S>
constexpr bool goes_into() {
  if (std::same_as<T, f16>) return std::same_as<S, f16> || std::same_as<S, f32>;
  if (std::same_as<T, f64>) return std::same_as<S, f64>;
  if (std::same_as<T, i8> || std::same_as<T, u8>) return std::same_as<S, i32>;
  return std::same_as<S, f32>;
}

}  // namespace detail

/// A fragment of a product [M, K] · [K, N]: a variable that begins at 0. 16-bit floats and 8-bit integers have the
/// shapes 16×16×16, 32×8×16 and 8×32×16, tf32 16×16×8, double 8×8×4.
template <Matrix U, int M, int N, int K, class T>
class Fragment {
  static_assert(U == Matrix::accumulator ? detail::fragment_sum<T>(M, N, K) : detail::fragment_shape<T>(M, N, K),
                "a fragment has a shape of its type: 16x16x16, 32x8x16, 8x32x16 of f16, bf16, i8, u8 (summed in float, "
                "f16 or i32), 16x16x8 of tf32 (float), 8x8x4 of double");

 public:
  /// The type of the elements in memory.
  using Element = typename detail::FragmentElement<T>::type;
  /// The rows and columns of the fragment.
  static constexpr int rows = U == Matrix::b ? K : M, columns = U == Matrix::a ? K : N;
  Fragment(Line at = Line::here()) : tile_(zeros<Element>({rows, columns}, at)) {}
  /// Returns the elements as a tile.
  Tile<Element, 2> tile(Line at = Line::here()) const { return tile_.get(at); }
  /// Replaces the elements.
  void set(const At<Element, 2>& v) { tile_ = v; }

 private:
  Mut<Element, 2> tile_;
};

/// Fills a fragment with a number.
template <Matrix U, int M, int N, int K, class T>
void fill_fragment(Fragment<U, M, N, K, T>& f, Scalar number, Line at = Line::here()) {
  using F = Fragment<U, M, N, K, T>;
  f.set(At<typename F::Element, 2>(full<typename F::Element>({F::rows, F::columns}, number, at), at));
}
/// Loads a fragment from a slice of its shape; of a matrix that lies by columns, from a permuted view.
template <Matrix U, int M, int N, int K, class T, int R>
void load_matrix_sync(Fragment<U, M, N, K, T>& f, const Part<typename Fragment<U, M, N, K, T>::Element, R>& slice,
                      Line at = Line::here()) {
  static_assert(R == 2, "a fragment is loaded from a slice of two axes");
  f.set(At<typename Fragment<U, M, N, K, T>::Element, 2>(slice.load(at), at));
}
/// Stores a fragment to a slice of its shape.
template <Matrix U, int M, int N, int K, class T, int R>
void store_matrix_sync(const WritablePart<typename Fragment<U, M, N, K, T>::Element, R>& slice,
                       const Fragment<U, M, N, K, T>& f, Line at = Line::here()) {
  static_assert(R == 2, "a fragment is stored to a slice of two axes");
  slice.store(At<typename Fragment<U, M, N, K, T>::Element, 2>(f.tile(at), at));
}
/// Computes d = a · b + c.
template <int M, int N, int K, class T, class S>
void mma_sync(Fragment<Matrix::accumulator, M, N, K, S>& d, const Fragment<Matrix::a, M, N, K, T>& a,
              const Fragment<Matrix::b, M, N, K, T>& b, const Fragment<Matrix::accumulator, M, N, K, S>& c,
              Line at = Line::here()) {
  static_assert(detail::goes_into<T, S>(),
                "bf16, tf32 and f16 add up in float, f16 in f16 too, double in double, i8 and u8 in i32");
  const Precision precision = std::same_as<T, tf32> ? Precision::tf32 : Precision::exact;
  d.set(At<S, 2>(dot(a.tile(at), b.tile(at), c.tile(at), precision, at), at));
}

}  // namespace weft::k
