// Result dtypes of operations, and the texts of what they refuse.
#include <doctest/doctest.h>

#include <functional>

#include "weft/fast.h"
#include "weft/ops.h"
#include "weft/random.h"

using namespace weft;

namespace {

const Dtype dtypes[] = {bool_, uint8, uint16,  uint32,   uint64,  int8,   int16,
                        int32, int64, float16, bfloat16, float32, float64};

array of(Dtype t, const Shape& shape = {2, 3}) { return ones(shape, t); }

void refuses(const std::function<void()>& f, const std::vector<std::string>& parts) {
  try {
    f();
    FAIL("nothing was thrown, expected: " << parts[0]);
  } catch (const std::exception& e) {
    const std::string text = e.what();
    for (const std::string& part : parts) CHECK_MESSAGE(text.find(part) != std::string::npos, text, " lacks ", part);
  }
}

bool integral(Dtype t) { return issubdtype(t, integer) || t == bool_; }

}  // namespace

TEST_CASE("binary operations promote") {
  for (Dtype a : dtypes)
    for (Dtype b : dtypes) {
      const Dtype p = promote_types(a, b);
      CAPTURE(dtype_name(a));
      CAPTURE(dtype_name(b));
      for (auto* op : {&add, &subtract, &multiply, &maximum, &minimum, &floor_divide, &remainder, &power})
        CHECK((*op)(of(a), of(b), {}).dtype() == p);
      CHECK(divide(of(a), of(b)).dtype() == (integral(p) ? Dtype(float32) : p));
      for (auto* op : {&equal, &not_equal, &less, &less_equal, &greater, &greater_equal, &logical_and, &logical_or})
        CHECK((*op)(of(a), of(b), {}).dtype() == bool_);
      CHECK(where(of(bool_), of(a), of(b)).dtype() == p);
      CHECK(concatenate({of(a), of(b)}).dtype() == p);
      if (integral(p)) {
        CHECK(bitwise_and(of(a), of(b)).dtype() == p);
        CHECK_THROWS_AS(matmul(of(a), of(b, {3, 2})), std::invalid_argument);
      } else {
        CHECK_THROWS_AS(bitwise_or(of(a), of(b)), std::runtime_error);
        CHECK(matmul(of(a), of(b, {3, 2})).dtype() == p);
      }
    }
}

TEST_CASE("unary operations and reductions") {
  for (Dtype t : dtypes) {
    CAPTURE(dtype_name(t));
    const Dtype f = integral(t) ? Dtype(float32) : t;
    for (auto* op : {&exp, &log, &sin, &cos, &tanh, &erf, &erfinv, &sigmoid, &sqrt, &rsqrt, &reciprocal})
      CHECK((*op)(of(t), {}).dtype() == f);
    for (auto* op : {&floor, &ceil, &round, &sign, &square}) CHECK((*op)(of(t), {}).dtype() == t);
    CHECK(abs(of(t)).dtype() == t);
    if (t == bool_) CHECK_THROWS_AS(negative(of(t)), std::invalid_argument);
    else CHECK(negative(of(t)).dtype() == t);
    CHECK(mean(of(t)).dtype() == f);
    CHECK(var(of(t), {0}).dtype() == f);
    CHECK(softmax(of(t), -1).dtype() == f);
    CHECK(logsumexp(of(t), 1).dtype() == f);
    const Dtype s = !integral(t)                     ? t
                    : t == uint64 || t == int64      ? t
                    : issubdtype(t, unsignedinteger) ? Dtype(uint32)
                                                     : Dtype(int32);
    CHECK(sum(of(t)).dtype() == s);
    CHECK(prod(of(t), {0}).dtype() == s);
    CHECK(max(of(t), 0).dtype() == t);
    CHECK(min(of(t), 0).dtype() == t);
    CHECK(argmax(of(t), 0).dtype() == uint32);
    CHECK(argmin(of(t), 0).dtype() == uint32);
    CHECK(all(of(t)).dtype() == bool_);
    CHECK(isnan(of(t)).dtype() == bool_);
    CHECK(zeros_like(of(t)).dtype() == t);
    CHECK(fast::gelu(of(t)).dtype() == f);
  }
}

TEST_CASE("numbers keep their own dtype next to arrays, as in MLX's C++") {
  CHECK((of(float16) * array(2.0f)).dtype() == float32);
  CHECK((of(int8) + array(1)).dtype() == int32);
  CHECK((of(float16) * array(2)).dtype() == float16);
}

