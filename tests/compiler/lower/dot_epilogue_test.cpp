// What a matmul computes before it stores its result: one launch for any elementwise epilogue, also with several
// results, against float64 references and against separate kernels.
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using compiler::testing::HostTensor;
using graph::testing::Random;

namespace {

constexpr int64_t rows = 24, depth = 8, columns = 40;

compiler::Policy generated() {
  compiler::Policy policy;
  policy.libraries = false;
  return policy;
}

/// What an epilogue reads besides the matmul's result: arrays of its shape, broadcast to it.
struct Operands {
  Value row, column, element, number;
};

/// x [rows, depth] · w [depth, columns] in `dtype`, and what `f` makes of it.
template <class F>
Graph with_epilogue(Dtype dtype, const F& f) {
  const auto param = [&](Shape shape) { return parameter({std::move(shape), dtype}); };
  const Shape whole = {rows, columns};
  const Value x = param({rows, depth}), w = param({depth, columns}), row = param({columns}), column = param({rows, 1}),
              element = param(whole), number = param({});
  const Operands of{broadcast(row, whole), broadcast(column, whole), element, broadcast(number, whole)};
  return {{x, w, row, column, element, number}, f(dot(x, w, {1}, {0}), of)};
}

Value sigmoid(const Value& v) { return unary(Op::sigmoid, v); }
Value silu(const Value& v) { return v * sigmoid(v); }

using Epilogue = Values (*)(const Value&, const Operands&);
struct Named {
  const char* name;
  Epilogue make;
};
const Named named[] = {
    {"relu", [](const Value& y, const Operands&) { return Values{binary(Op::max, y, zeros_like(y))}; }},
    {"gelu", [](const Value& y, const Operands&) { return Values{gelu(y)}; }},
    {"gelu_tanh", [](const Value& y, const Operands&) { return Values{gelu_tanh(y)}; }},
    {"silu", [](const Value& y, const Operands&) { return Values{silu(y)}; }},
    {"swiglu", [](const Value& y, const Operands& o) { return Values{silu(o.element) * y}; }},
    {"gate of swiglu", [](const Value& y, const Operands& o) { return Values{silu(y) * o.element}; }},
    {"sigmoid", [](const Value& y, const Operands&) { return Values{sigmoid(y)}; }},
    {"residual + bias", [](const Value& y, const Operands& o) { return Values{o.element + (y + o.row)}; }},
    {"scale by a row", [](const Value& y, const Operands& o) { return Values{y * o.row}; }},
    {"scale by a column", [](const Value& y, const Operands& o) { return Values{y * o.column}; }},
    {"scale by a number", [](const Value& y, const Operands& o) { return Values{y * o.number}; }},
    {"cast to fp8", [](const Value& y, const Operands& o) { return Values{cast(y * o.row, float8_e4m3)}; }},
    {"scaled residual", [](const Value& y, const Operands& o) { return Values{y + o.element * 0.5}; }},
    {"value and activation",
     [](const Value& y, const Operands& o) {
       return Values{y + o.row, gelu_tanh(y + o.row)};
     }},
    {"three results",
     [](const Value& y, const Operands& o) {
       const Value h = y + o.row, s = silu(h);
       return Values{h, s, s * o.element};
     }},
};

/// The inputs with values that all dtypes hold: a sum of `depth` products is exact in 16 bits.
std::vector<HostTensor> exact_inputs(const Graph& g, uint64_t seed) {
  Random random(seed);
  std::vector<HostTensor> out;
  for (size_t k = 0; k < g.inputs.size(); ++k) {
    HostTensor t{g.inputs[k].type(), {}};
    for (int64_t n = num_elements(t.type.shape); n > 0; --n) {
      const auto v = static_cast<double>(k < 2 ? random.between(-2, 2) : random.between(-16, 16));
      t.data.push_back(Number::of_real(k < 2 ? v : v / 8));
    }
    out.push_back(std::move(t));
  }
  return out;
}

struct Ran {
  std::vector<HostTensor> outputs;
  int launches = 0;
  std::string plan;
};
Ran run(const Graph& g, const std::vector<HostTensor>& inputs, target::Target& target) {
  const auto program = compiler::build({g, {}, {}}, target, generated());
  std::vector<Storage> storage;
  for (const HostTensor& t : inputs) storage.push_back(compiler::testing::to_storage(t));
  const auto results = program->run(storage);
  Ran out{{}, program->stats().count(), program->print("plan")};
  for (size_t k = 0; k < results.size(); ++k)
    out.outputs.push_back(compiler::testing::from_storage(results[k], g.outputs[k].type()));
  return out;
}

/// The CPU's kernels, and those that are made for a GPU.
std::vector<target::Target*> targets() {
  static auto& simt = *new weft::test::SimtTarget;  // programs in the table outlive tests
  return {&target::cpu(), &simt};
}

/// A library that takes every product, and counts what it is asked.
class Asked final : public weft::test::SimtTarget {
 public:
  std::string fingerprint() const override { return "asked"; }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    ++count;
    return std::make_shared<Call>(desc.to_string());
  }
  mutable int count = 0;

