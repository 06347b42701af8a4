// The workloads of users (bench/workloads.json) at their tiny sizes: each model learns, each operation runs.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "device.h"
#include "tools/weft/bench/workloads/model.h"
#include "tools/weft/bench/workloads/operations.h"
#include "weft/ops.h"
#include "weft/random.h"

using namespace weft;
using namespace weft::tool;

TEST_CASE("workloads: every model's loss falls over steps on one batch") {
  REQUIRE(model_workloads().size() >= 24);
  for (const WorkloadRow& row : model_workloads()) {
    CAPTURE(row.name);
    WorkloadStep step(row, "tiny");
    float first = 0, last = 0;  // means of four steps, since dropout makes single ones random
    constexpr int steps = 16, few = 4;
    for (int i = 0; i < steps; ++i) {
      const float loss = step().item<float>();
      REQUIRE(std::isfinite(loss));
      if (i < few) first += loss / few;
      if (i >= steps - few) last += loss / few;
    }
    CHECK(last < first);
  }
}

TEST_CASE("workloads: models of one seed are the same, and a size that is missing is named") {
  const WorkloadRow& row = model_workloads().front();
  CHECK(WorkloadStep(row, "tiny")().item<float>() == WorkloadStep(row, "tiny")().item<float>());
  CHECK_THROWS_WITH_AS(row.sizes.at("tiny")("wings"), doctest::Contains("'wings'"), std::out_of_range);
  WorkloadRow unknown = row;
  unknown.kind = "perceptron";
  CHECK_THROWS_WITH_AS(WorkloadStep(unknown, "tiny"), doctest::Contains("'perceptron'"), std::invalid_argument);
}

TEST_CASE("workloads: every operation runs twice and gives the same finite numbers") {
  REQUIRE(operation_workloads().size() >= 89);
  for (const WorkloadRow& row : operation_workloads()) {
    CAPTURE(row.name);
    REQUIRE(operation_makers().count(row.kind) == 1);
    random::seed(0);
    const Operation operation = operation_makers().at(row.kind)(row.sizes.at("tiny"));
    const bool stateful = row.kind == "adamw" || row.kind == "dropout" || row.kind == "eager_mlp";
    const auto first = operation.run(), second = operation.run();
    REQUIRE(first.size() == second.size());
    for (size_t i = 0; i < first.size(); ++i) {
      CHECK(all(isfinite(astype(first[i], float32))).item<bool>());
      if (!stateful) CHECK(array_equal(first[i], second[i]).item<bool>());
    }
  }
}
