#include "target/cuda/codegen/text/source.h"

#include <algorithm>

#include "base/error.h"

namespace weft::target::cuda {

namespace {

constexpr std::string_view include = "#include \"";

std::string_view file_named(std::string_view name) {
  const auto* end = embedded_files + embedded_file_count;
  const auto* found = std::find_if(embedded_files, end, [&](const EmbeddedFile& file) { return file.name == name; });
  if (found == end) throw_internal("cuda source", "no embedded file " + std::string(name));
  return found->text;
}

}  // namespace

std::string cuda_source(std::string_view name) {
  std::string_view text = file_named(name);
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    if (line.starts_with(include)) out += cuda_source(line.substr(include.size(), line.rfind('"') - include.size()));
    else out += line;
  }
  return out;
}

std::string_view prelude() {
  static const std::string text = cuda_source("target/cuda/codegen/text/prelude.cuh");
  return text;
}

}  // namespace weft::target::cuda
