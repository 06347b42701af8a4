// What a matmul computes before it stores its result: one launch for any elementwise epilogue, also with several
// results, against float64 references and against separate kernels. What it computes of an operand as it loads it.
#include "compiler/lower/interpreted.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"
#include "kernel/expand/expand.h"
#include "thinning.h"

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

/// A GPU with tensor cores, interpreted.
class TensorCores final : public weft::test::SimtTarget {
 public:
  TensorCores() {
    machine_.tensor_cores = true;
    machine_.shared_bytes = target::stated_machine("NVIDIA H200").shared_bytes;
  }
  std::string fingerprint() const override { return "tensor cores"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    std::vector<std::shared_ptr<const target::Executable>> out;
    for (const kernel::Kernel& k : kernels)
      out.push_back(std::make_shared<compiler::testing::InterpretedKernel>(kernel::expand(k)));
    return out;
  }
};

/// The CPU's kernels, and those that are made for a GPU without and with tensor cores.
std::vector<target::Target*> targets() {
  static auto& simt = *new weft::test::SimtTarget;  // programs in the table outlive tests
  static auto& tensor_cores = *new TensorCores;
  return {&target::cpu(), &simt, &tensor_cores};
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
  int64_t turn = 0;
  for (target::Target* target : targets())
    for (const Dtype dtype : {float32, bfloat16, float16})
      for (const Named& e : named) {
        if (!weft::test::taken(turn++)) continue;
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
  // Compiling a kernel takes a hundred times as long as counting.
  const uint64_t counted = 400, computed = static_cast<uint64_t>(weft::test::some_of(30));
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
    target::Target& target = *targets()[seed % 3];
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

/// w as an operand of a matmul, [depth, columns] or transposed, and what it is computed with.
struct Sources {
  Value w, by_depth, by_column, element, shifts, by_group;
  bool transposed;
  Dtype t;  // of the computation

  /// A vector along k or along the columns, as an array of w's shape.
  Value along(const Value& v, bool is_depth) const {
    return broadcast(is_depth != transposed ? expand_dims(v, {1}) : v, w.shape());
  }
  Shape whole() const { return element.shape(); }
  /// The scale of each element's group.
  Value scales() const {
    const size_t axis = transposed ? 1 : 0;
    Shape split = by_group.shape();
    split.insert(split.begin() + static_cast<int64_t>(axis) + 1, whole()[axis].bound() / split[axis].bound());
    return reshape(broadcast(expand_dims(by_group, {static_cast<int64_t>(axis) + 1}), split), whole());
  }
};

using Operand = Value (*)(const Sources& s);
struct Computed {
  const char* name;
  Dtype from;
  Operand make;
  bool grouped = false;
  int64_t bits = 8;
};
const Computed computed[] = {
    {"cast of float32", float32, [](const Sources& s) { return cast(s.w, s.t); }},
    {"cast of bfloat16", bfloat16, [](const Sources& s) { return cast(s.w, s.t); }},
    {"cast of float16", float16, [](const Sources& s) { return cast(s.w, s.t); }},
    {"8-bit float", float8_e4m3, [](const Sources& s) { return cast(s.w, s.t); }},
    {"int8, scaled by column", int8, [](const Sources& s) { return cast(s.w, s.t) * s.along(s.by_column, false); }},
    {"int8 with a zero point by column", int8,
     [](const Sources& s) { return (cast(s.w, s.t) - s.along(s.by_column, false)) * 0.25; }},
    {"int8, shifted and scaled by k", int8,
     [](const Sources& s) {
       const Value k = s.along(s.by_depth, true);
       return (cast(s.w, s.t) + k) * k;
     }},
    {"int8, scaled by groups along k", int8, [](const Sources& s) { return cast(s.w, s.t) * s.scales(); }, true},
    {"4 bits, scaled by groups along k", int8,
     [](const Sources& s) {
       const int axis = s.transposed ? 2 : 1;
       Shape split = s.w.shape();
       split.insert(split.begin() + axis, 2);
       const Value shifts = broadcast(s.transposed ? s.shifts : expand_dims(s.shifts, {1}), split);
       const Value both = binary(Op::shr, broadcast(expand_dims(s.w, {axis}), split), shifts);
       const Value bits = binary(Op::bit_and, both, full_like(both, 15));
       return cast(reshape(bits - full_like(bits, 8), s.whole()), s.t) * s.scales();
     },
     true, 4},
    {"product of two arrays", float32, [](const Sources& s) { return cast(s.w * s.element, s.t); }},
};

/// A product with a computed operand: the right one, or with `left` the left one.
Graph with_prologue(const Computed& c, const Extents& n, Dtype from, Dtype t, bool transposed, bool left) {
  const auto matrix = [&](int64_t length, Dtype dtype) {
    return parameter({transposed ? Shape{n.columns, length} : Shape{length, n.columns}, dtype});
  };
  const int64_t group = n.depth % 32 == 0 ? 32 : n.depth % 10 == 0 ? 10 : 1;
  const Value x = parameter({{n.rows, n.depth}, t});
  const Dtype wide = c.from == float32 ? from : t;
  const Sources s{matrix(n.depth * c.bits / 8, from),
                  parameter({{n.depth}, t}),
                  parameter({{n.columns}, t}),
                  matrix(n.depth, wide),
                  parameter({{2}, from}),
                  matrix(n.depth / group, t),
                  transposed,
                  t};
  const Value operand = c.make(s);
  const int64_t contracted = transposed ? 1 : 0;
  return {{x, s.w, s.by_depth, s.by_column, s.element, s.shifts, s.by_group},
          {left ? dot(operand, x, {contracted}, {1}) : dot(x, operand, {1}, {contracted})}};
}

/// Values that an operand in 16 bits holds exactly, whatever it is made by.
std::vector<HostTensor> exact_sources(const Graph& g, const Computed& c) {
  Random random(5);
  std::vector<HostTensor> out;
  for (size_t k = 0; k < g.inputs.size(); ++k) {
    HostTensor t{g.inputs[k].type(), {}};
    for (int64_t n = num_elements(t.type.shape), i = 0; i < n; ++i) {
      const int64_t v = k == 5 ? 4 * i : c.bits < 8 && k == 1 ? random.between(-128, 127) : random.between(-16, 16);
      const double real = k == 0 || k == 3 || k == 1 ? static_cast<double>(v) / 8 : static_cast<double>(v / 4) / 2;
      t.data.push_back(is_integer(t.type.dtype) ? Number::of_int(v) : Number::of_real(real));
    }
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace

TEST_CASE("a generated matmul widens and dequantises an operand as it loads it: one launch, against float64") {
  int count = 0;
  for (target::Target* target : targets())
    for (const Dtype t : {float32, bfloat16, float16})
      for (const Extents& n : {Extents{24, 21, 40}, {3, 67, 40}, {200, 130, 150}, {130, 300, 70}, {40, 96, 72}})
        for (const Computed& c : computed) {
          if (c.from == t || (c.grouped && n.depth % 2 != 0)) continue;      // groups of 10 or 32
          if (++count % 11 > 0 || !weft::test::taken(count / 11)) continue;  // compiling takes most of the time
          const bool transposed = count % 2 == 0, left = count % 3 == 0;
          CAPTURE(c.name);
          CAPTURE(dtype_name(t));
          CAPTURE(n.depth);
          CAPTURE(transposed);
          CAPTURE(left);
          const Graph g = with_prologue(c, n, c.from, t, transposed, left);
          // Integers stay what they are: float64 has no shifts.
          const Graph exact = with_prologue(c, n, is_integer(c.from) ? c.from : float64, float64, transposed, left);
          const std::vector<HostTensor> inputs = exact_sources(g, c);
          std::vector<HostTensor> wide = inputs;
          for (size_t k = 0; k < wide.size(); ++k) wide[k].type = exact.inputs[k].type();
          const Ran got = run(g, inputs, *target);
          INFO(got.plan);
          CHECK(got.launches == 1);
          HostTensor want = evaluate_reference(exact, wide)[0];
          want.type.dtype = t;
          CHECK(compiler::testing::difference(got.outputs[0], want, t == float32 ? 16 : 1, 1e-4) == "");
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

TEST_CASE("on tensor cores a dequantised weight is stored where that is predicted to be faster") {
  static auto& target = *new PlainLibrary;
  const auto weighted = [](int64_t m, int64_t n, int64_t k) {
    const Value x = parameter({{m, k}, bfloat16}), w = parameter({{k, n}, int8}), scale = parameter({{n}, bfloat16});
    return Graph{{x, w, scale}, {dot(x, cast(w, bfloat16) * broadcast(scale, {k, n}), {1}, {0})}};
  };
  for (const auto& [m, n, k, calls] :
       {std::array<int64_t, 4>{8192, 4096, 4096, 1}, {2048, 2048, 2048, 1}, {64, 8192, 8192, 0}}) {
    CAPTURE(m);
    const Graph g = weighted(m, n, k);
    CHECK(compiler::build({g, {}, {}}, target)->stats().library_calls == calls);
    const auto alone = compiler::build({g, {}, {}}, target, generated());
    CHECK(alone->stats().count() == (m == 64 ? 1 : 2));  // every program would read it again from the L2
  }
}

TEST_CASE("what a kernel makes anyway is made there, and not by a matmul that loads it") {
  static auto& target = *new PlainLibrary;
  const Value x = parameter({{256, 512}, float32}), w = parameter({{512, 128}, bfloat16});
  const Value norm = x * broadcast(unary(Op::rsqrt, sum(x * x, {1}, true)), x.shape());
  const auto launches = [&](const Value& operand) {
    const Value y = dot(cast(operand, bfloat16), w, {1}, {0});
    return compiler::build({{{x, w}, {y}}, {}, {}}, target, generated())->stats().count();
  };
  CHECK(launches(x * 2.0) == 1);
  CHECK(launches(norm) == 2);             // in the pass that computes its statistics
  CHECK(launches(softmax(x, {1})) == 2);  // an exponential is not computed again for each tile
}
