#include "c/handles.h"

#include <new>
#include <stdexcept>

namespace weft::c {

namespace {

thread_local std::string message;

weft_status note(weft_status status, const char* text) {
  try {
    message = text;
  } catch (...) {  // no memory for the message
    message.clear();
  }
  return status;
}

template <class Handle>
auto& value_of(Handle h, const char* what) {
  if (!h) throw std::invalid_argument(std::string("[weft] ") + what + " is NULL");
  return *h;
}

}  // namespace

weft_status failed() noexcept {
  try {
    throw;
  } catch (const CallbackFailed& e) {
    return note(e.status, message.empty() ? "[weft] a callback failed" : std::string(message).c_str());
  } catch (const std::invalid_argument& e) {
    return note(WEFT_INVALID_ARGUMENT, e.what());
  } catch (const std::out_of_range& e) {
    return note(WEFT_OUT_OF_RANGE, e.what());
  } catch (const std::overflow_error& e) {
    return note(WEFT_OVERFLOW, e.what());
  } catch (const std::bad_alloc&) {
    return note(WEFT_OUT_OF_MEMORY, "[weft] no memory is left");
  } catch (const std::exception& e) {
    return note(WEFT_RUNTIME_ERROR, e.what());
  } catch (...) {
    return note(WEFT_RUNTIME_ERROR, "[weft] an exception of another kind");
  }
}

const array& in(weft_array a) { return value_of(a, "an array").value; }
std::vector<array>& in(weft_arrays list) { return value_of(list, "a list of arrays").values; }
const ArrayFunction& in(weft_function f) { return value_of(f, "a function").value; }
weft_map_handle& in(weft_map map) { return value_of(map, "a map"); }
FunctionExporter& in(weft_exporter exporter) { return value_of(exporter, "an exporter").value; }

Dtype in(weft_dtype dtype) {
  static constexpr Dtype all[] = {bool_,   uint8,     uint16,      uint32,      uint64,    int8,
                                  int16,   int32,     int64,       float16,     bfloat16,  float32,
                                  float64, complex64, float8_e4m3, float8_e5m2, complex128};
  if (dtype < 0 || static_cast<size_t>(dtype) >= std::size(all))
    throw std::invalid_argument("[weft] " + std::to_string(dtype) + " is no dtype");
  return all[dtype];
}

StreamOrDevice in(weft_stream stream) {
  const Device device(stream.device == WEFT_GPU ? Device::gpu : Device::cpu, stream.device_index);
  switch (stream.kind) {
    case 0: return {};
    case 1: return device;
    case 2: return Stream(stream.index, device);
    default: throw std::invalid_argument("[weft] " + std::to_string(stream.kind) + " is no kind of stream");
  }
}

fft::FFTNorm in(weft_fft_norm norm) {
  switch (norm) {
    case WEFT_FFT_BACKWARD: return fft::FFTNorm::Backward;
    case WEFT_FFT_ORTHO: return fft::FFTNorm::Ortho;
    case WEFT_FFT_FORWARD: return fft::FFTNorm::Forward;
  }
  throw std::invalid_argument("[weft] " + std::to_string(norm) + " is no norm of Fourier transforms");
}

std::string in(const char* text) { return value_of(text, "a text") ? std::string(text) : std::string(); }

std::vector<array> list(const weft_array* values, size_t count) {
  std::vector<array> out;
  for (size_t k = 0; k < count; ++k) out.push_back(in(values[k]));
  return out;
}

Shape lengths(const int64_t* values, size_t count) { return Shape(values, values + (values ? count : 0)); }

void out(weft_array* to, array value) {
  weft_array& result = value_of(to, "the result");
  result = new weft_array_handle{std::move(value)};
}
void out(weft_arrays* to, std::vector<array> values) {
  weft_arrays& result = value_of(to, "the result");
  result = new weft_arrays_handle{std::move(values)};
}
void out(weft_function* to, ArrayFunction value) {
  weft_function& result = value_of(to, "the result");
  result = new weft_function_handle{std::move(value)};
}
void out(weft_exporter* to, FunctionExporter value) {
  weft_exporter& result = value_of(to, "the result");
  result = new weft_exporter_handle{std::move(value)};
}
void out(weft_group* to, const distributed::Group& value) {
  weft_group& result = value_of(to, "the result");
  result = new weft_group_handle{value};
}
void out(bool* to, bool value) { value_of(to, "the result") = value; }

}  // namespace weft::c

const char* weft_error_message(void) { return weft::c::message.c_str(); }
