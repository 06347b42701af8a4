#include "tools/weft/train/checkpoint.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "temporary_folder.h"
#include "weft/io.h"

using namespace weft;
using namespace weft::tool;
namespace fs = std::filesystem;

namespace {

struct Run {
  array weight = array::from_data(std::vector<float>{1.5f, -2.25f, 1e-40f, 3}.data(), {2, 2}, float32);
  array moment = array::from_data(std::vector<float>{7}.data(), {1}, float32);
  RunState state;

  Run() {
    state.key = {0x12345678u, 0xffffffffu};
    state.model = models::GptConfig{.vocab = 11, .context = 8, .layers = 1, .heads = 2, .width = 4};
    state.dtype = "f32";
    state.options = R"({"lr": 0.001})";
    state.data_digest = "abc";
    state.data_bytes = 77;
  }
  void save(const std::string& dir, int64_t step) {
    state.step = step;
    state.losses.emplace_back(step, 0.1 + static_cast<double>(step));
    save_checkpoint(dir, state, {{"w", &weight}}, {{"m", &moment}}, R"({"kind": "byte"})");
  }
};

std::string message_of(const std::string& path, bool arrays = true) {
  try {
    const Checkpoint c = load_checkpoint(path);
    if (arrays) c.model(), c.optimizer();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void change(const std::string& file, const std::function<void(std::string&)>& f) {
  std::string bytes = io::read_file(file);
  f(bytes);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

TEST_CASE("a checkpoint comes back as it was") {
  TemporaryFolder dir;
  Run run;
  run.state.val_losses = {{5, 1.0 / 3}};
  run.save(dir.path, 5);
  const Checkpoint c = load_checkpoint(dir.path);
  CHECK(c.folder == dir / "step-5");
  CHECK(c.state.step == 5);
  CHECK(c.state.key == run.state.key);
  CHECK(c.state.model == run.state.model);
  CHECK(c.state.losses == run.state.losses);
  CHECK(c.state.val_losses == run.state.val_losses);
  CHECK(c.state.data_bytes == 77);
  CHECK(c.tokenizer.find("byte") != std::string::npos);
  const auto weights = c.model();
  REQUIRE(weights.size() == 1);
  CHECK(weights.at("w").to_vector<float>() == run.weight.to_vector<float>());
  CHECK(c.optimizer().at("m").to_vector<float>() == std::vector<float>{7});
  CHECK(load_checkpoint(dir / "step-5").state.step == 5);
  CHECK(load_checkpoint(dir.path + "/").state.step == 5);
}

TEST_CASE("the last two stay, what a killed process left goes") {
  TemporaryFolder dir;
  fs::create_directories(dir / "step-7.tmp");
  std::ofstream(dir / "notes.txt") << "mine";
  Run run;
  for (const int64_t step : {10, 20, 30}) run.save(dir.path, step);
  CHECK(!fs::exists(dir / "step-7.tmp"));
  CHECK(!fs::exists(dir / "step-10"));
  CHECK(fs::exists(dir / "step-20"));
  CHECK(load_checkpoint(dir.path).state.step == 30);
  CHECK(fs::exists(dir / "notes.txt"));
}

TEST_CASE("going on from an older checkpoint replaces the newer ones") {
  TemporaryFolder dir;
  Run run;
  for (const int64_t step : {10, 20}) run.save(dir.path, step);
  run.save(dir.path, 15);
  CHECK(load_checkpoint(dir.path).state.step == 15);
  CHECK(fs::exists(dir / "step-10"));
  CHECK(!fs::exists(dir / "step-20"));
  run.weight = array::from_data(std::vector<float>{9, 9, 9, 9}.data(), {2, 2}, float32);
  run.save(dir.path, 15);  // the same step again
  CHECK(load_checkpoint(dir.path).model().at("w").to_vector<float>() == std::vector<float>{9, 9, 9, 9});
}

TEST_CASE("a process killed between any two changes leaves a whole checkpoint") {
  TemporaryFolder dir;
  Run run;
  run.save(dir.path, 10);
  fs::create_directories(dir / "step-20.tmp");  // while writing
  std::ofstream(dir / "step-20.tmp/model.safetensors") << "half";
  CHECK(load_checkpoint(dir.path).state.step == 10);
  fs::rename(dir / "step-10",
             dir / "step-10.old.tmp");  // between the two renames that replace a folder of the same name
  CHECK(message_of(dir.path) != "");    // nothing else is there
  fs::rename(dir / "step-10.old.tmp", dir / "step-10");
  run.save(dir.path, 20);
  io::write_file_atomically(dir / "latest", "step-10\n");  // before `latest` is written
  CHECK(load_checkpoint(dir.path).state.step == 10);
  fs::remove(dir / "latest");
  CHECK(load_checkpoint(dir.path).state.step == 20);
  CHECK(has_checkpoint(dir.path));
  remove_checkpoints(dir.path);
  CHECK(!has_checkpoint(dir.path));
}

TEST_CASE("missing and damaged checkpoints get a sentence") {
  TemporaryFolder dir;
  CHECK(has(message_of(dir / "nowhere"), "there is no folder"));
  CHECK(has(message_of(dir.path), "holds no checkpoint"));
  Run run;
  run.save(dir.path, 10);
  run.save(dir.path, 20);
  const std::string newest = dir / "step-20";

  struct Damage {
    const char *file, *part;
    void (*how)(std::string&);
  };
  const Damage damages[] = {
      {"model.safetensors", "model.safetensors is not as it was written", [](std::string& b) { b.pop_back(); }},
      {"model.safetensors", "model.safetensors is not as it was written", [](std::string& b) { b.back() ^= 1; }},
      {"optimizer.safetensors", "optimizer.safetensors is not as it was written", [](std::string& b) { b.clear(); }},
      {"tokenizer.json", "tokenizer.json is not as it was written", [](std::string& b) { b += " "; }},
      {"state.json", "state.json is cut off", [](std::string& b) { b.resize(b.size() / 2); }},
      {"state.json", "state.json is cut off", [](std::string& b) { b = "{}"; }},
      {"state.json", "state.json is cut off", [](std::string& b) { b = std::string("\x00\xff\x80", 3); }},
      {"state.json", "format 9", [](std::string& b) { b.replace(b.find("\"format\":1"), 10, "\"format\":9"); }},
  };
  for (const auto& d : damages) {
    CAPTURE(d.file);
    const std::string file = newest + "/" + d.file, whole = io::read_file(file);
    change(file, d.how);
    const std::string message = message_of(dir.path);
    CHECK(has(message, d.part));
    CHECK(has(message, "step-20"));
    CHECK(has(message, "step-10"));  // the one that could be used instead
    change(file, [&](std::string& b) { b = whole; });
  }
  CHECK(message_of(dir.path) == "");
  for (const char* file : {"model.safetensors", "state.json", "tokenizer.json"}) {
    fs::rename(newest + "/" + file, dir / "aside");
    CHECK(message_of(dir.path) != "");
    fs::rename(dir / "aside", newest + "/" + file);
  }
  io::write_file_atomically(dir / "latest", "../../etc\n");
  CHECK(has(message_of(dir.path), "should name a checkpoint"));
}

TEST_CASE("folders that cannot be written are found out at once") {
  TemporaryFolder dir;
  prepare_folder(dir / "a/b/c");
  CHECK(fs::is_directory(dir / "a/b/c"));
  CHECK(fs::is_empty(dir / "a/b/c"));
  std::ofstream(dir / "file") << "x";
  CHECK_THROWS_AS(prepare_folder(dir / "file"), std::runtime_error);
  CHECK_THROWS_AS(prepare_folder(dir / "file/below"), std::runtime_error);
  CHECK_THROWS_AS(prepare_folder("/proc/weft"), std::runtime_error);
}
