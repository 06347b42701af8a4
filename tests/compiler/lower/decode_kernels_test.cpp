// What a device of many threads makes of one row: products as rows groups with all that stands around them, and
// attention of one query over a cache. The kernels are tile IR like any other, so the CPU's code generator runs them
// here.
#include <random>

#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

using weft::test::SimtTarget;

HostTensor random_tensor(std::mt19937_64& engine, const graph::Type& type, double deviation = 1) {
  HostTensor t{type, {}};
  std::normal_distribution<double> normal(0, deviation);
  for (int64_t k = num_elements(type.shape); k > 0; --k)
    t.data.push_back(kernel::round_to(Number::of_real(normal(engine)), type.dtype));
  return t;
}

HostTensor widened(HostTensor t) {
  if (is_float(t.type.dtype)) t.type.dtype = float64;
  return t;
}

struct Run {
  std::vector<HostTensor> outputs;
  std::shared_ptr<const Program> program;
};

Run run(const Graph& g, const std::vector<HostTensor>& inputs) {
  SimtTarget target;
  Run out{{}, build({g, {}, {}}, target)};
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  const auto results = out.program->run(storages);
  for (size_t k = 0; k < results.size(); ++k) out.outputs.push_back(from_storage(results[k], g.outputs[k].type()));
  return out;
}

/// `of(dtype)` builds a graph over that float type; held against float64 on the same inputs.
std::string error_of(const std::function<Graph(Dtype)>& of, const std::vector<HostTensor>& inputs, Dtype dtype,
                     double bound) {
  std::vector<HostTensor> wide;
  for (const HostTensor& t : inputs) wide.push_back(widened(t));
  const auto expected = evaluate_reference(of(float64), wide);
  const auto got = run(of(dtype), inputs).outputs;
  for (size_t k = 0; k < expected.size(); ++k)
    for (size_t i = 0; i < expected[k].data.size(); ++i)
      if (const double a = got[k].data[i].f, b = expected[k].data[i].f;
          !(std::abs(a - b) <= bound * std::max(1.0, std::abs(b))))
        return fmt::format("output {} element {}: {} instead of {}", k, i, a, b);
  return {};
}

}  // namespace

TEST_CASE("a product with one row is one launch with what stands around it, at any size") {
  std::mt19937_64 engine(7);
  for (const auto& size :
       {std::pair<int64_t, int64_t>{1, 40}, {5, 256}, {130, 300}, {4099, 96}, {8192, 768}, {64, 5000}})
    for (const Dtype dtype : {float32, bfloat16}) {
      const int64_t n = size.first, k = size.second;
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(dtype_name(dtype));
      const auto of = [&](Dtype t) {
        const Value x = parameter({{1, 1, k}, t}), w = parameter({{n, k}, t}), b = parameter({{n}, t}),
                    r = parameter({{1, 1, n}, t});
        const Value y = dot(x, w, {2}, {1});
        return Graph{{x, w, b, r}, {gelu_tanh(y + graph::broadcast(b, y.shape())) + r}};
      };
      std::vector<HostTensor> inputs;
      for (const Value& v : of(dtype).inputs)
        inputs.push_back(random_tensor(engine, v.type(), v.type().rank() == 2 ? 0.1 : 1));
      CHECK(error_of(of, inputs, dtype, dtype == float32 ? 2e-5 : 3e-2) == "");
      CHECK(run(of(dtype), inputs).program->stats().count() == 1);
    }
}

TEST_CASE(
    "two products of one row and their gate are one launch; a matrix on the left and one that is read across are right "
    "as well") {
  std::mt19937_64 engine(8);
  const auto gated = [](Dtype t) {
    const Value x = parameter({{1, 96}, t}), u = parameter({{160, 96}, t}), g = parameter({{160, 96}, t});
    const Value a = dot(x, g, {1}, {1});
    return Graph{{x, u, g}, {a * unary(Op::recip, exp(unary(Op::neg, a)) + 1.0) * dot(x, u, {1}, {1})}};
  };
  std::vector<HostTensor> inputs;
  for (const Value& v : gated(float32).inputs)
    inputs.push_back(random_tensor(engine, v.type(), v.type().rank() == 2 ? 0.2 : 1));
  CHECK(error_of(gated, inputs, float32, 2e-5) == "");
  CHECK(run(gated(float32), inputs).program->stats().count() == 1);

  const auto sides = [](Dtype t) {
    const Value x = parameter({{70, 1}, t}), w = parameter({{33, 70}, t}), across = parameter({{70, 48}, t});
    return Graph{{x, w, across}, {dot(w, x, {1}, {0}), dot(x, across, {0}, {0})}};
  };
  inputs.clear();
  for (const Value& v : sides(float32).inputs) inputs.push_back(random_tensor(engine, v.type()));
  CHECK(error_of(sides, inputs, float32, 4e-5) == "");
}

