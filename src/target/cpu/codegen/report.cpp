#include "target/cpu/codegen/report.h"

#include <atomic>
#include <bit>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace weft::target {
namespace {

std::mutex mutex;
std::string failure;
std::atomic<bool> failed{false};

}  // namespace

void print_values(const char* text, int64_t count, const int64_t* values) {
  std::string line;
  std::string_view rest = text;
  for (int64_t k = 0; k < count; ++k) {
    const size_t at = rest.find("{}");
    if (at == std::string_view::npos) break;
    line += rest.substr(0, at);
    line += values[2 * k] == 0 ? fmt::format("{}", values[2 * k + 1])
                               : fmt::format("{}", std::bit_cast<double>(values[2 * k + 1]));
    rest.remove_prefix(at + 2);
  }
  line += std::string(rest) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
}

void report_failure(const char* message) {
  const std::lock_guard lock(mutex);
  if (!failed.exchange(true)) failure = message;
}

std::string take_failure() {
  if (!failed.load(std::memory_order_relaxed)) return "";
  const std::lock_guard lock(mutex);
  failed = false;
  return std::exchange(failure, {});
}

}  // namespace weft::target
