// weft/interop.h: memory and streams that arrays share with other libraries.
#include "weft/interop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "array/host.h"
#include "array/op_support.h"
#include "array/realise.h"
#include "base/error.h"
#include "runtime/executor.h"
#include "runtime/foreign.h"
#include "runtime/interrupt.h"
#include "target/target.h"
#include "weft/ops.h"

namespace weft {
namespace {

/// Returns the accelerator of a device that exists; null: the CPU.
runtime::Accelerator* accelerator_of(const char* op, const Device& device) {
  detail::on_device(op, device);
  return device.type == Device::gpu ? target::gpu(device.index).device() : nullptr;
}

/// The streams of the thread's contexts, the innermost last.
thread_local std::vector<RawStream> raw_contexts;

/// Which elements an array of strides reaches from its first one: the lowest, and how many there are from it on.
struct Reach {
  int64_t low = 0, count = 1;
};

Reach reach_of(const Shape& shape, const Strides& strides) {
  Reach out;
  for (size_t k = 0; k < shape.size(); ++k) {
    const int64_t reach = strides[k] * (shape[k].bound() - 1);
    out.low += std::min<int64_t>(reach, 0);
    out.count += std::abs(reach);
  }
  return out;
}

void check_borrowed(const BorrowedMemory& m) {
  for (const Dim& d : m.shape)
    if (!d.is_static() || d.bound() < 0)
      throw_invalid("borrow", "lengths are numbers and not negative, got shape " + to_string(m.shape) +
                                  ": give those of the memory");
  if (!m.strides.empty() && m.strides.size() != m.shape.size())
    throw_invalid("borrow", fmt::format("{} strides for shape {}: give one for each axis, or none", m.strides.size(),
                                        to_string(m.shape)));
  if (!m.data && num_elements(m.shape) > 0)
    throw_invalid("borrow", "memory of shape " + to_string(m.shape) + " has elements, but its pointer is null");
}

/// Returns an array of a copy of the host's memory, which is not aligned or has no elements.
array copied(const BorrowedMemory& m, const Strides& strides) {
  graph::Storage storage = detail::allocate_storage({m.shape, m.dtype});
  if (num_elements(m.shape) > 0)
    detail::copy_strided(static_cast<const std::byte*>(m.data), strides, storage.buffer->data(), storage.strides,
                         m.shape, m.dtype.size());
  if (m.release) m.release();
  return array(graph::data({m.shape, m.dtype}, std::move(storage)));
}

}  // namespace

RawStream borrowing_stream(Device device) {
  runtime::Accelerator* const accelerator = accelerator_of("borrowing_stream", device);
  if (!accelerator) return {device, nullptr};
  for (auto context = raw_contexts.rbegin(); context != raw_contexts.rend(); ++context)
    if (context->device == device) return *context;
  return {device, runtime::foreign_order(*accelerator).entry()};
}

array borrow(BorrowedMemory m) {
  runtime::Accelerator* const device = accelerator_of("borrow", m.stream.device);
  check_borrowed(m);
  const Strides strides = m.strides.empty() ? row_major_strides(m.shape) : Strides(m.strides);
  const size_t alignment = real_of(m.dtype).size();
  const bool aligned = reinterpret_cast<uintptr_t>(m.data) % alignment == 0;
  if (num_elements(m.shape) == 0 || (!aligned && !device)) return copied(m, strides);
  if (!aligned)
    throw_invalid("borrow", fmt::format("memory of a GPU does not lie at a multiple of {} bytes, as {} must: copy it",
                                        alignment, dtype_name(m.dtype)));
  std::optional<void*> stream;
  if (device) {
    runtime::ForeignOrder& order = runtime::foreign_order(*device);
    order.follow(m.stream.handle);
    if (m.stream.handle != order.entry()) stream = m.stream.handle;
  }
  const auto size = static_cast<int64_t>(m.dtype.size());
  const Reach reach = reach_of(m.shape, strides);
  graph::Storage storage{runtime::borrow_memory(device, static_cast<std::byte*>(m.data) + reach.low * size,
                                                static_cast<size_t>(reach.count * size), stream, std::move(m.release)),
                         -reach.low, strides};
  return array(graph::data({m.shape, m.dtype}, std::move(storage)));
}

struct LentArray::State {
  array held;  // with its storage
  graph::Storage storage;
  Device device;
  const void* data;
  std::optional<void*> stream;  // in which others use it