TEST_CASE("what lies between two products of one row has no more bits in memory than it has") {
  constexpr int64_t width = 96, hidden = 640;
  const auto of = [](Dtype t) {
    const Value x = parameter({{1, width}, t}), w = parameter({{hidden, width}, t}),
                v = parameter({{width, hidden}, t});
    return Graph{{x, w, v}, {dot(gelu_tanh(dot(x, w, {1}, {1})), v, {1}, {1})}};
  };
  std::mt19937_64 engine(15);
  std::vector<HostTensor> inputs;
  for (const Value& v : of(bfloat16).inputs)
    inputs.push_back(random_tensor(engine, v.type(), v.shape()[0] > 1 ? 0.1 : 1));
  CHECK(error_of(of, inputs, bfloat16, 3e-2) == "");
  const auto program = run(of(bfloat16), inputs).program;
  CHECK(program->stats().count() == 2);
  CHECK(program->print("plan").find(fmt::format("arena {} bytes", 2 * hidden)) != std::string::npos);
}

TEST_CASE("attention of one query over a cache reads as many rows as a number in memory says") {
  std::mt19937_64 engine(9);
  struct Case {
    int64_t heads, sharers, keys, width, values;
    Dtype dtype;
  };
  for (const Case& c :
       {Case{3, 1, 500, 64, 64, float32}, Case{2, 4, 300, 128, 128, bfloat16}, Case{2, 1, 40, 80, 24, float16}})
    for (const int64_t length : {int64_t{1}, c.keys / 3, c.keys}) {
      CAPTURE(c.keys);
      CAPTURE(length);
      const auto of = [&](Dtype t) {
        const Value q = parameter({{1, c.heads, c.sharers, 1, c.width}, t}),
                    k = parameter({{1, c.heads, c.keys, c.width}, t}),
                    v = parameter({{1, c.heads, c.keys, c.values}, t});
        const Value n = parameter({{}, int32});
        const auto shared = [&](const Value& x) {
          return graph::broadcast(expand_dims(x, {2}), {1, c.heads, c.sharers, c.keys, x.shape()[3]});
        };
        return Graph{{q, k, v, n}, {attention(q, shared(k), shared(v), 0.2, false, n)}};
      };
      std::vector<HostTensor> inputs;
      for (const Value& v : of(c.dtype).inputs)
        if (is_float(v.type().dtype)) inputs.push_back(random_tensor(engine, v.type()));
      inputs.push_back({{{}, int32}, {Number::of_int(length)}});
      // What lies behind the length is never looked at.
      auto poisoned = inputs;
      for (size_t k : {size_t{1}, size_t{2}}) {
        const int64_t width = k == 1 ? c.width : c.values;
        for (int64_t h = 0; h < c.heads; ++h)
          for (int64_t i = length * width; i < c.keys * width; ++i)
            poisoned[k].data[static_cast<size_t>(h * c.keys * width + i)] = Number::of_real(NAN);
      }
      CHECK(error_of(of, inputs, c.dtype, c.dtype == float32 ? 2e-5 : 2e-2) == "");
      const Run whole = run(of(c.dtype), inputs), part = run(of(c.dtype), poisoned);
      CHECK(difference(part.outputs[0], whole.outputs[0], 0) == "");
      CHECK(whole.program->stats().count() == (c.keys >= 128 ? 2 : 1));  // pieces, and what joins them
    }
}

TEST_CASE("a root mean square norm before products of one row costs no launch") {
  std::mt19937_64 engine(10);
  for (const Dtype dtype : {float32, bfloat16})
    for (const int64_t n : {int64_t{3}, int64_t{515}, int64_t{8200}}) {
      CAPTURE(dtype_name(dtype));
      CAPTURE(n);
      constexpr int64_t k = 320;
      const auto of = [&](Dtype t) {
        const Dtype wide = t == float64 ? float64 : float32;
        const Value x = parameter({{1, 1, k}, wide}), g = parameter({{k}, t}), w = parameter({{n, k}, t}),
                    u = parameter({{n, k}, t});
        const Value mean = sum(x * x, {2}, true) * (1.0 / k), scale = unary(Op::rsqrt, mean + 1e-5);
        const Value normed =
            cast(x * graph::broadcast(scale, x.shape()) * cast(graph::broadcast(g, x.shape()), wide), t);
        return Graph{{x, g, w, u}, {dot(normed, w, {2}, {1}) * dot(normed, u, {2}, {1})}};
      };
      std::vector<HostTensor> inputs;
      for (const Value& v : of(dtype).inputs)
        inputs.push_back(random_tensor(engine, v.type(), v.type().rank() == 2 ? 0.1 : 1));
      CHECK(error_of(of, inputs, dtype, dtype == float32 ? 2e-5 : 4e-2) == "");
      CHECK(run(of(dtype), inputs).program->stats().count() == 1);
    }
}

