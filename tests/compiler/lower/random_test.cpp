// Random bits inside the kernels that use them: the generator's words whatever the tile, and both words of each
// Threefry call where a program has the elements for them.
#include <functional>

#include "compiler/lower/interpreted.h"
#include "compiler/pipeline.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "graph/regions/composites.h"
#include "kernel/expand/expand.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

Value param(Shape shape, Dtype dtype = float32) { return parameter({std::move(shape), dtype}); }

/// The elements that are kept: those whose word is below 0.8 · 2^32.
Value kept(const Value& key, const Shape& shape) {
  return binary(Op::lt, random_bits(key, shape), broadcast(constant(uint32, Number::of_int(3435973836)), shape));
}
Value dropped(const Value& x, const Value& mask) { return select(mask, x * 1.25, zeros_like(x)); }

/// Dropout alone; its mask is a result.
Graph map(const Shape& shape) {
  const Value key = param({2}, uint32), x = param(shape), mask = kept(key, shape);
  return {{key, x}, {dropped(x, mask), mask}};
}
/// Dropout in front of a residual and a norm.
Graph rows(const Shape& shape) {
  const Value key = param({2}, uint32), x = param(shape), r = param(shape), w = param({shape.back()}),
              b = param({shape.back()}), mask = kept(key, shape), sum = r + dropped(x, mask);
  return {{key, x, r, w, b}, {sum, layer_norm(sum, w, b, 1e-5), mask}};
}

std::vector<HostTensor> inputs_of(const Graph& g) {
  std::vector<HostTensor> all;
  for (const Value& v : g.inputs) {
    HostTensor t{v.type(), {}};
    for (int64_t k = 0; k < num_elements(v.shape()); ++k)
      t.data.push_back(v.dtype() == uint32
                           ? Number::of_int(77 + 1000 * k)
                           : Number::of_real(static_cast<float>(std::sin(0.7 * static_cast<double>(k)))));
    all.push_back(std::move(t));
  }
  return all;
}

std::vector<HostTensor> run(const Graph& g, const std::vector<HostTensor>& inputs, target::Target& target) {
  std::vector<graph::Storage> storages;
  for (const HostTensor& t : inputs) storages.push_back(to_storage(t));
  const auto results = build({g, {}, {}}, target)->run(storages);
  std::vector<HostTensor> out;
  for (size_t k = 0; k < results.size(); ++k) out.push_back(from_storage(results[k], g.outputs[k].type()));
  return out;
}

/// The Threefry calls in a program of a launch, by the rotations of their rounds, and the number of programs.
struct Draws {
  int64_t calls = 0, programs = 0;
  friend bool operator==(const Draws&, const Draws&) = default;
};

Draws draws(const Graph& g) {
  constexpr int64_t rounds = 20;
  weft::test::SimtTarget gpu;
  const Source source{g, {}, {}};
  const Policy policy;
  const Compilation c = run_passes({source, gpu, policy}, false);
  REQUIRE(c.steps.steps.size() == 1);
  const kernel::Kernel k = kernel::expand(c.steps.kernels[0]);
  const std::function<int64_t(const kernel::Block&)> rotations = [&](const kernel::Block& block) {
    int64_t count = 0;
    for (const kernel::Inst& inst : block.insts) {
      for (const kernel::Block& inner : inst.blocks) count += rotations(inner);
      count += inst.op == kernel::Op::scalar && inst.scalar_op == kernel::ScalarOp::shl;
    }
    return count;
  };
  return {rotations(k.body) / rounds, c.steps.steps[0].segments[0].grid};
}

}  // namespace

TEST_CASE("a mask is made of the generator's words, whatever the kernel, its tiles and the number of words") {
  InterpretedMachine gpu(weft::test::SimtTarget().machine());
  for (target::Target* target : {static_cast<target::Target*>(&gpu), &target::cpu()})
    for (const Shape& shape :
         {Shape{6, 10, 40}, {2, 512}, {16, 600}, {5, 7, 33}, {1, 64}, {8, 4100}, {4, 4096}, {2, 1}})
      for (Graph (*make)(const Shape&) : {map, rows}) {
        CAPTURE(target->fingerprint());
        CAPTURE(to_string(shape));
        const Graph g = make(shape);
        const auto inputs = inputs_of(g), got = run(g, inputs, *target), expected = evaluate_reference(g, inputs);
        for (size_t k = 0; k < got.size(); ++k) CHECK(difference(got[k], expected[k], 4, 1e-5) == "");
      }
}

TEST_CASE("both words of a Threefry call are used where the halves of the words are halves of the domain") {
  // A program has a row of each half.
  CHECK(draws(rows({64, 256, 384})) == Draws{1, 64 * 256 / 2});
  CHECK(draws(rows({4096, 1024})) == Draws{1, 4096 / 2});
  // The middle row lies in both halves: one word of each call is thrown away.
  CHECK(draws(rows({4095, 1024})) == Draws{1, 4095});
  // A map: a tile of each half. With an odd number of words, both words of a call are never in one tile.
  const Draws even = draws(map({64, 256, 384})), odd = draws(map({63, 257, 383}));
  CHECK(even.calls == 1);
  CHECK(odd.calls == 1);
  CHECK(even.programs <= odd.programs * 3 / 4);
}

TEST_CASE("words that a gather takes a part of are computed where it takes them") {
  InterpretedMachine gpu(weft::test::SimtTarget().machine());
  const Value key = param({2}, uint32), x = param({61, 40}), ids = param({7}, int32);
  const Value made = graph::select(kept(key, {61, 40}), x * 2.0, zeros_like(x));
  const Graph rows_of{{key, x, ids}, {take(made, ids, 0)}};
  std::vector<HostTensor> inputs = inputs_of(rows_of);
  inputs[2].data.clear();
  for (const int64_t id : {3, -1, 60, 0, 3, 17, 25}) inputs[2].data.push_back(Number::of_int(id));
  const auto expected = evaluate_reference(rows_of, inputs);
  for (target::Target* target : {static_cast<target::Target*>(&gpu), &target::cpu()})
    CHECK(difference(run(rows_of, inputs, *target)[0], expected[0], 0) == "");
}
