// Holds docs/differences.md to the behaviour: each line of the page has a test here, and each test a line. MLX's side
// is what the page says in words, or a golden value.
#include "mlx/differences.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "device.h"
#include "mlx/assertions.h"
#include "weft/backends.h"
#include "weft/compile.h"
#include "weft/export.h"
#include "weft/fast.h"
#include "weft/fft.h"
#include "weft/graph_utils.h"
#include "weft/indexing.h"
#include "weft/io.h"
#include "weft/linalg.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/random.h"
#include "weft/stream.h"
#include "weft/tree.h"

namespace weft::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

array floats(const Floats& values) { return array(values.begin(), {static_cast<int64_t>(values.size())}); }
Floats numbers(const array& a) { return astype(a, float32).to_vector<float>(); }
Integers integers(const array& a) { return a.to_vector<int64_t>(); }
bool is_nan(const array& a) { return std::isnan(a.item<float>()); }

using Behaviours = std::map<std::string, std::function<void()>>;

const Behaviours integers_and_casts = {
    {"sizes",
     [] {
       array wide = broadcast_to(array(1.0f), {int64_t{3} << 31});
       CHECK(wide.size() == size_t{3} << 31);
       CHECK(slice(wide, {(int64_t{3} << 31) - 2}, {int64_t{3} << 31}).to_vector<float>() == Floats{1, 1});
     }},
    {"cast-out-of-range",
     [] {
       array x = floats({300, -300, infinity, -infinity, nan});
       CHECK(integers(astype(x, int8)) == Integers{127, -128, 127, -128, 0});
       CHECK(integers(astype(x, uint8)) == Integers{255, 0, 255, 0, 0});
     }},
    {"shift-amounts",
     [] {
       array x({-5, 5, 5, -5}), amounts({32, 33, -1, -1});
       CHECK(integers(left_shift(x, amounts)) == Integers{0, 0, 0, 0});
       CHECK(integers(right_shift(x, amounts)) == Integers{-1, 0, 0, -1});
     }},
    {"division-by-zero",
     [] {
       array x({7, -7}), zero({0, 0});
       CHECK(integers(floor_divide(x, zero)) == Integers{0, 0});
       CHECK(integers(remainder(x, zero)) == Integers{0, 0});
       array low(std::numeric_limits<int32_t>::min());
       CHECK(floor_divide(low, array(-1)).item<int32_t>() == std::numeric_limits<int32_t>::min());
     }},
    {"isclose-integers",
     [] {
       array a = astype(array({std::numeric_limits<int32_t>::max()}), uint32);
       CHECK(isclose(a * array(2, uint32) + array(1, uint32), a * array(2, uint32)).item<bool>());
     }},
    {"round-decimals",
     [] {
       CHECK(round(array({std::numeric_limits<int32_t>::max()}), 2).item<int32_t>() ==
             std::numeric_limits<int32_t>::max());
       CHECK(numbers(round(astype(floats({1000}), float16), 2)) == Floats{1000});
     }},
    {"index-out-of-range",
     [] {
       CHECK(numbers(take(floats({1, 2, 3}), array({7, -9}))) == Floats{3, 1});
     }},
    {"view-bool",
     [] {
       const array bools = view(astype(floats({0, 1, 2, 255}), uint8), bool_);
       CHECK(numbers(bools) == Floats{0, 1, 1, 1});
       CHECK(numbers(view(bools, uint8)) == Floats{0, 1, 1, 1});
     }},
};

