// Every function that takes an axis, given one that does not exist: std::out_of_range, as MLX. What is wrong with axes
// that do exist is std::invalid_argument.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "weft/weft.h"

using namespace weft;

namespace {

using Axes = std::vector<int>;

struct Case {
  const char* name;
  std::function<void(const array& x, int axis)> call;  // x float32 (2,3,4)
};

const array& index() {
  static const array zeros_of_x = zeros({2, 3, 4}, int32);
  return zeros_of_x;
}

const std::vector<Case>& one_axis() {
  static const std::vector<Case> cases{
      {"shape", [](const array& x, int a) { x.shape(a); }},
      {"strides", [](const array& x, int a) { x.strides(a); }},
      {"normalize_axis_index", [](const array& x, int a) { normalize_axis_index(a, static_cast<int>(x.ndim())); }},
      {"number_of_elements", [](const array& x, int a) { number_of_elements(x, {a}, false); }},
      {"unflatten",
       [](const array& x, int a) {
         unflatten(x, a, {1, -1});
       }},
      {"squeeze", [](const array& x, int a) { squeeze(x, a); }},
      {"squeeze, several", [](const array& x, int a) { squeeze(x, Axes{a}); }},
      {"expand_dims", [](const array& x, int a) { expand_dims(x, a); }},
      {"expand_dims, several",
       [](const array& x, int a) {
         expand_dims(x, Axes{0, a});
       }},
      {"transpose",
       [](const array& x, int a) {
         transpose(x, Axes{0, 1, a});
       }},
      {"swapaxes, first", [](const array& x, int a) { swapaxes(x, a, 0); }},
      {"swapaxes, second", [](const array& x, int a) { swapaxes(x, 0, a); }},
      {"moveaxis, from", [](const array& x, int a) { moveaxis(x, a, 0); }},
      {"moveaxis, to", [](const array& x, int a) { moveaxis(x, 0, a); }},
      {"flip", [](const array& x, int a) { flip(x, a); }},
      {"flip, several",
       [](const array& x, int a) {
         flip(x, Axes{0, a});
       }},
      {"roll", [](const array& x, int a) { roll(x, 1, a); }},
      {"roll, several",
       [](const array& x, int a) {
         roll(x, Shape{1, 2}, Axes{0, a});
       }},
      {"diagonal, first", [](const array& x, int a) { diagonal(x, 0, a, 0); }},
      {"diagonal, second", [](const array& x, int a) { diagonal(x, 0, 0, a); }},
      {"trace, first", [](const array& x, int a) { trace(x, 0, a, 0); }},
      {"trace, second", [](const array& x, int a) { trace(x, 0, 0, a); }},
      {"concatenate",
       [](const array& x, int a) {
         concatenate({x, x}, a);
       }},
      {"stack",
       [](const array& x, int a) {
         stack({x, x}, a);
       }},
      {"stack of one", [](const array& x, int a) { stack({x}, a); }},
      {"split, equal", [](const array& x, int a) { split(x, 1, a); }},
      {"split, at", [](const array& x, int a) { split(x, Shape{1}, a); }},
      {"unstack", [](const array& x, int a) { unstack(x, a); }},
      {"repeat", [](const array& x, int a) { repeat(x, 2, a); }},
      {"pad", [](const array& x, int a) { pad(x, Axes{a}, Shape{1}, Shape{1}); }},
      {"slice, computed place",
       [](const array& x, int a) {
         slice(x, array({0}), Axes{a}, Shape{1, 1, 1});
       }},
      {"slice_update, computed place",
       [](const array& x, int a) {
         slice_update(x, ones({1, 1, 1}), array({0}), Axes{a});
       }},
      {"take", [](const array& x, int a) { take(x, array({0}), a); }},
      {"take, one", [](const array& x, int a) { take(x, 0, a); }},
      {"take_along_axis", [](const array& x, int a) { take_along_axis(x, index(), a); }},
      {"put_along_axis", [](const array& x, int a) { put_along_axis(x, index(), x, a); }},
      {"scatter_add_axis", [](const array& x, int a) { scatter_add_axis(x, index(), x, a); }},
      {"all", [](const array& x, int a) { all(x, a); }},
      {"any", [](const array& x, int a) { any(x, a); }},
      {"count_nonzero", [](const array& x, int a) { count_nonzero(x, a); }},
      {"sum", [](const array& x, int a) { sum(x, a); }},
      {"prod", [](const array& x, int a) { prod(x, a); }},
      {"mean", [](const array& x, int a) { mean(x, a); }},
      {"var", [](const array& x, int a) { var(x, a); }},
      {"std", [](const array& x, int a) { weft::std(x, a); }},
      {"max", [](const array& x, int a) { max(x, a); }},
      {"min", [](const array& x, int a) { min(x, a); }},
      {"argmax", [](const array& x, int a) { argmax(x, a); }},
      {"argmin", [](const array& x, int a) { argmin(x, a); }},
      {"logsumexp", [](const array& x, int a) { logsumexp(x, a); }},
      {"softmax", [](const array& x, int a) { softmax(x, a); }},
      {"softmax, precise", [](const array& x, int a) { softmax(x, a, true); }},
      {"sort", [](const array& x, int a) { sort(x, a); }},
      {"argsort", [](const array& x, int a) { argsort(x, a); }},
      {"partition", [](const array& x, int a) { partition(x, 1, a); }},
      {"argpartition", [](const array& x, int a) { argpartition(x, 1, a); }},
      {"topk", [](const array& x, int a) { topk(x, 1, a); }},
      {"median", [](const array& x, int a) { median(x, a); }},
      {"cumsum", [](const array& x, int a) { cumsum(x, a); }},
      {"cumprod", [](const array& x, int a) { cumprod(x, a); }},
      {"cummax", [](const array& x, int a) { cummax(x, a); }},
      {"cummin", [](const array& x, int a) { cummin(x, a); }},
      {"logcumsumexp", [](const array& x, int a) { logcumsumexp(x, a); }},
      {"diff", [](const array& x, int a) { diff(x, 1, a); }},
      {"vecdot", [](const array& x, int a) { vecdot(x, x, a); }},
      {"tensordot, first", [](const array& x, int a) { tensordot(x, x, Axes{a}, Axes{0}); }},
      {"tensordot, second", [](const array& x, int a) { tensordot(x, x, Axes{0}, Axes{a}); }},
      {"categorical", [](const array& x, int a) { random::categorical(x, a); }},
      {"categorical, several", [](const array& x, int a) { random::categorical(x, a, 2); }},
      {"categorical, shape", [](const array& x, int a) { random::categorical(x, a, Shape{2}); }},
      {"permutation", [](const array& x, int a) { random::permutation(x, a); }},
      {"fft", [](const array& x, int a) { fft::fft(x, a); }},
      {"ifft", [](const array& x, int a) { fft::ifft(x, a); }},
      {"rfft", [](const array& x, int a) { fft::rfft(x, a); }},
      {"irfft", [](const array& x, int a) { fft::irfft(x, a); }},
      {"fft of n", [](const array& x, int a) { fft::fft(x, 2, a); }},
      {"fft2",
       [](const array& x, int a) {
         fft::fft2(x, Axes{0, a});
       }},
      {"fftshift", [](const array& x, int a) { fft::fftshift(x, Axes{a}); }},
      {"ifftshift", [](const array& x, int a) { fft::ifftshift(x, Axes{a}); }},
      {"norm", [](const array& x, int a) { linalg::norm(x, a); }},
      {"norm of order 1", [](const array& x, int a) { linalg::norm(x, 1.0, a); }},
      {"norm of matrices",
       [](const array& x, int a) {
         linalg::norm(x, 2.0, Axes{0, a});
       }},
      {"nuclear norm",
       [](const array& x, int a) {
         linalg::norm(x, "nuc", Axes{0, a});
       }},
      {"cross",
       [](const array& x, int a) {
         linalg::cross(slice(x, {0, 0, 0}, {2, 3, 3}), slice(x, {0, 0, 0}, {2, 3, 3}), a);
       }},
  };
  return cases;
}

/// With one axis that exists and one that does not; and with the same axis twice.
const std::vector<std::pair<const char*, std::function<void(const array&, const Axes&)>>>& several_axes() {
  static const std::vector<std::pair<const char*, std::function<void(const array&, const Axes&)>>> cases{
      {"squeeze",
       [](const array& x, const Axes& a) {
         squeeze(slice(x, {0, 0, 0}, {1, 1, 1}), a);
       }},
      {"expand_dims", [](const array& x, const Axes& a) { expand_dims(x, a); }},
      {"flip", [](const array& x, const Axes& a) { flip(x, a); }},
      {"all", [](const array& x, const Axes& a) { all(x, a); }},
      {"any", [](const array& x, const Axes& a) { any(x, a); }},
      {"count_nonzero", [](const array& x, const Axes& a) { count_nonzero(x, a); }},
      {"sum", [](const array& x, const Axes& a) { sum(x, a); }},
      {"prod", [](const array& x, const Axes& a) { prod(x, a); }},
      {"mean", [](const array& x, const Axes& a) { mean(x, a); }},
      {"var", [](const array& x, const Axes& a) { var(x, a); }},
      {"std", [](const array& x, const Axes& a) { weft::std(x, a); }},
      {"max", [](const array& x, const Axes& a) { max(x, a); }},
      {"min", [](const array& x, const Axes& a) { min(x, a); }},
      {"logsumexp", [](const array& x, const Axes& a) { logsumexp(x, a); }},
      {"softmax", [](const array& x, const Axes& a) { softmax(x, a); }},
      {"median", [](const array& x, const Axes& a) { median(x, a); }},
      {"fftn", [](const array& x, const Axes& a) { fft::fftn(x, a); }},
      {"ifftn", [](const array& x, const Axes& a) { fft::ifftn(x, a); }},
      {"rfftn", [](const array& x, const Axes& a) { fft::rfftn(x, a); }},
      {"irfftn", [](const array& x, const Axes& a) { fft::irfftn(x, a); }},
      {"norm", [](const array& x, const Axes& a) { linalg::norm(x, a); }},
      {"Frobenius norm", [](const array& x, const Axes& a) { linalg::norm(x, "fro", a); }},
  };
  return cases;
}

}  // namespace

