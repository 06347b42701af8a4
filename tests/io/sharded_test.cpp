#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/folder.h"
#include "weft/compile.h"
#include "weft/io.h"
#include "weft/memory.h"
#include "weft/ops.h"

using namespace weft;

namespace {

std::unordered_map<std::string, array> weights() {
  std::unordered_map<std::string, array> out;
  for (int k = 0; k < 7; ++k) out.emplace("layer." + std::to_string(k), arange(k, k + 10, int32));
  return out;
}

void write_text(const std::string& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

std::string edited(const std::string& index, const std::string& from, const std::string& to) {
  std::string text = io::read_file(index);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("safetensors: a set of files is written and read by its index") {
  const Folder folder;
  const std::string index = save_sharded_safetensors(folder.path.string(), weights(), 100, {{"format", "pt"}});
  CHECK(index == folder / "model.safetensors.index.json");
  for (const int k : {1, 2, 3, 4})
    CHECK(std::filesystem::exists(folder / ("model-0000" + std::to_string(k) + "-of-00004.safetensors")));
  const auto [back, metadata] = load_safetensors(index);
  CHECK(metadata.at("format") == "pt");
  REQUIRE(back.size() == 7);
  for (const auto& [name, a] : weights()) CHECK(back.at(name).to_vector<int>() == a.to_vector<int>());
  const auto json = nlohmann::json::parse(io::read_file(index));
  CHECK(json["metadata"]["total_size"] == 280);
  CHECK(json["weight_map"]["layer.6"] == "model-00004-of-00004.safetensors");
}

TEST_CASE("safetensors: an index that does not fit its files is refused") {
  const Folder folder;
  const std::string index = save_sharded_safetensors(folder.path.string(), weights(), 100),
                    bad = folder / "bad.index.json";
  const auto refused = [&](const std::string& text, const char* reason) {
    write_text(bad, text);
    CAPTURE(reason);
    CHECK_THROWS_WITH_AS(load_safetensors(bad), doctest::Contains(reason), std::runtime_error);
  };
  refused("{", "the index is not JSON, at byte 1");
  refused("[]", "no object weight_map");
  refused("{\"weight_map\": 1}", "no object weight_map");
  refused("{\"weight_map\": {\"a\": 1}}", "names no file next to it for tensor \"a\"");
  refused("{\"weight_map\": {\"a\": \"../model-00001-of-00004.safetensors\"}}", "names no file next to it");
  refused("{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "names no file next to it");
  refused("{\"weight_map\": {\"a\": \"gone.safetensors\"}}", "No such file");
  refused(edited(index, "\"layer.0\"", "\"layer.x\""), "\"layer.x\" is not in it");
  refused("{\"weight_map\": {\"layer.0\": \"model-00001-of-00004.safetensors\"}}", "is in it, though");
}

TEST_CASE("safetensors: a file is mapped, and a compiled step may update what it holds without touching the file") {
  const Folder folder;
  const std::string file = folder / "m.safetensors";
  save_safetensors(file, {{"w", zeros({100000})}});
  const std::string bytes = io::read_file(file);
  clear_cache();
  const size_t before = get_active_memory();
  array w = load_safetensors(file).first.at("w");
  CHECK(get_active_memory() == before);
  const auto step =
      compile([&](const std::vector<array>&) { return w = w + 1.0f, std::vector<array>{}; }, {.state = {&w}});
  step({});
  step({});
  CHECK(w.data<float>()[99999] == 2.0f);
  CHECK(io::read_file(file) == bytes);
  std::filesystem::remove(file);
  CHECK(sum(w).item<float>() == 200000.0f);
}

TEST_CASE("safetensors: from memory and to memory") {
  const auto out = std::make_shared<io::MemoryWriter>();
  const complex64_t z[] = {{1, 2}};
  save_safetensors(out, {{"b", array({1, 2})}, {"z", array::from_data(z, {1}, complex64)}}, {{"k", "v"}});
  const auto back = load_safetensors(std::make_shared<io::MemoryReader>(out->bytes()));
  CHECK(back.first.at("b").to_vector<int>() == std::vector<int>{1, 2});
  CHECK(*back.first.at("z").data<complex64_t>() == z[0]);
  CHECK(back.second.at("k") == "v");
  CHECK_THROWS_WITH_AS(
      save_safetensors(std::make_shared<io::MemoryWriter>(), {{"z", zeros({2}, complex128)}}),
      "[save_safetensors] z is complex128, which safetensors files cannot hold: convert it with astype, "
      "or save its parts",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(load_safetensors(std::make_shared<io::MemoryReader>(out->bytes() + "x", "blob")),
                       doctest::Contains("blob: 1 bytes after the last tensor"), std::runtime_error);
}

TEST_CASE("safetensors fixtures: a set of six files") {
  const std::string folder = std::string(WEFT_TEST_DATA) + "/fixtures/safetensors/SafeTensors.jl/sharded/";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: no " << folder);
    return;
  }
  const auto tensors = load_safetensors(folder + "model.safetensors.index.json").first;
  REQUIRE(tensors.size() == 36);
  for (const std::string type : {"float8_e5m2", "float8_e4m3fn", "bfloat16", "float16", "int64", "uint8"}) {
    CAPTURE(type);
    const auto values = tensors.at(type + "_3").to_vector<float>();
    CHECK(values.size() == 3);
    CHECK(tensors.at(type + "_357").size() == 105);
  }
  CHECK(tensors.at("float8_e4m3fn_3").dtype() == float8_e4m3);
  CHECK(tensors.at("int64_357").to_vector<int>().back() == 6);
}
