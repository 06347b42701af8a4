// einsum's axes that are sums of indices, against convolutions, against loops in float64, and against finite
// differences.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>

#include "weft/compile.h"
#include "weft/einsum.h"
#include "weft/ops.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

std::mt19937_64 engine(5);

array draw(const Shape& shape) {
  std::vector<float> v(static_cast<size_t>(num_elements(shape)));
  for (float& x : v) x = static_cast<float>(std::uniform_int_distribution<int>(-16, 16)(engine)) / 8;
  return array(v.begin(), shape);
}

void same(const array& got, const array& expected) {
  REQUIRE(got.shape() == expected.shape());
  const std::vector<double> a = got.to_vector<double>(), b = expected.to_vector<double>();
  for (size_t k = 0; k < a.size(); ++k) CHECK(a[k] == doctest::Approx(b[k]).epsilon(1e-5).scale(1));
}

std::string message(const std::string& text, const std::vector<array>& operands) {
  try {
    einsum(text, operands);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void refuses(const std::string& text, const std::vector<array>& operands, const std::string& why) {
  CAPTURE(text);
  const std::string said = message(text, operands);
  CAPTURE(said);
  CHECK(said.find("[einsum] ") == 0);
  CHECK(said.find(why) != std::string::npos);
}

}  // namespace

TEST_CASE("einsum of windows is a convolution, with any stride and dilation") {
  const array x = draw({2, 13, 12, 3}), w = draw({4, 3, 2, 3}), by_tap = transpose(w, {1, 2, 3, 0});
  for (const int s : {1, 2, 3})
    for (const int d : {1, 2}) {
      const auto times = [](int n, const char* name) { return n == 1 ? name : std::to_string(n) + "*" + name; };
      const std::string rows = "(" + times(s, "oh") + " + " + times(d, "kh") + ")",
                        columns = "(" + times(s, "ow") + "+" + times(d, "kw") + ")";
      CAPTURE(rows);
      same(einsum("b " + rows + " " + columns + " c, kh kw c o -> b oh ow o", {x, by_tap}),
           conv2d(x, w, {s, s}, {0, 0}, {d, d}));
    }
  const array line = draw({3, 20, 2}), filter = draw({5, 3, 2});
  for (const int s : {1, 4})
    same(einsum("n(" + std::to_string(s) + "*o+3*k)c,fkc->nof", {line, filter}), conv1d(line, filter, s, 0, 3));
  // Padding is said with pad, and groups with a further index.
  const array grouped = draw({4, 3, 1}),
              padded = reshape(pad(line, std::vector<std::pair<int, int>>{{0, 0}, {2, 2}, {0, 0}}), {3, 24, 2, 1});
  same(reshape(einsum("n(2*o+k)gc,gfkc->nogf", {padded, reshape(grouped, {2, 2, 3, 1})}), {3, 11, 4}),
       conv1d(line, grouped, 2, 2, 1, 2));
}

TEST_CASE("sums of one, two and three indices with offsets read the elements they name") {
  const array x = draw({30}), a = draw({3}), b = draw({2}), c = draw({4});
  const std::vector<double> v = x.to_vector<double>(), va = a.to_vector<double>(), vb = b.to_vector<double>(),
                            vc = c.to_vector<double>();
  // o + 2·i + 5·j + 3·k + 4 with i < 3, j < 2, k < 4: o as long as fits, 30 - 4 - 4 - 5 - 9.
  const array got = einsum("(o + 2*i + j*5 + 3*k + 4), i, j, k -> o", {x, a, b, c});
  REQUIRE(got.shape() == Shape{8});
  for (size_t o = 0; o < 8; ++o) {
    double total = 0;
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 2; ++j)
        for (size_t k = 0; k < 4; ++k) total += v[o + 2 * i + 5 * j + 3 * k + 4] * va[i] * vb[j] * vc[k];
    CHECK(got.to_vector<double>()[o] == doctest::Approx(total).epsilon(1e-5));
  }
  CHECK(einsum("(2*o)->o", {arange(5)}).to_vector<int>() == std::vector<int>{0, 2, 4});
  CHECK(einsum("(3*o+1)->o", {arange(8)}).to_vector<int>() == std::vector<int>{1, 4, 7});
  CHECK(einsum("(1+o*3+1)->o", {arange(8)}).to_vector<int>() == std::vector<int>{2, 5});
  CHECK(einsum("(o+3)", {arange(5)}).to_vector<int>() == std::vector<int>{3, 4});
  CHECK(einsum("(o)->o", {arange(3)}).to_vector<int>() == std::vector<int>{0, 1, 2});
  CHECK(einsum("(2*o),o->o", {arange(9), arange(3)}).to_vector<int>() == std::vector<int>{0, 2, 8});
  CHECK(einsum("(2*o)->o", {zeros({0}, int32)}).shape() == Shape{0});
  CHECK(einsum("(o+7)->o", {arange(5)}).shape() == Shape{0});
  // A length that several sums limit is the smallest of them; one sum may tell an index of the next.
  CHECK(einsum("(o+k),(2*o),k->o", {arange(10), arange(11), ones({3}, int32)}).shape() == Shape{6});
  CHECK(einsum("(o+k),(o+j),k->oj", {arange(10), arange(12), ones({3}, int32)}).shape() == Shape{8, 5});
  // A diagonal through windows: x[2·k].
  CHECK(einsum("(k+o)o->o",
               {
                   reshape(arange(20), {5, 4}),
               })
            .shape() == Shape{4});
}

