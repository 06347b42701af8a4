#include "host_info.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace weft::tool {

namespace {

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Returns how many processors a list names: "0-3,8" names five.
int64_t listed(const std::string& list) {
  int64_t count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = part.find('-');
    const int64_t first = std::atoll(part.c_str());
    count += dash == std::string::npos ? 1 : std::atoll(part.c_str() + dash + 1) - first + 1;
  }
  return count;
}

}  // namespace

std::string from_proc(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    const size_t end = line.find_last_not_of(" \t", colon - 1), begin = line.find_first_not_of(" \t", colon + 1);
    if (end + 1 == key.size()) return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string gibibytes(double bytes) { return fmt::format("{:.1f} GiB", bytes / (1024.0 * 1024 * 1024)); }

std::string instruction_sets() {
  std::istringstream flags(from_proc("/proc/cpuinfo", "flags"));
  std::string out;
  for (std::string flag; flags >> flag;)
    for (const char* known :
         {"avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8"})
      if (flag == known) out += (out.empty() ? "" : " ") + flag;
  return out.empty() ? "the baseline of this architecture" : out;
}

double memory_bytes() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double available_memory_bytes() {
  return std::strtod(from_proc("/proc/meminfo", "MemAvailable").c_str(), nullptr) * 1024;  // "12345 kB"
}

std::vector<HostCache> host_caches() {
  std::vector<HostCache> out;
  for (int k = 0; k < 16; ++k) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", k);
    const std::string size = first_line(folder + "size");
    if (size.empty()) break;
    const int64_t unit = size.back() == 'K' ? 1 << 10 : size.back() == 'M' ? 1 << 20 : 1;
    out.push_back({std::atoll(first_line(folder + "level").c_str()), std::atoll(size.c_str()) * unit,
                   listed(first_line(folder + "shared_cpu_list")), first_line(folder + "type")});
  }
  return out;
}

int64_t host_cores() {
  std::set<std::string> cores;
  for (int64_t k = 0; k < ::sysconf(_SC_NPROCESSORS_CONF); ++k) {
    const std::string siblings =
        first_line(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", k));
    if (!siblings.empty()) cores.insert(siblings);
  }
  return static_cast<int64_t>(cores.size());
}

}  // namespace weft::tool