  State(array a, graph::Storage s, Device d, const void* address, std::optional<void*> named)
      : held(std::move(a)), storage(std::move(s)), device(d), data(address), stream(named) {}
  ~State() {
    if (stream)
      runtime::take_back(*target::gpu(device.index).device(), *stream,
                         [kept = std::make_shared<std::pair<array, graph::Storage>>(held, storage)] {});
  }
};

const void* LentArray::data() const { return state_->data; }
const Shape& LentArray::shape() const { return state_->held.shape(); }
const Strides& LentArray::strides() const { return state_->storage.strides; }
Dtype LentArray::dtype() const { return state_->held.dtype(); }
Device LentArray::device() const { return state_->device; }

namespace {

std::optional<graph::Storage> storage_if_any(const graph::Value& value) {
  std::shared_lock lock(graph::structure());
  const graph::Storage* const storage = value.node->storage(value.index);
  return storage ? std::optional(*storage) : std::nullopt;
}

/// Returns the storage of an array, whose work is then given to its device, though it may not be done.
graph::Storage begun(const array& a) {
  if (const auto storage = storage_if_any(a.value())) return *storage;
  detail::realise_later(std::span(&a.value(), 1));
  runtime::executor(a.value().node->stream()).wait();
  if (const auto storage = storage_if_any(a.value())) return *storage;
  return detail::realise(a.value());  // a value that a transform traces
}

/// Returns whether other libraries take strides: they refuse negative ones, and elements that repeat.
bool are_usual(const Shape& shape, const Strides& strides) {
  for (size_t k = 0; k < shape.size(); ++k)
    if (shape[k].bound() > 1 && strides[k] <= 0) return false;
  return true;
}

LentArray lend_to(const array& a, Device device, std::optional<void*> stream) {
  runtime::Accelerator* const accelerator = accelerator_of("lend", device);
  if (!accelerator) {
    const graph::Storage storage = detail::realise(a.value());
    return LentArray(std::make_shared<const LentArray::State>(a, storage, device, detail::address(storage, a.dtype()),
                                                              std::nullopt));
  }
  array lent = a;
  graph::Storage storage = begun(lent);
  if (!are_usual(a.shape(), storage.strides)) {
    lent = contiguous(a, false, device);
    storage = begun(lent);
  }
  const void* const data = static_cast<const std::byte*>(storage.buffer->on(accelerator)) +
                           storage.offset * static_cast<int64_t>(a.dtype().size());
  if (stream) runtime::foreign_order(*accelerator).lead(*stream);
  return LentArray(std::make_shared<const LentArray::State>(lent, storage, device, data, stream));
}

}  // namespace

LentArray lend(const array& a, const RawStream& stream) { return lend_to(a, stream.device, stream.handle); }
LentArray lend(const array& a, Device device) { return lend_to(a, device, std::nullopt); }

array duplicate(const array& a, Device device) {
  const LentArray from = lend(a, device);
  if (device.type == Device::cpu) return array::from_data(from.data(), a.shape(), a.dtype());
  runtime::Accelerator* const accelerator = accelerator_of("duplicate", device);
  const array packed = detail::is_row_major(a.shape(), from.strides()) ? a : contiguous(a, false, device);
  const LentArray source = lend(packed, device);
  graph::Storage storage{runtime::allocate_on(accelerator, a.nbytes()), 0, row_major_strides(a.shape())};
  accelerator->copy(storage.buffer->on(accelerator), source.data(), a.nbytes());
  return array(graph::data({a.shape(), a.dtype()}, std::move(storage)));
}

Device device_of(const array& a) {
  const int ordinal = runtime::executor_device(a.value().node->stream());
  const Device own = ordinal < 0 ? Device(Device::cpu) : Device(Device::gpu, ordinal);
  const auto storage = storage_if_any(a.value());
  if (!storage) return own;
  if (ordinal >= 0 && storage->buffer->is_on(target::gpu(ordinal).device())) return own;
  if (storage->buffer->is_on(nullptr)) return Device::cpu;
  for (int k = 0; k < device_count(Device::gpu); ++k)
    if (storage->buffer->is_on(target::gpu(k).device())) return {Device::gpu, k};
  return own;
}

struct RawStreamContext::State {
  RawStream stream;
  runtime::Accelerator* device;
  graph::StreamScope scope;
};

RawStreamContext::RawStreamContext(const RawStream& stream) {
  runtime::Accelerator* const device = accelerator_of("RawStreamContext", stream.device);
  if (device) runtime::foreign_order(*device).follow(stream.handle);
  state_.reset(new State{stream, device, graph::StreamScope(to_stream(stream.device).index)});
  raw_contexts.push_back(stream);
}

RawStreamContext::~RawStreamContext() {
  try {
    close();
  } catch (const std::exception&) {  // of work whose arrays stay pending; or the stream is captured since
  }
}

void RawStreamContext::close() {
  const std::unique_ptr<State> state = std::move(state_);
  if (!state) return;
  raw_contexts.pop_back();
  if (!state->device) return;
  std::exception_ptr error;
  const runtime::MayEnd whole(false);
  for (int k = 0; k < runtime::num_executors(); ++k) {  // what is begun may still be with the streams' threads
    if (runtime::executor_device(k) != state->stream.device.index) continue;
    try {
      runtime::executor(k).wait();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  runtime::foreign_order(*state->device).lead(state->stream.handle);
  if (error) std::rethrow_exception(error);
}

}  // namespace weft
