// Scatters that add whole rows in a fixed order: ids are sorted once, and the kernel that adds the rows computes them.
#include <cmath>
#include <random>

#include "compiler/lower/planned.h"
#include "compiler/pipeline.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "device.h"
#include "graph/derive/derive.h"
#include "target/cuda/cuda.h"
#include "target/cuda/driver/nvrtc.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

constexpr int64_t nodes = 60, edges = 2500, width = 40;

Value param(Shape shape, Dtype dtype = float32) { return parameter({std::move(shape), dtype}); }

/// Adds u [count…, width…] to rows of v.
Value add_rows(const Value& v, const Value& ids, const Value& u) {
  Shape shape = ids.shape();
  shape.push_back(1);
  shape.insert(shape.end(), v.shape().begin() + 1, v.shape().end());
  return scatter(ScatterMode::add, v, {ids}, reshape(u, shape), {0});
}

Value nothing(int64_t rows = nodes, int64_t columns = width, Dtype dtype = float32) {
  return full({rows, columns}, dtype, Number::of_real(0));
}

enum class Ids { spread, few, one, mixed };

/// `mixed`: a fifth negative, beyond the rows, or further below zero than there are rows.
HostTensor ids_of(const Type& type, Ids kind, int64_t rows, uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(n)); };
  HostTensor t{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k) {
    int64_t id = below(rows);
    if (kind == Ids::few) id = below(3);
    if (kind == Ids::one) id = rows - 1;
    if (kind == Ids::mixed)
      id = below(5) > 0 ? below(2) : is_unsigned(type.dtype) ? below(2 * rows) : below(3 * rows) - rows - 5;
    t.data.push_back(Number::of_int(id));
  }
  return t;
}

/// Small integers, whose sums are exact in any order, or normal numbers.
HostTensor values_of(const Type& type, uint64_t seed, bool whole) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  HostTensor t{type, {}};
  for (int64_t k = num_elements(type.shape); k > 0; --k) {
    const double v = whole ? static_cast<double>(engine() % 5) - 2 : normal(engine);
    t.data.push_back(is_float(type.dtype) ? kernel::round_to(Number::of_real(v), type.dtype)
                                          : Number::of_int(static_cast<int64_t>(engine() % 2)));
  }
  return t;
}

std::vector<HostTensor> inputs_of(const Graph& g, Ids kind = Ids::mixed, int64_t rows = nodes) {
  std::vector<HostTensor> all;
  for (const Value& v : g.inputs)
    all.push_back(is_integer(v.dtype()) ? ids_of(v.type(), kind, rows, all.size() + 1)
                                        : values_of(v.type(), all.size() + 1, true));
  return all;
}

std::vector<HostTensor> run(const Program& program, const Graph& g, const std::vector<HostTensor>& inputs) {
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  const auto outputs = program.run(storages);
  std::vector<HostTensor> all;
  for (size_t k = 0; k < outputs.size(); ++k) all.push_back(from_storage(outputs[k], g.outputs[k].type()));
  return all;
}

/// Builds a graph, compares its exact sums with the reference and returns the program. `interpreted`: without a GPU,
/// kernels are, since the CPU's code generator takes minutes for tiles that count or divide lane by lane.
std::shared_ptr<const Program> checked(const Graph& g, Ids kind = Ids::mixed, int64_t rows = nodes,
                                       bool interpreted = false) {
  static weft::test::SimtTarget simt;
  static Interpreted blocks;
  target::Target& target = weft::test::on_gpu() ? weft::test::target_under_test() : interpreted ? blocks : simt;
  auto program = build({g, {}, {}}, target);
  const auto inputs = inputs_of(g, kind, rows);
  const auto got = run(*program, g, inputs), expected = evaluate_reference(g, inputs);
  for (size_t k = 0; k < expected.size(); ++k)
    CHECK_MESSAGE(difference(got[k], expected[k], 0) == "", "result ", k, "\n", print(g));
  return program;
}

int sorts(const Program& program) {
  const std::string plan = program.print("plan");
  int count = 0;
  for (size_t at = plan.find("sort("); at != std::string::npos; at = plan.find("sort(", at + 1)) ++count;
  return count;
}

