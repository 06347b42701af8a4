// The passes one by one: simplification rules, memory placement, updates in place, symbolic lengths, printing.
#include <algorithm>
#include <random>

#include "base/error.h"
#include "compiler/ir/grouping.h"
#include "compiler/ir/verify.h"
#include "compiler/plan/arena.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/support.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"
#include "runtime/threads.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

Value param(Shape shape, Dtype dtype = float32) { return parameter({std::move(shape), dtype}); }

/// How many nodes are left after simplification, parameters not counted.
int simplified_size(const Graph& g) {
  Ir ir = eliminate_dead_code(simplify(import({g, {}, {}})));
  compiler::verify(ir);
  return ir.size() - static_cast<int>(ir.inputs.size());
}

HostTensor counting(const Shape& shape, double start = 0) {
  HostTensor t{{shape, float32}, {}};
  for (int64_t k = 0; k < num_elements(shape); ++k) t.data.push_back(Number::of_real(start + static_cast<double>(k)));
  return t;
}

}  // namespace

TEST_CASE("import inlines composites as a graph of their bodies has them") {
  const Value x = param({8, 16}), scale = param({16}), shift = param({16}), w = param({16, 16});
  const Value normed = layer_norm(x, scale, shift, 1e-5), other = x * 2.0;
  const Value y = gelu_tanh(matmul(gelu(normed), w)) + other;
  const auto ignores =
      std::make_shared<Composite>(Composite{"first", "", [](std::span<const Value> in) { return Values{in[0]}; }, {}});
  const Graph g{{x, scale, shift, w}, {softmax(composite(ignores, {y, unary(Op::cos, other)})[0], {1}), normed}};
  const Ir ir = import({g, {}, {}});
  CHECK(print(ir) == print(import({inline_composites(g), {}, {}})));
  CHECK(std::ranges::none_of(ir.nodes, [](const IrNode& n) { return n.op == Op::composite || n.op == Op::cos; }));
  CHECK(std::ranges::count(ir.regions, "gelu_tanh", &InlinedRegion::name) == 1);
}

TEST_CASE("simplify: what changes nothing goes away") {
  Value x = param({4, 6}), i = param({4, 6}, int32), b = param({4, 6}, bool_);
  CHECK(simplified_size({{x}, {x * 1.0}}) == 0);
  CHECK(simplified_size({{x}, {x - 0.0}}) == 0);
  CHECK(simplified_size({{x}, {-(-x)}}) == 0);
  CHECK(simplified_size({{i}, {i + zeros_like(i)}}) == 0);
  CHECK(simplified_size({{x}, {permute(permute(x, {1, 0}), {1, 0})}}) == 0);
  CHECK(simplified_size({{x}, {graph::reshape(graph::reshape(x, {24}), {4, 6})}}) == 0);
  CHECK(simplified_size({{x}, {graph::slice(x, {0, 0}, {4, 6})}}) == 0);
  CHECK(simplified_size({{x}, {concat({x}, 1)}}) == 0);
  CHECK(simplified_size({{x}, {concat({slice_axis(x, 1, 0, 2), slice_axis(x, 1, 2, 4)}, 1)}}) == 0);
  CHECK(simplified_size({{b, x}, {select(b, x, x)}}) == 0);
  CHECK(simplified_size({{x}, {cast(cast(x, float64), float32)}}) == 0);
}

TEST_CASE("products over windows read them where they lie, or from a copy where they are no strided view") {
  graph::testing::Random r(5);
  const auto check = [&](const Value& x, const Value& weight, const Value& result) {
    const std::vector<HostTensor> in{graph::testing::random_tensor(r, x.type()),
                                     graph::testing::random_tensor(r, weight.type())};
    const Graph g{{x, weight}, {result}};
    const auto got = compile_and_run(g, in);
    CHECK(difference(got.outputs[0], evaluate_reference(g, in)[0], 4, 1e-4) == "");
    return got.program->stats();
  };
  for (int64_t step : {1, 2})
    for (int64_t dilation : {1, 3}) {
      const Value line = param({2, 80, 16}), w1 = param({24, 3, 16});
      const auto stats = check(line, w1, dot(window(line, 1, 3, step, dilation), w1, {2, 3}, {1, 2}));
      if (dilation == 1) CHECK(stats.count() == 1);
      const Value image = param({1, 14, 12, 8}), w2 = param({8, 3, 3, 8});
      check(image, w2,
            dot(window(window(image, 1, 3, step, dilation), 3, 3, step, dilation), w2, {2, 4, 5}, {1, 2, 3}));
    }
}