const Behaviours real_values = {
    {"to-fp8-nan", [] { CHECK(is_nan(from_fp8(to_fp8(floats({nan})), float32))); }},
    {"to-fp8-float64", [] { CHECK(to_fp8(astype(floats({1}), float64)).item<int>() == 56); }},
    {"nan-to-num-float64",
     [] {
       CHECK(numbers(nan_to_num(astype(floats({nan, 2}), float64))) == Floats{0, 2});
     }},
    {"cummax-nan",
     [] {
       for (Dtype t : {float16, bfloat16, float32})
         CHECK(std::isnan(numbers(cummax(astype(floats({1, nan, 3}), t), 0))[2]));
     }},
    {"complex-onesided-stft",
     [] {
       const array x = floats({1, 2, 3, 4, 5, 6, 7, 8}) * array(complex64_t{0, 1});
       const auto of = [&](bool onesided) {
         return fft::stft(x, 4, 4, std::nullopt, std::nullopt, false, "reflect", fft::FFTNorm::Backward, onesided);
       };
       CHECK(array_equal(of(true), slice(of(false), {0, 0}, {3, 2})).item<bool>());
       CHECK(numbers(imag(of(true)))[0] == 10);
     }},
    {"fused-half",
     [] {
       const array a(0.3f, bfloat16), b(1.3f, bfloat16);
       eval(a, b);
       const float x = a.item<bfloat16_t>(), y = b.item<bfloat16_t>();
       CHECK(astype(a * b + a, float32).item<float>() == x * y + x);
       const array product = a * b;
       eval(product);
       CHECK(astype(product + a, float32).item<float>() == static_cast<float>(bfloat16_t(x * y)) + x);
     }},
    {"dequantize-half",
     [] {
       // 0.3 · 77 - 23 of bfloat16: the product 23.172 rounds to 23.125.
       const array codes = full({1, 16}, array(77 * 0x01010101, uint32));
       const array scale = full({1, 1}, array(0.3f, bfloat16)), bias = full({1, 1}, array(-23.0f, bfloat16));
       const float exact = scale.item<bfloat16_t>() * 77.0f - 23.0f;
       CHECK(numbers(dequantize(codes, scale, bias, 64, 8))[0] == numbers(array(exact, bfloat16))[0]);
       eval(scale);  // the steps of one program are fused, and rounded once
       const array product = scale * array(77.0f, bfloat16);
       eval(product);
       CHECK(numbers(product + bias)[0] == 0.125f);
     }},
    {"half-quotient",
     [] { CHECK(floor_divide(astype(floats({1}), bfloat16), astype(floats({0.1f}), bfloat16)).item<float>() == 9); }},
    {"logsumexp-unsigned",
     [] {
       CHECK(logsumexp(array({1, 2}, uint8), 0).item<float>() == doctest::Approx(2.3132617));
     }},
    {"softmax-integers",
     [] {
       CHECK(softmax(array({1, 2, 3, 4}, {2, 2}), 0).dtype() == float32);
     }},
    {"float64-functions",
     [] {
       CHECK(exp(array(0.1, float64)).item<double>() == doctest::Approx(std::exp(0.1)).epsilon(1e-15));
       CHECK(linalg::det(array(2.0, float64) * eye(2, float64) / 3.0f).item<double>() ==
             doctest::Approx(4.0 / 9).epsilon(1e-7));
     }},
    {"signed-zeros",
     [] {
       CHECK(std::signbit(sin(array(-0.0f)).item<float>()));
       CHECK(!std::signbit(erf(array(0.0f)).item<float>()));
       CHECK(std::signbit(minimum(array(0.0f), array(-0.0f)).item<float>()));
     }},
    {"singular-inverse",
     [] {
       CHECK(is_nan(sum(linalg::inv(zeros({2, 2})))));
     }},
    {"elu-far-right",
     [] {
       CHECK(grad(UnaryFunction([](const array& x) { return sum(nn::elu(x)); }))(array(100.0f)).item<float>() == 1);
     }},
};

array complex(float re, float im) { return array(complex64_t{re, im}); }
bool is_near(const array& a, const array& b) { return allclose(a, b, 1e-5, 1e-6).item<bool>(); }
ArrayFunction listed(const std::function<array(const array&)>& f) {
  return [f](const Arrays& in) { return Arrays{f(in[0])}; };
}

const Behaviours complex_values = {
    {"complex-nan-order",
     [] {
       array x = stack({complex(1, 2), complex(nan, 0), complex(7, 1)});
       CHECK(isnan(max(x)).item<bool>());
       CHECK(isnan(min(x)).item<bool>());
     }},
    {"complex-isclose-infinite",
     [] {
       CHECK(isclose(complex(infinity, 1), complex(infinity, 1)).item<bool>());
       CHECK(!isclose(complex(2, 1), complex(1, -infinity)).item<bool>());
     }},
    {"complex-log-branch",
     [] {
       array x = stack({complex(1, 3), complex(2, 3), complex(0, -3)});
       CHECK(is_near(exp(logcumsumexp(x, 0)), cumsum(exp(x), 0)));
     }},
    {"complex-zero",
     [] {
       CHECK(power(complex(0, 0), complex(0, 1)).item<complex64_t>() == complex64_t{0, 0});
       CHECK(power(complex(0, 0), complex(0, 0)).item<complex64_t>() == complex64_t{1, 0});
     }},
    {"complex128",
     [] {
       const array z = complex(1, 2), x = array(0.1, float64);
       CHECK((z * x).dtype() == complex128);
       CHECK((z * x).item<complex128_t>() == complex128_t(1, 2) * 0.1);
       CHECK(fft::fft(astype(array({1, 2, 3}), float64)).dtype() == complex128);
       CHECK(fft::irfft(fft::rfft(array({0.1, 0.2}, float64))).dtype() == float64);
     }},
    {"complex-decompositions",
     [] {
       const array a = reshape(stack({complex(2, 0), complex(0, 1), complex(0, -1), complex(3, 0)}), {2, 2});
       CHECK(is_near(matmul(a, linalg::inv(a)), eye(2, complex64)));
     }},
    {"complex-infinite-products", [] { CHECK(is_nan(real(complex(infinity, infinity) * complex(1, 0)))); }},
};

