// weft device: what the processor and the GPUs of this machine are, what limits them, and how fast they are.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "compiler/program/measured_rates.h"
#include "host_info.h"
#include "machine_options.h"
#include "runtime/threads.h"
#include "target/cpu/codegen/options.h"
#include "target/cuda/driver/context.h"
#include "target/cuda/driver/driver.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/driver/properties.h"
#include "target/target.h"

namespace weft::tool {

namespace {

using nlohmann::ordered_json;

struct DeviceOptions {
  bool json = false, measure = true;
  MachineOptions machine;
};

/// Adds measured rates: bytes a copy reads and writes, and operations of products by the dtype of their operands.
void add_rates(ordered_json& out, const target::Rates& rates) {
  out["copy_GBps"] = rates.memory() / 1e9;
  const std::pair<const char*, double> kinds[] = {{"f64_product_gflops", rates.products.f64},
                                                  {"f32_product_gflops", rates.products.f32},
                                                  {"tf32_product_gflops", rates.products.tf32},
                                                  {"f16_product_gflops", rates.products.f16},
                                                  {"f8_product_gflops", rates.products.f8}};
  for (const auto& [key, rate] : kinds)
    if (rate > 0) out[key] = rate / 1e9;
  if (rates.launch > 0) out["launch_us"] = 1e6 / rates.launch;
}

ordered_json cpu_row(bool measure) {
  ordered_json out{{"device", "cpu"}};
  const std::string name = from_proc("/proc/cpuinfo", "model name");
  out["name"] = name.empty() ? "unknown" : name;
  out["instructions"] = instruction_sets();
  out["isa"] = target::cpu_isa().name;
  out["vector_bits"] = target::cpu_isa().vector_bits;
  out["processors"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (host_cores() > 0) out["cores"] = host_cores();
  out["threads"] = runtime::num_threads();
  const std::string clock = from_proc("/proc/cpuinfo", "cpu MHz");
  if (!clock.empty()) out["clock_MHz"] = std::strtod(clock.c_str(), nullptr);
  for (const HostCache& c : host_caches()) {
    std::string type = c.type;
    std::transform(type.begin(), type.end(), type.begin(), [](unsigned char l) { return std::tolower(l); });
    out["caches"].push_back({{"level", c.level}, {"type", type}, {"bytes", c.bytes}, {"shared_by", c.shared_by}});
  }
  out["memory_bytes"] = memory_bytes();
  if (const double free = available_memory_bytes(); free > 0) out["available_bytes"] = free;
  if (measure) add_rates(out, compiler::machine_rates(target::cpu(), true));
  return out;
}

/// Returns CUDA's version as people write it: "13.0" of 13000.
std::string cuda_version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

ordered_json gpu_row(int ordinal, bool measure) {
  namespace cuda = target::cuda;
  const cuda::DeviceInfo info = cuda::device_info(ordinal);
  const target::Machine machine = cuda::machine_of(info);
  ordered_json out{
      {"device", fmt::format("gpu:{}", ordinal)}, {"name", info.name},     {"uuid", info.uuid}, {"arch", info.arch()},
      {"memory_bytes", info.memory_bytes},        {"pci", info.pci_bus_id}};
  if (const std::string link = cuda::pcie_link(info.pci_bus_id); !link.empty()) out["pcie"] = link;
  for (const cuda::Property& p : cuda::device_properties(ordinal)) {
    const std::string unit = p.info->unit;
    if (unit == "yes") out[p.info->key] = p.value != 0;
    else out[p.info->key + (unit.empty() ? "" : "_" + unit)] = p.value;
  }
  out["largest_cluster"] = machine.max_cluster;
  out["stated_bandwidth_GBps"] = machine.bandwidth / 1e9;
  out["peers"] = cuda::device_peers(ordinal);
  out["driver"] = cuda_version(cuda::driver_version());
  out["nvrtc"] = cuda::nvrtc_available() ? cuda_version(cuda::nvrtc_version()) : "none";
  if (measure) add_rates(out, compiler::machine_rates(target::gpu(ordinal), true));
  return out;
}

std::string shown(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const ordered_json& part : value) {
    out += out.empty() ? "" : ", ";
    if (!part.is_object()) {
      out += part.dump();
      continue;
    }
    out += fmt::format("L{} {} {} KiB", part["level"].get<int>(), part["type"].get<std::string>(),
                       part["bytes"].get<int64_t>() >> 10);
    if (const int64_t n = part["shared_by"].get<int64_t>(); n > 1) out += fmt::format(" of {} processors", n);
  }
  return out.empty() ? "none" : out;
}

void print_row(const ordered_json& row) {
  for (const auto& [key, value] : row.items()) {
    std::string name = key, text = shown(value);
    if (name.ends_with("_bytes") && value.is_number() && value.get<double>() >= 1 << 30)
      text = gibibytes(value.get<double>());
    std::replace(name.begin(), name.end(), '_', ' ');
    fmt::print("{:26} {}\n", name, text);
  }
  fmt::print("\n");
}

int device(const DeviceOptions& o) {
  apply(o.machine);
  std::vector<ordered_json> rows{cpu_row(o.measure)};
  for (int k = 0; k < target::cuda::device_count(); ++k) rows.push_back(gpu_row(k, o.measure));
  for (const ordered_json& row : rows)
    if (o.json) fmt::print("{}\n", row.dump());
    else print_row(row);
  std::string why;
  if (!o.json && !target::cuda::available(&why)) fmt::print("There is no GPU: {}\n", why);
  return 0;
}

}  // namespace

Command device_command() {
  auto o = std::make_shared<DeviceOptions>();
  OptionSet set;
  set.add("json", "", &o->json, "print each device as a line of JSON");
  set.add("measure", "", &o->measure, "measure copies, products and launches, which takes about a second a device")
      .with_negation();
  add_machine_options(set, o->machine);
  return {"device", "Shows the processor and the GPUs: their limits and their measured rates",
          "weft device --json --no-measure", set, [o](OptionSet&) { return device(*o); }};
}

}  // namespace weft::tool
