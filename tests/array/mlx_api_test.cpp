// Overloads, arguments and functions of MLX's C++ API other than the operators, with the values of mlx.core 0.32.4
// where there are values.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "graph/node.h"
#include "weft/array.h"
#include "weft/backends.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/graph_utils.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/stream.h"
#include "weft/transforms.h"
#include "weft/utils.h"

using namespace weft;

namespace {

using Floats = std::vector<float>;

Floats floats(const array& a) { return a.to_vector<float>(); }

void check_near(const array& given, const Floats& expected, float tolerance = 2e-6f) {
  const Floats got = floats(given);
  REQUIRE(got.size() == expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    CAPTURE(got[k]);
    CAPTURE(expected[k]);
    CHECK(std::abs(got[k] - expected[k]) <= tolerance * (1 + std::abs(expected[k])));
  }
}

std::string printed(const array& a) {
  std::ostringstream os;
  os << a;
  return os.str();
}

struct Heads {
  array q = reshape(sin(arange(8.0)), {1, 2, 2, 2}), k = reshape(cos(arange(6.0) * 0.7f), {1, 1, 3, 2}),
        v = reshape(sin(arange(6.0) * 0.3f), {1, 1, 3, 2}), sinks = array({0.5f, -1.0f});
};

/// Attention with sinks as MLX's fallback writes it: the sinks are a first column of the scores, which has no value.
array written_out(const array& q, const array& k, const array& v, float scale, const array& mask, const array& sinks) {
  const int sharers = static_cast<int>(q.shape(1) / k.shape(1));
  array scores = matmul(q * array(scale, q.dtype()), swapaxes(repeat(k, sharers, 1), 2, 3));
  scores = mask.dtype() == bool_ ? where(mask, scores, array(-1e9f, q.dtype())) : scores + mask;
  const array column = broadcast_to(reshape(sinks, {1, q.shape(1), 1, 1}), {q.shape(0), q.shape(1), q.shape(2), 1});
  const array p = softmax(concatenate({column, scores}, -1), -1, true);
  return matmul(slice(p, {0, 0, 0, 1}, p.shape()), repeat(v, sharers, 1));
}

}  // namespace

TEST_CASE("cumsum and cumprod in a dtype") {
  const array a = astype(array({1, 2, 3, 250}), uint8);
  CHECK(cumsum(a, 0).to_vector<int>() == std::vector<int>{1, 3, 6, 0});
  const array wide = cumsum(a, 0, false, true, int32), all = cumsum(reshape(a, {2, 2}), true, false, float32);
  CHECK(wide.dtype() == int32);
  CHECK(wide.to_vector<int>() == std::vector<int>{1, 3, 6, 256});
  CHECK(all.dtype() == float32);
  CHECK(floats(all) == Floats{255, 253, 250, 0});
  CHECK(cumprod(a, -1, false, true, int64).to_vector<int>() == std::vector<int>{1, 2, 6, 1500});
  CHECK(cumprod(a, false, true, float32, Device::cpu).dtype() == float32);
  CHECK(cumsum(a > array(2, uint8), 0, false, true, Device::cpu).dtype() ==
        int32);  // the stream in the dtype's position
  CHECK(cumsum(a > array(2, uint8), 0, false, true, float16).dtype() == float16);
  CHECK(cumprod(a, true, true, Device::cpu).dtype() == uint8);
}

