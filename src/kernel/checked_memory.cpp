#include "kernel/checked_memory.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/half.h"

namespace weft::kernel {
namespace {

template <class T>
T get(const void* data, int64_t index) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}
template <class T>
void put(void* data, int64_t index, T v) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}

// NaN or a large odd integer: a result that depends on it is visibly wrong.
Number poison_of(Dtype t) {
  if (is_float(t)) return Number::of_real(std::numeric_limits<double>::quiet_NaN());
  return round_to(Number::of_int(0x5bd1e9955bd1e955), t);
}

}  // namespace

Number read_element(const void* data, Dtype t, int64_t k) {
  switch (t.val()) {
    case Dtype::Val::bool_: return Number::of_int(get<uint8_t>(data, k) != 0);
    case Dtype::Val::uint8: return Number::of_int(get<uint8_t>(data, k));
    case Dtype::Val::uint16: return Number::of_int(get<uint16_t>(data, k));
    case Dtype::Val::uint32: return Number::of_int(get<uint32_t>(data, k));
    case Dtype::Val::uint64: return Number::of_int(get<int64_t>(data, k));
    case Dtype::Val::int8: return Number::of_int(get<int8_t>(data, k));
    case Dtype::Val::int16: return Number::of_int(get<int16_t>(data, k));
    case Dtype::Val::int32: return Number::of_int(get<int32_t>(data, k));
    case Dtype::Val::int64: return Number::of_int(get<int64_t>(data, k));
    case Dtype::Val::float16: return Number::of_real(f16_to_float(get<uint16_t>(data, k)));
    case Dtype::Val::bfloat16: return Number::of_real(bf16_to_float(get<uint16_t>(data, k)));
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: return Number::of_real(low_to_float(get<uint8_t>(data, k), t));
    case Dtype::Val::float32: return Number::of_real(get<float>(data, k));
    case Dtype::Val::float64: return Number::of_real(get<double>(data, k));
    default: throw_internal("interpret", "no element of a kernel is complex64");
  }
}

void write_element(void* data, Dtype t, int64_t k, Number v) {
  switch (t.val()) {
    case Dtype::Val::float16: return put(data, k, float_to_f16(static_cast<float>(v.f)));
    case Dtype::Val::bfloat16: return put(data, k, float_to_bf16(static_cast<float>(v.f)));
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: return put(data, k, static_cast<uint8_t>(float_to_low(static_cast<float>(v.f), t)));
    case Dtype::Val::float32: return put(data, k, static_cast<float>(v.f));
    case Dtype::Val::float64: return put(data, k, v.f);
    default: break;
  }
  switch (t.size()) {
    case 1: return put(data, k, static_cast<uint8_t>(v.i));
    case 2: return put(data, k, static_cast<uint16_t>(v.i));
    case 4: return put(data, k, static_cast<uint32_t>(v.i));
    default: return put(data, k, v.i);
  }
}

CheckedMemory::CheckedMemory(const Kernel& kernel, std::span<const HostBuffer> buffers)
    : params_(kernel.params.size()) {
  for (size_t k = 0; k < params_; ++k) {
    Region region{kernel.params[k].dtype, static_cast<char*>(buffers[k].data), buffers[k].elements};
    if (kernel.params[k].written) {
      const size_t n = static_cast<size_t>(region.elements);
      region.writer.resize(n), region.adder.resize(n), region.reader.resize(n);
    }
    regions_.push_back(std::move(region));
  }
  for (size_t a = 0; a < params_; ++a)
    for (size_t b = a + 1; b < params_; ++b) {
      const Region &x = regions_[a], &y = regions_[b];
      const bool apart =
          x.data + x.elements * x.dtype.size() <= y.data || y.data + y.elements * y.dtype.size() <= x.data;
      if (!apart && (kernel.params[a].written || kernel.params[b].written))
        throw_failure("kernel " + kernel.name,
                      fmt::format("parameters {} and {} overlap in memory, and one of them is written", a, b));
    }
  for (const Local& local : kernel.locals) {
    Region region{local.dtype, nullptr, local.elements};
    region.own.resize(static_cast<size_t>(local.elements) * local.dtype.size());
    region.data = region.own.data();
    regions_.push_back(std::move(region));  // a moved vector keeps its storage
  }
}

void CheckedMemory::begin(int64_t program) {
  program_ = program;
  for (size_t k = params_; k < regions_.size(); ++k) poison(static_cast<Ref>(k));
}

void CheckedMemory::poison(Ref local) {
  Region& region = regions_[static_cast<size_t>(local)];
  for (int64_t k = 0; k < region.elements; ++k) write_element(region.data, region.dtype, k, poison_of(region.dtype));
}

CheckedMemory::Region& CheckedMemory::at(Ref ref, int64_t index) {
  Region& region = regions_[static_cast<size_t>(ref)];
  if (index < 0 || index >= region.elements)
    throw MemoryFault(fmt::format("element {} is outside the buffer's {} elements", index, region.elements));
  return region;
}

Number CheckedMemory::load(Ref ref, int64_t index) {
  Region& region = at(ref, index);
  if (!region.writer.empty()) {
    const size_t k = static_cast<size_t>(index);
    if (others(region.writer[k]) || others(region.adder[k]))
      throw MemoryFault(fmt::format("race: reads element {}, which another program wrote", index));
    mark(region.reader[k]);
  }
  return read_element(region.data, region.dtype, index);
}

void CheckedMemory::store(Ref ref, int64_t index, Number v) {
  Region& region = at(ref, index);
  if (!region.writer.empty()) {
    const size_t k = static_cast<size_t>(index);
    if (others(region.writer[k]) || others(region.adder[k]))
      throw MemoryFault(fmt::format("race: writes element {}, which another program wrote", index));
    if (others(region.reader[k]))
      throw MemoryFault(fmt::format("race: writes element {}, which another program read", index));
    mark(region.writer[k]);
  }
  write_element(region.data, region.dtype, index, v);
}

Number CheckedMemory::update(Ref ref, int64_t index, const std::function<Number(Number)>& change) {
  Region& region = at(ref, index);
  if (!region.writer.empty()) {
    const size_t k = static_cast<size_t>(index);
    if (others(region.writer[k]))
      throw MemoryFault(fmt::format("race: adds to element {}, which another program wrote", index));
    if (others(region.reader[k]))
      throw MemoryFault(fmt::format("race: adds to element {}, which another program read", index));
    mark(region.adder[k]);
  }
  const Number old = read_element(region.data, region.dtype, index);
  write_element(region.data, region.dtype, index, change(old));
  return old;
}

int64_t CheckedMemory::first_unwritten(Ref ref) const {
  const Region& region = regions_[static_cast<size_t>(ref)];
  for (size_t k = 0; k < region.writer.size(); ++k)
    if (region.writer[k] == 0 && region.adder[k] == 0) return static_cast<int64_t>(k);
  return -1;
}

}  // namespace weft::kernel