TEST_CASE("simplify: what would change something stays") {
  Value x = param({4, 6});
  CHECK(simplified_size({{x}, {x + 0.0}}) > 0);  // -0.0 + 0.0 is 0.0
  CHECK(simplified_size({{x}, {concat({slice_axis(x, 1, 2, 4), slice_axis(x, 1, 0, 2)}, 1)}}) > 0);
  CHECK(simplified_size({{x}, {concat({slice_axis(x, 1, 0, 2), slice_axis(x, 1, 2, 3)}, 1)}}) > 0);
  CHECK(simplified_size({{x}, {x * zeros_like(x)}}) > 0);  // NaN and infinity
  CHECK(simplified_size({{x}, {cast(cast(x, bfloat16), float32)}}) == 2);
}

TEST_CASE("simplify: equal nodes are one, constants are folded, zeros are not added to") {
  Value x = param({8}), v = param({5, 3}), ids = param({2}, int32), u = param({2, 1, 3});
  CHECK(simplified_size({{x}, {exp(x) + exp(x)}}) == 2);
  CHECK(simplified_size({{x}, {x + (full_like(x, 2) * full_like(x, 3))}}) == 3);  // constant, broadcast, add
  Value scattered = scatter(ScatterMode::add, full({5, 3}, float32, Number::of_real(0)), {ids}, u, {0});
  CHECK(simplified_size({{v, ids, u}, {v + scattered}}) == 1);
}

TEST_CASE("memory: buffers alive together never overlap, and the arena is not larger than it must be for a chain") {
  std::mt19937_64 engine(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers;
    for (int k = 0; k < 40; ++k) {
      int first = static_cast<int>(engine() % 50);
      buffers.push_back(
          {static_cast<int64_t>(1 + engine() % 5000), first, first + static_cast<int>(engine() % 10), -1});
    }
    int64_t arena = assign_offsets(buffers);
    for (size_t a = 0; a < buffers.size(); ++a) {
      CHECK(buffers[a].offset >= 0);
      CHECK(buffers[a].offset + buffers[a].bytes <= arena);
      for (size_t b = 0; b < a; ++b) {
        bool together = buffers[a].first <= buffers[b].last && buffers[b].first <= buffers[a].last;
        bool overlap = buffers[a].offset < buffers[b].offset + buffers[b].bytes &&
                       buffers[b].offset < buffers[a].offset + buffers[a].bytes;
        CHECK_FALSE((together && overlap));
      }
    }
  }
  std::vector<Lifetime> chain;
  for (int k = 0; k < 100; ++k) chain.push_back({6400, k, k + 1, -1});
  CHECK(assign_offsets(chain) == 2 * 6400);
}

TEST_CASE("updates are made in place where that is safe, and through a copy where it is not") {
  struct Case {
    const char* what;
    Graph graph;
    int copies;
  };
  Value p = param({100}), g = param({100}), square = param({10, 10});
  std::vector<Case> cases;
  cases.push_back({"elementwise", {{p, g}, {p - g * 0.5}}, 0});
  cases.push_back({"another reader that can run before", {{p, g}, {p - g, graph::sum(p * p, {0})}}, 0});
  cases.push_back({"read at another place", {{square, square + 0.0}, {}}, 1});
  cases.back().graph = {{square}, {permute(square, {1, 0}) + square}};
  Value none = param({3, 0});
  cases.push_back({"no elements to copy", {{none}, {cumulative(kernel::Reducer::sum, none, 1)}}, 0});
  for (const Case& c : cases) {
    Source source{c.graph, {}, {{0, 0}}};
    auto program = build(source, weft::test::target_under_test());
    CHECK_MESSAGE(program->stats().copies == c.copies, c.what);
    std::vector<HostTensor> inputs;
    for (const Value& v : c.graph.inputs) inputs.push_back(counting(v.shape(), 1));
    auto expected = evaluate_reference(c.graph, inputs);
    std::vector<Storage> storages;
    for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
    auto results = program->run(storages);
    CHECK(results[0].buffer == storages[0].buffer);  // the state's own memory
    for (size_t k = 0; k < results.size(); ++k) {
      auto error = difference(from_storage(results[k], c.graph.outputs[k].type()), expected[k], 4);
      CHECK_MESSAGE(error.empty(), c.what, ": ", error);
    }
  }
}

