// The cumulative class: axes of any length along and across memory, forwards and backwards, what is computed with it,
// and its bits.
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/instances.h"
#include "runtime/threads.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using kernel::Reducer;

namespace {

HostTensor filled(const Type& type, uint64_t seed = 1) {
  graph::testing::Random r(seed);
  return graph::testing::random_tensor(r, type);
}

/// The CPU, as if it were filled by many programs only.
class Wide final : public target::Target {
 public:
  Wide() { machine_ = weft::test::as_gpu(target::cpu().machine()); }
  std::string fingerprint() const override { return "wide " + target::cpu().fingerprint(); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return weft::test::compile_when_run(kernels);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  target::CompileStats stats() const override { return {}; }
};

int count(const Graph& g) { return build({g, {}, {}}, target::null())->stats().count(); }

}  // namespace

TEST_CASE("cumulative reductions along axes longer than any block, and across them") {
  uint64_t seed = 0;
  for (int64_t n : {1, 15, 16, 17, 64, 200, 1000})
    for (bool across : {false, true})
      for (int switches = 0; switches < 8; ++switches) {
        const bool backwards = switches & 1, exclusive = switches & 2, logs = switches & 4;
        const Value x = parameter({across ? Shape{2, n, 19} : Shape{3, n}, n % 2 ? float32 : float64});
        const Value y = parameter({x.shape(), int32}), b = parameter({x.shape(), bfloat16});
        Graph g{
            {x, y, b},
            {cumulative(Reducer::sum, x, 1, backwards, exclusive, logs),
             cumulative(Reducer::max, x, 1, backwards, exclusive), cumulative(Reducer::sum, y, 1, backwards, exclusive),
             cumulative(Reducer::prod, y, 1, backwards, exclusive),
             cumulative(logs ? Reducer::min : Reducer::sum, b, 1, backwards, exclusive)}};
        const std::vector<HostTensor> inputs{filled(x.type(), ++seed), filled(y.type(), seed), filled(b.type(), seed)};
        const auto expected = evaluate_reference(g, inputs);
        const auto got = compile_and_run(g, inputs);
        for (size_t k = 0; k < expected.size(); ++k) {
          const std::string error =
              difference(got.outputs[k], expected[k], 4, static_cast<double>(n) * ulp_of(2, x.dtype()));
          CHECK_MESSAGE(error.empty(), "n ", n, " across ", across, " switches ", switches, " output ", k, ": ", error);
        }
      }
}

TEST_CASE("scatters take a symbolic number of slices, and so does the gradient of a slice of symbolic length") {
  static const Symbol n{"n", 6};
  const Value x = parameter({{8, 3}, float32}), at = parameter({{Dim(&n)}, int32}),
              u = parameter({{Dim(&n), 1, 3}, float32}), g = parameter({{Dim(&n), 3}, float32});
  const Value part = slice(x, {1, 0}, {Dim(&n), 3});
  const Values back =
      row(Op::slice).vjp.rule(*part.node, std::vector<Value>{x}, std::vector<Value>{part}, std::vector<Value>{g});
  Values outputs{back[0]};
  for (ScatterMode mode : {ScatterMode::set, ScatterMode::add, ScatterMode::max, ScatterMode::prod})
    outputs.push_back(scatter(mode, x, {at}, u, {0}));
  auto program = build({{{x, at, u, g}, outputs}, {}, {}}, weft::test::target_under_test());
  const HostTensor tx = filled(x.type()), tu = filled(u.type(), 2), tg = filled(g.type(), 3);
  HostTensor ta{at.type(), {}};
  for (int64_t k : {7, 2, -1, 2, 0, 9}) ta.data.push_back(Number::of_int(k));
  for (int64_t length : {1, 3, 6}) {
    const std::vector<int64_t> lengths{length};
    const auto out = program->run(
        std::vector<graph::Storage>{to_storage(tx), to_storage(ta), to_storage(tu), to_storage(tg)}, lengths);
    const Value sa = parameter({{length}, int32}), su = parameter({{length, 1, 3}, float32}),
                sg = parameter({{length, 3}, float32});
    const auto cut = [&](const HostTensor& t, const Value& v) {
      return HostTensor{v.type(), {t.data.begin(), t.data.begin() + num_elements(v.shape())}};
    };
    Graph same{{x, sa, su, sg}, {pad(sg, {1, 0}, {7 - length, 0})}};
    for (ScatterMode mode : {ScatterMode::set, ScatterMode::add, ScatterMode::max, ScatterMode::prod})
      same.outputs.push_back(scatter(mode, x, {sa}, su, {0}));
    const auto expected = evaluate_reference(same, std::vector<HostTensor>{tx, cut(ta, sa), cut(tu, su), cut(tg, sg)});
    for (size_t k = 0; k < out.size(); ++k)
      CHECK(difference(from_storage(out[k], x.type()), expected[k], 2, 1e-6) == "");
  }
}

TEST_CASE("a cumulative reduction computes its operand itself and is one kernel") {
  const Value x = parameter({{64, 64}, float32}), y = parameter({{64}, float32});
  for (int axis : {0, 1})
    CHECK(count({{x, y}, {cumulative(Reducer::sum, exp(x) * broadcast(y, {64, 64}), axis)}}) == 1);
  CHECK(count({{x}, {cumulative(Reducer::max, permute(x, {1, 0}), 1)}}) == 1);
  CHECK(count({{x}, {cumulative(Reducer::sum, x, 1) * 2}}) == 2);
}

TEST_CASE("infinities and NaN pass through cumulative reductions as through their operators") {
  const Value x = parameter({{6}, float64});
  const HostTensor t{x.type(),
                     {Number::of_real(-INFINITY), Number::of_real(-INFINITY), Number::of_real(1),
                      Number::of_real(INFINITY), Number::of_real(NAN), Number::of_real(2)}};
  Graph g{{x},
          {cumulative(Reducer::sum, x, 0, false, false, true), cumulative(Reducer::max, x, 0),
           cumulative(Reducer::min, x, 0, true)}};
  const auto got = compile_and_run(g, {t});
  CHECK(got.outputs[0].data[1].f == -INFINITY);
  CHECK(got.outputs[0].data[2].f == 1);
  CHECK(got.outputs[0].data[3].f == INFINITY);
  CHECK(std::isnan(got.outputs[0].data[5].f));
  CHECK(got.outputs[1].data[3].f == INFINITY);
  CHECK(std::isnan(got.outputs[1].data[5].f));
  CHECK(got.outputs[2].data[5].f == 2);
  CHECK(std::isnan(got.outputs[2].data[0].f));
}

TEST_CASE("the bits of a cumulative reduction do not depend on the number of threads") {
  const Value x = parameter({{40, 3000}, float32});
  Graph g{{x},
          {cumulative(Reducer::sum, x, 1), cumulative(Reducer::sum, x, 0, true),
           cumulative(Reducer::sum, x, 1, false, true, true)}};
  const HostTensor t = filled(x.type());
  const int before = runtime::num_threads();
  runtime::set_num_threads(1);
  const auto one = compile_and_run(g, {t});
  runtime::set_num_threads(3);
  const auto three = compile_and_run(g, {t});
  runtime::set_num_threads(before);
  for (size_t k = 0; k < one.outputs.size(); ++k) CHECK(difference(one.outputs[k], three.outputs[k], 0) == "");
}

TEST_CASE("cumulative reductions along a symbolic axis end at its length") {
  static const Symbol n{"n", 50};
  const Value x = parameter({{3, Dim(&n)}, float32});
  Graph g{{x},
          {cumulative(Reducer::sum, x, 1), cumulative(Reducer::sum, x, 1, true),
           cumulative(Reducer::max, x, 1, true, true)}};
  const HostTensor t = filled(x.type());
  auto program = build({g, {}, {}}, weft::test::target_under_test());
  for (int64_t length : {1, 7, 16, 33, 50}) {
    std::vector<graph::Storage> storages{to_storage(t)};
    const std::vector<int64_t> lengths{length};
    const auto out = program->run(storages, lengths);
    const Value s = parameter({{3, length}, float32});
    HostTensor part{s.type(), {}};
    for (int64_t k = 0; k < 3 * length; ++k)
      part.data.push_back(t.data[static_cast<size_t>(k / length * 50 + k % length)]);
    const auto expected = evaluate_reference({{s},
                                              {cumulative(Reducer::sum, s, 1), cumulative(Reducer::sum, s, 1, true),
                                               cumulative(Reducer::max, s, 1, true, true)}},
                                             std::vector<HostTensor>{part});
    for (size_t k = 0; k < out.size(); ++k) {
      graph::Storage corner = out[k];
      CHECK(corner.strides == Strides{50, 1});
      CHECK(difference(from_storage(corner, s.type()), expected[k], 4, 1e-5) == "");
    }
  }
}

TEST_CASE("long cumulative reductions of few rows are computed in parts where only many programs fill the device") {
  Wide wide;
  uint64_t seed = 100;
  for (bool across : {false, true})
    for (int64_t n : {int64_t{200}, across ? int64_t{1001} : int64_t{17001}, across ? int64_t{1024} : int64_t{20480}})
      for (int switches = static_cast<int>(n % 2);
           switches<8; switches += n> 200 ? weft::test::sanitized ? 7 : 5 : 1) {  // long ones take seconds to compile
        const bool backwards = switches & 1, exclusive = switches & 2, logs = switches & 4;
        const Value x = parameter({across ? Shape{n, 5} : Shape{2, n}, n % 2 ? float32 : float64}),
                    y = parameter({x.shape(), int32}), b = parameter({x.shape(), bfloat16});
        const int axis = across ? 0 : 1;
        const Graph g{{x, y, b},
                      {cumulative(Reducer::sum, x, axis, backwards, exclusive, logs),
                       cumulative(Reducer::max, x, axis, backwards, exclusive),
                       logs ? cumulative(Reducer::min, y, axis, backwards, exclusive)
                            : cumulative(Reducer::prod, y, axis, backwards, exclusive),
                       cumulative(Reducer::sum, b, axis, backwards, exclusive)}};
        const std::vector<HostTensor> inputs{filled(x.type(), ++seed), filled(y.type(), seed), filled(b.type(), seed)};
        const auto program = build({g, {}, {}}, wide);
        CHECK((program->stats().launches > 4) == (n > 200));
        std::vector<graph::Storage> storages;
        for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
        const auto got = program->run(storages), again = program->run(storages);
        const auto expected = evaluate_reference(g, inputs);
        for (size_t k = 0; k < expected.size(); ++k) {
          const HostTensor out = from_storage(got[k], g.outputs[k].type());
          const std::string error = difference(out, expected[k], 4, static_cast<double>(n) * ulp_of(2, x.dtype()));
          CHECK_MESSAGE(error.empty(), "n ", n, " across ", across, " switches ", switches, " output ", k, ": ", error);
          CHECK(difference(from_storage(again[k], g.outputs[k].type()), out, 0) == "");
        }
      }
}