 private:
  struct Call final : target::LibraryCall {
    explicit Call(std::string of) : text(std::move(of)) {}
    std::string name() const override { return text; }
    void run(std::span<void* const>) const override {}
    std::string text;
  };
};

/// A random expression of up to six operators of the table over the result `y` and the operands.
Value random_expression(Random& random, const Value& y, const Operands& o, std::string& text) {
  static const std::vector<Op> ops = [] {
    std::vector<Op> usable{Op::select};
    for (const Row* r : table())
      if (r->scalar >= 0 && r->min_inputs <= 2 && kernel::info(static_cast<kernel::ScalarOp>(r->scalar)).floats)
        usable.push_back(r->op);
    return usable;
  }();
  Value v = y;
  for (int64_t k = random.between(1, 6); k > 0; --k) {
    const Value other = random.of<Value>({o.row, o.column, o.element, o.number, y, v});
    const Op op = random.of(ops);
    text += std::string(row(op).name) + " ";
    const bool first = random.chance(2);
    if (op == Op::select) v = select(binary(Op::lt, v, other), first ? v : other, first ? other : v);
    else if (row(op).min_inputs == 1) v = unary(op, v);
    else v = first ? binary(op, v, other) : binary(op, other, v);
    if (v.dtype() != y.dtype()) v = cast(v, y.dtype());
  }
  return v;
}

}  // namespace

TEST_CASE("a generated matmul computes any named epilogue before it stores: one launch, against float64") {
  for (target::Target* target : targets())
    for (const Dtype dtype : {float32, bfloat16, float16})
      for (const Named& e : named) {
        CAPTURE(e.name);
        CAPTURE(dtype_name(dtype));
        const Graph g = with_epilogue(dtype, e.make), exact = with_epilogue(float64, e.make);
        const std::vector<HostTensor> inputs = exact_inputs(g, 3);
        std::vector<HostTensor> wide = inputs;
        for (HostTensor& t : wide) t.type.dtype = float64;
        const Ran got = run(g, inputs, *target);
        INFO(got.plan);
        CHECK(got.launches == 1);
        const std::vector<HostTensor> expected = evaluate_reference(exact, wide);
        for (size_t k = 0; k < expected.size(); ++k) {
          HostTensor want = expected[k];
          want.type.dtype = g.outputs[k].dtype();
          CHECK(compiler::testing::difference(got.outputs[k], want, want.type.dtype == float32 ? 8 : 1, 1e-6) == "");
        }
      }
}

TEST_CASE("random epilogues of up to six operators of the table are one launch, with the bits of two kernels") {
  constexpr uint64_t counted = 400, computed = 30;  // compiling a kernel takes a hundred times as long as counting
  for (uint64_t seed = 0; seed < counted; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Dtype dtype = random.of<Dtype>({float32, float32, bfloat16, float16});
    std::string text;
    const uint64_t expression = random.bits();
    const auto make = [&](const Value& y, const Operands& o) {
      Random same(expression);
      const auto wide = [](const Value& v) { return cast(v, float32); };
      text.clear();
      return Values{
          cast(random_expression(same, wide(y), {wide(o.row), wide(o.column), wide(o.element), wide(o.number)}, text),
               y.dtype())};
    };
    const Graph fused = with_epilogue(dtype, make);
    CAPTURE(text);
    CHECK(compiler::build({fused, {}, {}}, target::null(), generated())->stats().count() == 1);
    if (seed >= computed) continue;
    // The same with the matmul's result as an input: x is that, w is not read.
    Graph apart = with_epilogue(dtype, [](const Value& y, const Operands&) { return Values{y}; });
    const Value y = parameter({{rows, columns}, dtype});
    Graph after = with_epilogue(dtype, [&](const Value&, const Operands& o) { return make(y, o); });
    after.inputs[0] = y;
    const std::vector<HostTensor> inputs = exact_inputs(fused, seed);
    target::Target& target = *targets()[seed % 2];
    const Ran got = run(fused, inputs, target);
    INFO(got.plan);
    CHECK(got.launches == 1);
    std::vector<HostTensor> rest = inputs;
    rest[0] = run(apart, inputs, target).outputs[0];
    const Ran expected = run(after, rest, target);
    CHECK(compiler::testing::difference(got.outputs[0], expected.outputs[0], 0) == "");
  }
}

