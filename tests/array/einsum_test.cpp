// einsum against a naive sum over all labels, on random subscripts and on the forms that people write.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "weft/einsum.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

std::mt19937_64 rng(77);
int64_t uniform(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); }

// Σ over everything that is not in `out`, one assignment of all labels at a time.
std::vector<double> naive(const std::vector<std::string>& in, const std::string& out,
                          const std::vector<array>& operands, std::map<char, int64_t> sizes) {
  std::vector<std::vector<double>> data;
  for (const array& a : operands) data.push_back(a.to_vector<double>());
  std::string labels;
  for (const auto& [label, n] : sizes) labels += label;
  std::vector<int64_t> value(labels.size(), 0);
  int64_t total = 1, cells = 1;
  for (char c : labels) total *= sizes[c];
  for (char c : out) cells *= sizes[c];
  const auto offset = [&](const std::string& text, const std::vector<int64_t>& extents) {
    int64_t at = 0;
    for (size_t k = 0; k < text.size(); ++k) {
      const int64_t v = extents[k] == 1 ? 0 : value[labels.find(text[k])];
      at = at * extents[k] + v;
    }
    return static_cast<size_t>(at);
  };
  std::vector<int64_t> result_extents;
  for (char c : out) result_extents.push_back(sizes[c]);
  std::vector<double> result(static_cast<size_t>(cells), 0);
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n;
    for (size_t k = 0; k < labels.size(); ++k) {
      value[k] = rest % sizes[labels[k]];
      rest /= sizes[labels[k]];
    }
    double product = 1;
    for (size_t j = 0; j < operands.size(); ++j) {
      std::vector<int64_t> extents;
      for (const Dim& d : operands[j].shape()) extents.push_back(d);
      product *= data[j][offset(in[j], extents)];
    }
    size_t cell = 0;
    for (size_t k = 0; k < out.size(); ++k)
      cell = cell * static_cast<size_t>(result_extents[k]) + static_cast<size_t>(value[labels.find(out[k])]);
    result[cell] += product;
  }
  return result;
}

array random_array(const Shape& shape) {
  std::vector<float> v(static_cast<size_t>(num_elements(shape)));
  for (float& x : v) x = static_cast<float>(uniform(-16, 16)) / 8;
  return array(v.begin(), shape);
}