TEST_CASE("a layer norm before a product of one row costs no launch where the matrix is small") {
  std::mt19937_64 engine(11);
  for (const Dtype dtype : {float32, bfloat16})
    for (const auto& size : {std::pair<int64_t, int64_t>{3, 320}, {320, 320}, {515, 768}, {4099, 1024}}) {
      const int64_t rows = size.first, depth = size.second;
      CAPTURE(dtype_name(dtype));
      CAPTURE(rows);
      const double inverse = 1.0 / static_cast<double>(depth);
      const auto of = [&](Dtype t) {
        const Dtype wide = t == float64 ? float64 : float32;
        const Value x = parameter({{1, 1, depth}, wide}), g = parameter({{depth}, t}), b = parameter({{depth}, t}),
                    w = parameter({{rows, depth}, t});
        const Value mean = sum(x, {2}, true) * inverse, centred = x - graph::broadcast(mean, x.shape());
        const Value scale = unary(Op::rsqrt, sum(centred * centred, {2}, true) * inverse + 1e-5);
        const auto spread = [&](const Value& v) { return cast(graph::broadcast(v, x.shape()), wide); };
        const Value normed = cast(centred * graph::broadcast(scale, x.shape()) * spread(g) + spread(b), t);
        return Graph{{x, g, b, w}, {dot(normed, w, {2}, {1})}};
      };
      std::vector<HostTensor> inputs;
      for (const Value& v : of(dtype).inputs)
        inputs.push_back(random_tensor(engine, v.type(), v.type().rank() == 2 ? 0.1 : 1));
      for (Number& v : inputs[0].data)
        v = kernel::round_to(Number::of_real(v.f + 30), float32);  // a mean far from zero
      CHECK(error_of(of, inputs, dtype, dtype == float32 ? 4e-5 : 4e-2) == "");
      CHECK(run(of(dtype), inputs).program->stats().count() == (rows * depth <= 4 << 20 ? 1 : 2));
    }
}

TEST_CASE("what no step of a program writes is constant in its kernels, and nothing else is") {
  struct Recorder final : SimtTarget {
    std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> list) override {
      kernels.assign(list.begin(), list.end());
      return SimtTarget::compile(list);
    }
    std::vector<kernel::Kernel> kernels;
  } target;
  const Value x = parameter({{64, 64}, float32}), w = parameter({{64, 64}, float32}),
              state = parameter({{64}, float32}), other = parameter({{64}, float32});
  const Value sums = sum(x * w, {1}) + state;
  const Graph g{{x, w, state, other}, {sums, sum(w, {1}) * other}};
  build({g, {}, {{0, 2}}}, target);
  int64_t constants = 0;
  for (const kernel::Kernel& k : target.kernels)
    for (const kernel::Param& p : k.params) {
      CHECK(!(p.constant && p.written));
      constants += p.constant;
    }
  CHECK(constants >= 3);
  const auto of = [&](const std::vector<Update>& updates) {
    build({g, {}, updates}, target);
    int64_t count = 0;
    for (const kernel::Kernel& k : target.kernels)
      count += std::count_if(k.params.begin(), k.params.end(), [](const kernel::Param& p) { return p.constant; });
    return count;
  };
  CHECK(of({}) == of({{0, 2}}) + 1);  // the state, which is written over in the other program
}

TEST_CASE(
    "launches of one program that follow each other are one: what is chosen, where it is noted, and the next place") {
  const auto of = [](Dtype t) {
    const Value x = parameter({{200}, t}), list = parameter({{32}, int32}), at = parameter({{1}, int32});
    const Value best = cast(max(x, {0}) * 100.0, int32);
    return Graph{{x, list, at}, {scatter(ScatterMode::set, list, {at}, reshape(best, {1, 1}), {0}), at + 1.0}};
  };
  std::mt19937_64 engine(14);
  std::vector<HostTensor> inputs{random_tensor(engine, of(float32).inputs[0].type()),
                                 random_tensor(engine, of(float32).inputs[1].type()),
                                 {{{1}, int32}, {Number::of_int(7)}}};
  SimtTarget target;
  const Graph g = of(float32);
  const auto program = build({g, {}, {{0, 1}, {1, 2}}}, target);
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  const auto expected = evaluate_reference(g, inputs);
  const auto results = program->run(storages);
  for (size_t k = 0; k < results.size(); ++k)
    CHECK(difference(from_storage(results[k], g.outputs[k].type()), expected[k], 0) == "");
  CHECK(program->stats().count() == 1);
}