const Behaviours derivatives = {
    {"complex-vjp",
     [] {
       array z = complex(1, 2), c = complex(2, 3);
       auto slope = vjp(listed([](const array& x) { return sqrt(x); }), {z}, {c}).second[0];
       CHECK(is_near(slope, c * array(0.5f) / conjugate(sqrt(z))));
     }},
    {"complex-arccosh-slope",
     [] {
       array z = complex(-2, 1);
       auto slope = jvp(listed([](const array& x) { return arccosh(x); }), {z}, {complex(1, 0)}).second[0];
       CHECK(is_near(slope, reciprocal(sqrt(z - complex(1, 0)) * sqrt(z + complex(1, 0)))));
     }},
    {"complex-sign-slope",
     [] {
       auto tangent = jvp(listed([](const array& x) { return sign(x); }), {complex(0, 2)}, {complex(1, 0)}).second[0];
       CHECK(is_near(tangent, complex(0.5f, 0)));
     }},
    {"extremes-jvp",
     [] {
       auto slope = jvp(listed([](const array& x) { return max(x); }), {floats({1, 1})}, {floats({1, 0})}).second[0];
       CHECK(slope.item<float>() == 0.5f);
     }},
    {"integer-cotangents",
     [] {
       auto slope = vjp(listed([](const array& x) { return max(x); }), {array({1, 2})}, {array(3)}).second[0];
       CHECK(slope.dtype() == int32);
     }},
    {"divmod-slope",
     [] {
       const auto rest = [](const array& x) { return sum(divmod(x, floats({2, 3}))[1]); };
       CHECK(numbers(grad(UnaryFunction(rest))(floats({5, -4}))) == Floats{1, 1});
     }},
    {"power-at-zero",
     [] {
       CHECK(grad(UnaryFunction([](const array& x) { return power(x, array(0.0f)); }))(array(0.0f)).item<float>() == 0);
     }},
};

const Behaviours systems = {
    {"streams-any-thread",
     [] {
       Stream other = new_stream(default_device());
       float value = 0;
       std::thread([&] { value = add(array(1.0f), array(2.0f), other).item<float>(); }).join();
       CHECK(value == 3);
     }},
    {"layout-without-data",
     [] {
       array b = broadcast_to(full({1, 1}, array(2.0f)), {5, 1});
       CHECK(b.strides() == Strides{1, 1});
     }},
    {"data-pointer",
     [] {
       array x({1, 2, 3, 4}, {2, 2});
       array t = transpose(x);
       CHECK(std::vector<int>(t.data<int>(), t.data<int>() + 4) == std::vector<int>{1, 3, 2, 4});
     }},
    {"losses-refuse",
     [] {
       array x = zeros({2, 3});
       CHECK(thrown_by([&] { nn::losses::smooth_l1_loss(x, x, 0.0f); }) == "ValueError");
       CHECK(thrown_by([&] { nn::losses::huber_loss(x, x, 0.0f); }) == "ValueError");
       CHECK(thrown_by([&] { nn::losses::triplet_loss(x, x, x, -1, 0); }) == "ValueError");
     }},
    {"clip-grad-norm-empty", [] { CHECK(thrown_by([] { optim::clip_grad_norm({}, 1.0f); }) == "ValueError"); }},
    {"pooling-padding",
     [] {
       CHECK(thrown_by([] { nn::MaxPool1d({.kernel = {2}, .padding = {2}})(zeros({1, 4, 1})); }) == "ValueError");
     }},
    {"orthogonal-axes",
     [] {
       CHECK(nn::init::orthogonal({2, 3, 2}).shape() == Shape{2, 3, 2});
     }},
    {"take-from-nothing",
     [] { CHECK(thrown_by([] {
                  eval(take_along_axis(zeros({1, 0}), zeros({1, 2}, int32), 1));
                }) == "ValueError"); }},
    {"arguments-checked",
     [] {
       CHECK(thrown_by([] { linalg::eigh(eye(2), "X"); }) == "ValueError");
       CHECK(thrown_by([] { as_strided(ones({4}), {2, 2}, {1}, 0); }) == "ValueError");
     }},
};

