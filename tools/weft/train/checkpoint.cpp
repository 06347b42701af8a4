// Writes, finds and checks checkpoints.
#include "tools/weft/train/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "io/json.h"
#include "tools/weft/train/corpus.h"
#include "weft/io.h"

namespace weft::tool {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int format_version = 1;
constexpr const char* model_file = "model.safetensors";
constexpr const char* optimizer_file = "optimizer.safetensors";
constexpr const char* tokenizer_file = "tokenizer.json";
constexpr const char* state_file = "state.json";

[[noreturn]] void damaged(const std::string& folder, const std::string& what) {
  std::string message = fmt::format("the checkpoint {} is damaged: {}", folder, what);
  std::error_code error;
  std::string other;
  for (const auto& entry : fs::directory_iterator(fs::absolute(folder).parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.find('.') == std::string::npos &&
        entry.path().filename() != fs::path(folder).filename())
      other = entry.path().string();
  }
  if (!other.empty()) message += "; an older one is " + other + ", which can be named instead";
  throw std::runtime_error(message);
}

/// Returns the step of "step-500"; nothing for any other name.
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with("step-")) return std::nullopt;
  int64_t step = 0;
  const char* begin = name.data() + 5;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, step);
  return error == std::errc() && stop == end && step >= 0 ? std::optional(step) : std::nullopt;
}

/// Returns whether this is the folder of a process that was killed while writing.
bool is_remains(const std::string& name) { return name.starts_with("step-") && name.ends_with(".tmp"); }

void sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);  // some file systems cannot, and need not
  ::close(fd);
}

std::string checksum(const std::string& path) { return digest_of(io::read_file(path)).hex(); }

json curve_json(const Curve& curve) {
  json out = json::array();
  for (const auto& [step, loss] : curve) out.push_back({step, loss});
  return out;
}

int64_t whole(const json& value) {
  if (!value.is_number_integer())
    throw std::runtime_error("state.json holds " + value.dump() + " where a whole number belongs");
  return value.get<int64_t>();
}

std::vector<uint32_t> key_from(const json& words) {
  std::vector<uint32_t> out;
  for (const auto& w : words) out.push_back(static_cast<uint32_t>(whole(w)));
  return out;
}

Curve curve_from(const json& points) {
  Curve out;
  for (const auto& p : points) out.emplace_back(whole(p.at(0)), p.at(1).get<double>());
  return out;
}

std::string state_json(const RunState& s, const json& checksums) {
  nlohmann::ordered_json out;
  out["format"] = format_version;
  out["step"] = s.step;
  out["random_key"] = s.key;
  out["kind"] = s.kind;
  if (s.kind == "gpt") out["model"] = nlohmann::ordered_json::parse(models::to_json(s.model));
  out["dtype"] = s.dtype;
  out["options"] = nlohmann::ordered_json::parse(s.options);
  out["data"] = {{"digest", s.data_digest}, {"bytes", s.data_bytes}};
  if (!s.tuning.empty()) out["tuning"] = s.tuning;
  out["checksums"] = checksums;
  out["losses"] = curve_json(s.losses);
  out["val_losses"] = curve_json(s.val_losses);
  if (!s.accuracies.empty()) out["accuracies"] = curve_json(s.accuracies);
  return out.dump() + "\n";
}

/// Reads a file of the checkpoint; throws where its checksum is wrong.
void verify_file(const Checkpoint& c, const std::string& name) {
  const std::string path = c.folder + "/" + name;
  if (!fs::exists(path)) damaged(c.folder, name + " is missing");
  const auto want = c.checksums.find(name);
  if (want == c.checksums.end() || checksum(path) != want->second)
    damaged(c.folder, name + " is not as it was written (cut off or changed)");
}

std::unordered_map<std::string, array> load_arrays(const Checkpoint& c, const char* name) {
  verify_file(c, name);
  return load_safetensors(c.folder + "/" + name).first;
}

void save_arrays(const std::string& path, const NamedArrays& arrays) {
  std::unordered_map<std::string, array> by_name;
  for (const auto& [name, handle] : arrays) by_name.emplace(name, *handle);
  save_safetensors(path, by_name);
}

void remove_old(const std::string& dir, int64_t newest) {
  std::vector<int64_t> steps;
  std::vector<fs::path> remains;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (const auto step = step_of(name)) {
      if (*step != newest) steps.push_back(*step);
    } else if (is_remains(name)) {
      remains.push_back(entry.path());
    }
  }
  // The last one before the newest stays; later ones belong to another course of the run.
  std::sort(steps.begin(), steps.end());
  const auto last = std::lower_bound(steps.begin(), steps.end(), newest);
  const int64_t keep = last == steps.begin() ? -1 : *(last - 1);
  for (const int64_t step : steps)
    if (step != keep) remains.push_back(fs::path(dir) / fmt::format("step-{}", step));
  std::error_code ignored;
  for (const auto& path : remains) fs::remove_all(path, ignored);
}

/// Returns the folder that `latest` names; where a process was killed before it wrote that, the newest checkpoint; else
/// "".
std::string latest_folder(const std::string& dir) {
  const std::string pointer = dir + "/latest";
  std::error_code error;
  if (fs::exists(pointer, error)) {
    std::string name = io::read_file(pointer);
    while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
    if (!step_of(name))
      throw std::runtime_error(
          fmt::format("{} should name a checkpoint such as step-500, and holds '{}'", pointer, name.substr(0, 40)));
    if (fs::exists(dir + "/" + name, error)) return dir + "/" + name;
  }
  int64_t newest = -1;
  for (const auto& entry : fs::directory_iterator(dir, error))
    newest = std::max(newest, step_of(entry.path().filename().string()).value_or(-1));
  return newest < 0 ? "" : fmt::format("{}/step-{}", dir, newest);
}

}  // namespace