TEST_CASE(
    "slice_update_* without strides, scatter_* of one index array, median of everything, transpose by an empty list") {
  const array a = reshape(arange(6.0), {2, 3}), u = array({10.0f, -1.0f});
  CHECK(floats(slice_update_add(a, u, {0, 1}, {1, 3})) == Floats{0, 11, 1, 3, 4, 5});
  CHECK(floats(slice_update_prod(a, u, {0, 1}, {2, 3})) == Floats{0, 10, -2, 3, 40, -5});
  CHECK(floats(slice_update_max(a, u, {1, 0}, {2, 2})) == Floats{0, 1, 2, 10, 4, 5});
  CHECK(floats(slice_update_min(a, u, {1, 0}, {2, 2}, Device::cpu)) == Floats{0, 1, 2, 3, -1, 5});
  const array rows = array({1, 1}), updates = reshape(array({2.0f, 2.0f, 2.0f, 3.0f, 3.0f, 5.0f}), {2, 1, 3});
  CHECK(floats(scatter_prod(a, rows, updates, 0)) == Floats{0, 1, 2, 18, 24, 50});
  CHECK(floats(scatter_max(a, rows, updates, 0)) == Floats{0, 1, 2, 3, 4, 5});
  CHECK(floats(scatter_min(a, rows, updates, 0)) == Floats{0, 1, 2, 2, 2, 2});
  CHECK(median(a, Device::cpu).item<float>() == 2.5f);
  CHECK(median(a).shape() == Shape{});
  CHECK(transpose(array(3.0f), {}).item<float>() == 3.0f);
  CHECK(transpose(a, {1, 0}, Device::cpu).shape() == Shape{3, 2});
  CHECK_THROWS_AS(transpose(a, {}), std::invalid_argument);  // no axes of two
  const std::initializer_list<int> start = {0, 1};
  CHECK(floats(slice(a, start, {2, 3}, {1, 1})) == Floats{1, 2, 4, 5});
}

TEST_CASE("attention sinks: MLX's values and gradients") {
  const Heads h;
  const auto f = [&](const std::vector<array>& a) {
    return fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.8f, "", std::nullopt, a[3]);
  };
  check_near(f({h.q, h.k, h.v, h.sinks}),
             {0.19668721f, 0.34670794f, 0.1890552f, 0.36045402f, 0.73412585f, 0.84388614f, 0.36653885f, 0.55111974f});
  check_near(fast::scaled_dot_product_attention(h.q, h.k, h.v, 0.8f, "causal", {}, h.sinks),
             {0.099641368f, 0.2608223f, 0.1890552f, 0.36045402f, 0.37511727f, 0.56524438f, 0.36653885f, 0.55111974f});
  const array w = reshape(cos(arange(8.0) * 0.9f), {1, 2, 2, 2});
  const auto g =
      grad([&](const std::vector<array>& a) { return sum(f(a) * w); }, {0, 1, 2, 3})({h.q, h.k, h.v, h.sinks});
  check_near(g[0], {-0.15361187f, -0.19105379f, 0.068177216f, 0.1096601f, 0.14065044f, 0.1111769f, -0.29086715f,
                    -0.30070683f});
  check_near(g[1], {0.04815983f, -0.18397926f, -0.10987537f, 0.072307676f, -0.0077868327f, 0.29071522f});
  check_near(g[2], {0.47189432f, 0.23164012f, 0.052769616f, 0.11064109f, -0.32375956f, 0.10794283f});
  check_near(g[3], {-0.036786109f, -0.039682224f});
  // A row that sees nothing is left with its sink; a sink of -inf is none.
  CHECK(floats(fast::scaled_dot_product_attention(h.q, h.k, h.v, 0.8f, "", zeros({2, 3}, bool_), h.sinks)) ==
        Floats(8, 0.0f));
  check_near(fast::scaled_dot_product_attention(h.q, h.k, h.v, 0.8f, "", {}, full({2}, -INFINITY)),
             floats(fast::scaled_dot_product_attention(h.q, h.k, h.v, 0.8f)));
  CHECK_THROWS_AS(fast::scaled_dot_product_attention(h.q, h.k, h.v, 0.8f, "", {}, zeros({3})), std::invalid_argument);
  CHECK_THROWS_AS(fast::scaled_dot_product_attention(h.q, h.k, h.v, 0.8f, "", {}, zeros({1, 2})),
                  std::invalid_argument);
  CHECK_THROWS_AS(fast::scaled_dot_product_attention(h.q, h.k, h.v, 0.8f, "", {}, zeros({2}, complex64)),
                  std::invalid_argument);
}

