#include "array/host.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/half.h"

namespace weft::detail {
namespace {

template <class T>
T read(const void* data, int64_t index) {
  T v;
  std::memcpy(&v, static_cast<const std::byte*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

template <class T>
void write(void* data, int64_t index, T v) {
  std::memcpy(static_cast<std::byte*>(data) + index * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}

template <class T>
Number integer(const void* data, int64_t index) {
  return Number::of_int(static_cast<int64_t>(read<T>(data, index)));
}

}  // namespace

Number load_element(const void* data, Dtype dtype, int64_t index) {
  switch (dtype.val()) {
    case Dtype::Val::bool_: return Number::of_int(read<uint8_t>(data, index) != 0);
    case Dtype::Val::uint8: return integer<uint8_t>(data, index);
    case Dtype::Val::uint16: return integer<uint16_t>(data, index);
    case Dtype::Val::uint32: return integer<uint32_t>(data, index);
    case Dtype::Val::uint64: return integer<uint64_t>(data, index);
    case Dtype::Val::int8: return integer<int8_t>(data, index);
    case Dtype::Val::int16: return integer<int16_t>(data, index);
    case Dtype::Val::int32: return integer<int32_t>(data, index);
    case Dtype::Val::int64: return integer<int64_t>(data, index);
    case Dtype::Val::float16: return Number::of_real(f16_to_float(read<uint16_t>(data, index)));
    case Dtype::Val::bfloat16: return Number::of_real(bf16_to_float(read<uint16_t>(data, index)));
    case Dtype::Val::float32: return Number::of_real(read<float>(data, index));
    case Dtype::Val::float64: return Number::of_real(read<double>(data, index));
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2: return Number::of_real(low_to_float(read<uint8_t>(data, index), dtype));
    case Dtype::Val::complex64:
    case Dtype::Val::complex128: break;
  }
  throw_invalid("array", std::string("elements of dtype ") + dtype_name(dtype) + " have no real value");
}

void store_element(void* data, Dtype dtype, int64_t index, Number value) {
  switch (dtype.val()) {
    case Dtype::Val::bool_: return write<uint8_t>(data, index, value.integral ? value.i != 0 : value.f != 0);
    case Dtype::Val::uint8:
    case Dtype::Val::int8: return write<uint8_t>(data, index, static_cast<uint8_t>(value.i));
    case Dtype::Val::uint16:
    case Dtype::Val::int16: return write<uint16_t>(data, index, static_cast<uint16_t>(value.i));
    case Dtype::Val::uint32:
    case Dtype::Val::int32: return write<uint32_t>(data, index, static_cast<uint32_t>(value.i));
    case Dtype::Val::uint64:
    case Dtype::Val::int64: return write<int64_t>(data, index, value.i);
    case Dtype::Val::float16: return write<uint16_t>(data, index, float_to_f16(static_cast<float>(value.real())));
    case Dtype::Val::bfloat16: return write<uint16_t>(data, index, float_to_bf16(static_cast<float>(value.real())));
    case Dtype::Val::float32: return write<float>(data, index, static_cast<float>(value.real()));
    case Dtype::Val::float64: return write<double>(data, index, value.real());
    case Dtype::Val::float8_e4m3:
    case Dtype::Val::float8_e5m2:
      return write<uint8_t>(data, index, static_cast<uint8_t>(float_to_low(static_cast<float>(value.real()), dtype)));
    case Dtype::Val::complex64:
    case Dtype::Val::complex128: break;
  }
  throw_invalid("array",
                std::string("elements of dtype ") + dtype_name(dtype) + " cannot be written from real numbers");
}

bool is_row_major(const Shape& shape, const Strides& strides) {
  int64_t expected = 1;
  bool packed = true;
  for (size_t k = shape.size(); k-- > 0;) {
    const int64_t n = shape[k].bound();
    if (n == 0) return true;
    if (n != 1 && strides[k] != expected) packed = false;
    expected *= n;
  }
  return packed;
}

graph::Storage allocate_storage(const graph::Type& type) {
  const auto bytes = static_cast<size_t>(num_elements(type.shape)) * type.dtype.size();
  return {runtime::allocate(bytes), 0, row_major_strides(type.shape)};
}

std::byte* address(const graph::Storage& storage, Dtype dtype) {
  return static_cast<std::byte*>(storage.buffer->data()) + storage.offset * static_cast<int64_t>(dtype.size());
}

}  // namespace weft::detail
