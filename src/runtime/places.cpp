// Where a buffer's contents lie, and the copies between those places. Each copy is made once; it stays valid until
// somebody overwrites the contents elsewhere.
#include <mutex>
#include <vector>

#include "base/error.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/peer.h"
#include "runtime/trace.h"

namespace weft::runtime {

struct Buffer::Places {
  struct Place {
    Accelerator* device;
    void* data;
    bool valid;
  };
  std::mutex mutex;
  BufferRef host;  // of a buffer that began on a device
  bool host_valid = true;
  std::vector<Place> devices;

  Place* find(Accelerator* device) {
    for (Place& p : devices)
      if (p.device == device) return &p;
    return nullptr;
  }
  Place& make(Accelerator& device, size_t bytes) {
    if (Place* place = find(&device)) return *place;
    devices.push_back({&device, device.allocate(bytes), false});
    return devices.back();
  }
  Place* valid() {
    for (Place& p : devices)
      if (p.valid) return &p;
    return nullptr;
  }
  void* from_another(Accelerator& device, size_t bytes);
};

/// On `device`, copied from one that has the contents; null where the host has them too and is no further away, or
/// where the two devices know no way.
void* Buffer::Places::from_another(Accelerator& device, size_t bytes) {
  auto* const peer = dynamic_cast<Peer*>(&device);
  if (!peer) return nullptr;
  std::lock_guard order(device.order());
  std::lock_guard lock(mutex);
  const Place* const source = valid();
  if (!source || (host_valid && !peer->reaches(*source->device))) return nullptr;
  Accelerator& other = *source->device;
  const void* const from = source->data;
  Place& place = make(device, bytes);
  if (!place.valid && bytes > 0) {
    if (!peer->copy_from(other, place.data, from, bytes)) return nullptr;
    ++counters().between_devices;
  }
  place.valid = true;
  return place.data;
}

Buffer::Buffer(Accelerator& device, size_t bytes) : data_(nullptr), bytes_(bytes) {
  auto places = std::make_unique<Places>();
  places->host_valid = false;
  places->devices.push_back({&device, device.allocate(bytes), true});
  places_ = places.release();
}

Buffer::~Buffer() {
  if (Places* places = places_.load(std::memory_order_acquire)) {
    for (const Places::Place& p : places->devices) p.device->release(p.data, bytes_);
    delete places;
  }
  if (release_) release_(data_);
}

Buffer::Places& Buffer::places() const {
  Places* places = places_.load(std::memory_order_acquire);
  if (places) return *places;
  auto fresh = std::make_unique<Places>();
  if (places_.compare_exchange_strong(places, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *places;  // another thread was first
}

// Who gives work to a device holds its order first and a buffer's lock second, here as everywhere.
void* Buffer::on_host() const {
  Places& p = places();
  for (;;) {  // once, unless somebody overwrites the contents elsewhere in between
    Accelerator* from = nullptr;
    {
      std::lock_guard lock(p.mutex);
      if (p.host_valid) return host(p);
      Places::Place* place = p.valid();
      check(place != nullptr, "buffer", "its contents are valid nowhere");
      from = place->device;
    }
    std::lock_guard order(from->order());
    std::lock_guard lock(p.mutex);
    const Places::Place* place = p.find(from);
    if (!place->valid) continue;
    void* to = host(p);
    if (!p.host_valid && bytes_ > 0) {
      from->to_host(to, place->data, bytes_);
      ++counters().to_host;
    }
    p.host_valid = true;
    return to;
  }
}

/// The host's memory, made where there is none yet.
void* Buffer::host(Places& p) const {
  if (data_) return data_;
  if (!p.host) p.host = allocate(bytes_);
  return p.host->data();
}

void* Buffer::on(Accelerator* device) const {
  if (!device) return data();
  Places& p = places();
  {
    std::lock_guard lock(p.mutex);
    if (Places::Place* place = p.find(device); place && place->valid) return place->data;
  }
  if (void* there = p.from_another(*device, bytes_)) return there;
  const void* source = data();  // from another device by way of the host
  std::lock_guard order(device->order());
  std::lock_guard lock(p.mutex);
  Places::Place& place = p.make(*device, bytes_);
  if (!place.valid && bytes_ > 0) {
    device->to_device(place.data, source, bytes_);
    ++counters().to_device;
  }
  place.valid = true;
  return place.data;
}

void Buffer::overwritten_on(Accelerator* device) const {
  Places* p = places_.load(std::memory_order_acquire);
  if (!p) {
    if (!device) return;  // it is on the host alone
    p = &places();
  }
  std::lock_guard lock(p->mutex);
  p->host_valid = !device;
  for (Places::Place& place : p->devices) place.valid = place.device == device;
}

BufferRef allocate_on(Accelerator* device, size_t bytes) {
  return device ? std::make_shared<Buffer>(*device, bytes) : allocate(bytes);
}

}  // namespace weft::runtime
