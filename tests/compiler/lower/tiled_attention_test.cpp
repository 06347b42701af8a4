// Attention as GPUs without a library run it, and CPUs: by the kernels of src/kernels, on arrays as they lie, without
// matrices of scores; against the region's meaning in float64.
#include <random>

#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/derive/derive.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler::testing;

namespace {

/// A GPU that keeps no tiles of attention in vector registers, as GPUs are.
class TiledTarget final : public test::SimtTarget {
 public:
  TiledTarget() { machine_.vector_registers = 16, machine_.shared_bytes = 99 << 10; }
  std::string fingerprint() const override { return "tiled " + test::SimtTarget::fingerprint(); }
};

/// A CPU with some vector registers and cores, whatever the one here has.
class CpuLikeTarget final : public test::SimtTarget {
 public:
  CpuLikeTarget(int64_t registers, int64_t cores) {
    machine_ = target::cpu().machine();
    machine_.vector_registers = registers, machine_.processors = cores;
  }
  std::string fingerprint() const override {
    return fmt::format("{} registers, {} cores", machine_.vector_registers, machine_.processors);
  }
};

struct Sizes {
  int64_t batch = 2, rows = 40, keys = 40, heads = 4, kv_heads = 4, width = 16;
  bool causal = true;
  Dtype mask = complex64;  // complex64: none
  bool tf32 = false;
  double dropout = 0;
};

/// Attention of projections [batch, rows, heads · width]; where queries and keys are as many, parts of one array.
Graph layer(const Sizes& s, Dtype dtype, bool gradients) {
  const int64_t all = (s.heads + 2 * s.kv_heads) * s.width, shared = s.heads / s.kv_heads;
  const bool joined = s.rows == s.keys;
  std::vector<Value> in;
  const auto projection = [&](int64_t rows, int64_t first, int64_t heads) {
    if (!joined || in.empty()) in.push_back(parameter({{s.batch, rows, joined ? all : heads * s.width}, dtype}));
    const Value part = joined ? graph::slice_axis(in[0], 2, first * s.width, heads * s.width) : in.back();
    return permute(graph::reshape(part, {s.batch, rows, heads, s.width}), {0, 2, 1, 3});
  };
  Value q = projection(s.rows, 0, s.heads), k = projection(s.keys, s.heads, s.kv_heads),
        v = projection(s.keys, s.heads + s.kv_heads, s.kv_heads);
  if (shared > 1) {
    q = graph::reshape(q, {s.batch, s.kv_heads, shared, s.rows, s.width});
    const auto repeated = [&](const Value& x) {
      return broadcast(expand_dims(x, {2}), {s.batch, s.kv_heads, shared, s.keys, s.width});
    };
    k = repeated(k), v = repeated(v);
  }
  Value mask;
  if (s.mask != complex64) {
    in.push_back(parameter({{s.rows, s.keys}, s.mask == bool_ ? bool_ : dtype}));
    mask = in.back();
  }
  AttentionDropout dropout;
  if (s.dropout > 0) {
    in.push_back(parameter({{4, 2}, uint32}));  // a row of it is the key, as where keys are split
    dropout = {s.dropout, graph::reshape(graph::slice_axis(in.back(), 0, 2, 1), {2})};
  }
  const Value o =
      graph::reshape(attention(q, k, v, 0.25, s.causal, mask, {}, dropout), {s.batch, s.heads, s.rows, s.width});
  const Value merged = graph::reshape(permute(o, {0, 2, 1, 3}), {s.batch, s.rows, s.heads * s.width});
  Graph g{in, {merged}};
  if (!gradients) return g;
  g.inputs.push_back(parameter({merged.shape(), dtype}));
  Values of(in.begin(), in.begin() + (joined ? 1 : 3));
  for (const Value& slope : pull_back(Values{merged}, Values{g.inputs.back()}, of)) g.outputs.push_back(slope);
  return g;
}

HostTensor random_tensor(std::mt19937_64& engine, const graph::Type& type, Dtype rounded) {
  HostTensor t{type, {}};
  std::normal_distribution<double> normal;
  for (int64_t k = num_elements(type.shape); k > 0; --k)
    t.data.push_back(type.dtype == bool_    ? Number::of_int(engine() % 4 != 0)
                     : type.dtype == uint32 ? Number::of_int(static_cast<uint32_t>(engine()))
                                            : kernel::round_to(Number::of_real(normal(engine)), rounded));
  return t;
}

/// Returns how far a program's outputs are from float64's, beside the largest.
double distance(const compiler::Program& program, const Sizes& s, Dtype dtype, bool gradients) {
  const Graph exact = layer(s, float64, gradients), g = layer(s, dtype, gradients);
  std::mt19937_64 engine(3);
  std::vector<HostTensor> inputs;
  std::vector<graph::Storage> storage;
  for (size_t k = 0; k < g.inputs.size(); ++k) {
    inputs.push_back(random_tensor(engine, exact.inputs[k].type(), dtype));
    HostTensor rounded = inputs.back();
    rounded.type = g.inputs[k].type();
    storage.push_back(to_storage(rounded));
  }
  const auto wanted = evaluate_reference(exact, inputs);
  const auto results = program.run(storage);
  double most = 0;
  for (size_t k = 0; k < wanted.size(); ++k) {
    const HostTensor got = from_storage(results[k], g.outputs[k].type());
    double largest = 0, off = 0;
    for (size_t i = 0; i < wanted[k].data.size(); ++i) {
      largest = std::max(largest, std::abs(wanted[k].data[i].f));
      const double d = std::abs(got.data[i].f - wanted[k].data[i].f);
      off = std::isnan(d) ? INFINITY : std::max(off, d);
    }
    most = std::max(most, off / largest);
  }
  return most;
}

}  // namespace

