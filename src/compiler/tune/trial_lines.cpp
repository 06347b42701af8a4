#include "compiler/tune/trial_lines.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "graph/calls/kernel_text.h"
#include "kernel/text/text.h"

namespace weft::compiler {
namespace {

constexpr std::string_view text_mark = "tile IR:";

/// The user's lines, by those of the text.
class LinesOfText {
 public:
  LinesOfText(const kernel::Kernel& written, const kernel::Kernel& read) : written_(written), read_(read) {
    follow(written.body, read.body);
  }

  std::string at(int line) const {
    const auto found = lines_.find(line);
    if (found == lines_.end() || found->second.line <= 0) return "";
    const std::string_view file = found->second.file;
    return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), found->second.line);
  }

 private:
  void follow(const kernel::Block& from, const kernel::Block& to) {
    size_t k = 0;
    for (const kernel::Inst& inst : from.insts) {
      if (k >= to.insts.size() || to.insts[k].op != inst.op) return;
      const kernel::Inst& same = to.insts[k++];
      lines_[read_.lines[static_cast<size_t>(same.line)].line] = written_.lines[static_cast<size_t>(inst.line)];
      for (size_t b = 0; b < std::min(inst.blocks.size(), same.blocks.size()); ++b)
        follow(inst.blocks[b], same.blocks[b]);
    }
  }

  const kernel::Kernel &written_, &read_;
  std::map<int, kernel::SourceLine> lines_;
};

}  // namespace

std::string with_users_lines(const std::string& message, const graph::KernelProgram& program) {
  if (message.find(text_mark) == std::string::npos) return message;
  const kernel::ParsedKernel read = kernel::parse(graph::text_of(program));
  const LinesOfText lines(program.kernel, read.kernel);
  std::string out;
  size_t at = 0;
  for (size_t next = 0; (next = message.find(text_mark, at)) != std::string::npos;) {
    const char* const begin = message.data() + next + text_mark.size();
    int line = 0;
    const auto [end, error] = std::from_chars(begin, message.data() + message.size(), line);
    const std::string user = error == std::errc() ? lines.at(line) : "";
    out += message.substr(at, next - at) + (user.empty() ? fmt::format("{}{}", text_mark, line) : user);
    at = static_cast<size_t>(end - message.data());
  }
  return out + message.substr(at);
}

}  // namespace weft::compiler
