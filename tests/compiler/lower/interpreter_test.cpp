// Every kernel that the compiler makes also runs in the interpreter, with the same bits: whole programs on a target
// that interprets, held against generated code, over random sizes; libraries are off, so that products go through the
// dot class.
#include <random>

#include "compiler/lower/interpreted.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"
#include "kernel/expand/expand.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

class InterpretedTarget : public target::Target {
 public:
  InterpretedTarget() { machine_ = target::cpu().machine(); }
  std::string fingerprint() const override { return "interpreter"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    std::vector<std::shared_ptr<const target::Executable>> result;
    for (const kernel::Kernel& k : kernels) {
      CHECK_FALSE(kernel::print(k).empty());
      result.push_back(std::make_shared<InterpretedKernel>(kernel::expand(k)));
    }
    return result;
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    return target::cpu().call(desc);
  }
  target::CompileStats stats() const override { return {}; }
};

/// What is made for a GPU with tensor cores.
class InterpretedGpu final : public InterpretedTarget {
 public:
  /// `bytes` of shared memory a block.
  explicit InterpretedGpu(int64_t bytes) {
    machine_ = weft::test::as_gpu(machine_);
    machine_.vector_bytes = 1024;
    machine_.shared_bytes = bytes;
    machine_.tensor_cores = true;
  }
  std::string fingerprint() const override { return "interpreted gpu " + std::to_string(machine_.shared_bytes); }
};

/// Both ways over the same inputs; an empty string where all bits agree, or all numbers but for so much.
std::string disagreement(const Graph& g, const std::vector<HostTensor>& inputs, InterpretedTarget&& interpreter = {},
                         double absolute = 0) {
  Policy policy;
  policy.libraries = false;
  std::vector<std::vector<HostTensor>> results;
  for (target::Target* target : {&target::cpu(), static_cast<target::Target*>(&interpreter)}) {
    std::vector<graph::Storage> storages;
    // Room behind each buffer, so that the interpreter's bound above is inside the allocation.
    for (const HostTensor& t : inputs) {
      graph::Storage plain = to_storage(t);
      graph::Storage roomy{runtime::allocate((size_t(1) << 23)), 0, plain.strides};
      std::memcpy(roomy.buffer->data(), plain.buffer->data(),
                  static_cast<size_t>(num_elements(t.type.shape)) * t.type.dtype.size());
      storages.push_back(roomy);
    }
    auto outputs = build({g, {}, {}}, *target, policy)->run(storages);
    std::vector<HostTensor> values;
    for (size_t k = 0; k < outputs.size(); ++k) values.push_back(from_storage(outputs[k], g.outputs[k].type()));
    results.push_back(std::move(values));
  }
  for (size_t k = 0; k < results[0].size(); ++k)
    if (auto error = difference(results[0][k], results[1][k], 0, absolute); !error.empty())
      return error + "\n" + print(g);
  return {};
}

HostTensor random_floats(std::mt19937_64& engine, const Shape& shape, Dtype dtype = float32) {
  HostTensor t{{shape, dtype}, {}};
  std::normal_distribution<double> normal;
  for (int64_t k = num_elements(shape); k > 0; --k)
    t.data.push_back(kernel::round_to(Number::of_real(normal(engine)), dtype));
  return t;
}

int64_t size(std::mt19937_64& engine, int64_t limit) {
  return 1 + static_cast<int64_t>(engine() % static_cast<uint64_t>(limit));
}

}  // namespace

TEST_CASE("rows: softmax, layer_norm and cross-entropy of any length") {
  std::mt19937_64 engine(3);
  for (int round = 0; round < 12; ++round) {
    int64_t rows = size(engine, 9), n = size(engine, round % 3 == 0 ? 300 : 80);
    Dtype dtype = round % 4 == 3 ? bfloat16 : float32;
    Value x = parameter({{rows, n}, dtype}), w = parameter({{n}, dtype}), b = parameter({{n}, dtype}),
          t = parameter({{rows}, int32});
    HostTensor targets{{{rows}, int32}, {}};
    for (int64_t k = 0; k < rows; ++k)
      targets.data.push_back(Number::of_int(static_cast<int64_t>(engine() % static_cast<uint64_t>(n))));
    std::string error = disagreement(
        {{x, w, b, t}, {softmax(x, {1}), layer_norm(x, w, b, 1e-5), cross_entropy(x, t), sum(x, {0}), gelu_tanh(x)}},
        {random_floats(engine, {rows, n}, dtype), random_floats(engine, {n}, dtype), random_floats(engine, {n}, dtype),
         targets});
    CHECK_MESSAGE(error.empty(), error);
  }
}