TEST_CASE("the old value of an updated input can still be handed out") {
  Value p = param({64});
  Source source{{{p}, {p + 1.0, p}}, {}, {{0, 0}}};
  auto program = build(source, weft::test::target_under_test());
  std::vector<Storage> storages{to_storage(counting({64}))};
  auto results = program->run(storages);
  CHECK(from_storage(results[0], p.type()).data[3].f == 4);
  CHECK(from_storage(results[1], p.type()).data[3].f == 3);
}

TEST_CASE("two states that change places") {
  Value a = param({64}), b = param({64});
  Source source{{{a, b}, {b, a}}, {}, {{0, 0}, {1, 1}}};
  auto program = build(source, weft::test::target_under_test());
  std::vector<Storage> storages{to_storage(counting({64})), to_storage(counting({64}, 100))};
  auto results = program->run(storages);
  CHECK(from_storage(results[0], a.type()).data[3].f == 103);
  CHECK(from_storage(results[1], b.type()).data[3].f == 3);
}

TEST_CASE("one program serves every length up to the bound") {
  const Symbol* n = symbol("n", 70);
  Value x = param({3, Dim(n)}), w = param({Dim(n), 5}), m = param({Dim(n), 4});
  Source source{{{x, w, m}, {softmax(x, {1}), dot(x, w, {1}, {0}), exp(m), graph::sum(m, {0})}}, {}, {}};
  auto program = build(source, weft::test::target_under_test());
  REQUIRE(program->symbols().size() == 1);
  for (int64_t length = 1; length <= 70; ++length) {
    Value xs = param({3, length}), ws = param({length, 5}), ms = param({length, 4});
    Graph specialised{{xs, ws, ms}, {softmax(xs, {1}), dot(xs, ws, {1}, {0}), exp(ms), graph::sum(ms, {0})}};
    std::vector<HostTensor> inputs{counting({3, length}, -50), counting({length, 5}), counting({length, 4}, -100)};
    for (HostTensor& t : inputs)
      for (Number& v : t.data) v.f *= 0.01;
    auto expected = evaluate_reference(specialised, inputs);
    // The symbolic axis lies at its bound: the specialised data goes into its corner.
    std::vector<Storage> storages;
    std::vector<Strides> strides{{70, 1}, {5, 1}, {4, 1}};
    std::vector<int64_t> sizes{3 * 70, 70 * 5, 70 * 4};
    for (size_t k = 0; k < 3; ++k) {
      Storage s{runtime::allocate(static_cast<size_t>(sizes[k]) * 4), 0, strides[k]};
      std::memset(s.buffer->data(), 0xff, static_cast<size_t>(sizes[k]) * 4);  // NaN beyond the length
      int64_t columns = inputs[k].type.shape[1];
      for (size_t e = 0; e < inputs[k].data.size(); ++e)
        put_number(s.buffer->data(),
                   static_cast<int64_t>(e) / columns * strides[k][0] + static_cast<int64_t>(e) % columns, float32,
                   inputs[k].data[e]);
      storages.push_back(s);
    }
    auto results = program->run(storages, std::vector<int64_t>{length});
    for (size_t k = 0; k < results.size(); ++k) {
      auto error = difference(from_storage(results[k], specialised.outputs[k].type()), expected[k], 64, 1e-4);
      CHECK_MESSAGE(error.empty(), "length ", length, " output ", k, ": ", error);
    }
  }
  CHECK_THROWS_WITH_AS(program->run(std::vector<Storage>(3), std::vector<int64_t>{71}),
                       "[run] length n is 71, but must lie in 1..70", std::invalid_argument);
}

TEST_CASE("every stage prints") {
  Value x = param({4, 8}), w = param({8, 8});
  auto program = build({{{x, w}, {softmax(dot(x, w, {1}, {0}), {1})}}, {}, {}}, target::null());
  CHECK(program->print("graph").find("dot") != std::string::npos);
  CHECK(program->print("kernels").find("reduce max") != std::string::npos);
  CHECK(program->print("plan").find("arena") != std::string::npos);
  CHECK_THROWS_AS(program->print("nothing"), std::invalid_argument);
}

