// Kernels as they are rendered for a GPU, run on the CPU thread by thread: they give the interpreter's bits.
#include <filesystem>
#include <random>

#include "compiler/host_cuda/host_cuda.h"
#include "compiler/host_cuda/host_source.h"
#include "compiler/lower/interpreted.h"
#include "compiler/support.h"
#include "graph/calls/call.h"
#include "graph/derive/derive.h"
#include "graph/regions/composites.h"
#include "graph/regions/convolution.h"
#include "thinning.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// The same schedules, interpreted.
class Interpreted final : public weft::test::SimtTarget {
 public:
  explicit Interpreted(int64_t cluster = 1, int64_t lanes = 32) : SimtTarget(cluster, cluster == 1 ? 1 : 128) {
    machine_.min_lanes = machine_.max_lanes = lanes;
  }
  std::string fingerprint() const override { return "interpreted"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    std::vector<std::shared_ptr<const target::Executable>> out;
    for (const kernel::Kernel& k : kernels) out.push_back(std::make_shared<InterpretedKernel>(kernel::expand(k)));
    return out;
  }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    return desc.name.starts_with("convolution") ? nullptr : target::cpu().call(desc);
  }
};

struct Case {
  std::string name;
  Graph graph;
};

Value param(Shape shape, Dtype dtype = float32) { return parameter({std::move(shape), dtype}); }

/// Results and the gradients of their weighted sum.
Graph with_gradients(const Values& inputs, const Value& result) {
  const Value cotangent = param(result.shape(), result.dtype());
  Values outputs = pull_back(std::vector<Value>{result}, std::vector<Value>{cotangent}, inputs), all = inputs;
  outputs.push_back(result), all.push_back(cotangent);
  return {all, outputs};
}

