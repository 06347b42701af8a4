#pragma once
#include <memory>
#include <stdexcept>
#include <vector>

#include "weft/device.h"

/// Streams and events. An operation belongs to the stream that was named on it, or to the calling thread's default
/// stream; `eval` and `async_eval` run it there. Values pass between streams by themselves: who reads waits for who
/// writes. Any thread may use any stream.
///
/// Errors of asynchronous work surface at the next wait for the stream (`synchronize`, or an evaluation that runs on
/// it), once, as std::runtime_error with the operation's name. The arrays stay pending.
namespace weft {

/// The calling thread's default for operations that name no stream; stream 0 to begin with.
WEFT_API void set_default_stream(Stream s);
WEFT_API Stream new_stream(Device d);
WEFT_API Stream new_stream();
inline Stream new_thread_unsafe_stream(Device d) {
  return new_stream(d);
}  ///< every stream may be used from any thread
WEFT_API ThreadLocalStream new_thread_local_stream(Device d);
WEFT_API Stream stream_from_thread_local_stream(ThreadLocalStream s);
WEFT_API std::vector<Stream> get_streams();
/// Waits for all streams and ends their threads; a stream that is used again starts anew.
WEFT_API void clear_streams();
WEFT_API Stream to_stream(StreamOrDevice s, Device default_device);

/// Makes a stream the default while it lives.
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

/// A mark in one stream that others, and threads, can wait for. Copies share it; it is signalled once.
class WEFT_API Event {
 public:
  Event();
  void signal();              ///< now
  void signal(Stream s);      ///< when everything issued on the stream so far is done
  void wait() const;          ///< blocks the calling thread
  void wait(Stream s) const;  ///< what is issued on the stream from now on waits
  bool is_signaled() const;

 private:
  std::shared_ptr<void> state_;
};

}  // namespace weft