TEST_CASE("equal sources have equal digests, whatever their nodes are called; a changed number does not") {
  auto source = [](double factor, Shape shape) {
    Value x = param(std::move(shape));
    return Source{{{x}, {exp(x) * factor}}, {}, {}};
  };
  CHECK(digest(source(2, {4})) == digest(source(2, {4})));
  CHECK_FALSE(digest(source(2, {4})) == digest(source(3, {4})));
  CHECK_FALSE(digest(source(2, {4})) == digest(source(2, {5})));
}

TEST_CASE("an update in place is not read as the old value by another result of the kernel") {
  Value p = param({300}), q = param({300});
  // q's next value reads p's old one, and p's next value is stored over p in the same kernel.
  Source source{{{p, q}, {exp(q), p * q}}, {}, {{0, 0}, {1, 1}}};
  auto program = build(source, weft::test::target_under_test());
  std::vector<HostTensor> inputs{counting({300}), counting({300}, 0)};
  for (Number& v : inputs[1].data) v.f *= 0.01;
  auto expected = evaluate_reference(source.graph, inputs);
  std::vector<Storage> storages{to_storage(inputs[0]), to_storage(inputs[1])};
  auto results = program->run(storages);
  for (size_t k = 0; k < 2; ++k) CHECK(difference(from_storage(results[k], p.type()), expected[k], 4).empty());
}

TEST_CASE("a norm's weights are updated in the kernel that sums their gradient, in place") {
  Value x = param({500, 64}), g = param({500, 64}), w = param({64});
  Source source{{{x, g, w}, {w - graph::sum(x * g, {0}) * 0.01}}, {}, {{0, 2}}};
  auto program = build(source, target::cpu());  // a device with many threads cuts the sum in two
  CHECK(program->stats().count() == 1);
}

TEST_CASE("results have the same bits for any number of threads, libraries included") {
  Value x = param({192, 128}), w = param({512, 128}), b = param({512});
  Value h = gelu_tanh(dot(x, w, {1}, {1}) + broadcast(b, {192, 512}));
  Graph g{{x, w, b}, {softmax(h, {1}), graph::sum(h, {0}), graph::sum(h * h, {0, 1}), dot(h, h, {0}, {0})}};
  std::vector<HostTensor> inputs{counting({192, 128}), counting({512, 128}), counting({512})};
  for (HostTensor& t : inputs)
    for (size_t k = 0; k < t.data.size(); ++k) t.data[k].f = std::sin(static_cast<double>(k) * 0.7);
  const int before = runtime::num_threads();
  std::vector<std::vector<HostTensor>> results;
  for (int threads : {1, 2, 5}) {
    runtime::set_num_threads(threads);
    results.push_back(compile_and_run(g, inputs).outputs);
  }
  runtime::set_num_threads(before);
  for (size_t k = 0; k < g.outputs.size(); ++k)
    for (size_t other : {1, 2}) CHECK(difference(results[other][k], results[0][k], 0).empty());
}

TEST_CASE("equal scatters onto copies keep their copies in front of them") {
  Graph g;
  for (int k = 0; k < 3; ++k) {
    Value v = param({6, 4}), ids = param({2}, int32), u = param({2, 1, 4});
    g.inputs.insert(g.inputs.end(), {v, ids, u});
    Value previous = k == 0 ? v : v + g.outputs.back();  // a chain, so that they cannot all come first
    g.outputs.push_back(scatter(ScatterMode::add, previous, {ids}, u, {0}));
    g.outputs.push_back(scatter(ScatterMode::set, v, {ids}, u, {0}));
  }
  std::vector<HostTensor> inputs;
  for (size_t k = 0; k < g.inputs.size(); ++k) {
    if (k % 3 == 1)
      inputs.push_back({g.inputs[k].type(), {Number::of_int(static_cast<int64_t>(k) % 6), Number::of_int(2)}});
    else inputs.push_back(counting(g.inputs[k].shape(), static_cast<double>(k)));
  }
  auto expected = evaluate_reference(g, inputs);
  auto got = compile_and_run(g, inputs);
  for (size_t k = 0; k < expected.size(); ++k) CHECK(difference(got.outputs[k], expected[k], 0).empty());
}

TEST_CASE("chains of any length compile: they are cut into kernels of sensible size") {
  Value x = param({40}), y = param({5000});
  Value sum = x, tail = y;
  for (int k = 0; k < 5000; ++k) sum = sum + x * 0.5;
  for (int k = 0; k < 2000; ++k) tail = graph::slice(tail, {1}, {tail.shape()[0] - 1});
  Graph g{{x, y}, {sum, tail}};
  std::vector<HostTensor> inputs{counting({40}), counting({5000})};
  auto got = compile_and_run(g, inputs);
  CHECK(got.outputs[0].data[2].f == doctest::Approx(2 * 2501.0).epsilon(1e-3));
  CHECK(got.outputs[1].data[7].f == 2007);
}

