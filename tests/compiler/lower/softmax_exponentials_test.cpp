// The exponential of a softmax: its kernels on a CPU show that the argument is at most 0, which the expansion uses.
#include <cmath>
#include <map>

#include "compiler/lower/recorded.h"
#include "compiler/pipeline.h"
#include "compiler/rewrite/framed_sums.h"
#include "compiler/support.h"
#include "graph/instances.h"
#include "graph/regions/composites.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

/// Counts the exponentials of a block, and those of a minimum with 0.
std::pair<int, int> exponentials(const kernel::Block& block, std::map<kernel::Value, const kernel::Inst*>& made) {
  std::pair<int, int> found;
  const auto is_nought = [&](kernel::Value v) {
    const auto at = made.find(v);
    return at != made.end() && at->second->op == kernel::Op::constant && at->second->number.real() == 0;
  };
  for (const kernel::Inst& inst : block.insts) {
    for (const kernel::Value v : inst.results) made[v] = &inst;
    if (inst.op == kernel::Op::scalar && inst.scalar_op == kernel::ScalarOp::exp) {
      ++found.first;
      const auto at = made.find(inst.args[0]);
      found.second += at != made.end() && at->second->op == kernel::Op::scalar &&
                      at->second->scalar_op == kernel::ScalarOp::min && is_nought(at->second->args[1]);
    }
    for (const kernel::Block& inner : inst.blocks) {
      const auto [all, limited] = exponentials(inner, made);
      found.first += all, found.second += limited;
    }
  }
  return found;
}

/// Returns the exponentials of all kernels and how many of them are limited; checks the results.
std::pair<int, int> exponentials_of(const Graph& g, const HostTensor& input) {
  RecordingTarget target;
  const std::vector<HostTensor> inputs{input};
  const std::vector<graph::Storage> storages{to_storage(input)};
  const auto results = build({g, {}, {}}, target)->run(storages);
  CHECK(difference(from_storage(results[0], g.outputs[0].type()), evaluate_reference(g, inputs)[0], 4, 1e-6) == "");
  std::pair<int, int> found;
  for (const kernel::Kernel& k : target.kernels) {
    std::map<kernel::Value, const kernel::Inst*> made;
    const auto [all, limited] = exponentials(k.body, made);
    found.first += all, found.second += limited;
  }
  return found;
}

HostTensor hard_rows(const graph::Type& type) {
  HostTensor values{type, {}};
  const double hard[] = {NAN, INFINITY, -INFINITY, -INFINITY, -87.5, -103, 88, -0.0, 1e-3, 7};
  const int64_t columns = type.shape.back().bound();
  for (int64_t k = 0; k < num_elements(type.shape); ++k) {
    const int64_t row = k / columns;
    double v = static_cast<double>(k * 37 % 101) / 7 - 9;
    if (row > 0 && k % columns == row) v = hard[(row - 1) % 10];
    if (row == 11) v = -INFINITY;
    values.data.push_back(kernel::round_to(Number::of_real(v), type.dtype));
  }
  return values;
}

}  // namespace

TEST_CASE("the exponential of a softmax is of a minimum with 0, along any axes and in any dtype") {
  for (const Dtype dtype : {float32, bfloat16})
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{1}, std::vector<int64_t>{0}}) {
      const Value x = parameter({{16, 70}, dtype});
      const auto [all, limited] = exponentials_of({{x}, {softmax(x, axes)}}, hard_rows(x.type()));
      CHECK(all > 0);
      CHECK(limited == all);
    }
}

TEST_CASE("other exponentials are not limited") {
  const Value x = parameter({{16, 70}, float32}), plain = max(x, {1}, true);
  const auto apart = [&](const Value& m) { return Graph{{x}, {exp(x - broadcast(m, x.shape()))}}; };
  CHECK(exponentials_of(apart(plain), hard_rows(x.type())).second > 0);
  CHECK(exponentials_of(apart(plain * 0.5), hard_rows(x.type())).second == 0);
  CHECK(exponentials_of(apart(max(x * 0.5, {1}, true)), hard_rows(x.type())).second == 0);
  CHECK(exponentials_of(apart(reduce(kernel::Reducer::min, x, {1}, true)), hard_rows(x.type())).second == 0);
  // An infinite maximum counts as 0 in logsumexp, so that its difference may be infinite.
  CHECK(exponentials_of({{x}, {logsumexp(x, {1}, false)}}, hard_rows(x.type())).second == 0);
}