Graph maps() {
  const Value x = param({37, 130}, bfloat16), y = param({130}), z = param({37, 130}, float16),
              n = param({37, 130}, int32);
  return {{x, y, z, n},
          {gelu_tanh(cast(x, float32) * broadcast(y, {37, 130})) + cast(z, float32),
           cast(binary(Op::max, x, zeros_like(x)), float16), n * n + full_like(n, 3)}};
}
/// Of all magnitudes, of one number for all, and of 16 bits.
Graph angles() {
  const Value x = param({37, 130}), one = param({}), y = param({300}, bfloat16);
  const Value far = x * unary(Op::exp, x * 20.0);
  const Value same = broadcast(unary(Op::cos, one * 1e9), {37, 130});
  return {{x, one, y},
          {unary(Op::sin, far) + unary(Op::cos, far), unary(Op::tan, x * 1e30), x * same, unary(Op::sin, y * 1e6)}};
}
Graph columns() {
  const Value x = param({3000, 40}, bfloat16), y = param({700, 33});
  return {{x, y}, {sum(x, {0}), max(y, {0}), sum(cast(x, float32) * cast(x, float32), {0, 1})}};
}
/// States of two components: in rows of a warp and of a block, in columns, in two launches.
Graph extremes() {
  Graph g;
  for (const auto& [shape, axis] : {std::pair{Shape{9, 300}, 1},
                                    {Shape{3, 9001}, 1},
                                    {Shape{700, 33}, 0},
                                    {Shape{2, 70000}, 1},
                                    {Shape{20000, 3}, 0}})
    for (const Dtype dtype : {float32, int32}) {
      g.inputs.push_back(param(shape, dtype));
      const Values state = reduce_state(dtype == int32 ? kernel::Reducer::argmin : kernel::Reducer::argmax,
                                        {g.inputs.back(), iota(shape, axis, uint32)}, {axis});
      g.outputs.insert(g.outputs.end(), state.begin(), state.end());
    }
  return g;
}
Graph transposes() {
  const Value x = param({5, 70, 96}), y = param({130, 67}, bfloat16);
  return {{x, y}, {permute(x, {0, 2, 1}) * 2.0, cast(permute(y, {1, 0}), float32)}};
}
Graph cumulatives() {
  const Value x = param({3, 5000}), n = param({7, 65, 33}, int32);
  return {{x, n}, {cumulative(kernel::Reducer::sum, x, 1), cumulative(kernel::Reducer::max, n, 1, true)}};
}
Graph sorts() {
  const Value x = param({5, 300}), y = param({2, 9000}, bfloat16);
  Values outputs = call("sort", {x}, {1});
  for (const Value& v : call("sort", {y}, {1})) outputs.push_back(v);
  return {{x, y}, outputs};
}
Graph gathers() {
  const Value table = param({50, 72}), at = param({90}, int32), updates = param({90, 1, 72}, bfloat16);
  return {{table, at, updates},
          {take(table, at, 0), scatter(ScatterMode::add, table, {at}, cast(updates, float32), {0})}};
}
/// Along the last axis and others, in parts of whole words and others.
Graph concats() {
  const Value x = param({6, 40, 64}, bfloat16), y = param({40, 32}), z = param({3, 50, 100}), q = param({3, 5, 33});
  const Value a = slice_axis(x, 2, 0, 32), b = slice_axis(x, 2, 32, 32), c = cast(broadcast(y, {6, 40, 32}), bfloat16);
  return {{x, y, z, q},
          {concat({a * c, b + c}, 2), reshape(concat({b, a - c}, 2), {6, 40 * 64}), concat({z, z * z, z + z}, 2),
           concat({z, z * 2.0}, 0), concat({q, q * q}, 2), concat({q, q + q}, 1)}};
}
Graph bits() {
  const Value key = param({2}, uint32);
  return {{key}, {random_bits(key, {1000, 5}), random_bits(key, {777}, Generator::philox)}};
}
/// Dropout by a mask that is stored and by one that is read, in rows of whole words and in others.
Graph dropouts() {
  Graph g;
  for (const Shape& shape : {Shape{8, 320}, Shape{6, 333}}) {
    const Value key = param({2}, uint32), x = param(shape), old = param(shape, bool_),
                mask = binary(Op::lt, random_bits(key, shape),
                              broadcast(constant(uint32, Number::of_int(1 << 30)), shape));
    const Value y = softmax(select(mask, x, zeros_like(x)), {1});
    g.inputs.insert(g.inputs.end(), {key, x, old});
    g.outputs.insert(g.outputs.end(), {mask, y, softmax(select(old, x, zeros_like(x)), {1})});
  }
  return g;
}
Graph products() {
  const Value a = param({70, 41}), b = param({41, 90}), bias = param({90});
  return {{a, b, bias}, {gelu_tanh(dot(a, b, {1}, {0}) + broadcast(bias, {70, 90}))}};
}
Graph rows(int64_t count, int64_t length, Dtype dtype) {
  const Value x = param({count, length}, dtype), w = param({length}, dtype), b = param({length}, dtype);
  return with_gradients({x, w, b}, softmax(layer_norm(x, w, b, 1e-5), {1}));
}
/// A norm's derivative with the sums for its weights: programs walk rows that do not fill their tile, two sums a row.
Graph walked_rows(const Shape& shape) {
  const Value x = param(shape, bfloat16), w = param({shape.back()}, bfloat16), b = param({shape.back()}, bfloat16);
  return with_gradients({x, w, b}, layer_norm(x, w, b, 1e-5));
}
Graph convolutions() {
  const Value x = param({3, 14, 14, 1}), w = param({8, 3, 3, 1});
  const Value y = convolution(x, w, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1});
  return with_gradients({x, w}, y * y);
}
Graph optimizer_steps() {
  Graph g;
  for (const Shape& shape : {Shape{40, 30}, Shape{30}, Shape{7, 11, 3}}) {
    const Value p = param(shape), m = param(shape), d = param(shape), next = m * 0.9 + d * 0.1;
    g.inputs.insert(g.inputs.end(), {p, m, d});
    g.outputs.insert(g.outputs.end(), {p - next * 0.01, next});
  }
  return g;
}

/// The pixels of windows side by side, and parts of rows: runs of elements that are loaded in words, and runs that are
/// not whole words.
std::vector<Case> runs_of_elements() {
  const auto patches = [](int64_t height, int64_t width, int64_t size, Dtype dtype) {
    const Value x = param({2, height * size, width * size, 3}, dtype);
    const Value apart = reshape(x, {2, height, size, width, size, 3});
    const Value moved = reshape(permute(apart, {0, 1, 3, 2, 4, 5}), {2 * height * width, size * size * 3});
    return Graph{{x}, {cast(moved, bfloat16) + cast(moved, bfloat16)}};
  };
  const Value x = param({64, 96}, bfloat16), y = param({64, 100}, float32);
  // Many short lines, each from where an index says, and times a number of its own.
  const Value lines = param({48, 64, 8}, float32), ids = param({512}, int32), weights = param({512}, float32);
  const Value weighted = take(lines, ids, 1) * broadcast(reshape(take(weights, ids, 0), {1, 512, 1}), {48, 512, 8});
  return {{"lines that indices choose", {{lines, ids, weights}, {weighted}}},
          {"patches of 8", patches(4, 5, 8, float32)},
          {"patches of 16", patches(2, 3, 16, bfloat16)},
          {"patches of 5", patches(4, 4, 5, float32)},
          {"parts of rows", {{x}, {reshape(slice(x, {0, 16}, {64, 48}), {48, 64}) * 2}}},
          {"parts that begin anywhere", {{y}, {reshape(slice(y, {0, 17}, {64, 48}), {48, 64}) * 2}}}};
}

