#include "tools/weft/train/trainer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/trace.h"
#include "temporary_folder.h"
#include "tools/training.h"
#include "tools/weft/train/optimizers.h"

using namespace weft;
using namespace weft::tool;
using namespace weft::tool::test;

namespace {

struct Course {
  std::vector<double> losses, val_losses;
  bool complete = false;
};

Course course_of(Trainer& trainer, int64_t stop_after = -1) {
  Course c;
  Trainer::Hooks hooks;
  hooks.report = [&](const StepReport& r) {
    c.losses.push_back(r.loss);
    if (r.val_loss) c.val_losses.push_back(*r.val_loss);
  };
  hooks.stop = [&] { return trainer.step() == stop_after; };
  c.complete = trainer.run(hooks);
  return c;
}

}  // namespace

TEST_CASE("a run learns, and a second one of the same seed is the same") {
  TemporaryFolder a, b;
  Trainer first(tiny(a.path), rhyme()), second(tiny(b.path), rhyme());
  const Course one = course_of(first), two = course_of(second);
  REQUIRE(one.losses.size() == 12);
  CHECK(one.complete);
  CHECK(one.losses.front() == doctest::Approx(std::log(first.tokenizer().vocab_size())).epsilon(0.1));
  CHECK(one.losses.back() < one.losses.front() - 0.3);
  CHECK(one.val_losses.size() == 3);
  CHECK(one.losses == two.losses);
  CHECK(one.val_losses == two.val_losses);
  TrainOptions other = tiny(b.path);
  other.seed = 1;
  Trainer third(other, rhyme());
  CHECK(course_of(third).losses != one.losses);
}

TEST_CASE("every optimizer trains, and goes on bit by bit") {
  std::vector<std::vector<double>> courses;
  for (const std::string& name : optimizer_names()) {
    CAPTURE(name);
    TemporaryFolder whole, parts;
    TrainOptions o = tiny(whole.path);
    o.optimizer = name;
    Trainer uninterrupted(o, rhyme());
    const Course all = course_of(uninterrupted);
    CHECK(all.complete);
    for (const auto& other : courses) CHECK(other != all.losses);
    courses.push_back(all.losses);

    o.out = parts.path;
    Trainer before(o, rhyme());
    const Course head = course_of(before, 7);
    Trainer after(o, rhyme(), load_checkpoint(parts.path));
    const Course tail = course_of(after);
    std::vector<double> both = head.losses;
    both.insert(both.end(), tail.losses.begin(), tail.losses.end());
    CHECK(both == all.losses);
  }
  CHECK(courses.size() == 11);
}

// A checkpoint says how much decays, not what, nor whether moments are corrected: that is the program's, and stays what
// it was when these losses were written down.
TEST_CASE("a run decays matrices alone, and corrects its moments") {
  TemporaryFolder folder;
  TrainOptions o = tiny(folder.path);
  o.weight_decay = 20, o.bias = true, o.eval_every = 40;
  Trainer trainer(o, rhyme());
  const std::vector<double> expected{2.77343416, 2.71915436, 2.69193029, 2.65247178, 2.58858824, 2.57877159,
                                     2.53284311, 2.51286221, 2.49764061, 2.52174139, 2.55433655, 2.46511531};
  const Course course = course_of(trainer);
  REQUIRE(course.losses.size() == expected.size());
  for (size_t k = 0; k < expected.size(); ++k) CHECK(course.losses[k] == doctest::Approx(expected[k]).epsilon(1e-5));
}

TEST_CASE("a run that was stopped resumes bit by bit") {
  for (const double dropout : {0.0, 0.2}) {
    CAPTURE(dropout);
    TemporaryFolder whole, parts;
    Trainer uninterrupted(tiny(whole.path, dropout), rhyme());
    const Course all = course_of(uninterrupted);

    Trainer before(tiny(parts.path, dropout), rhyme());
    const Course head = course_of(before, 7);
    CHECK(!head.complete);
    const Checkpoint checkpoint = load_checkpoint(parts.path);
    CHECK(checkpoint.state.step == 7);
    Trainer after(tiny(parts.path, dropout), rhyme(), checkpoint);
    const Course tail = course_of(after);
    CHECK(tail.complete);

    std::vector<double> joined = head.losses;
    joined.insert(joined.end(), tail.losses.begin(), tail.losses.end());
    CHECK(joined == all.losses);
    CHECK(tail.val_losses.back() == all.val_losses.back());
    CHECK(after.state().losses == uninterrupted.state().losses);
  }
}

TEST_CASE("with masters, a run in 16 bits begins with the parameters of one in float32") {
  TemporaryFolder exact, half;
  TrainOptions o = tiny(exact.path);
  o.steps = o.warmup = 0;
  Trainer(o, rhyme()).save_checkpoint();
  o.out = half.path, o.dtype = "bf16", o.weights = "master", o.residual = "dtype";
  Trainer(o, rhyme()).save_checkpoint();
  const auto expected = load_checkpoint(exact.path).model();
  for (const auto& [name, value] : load_checkpoint(half.path).model()) {
    CAPTURE(name);
    CHECK(value.to_vector<float>() == expected.at(name).to_vector<float>());
  }
}