const Behaviours programs = {
    {"losses-dtype",
     [] {
       array x = zeros({2, 3}, bfloat16);
       CHECK(nn::losses::mse_loss(x, x).dtype() == float32);
       CHECK(nn::losses::cross_entropy(x, array({0, 1})).dtype() == float32);
     }},
    {"layers-dtype",
     [] {
       CHECK(nn::Linear(3, 2)(ones({1, 3}, bfloat16)).dtype() == bfloat16);
     }},
    {"optimizer-masters",
     [] {
       array w = ones({1}, bfloat16);
       optim::SGD optimizer({{"w", &w}}, {.learning_rate = 1e-3f});
       for (int step = 0; step < 8; ++step) optimizer.update({ones({1}, bfloat16)});
       CHECK(numbers(w)[0] == doctest::Approx(0.992).epsilon(1e-3));
     }},
    {"gradient-norm-precision",
     [] {
       array ones_of_half = ones({1000}, bfloat16);
       CHECK(optim::clip_grad_norm({ones_of_half}, 1e9f).second.item<float>() ==
             doctest::Approx(31.6228).epsilon(1e-4));
     }},
    {"rms-norm-float64",
     [] {
       array x = array(2.0, float64) * ones({4}, float64);
       CHECK(fast::rms_norm(x, std::nullopt, 1.0f).dtype() == float64);
       CHECK(max(fast::rms_norm(x, std::nullopt, 1.0f)).item<double>() ==
             doctest::Approx(2 / std::sqrt(5.0)).epsilon(1e-14));
     }},
    {"optimizer-state",
     [] {
       optim::Adam optimizer;
       optimizer.init(Tree::dict({{"w", ones({1}, bfloat16)}}));
       const Tree state = optimizer.state_tree();
       CHECK(state["step"].leaf().dtype() == int32);
       CHECK(state.contains("correction1"));
       CHECK(state["w"].contains("master"));
     }},
    {"tree-empty",
     [] {
       CHECK(tree_flatten(Tree::dict({{"a", Tree()}})).empty());
       CHECK_THROWS_AS(tree_reduce([](const array& a, const array&) { return a; }, Tree()), std::invalid_argument);
     }},
    {"optimizer-options",
     [] {
       CHECK(optim::AdamOptions().learning_rate.value() == 1e-3f);
       CHECK(optim::AdamOptions().weight_decay == 0);
       CHECK(optim::RmspropOptions().momentum == 0);
       CHECK(optim::AdagradOptions().initial_accumulator == 0);
     }},
    {"compile-shapeless",
     [] {
       auto f = compile([](const Arrays& in) { return Arrays{in[0] * static_cast<float>(in[0].size())}; }, true);
       CHECK(numbers(f({ones({2})})[0]) == Floats{2, 2});
       CHECK(numbers(f({ones({3})})[0]) == Floats{3, 3, 3});
     }},
    {"compile-modes",
     [] {
       for (CompileMode mode : {CompileMode::no_simplify, CompileMode::no_fuse, CompileMode::enabled}) {
         set_compile_mode(mode);
         int traces = 0;
         auto f = compile([&](const Arrays& in) { return ++traces, Arrays{exp(in[0]) + exp(in[0])}; });
         CHECK(numbers(f({zeros({2})})[0]) == Floats{2, 2});
         CHECK(numbers(f({zeros({2})})[0]) == Floats{2, 2});
         CHECK(traces == 1);
       }
     }},
    {"export-shapeless",
     [] {
       const ArrayFunction looks = [](const Arrays& in) {
         return Arrays{int64_t{in[0].shape(0)} == 2 ? exp(in[0]) : in[0]};
       };
       CHECK(thrown_by([&] { exporter("unused.weft", looks, true)({ones({2, 3})}); }) == "ValueError");
     }},
    {"graph-operations",
     [] {
       std::ostringstream text;
       print_graph(text, Arrays{logaddexp(floats({1}), floats({2}))});
       CHECK(text.str().find("logaddexp") != std::string::npos);
     }},
    {"version", [] { CHECK(std::string(version()) == WEFT_VERSION); }},
    {"force-fused",
     [] {
       const array scores = zeros({1, 1, 4, 8});
       const auto fused = [&](Dtype t) {
         const array x = astype(scores, t);
         return fast::scaled_dot_product_attention(x, x, x, 1, "", std::nullopt, std::nullopt, true);
       };
       CHECK_THROWS_WITH_AS(fused(float64), doctest::Contains("force_fused"), std::invalid_argument);
     }},
    {"thread-local-stream", [] { CHECK_FALSE((std::is_base_of_v<Stream, ThreadLocalStream>)); }},
    {"gguf-dtypes",
     [] {
       const auto out = std::make_shared<io::MemoryWriter>();
       save_gguf(out, {{"b", ones({2}, bfloat16)}, {"d", ones({2}, float64)}, {"i", ones({2}, int64)}},
                 {{"d", array(0.1, float64)}});
       const GGUFLoad back = load_gguf(std::make_shared<io::MemoryReader>(out->bytes()));
       CHECK(back.first.at("b").dtype() == bfloat16);
       CHECK(back.first.at("d").dtype() == float64);
       CHECK(back.first.at("i").dtype() == int64);
       CHECK(std::get<array>(back.second.at("d")).item<double>() == 0.1);
     }},
    {"gguf-quantised",
     [] {
       const std::string folder = std::string(WEFT_SOURCE_DIR) + "/tests/io/golden/";
       const auto tensors = load_gguf(folder + "blocks.gguf").first;
       for (const char* name : {"Q3_K", "Q5_0", "Q5_1", "Q5_K", "IQ4_NL", "IQ4_XS", "MXFP4"})
         CHECK(tensors.at(std::string(name) + ".weight").dtype() == float16);
       const array q4_k = slice(load(folder + "blocks.npy"), {832}, {1088});  // GGML's numbers
       CHECK(array_equal(tensors.at("Q4_K.weight"), reshape(q4_k, {1, 256})).item<bool>());
     }},
    {"gguf-lists",
     [] {
       const auto out = std::make_shared<io::MemoryWriter>();
       save_gguf(out, {}, {{"k", ones({2, 3}, int32)}});
       const GGUFLoad back = load_gguf(std::make_shared<io::MemoryReader>(out->bytes()));
       CHECK(std::get<array>(back.second.at("k")).shape() == Shape{2, 3});
     }},
    {"default-device", [] { CHECK((on_gpu() || default_device() == Device(Device::cpu))); }},
};

