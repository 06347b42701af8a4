// Maps of arrays, and files, in the C interface.
#include <string_view>

#include "c/handles.h"
#include "weft/export.h"
#include "weft/io.h"

using weft::c::guarded;
using weft::c::in;
using weft::c::out;

namespace {

using Arrays = std::unordered_map<std::string, weft::array>;
using Texts = std::unordered_map<std::string, std::string>;

Arrays arrays_of(weft_map map) { return {in(map).arrays.begin(), in(map).arrays.end()}; }
Texts texts_of(weft_map map) { return {in(map).texts.begin(), in(map).texts.end()}; }

weft_map_handle map_of(const Arrays& arrays) { return {{arrays.begin(), arrays.end()}, {}}; }

weft_map_handle gguf_map(const weft::GGUFLoad& all) {
  weft_map_handle map = map_of(all.first);
  for (const auto& [name, value] : all.second) {
    if (const auto* text = std::get_if<std::string>(&value)) map.texts.emplace(name, *text);
    if (const auto* number = std::get_if<weft::array>(&value)) map.arrays.emplace("metadata:" + name, *number);
  }
  return map;
}

[[noreturn]] void refuse(const char* op, const std::string& path) {
  throw std::invalid_argument(std::string("[") + op + "] " + path + " ends in no format that holds several arrays: " +
                              ".npz, .safetensors, .gguf, .pt or .pth");
}

weft_map_handle load_map(const std::string& path) {
  if (path.ends_with(".npz")) return map_of(weft::load_npz(path));
  if (path.ends_with(".gguf")) return gguf_map(weft::load_gguf(path));
  if (path.ends_with(".pt") || path.ends_with(".pth")) return map_of(weft::load_torch(path));
  if (!path.ends_with(".safetensors") && !path.ends_with(".safetensors.index.json")) refuse("weft_load_map", path);
  const weft::SafetensorsLoad all = weft::load_safetensors(path);
  weft_map_handle map = map_of(all.first);
  map.texts.insert(all.second.begin(), all.second.end());
  return map;
}

void save_map(const std::string& path, weft_map map) {
  if (path.ends_with(".npz")) return weft::savez(path, arrays_of(map));
  if (path.ends_with(".safetensors")) return weft::save_safetensors(path, arrays_of(map), texts_of(map));
  if (path.ends_with(".pt") || path.ends_with(".pth")) return weft::save_torch(path, arrays_of(map));
  if (!path.ends_with(".gguf")) refuse("weft_save_map", path);
  std::unordered_map<std::string, weft::GGUFMetaData> metadata;
  for (const auto& [name, text] : in(map).texts) metadata.emplace(name, text);
  weft::save_gguf(path, arrays_of(map), metadata);
}

}  // namespace

weft_status weft_map_new(weft_map* result) {
  return guarded([&] { *result = new weft_map_handle(); });
}
void weft_map_free(weft_map map) { delete map; }
weft_status weft_map_set(weft_map map, const char* name, weft_array value) {
  return guarded([&] { in(map).arrays.insert_or_assign(in(name), in(value)); });
}
weft_status weft_map_set_text(weft_map map, const char* name, const char* value) {
  return guarded([&] { in(map).texts.insert_or_assign(in(name), in(value)); });
}
weft_status weft_map_get(weft_array* result, weft_map map, const char* name) {
  return guarded([&] {
    const auto found = in(map).arrays.find(in(name));
    if (found == in(map).arrays.end()) throw std::out_of_range("[weft_map_get] there is no array " + in(name));
    out(result, found->second);
  });
}
const char* weft_map_text(weft_map map, const char* name) {
  const char* text = nullptr;
  guarded([&] {
    const auto found = in(map).texts.find(in(name));
    if (found != in(map).texts.end()) text = found->second.c_str();
  });
  return text;
}
size_t weft_map_size(weft_map map) { return map->arrays.size(); }
const char* weft_map_name(weft_map map, size_t index) {
  if (index >= map->arrays.size()) return nullptr;
  return std::next(map->arrays.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str();
}

weft_status weft_load(weft_array* result, const char* path) {
  return guarded([&] { out(result, weft::load(in(path))); });
}
weft_status weft_save(const char* path, weft_array a) {
  return guarded([&] { weft::save(in(path), in(a)); });
}
weft_status weft_load_map(weft_map* result, const char* path) {
  return guarded([&] { *result = new weft_map_handle(load_map(in(path))); });
}
weft_status weft_save_map(const char* path, weft_map map) {
  return guarded([&] { save_map(in(path), map); });
}
weft_status weft_export_function(const char* path, weft_function f, weft_arrays arguments) {
  return guarded([&] { weft::export_function(in(path), in(f), in(arguments)); });
}
weft_status weft_exporter_new(weft_exporter* result, const char* path, weft_function f, bool shapeless) {
  return guarded([&] { out(result, weft::exporter(in(path), in(f), shapeless)); });
}
weft_status weft_exporter_add(weft_exporter exporter, weft_arrays arguments) {
  return guarded([&] { in(exporter)(in(arguments)); });
}
weft_status weft_exporter_close(weft_exporter exporter) {
  return guarded([&] { in(exporter).close(); });
}
void weft_exporter_free(weft_exporter exporter) { delete exporter; }
weft_status weft_import_function(weft_function* result, const char* path) {
  return guarded([&] {
    const weft::ImportedFunction imported = weft::import_function(in(path));
    out(result,
        weft::ArrayFunction([imported](const std::vector<weft::array>& arguments) { return imported(arguments); }));
  });
}
