// weft train mnist without its command line: learning, going on, and PyTorch's loss curve on the real images.
#include "tools/weft/train/mnist_trainer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "temporary_folder.h"

using namespace weft;
using namespace weft::tool;

namespace {

MnistOptions small(const std::string& out) {
  MnistOptions o;
  o.out = out;
  o.epochs = 2, o.batch = 50, o.train_images = 500, o.test_images = 100;
  o.lr = 0.05;
  return o;
}

struct Course {
  std::vector<double> losses, accuracies;
  bool complete = false;
};

Course course_of(MnistTrainer& trainer, int64_t stop_after = -1) {
  Course c;
  c.complete = trainer.run({.report =
                                [&](const StepReport& r) {
                                  c.losses.push_back(r.loss);
                                  if (r.accuracy) c.accuracies.push_back(*r.accuracy);
                                },
                            .stop = [&] { return trainer.step() == stop_after; }});
  return c;
}

}  // namespace

TEST_CASE("mnist: a run on synthetic shapes learns; one that was stopped resumes bit by bit") {
  TemporaryFolder a, b;
  MnistTrainer whole(small(a.path));
  const Course one = course_of(whole);
  CHECK(one.complete);
  REQUIRE(one.losses.size() == 20);
  REQUIRE(one.accuracies.size() == 2);
  CHECK(one.losses.front() == doctest::Approx(std::log(10)).epsilon(0.15));
  CHECK(one.losses.back() < 0.5 * one.losses.front());
  CHECK(one.accuracies.back() > 0.6);
  CHECK(one.accuracies.back() == whole.accuracy());

  MnistTrainer stopped(small(b.path));
  const Course before = course_of(stopped, 13);
  CHECK(!before.complete);
  const Checkpoint from = load_checkpoint(b.path);
  CHECK(from.state.kind == "mnist");
  CHECK(from.state.step == 13);
  CHECK(from.state.accuracies.size() == 1);
  MnistTrainer resumed(small(b.path), from);
  const Course after = course_of(resumed);
  CHECK(std::vector<double>(one.losses.begin() + 13, one.losses.end()) == after.losses);
  CHECK(after.accuracies.back() == one.accuracies.back());

  MnistOptions other = small(b.path);
  other.train_images = 400;
  CHECK_THROWS_AS(MnistTrainer(other, from), std::runtime_error);
  other.batch = 500;
  CHECK_THROWS_AS(MnistTrainer{other}, UsageError);
}

TEST_CASE("mnist: reports carry images a second, and the accuracy where there is one") {
  StepReport r;
  r.step = 3, r.loss = 0.5, r.ms = 20, r.tok_s = 3200;
  r.accuracy = 0.985, r.unit = "img";
  CHECK(json_line(r) == "{\"step\":3,\"loss\":0.5,\"accuracy\":0.985,\"ms\":20.000,\"img_s\":3200.0}");
  CHECK(report_line(r, 100, 2) == "step   3/100  loss 0.5000  accuracy 98.50 %  20.0 ms  3.2k img/s  left 2s");
}

// bench/torch_mnist.py --curve build/weft --data DIR --lr 0.01 --print, PyTorch 2.15: from the same initial weights on
// the same batches.
TEST_CASE("mnist: PyTorch's losses for 100 steps") {
  const std::string folder = std::string(WEFT_TEST_DATA) + "/mnist";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: there is no ", folder);
    return;
  }
  const std::vector<float> expected{
      2.365259f, 2.229956f, 2.282748f, 2.193555f, 2.129335f, 2.105369f, 2.083337f, 1.963199f, 2.035376f, 1.991203f,
      1.910635f, 1.849182f, 1.746352f, 1.704506f, 1.690006f, 1.652933f, 1.618725f, 1.613112f, 1.530431f, 1.508680f,
      1.418240f, 1.377655f, 1.402066f, 1.298519f, 1.300268f, 1.368268f, 1.240579f, 1.158894f, 1.330911f, 1.266731f,
      1.052756f, 1.013124f, 1.123411f, 1.071710f, 0.943682f, 1.000319f, 1.115927f, 1.058278f, 1.027496f, 1.048833f,
      0.739130f, 0.851252f, 0.898199f, 0.862129f, 0.906724f, 0.816582f, 0.861416f, 0.689787f, 0.753325f, 0.711237f,
      0.776051f, 0.694868f, 0.681194f, 0.793197f, 0.752761f, 0.628734f, 0.655916f, 0.825509f, 0.751692f, 0.780642f,
      0.653879f, 0.701870f, 0.646601f, 0.616717f, 0.682023f, 0.839225f, 0.774207f, 0.686198f, 0.630294f, 0.683947f,
      0.589974f, 0.491584f, 0.601653f, 0.446083f, 0.489975f, 0.488761f, 0.534699f, 0.608881f, 0.464309f, 0.632016f,
      0.468246f, 0.578972f, 0.647086f, 0.480959f, 0.598329f, 0.455813f, 0.598371f, 0.513776f, 0.486180f, 0.412038f,
      0.410327f, 0.485286f, 0.405479f, 0.507655f, 0.426271f, 0.413401f, 0.547724f, 0.510778f, 0.479196f, 0.391013f,
  };
  TemporaryFolder out;
  MnistOptions o;
  o.data = folder, o.out = out.path, o.lr = 0.01;
  MnistTrainer trainer(o);
  const Course course = course_of(trainer, 100);
  REQUIRE(course.losses.size() == 100);
  for (size_t i = 0; i < 100; ++i) {
    INFO("step ", i + 1);
    CHECK(std::abs(course.losses[i] - static_cast<double>(expected[i])) < 1e-3);
  }
}
