#include "target/cuda/driver/context.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/error.h"
#include "runtime/interrupt.h"

namespace weft::target::cuda {
namespace {

int attribute(int device, DeviceAttribute which) {
  int value = 0;
  check_result(driver().device_get_attribute(&value, which, device), "cuDeviceGetAttribute",
               fmt::format("attribute {}", static_cast<int>(which)));
  return value;
}

int device_of(int ordinal) {
  const int count = device_count();
  if (ordinal < 0 || ordinal >= count) {
    driver();  // throws if there is no driver
    throw_invalid("cuda",
                  fmt::format("there is no device {}: this machine has {} (0 to {})", ordinal, count, count - 1));
  }
  int device = 0;
  check_result(driver().device_get(&device, ordinal), "cuDeviceGet");
  return device;
}

std::string uuid_text(const Uuid& uuid) {
  std::string out = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return out;
}

}  // namespace

std::string DeviceInfo::arch() const { return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : ""); }

int device_count() {
  if (!available()) return 0;
  int count = 0;
  check_result(driver().device_get_count(&count), "cuDeviceGetCount");
  return count;
}

DeviceInfo device_info(int ordinal) {
  const int device = device_of(ordinal);
  DeviceInfo info;
  char name[256] = "";
  check_result(driver().device_get_name(name, sizeof name, device), "cuDeviceGetName");
  info.name = name;
  Uuid uuid{};
  check_result(driver().device_get_uuid(&uuid, device), "cuDeviceGetUuid");
  info.uuid = uuid_text(uuid);
  size_t bytes = 0;
  check_result(driver().device_total_mem(&bytes, device), "cuDeviceTotalMem");
  info.memory_bytes = static_cast<int64_t>(bytes);
  info.major = attribute(device, compute_capability_major);
  info.minor = attribute(device, compute_capability_minor);
  info.pci_bus_id = fmt::format("{:04x}:{:02x}:{:02x}.0", attribute(device, pci_domain_id),
                                attribute(device, weft::target::cuda::pci_bus_id), attribute(device, pci_device_id));
  info.multiprocessors = attribute(device, multiprocessor_count);
  info.max_threads_per_multiprocessor = attribute(device, max_threads_per_multiprocessor);
  info.l2_bytes = attribute(device, l2_cache_size);
  info.shared_bytes_per_block = attribute(device, max_shared_memory_per_block_optin);
  info.shared_bytes_per_multiprocessor = attribute(device, max_shared_memory_per_multiprocessor);
  info.registers_per_multiprocessor = attribute(device, max_registers_per_multiprocessor);
  info.clock_khz = attribute(device, clock_rate_khz);
  info.memory_clock_khz = attribute(device, memory_clock_rate_khz);
  info.memory_bus_bits = attribute(device, global_memory_bus_width);
  return info;
}

Machine machine_of(const DeviceInfo& info) {
  constexpr int64_t whole_device = 100;  // SMs: a slice of a device may not have 16 SMs in one GPC
  Machine m = gpu_of(info.arch());
  const double share = static_cast<double>(info.multiprocessors) / static_cast<double>(m.processors);
  for (double* peak : {&m.peak.f64, &m.peak.f32, &m.peak.tf32, &m.peak.f16, &m.peak.f8}) *peak *= share;
  m.name = info.name;
  m.processors = info.multiprocessors;
  m.max_threads = info.max_threads_per_multiprocessor;
  m.registers = info.registers_per_multiprocessor;
  m.shared_bytes = info.shared_bytes_per_block;
  m.l2_bytes = info.l2_bytes;
  if (m.processors < whole_device) m.max_cluster = m.cluster;
  // Memory transfers twice a clock.
  const double bandwidth = 2e3 * info.memory_clock_khz * info.memory_bus_bits / 8;
  if (bandwidth > 0) m.bandwidth = bandwidth;
  return m;
}

void require_capability(const DeviceInfo& info) {
  constexpr int least = 8;
  if (info.major < least)
    throw_failure(
        "cuda",
        fmt::format(
            "{} has compute capability {}.{}, and Weft needs {}.0 or more: take another device, or compute on the CPU",
            info.name, info.major, info.minor, least));
}

Context::Context(int ordinal) : ordinal_(ordinal), device_(device_of(ordinal)), info_(device_info(ordinal)) {
  require_capability(info_);
  check_result(driver().primary_ctx_retain(&handle_, device_), "cuDevicePrimaryCtxRetain", name());
  make_current();
  check_result(driver().stream_create(&stream_, stream_non_blocking), "cuStreamCreate", name());
  check_result(driver().event_create(&reached_, event_disable_timing), "cuEventCreate", name());
}

std::string Context::name() const { return fmt::format("cuda:{} ({})", ordinal_, info_.name); }

void Context::make_current() const { check_result(driver().ctx_set_current(handle_), "cuCtxSetCurrent", name()); }

/// Asks for the stream until it is done, after some time with pauses, since the driver's own wait does not end.
static void wait_or_end(StreamHandle stream) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds without_pauses{20};
  constexpr std::chrono::microseconds pause{100};
  const runtime::MayEnd may_end(true);
  const Clock::time_point begun = Clock::now();
  while (driver().stream_query(stream) == error_not_ready) {
    if (Clock::now() - begun < without_pauses) continue;
    runtime::check_interrupt();
    std::this_thread::sleep_for(pause);
  }
}

void Context::synchronize(bool may_end) const {
  make_current();
  if (may_end && runtime::ends_waits()) wait_or_end(stream_);
  check_result(driver().stream_synchronize(stream_), "cuStreamSynchronize", name());
}

void Context::follow(const Context& other) const {
  other.make_current();
  check_result(driver().event_record(other.reached_, other.stream_), "cuEventRecord", other.name());
  make_current();
  check_result(driver().stream_wait_event(stream_, other.reached_, 0), "cuStreamWaitEvent", name());
}

bool Context::reaches(const Context& other) const {
  std::lock_guard lock(peers_mutex_);
  const auto [at, added] = peers_.try_emplace(other.ordinal_, false);
  if (!added) return at->second;
  int can = 0;
  check_result(driver().device_can_access_peer(&can, device_, other.device_), "cuDeviceCanAccessPeer", name());
  if (!can) return false;
  make_current();
  const int result = driver().ctx_enable_peer_access(other.handle_, 0);
  return at->second = result == success || result == error_peer_access_already_enabled;
}

bool Context::capturing() const {
  make_current();
  CaptureStatus status = CaptureStatus::none;
  check_result(driver().stream_is_capturing(stream_, &status), "cuStreamIsCapturing", name());
  return status != CaptureStatus::none;
}

void Context::memory(size_t* free, size_t* total) const {
  make_current();
  check_result(driver().mem_get_info(free, total), "cuMemGetInfo", name());
}

Context& context(int ordinal) {
  static std::mutex mutex;
  static auto* contexts = new std::map<int, std::unique_ptr<Context>>;  // never destroyed: used until the process ends
  std::lock_guard lock(mutex);
  std::unique_ptr<Context>& slot = (*contexts)[ordinal];
  if (!slot) slot = std::make_unique<Context>(ordinal);
  return *slot;
}

}  // namespace weft::target::cuda
