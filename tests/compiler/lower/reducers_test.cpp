// Reducers whose state has several components (kernel/reducer.h), wherever a reduction is placed: in lanes, in a loop,
// in the warps of a block, in the blocks of a cluster, in two launches.
#include <cmath>

#include "compiler/lower/planned.h"
#include "compiler/support.h"
#include "graph/instances.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using kernel::Reducer;

namespace {

/// Small numbers with many ties; of floats, one NaN among every thousand.
HostTensor with_ties(const Type& type, bool nans) {
  graph::testing::Random r(3);
  HostTensor t{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k) {
    const int64_t v = r.between(is_unsigned(type.dtype) ? 0 : -40, 40);
    t.data.push_back(is_float(type.dtype) ? Number::of_real(nans && r.chance(1000) ? NAN : static_cast<double>(v))
                                          : Number::of_int(v));
  }
  return t;
}

/// Both results of an extreme and its index along `axes`, elements numbered row-major.
Graph extremes(Reducer reducer, const Shape& shape, Dtype dtype, const std::vector<int64_t>& axes) {
  const Value x = parameter({shape, dtype});
  const Value numbers = reshape(iota({num_elements(shape)}, 0, uint32), shape);
  return {{x}, reduce_state(reducer, {x, numbers}, axes)};
}

struct Placed {
  Shape shape;
  std::vector<int64_t> axes;
};

const Placed placements[] = {{{5, 300}, {1}},    {{3, 9001}, {1}},    {{2, 70000}, {1}},    {{300000}, {0}},
                             {{700, 40}, {0}},   {{2051, 136}, {0}},  {{20000, 3}, {0}},    {{3, 70, 40}, {1}},
                             {{40, 50}, {0, 1}}, {{9, 4, 8}, {0, 2}}, {{4, 70000}, {0, 1}}, {{4, 0}, {1}}};

int launches(const Graph& g) { return build({g, {}, {}}, target::null())->stats().count(); }

}  // namespace

TEST_CASE("states of several components are the reference's bits wherever a reduction is placed") {
  Interpreted blocks(1), cluster(4, 8);
  int64_t turn = 0;
  for (target::Target* target : {&weft::test::target_under_test(), static_cast<target::Target*>(&blocks),
                                 static_cast<target::Target*>(&cluster)})
    for (const Placed& p : placements)
      for (const Dtype dtype : {float32, bfloat16, float64, int32, uint8}) {
        // Wide tiles take seconds: each dtype has one of the extremes, and clusters the long axes alone.
        const bool wide = num_elements(p.shape) > 20000;
        if ((wide && (dtype == float64 || dtype == uint8)) || (!wide && target == &cluster)) continue;
        if (!weft::test::taken(turn++)) continue;
        const Reducer reducer = dtype == float32 || dtype == uint8 ? Reducer::argmax : Reducer::argmin;
        const Graph g = extremes(reducer, p.shape, dtype, p.axes);
        const HostTensor input = with_ties(g.inputs[0].type(), is_float(dtype));
        const auto expected = evaluate_reference(g, std::vector<HostTensor>{input});
        const auto program = build({g, {}, {}}, *target);
        const auto got = program->run(std::vector<graph::Storage>{to_storage(input)});
        CAPTURE(to_string(g.inputs[0].type()));
        CAPTURE(target->fingerprint());
        for (size_t k = 0; k < got.size(); ++k)
          CHECK(difference(from_storage(got[k], g.outputs[k].type()), expected[k], 0) == "");
      }
}

TEST_CASE("the first of equal extremes is found, and the first NaN") {
  const double inf = INFINITY;
  const auto index = [&](Reducer reducer, std::vector<double> v) {
    const Value x = parameter({{static_cast<int64_t>(v.size())}, float32});
    HostTensor t{x.type(), {}};
    for (double n : v) t.data.push_back(Number::of_real(n));
    return compile_and_run({{x}, {extreme_index(reducer, x, 0)}}, {t}).outputs[0].data[0].i;
  };
  CHECK(index(Reducer::argmax, {1, 3, 3, 2}) == 1);
  CHECK(index(Reducer::argmin, {2, 1, 3, 1}) == 1);
  CHECK(index(Reducer::argmax, {-0.0, 0.0, -1}) == 0);
  CHECK(index(Reducer::argmax, {-inf, -inf, -inf}) == 0);
  CHECK(index(Reducer::argmin, {inf, inf}) == 0);
  for (const Reducer r : {Reducer::argmax, Reducer::argmin}) {
    CHECK(index(r, {1, NAN, inf, -inf, NAN, 2}) == 1);
    CHECK(index(r, {NAN, NAN}) == 0);
  }
}

TEST_CASE("an index of an extreme is one launch that reads its input once, and two where rows are split") {
  const auto of = [](Shape shape, int axis) {
    const Value x = parameter({std::move(shape), float32});
    return Graph{{x}, {extreme_index(Reducer::argmax, x, axis)}};
  };
  for (const Graph& g : {of({4096, 50304}, 1), of({512, 1000}, 1), of({512, 4096}, 0), of({64, 100}, 0)}) {
    CHECK(launches(g) == 1);
    const auto program = build({g, {}, {}}, target::null());
    REQUIRE(program->steps().size() == 1);
    const auto elements = static_cast<double>(num_elements(g.inputs[0].shape()));
    CHECK(program->steps()[0].bytes <= 4.0 * (elements + static_cast<double>(num_elements(g.outputs[0].shape()))));
    const std::string text = program->print("kernels");
    size_t loads = 0;  // of whole tiles, and of the remainder
    for (size_t at = text.find("load p1["); at != std::string::npos; at = text.find("load p1[", at + 1)) ++loads;
    CHECK(loads >= 1);
    CHECK(loads <= 8);
  }
  weft::test::SimtTarget blocks(1);
  CHECK(build({of({8, 1 << 20}, 1), {}, {}}, blocks)->stats().count() == 2);
  const Value columns = parameter({{1 << 20, 8}, float32});  // split as often as any other reduction
  CHECK(build({of({1 << 20, 8}, 0), {}, {}}, blocks)->stats().count() ==
        build({{{columns}, {max(columns, {0})}}, {}, {}}, blocks)->stats().count());
}

TEST_CASE("an extreme and its index of one array are one kernel") {
  const Value x = parameter({{64, 3000}, float32});
  CHECK(launches({{x}, reduce_state(Reducer::argmax, {x, iota(x.shape(), 1, uint32)}, {1})}) == 1);
  CHECK(launches({{x}, {extreme_index(Reducer::argmax, exp(x), 1), sum(x, {1})}}) == 1);
}

TEST_CASE("reductions of states refuse what does not fit") {
  const Value x = parameter({{4, 5}, float32}), n = parameter({{4, 5}, int32}), c = parameter({{4, 5}, complex64});
  CHECK_THROWS_WITH_AS(reduce(Reducer::argmax, x, {0}), doctest::Contains("takes 2 arrays"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(reduce_state(Reducer::argmax, {x, n}, {0}), doctest::Contains("expected uint32"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(reduce_state(Reducer::argmax, {c, iota(c.shape(), 0, uint32)}, {0}),
                       doctest::Contains("[argmax] expected a numeric array"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(cumulative(Reducer::argmax, x, 0), doctest::Contains("argmax is not defined"),
                       std::invalid_argument);
}