TEST_CASE("a library is asked once for each product, with its epilogue") {
  static auto& target = *new Asked;
  const auto param = [](Shape shape) { return parameter({std::move(shape), bfloat16}); };
  const Shape whole = {rows, columns};
  const Value x = param({rows, depth}), w = param({depth, columns}), b = param({columns}),
              v = param({columns, columns}), u = param({columns, depth}), r = param({rows, depth});
  const Value h = gelu_tanh(dot(x, w, {1}, {0}) + broadcast(b, whole)), g = dot(h, v, {1}, {0}),
              y = r + dot(g, u, {1}, {0});
  const auto program = compiler::build({{{x, w, b, v, u, r}, {y}}, {}, {}}, target);
  INFO(program->print("plan"));
  CHECK(target.count == 3);
  CHECK(program->stats().library_calls == 3);
  CHECK(program->stats().count() == 3);
}

namespace {

/// An H200 whose library takes products without an epilogue. Nothing is compiled.
class PlainLibrary final : public target::Target {
 public:
  PlainLibrary() { machine_ = target::stated_machine("NVIDIA H200"); }
  std::string fingerprint() const override { return "plain library"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return target::null().compile(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    kernel::DotDesc plain = desc;
    plain.bias = plain.residual = false, plain.activation = {}, plain.pre_activation = {}, plain.sum = {};
    return plain == desc ? target::null().library(desc) : nullptr;
  }
  target::CompileStats stats() const override { return {}; }
};

}  // namespace

TEST_CASE("generated code takes an epilogue that the library lacks where its tiles fill the machine") {
  static auto& target = *new PlainLibrary;
  const auto calls = [&](int64_t m, int64_t n, int64_t k) {
    const Value x = parameter({{k, m}, bfloat16}), w = parameter({{k, n}, bfloat16}),
                old = parameter({{m, n}, float32});
    const Value gradient = cast(dot(x, w, {0}, {0}), float32);
    return compiler::build({{{x, w, old}, {old - gradient * 0.125}}, {}, {}}, target)->stats().library_calls;
  };
  CHECK(calls(16384, 3072, 768) == 0);
  CHECK(calls(2048, 2048, 2048) == 0);
  CHECK(calls(768, 768, 16384) == 1);  // 18 tiles for 132 SMs
  CHECK(calls(256, 256, 65536) == 1);
}

TEST_CASE("a long epilogue after a short contraction is a kernel of its own beside the library's matmul") {
  static auto& target = *new PlainLibrary;
  const auto calls = [&](int64_t m, int64_t n, int64_t k) {
    const Value x = parameter({{m, k}, bfloat16}), w = parameter({{k, n}, bfloat16}), v = parameter({{n, k}, bfloat16});
    const Value h = gelu(dot(x, w, {1}, {0}));
    return compiler::build({{{x, w, v}, {dot(h, v, {1}, {0})}}, {}, {}}, target)->stats().library_calls;
  };
  const auto backward = [&](int64_t m, int64_t n, int64_t k) {
    const Value g = parameter({{m, k}, bfloat16}), w = parameter({{n, k}, bfloat16}), z = parameter({{m, n}, bfloat16}),
                x = parameter({{m, k}, bfloat16}), v = parameter({{n, k}, bfloat16});
    const Value slope = pull_back(Values{gelu(z)}, Values{dot(g, w, {1}, {1})}, Values{z})[0];
    const auto program =
        compiler::build({{{g, w, z, x, v}, {dot(slope, v, {1}, {0}), dot(slope, x, {0}, {0})}}, {}, {}}, target);
    INFO(program->print("plan"));
    CHECK(program->stats().library_calls == 3);
  };
  backward(25216, 1536, 384);
  CHECK(calls(25216, 1536, 384) == 2);
  CHECK(calls(8192, 8192, 512) == 2);
}

namespace {

struct Extents {
  int64_t rows, depth, columns;
};

/// x [rows, depth] and w as an operand of a matmul, computed from narrower arrays. `T`: of the computation.
using Operand = Value (*)(const Value& w, const Value& by_depth, const Value& by_column, Dtype t);
struct Computed {
  const char* name;
  Dtype from;
  bool transposed;  // w is [columns, depth]
  Operand make;
};
Value along(const Value& v, const Shape& shape, bool depth_first, bool is_depth) {
  if (depth_first == is_depth) return broadcast(expand_dims(v, {1}), shape);
  return broadcast(v, shape);
}
const Computed computed[] = {
    {"cast", bfloat16, false, [](const Value& w, const Value&, const Value&, Dtype t) { return cast(w, t); }},
    {"cast of the transposed", float16, true,
     [](const Value& w, const Value&, const Value&, Dtype t) { return cast(w, t); }},
    {"8-bit float", float8_e4m3, true, [](const Value& w, const Value&, const Value&, Dtype t) { return cast(w, t); }},
    {"int8, scaled by column", int8, true,
     [](const Value& w, const Value&, const Value& by_column, Dtype t) {
       return cast(w, t) * along(by_column, w.shape(), false, false);
     }},
    {"int8 with a zero point by column", int8, false,
     [](const Value& w, const Value&, const Value& by_column, Dtype t) {
       return (cast(w, t) - along(by_column, w.shape(), true, false)) * 0.25;
     }},
    {"int8, shifted and scaled by k", int8, false,
     [](const Value& w, const Value& by_depth, const Value&, Dtype t) {
       const Value k = along(by_depth, w.shape(), true, true);
       return (cast(w, t) + k) * k;
     }},
};

Graph with_prologue(const Computed& c, const Extents& n, Dtype from, Dtype t) {
  const Value x = parameter({{n.rows, n.depth}, t}),
              w = parameter({c.transposed ? Shape{n.columns, n.depth} : Shape{n.depth, n.columns}, from}),
              by_depth = parameter({{n.depth}, t}), by_column = parameter({{n.columns}, t});
  // Of a transposed weight an axis is the other one's.
  const Value operand = c.make(w, by_depth, by_column, t);
  return {{x, w, by_depth, by_column}, {dot(x, operand, {1}, {c.transposed ? 1 : 0})}};
}

}  // namespace

TEST_CASE("a generated matmul widens and dequantises an operand as it loads it: one launch, against float64") {
  for (target::Target* target : targets())
    for (const Extents& n : {Extents{24, 21, 40}, {3, 67, 40}, {200, 130, 150}, {130, 300, 70}})
      for (const Computed& c : computed) {
        CAPTURE(c.name);
        CAPTURE(n.rows);
        const Graph g = with_prologue(c, n, c.from, float32), exact = with_prologue(c, n, c.from, float64);
        Random random(5);
        std::vector<HostTensor> inputs, wide;
        for (size_t k = 0; k < g.inputs.size(); ++k) {
          HostTensor t{g.inputs[k].type(), {}};
          const bool whole = is_integer(t.type.dtype);
          for (int64_t left = num_elements(t.type.shape); left > 0; --left) {
            const int64_t v = random.between(-16, 16);
            t.data.push_back(whole ? Number::of_int(v) : Number::of_real(static_cast<double>(v) / 8));
          }
          inputs.push_back(t);
          t.type = exact.inputs[k].type();
          wide.push_back(std::move(t));
        }
        const Ran got = run(g, inputs, *target);
        INFO(got.plan);
        CHECK(got.launches == 1);
        HostTensor want = evaluate_reference(exact, wide)[0];
        want.type.dtype = float32;
        CHECK(compiler::testing::difference(got.outputs[0], want, 16, 1e-4) == "");
      }
}

TEST_CASE("an operand that is stored anyway, or that many read, is not computed again by each matmul") {
  const Value x = parameter({{24, 32}, float32}), w = parameter({{32, 40}, bfloat16});
  const Value wide = cast(w, float32) * 2.0;
  const auto count = [&](Values outputs) {
    return compiler::build({{{x, w}, std::move(outputs)}, {}, {}}, target::null(), generated())->stats().count();
  };
  CHECK(count({dot(x, wide, {1}, {0})}) == 1);
  CHECK(count({dot(x, wide, {1}, {0}), wide}) == 2);
  CHECK(count({dot(x, exp(wide), {1}, {0})}) == 2);  // too long for each element that is loaded
}

TEST_CASE("operands beside a matmul are read wherever their strides place them") {
  const Value x = parameter({{6, 5}, float32}), w = parameter({{5, 7}, float16}), bias = parameter({{7}, float32}),
              r = parameter({{6, 7}, float32});
  const Graph g{{x, w, bias, r}, {dot(x, cast(w, float32), {1}, {0}) + broadcast(bias, {6, 7}) + r}};
  Random random(3);
  std::vector<HostTensor> inputs;
  for (const Value& v : g.inputs) inputs.push_back(graph::testing::random_tensor(random, v.type()));
  const std::vector<HostTensor> expected = evaluate_reference(g, inputs);
  const std::vector<Strides> strides{{6, 1}, {2, 11}, {3}, {1, 8}};  // with holes, and by columns
  for (const bool libraries : {false, true}) {
    compiler::Policy policy;
    policy.libraries = libraries;
    const auto got = compiler::testing::compile_and_run(g, inputs, strides, policy).outputs;
    CHECK(compiler::testing::difference(got[0], expected[0], 4, 1e-5) == "");
  }
}
