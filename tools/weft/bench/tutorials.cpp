// weft bench tutorials: the kernels of Triton's tutorials on a GPU. bench/triton_tutorials.py is Triton's side.
#include "tools/weft/bench/tutorials.h"

#include <fmt/format.h>

#include <algorithm>

#include "examples/kernels/tutorial_attention.h"
#include "examples/kernels/tutorials.h"
#include "tools/weft/bench/support.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

using k::f16;
using ::tutorials::AttentionTile;
using ::tutorials::AttentionTiles;
using ::tutorials::Meta;

array drawn(const Shape& shape, Dtype dtype, uint64_t seed) {
  return random::normal(shape, dtype, 0, 1, random::key(seed));
}

/// Makes a tutorial of one kernel.
template <class Kernel, class... Arrays>
Tutorial of_kernel(const std::string& name, const std::string& dtype, const Kernel& kernel, const Arrays&... in) {
  return {name, dtype, {in...}, kernel, {kernel.program(in...)}};
}

Tutorial vector_add() {
  constexpr int n = 1 << 27;
  const auto kernel = k::kernel("add", ::tutorials::add).grid([](auto x, auto, auto) {
    return k::Grid{k::cdiv(x.dim(0), ::tutorials::vector_block)};
  });
  return of_kernel("vector add", "float32", kernel, drawn({n}, float32, 1), drawn({n}, float32, 2));
}

Tutorial softmax_of(int rows, int columns) {
  const auto kernel =
      k::kernel("softmax", ::tutorials::softmax_rows).grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
  return of_kernel(fmt::format("fused softmax {} x {}", rows, columns), "float32", kernel,
                   drawn({rows, columns}, float32, 1));
}

/// Blocks of a GPU take tiles of this size in turns by themselves: the persistent matmul is the same kernel.
constexpr Meta large{.m = 128, .n = 256, .k = 64};

Tutorial product(const std::string& name, int m, int n, int depth) {
  const auto kernel = k::kernel("matmul", ::tutorials::product<f16>)
                          .config(large)
                          .grid([](auto a, auto b, auto, Meta t) { return ::tutorials::grid_of_product(a, b, t); })
                          .outputs(::tutorials::shape_of_product);
  return of_kernel(fmt::format("{} {} x {} x {}", name, m, n, depth), "float16", kernel, drawn({m, depth}, float16, 1),
                   drawn({depth, n}, float16, 2));
}

Tutorial narrow_product(int n) {
  Meta meta = large;
  meta.k = 128;
  const auto kernel =
      k::kernel("narrow_matmul", ::tutorials::narrow_product<k::e5m2>)
          .config(meta)
          .grid([](auto a, auto b, auto, Meta t) { return k::Grid{k::cdiv(a.dim(0), t.m) * k::cdiv(b.dim(0), t.n)}; })
          .outputs([](const array& a, const array& b) {
            return Shape{a.shape(0), b.shape(0)};
          });
  const auto narrow = [&](uint64_t seed) { return astype(drawn({n, n}, float32, seed), float8_e5m2); };
  return of_kernel(fmt::format("matmul {0} x {0} x {0}, 8 bits", n), "float8_e5m2", kernel, narrow(1), narrow(2));
}

Tutorial dropout() {
  constexpr int n = 1 << 26;
  const auto kernel = k::kernel("dropout", ::tutorials::seeded_dropout).config(0.5).grid([](auto x, auto, auto) {
    return k::Grid{k::cdiv(x.dim(0), ::tutorials::dropout_block)};
  });
  return of_kernel("low-memory dropout", "float32", kernel, drawn({n}, float32, 1), array({123}));
}

constexpr int norm_buffers = 128;

Tutorial norm(int rows, int columns) {
  Tutorial out{
      fmt::format("layer norm {} x {}", rows, columns), "float16", {}, ::tutorials::norm_of<f16>(norm_buffers), {}};
  out.inputs = {drawn({rows, columns}, float16, 1), drawn({columns}, float16, 2), drawn({columns}, float16, 3)};
  out.programs = {::tutorials::norm_forward_kernel<f16>().program(out.inputs[0], out.inputs[1], out.inputs[2])};
  return out;
}

Tutorial norm_backward(int rows, int columns) {
  Tutorial out{fmt::format("layer norm {} x {}, backward", rows, columns),
               "float16",
               {},
               ::tutorials::norm_gradient<f16>(norm_buffers),
               {}};
  out.inputs = {drawn({rows, columns}, float16, 1), drawn({columns}, float16, 2), drawn({rows}, float32, 3),
                drawn({rows}, float32, 4), drawn({rows, columns}, float16, 5)};
  const std::vector<array>& in = out.inputs;
  const array sums = zeros({norm_buffers, columns});
  out.programs = {::tutorials::norm_backward_kernel<f16>().program(in[0], in[1], in[2], in[3], in[4],
                                                                   zeros({norm_buffers}, int32), sums, sums)};
  return out;
}

