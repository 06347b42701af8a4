// Matrices in a few bits an element: tests/mlx/generate/quantized.py.
#include <doctest/doctest.h>

#include "mlx/assertions.h"
#include "weft/compile.h"
#include "weft/indexing.h"
#include "weft/memory.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::test {
namespace {

constexpr int affine_bits[] = {1, 2, 3, 4, 5, 6, 8};
const std::vector<Dtype> floats{float32, float16, bfloat16};
const std::vector<std::string> float_modes{"mxfp4", "mxfp8", "nvfp4"}, all_modes{"affine", "mxfp4", "mxfp8", "nvfp4"};
using None = std::nullopt_t;
constexpr None none = std::nullopt;

void append(Arrays& out, const Arrays& more) { out.insert(out.end(), more.begin(), more.end()); }

std::optional<array> biases_of(const Arrays& q) { return q.size() > 2 ? std::optional(q[2]) : none; }

array dequantized(const Arrays& q, const std::string& mode, std::optional<int> group = none,
                  std::optional<int> bits = none, std::optional<Dtype> dtype = none) {
  return dequantize(q[0], q[1], biases_of(q), group, bits, mode, none, dtype);
}

array times(const array& x, const Arrays& q, const std::string& mode, bool transpose = true,
            std::optional<int> group = none, std::optional<int> bits = none) {
  return quantized_matmul(x, q[0], q[1], biases_of(q), transpose, group, bits, mode);
}

const std::vector<Assertion> codes = {
    {"affine",
     [](const Arrays& in) {
       Arrays out;
       for (const Dtype t : floats)
         for (const int b : affine_bits) append(out, quantize(astype(in[0], t), 64, b));
       return out;
     },
     {1, 0, false}},
    {"groups",
     [](const Arrays& in) {
       Arrays out;
       for (const int g : {32, 64, 128}) append(out, quantize(in[0], g, 4));
       return out;
     },
     {1, 0, false}},
    {"usual sizes",
     [](const Arrays& in) {
       Arrays out;
       for (const std::string& m : all_modes) append(out, quantize(in[0], none, none, m));
       return out;
     },
     {1, 0, false}},
    {"floats",
     [](const Arrays& in) {
       Arrays out;
       for (const Dtype t : floats)
         for (const std::string& m : float_modes) append(out, quantize(astype(in[0], t), none, none, m));
       return out;
     }},
    {"ties of 4 bits",
     [](const Arrays& in) {
       Arrays out = quantize(in[0], none, none, "mxfp4");
       append(out, quantize(in[0], none, none, "nvfp4"));
       return out;
     }},
    {"global scale", [](const Arrays& in) { return quantize(in[0], none, none, "nvfp4", array(700.0f)); }},
};

const std::vector<Assertion> numbers = {
    {"numbers",
     [](const Arrays& in) {
       Arrays out;
       for (const Dtype t : floats)
         for (const int b : affine_bits) out.push_back(dequantized(quantize(astype(in[0], t), 64, b), "affine", 64, b));
       for (const std::string& m : float_modes) out.push_back(dequantized(quantize(in[0], none, none, m), m));
       for (const std::string& m : float_modes)
         out.push_back(dequantized(quantize(in[0], none, none, m), m, none, none, float32));
       out.push_back(dequantized(quantize(in[0]), "affine", none, none, bfloat16));
       const array g(700.0f);
       const Arrays q = quantize(in[0], none, none, "nvfp4", g);
       out.push_back(dequantize(q[0], q[1], none, none, none, "nvfp4", g, float32));
       return out;
     },
     {2, 1e-3, false}},
    {"all codes of 4 bits",
     [](const Arrays& in) {
       Arrays out;
       for (const int s : {0, 1, 127, 200})
         out.push_back(dequantize(in[0], full({1, 1}, array(s, uint8)), none, none, none, "mxfp4", none, float32));
       return out;
     }},
};

const std::vector<Assertion> products = {
    {"products",
     [](const Arrays& in) {
       Arrays out;
       for (const int b : affine_bits) {
         const Arrays q = quantize(in[0], 64, b);
         out.push_back(times(in[1], q, "affine", true, 64, b));
         out.push_back(times(in[2], q, "affine", false, 64, b));
       }
       for (const std::string& m : float_modes) {
         const Arrays q = quantize(in[0], none, none, m);
         out.push_back(times(in[1], q, m)), out.push_back(times(in[2], q, m, false));
       }
       out.push_back(times(index(in[1], 0), quantize(in[0]), "affine"));
       return out;
     },
     {16, 16, false}},
    {"dtypes of products",
     [](const Arrays& in) {
       Arrays out;
       for (const Dtype t : floats) {
         for (const Dtype u : floats)
           out.push_back(times(astype(in[1], t), quantize(astype(in[0], u), 64, 4), "affine", true, 64, 4));
         out.push_back(times(astype(in[1], t), quantize(in[0], none, none, "mxfp4"), "mxfp4"));
       }
       return out;
     },
     {16, 16, false}},
    {"gathered",
     [](const Arrays& in) {
       Arrays out;
       const array &x = in[1], &i = in[2], &j = in[3], two = index(j, Slice::to(2));
       const array narrow = slice(x, {0, 0, 0}, {2, 4, 16});
       for (const std::string& m : all_modes) {
         const Arrays q = quantize(in[0], none, none, m);
         const auto gathered = [&](const array& left, std::optional<array> lhs, const array& rhs, bool transpose) {
           out.push_back(gather_qmm(left, q[0], q[1], biases_of(q), std::move(lhs), rhs, transpose, none, none, m));
         };
         gathered(x, i, j, true), gathered(x, none, two, true), gathered(narrow, none, two, false);
       }
       return out;
     },
     {16, 16, false}},
    {"derivatives",
     [](const Arrays& in) {
       const Arrays q = quantize(in[0], 32, 4);
       return gradient([&](const Arrays& a) { return quantized_matmul(a[0], q[0], a[1], a[2], true, 32, 4); },
                       {in[1], q[1], q[2]});
     },
     {64, 1024, false}},
};

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("quantised matrices as in MLX: codes and scales, numbers, products") {
  std::vector<Assertion> all = codes;
  all.insert(all.end(), numbers.begin(), numbers.end());
  all.insert(all.end(), products.begin(), products.end());
  check_assertions("quantized", all, "quantized");
}

TEST_CASE("qqmm is the product of what both sides' codes stand for; its derivatives, as if rounding had slope 1") {
  const array x = random::normal({3, 64}, float32, 0, 1, random::key(1)),
              w = random::normal({8, 64}, float32, 0, 1, random::key(2));
  for (const std::string mode : {"nvfp4", "mxfp8"}) {
    CAPTURE(mode);
    const Arrays qx = quantize(x, none, none, mode), qw = quantize(w, none, none, mode);
    const array left = dequantized(qx, mode, none, none, float32), right = dequantized(qw, mode, none, none, float32);
    const array expected = matmul(left, transpose(right));
    CHECK(allclose(qqmm(x, w, none, none, none, mode), expected, 1e-5, 1e-5).item<bool>());
    CHECK(allclose(qqmm(x, qw[0], qw[1], none, none, mode), expected, 1e-5, 1e-5).item<bool>());
    const array many =
        gather_qqmm(stack({x, x + 1.0f}), stack({w, w * 2.0f}), none, array({1, 0}), array({1, 1}), none, none, mode);
    CHECK(many.shape() == Shape{2, 3, 8});
    CHECK(allclose(index(many, 1), qqmm(x, w * 2.0f, none, none, none, mode), 1e-5, 1e-5).item<bool>());
    const auto f = [&](const Arrays& v) { return sum(square(qqmm(v[0], v[1], none, none, none, mode))); };
    const Arrays slopes = grad(ScalarFunction(f), {0, 1})({x, w});
    const array g = expected * 2.0f;
    CHECK(allclose(slopes[0], matmul(g, right), 1e-4, 1e-3).item<bool>());
    CHECK(allclose(slopes[1], matmul(transpose(g), left), 1e-4, 1e-3).item<bool>());
  }
  CHECK(qqmm(astype(x, bfloat16), w, none, none, none, "mxfp8").dtype() == bfloat16);
}

TEST_CASE("a product unpacks weights as it reads them: no matrix of their numbers lies in memory") {
  constexpr int n = 1024, k = 2048;
  const array x = random::normal({4, k}, float32, 0, 1, random::key(1));
  for (const std::string& mode : all_modes)
    for (const int bits : mode == "affine" ? std::vector{1, 2, 3, 4, 5, 6, 8} : std::vector{mode == "mxfp8" ? 8 : 4}) {
      CAPTURE(mode);
      CAPTURE(bits);
      const Arrays q = quantize(random::normal({n, k}, float32, 0, 1, random::key(2)), none, bits, mode);
      const auto f = compile([&](const Arrays& in) {
        return Arrays{
            quantized_matmul(in[0], in[1], in[2], in.size() > 3 ? std::optional(in[3]) : none, true, none, bits, mode)};
      });
      Arrays in{x};
      append(in, q);
      eval(in);
      eval(f(in));
      reset_peak_memory();
      const size_t before = get_active_memory();
      eval(f(in));
      CHECK(get_peak_memory() - before < size_t{n} * k);  // a quarter of the numbers as float32
      const size_t active = get_active_memory();
      reset_peak_memory();
      eval(times(x, q, mode, true, none, bits));  // without compile as well
      CHECK(get_peak_memory() - active < size_t{n} * k);
      const array half = astype(x, bfloat16);
      Arrays halves = q;
      if (mode == "affine") halves = {q[0], astype(q[1], bfloat16), astype(q[2], bfloat16)};
      eval(half), eval(halves);
      const size_t begun = get_active_memory();
      reset_peak_memory();
      eval(times(half, halves, mode, true, none, bits));
      CHECK(get_peak_memory() - begun < size_t{n} * k);  // half of the numbers as bfloat16
    }
}

// A GPU multiplies one row, a few, and many by kernels of three kinds, each of which unpacks the matrix as it loads it.
TEST_CASE("quantised products of any number of rows agree with those of the numbers that codes stand for") {
  const auto both = [](const Arrays& q, const array& x, const std::string& mode, int bits, bool transpose) {
    const array numbers = astype(dequantized(q, mode, none, bits), float32), wide = astype(x, float32),
                got = astype(times(x, q, mode, transpose, none, bits), float32),
                expected = matmul(wide, transpose ? swapaxes(numbers, -1, -2) : numbers);
    return std::pair(max(abs(got - expected)).item<float>(), max(abs(expected)).item<float>());
  };
  for (const auto& [mode, bits] :
       {std::pair{"affine", 2}, {"affine", 3}, {"affine", 4}, {"affine", 6}, {"affine", 8}, {"mxfp4", 4}, {"nvfp4", 4}})
    for (const Dtype t : {bfloat16, float32})
      for (const int64_t rows : {1, 2, 4, 5, 70, 260})
        for (const bool transpose : {true, false}) {
          CAPTURE(mode);
          CAPTURE(bits);
          CAPTURE(std::string(dtype_name(t)));
          CAPTURE(rows);
          CAPTURE(transpose);
          constexpr int64_t n = 192, k = 320;  // k is no whole number of 128, n none of 256
          const Arrays q =
              quantize(astype(random::normal({transpose ? n : k, transpose ? k : n}), t), none, bits, mode);
          const array x = astype(random::normal({rows, k}), t);
          const auto [error, largest] = both(q, x, mode, bits, transpose);
          CHECK(error <= (t == bfloat16 ? 0x1p-6f : 0x1p-10f) * largest);
        }
}

TEST_CASE("quantised matrices: mistakes name the operation, what there is, and what fits") {
  const array w = zeros({4, 128}), x = zeros({2, 128});
  const Arrays q = quantize(w);
  const auto says = [&](const std::function<void()>& f, const std::string& part) {
    const std::string text = refusal(f);
    CHECK_MESSAGE(text.find(part) != std::string::npos, text, " lacks ", part);
  };
  says([&] { quantize(w, none, none, "int4"); }, "[quantize] there is no mode 'int4': give affine, mxfp4");
  says([&] { quantize(w, 16); }, "mode affine has groups of 32, 64, 128 elements, not of 16");
  says([&] { quantize(w, 64, 7); }, "mode affine has 1, 2, 3, 4, 5, 6, 8 bits, not 7");
  says([&] { quantize(w, none, none, "mxfp4", array(1.0f)); }, "mode mxfp4 has no global scale");
  says([&] { quantize(w, none, none, "nvfp4", zeros({2})); }, "the global scale is one float32, got float32 (2)");
  says([&] { quantize(zeros({128})); }, "a matrix is needed, got float32 (128)");
  says([&] { quantize(zeros({4, 96})); }, "float32 (4,96) is not made of groups of 64");
  says([&] { quantize(zeros({4, 128}, int32)); }, "floats are quantised, got int32 (4,128)");
  says([&] { dequantize(w, q[1], q[2]); }, "[dequantize] codes are uint32, got float32 (4,128)");
  says([&] { dequantize(q[0], q[1], q[2], none, none, "affine", none, int32); }, "of floats, not of int32");
  says([&] { quantized_matmul(x, q[0], q[1]); }, "[quantized_matmul] mode affine needs biases");
  says([&] { quantized_matmul(x, q[0], q[1], q[2], true, none, none, "mxfp8"); }, "mode mxfp8 has no biases");
  says([&] { quantized_matmul(x, q[0], q[1], q[2], true, 32); }, "of 4 bits do not go with scales float32 (4,2)");
  says([&] { quantized_matmul(x, q[0], q[1], q[2], false); }, "stand for a matrix of 4 x 128");
  says([&] { quantized_matmul(x, q[0], zeros({4, 4}), none, true, none, none, "mxfp4"); }, "are uint8, got float32");
  says([&] { qqmm(x, w, none, none, none, "mxfp4"); }, "[qqmm] mode mxfp4 is not multiplied so: give nvfp4 or mxfp8");
  says([&] { qqmm(astype(x, int32), w); }, "float32, float16 and bfloat16 are multiplied, got int32");
  says([&] { qqmm(zeros({2, 64}), w); }, "rows of float32 (2,64) and of float32 (4,128) are multiplied");
}

}  // namespace weft::test