TEST_CASE("large results without a later reader are stored with streaming stores, others are not") {
  const auto streams = [](const Graph& g, std::vector<Update> updates = {}) {
    return build({g, {}, std::move(updates)}, target::null())->print("kernels").find(" streaming") != std::string::npos;
  };
  const Value large = param({2048, 2048}), small = param({2048, 1024});
  CHECK(streams({{large}, {large * 2.0}}));
  CHECK(streams({{large}, {softmax(large, {1})}}));
  CHECK_FALSE(streams({{small}, {small * 2.0}}));
  CHECK_FALSE(streams({{large}, {large * 2.0}}, {{0, 0}}));  // in place
  const Value between = exp(large);
  CHECK_FALSE(streams({{large}, {sum(between, {0}), between}}));
}

TEST_CASE("rows whose last pass goes along with the next row's passes give the bits of rows in turn") {
  using Function = Value (*)(const Value&);
  const Function functions[] = {
      [](const Value& x) { return softmax(x, {1}); },              // three passes, the last one from scratch
      [](const Value& x) { return layer_norm(x, {}, {}, 1e-5); },  // three passes over x
      [](const Value& x) { return x * broadcast(sum(x, {1}, true), x.shape()); },  // two
      [](const Value& x) {  // three, of which the first two make what the last one wants
        const Value total = broadcast(sum(exp(x), {1}, true), x.shape());
        return exp(x) * broadcast(max(x * total, {1}, true), x.shape());
      }};
  const int64_t rows = 1030, width = 4100,
                group = 103;  // no multiples of the rows of a program and of the lanes of a tile
  const auto at = [](const graph::Storage& s) { return static_cast<float*>(s.buffer->data()); };
  const graph::Storage x{runtime::allocate(static_cast<size_t>(rows * width) * 4), 0, {width, 1}};
  for (int64_t k = 0; k < rows * width; ++k) at(x)[k] = static_cast<float>((k * 7919) % 1009) / 200 - 2;
  for (Function f : functions) {
    const Value large = param({rows, width}), small = param({group, width});
    const auto together = build({{{large}, {f(large)}}, {}, {}}, target::cpu()),
               few = build({{{small}, {f(small)}}, {}, {}}, target::cpu());
    CHECK(together->print("kernels").find(" streaming") != std::string::npos);
    CHECK(few->print("kernels").find(" streaming") == std::string::npos);
    const graph::Storage y = together->run(std::vector{x})[0];
    size_t differ = 0;
    for (int64_t first = 0; first < rows; first += group) {
      const graph::Storage part{x.buffer, first * width, {width, 1}};
      const graph::Storage z = few->run(std::vector{part})[0];
      differ +=
          std::memcmp(at(z) + z.offset, at(y) + y.offset + first * width, static_cast<size_t>(group * width) * 4) != 0;
    }
    CHECK(differ == 0);
  }
}

TEST_CASE("an assignment to captured state is one kernel in the memory of the state, whatever the steps") {
  graph::testing::Random r(9);
  for (const auto& [start, step] : {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{2, 1, 0}, {1, 1, 1}},
                                    {{7, 5, 30}, {-2, -1, -3}},
                                    {{0, 0, 3}, {3, 2, 1}}}) {
    const Value state = param({8, 6, 32}), update = param({3, 3, 10});
    const Value next = assign(state, update, start, step);
    const Graph g{{state, update}, {next}};
    const auto program = compiler::build({g, {}, {{0, 0}}}, target::null(), {});
    INFO(program->print("plan"));
    CHECK(program->stats().count() == 1);
    const std::vector<HostTensor> in{graph::testing::random_tensor(r, state.type()),
                                     graph::testing::random_tensor(r, update.type())};
    CHECK(difference(compile_and_run(g, in).outputs[0], evaluate_reference(g, in)[0], 0) ==
          "");  // without an owner: a copy first
  }
}

