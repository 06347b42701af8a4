#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "temporary_folder.h"
#include "tools/weft/explain/explain.h"
#include "tools/weft/train/mnist_trainer.h"
#include "weft/compile.h"
#include "weft/ops.h"

using namespace weft;
using namespace weft::tool;

namespace {

Explained some() {
  const array x = ones({173, 211}), w = ones({211, 64});
  eval(x, w);
  const auto f =
      compile([](const std::vector<array>& in) { return std::vector<array>{softmax(matmul(exp(in[0]), in[1]), -1)}; },
              CompileOptions{});
  const auto run = [&] { eval(f({x, w})); };
  return explain_program("Some", 3, run, run);
}

}  // namespace

TEST_CASE("explain: the largest program's steps, each with its work and its time") {
  const Explained e = some();
  REQUIRE(e.program);
  REQUIRE(e.step_ms.size() == e.program->steps().size());
  CHECK(e.step_ms.size() >= 2);
  for (const double ms : e.step_ms) CHECK(ms > 0);
  CHECK(e.run_ms > 0);
  CHECK(e.program->print("groups").size() > 10);

  target::Rates rates;
  rates.copy.fill(10e9);
  rates.products.f32 = 100e9;
  const auto root = nlohmann::json::parse(explained_json(e, rates, {"graph"}));
  const auto times = e.program->predict(rates);
  CHECK(root["title"] == "Some");
  CHECK(root["steps"].size() == e.step_ms.size());
  double bytes = 0;
  for (size_t k = 0; k < e.step_ms.size(); ++k) {
    const auto& info = e.program->steps()[k];
    CHECK(root["steps"][k]["bytes"] == info.bytes);
    CHECK(root["steps"][k]["fraction_of_peak"].get<double>() == doctest::Approx(1e3 * times[k].floor / e.step_ms[k]));
    CHECK(root["steps"][k]["predicted_ms"].get<double>() == doctest::Approx(1e3 * times[k].seconds));
    bytes += info.bytes;
  }
  CHECK(root["bytes"].get<double>() == bytes);
  CHECK(root["graph"].get<std::string>().find("dot") != std::string::npos);
  const std::string text = explained_text(e, rates, {});
  CHECK(text.find("Some\n") == 0);
  CHECK(text.find("softmax") == std::string::npos);
  CHECK(text.find("of peak") != std::string::npos);
}

TEST_CASE("explain: a function that computes nothing has no program") {
  CHECK_THROWS_WITH_AS(explain_program(
                           "Nothing", 1, [] {}, [] {}),
                       doctest::Contains("nothing was compiled"), std::runtime_error);
}

TEST_CASE("explain: the steps of a run on images") {
  const TemporaryFolder folder;
  MnistOptions o;
  o.out = folder.path;
  o.epochs = 0, o.batch = 20, o.train_images = 20, o.test_images = 10;
  MnistTrainer(o).run({});
  const auto both = explain_run(load_checkpoint(folder.path), "both", 2);
  REQUIRE(both.size() == 2);
  CHECK(both[0].title == "Training step: 20 images");
  CHECK(both[1].title == "Test step: 1000 images");
  const auto flops = [](const Explained& e) {
    double sum = 0;
    for (const auto& step : e.program->steps()) sum += step.flops;
    return sum;
  };
  // Two convolutions and two products forward; backward twice as much, but for the gradient of the images.
  const double c1 = 2.0 * 28 * 28 * 32 * 9, c2 = 2.0 * 14 * 14 * 64 * 9 * 32, linear = 2.0 * (3136 * 128 + 128 * 10);
  CHECK(flops(both[0]) > 20 * (2 * c1 + 3 * c2 + 3 * linear));
  CHECK(flops(both[0]) < 1.1 * 20 * (2 * c1 + 3 * c2 + 3 * linear));
  CHECK(flops(both[1]) > 1000 * (c1 + c2 + linear));
  CHECK(flops(both[1]) < 1.1 * 1000 * (c1 + c2 + linear));
  CHECK(explain_run(load_checkpoint(folder.path), "train", 1).size() == 1);
  CHECK(explain_run(load_checkpoint(folder.path), "sample", 1)[0].title == "Test step: 1000 images");
}
