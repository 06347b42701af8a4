#pragma once
#include <memory>
#include <stdexcept>
#include <vector>

#include "weft/device.h"

/// Streams and events. An operation belongs to the stream that its argument `s` names (StreamOrDevice in
/// weft/device.h), or to the calling thread's default stream; `eval` and `async_eval` run it there. Values pass between
/// streams by themselves: a reader waits for the writer. Any thread may use any stream.
///
/// Errors of asynchronous work are thrown by the next wait for the stream (`synchronize`, or an evaluation that runs on
/// it), once, as std::runtime_error with the operation's name. The arrays stay pending.
namespace weft {

/// Sets the calling thread's default stream, for operations that name none; stream 0 to begin with.
WEFT_API void set_default_stream(Stream s);
/// Makes a stream on a device (the default device). Streams live as long as the process. Throws std::invalid_argument
/// where there is no such device.
WEFT_API Stream new_stream(Device d);
WEFT_API Stream new_stream();
/// Makes a stream, as new_stream: every stream may be used from any thread.
inline Stream new_thread_unsafe_stream(Device d) {
  return new_stream(d);
}  ///< every stream may be used from any thread
/// Makes a name under which each thread has a stream of its own.
WEFT_API ThreadLocalStream new_thread_local_stream(Device d);
/// Returns the calling thread's stream of this name; makes it where it is asked for first.
WEFT_API Stream stream_from_thread_local_stream(ThreadLocalStream s);
/// Returns all streams of the process.
WEFT_API std::vector<Stream> get_streams();
/// Waits for all streams and ends their threads; a stream that is used again starts anew.
WEFT_API void clear_streams();
/// Returns the stream that `s` names; `{}` is the default stream of `default_device`. Throws std::invalid_argument
/// where the device or the stream does not exist.
WEFT_API Stream to_stream(StreamOrDevice s, Device default_device);

/// Makes a stream the calling thread's default while it lives. Throws std::runtime_error where no stream or device is
/// named.
struct StreamContext {
  explicit StreamContext(StreamOrDevice s) : before_(default_stream(default_device())) {
    if (std::holds_alternative<std::monostate>(s))
      throw std::runtime_error("[StreamContext] name a stream or a device");
    set_default_stream(to_stream(s));
  }
  ~StreamContext() { set_default_stream(before_); }
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;

 private:
  Stream before_;
};

/// A mark in one stream that other streams and threads can wait for. Copies share it; it is signalled once.
class WEFT_API Event {
 public:
  Event();
  /// Signals the event now.
  void signal();
  /// Signals the event when everything that was issued on the stream so far is done.
  void signal(Stream s);
  /// Blocks the calling thread until the event is signalled.
  void wait() const;
  /// Makes what is issued on the stream from now on wait for the event.
  void wait(Stream s) const;
  /// Returns whether the event was signalled.
  bool is_signaled() const;

 private:
  std::shared_ptr<void> state_;
};

}  // namespace weft