TEST_CASE("attention sinks at the size of the fused kernels") {
  const array q = random::normal({2, 4, 40, 16}, random::key(1)), k = random::normal({2, 2, 24, 16}, random::key(2)),
              v = random::normal({2, 2, 24, 8}, random::key(3)), sinks = array({0.5f, 3.0f, -2.0f, 0.0f}),
              weights = random::normal({2, 4, 40, 8}, random::key(4));
  for (const array& mask : {tri(40, 24, 3, bool_), random::normal({4, 1, 24}, random::key(5))}) {
    const auto fused = [&](const std::vector<array>& a) {
      return sum(weights * fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.25f, "", mask, a[3]));
    };
    const auto plain = [&](const std::vector<array>& a) {
      return sum(weights * written_out(a[0], a[1], a[2], 0.25f, mask, a[3]));
    };
    const auto [y, g] = value_and_grad(fused, {0, 1, 2, 3})({q, k, v, sinks});
    const auto [expected, exact] = value_and_grad(plain, {0, 1, 2, 3})({q, k, v, sinks});
    check_near(y, floats(expected), 1e-5f);
    for (size_t n = 0; n < g.size(); ++n) check_near(g[n], floats(exact[n]), 2e-5f);
    const array half = fast::scaled_dot_product_attention(
        astype(q, bfloat16), astype(k, bfloat16), astype(v, bfloat16), 0.25f, "",
        astype(mask, mask.dtype() == bool_ ? bool_ : bfloat16), astype(sinks, bfloat16));
    CHECK(half.dtype() == bfloat16);
    check_near(half, floats(written_out(q, k, v, 0.25f, mask, sinks)), 3e-2f);
  }
}

TEST_CASE("force_fused takes what a fused kernel takes, and refuses the rest") {
  const array q = random::normal({1, 2, 16, 8}, random::key(1));
  const array plain = fast::scaled_dot_product_attention(q, q, q, 0.3f);
  bool fused = true;  // with fewer than 32 vector registers a CPU has no such kernel
  try {
    check_near(fast::scaled_dot_product_attention(q, q, q, 0.3f, "", {}, {}, true), floats(plain));
  } catch (const std::invalid_argument& e) {
    fused = false;
    CHECK(std::string(e.what()).find("force_fused") != std::string::npos);
  }
  if (!fused) MESSAGE("this device has no fused attention");
  const array wide = astype(q, float64);
  CHECK_THROWS_WITH_AS(fast::scaled_dot_product_attention(wide, wide, wide, 0.3f, "", {}, {}, true),
                       doctest::Contains("force_fused"), std::invalid_argument);
}

TEST_CASE("rms_norm: MLX's values, gradients and dtypes") {
  const array x({1.0f, 2.0f, 3.0f, -4.0f, 0.5f, 0.0f, -1.0f, 2.0f}, {2, 4}), w({1.0f, 0.5f, 2.0f, -1.0f});
  check_near(fast::rms_norm(x, w, 1e-5f),
             {0.36514813f, 0.36514813f, 2.1908889f, 1.4605925f, 0.43643415f, 0, -1.7457366f, -1.7457366f});
  check_near(fast::rms_norm(x, std::nullopt, 1e-5f),
             {0.36514813f, 0.73029625f, 1.0954444f, -1.4605925f, 0.43643415f, 0, -0.8728683f, 1.7457366f});
  const array half = fast::rms_norm(astype(x, float16), astype(w, float16), 1e-5f);
  CHECK(half.dtype() == float16);
  CHECK(floats(half) ==
        Floats{0.36523438f, 0.36523438f, 2.1914062f, 1.4609375f, 0.43652344f, 0, -1.7460938f, -1.7460938f});
  CHECK(fast::rms_norm(astype(x, bfloat16), w, 1e-5f).dtype() == float32);
  CHECK(fast::rms_norm(astype(x, int32), w, 1e-5f).dtype() == float32);
  const auto g = grad(
      [](const std::vector<array>& a) {
        return sum(fast::rms_norm(a[0], a[1], 1e-5f) * cos(reshape(arange(8.0), {2, 4})));
      },
      {0, 1})({x, w});
  check_near(g[0],
             {0.42499033f, 0.21832959f, -0.12438384f, 0.12212509f, -0.25839558f, 0.12379986f, 1.0519059f, 0.5905394f});
  check_near(g[1], {0.079875737f, 0.39458072f, -1.2939678f, 2.7620904f});
  CHECK_THROWS_AS(fast::rms_norm(astype(x, int32), std::nullopt, 1e-5f), std::invalid_argument);
  CHECK_THROWS_AS(fast::rms_norm(astype(x, complex64), std::nullopt, 1e-5f), std::invalid_argument);
  CHECK_THROWS_AS(fast::rms_norm(array(1.0f), std::nullopt, 1e-5f), std::invalid_argument);
  CHECK_THROWS_AS(fast::rms_norm(x, ones({3}), 1e-5f), std::invalid_argument);
}

