// Streams of other libraries in Python: Weft's work in their order.
#include "streams.h"

#include "module.h"

namespace weft::python {

void* stream_handle(nb::handle stream) {
  int64_t number = 0;
  const auto at = [](int64_t n) { return reinterpret_cast<void*>(static_cast<intptr_t>(n)); };
  if (read_int(stream, number)) return at(number);
  if (nb::hasattr(stream, "__cuda_stream__")) {
    const nb::object pair = stream.attr("__cuda_stream__")();
    return at(nb::cast<int64_t>(nb::object(pair[1])));
  }
  for (const char* name : {"cuda_stream", "ptr"})
    if (nb::hasattr(stream, name)) return at(nb::cast<int64_t>(nb::object(stream.attr(name))));
  throw nb::type_error(("[cuda.stream] " + nb::cast<std::string>(nb::repr(stream)) +
                        " is no stream: give an int (a cudaStream_t), or a stream of PyTorch or CuPy")
                           .c_str());
}

namespace {

/// Returns the index of a stream's device, where it says one.
int device_index(nb::handle stream, std::optional<int> given) {
  if (given) return *given;
  if (!nb::hasattr(stream, "device")) return 0;
  const nb::object device = stream.attr("device");
  for (const char* name : {"index", "id"})
    if (nb::hasattr(device, name)) return nb::cast<int>(nb::object(device.attr(name)));
  return 0;
}

/// A stream of another library as a context.
class StreamOfOthers {
 public:
  StreamOfOthers(nb::handle stream, std::optional<int> device)
      : stream_{{Device::gpu, device_index(stream, device)}, stream_handle(stream)} {}
  void enter() {
    nb::gil_scoped_release released;
    open_.push_back(std::make_shared<RawStreamContext>(stream_));
  }
  void exit() {
    nb::gil_scoped_release released;
    const std::shared_ptr<RawStreamContext> context = std::move(open_.back());
    open_.pop_back();
    context->close();
  }

 private:
  RawStream stream_;
  std::vector<std::shared_ptr<RawStreamContext>> open_;
};

}  // namespace

void define_cuda_streams(nb::module_& cuda) {
  nb::class_<StreamOfOthers>(cuda, "StreamContext", "A stream of another library, in whose order Weft works.")
      .def("__enter__", &StreamOfOthers::enter, nb::sig("def __enter__(self) -> None"))
      .def(
          "__exit__", [](StreamOfOthers& s, const nb::args&) { s.exit(); }, nb::arg("args"),
          nb::sig("def __exit__(self, *args: object) -> None"));
  cuda.def(
      "stream", [](nb::handle stream, std::optional<int> device) { return StreamOfOthers(stream, device); },
      nb::arg("stream"), nb::arg("device") = nb::none(),
      nb::sig("def stream(stream: Any, device: int | None = None) -> StreamContext"),
      "Returns a context in which Weft works in the order of another library's stream: an int (a cudaStream_t), or a "
      "stream of PyTorch (torch.cuda.current_stream()) or CuPy, on the GPU `device`, if none is given the stream's. "
      "What Weft begins in the block waits for what the stream holds before it; what follows in the stream behind the "
      "block waits for Weft. Operations run on that GPU. The host waits for nothing.");
}

}  // namespace weft::python
