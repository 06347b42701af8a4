// An exported function's file: safetensors with the stored arrays, and the functions as JSON in its metadata.
#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "graph/build.h"
#include "graph/complex/complex.h"
#include "io/program/tape.h"
#include "weft/ops.h"

namespace weft::io {

namespace {

const std::string& entry(const std::unordered_map<std::string, std::string>& metadata, const char* key) {
  const auto it = metadata.find(key);
  if (it == metadata.end()) throw std::runtime_error("the file holds no exported function");
  return it->second;
}

/// Replays the tape on placeholders, which checks every entry against its row.
void check_function(const TapedFunction& f) {
  const std::vector<graph::Type> types = example_types(f);
  graph::Values inputs;
  for (const graph::Type& t : types) inputs.push_back(graph::parameter(t, static_cast<int64_t>(inputs.size())));
  replay(tape_for(f, types), inputs);
}

std::vector<array> stored_arrays(const TapedFunction& f, const std::unordered_map<std::string, array>& arrays) {
  std::vector<array> out;
  for (size_t k = 0; k < f.stored.size(); ++k) {
    const auto it = arrays.find(f.stored[k]);
    const graph::Type& type = f.tape.inputs[f.tape.inputs.size() - f.stored.size() + k];
    if (it == arrays.end()) throw std::runtime_error("the stored array '" + f.stored[k] + "' is missing");
    const graph::Type stored = type.dtype == complex128 ? graph::memory_type(type) : type;
    if (!(it->second.value().type() == stored))
      throw std::runtime_error("the stored array '" + f.stored[k] + "' is " +
                               graph::to_string(it->second.value().type()) + ", not " + graph::to_string(stored));
    out.push_back(type.dtype == complex128 ? squeeze(view(it->second, complex128), -1) : it->second);
  }
  return out;
}

/// Returns a text as it stands in the quotes of a JSON text.
std::string escaped(const std::string& text) {
  const std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

/// Returns where in the file a kernel's mistake stands; the text is JSON in the file's JSON header. Empty where the
/// file escapes its texts in another way than this library.
std::string position_in(std::string_view bytes, const KernelTextError& e) {
  size_t at = 0;
  for (int line = 1; line < e.line; ++line) at = std::min(e.text.find('\n', at), e.text.size() - 1) + 1;
  at = std::min(at + static_cast<size_t>(e.column - 1), e.text.size());
  const size_t begin = bytes.find(escaped(escaped(e.text)));
  if (begin == std::string_view::npos) return "";
  return fmt::format("byte {}: ", begin + escaped(escaped(e.text.substr(0, at))).size());
}

ProgramFile read(const std::string& label, const std::function<std::string()>& bytes, const SafetensorsLoad& file) {
  ProgramFile out;
  try {
    if (entry(file.second, "format") != "weft.program") throw std::runtime_error("the file holds no exported function");
    if (const auto it = file.second.find("metadata"); it != file.second.end()) out.metadata = it->second;
    out.functions = functions_from_json(entry(file.second, "program"));
    for (const TapedFunction& f : out.functions) {
      out.stored.push_back(stored_arrays(f, file.first));
      check_function(f);
    }
  } catch (const internal_error&) {
    throw;
  } catch (const KernelTextError& e) {
    throw_failure("import_function", label + ": " + position_in(bytes(), e) + e.what());
  } catch (const std::exception& e) {  // rows throw std::invalid_argument
    throw_failure("import_function", label + ": " + e.what());
  }
  return out;
}

}  // namespace

array as_stored(const array& a) { return a.dtype() == complex128 ? view(expand_dims(a, -1), float64) : a; }

ProgramFile read_program(const std::string& file) {
  return read(
      file, [&] { return read_file(file); }, load_safetensors(file));
}
ProgramFile read_program(const std::shared_ptr<Reader>& in) {
  const std::string label = in->label();
  return read(
      label, [] { return std::string(); }, load_safetensors(in));
}

}  // namespace weft::io
