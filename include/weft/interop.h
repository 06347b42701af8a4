#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weft/array.h"
#include "weft/device.h"
#include "weft/dtype.h"
#include "weft/shape.h"

/// Memory and streams that arrays share with other libraries (LibTorch, CuPy, a program's own CUDA code), without
/// copies and without waits of the host: a stream waits for another one by an event. In this example `owner` keeps
/// memory alive that is written in `stream`; of a tensor t of LibTorch they are t itself and {Device::gpu,
/// c10::cuda::getCurrentCUDAStream().stream()}.
///
///     const RawStream stream{Device::cpu, nullptr};
///     array x = borrow({.data = owner->data(), .shape = {64, 8}, .stream = stream, .release = [owner] {}});
///     const LentArray y = lend(exp(x), stream);  // what follows in the stream may read y.data()
namespace weft {

/// A stream of the caller's: a CUstream (or cudaStream_t) of a GPU's primary context, null for its default stream. The
/// CPU has none, and work there is done at once.
struct RawStream {
  /// The device of the stream and of all memory that is named with it.
  Device device = Device::cpu;
  /// The stream.
  void* handle = nullptr;
};

/// Memory of the caller's of which an array is made.
struct BorrowedMemory {
  /// Its first element, in the memory of the stream's device.
  void* data = nullptr;
  /// The lengths of all axes.
  Shape shape = {};
  /// The type of the elements.
  Dtype dtype = float32;
  /// Elements between neighbours along each axis, which may be 0 or negative; empty: row-major.
  std::vector<int64_t> strides = {};
  /// The stream whose work so far writes the elements. It lives until `release` is called.
  RawStream stream = {};
  /// Is called once, on any thread, when the array's memory is no longer used: what follows in `stream` waits for
  /// Weft's work on it. None: the memory lives as long as the process.
  std::function<void()> release = {};
};

/// Makes an array of the caller's memory. Nothing is copied, and the host does not wait; on the CPU memory that is not
/// aligned for the dtype is copied. The array is a value: nobody writes the memory while it exists, and neither does
/// Weft, which gives new values memory of their own. Throws std::invalid_argument, without calling `release`, where
/// there is no such device, a length is negative or dynamic, strides do not fit the shape, or memory of a GPU is not
/// aligned for the dtype; std::runtime_error where the stream is being captured into a graph.
WEFT_API array borrow(BorrowedMemory memory);

/// The elements of an array, for code that is not Weft's. They stay where they are while a copy of this lives; memory
/// of a GPU is then used again by Weft after what the stream holds by that time.
class WEFT_API LentArray {
 public:
  struct State;
  explicit LentArray(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  /// Returns the address of the first element, in the memory of the device. The elements are not to be changed.
  const void* data() const;
  /// Returns the lengths of all axes.
  const Shape& shape() const;
  /// Returns the elements between neighbours along each axis, which are positive where the axis has several.
  const Strides& strides() const;
  /// Returns the type of the elements.
  Dtype dtype() const;
  /// Returns the device.
  Device device() const;

 private:
  std::shared_ptr<const State> state_;
};

/// Lends an array to a stream, in the memory of its device: what follows in the stream waits for Weft's work on it. The
/// array is computed if it is pending, and copied to the device if it lies elsewhere. On the CPU it is row-major and
/// ready; on a GPU the host waits for nothing but data from other devices. Throws what the computation throws,
/// std::invalid_argument where there is no such device, std::runtime_error where the stream is being captured.
WEFT_API LentArray lend(const array& a, const RawStream& stream);
/// Lends an array to nobody's stream: the caller orders its work with Weft's, by `synchronize` or streams of its own.
WEFT_API LentArray lend(const array& a, Device device);

/// Returns an array of a copy of the elements, in memory of its own on a device. Throws as lend does.
WEFT_API array duplicate(const array& a, Device device);

/// Returns the device in whose memory an array lies: of one that is pending the device that computes it.
WEFT_API Device device_of(const array& a);

/// Makes Weft's work follow a stream while it lives, and be followed by it: Weft's work from now on waits for what the
/// stream holds now, and what follows in the stream, once this ends, waits for the work that Weft has begun
/// (async_eval, eval, compiled functions, lend). Operations that name no device run on the stream's. Contexts nest; one
/// belongs to the thread that makes it. Throws std::invalid_argument where there is no such device, std::runtime_error
/// where the stream is being captured into a graph.
class WEFT_API RawStreamContext {
 public:
  explicit RawStreamContext(const RawStream& stream);
  ~RawStreamContext();
  RawStreamContext(const RawStreamContext&) = delete;
  RawStreamContext& operator=(const RawStreamContext&) = delete;
  /// Ends it before its destructor does, which throws nothing. Throws the first error of work that was begun, and
  /// std::runtime_error where the stream is being captured.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the stream that others order their work with, so that arrays borrow it: that of the thread's innermost
/// RawStreamContext on the device; else one of Weft's that nothing runs in, behind which `borrow` orders Weft's work.
/// Memory that is borrowed with Weft's own is released when Weft's work on it is done. Throws std::invalid_argument
/// where there is no such device.
WEFT_API RawStream borrowing_stream(Device device);

}  // namespace weft