TEST_CASE("multivariate_normal: MLX's numbers") {
  const array mean({1.0f, 2.0f}), cov({2.0f, 0.5f, 0.5f, 1.0f}, {2, 2});
  check_near(random::multivariate_normal(mean, cov, {3}, float32, random::key(1)),
             {2.1346626f, 1.2532361f, 2.4854102f, 2.5699089f, 1.3030825f, 2.320802f}, 1e-5f);
  random::seed(4);
  check_near(random::multivariate_normal(mean, cov, {2}), {-1.3399675f, 1.8507478f, 3.485096f, 3.4900243f}, 1e-5f);
  const array covs = stack({array({2.0f, 0.5f, 0.0f, 0.5f, 1.0f, -0.3f, 0.0f, -0.3f, 0.7f}, {3, 3}),
                            ones({3, 3})});  // the second has rank 1
  const array many =
      random::multivariate_normal(array({1.0f, 2.0f, 3.0f}, {1, 3}), covs, {2, 2}, float32, random::key(5));
  CHECK(many.shape() == Shape{2, 2, 3});
  check_near(many,
             {-0.52588522f, 4.4108534f, 2.5265133f, 1.4277275f, 2.4277275f, 3.4277275f, -0.64326477f, 3.1114485f,
              2.8664391f, 0.73682272f, 1.7368227f, 2.7368226f},
             1e-3f);
  CHECK_THROWS_AS(random::multivariate_normal(mean, cov, {3}, float16), std::invalid_argument);
  CHECK_THROWS_AS(random::multivariate_normal(mean, eye(3), {3}), std::invalid_argument);
  CHECK_THROWS_AS(random::multivariate_normal(mean, ones({2, 3}), {3}), std::invalid_argument);
  CHECK_THROWS_AS(random::multivariate_normal(array(0.0f), eye(3), {3}), std::invalid_argument);
  CHECK_THROWS_AS(random::multivariate_normal(mean, mean, {3}), std::invalid_argument);
}

TEST_CASE("the default key sequence") {
  random::KeySequence& sequence = random::KeySequence::default_();
  sequence.seed(9);
  random::KeySequence own(9);
  CHECK(array_equal(sequence.next(), own.next()).item<bool>());
  CHECK(array_equal(random::default_key(), random::split(random::key(9)).first).item<bool>());
  const array drawn = random::bits({2}), expected = random::bits({2}, own.next());
  CHECK(array_equal(drawn, expected).item<bool>());
  // What it supplies inside of compile is captured state, not a constant.
  const auto f = compile([](const std::vector<array>&) {
    return std::vector<array>{random::bits({2}, random::KeySequence::default_().next())};
  });
  sequence.seed(9);
  const array first = f({})[0], second = f({})[0];
  CHECK(array_equal(first, random::bits({2}, random::split(random::key(9)).second)).item<bool>());
  CHECK_FALSE(array_equal(first, second).item<bool>());
  std::thread([&] { CHECK(&random::KeySequence::default_() != &sequence); }).join();
}

