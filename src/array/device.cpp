// Devices and streams. A stream is an executor of the runtime, which issues work for one device; the calling thread's
// default is an index that new nodes carry (graph::StreamScope).
#include "weft/device.h"

#include <map>
#include <mutex>
#include <ostream>
#include <string>

#include "array/op_support.h"
#include "base/error.h"
#include "runtime/executor.h"
#include "target/cuda/driver/driver.h"
#include "target/target.h"
#include "weft/stream.h"

namespace weft {
namespace {

std::string device_name(const Device& d) { return (d.type == Device::gpu ? "gpu:" : "cpu:") + std::to_string(d.index); }

void require_device(const char* op, const Device& d) {
  if (is_available(d)) return;
  const int gpus = device_count(Device::gpu);
  std::string why;
  if (d.type == Device::gpu) target::cuda::available(&why);
  throw_invalid(op, "device " + device_name(d) + " is not available: there is " +
                        (d.type == Device::cpu ? "one CPU, cpu:0"
                         : gpus == 0           ? "no GPU: " + why
                                     : std::to_string(gpus) + (gpus == 1 ? " GPU, gpu:0" : " GPUs, from gpu:0 on")));
}

/// Returns the runtime's index of a device: -1 for the CPU.
int number_of(const Device& d) { return d.type == Device::cpu ? -1 : d.index; }
Device device_of(int stream) {
  const int number = runtime::executor_device(stream);
  return number < 0 ? Device(Device::cpu) : Device(Device::gpu, number);
}

/// Returns the first stream of a device.
int first_stream(const Device& d) {
  if (d.type == Device::cpu) return 0;
  static std::mutex mutex;
  static std::map<int, int> streams;
  std::lock_guard lock(mutex);
  const auto [at, added] = streams.emplace(d.index, 0);
  if (added) at->second = runtime::new_executor(d.index);
  return at->second;
}

Stream on_default(const char* op, const Device& d) {
  require_device(op, d);
  const int current = graph::StreamScope::current();
  return {device_of(current) == d ? current : first_stream(d), d};
}

Stream stream_on(const char* op, const StreamOrDevice& s) {
  if (const auto* device = std::get_if<Device>(&s)) return on_default(op, *device);
  if (const auto* type = std::get_if<Device::DeviceType>(&s)) return on_default(op, Device(*type));
  if (const auto* local = std::get_if<ThreadLocalStream>(&s)) return stream_from_thread_local_stream(*local);
  const auto* stream = std::get_if<Stream>(&s);
  if (!stream) return on_default(op, default_device());
  require_device(op, stream->device);
  if (stream->index < 0 || stream->index >= runtime::num_executors() || device_of(stream->index) != stream->device)
    throw_invalid(op, "there is no stream " + std::to_string(stream->index) + " on device " +
                          device_name(stream->device) + ": make one with new_stream");
  return *stream;
}

Device& chosen_device() {
  static Device device(Device::cpu);
  return device;
}

std::shared_ptr<runtime::Event> event_of(const std::shared_ptr<void>& state) {
  return std::static_pointer_cast<runtime::Event>(state);
}

}  // namespace

const Device& default_device() { return chosen_device(); }

void set_default_device(const Device& d) {
  require_device("set_default_device", d);
  chosen_device() = d;
  graph::StreamScope::set_for_process(first_stream(d));
  graph::StreamScope::set(-1);
}
bool is_available(const Device& d) { return d.index >= 0 && d.index < device_count(d.type); }
int device_count(Device::DeviceType type) { return type == Device::cpu ? 1 : target::gpu_count(); }

Stream default_stream(Device d) { return on_default("default_stream", d); }
Stream to_stream(StreamOrDevice s) { return stream_on("to_stream", s); }
Stream to_stream(StreamOrDevice s, Device device) {
  return std::holds_alternative<std::monostate>(s) ? on_default("to_stream", device) : stream_on("to_stream", s);
}
void set_default_stream(Stream s) { graph::StreamScope::set(stream_on("set_default_stream", s).index); }

Stream new_stream(Device d) {
  require_device("new_stream", d);
  return {runtime::new_executor(number_of(d)), d};
}
Stream new_stream() { return new_stream(default_device()); }

ThreadLocalStream new_thread_local_stream(Device d) {
  require_device("new_thread_local_stream", d);
  static std::atomic<int> count{0};
  return {count.fetch_add(1), d};
}

Stream stream_from_thread_local_stream(ThreadLocalStream s) {
  require_device("stream_from_thread_local_stream", s.device);
  thread_local std::map<int, int> streams;
  const auto [at, added] = streams.emplace(s.index, 0);
  if (added) at->second = runtime::new_executor(number_of(s.device));
  return {at->second, s.device};
}

std::vector<Stream> get_streams() {
  std::vector<Stream> streams;
  for (int k = 0; k < runtime::num_executors(); ++k) streams.emplace_back(k, device_of(k));
  return streams;
}
void clear_streams() { runtime::rest_executors(); }

void synchronize(Stream s) {
  const Stream stream = stream_on("synchronize", s);
  runtime::executor(stream.index).wait();
  if (stream.device.type == Device::gpu) target::gpu(stream.device.index).device()->synchronize();
}
void synchronize(ThreadLocalStream s) { synchronize(stream_from_thread_local_stream(s)); }
void synchronize() { synchronize(default_stream(default_device())); }

std::ostream& operator<<(std::ostream& os, const Device& d) {
  return os << "Device(" << (d.type == Device::gpu ? "gpu" : "cpu") << ", " << d.index << ")";
}
std::ostream& operator<<(std::ostream& os, const Stream& s) {
  return os << "Stream(" << s.device << ", " << s.index << ")";
}

Event::Event() : state_(std::make_shared<runtime::Event>()) {}
void Event::signal() { event_of(state_)->set(); }
void Event::signal(Stream s) {
  runtime::executor(stream_on("signal", s).index).enqueue([event = event_of(state_)] { event->set(); });
}
void Event::wait() const { event_of(state_)->wait(); }
void Event::wait(Stream s) const {
  runtime::executor(stream_on("wait", s).index).enqueue([event = event_of(state_)] { event->wait(); });
}
bool Event::is_signaled() const { return event_of(state_)->is_set(); }

void detail::on_device(const char* op, const StreamOrDevice& s) {
  if (!std::holds_alternative<std::monostate>(s)) stream_on(op, s);
}

void detail::OnStream::enter(const char* op, const StreamOrDevice& s) { scope_.emplace(stream_on(op, s).index); }

}  // namespace weft