TEST_CASE("shapes that do not fit are named") {
  const array a = of(float32, {2, 3}), b = of(float32, {4}), i = of(int32, {2});
  refuses([&] { add(a, b); }, {"[add]", "(2,3)", "(4)"});
  refuses([&] { matmul(a, a); }, {"[matmul]", "float32 (2,3)"});
  refuses([&] { matmul(a, array(1.0f)); }, {"[matmul]", "scalar"});
  refuses([&] { matmul(of(float32, {2, 4, 3}), of(float32, {3, 3, 4})); }, {"[matmul]", "leading"});
  refuses([&] { matmul(of(int32), of(int32, {3, 2})); }, {"[matmul]", "int32", "astype"});
  refuses([&] { reshape(a, {4}); }, {"[reshape]", "(2,3)", "(4)"});
  refuses([&] { reshape(a, {-1, -1}); }, {"[reshape]", "-1"});
  refuses([&] { reshape(a, {-1, 4}); }, {"[reshape]", "-1"});
  refuses([&] { squeeze(a, 0); }, {"[squeeze]", "(2,3)"});
  refuses([&] { split(a, 2, 1); }, {"[split]", "(2,3)"});
  refuses([&] { stack({}); }, {"[stack]"});
  refuses([&] { stack({a, b}); }, {"[stack]", "(4)"});
  refuses([&] { concatenate({a, b}); }, {"[concatenate]", "(2,3)", "(4)"});
  refuses([&] { broadcast_to(a, {3, 3}); }, {"[broadcast_to]", "(2,3)", "(3,3)"});
  refuses([&] { transpose(a, {0, 0}); }, {"[transpose]"});
  refuses([&] { transpose(a, {0}); }, {"[transpose]"});
  refuses([&] { zeros({-1}); }, {"[zeros]", "negative"});
  refuses([&] { full({-2}, array(1)); }, {"[full]", "negative"});
  refuses([&] { eye(-1); }, {"[eye]", "negative"});
  refuses([&] { arange(0, 4, 0); }, {"[arange]", "step"});
  refuses([&] { arange(NAN, 4, 1, float32); }, {"[arange]"});
  refuses([&] { tril(b); }, {"[tril]", "two dimensions"});
  refuses([&] { slice(a, {0}, {1}); }, {"[slice]", "(2,3)"});
  refuses([&] { slice(a, {0, 0}, {1, 1}, {1, 0}); }, {"[slice]", "stride"});
  refuses([&] { pad(a, {{1, 1}}); }, {"[pad]", "(2,3)"});
  refuses([&] { pad(a, {{1, 1}, {0, -1}}); }, {"[pad]", "negative"});
  refuses([&] { take(a, b, 0); }, {"[take]", "integers", "float32 (4)"});
  refuses([&] { take_along_axis(a, i, 0); }, {"[take_along_axis]", "(2,3)", "(2)"});
  refuses([&] { gather(a, {i}, {0}, {1}); }, {"[gather]", "(2,3)"});
  refuses([&] { scatter(a, {i}, a, {0}); }, {"[scatter]", "updates"});
  refuses([&] { scatter_add(a, {i, i}, a, {0}); }, {"[scatter_add]", "index arrays"});
  refuses([&] { slice_update(a, b, Shape{0, 0}, Shape{2, 2}); }, {"[broadcast_to]", "(4)"});
  refuses([&] { clip(a, std::nullopt, std::nullopt); }, {"[clip]"});
  refuses([&] { view(of(int16, {3}), float32); }, {"[view]", "int16 (3)", "float32"});
  refuses([&] { max(of(float32, {0, 3}), 0); }, {"[max]", "empty axis"});
  refuses([&] { argmin(of(float32, {0, 3}), 0); }, {"[argmin]", "empty axis"});
  refuses([&] { sum(a, {0, 0}); }, {"[sum]", "twice"});
  refuses([&] { bitwise_and(a, a); }, {"[bitwise_and]", "float32"});
  refuses([&] { unflatten(a, 1, {2, -1}); }, {"[unflatten]"});
  refuses([&] { repeat(a, -1, 0); }, {"[repeat]"});
  refuses([&] { arctan2(astype(a, complex64), a); }, {"[arctan2]", "complex64"});
  refuses([&] { fast::layer_norm(a, b, std::nullopt, 1e-5f); }, {"[layer_norm]", "(4)", "(2,3)"});
  refuses([&] { fast::layer_norm(of(int32), std::nullopt, std::nullopt, 1e-5f); }, {"[layer_norm]", "int32"});
  refuses([&] { fast::cross_entropy(a, of(int32, {3})); }, {"[cross_entropy]", "(2,3)", "(3)"});
  refuses([&] { fast::cross_entropy(a, b); }, {"[cross_entropy]", "integers"});
  refuses([&] { fast::scaled_dot_product_attention(a, a, a, 1); },
          {"[scaled_dot_product_attention]", "four dimensions"});
  const array q = of(float32, {1, 3, 4, 2}), k = of(float32, {1, 2, 4, 2});
  refuses([&] { fast::scaled_dot_product_attention(q, k, k, 1); }, {"3 query heads", "2 key heads"});
  refuses([&] { fast::scaled_dot_product_attention(q, q, q, 1, "diagonal"); }, {"mask_mode", "diagonal"});
  refuses([&] { random::uniform({2}, int32); }, {"[uniform]", "int32"});
  refuses([&] { random::bits({2}, 3); }, {"[bits]", "3"});
  refuses([&] { random::bits({2}, 4, i); }, {"[bits]", "key"});
  refuses([&] { random::split(i); }, {"[split]", "key"});
  refuses([&] { random::uniform(a, a, {4}); }, {"[uniform]", "(2,3)", "(4)"});
  refuses([&] { random::bernoulli(i, {2}); }, {"[bernoulli]", "int32"});
  refuses([&] { random::randint(array(0), array(4), {2}, float32); }, {"[randint]", "float32"});
}
