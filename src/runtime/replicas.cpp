// Replicas of a buffer on the host and on devices, and the copies between them. A copy is made once; it stays valid
// until the contents are overwritten elsewhere.
#include <mutex>
#include <vector>

#include "base/error.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/peer.h"
#include "runtime/trace.h"

namespace weft::runtime {

struct Buffer::Replicas {
  struct Replica {
    Accelerator* device;
    void* data;
    bool valid;
    bool borrowed = false;
  };
  std::mutex mutex;
  BufferRef host;  // host memory of a buffer that was allocated on a device
  bool host_valid = true;
  std::vector<Replica> devices;

  Replica* find(Accelerator* device) {
    for (Replica& p : devices)
      if (p.device == device) return &p;
    return nullptr;
  }
  Replica& make(Accelerator& device, size_t bytes) {
    if (Replica* replica = find(&device)) return *replica;
    devices.push_back({&device, device.allocate(bytes), false});
    return devices.back();
  }
  Replica* valid() {
    for (Replica& p : devices)
      if (p.valid) return &p;
    return nullptr;
  }
  void* from_another(Accelerator& device, size_t bytes);
};

/// Returns memory on `device`, copied from another device with the contents. Null if the host has them and is as near,
/// or if there is no path between the devices.
void* Buffer::Replicas::from_another(Accelerator& device, size_t bytes) {
  auto* const peer = dynamic_cast<Peer*>(&device);
  if (!peer) return nullptr;
  std::lock_guard order(device.order());
  std::lock_guard lock(mutex);
  const Replica* const source = valid();
  if (!source || (host_valid && !peer->reaches(*source->device))) return nullptr;
  Accelerator& other = *source->device;
  const void* const from = source->data;
  Replica& replica = make(device, bytes);
  if (!replica.valid && bytes > 0) {
    if (!peer->copy_from(other, replica.data, from, bytes)) return nullptr;
    ++counters().between_devices;
  }
  replica.valid = true;
  return replica.data;
}

Buffer::Buffer(Accelerator& device, size_t bytes) : data_(nullptr), bytes_(bytes) {
  auto replicas = std::make_unique<Replicas>();
  replicas->host_valid = false;
  replicas->devices.push_back({&device, device.allocate(bytes), true});
  replicas_ = replicas.release();
}

Buffer::Buffer(Borrowed memory)
    : data_(memory.device ? nullptr : memory.data), bytes_(memory.bytes), release_(std::move(memory.release)),
      borrowed_(true) {
  if (!memory.device) return;
  auto replicas = std::make_unique<Replicas>();
  replicas->host_valid = false;
  replicas->devices.push_back({memory.device, memory.data, true, true});
  replicas_ = replicas.release();
}

Buffer::~Buffer() {
  if (Replicas* replicas = replicas_.load(std::memory_order_acquire)) {
    for (const Replicas::Replica& p : replicas->devices)
      if (!p.borrowed) p.device->release(p.data, bytes_);
    delete replicas;
  }
  if (release_) release_(data_);
}

Buffer::Replicas& Buffer::replicas() const {
  Replicas* replicas = replicas_.load(std::memory_order_acquire);
  if (replicas) return *replicas;
  auto fresh = std::make_unique<Replicas>();
  if (replicas_.compare_exchange_strong(replicas, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *replicas;  // another thread was first
}

// The lock order, here as everywhere: first the device's order, then the buffer's lock.
void* Buffer::on_host() const {
  Replicas& p = replicas();
  for (;;) {  // repeated only if the contents are overwritten elsewhere meanwhile
    Accelerator* from = nullptr;
    {
      std::lock_guard lock(p.mutex);
      if (p.host_valid) return host(p);
      Replicas::Replica* replica = p.valid();
      check(replica != nullptr, "buffer", "its contents are valid nowhere");
      from = replica->device;
    }
    std::lock_guard order(from->order());
    std::lock_guard lock(p.mutex);
    const Replicas::Replica* replica = p.find(from);
    if (!replica->valid) continue;
    void* to = host(p);
    if (!p.host_valid && bytes_ > 0) {
      from->to_host(to, replica->data, bytes_);
      ++counters().to_host;
    }
    p.host_valid = true;
    return to;
  }
}

/// Returns host memory, allocated on first use.
void* Buffer::host(Replicas& p) const {
  if (data_) return data_;
  if (!p.host) p.host = allocate(bytes_);
  return p.host->data();
}

bool Buffer::is_on(Accelerator* device) const {
  Replicas* const p = replicas_.load(std::memory_order_acquire);
  if (!p) return !device;
  std::lock_guard lock(p->mutex);
  if (!device) return p->host_valid;
  const Replicas::Replica* const replica = p->find(device);
  return replica && replica->valid;
}

void* Buffer::on(Accelerator* device) const {
  if (!device) return data();
  Replicas& p = replicas();
  {
    std::lock_guard lock(p.mutex);
    if (Replicas::Replica* replica = p.find(device); replica && replica->valid) return replica->data;
  }
  if (void* there = p.from_another(*device, bytes_)) return there;
  const void* source = data();  // from another device through the host
  std::lock_guard order(device->order());
  std::lock_guard lock(p.mutex);
  Replicas::Replica& replica = p.make(*device, bytes_);
  if (!replica.valid && bytes_ > 0) {
    device->to_device(replica.data, source, bytes_);
    ++counters().to_device;
  }
  replica.valid = true;
  return replica.data;
}

void Buffer::overwritten_on(Accelerator* device) const {
  Replicas* p = replicas_.load(std::memory_order_acquire);
  if (!p) {
    if (!device) return;  // only on the host
    p = &replicas();
  }
  std::lock_guard lock(p->mutex);
  p->host_valid = !device;
  for (Replicas::Replica& replica : p->devices) replica.valid = replica.device == device;
}

BufferRef allocate_on(Accelerator* device, size_t bytes) {
  return device ? std::make_shared<Buffer>(*device, bytes) : allocate(bytes);
}

}  // namespace weft::runtime