TEST_CASE("printing through the global formatter") {
  PrintFormatter& formatter = get_global_formatter();
  CHECK_FALSE(formatter.capitalize_bool);
  CHECK(printed(array(1) > array(0)) == "array(true, dtype=bool)");
  formatter.capitalize_bool = true;
  CHECK(printed(array(1) > array(0)) == "array(True, dtype=bool)");
  formatter.capitalize_bool = false;
  formatter.format_options.precision = 3;
  CHECK(get_printoptions().precision == 3);
  CHECK(printed(array({0.5f, 2.0f})) == "array([0.500, 2.000], dtype=float32)");
  std::ostringstream os;
  formatter.print(os, 0.25f);
  os << " " << 0.25f << " ";  // the stream's own format stands as it stood
  formatter.print(os, complex64_t{1, -2});
  os << " ";
  formatter.print(os, true);
  os << " ";
  formatter.print(os, int16_t{-3});
  formatter.print(os, uint16_t{7});
  formatter.print(os, int32_t{-3});
  formatter.print(os, uint32_t{7});
  formatter.print(os, ~uint64_t{0});
  os << " ";
  formatter.print(os, float16_t(0.5f));
  formatter.print(os, bfloat16_t(0.5f));
  formatter.print(os, 1e-3);
  CHECK(os.str() == "0.250 0.25 1.000-2.000j true -37-3718446744073709551615 0.5000.5000.001");
  formatter.format_options = {};
}

TEST_CASE("numbers of other widths, and kinds of dtypes, go to a stream") {
  std::ostringstream os;
  os << float16_t(1.5f) << " " << bfloat16_t(-2.5f) << " " << complex64_t{1, -2} << " " << complex64_t{0.5f, 0.25f};
  for (const Dtype t : {bool_, uint8, int16, float32, bfloat16, complex64}) os << " " << kindof(t);
  CHECK(os.str() == "1.5 -2.5 1-2j 0.5+0.25j b u i f V c");
}

TEST_CASE("devices: what is known of them") {
  const DeviceInfo& cpu = device_info(Device::cpu);
  CHECK_FALSE(std::get<std::string>(cpu.at("device_name")).empty());
  CHECK_FALSE(std::get<std::string>(cpu.at("architecture")).empty());
  CHECK(device_info(Device(Device::cpu, 3)).empty());
  CHECK(device_info(Device(Device::gpu, 99)).empty());
  CHECK(gpu::device_count() == device_count(Device::gpu));
  CHECK(gpu::is_available() == (gpu::device_count() > 0));
  CHECK(cu::is_available() == gpu::is_available());
  CHECK(cu::device_info(99).empty());
  if (gpu::is_available()) {
    const DeviceInfo& info = gpu::device_info();
    CHECK(std::get<size_t>(info.at("free_memory")) <= std::get<size_t>(info.at("total_memory")));
    CHECK(std::get<std::string>(info.at("architecture")).starts_with("sm_"));
    CHECK(std::get<size_t>(info.at("compute_capability_major")) >= 8);
    CHECK(std::get<std::string>(info.at("uuid")).starts_with("GPU-"));
    CHECK(std::get<std::string>(info.at("pci_bus_id")).ends_with(".0"));
  } else {
    CHECK(gpu::device_info().empty());
  }
  CHECK_FALSE(metal::is_available());
  CHECK_NOTHROW(metal::start_capture("trace"));
  CHECK_NOTHROW(metal::stop_capture());
  CHECK_NOTHROW(metal::set_metallib_path("x"));
  CHECK_THROWS_AS(metal::device_info(), std::runtime_error);
  CHECK_THROWS_AS(metal::get_metallib_path(), std::runtime_error);
  CHECK(std::string(version()) == WEFT_VERSION);
}