std::vector<Case> cases() {
  return {{"maps", maps()},
          {"angles", angles()},
          {"columns", columns()},
          {"extremes and their indices", extremes()},
          {"transposes", transposes()},
          {"cumulative reductions", cumulatives()},
          {"sorts", sorts()},
          {"gathers and scatters", gathers()},
          {"concats", concats()},
          {"random bits", bits()},
          {"dropout", dropouts()},
          {"products", products()},
          {"rows of a warp", rows(9, 300, float32)},
          {"rows of a block", rows(3, 3000, bfloat16)},
          {"rows in shared memory", rows(2, 9001, float32)},
          {"rows that are walked", walked_rows({256, 1100})},
          {"derivatives of a convolution with few taps", convolutions()},
          {"optimizer steps", optimizer_steps()}};
}

std::vector<HostTensor> inputs_of(const Graph& g) {
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  std::vector<HostTensor> all;
  for (const Value& v : g.inputs) {
    HostTensor t{v.type(), {}};
    for (int64_t k = num_elements(t.type.shape); k > 0; --k)
      t.data.push_back(is_float(t.type.dtype) ? kernel::round_to(Number::of_real(normal(engine)), t.type.dtype)
                                              : Number::of_int(static_cast<int64_t>(engine() % 50)));
    all.push_back(std::move(t));
  }
  return all;
}

std::vector<HostTensor> results(const Program& program, const Graph& g) {
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs_of(g)) {
    const graph::Storage plain = to_storage(t);
    graph::Storage roomy{runtime::allocate(size_t{1} << 23), 0,
                         plain.strides};  // the interpreter's bound lies inside of it
    std::memcpy(roomy.buffer->data(), plain.buffer->data(),
                static_cast<size_t>(num_elements(t.type.shape)) * t.type.dtype.size());
    storages.push_back(roomy);
  }
  const auto outputs = program.run(storages);
  std::vector<HostTensor> all;
  for (size_t k = 0; k < outputs.size(); ++k) all.push_back(from_storage(outputs[k], g.outputs[k].type()));
  return all;
}

void check_bits(weft::test::HostCuda& host, target::Target& interpreted, const std::vector<Case>& all) {
  std::vector<std::shared_ptr<const Program>> programs;
  for (const Case& c : all)
    programs.push_back(
        build({c.graph, {}, {}}, host));  // all first: one run of the compiler takes their kernels together
  for (size_t k = 0; k < all.size(); ++k) {
    CAPTURE(all[k].name);
    const std::vector<HostTensor> got = results(*programs[k], all[k].graph),
                                  want = results(*build({all[k].graph, {}, {}}, interpreted), all[k].graph);
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string error = difference(want[i], got[i], 0, 0);
      CHECK_MESSAGE(error.empty(), "result ", i, ": ", error);
    }
  }
  CHECK(host.compiled() <= 3);
}

bool can_compile() {
  if (!weft::test::host_compiler().empty() &&
      std::filesystem::exists(WEFT_SOURCE_DIR "/tests/compiler/host_cuda/shim.h") && !weft::test::sanitized)
    return true;
  MESSAGE(
      "skipped: there is no C++ compiler here, or no source folder, or the program is sanitized, which fibers confuse");
  return false;
}

/// States of a maximum and a sum, several tiles a step: of given terms, and of a logsumexp and a softmax.
Graph scaled_sums_of_rows(int64_t count, int64_t length) {
  const Value x = param({count, length}), v = param({count, length});
  Graph g{{x, v}, reduce_state(kernel::Reducer::logsumexp, {x, v}, {1})};
  g.outputs.push_back(logsumexp(x, {1}, false));
  g.outputs.push_back(softmax(v, {1}));
  return g;
}

/// A mean and the squares about it, far from 0: one state.
Graph squares_about_mean(Shape shape, const std::vector<int64_t>& axes, Dtype t = float32) {
  const Value x = param(std::move(shape), t), wide = cast(x, float32) + 1000.0, m = mean(wide, axes, true);
  return {{x}, {m, sum(square(wide - broadcast(m, wide.shape())), axes)}};
}

/// Down columns by warps of several blocks, in parts that leave rows and columns over.
Graph shared_columns() {
  const Value x = param({2051, 136}, bfloat16), y = param({2051, 136});
  const Value index = extreme_index(kernel::Reducer::argmax, param({2051, 136}), 0);
  return {{x, y, index.node->inputs()[0]}, {max(y, {0}), sum(x, {0}), index}};
}
/// Down columns that the warps of one block share.
Graph short_columns(Dtype t) {
  const Value x = param({70, 200}, t), y = param({24, 300}, t), wide = cast(x, float32), m = mean(wide, {0}, true);
  return {{x, y}, {m, sum(square(wide - broadcast(m, wide.shape())), {0}), logsumexp(wide, {0}, false), max(y, {0})}};
}