Behaviours behaviours() {
  Behaviours all;
  for (const auto& more : {integers_and_casts, real_values, complex_values, derivatives, systems, programs})
    all.insert(more.begin(), more.end());
  return all;
}

std::set<std::string> ids_of_page() {
  std::ifstream page(std::string(WEFT_SOURCE_DIR) + "/docs/differences.md");
  std::set<std::string> ids;
  const std::regex anchor("<a id=\"([^\"]+)\"></a>");
  for (std::string line; std::getline(page, line);)
    for (std::sregex_iterator it(line.begin(), line.end(), anchor), end; it != end; ++it)
      CHECK_MESSAGE(ids.insert((*it)[1]).second, "twice: " << (*it)[1]);
  return ids;
}

}  // namespace

TEST_CASE("differences from MLX: each line of the page behaves as it says") {
  for (const auto& [id, shows] : behaviours()) {
    INFO(id);
    shows();
  }
}

TEST_CASE("differences from MLX: the page, its tests and the lists name the same lines") {
  std::set<std::string> page = ids_of_page();
  for (const auto& [id, shows] : behaviours())
    if (!page.contains(id)) FAIL_CHECK(id << " has a test and no line in docs/differences.md");
  for (const std::string& id : page)
    if (!behaviours().contains(id)) FAIL_CHECK(id << " in docs/differences.md has no test");
  for (const Listed& l : listed_cases())
    if (!page.contains(l.id))
      FAIL_CHECK(l.pattern << " is listed under " << l.id << ", which docs/differences.md has not");
}

TEST_CASE("differences from MLX: each listed pattern meets a case") {
  std::vector<std::string> titles;
  for (const char* file : {"operators", "assertions", "mistakes", "quantized", "signals"}) {
    const Golden golden(file);
    for (const Case& c : golden.cases()) titles.push_back(c.title());
  }
  for (const Listed& l : listed_cases())
    if (std::ranges::none_of(titles, [&](const std::string& t) { return matches(l.pattern, t); }))
      FAIL_CHECK(l.pattern << " meets no case");
}

}  // namespace weft::test
