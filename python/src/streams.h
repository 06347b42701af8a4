#pragma once
#include "convert.h"
#include "weft/interop.h"

namespace weft::python {

/// Returns the stream that a Python object stands for: an int (a cudaStream_t), or a stream of PyTorch, CuPy or another
/// library (`__cuda_stream__`, `cuda_stream`, `ptr`). Throws TypeError for others.
void* stream_handle(nb::handle stream);

/// A tensor of another library as memory, for as long as this lives; nobody is made to wait for its data.
class RawTensor {
 public:
  /// Takes an object with `__dlpack__`. Throws TypeError for others, std::invalid_argument for a dtype that Weft lacks
  /// and for devices that are neither the CPU nor a GPU of CUDA.
  explicit RawTensor(nb::handle object);
  void* data = nullptr;
  Device device = Device::cpu;
  Dtype dtype = float32;
  Shape shape;
  std::vector<int64_t> strides;
  /// Whether its library says that it is not to be written.
  bool read_only = false;
  /// The stream of a GPU in which its library works now, where the library says so.
  std::optional<void*> stream;

 private:
  void take(const void* tensor);
  nb::object capsule_;
};

}  // namespace weft::python