void parse_state(const std::string& text, Checkpoint& to) try {
  if (io::nested_deeper(text, 16)) throw std::runtime_error("state.json is nested too deeply");
  const json root = json::parse(text);
  if (const int64_t format = whole(root.at("format")); format != format_version)
    throw std::runtime_error(
        fmt::format("state.json has format {}, and this program reads format {}", format, format_version));
  RunState& s = to.state;
  s.step = whole(root.at("step"));
  s.key = key_from(root.at("random_key"));
  s.kind = root.value("kind", "gpt");
  if (s.kind == "gpt") s.model = models::text_config_from_json(root.at("model").dump());
  s.dtype = root.at("dtype").get<std::string>();
  s.options = root.at("options").dump();
  s.data_digest = root.at("data").at("digest").get<std::string>();
  s.data_bytes = whole(root.at("data").at("bytes"));
  s.tuning = root.value("tuning", "");
  s.losses = curve_from(root.at("losses"));
  s.val_losses = curve_from(root.at("val_losses"));
  if (root.contains("accuracies")) s.accuracies = curve_from(root.at("accuracies"));
  to.checksums = root.at("checksums").get<std::unordered_map<std::string, std::string>>();
  if (s.step < 0 || s.key.size() != 2 || (s.dtype != "f32" && s.dtype != "bf16" && s.dtype != "f16" && s.dtype != "f8"))
    throw std::runtime_error("state.json holds impossible values");
} catch (const json::exception&) {
  throw std::runtime_error("state.json is cut off or not what this program writes");
}

std::unordered_map<std::string, array> Checkpoint::model() const { return load_arrays(*this, model_file); }
std::unordered_map<std::string, array> Checkpoint::optimizer() const { return load_arrays(*this, optimizer_file); }

std::string Checkpoint::run_folder() const {
  const std::string parent = fs::path(folder).parent_path().string();
  return parent.empty() ? "." : parent;
}

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

void save_checkpoint(const std::string& dir, const RunState& state, const NamedArrays& model,
                     const NamedArrays& optimizer, const std::string& tokenizer) {
  const std::string name = fmt::format("step-{}", state.step), final = dir + "/" + name, temporary = final + ".tmp";
  fs::remove_all(temporary);
  fs::create_directories(temporary);
  save_arrays(temporary + "/" + model_file, model);
  save_arrays(temporary + "/" + optimizer_file, optimizer);
  std::vector<const char*> files{model_file, optimizer_file};
  if (!tokenizer.empty()) {
    io::write_file_atomically(temporary + "/" + tokenizer_file, tokenizer + "\n");
    files.push_back(tokenizer_file);
  }
  json checksums;
  for (const char* file : files) checksums[file] = checksum(temporary + "/" + file);
  io::write_file_atomically(temporary + "/" + state_file, state_json(state, checksums));
  sync_folder(temporary);
  // A folder of that name exists when a run was resumed from an older checkpoint.
  if (fs::exists(final)) fs::rename(final, final + ".old.tmp");
  fs::rename(temporary, final);
  sync_folder(dir);
  io::write_file_atomically(dir + "/latest", name + "\n");
  remove_old(dir, state.step);
}

Checkpoint load_checkpoint(const std::string& path) {
  if (!fs::exists(path)) throw std::runtime_error(fmt::format("there is no folder {}: check the path", path));
  Checkpoint out;
  const std::string dir = path.size() > 1 && path.ends_with("/") ? path.substr(0, path.size() - 1) : path;
  out.folder = fs::exists(dir + "/" + state_file) ? dir : latest_folder(dir);
  if (out.folder.empty())
    throw std::runtime_error(fmt::format("{} holds no checkpoint: name a folder that `weft train` has written", path));
  if (!fs::exists(out.folder + "/" + state_file)) damaged(out.folder, "state.json is missing");
  try {
    parse_state(io::read_file(out.folder + "/" + state_file), out);
  } catch (const std::exception& e) {
    damaged(out.folder, without_operation(e.what()));
  }
  if (out.state.kind != "gpt") return out;
  verify_file(out, tokenizer_file);
  out.tokenizer = io::read_file(out.folder + "/" + tokenizer_file);
  return out;
}

bool has_checkpoint(const std::string& dir) {
  std::error_code error;
  return fs::is_directory(dir, error) && !latest_folder(dir).empty();
}

void remove_checkpoints(const std::string& dir) {
  fs::remove(dir + "/latest");
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (step_of(name) || is_remains(name)) found.push_back(entry.path());
  }
  for (const auto& path : found) fs::remove_all(path);
}

void prepare_folder(const std::string& dir) {
  std::error_code error;
  if (fs::exists(dir, error) && !fs::is_directory(dir, error))
    throw std::runtime_error(fmt::format("{} is not a folder; choose another with --out", dir));
  fs::create_directories(dir, error);
  if (error)
    throw std::runtime_error(
        fmt::format("the folder {} cannot be made: {}; choose another with --out", dir, error.message()));
  const std::string probe = dir + "/.weft-probe";
  try {
    io::write_file_atomically(probe, "x");
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(fmt::format("nothing can be written in the folder {}: {}; choose another with --out", dir,
                                         without_operation(e.what())));
  }
  fs::remove(probe, error);
}

}  // namespace weft::tool