/// The tiles for a width that keep all sums in registers.
AttentionTiles tiles_of(int width, bool causal) {
  const AttentionTile square{128, 128, causal};
  return width <= 64 ? AttentionTiles{square, square, {64, 128, causal}}
                     : AttentionTiles{square, {128, 64, causal}, {64, 128, causal}};
}

std::vector<array> heads_of(int heads, int length, int width, int count) {
  std::vector<array> out;
  for (int i = 0; i < count; ++i) out.push_back(drawn({heads, length, width}, float16, static_cast<uint64_t>(i)));
  return out;
}

std::string case_of(int heads, int length, int width, bool causal) {
  return fmt::format("attention {} x {} x {}{}", heads, length, width, causal ? ", causal" : "");
}

Tutorial attention(int heads, int length, int width, bool causal) {
  const std::vector<array> in = heads_of(heads, length, width, 3);
  return of_kernel(case_of(heads, length, width, causal), "float16",
                   ::tutorials::attention_forward<f16>(tiles_of(width, causal).forward), in[0], in[1], in[2]);
}

Tutorial attention_backward(int heads, int length, int width, bool causal) {
  const AttentionTiles tiles = tiles_of(width, causal);
  Tutorial out{case_of(heads, length, width, causal) + ", backward",
               "float16",
               heads_of(heads, length, width, 4),
               ::tutorials::attention_gradient<f16>(tiles),
               {}};
  const array sums = drawn({heads, length}, float32, 9) + 10.0f, g = drawn({heads, length, width}, float16, 10);
  out.inputs.push_back(sums), out.inputs.push_back(g);
  const std::vector<array>& in = out.inputs;
  out.programs = {::tutorials::attention_queries_kernel<f16>(tiles.queries).program(in[0], in[1], in[2], sums, sums, g),
                  ::tutorials::attention_keys_kernel<f16>(tiles.keys).program(in[0], in[1], in[2], sums, sums, g)};
  return out;
}

Tutorial grouped(int groups, int n) {
  std::vector<int32_t> list;
  for (int group = 0; group < groups; ++group)
    for (int tile = 0; tile < n / large.m; ++tile)
      list.insert(list.end(), {group, static_cast<int>(group * n / large.m) + tile});
  const array tiles(list.data(), {static_cast<int>(list.size()) / 2, 2});
  const auto kernel =
      k::kernel("grouped_rows", ::tutorials::grouped_rows<f16>)
          .config(large)
          .grid([](auto, auto b, auto table, auto, Meta t) { return k::Grid{table.dim(0) * k::cdiv(b.dim(2), t.n)}; })
          .outputs([](const array& a, const array& b, const array&) {
            return Shape{a.shape(0), b.shape(2)};
          });
  return of_kernel(fmt::format("grouped matmul {} x {}", groups, n), "float16", kernel,
                   drawn({groups * n, n}, float16, 1), drawn({groups, n, n}, float16, 2), tiles);
}

Tutorial inverse_sines() {
  constexpr int n = 1 << 26;
  const auto kernel = k::kernel("asin", [](k::In<float, 1> x, k::Out<float, 1> y) {
                        const auto at = k::ds(k::program_id(0) * 1024, 1024);
                        y(at) = k::apply("arcsin", x(at).load());
                      }).grid([](auto x, auto) { return k::Grid{k::cdiv(x.dim(0), 1024)}; });
  return of_kernel("asin", "float32", kernel, random::uniform(array(-1.0f), array(1.0f), {n}, float32, random::key(1)));
}

}  // namespace

std::vector<Tutorial> tutorials() {
  return {vector_add(),
          softmax_of(4096, 1024),
          softmax_of(4096, 8192),
          product("matmul", 4096, 4096, 4096),
          narrow_product(4096),
          product("persistent matmul", 8192, 8192, 512),
          dropout(),
          norm(4096, 4096),
          norm(4096, 8192),
          norm_backward(4096, 4096),
          norm_backward(4096, 8192),
          attention(128, 4096, 64, true),
          attention(128, 4096, 128, true),
          attention(128, 4096, 128, false),
          attention_backward(128, 4096, 64, true),
          attention_backward(128, 4096, 128, true),
          inverse_sines(),
          grouped(4, 1024)};
}

void bench_tutorials(const BenchOptions& o) {
  need_gpu("tutorials");
  for (const Tutorial& t : tutorials()) {
    if (!o.only.empty() && t.name.find(o.only) == std::string::npos) continue;
    eval(t.inputs);
    const ArrayFunction f = compiled_as(t.call, t.inputs, false);
    f(t.inputs);
    synchronize();
    Row("tutorials", o, t.dtype)
        .text("name", t.name)
        .number("ms", device_ms(reps_of(o, 9), 20, [&] { f(t.inputs); }))
        .print();
  }
}

}  // namespace weft::tool