TEST_CASE("scatters whose places are distributed to programs: repeated, negative and impossible indices") {
  std::mt19937_64 engine(11);
  for (const int64_t count : {64, 75, 203}) {
    for (const int64_t positions : {1, 5, 70}) {
      const Value table = parameter({{positions, 40}, float32}), at = parameter({{count}, int32}),
                  updates = parameter({{count, 1, 40}, bfloat16});
      HostTensor indices{at.type(), {}};
      for (int64_t k = 0; k < count; ++k)
        indices.data.push_back(
            Number::of_int(static_cast<int64_t>(engine() % static_cast<uint64_t>(2 * positions + 4)) - positions - 2));
      const std::string error = disagreement(
          {{table, at, updates}, {scatter(ScatterMode::add, table, {at}, cast(updates, float32), {0})}},
          {random_floats(engine, {positions, 40}), indices, random_floats(engine, {count, 1, 40}, bfloat16)},
          InterpretedGpu(0));
      CHECK_MESSAGE(error.empty(), count, " indices of ", positions, " places: ", error);
    }
  }
}

TEST_CASE("rows too long for registers keep dear values in scratch and ask for the next row") {
  std::mt19937_64 engine(5);
  for (int round = 0; round < 4; ++round) {
    const int64_t n = 520 + size(engine, 700);
    const Dtype dtype = round % 2 ? bfloat16 : float32;
    const Value x = parameter({{3, n}, dtype}), w = parameter({{n}, dtype}), b = parameter({{n}, dtype});
    const Graph g{{x, w, b}, {softmax(x, {1}), layer_norm(x, w, b, 1e-5)}};
    const std::string kernels = build({g, {}, {}}, target::cpu())->print("kernels");
    CHECK(kernels.find("alloc") != std::string::npos);
    CHECK(kernels.find("prefetch") != std::string::npos);
    const std::string error = disagreement(g, {random_floats(engine, {3, n}, dtype), random_floats(engine, {n}, dtype),
                                               random_floats(engine, {n}, dtype)});
    CHECK_MESSAGE(error.empty(), error);
  }
}

TEST_CASE("maps that read across the lines of an operand") {
  std::mt19937_64 engine(6);
  for (int round = 0; round < 8; ++round) {
    const int64_t u = 16 + size(engine, 60), v = 16 + size(engine, 150), batch = 1 + 8192 / (u * v) + size(engine, 2);
    const Dtype dtype = round % 3 == 1 ? bfloat16 : round % 3 == 2 ? float16 : float32;
    const Value x = parameter({{batch, v, u}, dtype}), y = parameter({{batch, u, v}, float32}),
                z = parameter({{v, u}, float64}), w = parameter({{u}, dtype});
    const Value across = permute(x, {0, 2, 1}),
                cast_across = cast(broadcast(permute(z, {1, 0}), {batch, u, v}), float32);
    const Value column = cast(broadcast(expand_dims(w, {1}), {batch, u, v}), float32);
    const Graph g{{x, y, z, w}, {across + across, cast(across, float32) * y + cast_across * column}};
    CHECK(build({g, {}, {}}, target::cpu())->print("kernels").find("@transposed") != std::string::npos);
    const std::string error =
        disagreement(g, {random_floats(engine, {batch, v, u}, dtype), random_floats(engine, {batch, u, v}),
                         random_floats(engine, {v, u}, float64), random_floats(engine, {u}, dtype)});
    CHECK_MESSAGE(error.empty(), error);
  }
}

TEST_CASE("column reductions over much data go through panels") {
  std::mt19937_64 engine(8);
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{257, 2056}, {515, 1100}}) {
    const Value x = parameter({{rows, columns}, float32}), w = parameter({{columns}, float32});
    const Graph g{{x, w}, {sum(x * broadcast(w, {rows, columns}), {0}) + w, max(x, {0}, false)}};
    const std::string error =
        disagreement(g, {random_floats(engine, {rows, columns}), random_floats(engine, {columns})});
    CHECK_MESSAGE(error.empty(), error);
  }
}