TEST_CASE("a thread's own stream is waited for, the main thread, variables of the environment") {
  const ThreadLocalStream local = new_thread_local_stream(Device::cpu);
  const array y = add(arange(5), array(1), local);
  async_eval(y);
  synchronize(local);
  CHECK(y.is_available());
  const bool here = is_main_thread();
  std::thread([&] { CHECK(is_main_thread() == false); }).join();
  CHECK(is_main_thread() == here);
  ::setenv("WEFT_TEST_VARIABLE", "42 beans", 1);
  CHECK(env::get_var("WEFT_TEST_VARIABLE", 7) == 42);
  CHECK(env::get_var("WEFT_TEST_VARIABLE", "none") == "42 beans");
  ::unsetenv("WEFT_TEST_VARIABLE");
  CHECK(env::get_var("WEFT_TEST_VARIABLE", 7) == 7);
  CHECK(env::get_var("WEFT_TEST_VARIABLE", "none") == "none");
}

TEST_CASE("compile modes") {
  int traced = 0;
  const auto f = compile([&](const std::vector<array>& in) {
    ++traced;
    return std::vector<array>{exp(in[0]) + in[0]};
  });
  const array x({0.0f, 1.0f});
  for (const CompileMode mode : {CompileMode::no_simplify, CompileMode::no_fuse, CompileMode::enabled}) {
    set_compile_mode(mode);
    check_near(f({x})[0], {1, 3.7182818f});
  }
  CHECK(traced == 1);
  set_compile_mode(CompileMode::disabled);
  f({x}), f({x});
  CHECK(traced == 3);
  set_compile_mode(CompileMode::enabled);
  const ValueAndGradFn g =
      value_and_grad([](const std::vector<array>& in) { return std::vector<array>{sum(in[0])}; }, 0);
  const SimpleValueAndGradFn h = value_and_grad([](const std::vector<array>& in) { return sum(in[0]); }, 0);
  CHECK(g({x}).first[0].item<float>() == h({x}).first.item<float>());
}

TEST_CASE("graphs as text and for Graphviz") {
  const array a({1.0f, 2.0f}), b({3.0f, 4.0f});
  const array c = a + b, d = exp(c);
  std::ostringstream text;
  print_graph(text, d);
  CHECK(text.str() ==
        "Inputs: A [(2), float32], B [(2), float32]\nOutputs: C [(2), float32]\n"
        "add A [(2), float32], B [(2), float32] -> D [(2), float32]\nexp D [(2), float32] -> C [(2), float32]\n");
  NodeNamer namer;
  namer.set_name(a, "left");
  namer.set_name(b, "right");
  namer.set_name(c, "sum");
  namer.set_name(d, "result");
  std::ostringstream dot;
  export_to_dot(dot, namer, c, d);
  const std::string add = std::to_string(c.value().node->id()), exponential = std::to_string(d.value().node->id());
  CHECK(dot.str() == "digraph {\n{ rank=source; \"left\"; }\n{ rank=source; \"right\"; }\n{ " + add +
                         " [label=\"add\", shape=rectangle]; }\n\"left\" -> " + add + "\n\"right\" -> " + add +
                         "\n{ \"sum\"; }\n" + add + " -> \"sum\"\n{ " + exponential +
                         " [label=\"exp\", shape=rectangle]; }\n\"sum\" -> " + exponential +
                         "\n{ rank=sink; \"result\"; }\n" + exponential + " -> \"result\"\n}\n");
  eval(d);
  std::ostringstream after;
  print_graph(after, std::vector<array>{d});
  CHECK(after.str() == "Inputs: A [(2), float32]\nOutputs: A [(2), float32]\n");
  std::ostringstream region;
  print_graph(region, namer, softmax(a, -1), median(b));
  CHECK(region.str().find("softmax left") != std::string::npos);
  NodeNamer letters;
  std::string last;
  std::vector<array> many;
  for (int k = 0; k < 28; ++k) last = letters.get_name(many.emplace_back(static_cast<float>(k)));
  CHECK(last == "AB");
  CHECK(letters.get_name(many[25]) == "Z");
}
