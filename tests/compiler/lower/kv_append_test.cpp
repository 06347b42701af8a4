// Attention of one query that enters the newest key and value into its cache: one launch with what makes the query and
// that row, shared by blocks of a cluster. The kernels are tile IR like any other, so the CPU's code generator
// runs them here.
#include <random>

#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

using weft::test::SimtTarget;

struct Case {
  int64_t heads, sharers, keys, width;
  Dtype dtype;
};

/// Half of x turned against the other half, as rotary encoding does.
Value turned(const Value& x, const Value& by) {
  const int axis = x.type().rank() - 1;
  const int64_t half = x.shape().back().bound() / 2;
  const Value a = slice_axis(x, axis, 0, half), b = slice_axis(x, axis, half, half),
              c = cast(graph::broadcast(by, a.shape()), a.dtype());
  return concat({a - b * c, a * c + b}, axis);
}

/// Inputs: query, new key, new value, what they are transposed by, cache, number of keys. Results: attention, the
/// cache.
Graph decoded(const Case& c, Dtype t, int64_t before_last = 1, bool reads_cache = false) {
  const Value q = parameter({{1, c.heads, c.sharers, 1, c.width}, t}), k = parameter({{1, c.heads, 1, c.width}, t}),
              v = parameter({{1, c.heads, 1, c.width}, t});
  const Value by = parameter({{}, float32}), cache = parameter({{1, 2 * c.heads, c.keys, c.width}, t}),
              n = parameter({{}, int32});
  const Value fresh = reshape(concat({turned(k, by), v}, 1), {1, 1, 2 * c.heads, 1, c.width});
  const Value all = scatter(ScatterMode::set, cache, {reshape(n, {1}) - static_cast<double>(before_last)}, fresh, {2});
  const auto shared = [&](int64_t first) {
    return graph::broadcast(expand_dims(slice(all, {0, first, 0, 0}, {1, c.heads, c.keys, c.width}), {2}),
                            {1, c.heads, c.sharers, c.keys, c.width});
  };
  Values results{attention(turned(q, by), shared(0), shared(c.heads), 0.2, false, n), all};
  if (reads_cache) results.push_back(sum(all, {3}));
  return {{q, k, v, by, cache, n}, results};
}

std::vector<HostTensor> random_inputs(std::mt19937_64& engine, const Graph& g, int64_t count) {
  std::vector<HostTensor> inputs;
  std::normal_distribution<double> normal;
  for (const Value& v : g.inputs) {
    HostTensor t{v.type(), {}};
    for (int64_t k = num_elements(v.shape()); k > 0; --k)
      t.data.push_back(is_float(v.dtype()) ? kernel::round_to(Number::of_real(normal(engine)), v.dtype())
                                           : Number::of_int(count));
    inputs.push_back(std::move(t));
  }
  return inputs;
}

std::pair<std::vector<HostTensor>, int64_t> run(const Graph& g, const std::vector<HostTensor>& inputs,
                                                target::Target& target, bool in_place = true) {
  Source source{g, {}, {}};
  if (in_place) source.updates = {{1, 4}};
  const auto program = build(source, target);
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  const auto results = program->run(storages);
  std::pair<std::vector<HostTensor>, int64_t> out{{}, program->stats().count()};
  for (size_t k = 0; k < results.size(); ++k) out.first.push_back(from_storage(results[k], g.outputs[k].type()));
  return out;
}

}  // namespace

TEST_CASE("attention of one query enters its own key and value: one launch, at any number of keys") {
  std::mt19937_64 engine(12);
  int64_t turn = 0;
  for (const Case& c : {Case{3, 1, 500, 64, float32}, Case{2, 4, 300, 128, bfloat16}, Case{2, 2, 40, 24, float16},
                        Case{1, 3, 700, 80, bfloat16}, Case{20, 1, 150, 32, float32}})
    for (const int64_t blocks : {2, 8}) {
      if (!weft::test::taken(turn++)) continue;
      SimtTarget target(blocks);
      for (const int64_t count : {int64_t{1}, int64_t{2}, c.keys / 3, c.keys, c.keys + 1, int64_t{0}, int64_t{-3}}) {
        CAPTURE(c.keys);
        CAPTURE(count);
        CAPTURE(blocks);
        const auto inputs = random_inputs(engine, decoded(c, c.dtype), count);
        std::vector<HostTensor> wide;
        for (HostTensor t : inputs) {
          if (t.type.dtype == c.dtype && t.type.rank() > 0) t.type.dtype = float64;
          wide.push_back(std::move(t));
        }
        const auto expected = evaluate_reference(decoded(c, float64), wide);
        const auto [got, launches] = run(decoded(c, c.dtype), inputs, target);
        CHECK(launches == 1);
        for (const size_t k : {size_t{0}, size_t{1}}) {
          double error = 0;
          for (size_t i = 0; i < got[k].data.size(); ++i)
            error = std::max(error, std::abs(got[k].data[i].f - expected[k].data[i].f) /
                                        std::max(1.0, std::abs(expected[k].data[i].f)));
          CHECK(error <= (c.dtype == float32 ? 2e-5 : c.dtype == float16 ? 4e-3 : 3e-2));
        }
        // Entered as by itself, and nothing else is touched; into a copy where the old cache is kept.
        weft::test::SimtTarget alone;
        const auto [separate, several] = run(decoded(c, c.dtype), inputs, alone);
        CHECK(several > 1);
        CHECK(difference(got[1], separate[1], 0) == "");
        const auto copied = run(decoded(c, c.dtype), inputs, target, false).first;
        CHECK(difference(copied[0], got[0], 0) == "");
        CHECK(difference(copied[1], got[1], 0) == "");
      }
    }
}

TEST_CASE("a row that is not the last one, or that others read as well, is entered by itself") {
  std::mt19937_64 engine(13);
  const Case c{2, 2, 200, 32, float32};
  SimtTarget target(4);
  for (const bool reads_cache : {false, true}) {
    const Graph g = decoded(c, float32, reads_cache ? 1 : 2, reads_cache);
    const auto inputs = random_inputs(engine, g, 60);
    const auto expected = evaluate_reference(g, inputs);
    const auto [got, launches] = run(g, inputs, target);
    CHECK(launches >= 3);
    for (size_t k = 0; k < got.size(); ++k)
      for (size_t i = 0; i < got[k].data.size(); ++i) CHECK(std::abs(got[k].data[i].f - expected[k].data[i].f) < 1e-4);
  }
}