/// Messages of a graph network: each node adds up the weighted rows of its neighbours.
Value layer(const Value& x, const Value& from, const Value& to, const Value& weight) {
  const Value sent = take(x, from, 0) * broadcast(weight, {edges, x.shape()[1]});
  return add_rows(full(x.shape(), x.dtype(), Number::of_real(0)), to, sent);
}

}  // namespace

TEST_CASE("rows are added by their sorted ids, however often an id occurs") {
  for (const Ids kind : {Ids::spread, Ids::few, Ids::one, Ids::mixed})
    for (const int64_t columns : {32, 70, 600})
      for (const Dtype given : {float32, bfloat16}) {
        const bool many = columns == 70 && kind == Ids::spread && given == float32;
        const int64_t rows = many ? 70000 : 50;  // once more than 16 bits count
        const Value base = param({rows, columns}), ids = param({41, 53}, int32),
                    updates = param({41, 53, columns}, given);
        const auto program =
            checked({{base, ids, updates}, {add_rows(base * 2, ids, cast(updates, float32))}}, kind, rows);
        CHECK(sorts(*program) == 1);
        CHECK(program->stats().library_calls == 2);
      }
}

TEST_CASE("sorted rows of every dtype of sums and ids") {
  for (const Dtype dtype : {float32, float64, bfloat16, float16})
    for (const Dtype index : {int32, int64, uint8, uint16, int8, uint64}) {
      const Value ids = param({2051}, index), updates = param({2051, 33}, dtype);
      CHECK(sorts(*checked({{ids, updates}, {add_rows(nothing(nodes, 33, dtype), ids, updates)}}, Ids::spread)) == 1);
    }
}

TEST_CASE("single elements and narrow rows are added by their sorted ids, integers too") {
  for (const Ids kind : {Ids::spread, Ids::few, Ids::mixed})
    for (const int64_t columns : {0, 1, 3}) {  // 0: of an array with one axis
      const Shape row = columns > 0 ? Shape{columns} : Shape{};
      Shape sums{nodes}, list{8200};
      sums.insert(sums.end(), row.begin(), row.end()), list.insert(list.end(), row.begin(), row.end());
      const Value ids = param({8200}, int32), updates = param(list), counts = full(sums, int32, Number::of_int(7));
      const Graph g{
          {ids, updates},
          {add_rows(full(sums, float32, Number::of_real(0)), ids, updates), add_rows(counts, ids, cast(updates, int32)),
           add_rows(counts, ids, full(list, int32, Number::of_int(1)))}};
      CHECK(sorts(*checked(g, kind, nodes, true)) == 1);
    }
}

TEST_CASE("sums that any order gives are added to tables of programs: integers, and one number that is counted") {
  int64_t turn = 0;
  for (const Ids kind : {Ids::spread, Ids::few, Ids::one, Ids::mixed})
    for (const int64_t columns : {0, 1, 3, 40})  // 0: of an array with one axis
      for (const Dtype index : {int32, int64, uint8}) {
        if (!weft::test::taken(turn++ + static_cast<int64_t>(kind))) continue;
        const Shape row = columns > 0 ? Shape{columns} : Shape{};
        Shape sums{nodes}, list{41, 201};
        sums.insert(sums.end(), row.begin(), row.end()), list.insert(list.end(), row.begin(), row.end());
        const Value ids = param({41, 201}, index), updates = param(list), base = param(sums);
        const auto add = [&](const Value& to, const Value& from) {
          Shape shape{41, 201, 1};
          shape.insert(shape.end(), row.begin(), row.end());
          return scatter(ScatterMode::add, to, {ids}, reshape(from, shape), {0});
        };
        const auto number = [&](Dtype t, double v) { return full(list, t, kernel::round_to(Number::of_real(v), t)); };
        const auto whole = [&](Dtype t) { return full(sums, t, Number::of_int(7)); };
        const Graph g{
            {ids, updates, base},
            {add(base * 2, number(float32, 0.5)), add(whole(int32), cast(updates, int32)),
             add(whole(int64), cast(updates, int64) * double{1 << 20}), add(whole(uint8), cast(updates, uint8)),
             add(cast(base, float16), number(float16, 0.0625)), add(cast(base, float64), number(float64, -3))}};
        const auto program = checked(g, kind, nodes, true);
        CHECK(sorts(*program) == 0);
        CHECK(program->print("plan").find("scatter_tables") != std::string::npos);
      }
}

