#pragma once
#include <map>

#include "convert.h"
#include "weft/einsum.h"
#include "weft/fast.h"
#include "weft/fft.h"
#include "weft/linalg.h"
#include "weft/ops.h"
#include "weft/random.h"

/// Parts of MLX's Python functions that no C++ function has: what generated bindings call.
namespace weft::python::helpers {

/// Returns the arrays of several operands.
std::vector<array> arrays(const std::vector<Operand>& operands);
/// Returns the array of an operand that may be missing.
inline std::optional<array> optional_array(const std::optional<Operand>& x) {
  return x ? std::optional(x->get()) : std::nullopt;
}
/// Returns an operand that may be missing, a number in the weak dtype beside another operand.
inline std::optional<array> beside(const Operand& a, const std::optional<Operand>& x) {
  if (!x) return std::nullopt;
  return a.is_scalar() ? x->get() : x->beside(a.dtype());
}
/// Returns one int for each of two or three axes.
std::pair<int, int> two(const Axes& axes);
std::tuple<int, int, int> three(const Axes& axes);

/// Returns arrays as a Python tuple or list, or the only one by itself.
nb::object tuple(const std::vector<array>& arrays);
template <class... A>
nb::object tuple(const std::tuple<A...>& t) {
  return std::apply([](const auto&... a) { return nb::make_tuple(a...); }, t);
}
template <class A, class B>
nb::object tuple(const std::pair<A, B>& p) {
  return nb::make_tuple(p.first, p.second);
}
nb::object list(const std::vector<array>& arrays);
nb::object one_or_tuple(const std::vector<array>& arrays);

/// Joins arrays along an axis; without one, their elements.
array concatenate(std::vector<array> arrays, std::optional<int> axis, const StreamOrDevice& s);
/// Returns an array of one value, a number rounded once to the dtype.
array full(const Shape& shape, const Operand& value, std::optional<Dtype> dtype, const StreamOrDevice& s);
array roll(const array& a, const Shape& shift, const Axes& axis, const StreamOrDevice& s);
array pad(const array& a, nb::handle width, const Operand& constant, const std::string& mode, const StreamOrDevice& s);
array as_strided(const array& a, const std::optional<Shape>& shape, const std::optional<Strides>& strides,
                 int64_t offset, const StreamOrDevice& s);
array take_along_axis(const array& a, const array& indices, std::optional<int> axis, const StreamOrDevice& s);
array put_along_axis(const array& a, const array& indices, const array& values, std::optional<int> axis,
                     const StreamOrDevice& s);
/// Returns the convolution of two vectors: "full", "valid" or "same".
array convolve(const array& a, const array& v, const std::string& mode, const StreamOrDevice& s);
/// Returns a pair of lists as the padding at both ends.
std::pair<Axes, Axes> low_and_high(const std::vector<std::vector<int>>& padding);
array conv_general(const array& input, const array& weight, const Axes& stride, const std::pair<Axes, Axes>& padding,
                   const Axes& kernel_dilation, const Axes& input_dilation, int groups, bool flip,
                   const StreamOrDevice& s);
array norm(const array& a, const std::optional<std::variant<double, std::string>>& ord, const Axes& axis, bool keepdims,
           const StreamOrDevice& s);
array categorical(const array& logits, int axis, const std::optional<Lengths>& shape, std::optional<int> num_samples,
                  const std::optional<array>& key, const StreamOrDevice& s);
array attention(const array& q, const array& k, const array& v, double scale,
                const std::optional<std::variant<std::string, Operand>>& mask, const std::optional<array>& sinks,
                bool force_fused, const StreamOrDevice& s);

/// Returns fftn and its like, of MLX's arguments: sizes alone are those of the last axes.
template <class F>
array transform_all(const F& fun, const array& a, const std::optional<Shape>& sizes, const Axes& axes,
                    fft::FFTNorm norm, const StreamOrDevice& s) {
  if (!sizes && !axes) return fun(a, norm, s);
  if (!sizes) return fun(a, axes.axes, norm, s);
  std::vector<int> last;
  for (auto k = -static_cast<int>(sizes->size()); k < 0; ++k) last.push_back(k);
  return fun(a, *sizes, axes ? axes.axes : last, norm, s);
}

}  // namespace weft::python::helpers