/// Sums of what takes so many operations that a program has more threads than its tiles need.
Graph long_expressions(Shape shape, const std::vector<int64_t>& axes) {
  const Value x = param(std::move(shape));
  Value y = x;
  for (int k = 0; k < 6; ++k) y = graph::tanh(graph::tanh(y) + 0.1);
  return {{x}, {sum(y, axes), max(y, axes)}};
}

Graph one_query() {
  const Value q = param({3, 1, 64}), k = param({3, 300, 64}), v = param({3, 300, 64}), count = param({}, int32);
  return {{q, k, v, count}, {attention(q, k, v, 0.2, false, count)}};
}

}  // namespace

TEST_CASE("sources that are rendered for a GPU give the interpreter's bits, thread by thread") {
  if (!can_compile()) return;
  weft::test::HostCuda host;
  Interpreted interpreted;
  check_bits(host, interpreted, cases());
}

TEST_CASE("rows that share a warp, and rows of several tiles a step, give the interpreter's bits") {
  if (!can_compile()) return;
  weft::test::HostCuda host;
  Interpreted interpreted;
  check_bits(host, interpreted,
             {{"parts of a warp", rows(37, 40, bfloat16)},
              {"halves of a warp", rows(9, 384, bfloat16)},
              {"parts that walk rows", walked_rows({8, 37, 40})},
              {"halves that walk rows", walked_rows({3, 99, 384})},
              {"long rows of scaled sums", scaled_sums_of_rows(2, 30001)},
              {"long rows of squares", squares_about_mean({2, 30001}, {1})},
              {"columns of squares", squares_about_mean({500, 40}, {0}, bfloat16)},
              {"columns of squares between rows", squares_about_mean({3, 37, 40}, {1})}});
}

TEST_CASE("products of 8-bit integers in all orders give the interpreter's bits") {
  if (!can_compile()) return;
  weft::test::HostCuda host;
  Interpreted interpreted;
  std::vector<Case> all;
  for (int bits = 0; bits < 4; ++bits) {
    const int64_t m = 136, n = 72, k = bits == 3 ? 75 : 160;
    const Value a = param((bits & 1) != 0 ? Shape{k, m} : Shape{m, k}, bits == 1 ? uint8 : int8),
                b = param((bits & 2) != 0 ? Shape{k, n} : Shape{n, k}, bits == 1 ? uint8 : int8),
                c = graph::dot(a, b, {(bits & 1) != 0 ? 0 : 1}, {(bits & 2) != 0 ? 0 : 1});
    all.push_back({"bytes", {{a, b}, {c, cast(c, float32) * 0.5}}});
  }
  check_bits(host, interpreted, all);
}

TEST_CASE("tables that many threads add to at once have the interpreter's bits") {
  if (!can_compile()) return;
  weft::test::HostCuda host;
  Interpreted interpreted;
  const auto counted = [](Dtype t, int64_t columns) {
    const Value ids = parameter({{8200}, int32}), updates = parameter({{8200, 1, columns}, int32});
    const Value sums = full({50, columns}, t, kernel::round_to(Number::of_real(2), t));
    const Value given = is_float(t) ? full({8200, 1, columns}, t, Number::of_real(0.5)) : cast(updates, t);
    return Graph{{ids, updates}, {scatter(ScatterMode::add, sums, {ids}, given, {0})}};
  };
  check_bits(host, interpreted,
             {{"counts", counted(float32, 1)},
              {"rows of integers", counted(int32, 3)},
              {"wide integers", counted(int64, 2)},
              {"narrow integers", counted(int8, 5)}});
}

TEST_CASE("blocks of a cluster on a row give the interpreter's bits") {
  if (!can_compile()) return;
  weft::test::HostCuda host(4);
  Interpreted interpreted(4);
  check_bits(host, interpreted,
             {{"rows in parts", rows(2, 16448, bfloat16)},
              {"rows of any length", rows(1, 9001, float32)},
              {"shared columns", shared_columns()},
              {"shared columns of squares", squares_about_mean({2051, 136}, {0}, bfloat16)},
              {"short columns", short_columns(float32)},
              {"short columns in 16 bits", short_columns(bfloat16)},
              {"columns of long expressions", long_expressions({96, 200}, {0})},
              {"rows of long expressions", long_expressions({7, 300}, {1})},
              {"rows of scaled sums in parts", scaled_sums_of_rows(2, 16448)},
              {"attention of a token", one_query()}});
}

TEST_CASE("rendered sources that gather runs of elements in words, run on this machine: the interpreter's bits") {
  if (!can_compile()) return;
  weft::test::HostCuda host(1, 1024);
  Interpreted interpreted(1, 1024);
  check_bits(host, interpreted, runs_of_elements());
}
