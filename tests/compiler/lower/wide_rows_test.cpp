// What a device of many threads makes of arrays that are read across and of rows: tiles that are transposed as a whole,
// rows of any width. The kernels are tile IR like any other: the CPU's code generator runs them, and a GPU where tests
// have one.
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

HostTensor random_values(graph::testing::Random& r, const graph::Type& type) {
  HostTensor t{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k)
    t.data.push_back(kernel::round_to(Number::of_real(static_cast<double>(r.below(4001)) / 1000.0 - 2), type.dtype));
  return t;
}

std::vector<HostTensor> run_on(target::Target& target, const Graph& g, const std::vector<HostTensor>& inputs) {
  const auto program = build({g, {}, {}}, target);
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  const auto results = program->run(storages);
  std::vector<HostTensor> outputs;
  for (size_t k = 0; k < results.size(); ++k) outputs.push_back(from_storage(results[k], g.outputs[k].type()));
  return outputs;
}

}  // namespace

TEST_CASE("tiles that are transposed as a whole, at sizes that no tile divides") {
  weft::test::SimtTarget many;
  graph::testing::Random r(5);
  struct Case {
    Shape shape;
    Dtype dtype;
  };
  for (const Case& c : {Case{{3, 200, 160}, float32}, Case{{1, 1000, 1010}, bfloat16}, Case{{1, 1024, 1090}, bfloat16},
                        Case{{2, 100, 72}, float64}, Case{{1, 96, 80}, int8}}) {
    CAPTURE(to_string(c.shape));
    const Shape transposed{c.shape[0], c.shape[2], c.shape[1]};
    const Value x = parameter({c.shape, c.dtype}), y = parameter({transposed, c.dtype}),
                z = parameter({{c.shape[2], 1}, c.dtype});
    // Across, along, and one number a row.
    const Graph g{{x, y, z}, {permute(x, {0, 2, 1}), permute(x, {0, 2, 1}) + y * graph::broadcast(z, transposed)}};
    std::vector<HostTensor> inputs;
    for (const Value& v : g.inputs) inputs.push_back(random_values(r, v.type()));
    const auto expected = evaluate_reference(g, inputs);
    for (target::Target* target : std::initializer_list<target::Target*>{&many, &weft::test::target_under_test()}) {
      const auto got = run_on(*target, g, inputs);
      CHECK(difference(got[0], expected[0], 0) == "");
      CHECK(difference(got[1], expected[1], 2, is_low_float(c.dtype) ? 0.03 : 0) == "");
    }
  }
}

TEST_CASE("sums along the rows are taken by the kernel of the rows, and are the same at every run") {
  weft::test::SimtTarget many;
  graph::testing::Random r(6);
  struct Case {
    Shape shape;
    Dtype dtype;
  };
  for (const Case& c : {Case{{2, 160, 96}, float32}, Case{{264, 130}, bfloat16}, Case{{256, 1100}, bfloat16},
                        Case{{140, 2, 72}, float32}}) {
    CAPTURE(to_string(c.shape));
    const auto last = static_cast<int64_t>(c.shape.size()) - 1;
    std::vector<int64_t> rows;
    for (int64_t axis = 0; axis < last; ++axis) rows.push_back(axis);
    const Shape width{c.shape.back()};
    // A norm's derivative: towards its input (with a residual), its weight, its bias, and the bias that was added
    // before it.
    const auto of = [&](Dtype t) {
      const Value x = parameter({c.shape, t}), w = parameter({width, t}), g = parameter({c.shape, t}),
                  residual = parameter({c.shape, t});
      const auto wide = [&](const Value& v) { return cast(v, t == bfloat16 ? float32 : t); };
      Shape ones = c.shape;
      ones.back() = 1;
      const auto mean = [&](const Value& v) {
        return graph::broadcast(reshape(sum(v, {last}), ones) * (1.0 / static_cast<double>(c.shape.back().bound())),
                                c.shape);
      };
      const Value centred = wide(x) - mean(wide(x)), scale = unary(Op::rsqrt, mean(centred * centred) + 1e-5),
                  normal = centred * scale;
      const Value gw = wide(g) * graph::broadcast(wide(w), c.shape);
      const Value dx = cast((gw - mean(gw) - normal * mean(gw * normal)) * scale, t) + residual;
      return Graph{
          {x, w, g, residual},
          {dx, cast(sum(wide(g) * normal, rows), t), cast(sum(wide(g), rows), t), cast(sum(wide(dx), rows), t)}};
    };
    std::vector<HostTensor> inputs, doubles;
    for (const Value& v : of(c.dtype).inputs) {
      inputs.push_back(random_values(r, v.type()));
      doubles.push_back(inputs.back());
      doubles.back().type.dtype = float64;
    }
    const auto expected = evaluate_reference(of(float64), doubles);
    for (target::Target* target : std::initializer_list<target::Target*>{&many, &weft::test::target_under_test()}) {
      const auto got = run_on(*target, of(c.dtype), inputs), again = run_on(*target, of(c.dtype), inputs);
      for (size_t k = 0; k < expected.size(); ++k) {
        HostTensor want = expected[k];
        want.type.dtype = c.dtype;
        const double largest = k == 0 ? 4
                                      : 4 * std::sqrt(static_cast<double>(num_elements(c.shape)) /
                                                      static_cast<double>(c.shape.back().bound()));
        CHECK(difference(got[k], want, 2, largest * (c.dtype == bfloat16 ? 8e-3 : 4e-6)) == "");
        CHECK(difference(again[k], got[k], 0) == "");
      }
    }
    const auto program = build({of(c.dtype), {}, {}}, many);
    CAPTURE(program->print("groups"));
    CHECK(program->stats().count() == 2);  // the rows, and the parts of all sums in one launch
    CHECK((program->print("kernels").find("prefetch") != std::string::npos) ==
          (c.shape.back().bound() > 1024));  // where a row is more than a warp's, the row after the next is asked for
  }
}

TEST_CASE("wide columns are summed in parts enough for all multiprocessors, whatever divides the rows") {
  weft::test::SimtTarget many;
  const auto parts = [&](const Shape& shape) {
    const Value x = parameter({shape, bfloat16});
    return build({Graph{{x}, {sum(cast(x, float32), {0, 1})}}, {}, {}}, many)->print("plan");
  };
  CHECK(parts({32, 1024, 5120}).find("grid 2560\n") !=
        std::string::npos);  // 64 parts of 40 panels: some 51 would do, and 32 is their largest divisor up to there
  CHECK(parts({32, 1024, 6400}).find("grid 1600\n") != std::string::npos);
}