void near(const array& got, const std::vector<double>& expected) {
  const std::vector<double> values = got.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  for (size_t k = 0; k < values.size(); ++k) CHECK(values[k] == doctest::Approx(expected[k]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("random subscripts: contractions, batches, diagonals, sums, repeated extents of 1") {
  for (int trial = 0; trial < 60; ++trial) {
    std::map<char, int64_t> sizes;
    const std::string letters = "abcdeX";
    for (char c : letters) sizes[c] = uniform(1, 4);
    std::vector<std::string> in;
    std::vector<array> operands;
    std::string text, used;
    for (int64_t n = uniform(1, 4); n > 0; --n) {
      std::string labels;
      Shape shape;
      for (int64_t k = uniform(0, 3); k > 0; --k) {
        const char c = letters[static_cast<size_t>(uniform(0, 5))];
        const bool one = labels.find(c) == std::string::npos && uniform(0, 9) == 0;
        labels += c;
        shape.emplace_back(one ? 1 : sizes[c]);
        if (one && std::count(labels.begin(), labels.end(), c) > 1) shape.back() = sizes[c];
        if (used.find(c) == std::string::npos) used += c;
      }
      for (size_t k = 0; k < labels.size(); ++k)  // a diagonal needs equal extents
        if (std::count(labels.begin(), labels.end(), labels[k]) > 1) shape[k] = sizes[labels[k]];
      in.push_back(labels);
      operands.push_back(random_array(shape));
      text += (text.empty() && in.size() == 1 ? "" : ",") + labels;
    }
    std::string out;
    for (char c : used)
      if (uniform(0, 1) == 0) out += c;
    std::shuffle(out.begin(), out.end(), rng);
    std::map<char, int64_t> present;
    for (char c : used) {
      int64_t n = 1;
      for (size_t j = 0; j < in.size(); ++j)
        for (size_t k = 0; k < in[j].size(); ++k)
          if (in[j][k] == c) n = std::max<int64_t>(n, operands[j].shape()[k]);
      present[c] = n;
    }
    CAPTURE(text + "->" + out);
    near(einsum(text + "->" + out, operands), naive(in, out, operands, present));
  }
}

TEST_CASE("the forms that people write") {
  const array a = random_array({3, 4}), b = random_array({4, 5}), c = random_array({5, 2}), x = random_array({2, 3, 4}),
              y = random_array({2, 4, 5});
  near(einsum("ij,jk", {a, b}), naive({"ij", "jk"}, "ik", {a, b}, {{'i', 3}, {'j', 4}, {'k', 5}}));
  near(einsum(" b i j , b j k -> b i k ", {x, y}), matmul(x, y).to_vector<double>());
  near(einsum("...ij,...jk->...ik", {x, y}), matmul(x, y).to_vector<double>());
  near(einsum("...ij,jk", {x, b}), matmul(x, b).to_vector<double>());
  near(einsum("ij...->...j", {x}), sum(transpose(x, {2, 1, 0}), 2).to_vector<double>());
  near(einsum("...j,...->j", {a, array(2.0f)}), sum(2 * a, 0).to_vector<double>());  // as in MLX; NumPy refuses it
  CHECK(einsum("...->", {ones({2, 3})}).item<float>() == 6);
  CHECK(einsum("ba", {a}).shape() == Shape{4, 3});  // without "->": alphabetical
  CHECK(einsum("ii", {eye(4)}).item<float>() == 4);
  near(einsum("ii->i", {matmul(a, transpose(a))}), diagonal(matmul(a, transpose(a))).to_vector<double>());
  near(einsum("i,j->ij", {take(a, 0, 0), take(a, 1, 0)}), outer(take(a, 0, 0), take(a, 1, 0)).to_vector<double>());
  near(einsum("ij,jk,kl->il", {a, b, c}), matmul(matmul(a, b), c).to_vector<double>());
  const array many =
      einsum("ab,bc,cd,de,ef,fg->ag", {a, b, c, random_array({2, 3}), random_array({3, 3}), random_array({3, 2})});
  CHECK(many.shape() == Shape{3, 2});
  CHECK(einsum("ij,ij->", {reshape(arange(6), {2, 3}), ones({2, 3}, int32)}).item<int>() == 15);
  CHECK(einsum("i->", {arange(4)}).dtype() == int32);
}

TEST_CASE("affine axes: convolutions, strided and dilated") {
  const array image = random_array({2, 11}), kernel = random_array({2, 3});
  const std::vector<double> v = image.to_vector<double>(), w = kernel.to_vector<double>();
  for (const auto& [s, d] : {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {1, 2}, {3, 2}}) {
    const int64_t count = (11 - 2 * d - 1) / s + 1;
    std::vector<double> expected;
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t o = 0; o < count; ++o)
        for (int64_t f = 0; f < 2; ++f) {
          double total = 0;
          for (int64_t k = 0; k < 3; ++k)
            total += v[static_cast<size_t>(n * 11 + s * o + d * k)] * w[static_cast<size_t>(f * 3 + k)];
          expected.push_back(total);
        }
    const std::string text = "n(" + std::to_string(s) + "*o+" + std::to_string(d) + "*k),fk->nof";
    CAPTURE(text);
    const array got = einsum(text, {image, kernel});
    CHECK(got.shape() == Shape{2, count, 2});
    near(got, expected);
  }
  CHECK(einsum("(2*o)->o", {arange(5)}).to_vector<int>() == std::vector<int>{0, 2, 4});
  const array picture = random_array({1, 6, 7, 2}), filters = random_array({3, 2, 3, 2});  // NHWC and OHWI
  CHECK(einsum("n(y+i)(2*x+j)c,oijc->nyxo", {picture, filters}).shape() == Shape{1, 5, 3, 3});
  const auto gradient = grad([&](const array& k) { return sum(einsum("n(2*o+k),fk->nof", {image, k})); });
  const array g = gradient(kernel);
  CHECK(g.to_vector<double>()[0] ==
        doctest::Approx(v[0] + v[2] + v[4] + v[6] + v[8] + v[11] + v[13] + v[15] + v[17] + v[19]));
}

TEST_CASE("the order of contractions") {
  const array a = ones({100, 2}), b = ones({2, 100}), c = ones({100, 2});
  const auto [path, text] = einsum_path("ij,jk,kl->il", {a, b, c});
  REQUIRE(path.size() == 2);
  CHECK(path[0] == std::vector<int>{1, 2});  // (2 × 100)(100 × 2) first
  CHECK(path[1] == std::vector<int>{0, 1});
  CHECK(text.find("ij,jk,kl->il") != std::string::npos);
  CHECK(einsum_path("ij->ji", {a}).first.size() == 1);
  std::string chain = "ab";
  std::vector<array> operands{ones({2, 2})};
  for (char k = 'b'; k < 'j'; ++k) {
    chain += std::string(",") + k + static_cast<char>(k + 1);
    operands.push_back(ones({2, 2}));
  }
  CHECK(einsum_path(chain, operands).first.size() == 8);
  CHECK(einsum(chain + "->aj", operands).to_vector<float>() == std::vector<float>(4, 256));
}

TEST_CASE("subscripts that do not fit are refused") {
  const array a = ones({2, 3});
  for (const char* text :
       {"ij,jk", "i", "ijk", "ij->ijj", "ij->k", "i(j", "(0*i+j)k", "i!j", "ij->i->j", "....ij", "(i+i)j", "ii"})
    CHECK_THROWS_AS(einsum(text, {a}), std::invalid_argument);
  CHECK_THROWS_AS(einsum("ij,ij", {a, ones({2, 4})}), std::invalid_argument);
  CHECK_THROWS_AS(einsum("(2*o+k)j->oj", {a}), std::invalid_argument);
  CHECK_THROWS_AS(einsum("(o+k)j,k->oj", {a, ones({5})}), std::invalid_argument);
}