TEST_CASE("a counted number that is not finite changes nothing where it is not added") {
  const Value ids = param({8200}, int32), base = param({nodes});
  for (const double number : {double{INFINITY}, double{NAN}}) {
    const Value updates = full({8200}, float32, Number::of_real(number));
    const auto program = checked({{ids, base}, {add_rows(base * -0.0, ids, updates)}}, Ids::few);
    CHECK(program->print("plan").find("scatter_tables") != std::string::npos);
  }
}

TEST_CASE("tables are for sums of any order that fit the shared memory, on GPUs") {
  weft::test::SimtTarget target;
  const Value ids = param({8200}, int32), updates = param({8200});
  const auto tables = [&](const Value& sums, target::Target& on) {
    const std::string plan = build({{{ids, updates}, {sums}}, {}, {}}, on)->print("plan");
    return plan.find("scatter_tables") != std::string::npos;
  };
  const auto zeros = [](int64_t rows, Dtype t) { return full({rows}, t, Number::of_real(0)); };
  const Value one = full({8200}, float32, Number::of_real(1));
  CHECK(tables(add_rows(zeros(100, float32), ids, one), target));
  CHECK(tables(add_rows(zeros(100, int32), ids, cast(updates, int32)), target));
  CHECK(!tables(add_rows(zeros(100, float32), ids, updates), target));  // rounded in an order
  CHECK(!tables(add_rows(zeros(9000, float32), ids, one), target));     // more cells than updates
  CHECK(!tables(add_rows(zeros(100, float32), ids, one), target::cpu()));
}

TEST_CASE("sums of sorted rows against float64, with the same bits at every run") {
  weft::test::SimtTarget target;
  const Value x = param({nodes, width}), from = param({edges}, int32), to = param({edges}, int32),
              weight = param({edges, 1});
  const Graph g{{x, from, to, weight}, {layer(x, from, to, weight)}};
  std::vector<HostTensor> inputs = inputs_of(g, Ids::few);
  inputs[0] = values_of(x.type(), 11, false), inputs[3] = values_of(weight.type(), 12, false);
  const auto program = build({g, {}, {}}, target);
  const auto got = run(*program, g, inputs);
  std::vector<double> sums(static_cast<size_t>(nodes * width)), sizes = sums;
  for (size_t e = 0; e < static_cast<size_t>(edges); ++e)
    for (size_t k = 0; k < static_cast<size_t>(width); ++k) {
      const auto row = static_cast<size_t>(inputs[1].data[e].i), column = static_cast<size_t>(width);
      const double term = inputs[0].data[row * column + k].f * inputs[3].data[e].f;
      const size_t at = static_cast<size_t>(inputs[2].data[e].i) * column + k;
      sums[at] += term, sizes[at] += std::abs(term);
    }
  for (size_t k = 0; k < sums.size(); ++k) CHECK(std::abs(got[0].data[k].f - sums[k]) <= 1e-6 * sizes[k]);
  CHECK(difference(run(*program, g, inputs)[0], got[0], 0) == "");
}

TEST_CASE("a graph network sorts each list of edges once, and stores no row of an edge") {
  const Value x = param({nodes, width}), from = param({edges}, int32), to = param({edges}, int32),
              weight = param({edges, 1});
  Value y = x;
  for (int k = 0; k < 3; ++k) y = binary(Op::max, layer(y, from, to, weight), nothing()) * 0.125f;
  const Value g = param({nodes, width});
  const Values gradients = pull_back(Values{y}, Values{g}, Values{x});
  const auto program = checked({{x, from, to, weight, g}, {y, gradients[0]}}, Ids::spread);
  CHECK(sorts(*program) == 2);
  CHECK(program->stats().library_calls == 2 + 6);
  CHECK(program->stats().arena_bytes < edges * width * 4);
}

TEST_CASE("the gradient of an embedding sorts its ids, and takes its rows as they are") {
  const Value table = param({nodes, width}), ids = param({edges}, int32), g = param({edges, width});
  const Values gradients = pull_back(Values{take(table, ids, 0)}, Values{g}, Values{table});
  const auto program = checked({{table, ids, g}, {gradients[0]}});
  CHECK(sorts(*program) == 1);
  CHECK(program->stats().launches == 2);  // keys and zeros
  CHECK(program->stats().library_calls == 2);
}