TEST_CASE("an axis that does not exist is out of range, in every function") {
  const array x = reshape(arange(24, float32), {2, 3, 4});
  for (const Case& c : one_axis())
    for (const int axis : {7, -7, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
      CAPTURE(std::string(c.name));
      CAPTURE(axis);
      CHECK_THROWS_AS(c.call(x, axis), std::out_of_range);
    }
  for (const auto& [name, call] : several_axes()) {
    CAPTURE(std::string(name));
    const auto& of = call;  // clang 14 takes no binding of a structure into a lambda
    CHECK_THROWS_AS(of(x, {0, 7}), std::out_of_range);
    CHECK_THROWS_AS(of(x, {-7, 0}), std::out_of_range);
    CHECK_THROWS_AS(of(x, {0, 0}), std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(sum(x, 3), "[sum] axis 3 is out of range for an array with 3 dimensions", std::out_of_range);
  // One after the last is an axis of the result of these two, two after it is none.
  CHECK(expand_dims(x, 3).shape() == Shape{2, 3, 4, 1});
  CHECK(stack({x, x}, -4).shape() == Shape{2, 2, 3, 4});
  for (const int axis : {4, -5}) {
    CHECK_THROWS_AS(expand_dims(x, axis), std::out_of_range);
    CHECK_THROWS_AS(stack({x, x}, axis), std::out_of_range);
  }
}

TEST_CASE("a scalar has no axes") {
  const array x(1.0f);
  for (const int axis : {0, -1}) {
    CHECK_THROWS_AS(sum(x, axis), std::out_of_range);
    CHECK_THROWS_AS(sort(x, axis), std::out_of_range);
    CHECK_THROWS_AS(cumsum(x, axis), std::out_of_range);
    CHECK_THROWS_AS(argmax(x, axis), std::out_of_range);
    CHECK_THROWS_AS(take(x, array({0}), axis), std::out_of_range);
    CHECK_THROWS_AS(diff(x, 1, axis), std::out_of_range);
    CHECK_THROWS_AS(fft::fft(x, axis), std::out_of_range);
    CHECK_THROWS_AS(softmax(x, axis), std::invalid_argument);  // MLX's exception to its rule
  }
  CHECK_THROWS_AS(fft::fftn(x), std::invalid_argument);
}

TEST_CASE("axes that exist and do not fit are invalid arguments") {
  const array x = reshape(arange(24, float32), {2, 3, 4});
  CHECK_THROWS_AS(squeeze(x, 0), std::invalid_argument);
  CHECK_THROWS_AS(transpose(x, Axes{0, 1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(transpose(x, Axes{0, 1}), std::invalid_argument);
  CHECK_THROWS_AS(diagonal(x, 0, 1, 1), std::invalid_argument);
  CHECK_THROWS_AS(flatten(x, 2, 0), std::invalid_argument);
  CHECK(flatten(x, -7, 7).shape() == Shape{24});  // ends are moved in, as by MLX
  CHECK_THROWS_AS(linalg::norm(x, Axes{0, 1, 2}), std::invalid_argument);
  CHECK_THROWS_AS(partition(x, 50, 0), std::invalid_argument);
  CHECK_THROWS_AS(topk(x, 50, 0), std::invalid_argument);
  CHECK_THROWS_AS(tensordot(x, x, 7), std::invalid_argument);
}

TEST_CASE("gather and scatter count axes from the front, and refuse others like other shapes that do not fit") {
  const array x = reshape(arange(24, float32), {2, 3, 4}), i = zeros({1}, int32), updates = zeros({1, 2, 3, 1});
  for (const int axis : {-1, 3, 7}) {
    CAPTURE(axis);
    CHECK_THROWS_AS(gather(x, i, axis, {2, 3, 1}), std::invalid_argument);
    CHECK_THROWS_AS(gather(x, std::vector<array>{i}, {axis}, {2, 3, 1}), std::invalid_argument);
    CHECK_THROWS_AS(scatter(x, i, updates, axis), std::invalid_argument);
    CHECK_THROWS_AS(scatter_add(x, i, updates, axis), std::invalid_argument);
    CHECK_THROWS_AS(scatter_max(x, i, updates, axis), std::invalid_argument);
    CHECK_THROWS_AS(scatter_min(x, i, updates, axis), std::invalid_argument);
    CHECK_THROWS_AS(scatter_prod(x, i, updates, axis), std::invalid_argument);
  }
  CHECK_THROWS_AS(gather(x, std::vector<array>{i, i}, {0, 0}, {1, 1, 1}), std::invalid_argument);
  CHECK(gather(x, i, 2, {2, 3, 1}).shape() == Shape{1, 2, 3, 1});
  // What is made of them counts from the end as well.
  CHECK(slice(x, array({1}), Axes{-1}, {1, 1, 2}).to_vector<float>() == std::vector<float>{1, 2});
  CHECK(slice_update(x, full({1, 1, 1}, 9.0f), array({3}), Axes{-1}).to_vector<float>()[3] == 9);
}