TEST_CASE("what rides on a product gives what it would alone, by a library and by generated code, in place too") {
  Value x = param({48, 40}), w = param({64, 40}), b = param({64}), r = param({48, 64});
  auto values = [](const Shape& shape, double step) {
    HostTensor t = counting(shape);
    for (Number& v : t.data) v = kernel::round_to(Number::of_real(std::sin(v.f * step)), float32);
    return t;
  };
  std::vector<HostTensor> inputs{values({48, 40}, 0.7), values({64, 40}, 1.3), values({64}, 2.1),
                                 values({48, 64}, 0.3)};
  Value y = dot(x, w, {1}, {1}) + broadcast(b, {48, 64});
  // A GPU's library computes a prefix in float32, and a second launch the rest.
  const int most = weft::test::target_under_test().machine().simt ? 2 : 1;
  for (bool libraries : {true, false})
    for (Value result :
         {gelu_tanh(y) + r, gelu(y), tanh(y), unary(Op::sigmoid, y) + r, binary(Op::max, y, zeros_like(y)), r + y}) {
      Graph g{{x, w, b, r}, {result}};
      Policy policy;
      policy.libraries = libraries;
      auto got = compile_and_run(g, inputs, {}, policy);
      CHECK(got.program->stats().count() <= (libraries ? most : 1));
      auto error = difference(got.outputs[0], evaluate_reference(g, inputs)[0], 8, 4e-6);
      CHECK_MESSAGE(error.empty(), error);
      // The residual is state that the result replaces.
      auto program = build({g, {}, {{0, 3}}}, weft::test::target_under_test(), policy);
      CHECK(program->stats().count() <= (libraries ? most : 1));
      std::vector<Storage> storages;
      for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
      auto updated = program->run(storages);
      CHECK(difference(from_storage(updated[0], result.type()), evaluate_reference(g, inputs)[0], 8, 4e-6).empty());
    }
}

TEST_CASE("sums of operands beside products, whatever the layouts, by a library and by generated code") {
  for (bool libraries : {true, false})
    for (bool left : {true, false})
      for (bool flipped : {true, false}) {
        Value x = param(flipped ? Shape{40, 130} : Shape{130, 40}), g = param({130, 70}), later = param({70});
        const std::vector<int64_t> rows{flipped ? 1 : 0};
        Value w = left ? dot(g, x, {0}, rows) : dot(x, g, rows, {0}), b = graph::sum(g, {0});
        Graph graph{{x, g, later}, {w * 2.0, b * later, b}};  // both are read by others
        std::vector<HostTensor> inputs{counting(x.shape()), counting({130, 70}), counting({70})};
        for (HostTensor& t : inputs)
          for (Number& v : t.data) v = kernel::round_to(Number::of_real(std::sin(v.f * 0.7)), float32);
        Policy policy;
        policy.libraries = libraries;
        auto got = compile_and_run(graph, inputs, {}, policy);
        auto expected = evaluate_reference(graph, inputs);
        for (size_t k = 0; k < 3; ++k) {
          auto error = difference(got.outputs[k], expected[k], 32, 4e-5);
          CHECK_MESSAGE(error.empty(), error);
        }
      }
}

TEST_CASE("a scatter starts from an operand that lies in any order, or that others would like to") {
  graph::testing::Random r(11);
  const Value x = param({4, 6}), at = param({2}, int32), u = param({2, 1, 6}), w = param({6, 5}),
              wide = param({2, 1, 5});
  const std::vector<HostTensor> in{graph::testing::random_tensor(r, x.type()),
                                   {at.type(), {Number::of_int(3), Number::of_int(-4)}},
                                   graph::testing::random_tensor(r, u.type()),
                                   graph::testing::random_tensor(r, w.type()),
                                   graph::testing::random_tensor(r, wide.type())};
  const Value product = graph::matmul(x, w);
  const Graph g{
      {x, at, u, w, wide},
      {scatter(ScatterMode::add, x, {at}, u, {0}), assign(x, graph::slice(x, {0, 0}, {2, 3}) * 2.0, {1, 2}),
       scatter(ScatterMode::max, product, {at}, wide, {0}), exp(permute(product, {1, 0})), permute(product, {1, 0})}};
  const auto expected = evaluate_reference(g, in);
  for (const Strides& strides : {Strides{}, Strides{1, 4}, Strides{-6, 1}, Strides{12, 2}}) {
    const auto got = compile_and_run(g, in, {strides, {}, {}, {}, {}});
    for (size_t k = 0; k < expected.size(); ++k) CHECK(difference(got.outputs[k], expected[k], 4, 1e-5) == "");
  }
}
