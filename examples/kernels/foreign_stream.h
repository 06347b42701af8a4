#pragma once
// Memory and a stream of a GPU that are not Weft's, by the CUDA driver alone: what a program has that does its own work
// on the GPU beside Weft's.
#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/array.h"

/// A CUstream, and memory that is used in it.
class ForeignStream {
 public:
  /// Makes the first GPU's context this thread's, as a program does that uses the driver before Weft.
  ForeignStream() {
    call<int(unsigned)>("cuInit", 0u);
    call<int(int*, int)>("cuDeviceGet", &device_, 0);
    void* context = nullptr;
    call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context, device_);
    call<int(void*)>("cuCtxSetCurrent", context);
    call<int(void**, unsigned)>("cuStreamCreate", &stream_, 0u);
  }
  ForeignStream(const ForeignStream&) = delete;
  ForeignStream& operator=(const ForeignStream&) = delete;
  ~ForeignStream() {
    for (const uint64_t p : memory_) function<int(uint64_t)>("cuMemFree_v2")(p);
    function<int(void*)>("cuStreamDestroy_v2")(stream_);
    function<int(int)>("cuDevicePrimaryCtxRelease_v2")(device_);
  }
  /// Returns the CUstream.
  void* handle() const { return stream_; }
  /// Returns memory with the elements of an array of float32.
  void* copy_of(weft::array a) {
    const size_t bytes = static_cast<size_t>(a.size()) * sizeof(float);
    uint64_t at = 0;
    call<int(uint64_t*, size_t)>("cuMemAlloc_v2", &at, bytes);
    memory_.push_back(at);
    call<int(uint64_t, const void*, size_t)>("cuMemcpyHtoD_v2", at, a.data<float>(), bytes);
    return reinterpret_cast<void*>(at);
  }
  /// Waits for the stream, and returns memory as an array of float32.
  weft::array read(const void* at, const weft::Shape& shape) const {
    std::vector<float> out(static_cast<size_t>(weft::num_elements(shape)));
    call<int(void*)>("cuStreamSynchronize", stream_);
    call<int(void*, uint64_t, size_t)>("cuMemcpyDtoH_v2", out.data(), reinterpret_cast<uint64_t>(at),
                                       out.size() * sizeof(float));
    return weft::array(out.data(), shape);
  }

 private:
  template <class F>
  static F* function(const char* name) {
    static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    void* const found = driver ? ::dlsym(driver, name) : nullptr;
    if (!found) throw std::runtime_error(std::string("the CUDA driver lacks ") + name);
    return reinterpret_cast<F*>(found);
  }
  template <class F, class... A>
  static void call(const char* name, A... arguments) {
    if (const int error = function<F>(name)(arguments...); error != 0)
      throw std::runtime_error(std::string(name) + " returned " + std::to_string(error));
  }
  int device_ = 0;
  void* stream_ = nullptr;
  std::vector<uint64_t> memory_;
};
