// What eager evaluation runs where it is asked for, and what it hands over.
#include <mutex>

#include "compiler/eager/pending.h"
#include "compiler/fake_device.h"
#include "compiler/support.h"
#include "runtime/executor.h"
#include "weft/array.h"
#include "weft/ops.h"

using namespace weft;
using namespace weft::compiler;

namespace {

Pending pending_of(const array& a, target::Target& target, Unbuilt unbuilt) {
  std::shared_lock lock(graph::structure());
  return collect(std::span(&a.value(), 1), target, unbuilt);
}

array on_host(int64_t n) {
  const std::vector<float> values(static_cast<size_t>(n), 2.0f);
  return array(values.data(), {n});
}

}  // namespace

TEST_CASE("work for a device is brief once its program has run, where few launches and no large copies are needed") {
  auto* const target = new weft::test::FakeTarget(7);  // programs in the table outlive the test
  const array x = on_host(4096), few = on_host(16);
  const auto of = [](const array& a) { return log1p(a) * a; };
  CHECK_FALSE(pending_of(of(x), *target, Unbuilt::leave).built());
  Pending first = pending_of(of(x), *target, Unbuilt::build);
  CHECK(first.built());
  CHECK_FALSE(is_brief(first, *target));  // it may have to wait for its code
  finish(std::move(first));
  Pending again = pending_of(of(x), *target, Unbuilt::leave);
  REQUIRE(again.built());
  CHECK(is_brief(again, *target));                                                         // x is on the device now
  CHECK_FALSE(is_brief(pending_of(of(on_host(4096)), *target, Unbuilt::leave), *target));  // another is not
  finish(pending_of(of(few), *target, Unbuilt::build));
  CHECK(is_brief(pending_of(of(on_host(16)), *target, Unbuilt::leave), *target));  // little is copied

  std::vector<array> steps{x};  // each a launch: sums of sums
  for (int k = 0; k < 200; ++k) steps.push_back(log1p(x + sum(steps.back())));
  finish(pending_of(steps.back(), *target, Unbuilt::build));
  for (int k = 0; k < 200; ++k) steps[static_cast<size_t>(k) + 1] = log1p(x + sum(steps[static_cast<size_t>(k)]));
  const Pending many = pending_of(steps.back(), *target, Unbuilt::leave);
  REQUIRE(many.built());
  CHECK(many.program->stats().count() >= 20);
  CHECK_FALSE(is_brief(many, *target));
}

TEST_CASE("views are brief, and need no program") {
  const array x = on_host(12), view = transpose(reshape(x, {3, 4}));
  const Pending pending = pending_of(view, target::cpu(), Unbuilt::leave);
  CHECK(pending.built());
  CHECK(!pending.program);
  CHECK(is_brief(pending, target::cpu()));
}

TEST_CASE("a program is found by the digest of the pending graph, whatever the graph was built for") {
  const array x = on_host(48), y = on_host(48);
  const array z = (x + y) * array(3.25f) + array(2.0f);
  Source source{{{x.value(), y.value()}, {}}, {{{1}}, {{1}}}, {}};
  const array same = (x + y) * x + array(2.0f);
  source.graph.outputs = {same.value()};
  const auto built = lookup_or_build(source, target::cpu(), eager_policy().policy);
  CHECK(pending_of(same, target::cpu(), Unbuilt::leave).program == built);
  CHECK(pending_of(z, target::cpu(), Unbuilt::build).inputs.size() == 3);  // 3.25 is data
  const array other = (x + y) * array(4.5f) + array(2.0f);
  CHECK(pending_of(other, target::cpu(), Unbuilt::leave).built());
}
