// Long rows that blocks of threads share: one launch, every pass a parallel loop. The interpreter runs them here.
#include <random>

#include "compiler/lower/interpreted.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "kernel/expand/expand.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// Keeps what it is given to compile.
class Watched final : public weft::test::SimtTarget {
 public:
  Watched() : SimtTarget(8, 128) {}
  std::string fingerprint() const override { return "watched"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    std::vector<std::shared_ptr<const target::Executable>> out;
    for (const kernel::Kernel& k : kernels) {
      text += print(k);
      out.push_back(std::make_shared<InterpretedKernel>(kernel::expand(k)));
    }
    return out;
  }
  int parallel_loops() const {
    int count = 0;
    for (size_t at = 0; (at = text.find("loop parallel", at)) != std::string::npos; ++at) ++count;
    return count;
  }
  std::string text;
};

std::vector<HostTensor> random_inputs(const Graph& g) {
  std::mt19937_64 engine(5);
  std::normal_distribution<double> normal;
  std::vector<HostTensor> all;
  for (const Value& v : g.inputs) {
    HostTensor t{v.type(), {}};
    for (int64_t k = num_elements(v.shape()); k > 0; --k)
      t.data.push_back(kernel::round_to(Number::of_real(normal(engine)), v.dtype()));
    all.push_back(std::move(t));
  }
  return all;
}

using Make = std::function<Graph(int64_t, int64_t, Dtype)>;

Value param(Shape shape, Dtype dtype) { return parameter({std::move(shape), dtype}); }

/// How far the results lie from those of float64, in parts of the largest of each.
double worst(const Graph& exact, const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& got) {
  std::vector<HostTensor> wide = inputs;
  for (HostTensor& t : wide) t.type.dtype = float64;
  const std::vector<HostTensor> expected = evaluate_reference(exact, wide);
  double error = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    double scale = 0, off = 0;
    for (size_t i = 0; i < got[k].data.size(); ++i) {
      scale = std::max(scale, std::abs(expected[k].data[i].real()));
      off = std::max(off, std::abs(got[k].data[i].real() - expected[k].data[i].real()));
    }
    error = std::max(error, off / scale);
  }
  return error;
}

std::pair<std::vector<HostTensor>, int64_t> run(const Graph& g, const std::vector<HostTensor>& inputs,
                                                target::Target& target) {
  const auto program = build({g, {}, {}}, target);
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) {
    const graph::Storage plain = to_storage(t);
    storages.push_back(
        {runtime::allocate(size_t{1} << 23), 0, plain.strides});  // the interpreter's bound lies inside of it
    std::memcpy(storages.back().buffer->data(), plain.buffer->data(),
                static_cast<size_t>(num_elements(t.type.shape)) * t.type.dtype.size());
  }
  const auto results = program->run(storages);
  std::pair<std::vector<HostTensor>, int64_t> out{{}, program->stats().count()};
  for (size_t k = 0; k < results.size(); ++k) out.first.push_back(from_storage(results[k], g.outputs[k].type()));
  return out;
}

Graph softmaxes(int64_t rows, int64_t columns, Dtype t) {
  const Value x = param({rows, columns}, t);
  return {{x}, {softmax(x, {1})}};
}
Graph norms(int64_t rows, int64_t columns, Dtype t) {
  const Value x = param({rows, columns}, t), w = param({columns}, t), b = param({columns}, t);
  return {{x, w, b}, {layer_norm(x, w, b, 1e-5)}};
}
/// Several reductions, some of them results, one over what another left.
Graph reductions(int64_t rows, int64_t columns, Dtype t) {
  const Value x = param({rows, columns}, t), f = cast(x, is_low_float(t) ? float32 : t), most = max(f, {1}),
              d = f - broadcast(expand_dims(most, {1}), f.shape());
  return {{x}, {most, sum(d, {1}), sum(d * d, {1}), d * 0.5}};
}

Graph sums_of_columns(int64_t rows, int64_t columns, Dtype t) {
  const Value x = param({rows, columns}, t), b = param({columns}, t);
  return {{x, b}, {sum(x, {0}) * 0.125 + b}};
}
/// Several reductions, in one walk down the columns.
Graph reductions_of_columns(int64_t rows, int64_t columns, Dtype t) {
  const Value x = param({rows, columns}, t);
  return {{x}, {max(x, {0}), sum(x, {0})}};
}
}  // namespace

TEST_CASE("warps and blocks of threads share columns: one launch, near float64") {
  struct Case {
    const char* name;
    Make make;
    int64_t rows, columns;
    Dtype dtype;
  };
  // In even parts; with rows and columns left over.
  for (const Case& c :
       {Case{"sum", sums_of_columns, 2560, 128, bfloat16}, Case{"sum", sums_of_columns, 2051, 136, float32},
        Case{"reductions", reductions_of_columns, 2051, 136, bfloat16}}) {
    CAPTURE(c.name);
    CAPTURE(c.columns);
    const Graph g = c.make(c.rows, c.columns, c.dtype);
    const auto inputs = random_inputs(g);
    Watched target;
    const auto [got, launches] = run(g, inputs, target);
    CHECK(launches == 1);
    CHECK(target.parallel_loops() == 1);
    CHECK(worst(c.make(c.rows, c.columns, float64), inputs, got) < (c.dtype == float32 ? 2e-6 : 1e-2));
  }
}

TEST_CASE("blocks of threads share rows: one launch, near float64") {
  struct Case {
    const char* name;
    Make make;
    int loops;
  };
  for (const Case& c : {Case{"softmax", softmaxes, 3}, Case{"layer norm", norms, 3}, Case{"reductions", reductions, 2}})
    for (const Shape& shape : {Shape{2, 33000}, {1, 20011}, {1, 9001}})  // in 8, 4 and 2 parts
      for (const Dtype t : {float32, bfloat16}) {
        const int64_t rows = shape[0].bound(), columns = shape[1].bound();
        CAPTURE(c.name);
        CAPTURE(columns);
        const Graph g = c.make(rows, columns, t);
        const auto inputs = random_inputs(g);
        Watched target;
        const auto [got, launches] = run(g, inputs, target);
        CHECK(launches == 1);
        CHECK(target.parallel_loops() == c.loops);
        CHECK(worst(c.make(rows, columns, float64), inputs, got) < (t == float32 ? 2e-5 : 1e-2));
      }
}