TEST_CASE("dots of any size and layout") {
  std::mt19937_64 engine(4);
  for (int round = 0; round < 24; ++round) {
    int64_t batch = size(engine, 3), m = size(engine, 40), n = size(engine, 70), k = size(engine, 40);
    bool ta = engine() % 2, tb = engine() % 2;
    Shape sa = ta ? Shape{batch, k, m} : Shape{batch, m, k}, sb = tb ? Shape{batch, n, k} : Shape{batch, k, n};
    Value a = parameter({sa, float32}), b = parameter({sb, float32}), bias = parameter({{n}, float32});
    Value c = dot(a, b, {ta ? 1 : 2}, {tb ? 2 : 1}, {0}, {0});
    if (engine() % 2) c = c + broadcast(bias, {batch, m, n});
    Value r = parameter({{batch, m, n}, float32});
    switch (engine() % 6) {
      case 1: c = gelu(c); break;
      case 2: c = gelu_tanh(c); break;
      case 3: c = binary(Op::max, c, zeros_like(c)); break;
      case 4: c = tanh(c); break;
      case 5: c = unary(Op::sigmoid, c); break;
      default: break;
    }
    if (engine() % 2) c = r + c;
    Value x = parameter({{k, m}, float32}), y = parameter({{k, n}, float32});
    std::string sums = disagreement({{x, y}, {dot(x, y, {0}, {0}), graph::sum(round % 2 ? x : y, {0})}},
                                    {random_floats(engine, {k, m}), random_floats(engine, {k, n})});
    CHECK_MESSAGE(sums.empty(), sums);
    std::string error =
        disagreement({{a, b, bias, r}, {c}}, {random_floats(engine, sa), random_floats(engine, sb),
                                              random_floats(engine, {n}), random_floats(engine, {batch, m, n})});
    CHECK_MESSAGE(error.empty(), error);
  }
}

// The interpreter adds a product's terms in ascending order, so that even the bits are those of the CPU, but for its
// dots with lanes along k.
TEST_CASE("dots for tensor cores, of any size and layout and with what rides on them") {
  std::mt19937_64 engine(12);
  for (int round = 0; round < 20; ++round) {
    const int64_t batch = round % 4 == 0 ? 1 : size(engine, 3), m = 15 + size(engine, 120), n = 15 + size(engine, 150),
                  k = size(engine, 90);
    const bool ta = engine() % 2, tb = engine() % 2, tc = engine() % 3 == 0;
    const Dtype t = round % 2 ? bfloat16 : float16;
    const Shape sa = ta ? Shape{batch, k, m} : Shape{batch, m, k}, sb = tb ? Shape{batch, n, k} : Shape{batch, k, n};
    const Value a = parameter({sa, t}), b = parameter({sb, t}), bias = parameter({{n}, t}),
                r = parameter({{batch, m, n}, t});
    Value c = dot(a, b, {ta ? 1 : 2}, {tb ? 2 : 1}, {0}, {0});
    if (tc) {
      c = permute(c, {0, 2, 1});
    } else {
      if (engine() % 2) c = c + broadcast(bias, {batch, m, n});
      if (engine() % 3 == 0) c = gelu_tanh(c);
      if (engine() % 2) c = r + c;
    }
    const Graph g{{a, b, bias, r}, {c}};
    const std::vector<HostTensor> inputs{random_floats(engine, sa, t), random_floats(engine, sb, t),
                                         random_floats(engine, {n}, t), random_floats(engine, {batch, m, n}, t)};
    for (const int64_t bytes : {99 << 10, 227 << 10}) {
      InterpretedGpu gpu(bytes);
      CHECK(build({g, {}, {}}, gpu)->print("kernels").find("any_size") != std::string::npos);
      const std::string error = disagreement(g, inputs, std::move(gpu), tb && !ta ? 0.13 : 0);
      CHECK_MESSAGE(error.empty(), error);
    }
  }
}

TEST_CASE("attention of any size, with and without masks") {
  std::mt19937_64 engine(6);
  for (int round = 0; round < 10; ++round) {
    int64_t heads = size(engine, 3), tq = 7 + size(engine, 40), tk = round % 2 ? tq : size(engine, 80),
            d = size(engine, 24), dv = size(engine, 40);
    Dtype dtype = round % 5 == 4 ? bfloat16 : float32;
    Shape sq{heads, tq, d}, sk{heads, tk, d}, sv{heads, tk, dv}, so{heads, tq, dv}, sm{round % 3 ? tq : 1, tk};
    Value q = parameter({sq, dtype}), k = parameter({sk, dtype}), v = parameter({sv, dtype}),
          g = parameter({so, dtype}), m = parameter({sm, dtype});
    Value o = attention(q, k, v, 0.4, round % 2, round % 4 < 2 ? m : Value{});
    const Values results{o, {o.node, 1}}, cotangents{g, {}};
    Values gradients = o.node->attrs().composite->vjp(o.node->inputs(), results, cotangents);
    std::string error = disagreement(
        {{q, k, v, g, m}, {o, gradients[0], gradients[1], gradients[2]}},
        {random_floats(engine, sq, dtype), random_floats(engine, sk, dtype), random_floats(engine, sv, dtype),
         random_floats(engine, so, dtype), random_floats(engine, sm, dtype)});
    CHECK_MESSAGE(error.empty(), error);
  }
}