TEST_CASE("einsum of windows: strided operands, NaN and infinity, dtypes") {
  const array x = draw({12, 2, 9}), w = draw({3, 2});
  const array turned = transpose(x, {2, 0, 1});  // [9, 12, 2]
  same(einsum("n (2*o+k) c, k c -> n o", {turned, w}), einsum("n (2*o+k) c, k c -> n o", {contiguous(turned), w}));
  const array backward = slice(x, {11, 0, 8}, {-13, 2, -10}, {-1, 1, -1});
  same(einsum("(o+k) c n, k c -> o n", {backward, w}), einsum("(o+k) c n, k c -> o n", {contiguous(backward), w}));
  const float nan = std::nanf(""), inf = INFINITY;
  const std::vector<float> got =
      einsum("(2*o+k),k->o", {array({1.0f, 2.0f, nan, 1.0f, inf, 0.0f, 3.0f, 3.0f}), ones({2})}).to_vector<float>();
  CHECK((got[0] == 3 && std::isnan(got[1]) && got[2] == inf && got[3] == 6));
  CHECK(einsum("(o+k),k->o", {arange(4), ones({2}, int32)}).to_vector<int>() == std::vector<int>{1, 3, 5});
  CHECK(einsum("(o+k),k->o", {ones({4}, float16), ones({2}, float16)}).dtype() == float16);
}

TEST_CASE("einsum of windows has derivatives of both operands, to the second order, and is batched") {
  const array x = draw({2, 9, 2}), w = draw({3, 2, 3}), g = draw({2, 4, 3});
  const auto by_einsum = [&](const std::vector<array>& in) {
    return std::vector<array>{einsum("b (2*o+k) c, k c f -> b o f", in)};
  };
  const auto by_convolution = [&](const std::vector<array>& in) {
    return std::vector<array>{conv1d(in[0], transpose(in[1], {2, 0, 1}), 2)};
  };
  const auto [a, da] = vjp(by_einsum, {x, w}, {g});
  const auto [b, db] = vjp(by_convolution, {x, w}, {g});
  same(a[0], b[0]);
  same(da[0], db[0]);
  same(da[1], db[1]);
  const auto [values, tangents] = jvp(by_einsum, {x, w}, {x * x, w});
  same(tangents[0], einsum("b (2*o+k) c, k c f -> b o f", {x * x, w}) + values[0]);
  // A finite difference of the loss along a direction.
  const auto loss = [&](const array& v) {
    return sum(einsum("(2*o+k),k,o->", {v, array({1.0f, -2.0f, 0.5f}), arange(4.0)}) *
               einsum("(2*o+k),k->", {v, array({0.5f, 1.0f, 2.0f})}));
  };
  const array at = draw({10}), along = draw({10});
  const double step = 1.0 / 64, slope = sum(grad(loss)(at) * along).item<float>(),
               difference =
                   (loss(at + array(step) * along).item<float>() - loss(at - array(step) * along).item<float>()) /
                   (2 * step);
  CHECK(slope == doctest::Approx(difference).epsilon(1e-3));
  const auto second = grad([&](const array& v) { return sum(grad(loss)(v) * along); })(at);
  same(second, (grad(loss)(at + along) - grad(loss)(at - along)) / 2);  // the gradient is linear

  const array many = draw({5, 10}), filters = draw({3, 5});
  const auto each = [](const std::vector<array>& in) {
    return std::vector<array>{einsum("(3*o+k),k->o", {in[0], in[1]})};
  };
  same(vmap(ArrayFunction(each), {0, 1}, {1})({many, filters})[0], einsum("b(3*o+k),kb->ob", {many, filters}));
  same(compile(each)({take(many, 0, 0), take(filters, 0, 1)})[0], each({take(many, 0, 0), take(filters, 0, 1)})[0]);
}

TEST_CASE("einsum refuses what is no sum of indices, with the place") {
  const array x = ones({2, 9}), w = ones({3});
  refuses("b(o-k),k->bo", {x, w}, "reverse or pad");
  refuses("b(o*k),k->bo", {x, w}, "positive integers times index names");
  refuses("b(2*(o+k)),k->bo", {x, w}, "positive integers times index names");
  refuses("b(2o+k),k->bo", {x, w}, "a factor is followed by '*'");
  refuses("b(0*o+k),k->bo", {x, w}, "a factor must not be 0");
  refuses("b(99999999999*o+k),k->bo", {x, w}, "too large");
  refuses("b(o+o),k->bo", {x, w}, "index o twice");
  refuses("b(3),k->bk", {x, w}, "without an index");
  refuses("b(o+k,k->bo", {x, w}, "in \"b(o+k,k->bo\"");
  refuses("b (oh kh), kh -> b oh", {x, w}, "'+' is missing");
  refuses("b(o+k),k->b(o+k)", {x, w}, "a sum in the result");
  refuses("b(o+k)->bo", {x}, "all but one index");
  refuses("b(o+k),k->bo", {x, ones({10})}, "too short for o+k with k=10");
  refuses("b(2*o+k),k,o->b", {x, w, ones({5})}, "too short for 2*o+k with");
  refuses("b (oh+kh) c, kh c -> b oh", {x, w}, "3 axes are named for operand 0, float32 (2,9)");
}