TEST_CASE("a Llama learns, and resumes bit by bit from a checkpoint that knows what it is") {
  const auto llama = [](const std::string& out) {
    TrainOptions o = tiny(out);
    o.arch = "llama", o.kv_heads = 1;
    return o;
  };
  TemporaryFolder whole, parts;
  Trainer uninterrupted(llama(whole.path), rhyme());
  const Course all = course_of(uninterrupted);
  CHECK(all.losses.back() < all.losses.front() - 0.3);
  Trainer first(llama(parts.path), rhyme());
  course_of(first, 5);
  first.save_checkpoint();
  const Checkpoint from = load_checkpoint(parts.path);
  const auto* config = std::get_if<models::LlamaConfig>(&from.state.model);
  REQUIRE(config);
  CHECK(config->kv_heads == 1);
  CHECK(config->hidden == 64);
  Trainer second(llama(parts.path), rhyme(), from);
  CHECK(course_of(second).losses == std::vector<double>(all.losses.begin() + 5, all.losses.end()));
}

TEST_CASE("after the first step nothing is traced or compiled, whatever the learning rate does") {
  TemporaryFolder dir;
  TrainOptions o = tiny(dir.path);
  o.eval_every = 1;
  Trainer trainer(o, rhyme());
  int64_t after_two = 0;
  Trainer::Hooks hooks;
  hooks.report = [&](const StepReport& r) {
    if (r.step == 2) after_two = runtime::counters().programs_built + runtime::counters().traces;
  };
  trainer.run(hooks);
  CHECK(runtime::counters().programs_built + runtime::counters().traces == after_two);
}

TEST_CASE("texts that do not do are refused") {
  TemporaryFolder dir;
  CHECK_THROWS_AS(Trainer(tiny(dir.path), "short"), UsageError);
  Trainer trainer(tiny(dir.path), rhyme());
  course_of(trainer, 2);
  const Checkpoint checkpoint = load_checkpoint(dir.path);
  std::string changed = rhyme();
  changed[100] = changed[100] == 'a' ? 'o' : 'a';
  CHECK_THROWS_AS(Trainer(tiny(dir.path), changed, checkpoint), std::runtime_error);
}

TEST_CASE("a loss that is no longer finite ends the run with a sentence") {
  TemporaryFolder dir;
  TrainOptions o = tiny(dir.path);
  o.lr = 1000, o.min_lr = 1000, o.grad_clip = 0, o.steps = 400, o.weight_decay = 1000, o.eval_every = 1000,
  o.checkpoint_every = 1000;
  Trainer trainer(o, rhyme());
  try {
    course_of(trainer);
    FAIL("the run should have diverged");
  } catch (const std::runtime_error& e) {
    CHECK(std::string(e.what()).find("diverged") != std::string::npos);
  }
}

TEST_CASE("a checkpoint that cannot be written ends the run, and says which one there is") {
  TemporaryFolder dir;
  Trainer trainer(tiny(dir.path), rhyme());
  Trainer::Hooks hooks;
  hooks.report = [&](const StepReport& r) {
    if (r.step != 6) return;  // after the checkpoint of step 5
    std::filesystem::rename(dir.path, dir.path + ".moved");
    std::ofstream(dir.path) << "no folder any more";
  };
  std::string message;
  try {
    trainer.run(hooks);
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  CHECK(message.find("the checkpoint of step 10 cannot be written") == 0);
  CHECK(message.find("step 5 is unharmed") != std::string::npos);
  CHECK(load_checkpoint(dir.path + ".moved").state.step == 5);
  std::filesystem::remove_all(dir.path + ".moved");
}

TEST_CASE("the whole validation loss is the mean over all its tokens") {
  TemporaryFolder dir;
  Trainer trainer(tiny(dir.path), rhyme());
  Evaluator evaluator(trainer.model());
  const auto& text = trainer.split().validation;
  const double batched = evaluator.loss(text, 4), singly = evaluator.loss(text, 1);
  CHECK(batched == doctest::Approx(singly).epsilon(1e-5));
  CHECK(batched == doctest::Approx(std::log(trainer.tokenizer().vocab_size())).epsilon(0.1));
  CHECK(trainer.model().training());
}

TEST_CASE("every precision learns, and resumes bit by bit") {
  struct Mode {
    const char *dtype, *weights, *residual;
  };
  const auto options = [&](const std::string& out, const Mode& m) {
    TrainOptions o = tiny(out);
    o.dtype = m.dtype, o.weights = m.weights, o.residual = m.residual;
    o.width = 32, o.batch = 8, o.steps = 30, o.eval_every = 1000, o.checkpoint_every = 1000;
    return o;
  };
  const std::string text = real_text();
  for (const Mode& m : {Mode{"f32", "f32", "f32"},
                        {"bf16", "f32", "f32"},
                        {"bf16", "f32", "dtype"},
                        {"bf16", "master", "dtype"},
                        {"bf16", "stochastic", "dtype"},
                        {"f16", "master", "dtype"},
                        {"f16", "f32", "f32"}}) {
    CAPTURE(m.dtype);
    CAPTURE(m.weights);
    CAPTURE(m.residual);
    TemporaryFolder whole, parts;
    Trainer trainer(options(whole.path, m), text);
    const Course course = course_of(trainer);
    CHECK(course.losses.back() < course.losses.front() - 0.5);

    Trainer before(options(parts.path, m), text);
    const Course head = course_of(before, 13);
    const Checkpoint checkpoint = load_checkpoint(parts.path);
    for (const auto& [name, value] : checkpoint.model())
      CHECK(value.dtype() == (std::string(m.weights) == "stochastic" ? bfloat16 : float32));
    Trainer after(options(parts.path, m), text, checkpoint);
    const Course tail = course_of(after);
    std::vector<double> joined = head.losses;
    joined.insert(joined.end(), tail.losses.begin(), tail.losses.end());
    CHECK(joined == course.losses);
    CHECK(tail.val_losses == course.val_losses);
  }
}
