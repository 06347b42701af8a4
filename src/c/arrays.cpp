// Arrays, lists of arrays, devices and memory of the C interface.
#include <cstring>
#include <memory>
#include <sstream>

#include "c/handles.h"
#include "weft/memory.h"
#include "weft/random.h"
#include "weft/stream.h"

using weft::c::guarded;
using weft::c::in;
using weft::c::out;

const char* weft_version(void) { return WEFT_VERSION; }

size_t weft_dtype_size(weft_dtype dtype) {
  size_t size = 0;
  guarded([&] { size = in(dtype).size(); });
  return size;
}
const char* weft_dtype_name(weft_dtype dtype) {
  const char* name = "";
  guarded([&] { name = weft::dtype_name(in(dtype)); });
  return name;
}

namespace {

weft_stream stream_of(const weft::Stream& s) {
  return {.kind = 2,
          .index = s.index,
          .device = s.device.type == weft::Device::gpu ? WEFT_GPU : WEFT_CPU,
          .device_index = s.device.index};
}
weft::Device device_of(weft_device_type type, int index) {
  return {type == WEFT_GPU ? weft::Device::gpu : weft::Device::cpu, index};
}

}  // namespace

weft_status weft_device_stream(weft_stream* result, weft_device_type device, int device_index) {
  return guarded([&] { *result = stream_of(weft::default_stream(device_of(device, device_index))); });
}
weft_status weft_stream_new(weft_stream* result, weft_device_type device, int device_index) {
  return guarded([&] { *result = stream_of(weft::new_stream(device_of(device, device_index))); });
}
weft_status weft_synchronize(weft_stream stream) {
  return guarded([&] { weft::synchronize(weft::to_stream(in(stream))); });
}
weft_status weft_set_default_device(weft_device_type device, int device_index) {
  return guarded([&] { weft::set_default_device(device_of(device, device_index)); });
}
weft_status weft_device_count(int* result, weft_device_type device) {
  return guarded([&] { *result = weft::device_count(device_of(device, 0).type); });
}

weft_status weft_array_new(weft_array* result, const void* data, const int64_t* shape, size_t ndim, weft_dtype dtype) {
  return guarded([&] { out(result, weft::array::from_data(data, weft::c::lengths(shape, ndim), in(dtype))); });
}
weft_status weft_array_new_managed(weft_array* result, void* data, const int64_t* shape, size_t ndim, weft_dtype dtype,
                                   void (*release)(void* context), void* context) {
  return guarded([&] {
    out(result, weft::array(data, weft::c::lengths(shape, ndim), in(dtype), [release, context](void*) {
          if (release) release(context);
        }));
  });
}
weft_status weft_array_new_double(weft_array* result, double value, weft_dtype dtype) {
  return guarded([&] { out(result, weft::array(value, in(dtype))); });
}
weft_status weft_array_new_int(weft_array* result, int64_t value, weft_dtype dtype) {
  return guarded([&] { out(result, weft::array(value, in(dtype))); });
}
weft_status weft_array_new_complex(weft_array* result, float real, float imag) {
  return guarded([&] { out(result, weft::array(weft::complex64_t(real, imag))); });
}
weft_status weft_array_new_complex128(weft_array* result, double real, double imag) {
  return guarded([&] { out(result, weft::array(weft::complex128_t(real, imag))); });
}
weft_status weft_array_copy(weft_array* result, weft_array a) {
  return guarded([&] { out(result, in(a)); });
}
void weft_array_free(weft_array a) { delete a; }

weft_dtype weft_array_dtype(weft_array a) { return static_cast<weft_dtype>(a->value.dtype().val()); }
size_t weft_array_ndim(weft_array a) { return a->value.ndim(); }
size_t weft_array_size(weft_array a) { return static_cast<size_t>(weft::num_elements(a->value.shape())); }
size_t weft_array_nbytes(weft_array a) { return weft_array_size(a) * a->value.itemsize(); }
int64_t weft_array_dim(weft_array a, size_t axis) {
  return axis < a->value.ndim() ? a->value.shape()[axis].bound() : -1;
}
weft_status weft_array_item(double* result, weft_array a) {
  return guarded([&] { *result = in(a).item<double>(); });
}
weft_status weft_array_item_int(int64_t* result, weft_array a) {
  return guarded([&] { *result = in(a).item<int64_t>(); });
}
weft_status weft_array_data(const void** result, weft_array a) {
  return guarded([&] { *result = in(a).raw_data(); });
}
weft_status weft_array_text(char** result, weft_array a) {
  return guarded([&] {
    std::ostringstream text;
    text << in(a);
    const std::string all = text.str();
    auto copy = std::make_unique<char[]>(all.size() + 1);
    std::memcpy(copy.get(), all.c_str(), all.size() + 1);
    *result = copy.release();
  });
}
void weft_text_free(char* text) { delete[] text; }

weft_status weft_arrays_new(weft_arrays* result, const weft_array* items, size_t count) {
  return guarded([&] { out(result, weft::c::list(items, count)); });
}
void weft_arrays_free(weft_arrays list) { delete list; }
size_t weft_arrays_size(weft_arrays list) { return list->values.size(); }
weft_status weft_arrays_get(weft_array* result, weft_arrays list, size_t index) {
  return guarded([&] {
    if (index >= in(list).size())
      throw std::out_of_range("[weft] array " + std::to_string(index) + " of a list of " +
                              std::to_string(in(list).size()));
    out(result, in(list)[index]);
  });
}
weft_status weft_arrays_append(weft_arrays list, weft_array item) {
  return guarded([&] { in(list).push_back(in(item)); });
}

weft_status weft_eval(weft_arrays list) {
  return guarded([&] { weft::eval(in(list)); });
}
weft_status weft_array_eval(weft_array a) {
  return guarded([&] { in(a).eval(); });
}
weft_status weft_async_eval(weft_arrays list) {
  return guarded([&] { weft::async_eval(in(list)); });
}

weft_status weft_random_seed(uint64_t seed) {
  return guarded([&] { weft::random::seed(seed); });
}
weft_status weft_random_key(weft_array* result, uint64_t seed) {
  return guarded([&] { out(result, weft::random::key(seed)); });
}

size_t weft_active_memory(void) { return weft::get_active_memory(); }
size_t weft_peak_memory(void) { return weft::get_peak_memory(); }
size_t weft_cache_memory(void) { return weft::get_cache_memory(); }
void weft_reset_peak_memory(void) { weft::reset_peak_memory(); }
size_t weft_memory_limit(void) { return weft::get_memory_limit(); }
size_t weft_set_memory_limit(size_t limit) { return weft::set_memory_limit(limit); }
size_t weft_set_cache_limit(size_t limit) { return weft::set_cache_limit(limit); }
void weft_clear_cache(void) { weft::clear_cache(); }