TEST_CASE("GPUs without a library compute attention and its gradients by their own kernels") {
  TiledTarget target;
  for (const Sizes& s : {Sizes{}, Sizes{.rows = 33, .keys = 50}, Sizes{.kv_heads = 2, .causal = false},
                         Sizes{.rows = 70, .keys = 70, .width = 24}, Sizes{.causal = false, .mask = bool_},
                         Sizes{.rows = 36, .keys = 45, .mask = float32}, Sizes{.kv_heads = 2, .dropout = 0.2}})
    for (const auto& [dtype, bound] : {std::pair{bfloat16, 2e-2}, {float16, 3e-3}, {float32, 3e-3}}) {
      CAPTURE(s.rows);
      CAPTURE(s.keys);
      CAPTURE(s.kv_heads);
      CAPTURE(dtype_name(dtype));
      compiler::Policy policy;
      policy.numerics.tf32 = true;
      const auto program = compiler::build({layer(s, dtype, true), {}, {}}, target, policy);
      INFO(program->print("plan"));
      CHECK(program->print("plan").find("attention_vjp") != std::string::npos);
      CHECK(distance(*program, s, dtype, true) < bound);
      CHECK(distance(*compiler::build({layer(s, dtype, false), {}, {}}, target, policy), s, dtype, false) < bound);
    }
}

TEST_CASE("CPUs compute attention by the same kernels") {
  for (const auto& [registers, cores] : {std::pair<int64_t, int64_t>{16, 1}, {16, 64}, {32, 1}, {32, 64}}) {
    CpuLikeTarget target(registers, cores);
    for (const Sizes& s : {Sizes{}, Sizes{.rows = 33, .keys = 50}, Sizes{.kv_heads = 2, .causal = false},
                           Sizes{.rows = 130, .keys = 130, .width = 24}, Sizes{.causal = false, .mask = bool_},
                           Sizes{.rows = 36, .keys = 45, .mask = float32}, Sizes{.kv_heads = 2, .dropout = 0.2}})
      for (const auto& [dtype, bound] : {std::pair{float32, 2e-5}, {bfloat16, 1.6e-2}}) {
        CAPTURE(s.rows);
        CAPTURE(s.keys);
        CAPTURE(s.kv_heads);
        CAPTURE(registers);
        CAPTURE(cores);
        CAPTURE(dtype_name(dtype));
        const auto program = compiler::build({layer(s, dtype, true), {}, {}}, target);
        INFO(program->print("plan"));
        CHECK(program->print("plan").find("attention_vjp") != std::string::npos);
        CHECK(distance(*program, s, dtype, true) < bound);
        CHECK(distance(*compiler::build({layer(s, dtype, false), {}, {}}, target), s, dtype, false) < bound);
      }
  }
}

TEST_CASE("a training step's attention on a GPU needs no memory for scores") {
  TiledTarget target;
  const Sizes s{.batch = 1, .rows = 1024, .keys = 1024, .heads = 4, .kv_heads = 4, .width = 64};
  const auto program = compiler::build({layer(s, bfloat16, true), {}, {}}, target);
  CHECK(program->stats().arena_bytes < 1024 * 1024 * 4 * 2);
  // Exact float32 stays with the products of libraries.
  const auto exact = compiler::build({layer(s, float32, true), {}, {}}, target);
  CHECK(exact->print("plan").find("attention_vjp") == std::string::npos);
}