TEST_CASE("scatters by equal ids share a sort, by ids of other rows they do not") {
  const Value ids = param({50, 50}, int32), u = param({50, 50, width}), v = param({edges, width});
  const Value a = add_rows(nothing(), ids, u), b = add_rows(nothing(), reshape(ids, {edges}), v),
              c = add_rows(nothing(nodes + 1), ids, u);
  CHECK(sorts(*checked({{ids, u, v}, {a, b}})) == 1);
  CHECK(sorts(*checked({{ids, u, v}, {a, c}})) == 2);
}

TEST_CASE("the kernel that adds rows computes a gather, a scale, a cast and a mask, and no more") {
  const int64_t stored = edges * width * 4;
  const Value ids = param({edges}, int32), other = param({edges}, int32), x = param({nodes, width}),
              u = param({edges, width}), v = param({edges, width}), half = param({edges, width}, bfloat16),
              mask = param({edges, width}, bool_), across = param({width, edges});
  const auto arena = [&](const Values& in, const Value& rows) {
    Graph g{in, {add_rows(nothing(), ids, rows)}};
    g.inputs.push_back(ids);
    return checked(g)->stats().arena_bytes;
  };
  const Value zeros = full({edges, width}, float32, Number::of_real(0));
  CHECK(arena({u}, u * 2) < stored);
  CHECK(arena({half}, cast(half, float32)) < stored);
  CHECK(arena({u, mask}, select(mask, u, zeros)) < stored);
  CHECK(arena({x, other}, take(x, other, 0) * take(x, ids, 0)) < stored);
  CHECK(arena({x}, take(x * 2, ids, 0)) < stored);
  CHECK(arena({u, v}, u + v) >= stored);
  CHECK(arena({across}, permute(across, {1, 0}) * 2) >= stored);
}

TEST_CASE("rows that are computed from the array that they are added to are computed from its old value") {
  weft::test::SimtTarget target;
  const Value x = param({nodes, width}), from = param({edges}, int32), to = param({edges}, int32);
  const Graph g{{x, from, to}, {add_rows(x, to, take(x, from, 0) * 2)}};
  const auto program = build({g, {}, {{0, 0}}}, target);
  const auto inputs = inputs_of(g);
  CHECK(difference(run(*program, g, inputs)[0], evaluate_reference(g, inputs)[0], 0) == "");
}

TEST_CASE("scatters that are small or empty are not sorted") {
  const auto count = [&](int64_t points, int64_t rows, int64_t columns) {
    const Value ids = param({points}, int32), updates = param({points, columns});
    return sorts(*checked({{ids, updates}, {add_rows(nothing(rows, columns), ids, updates)}}, Ids::spread, rows));
  };
  CHECK(count(2048, 7, 32) == 1);
  CHECK(count(2047, 7, 32) == 0);
  CHECK(count(8191, 7, 31) == 0);
  CHECK(count(8192, 7, 31) == 1);
  CHECK(count(2048, 7, 0) == 0);
  CHECK(count(0, 7, 32) == 0);
}

TEST_CASE("kernels of sorted scatters compile for a GPU") {
  if (!target::cuda::nvrtc_available()) {
    MESSAGE("skipped: there is no NVRTC here");
    return;
  }
  target::cuda::CudaTarget target(target::stated_machine("NVIDIA H100"), false);
  for (const int64_t columns : {128, 768, 70}) {
    const Value x = param({nodes, columns}), from = param({edges}, int32), to = param({edges}, int32),
                weight = param({edges, 1});
    build({{{x, from, to, weight}, {layer(x, from, to, weight)}}, {}, {}}, target);
  }
  for (const Dtype t : {float32, int8, int32, int64}) {
    const Value ids = param({8200}, int32), updates = param({8200}, t);
    const Value given = is_float(t) ? full({8200}, t, Number::of_real(1)) : updates;
    build({{{ids, updates}, {add_rows(full({100}, t, kernel::round_to(Number::of_real(0), t)), ids, given)}}, {}, {}},
          target);
  }
  CHECK(target.stats().compiled > 0);
}
