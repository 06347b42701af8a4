#include "tools/weft/options.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tools/weft/train/train_options.h"

using namespace weft::tool;

namespace {

/// The message of the UsageError that `f` throws; "" where it throws none.
template <class F>
std::string usage_error(F f) {
  try {
    f();
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Fixture {
  TrainOptions options;
  OptionSet set = train_option_set(options);
};

}  // namespace

TEST_CASE("nearest finds slips of the finger, and nothing where nothing is near") {
  const std::vector<std::string> known{"layers", "heads", "width", "eval-every", "eval-batches", "lr", "steps"};
  CHECK(nearest("layesr", known) == "layers");
  CHECK(nearest("layer", known) == "layers");
  CHECK(nearest("heds", known) == "heads");
  CHECK(nearest("eval-evry", known) == "eval-every");
  CHECK(nearest("step", known) == "steps");
  CHECK(nearest("eval", known) == "eval-every");
  CHECK(nearest("frobnicate", known) == "");
  CHECK(nearest("xy", known) == "");
  CHECK(nearest("a", {}) == "");
}

TEST_CASE_FIXTURE(Fixture, "values from the command line are read whole and checked") {
  set.set_text("layers", "7");
  set.set_text("lr", "3e-4");
  set.set_text("bias", "true");
  set.set_text("dtype", "bf16");
  CHECK(options.layers == 7);
  CHECK(options.lr == 3e-4);
  CHECK(options.bias);
  CHECK(options.dtype == "bf16");
  CHECK(set.given("layers"));
  CHECK(!set.given("heads"));

  struct Bad {
    const char *name, *text, *part;
  };
  const Bad bad[] = {{"batch", "0", "at least 1"},
                     {"layers", "4x", "whole number"},
                     {"layers", "4.5", "whole number"},
                     {"layers", "", "whole number"},
                     {"layers", "-1", "at least 1"},
                     {"lr", "nan", "more than 0"},
                     {"lr", "inf", "more than 0"},
                     {"lr", "0", "more than 0"},
                     {"dropout", "1", "less than 1"},
                     {"dropout", "-0.1", "at least 0"},
                     {"beta1", "1", "less than 1"},
                     {"dtype", "f64", "f32, bf16"},
                     {"tokenizer", "chars", "did you mean 'char'"},
                     {"steps", "99999999999999999999", "whole number"}};
  for (const auto& b : bad) {
    CAPTURE(b.name);
    CAPTURE(b.text);
    const std::string message = usage_error([&] { set.set_text(b.name, b.text); });
    CHECK(has(message, b.part));
    CHECK(has(message, std::string("--") + b.name));
  }
  CHECK(options.layers == 7);  // a refused value changes nothing
}

TEST_CASE_FIXTURE(Fixture, "a configuration file sets what the command line did not") {
  set.set_text("layers", "2");
  set.set_json(R"({"layers": 9, "heads": 8, "min_lr": 0.0001, "weight-decay": 0, "bias": true, "tokenizer": "byte"})",
               "c.json");
  CHECK(options.layers == 2);
  CHECK(options.heads == 8);
  CHECK(options.min_lr == 0.0001);
  CHECK(options.weight_decay == 0);
  CHECK(options.bias);
  CHECK(options.tokenizer == "byte");

  CHECK(has(usage_error([&] { set.set_json(R"({"layerz": 9})", "c.json"); }),
            "c.json has an unknown key \"layerz\"; did you mean \"layers\"?"));
  CHECK(has(usage_error([&] { set.set_json(R"({"resume": "x"})", "c.json"); }), "unknown key"));
  CHECK(has(usage_error([&] { set.set_json(R"({"steps": "9"})", "c.json"); }), "a whole number"));
  CHECK(has(usage_error([&] { set.set_json(R"({"steps": 9.5})", "c.json"); }), "a whole number"));
  CHECK(has(usage_error([&] { set.set_json(R"({"dropout": 2})", "c.json"); }), "less than 1"));
  CHECK(has(usage_error([&] { set.set_json(R"({"steps": )", "c.json"); }), "c.json is not JSON"));
  CHECK(has(usage_error([&] { set.set_json("[1]", "c.json"); }), "JSON object"));
  CHECK(has(usage_error([&] { set.set_json("", "c.json"); }), "not JSON"));
}

TEST_CASE_FIXTURE(Fixture, "options go to JSON and back unchanged") {
  set.set_text("lr", "0.00123456789012345");
  set.set_text("data", "a \"text\".txt");
  set.set_text("seed", "9000000000000000");
  TrainOptions copy;
  OptionSet copies = train_option_set(copy);
  copies.set_json(set.json(), "stored");
  CHECK(copy.lr == options.lr);
  CHECK(copy.data == options.data);
  CHECK(copy.seed == options.seed);
  CHECK(copies.json() == set.json());
  CHECK(!has(set.json(), "resume"));
}

TEST_CASE_FIXTURE(Fixture, "options that depend on others are filled in, and contradictions refused") {
  set.set_text("lr", "0.002");
  set.set_text("steps", "100");
  complete(options, set);
  CHECK(options.min_lr == 0.0002);
  CHECK(options.warmup == 5);

  set.set_text("heads", "3");
  CHECK(has(usage_error([&] { complete(options, set); }), "--heads 3 does not divide --width 128"));
  set.set_text("heads", "4");
  set.set_text("min-lr", "0.01");
  CHECK(has(usage_error([&] { complete(options, set); }), "--min-lr"));
  set.set_text("min-lr", "0");
  set.set_text("warmup", "101");
  CHECK(has(usage_error([&] { complete(options, set); }), "--warmup 101"));
  set.set_text("warmup", "5");
  CHECK(options.kv_heads == 4);
  set.set_text("kv-heads", "2");
  CHECK(has(usage_error([&] { complete(options, set); }), "--arch llama"));
  set.set_text("arch", "llama");
  CHECK_NOTHROW(complete(options, set));
  set.set_text("kv-heads", "3");
  CHECK(has(usage_error([&] { complete(options, set); }), "--kv-heads 3"));
  set.set_text("kv-heads", "2");
  set.set_text("dropout", "0.1");
  CHECK(has(usage_error([&] { complete(options, set); }), "no dropout"));
}

TEST_CASE("8-bit floats are refused where a GPU has no tensor cores for them") {
  for (const auto& [major, minor] : {std::pair{7, 5}, {8, 0}, {8, 6}, {8, 7}}) {
    const std::string error = usage_error([&] { check_capability("NVIDIA A100", major, minor); });
    CHECK(has(error, "--dtype f8 needs a GPU of compute capability 8.9"));
    CHECK(has(error, "NVIDIA A100 has " + std::to_string(major) + "." + std::to_string(minor)));
    CHECK(has(error, "--dtype bf16"));
  }
  for (const auto& [major, minor] : {std::pair{8, 9}, {9, 0}, {10, 0}, {12, 1}})
    CHECK_NOTHROW(check_capability("NVIDIA H100", major, minor));
}