TEST_CASE("large dots go through packed blocks, in every layout") {
  std::mt19937_64 engine(9);
  for (int round = 0; round < 8; ++round) {
    const int64_t m = round == 0 ? 300 : 60 + size(engine, 60), n = round == 1 ? 560 : 90 + size(engine, 60);
    const int64_t k = round % 2 ? 300 + size(engine, 20) : 180 + size(engine, 70);
    const bool ta = round & 1, tb = round & 2, turned = round & 4;
    const Shape sa = ta ? Shape{k, m} : Shape{m, k}, sb = tb ? Shape{n, k} : Shape{k, n};
    const Dtype dtype = round == 5 ? bfloat16 : float32;
    const Value a = parameter({sa, dtype}), b = parameter({sb, dtype}), bias = parameter({{n}, dtype});
    Value c = dot(a, b, {ta ? 0 : 1}, {tb ? 1 : 0});
    if (turned) c = permute(dot(b, a, {tb ? 1 : 0}, {ta ? 0 : 1}), {1, 0}) * 2.0;
    else c = c + broadcast(bias, {m, n});
    const Graph g{{a, b, bias}, {c}};
    Policy policy;
    policy.libraries = false;
    CHECK(build({g, {}, {}}, target::cpu(), policy)->print("kernels").find("alloc") != std::string::npos);
    const std::string error = disagreement(
        g, {random_floats(engine, sa, dtype), random_floats(engine, sb, dtype), random_floats(engine, {n}, dtype)});
    CHECK_MESSAGE(error.empty(), error);
  }
}

TEST_CASE("dots of 8-bit integers are exact, by the library and by generated code") {
  std::mt19937_64 engine(10);
  for (int round = 0; round < 10; ++round) {
    const int64_t m = size(engine, 40), n = size(engine, 60), k = size(engine, 90);
    const bool tb = engine() % 2;
    const Dtype left = round % 2 ? uint8 : int8;
    const Shape sb = tb ? Shape{n, k} : Shape{k, n};
    const Value a = parameter({{m, k}, left}), b = parameter({sb, int8});
    const Graph g{{a, b}, {dot(a, b, {1}, {tb ? 1 : 0})}};
    CHECK(g.outputs[0].dtype() == int32);
    std::vector<HostTensor> inputs{{{{m, k}, left}, {}}, {{sb, int8}, {}}};
    for (HostTensor& t : inputs)
      for (int64_t i = num_elements(t.type.shape); i > 0; --i)
        t.data.push_back(kernel::round_to(Number::of_int(static_cast<int64_t>(engine() % 256)), t.type.dtype));
    const auto expected = evaluate_reference(g, inputs);
    for (bool libraries : {false, true}) {
      Policy policy;
      policy.libraries = libraries;
      const std::string wrong = difference(compile_and_run(g, inputs, {}, policy).outputs[0], expected[0], 0);
      CHECK_MESSAGE(wrong.empty(), wrong);
    }
    const std::string error = disagreement(g, inputs);
    CHECK_MESSAGE(error.empty(), error);
  }
  CHECK_THROWS_WITH_AS(dot(parameter({{4, 4}, int8}), parameter({{4, 4}, float32}), {1}, {0}),
                       doctest::Contains("8-bit integers"), std::invalid_argument);
}

TEST_CASE("every row of the table") {
  for (const Row* row : table()) {
    if (row->op == Op::parameter || row->op == Op::composite || graph::is_control(row->op)) continue;
    for (const graph::testing::Instance& instance : graph::testing::instances(row->op, 7, 3)) {
      Graph g;
      for (const HostTensor& t : instance.inputs) g.inputs.push_back(parameter(t.type));
      g.outputs = make_all(instance.op, g.inputs, instance.attrs);
      bool through_libm = false;  // float64 functions call the C library in both; the interpreter's own is the same one
      for (const HostTensor& t : instance.inputs) through_libm = through_libm || t.type.dtype == float64;
      if (through_libm) continue;
      std::string error = disagreement(g, instance.inputs);
      CHECK_MESSAGE(error.empty(), row->name, ": ", error);
    }
  }
}
