#include <sstream>

#include "module.h"
#include "weft/memory.h"
#include "weft/stream.h"

namespace weft::python {

namespace {

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

/// Makes a stream the default one between `with` and the end of its block.
class StreamScope {
 public:
  explicit StreamScope(StreamOrDevice s) : stream_(std::move(s)) {
    if (std::holds_alternative<std::monostate>(stream_))
      throw std::invalid_argument("[StreamContext] name a stream or a device");
  }
  void enter() {
    before_.push_back({default_device(), default_stream(default_device())});
    const Stream s = to_stream(stream_);
    set_default_device(s.device);
    set_default_stream(s);
  }
  void exit() {
    const auto [device, stream] = before_.back();
    before_.pop_back();
    set_default_device(device);
    set_default_stream(stream);
  }

 private:
  StreamOrDevice stream_;
  std::vector<std::pair<Device, Stream>> before_;
};

Device device_of(const StreamOrDevice& s) {
  if (std::holds_alternative<std::monostate>(s)) return default_device();
  if (const auto* d = std::get_if<Device>(&s)) return *d;
  if (const auto* t = std::get_if<Device::DeviceType>(&s)) return *t;
  throw nb::type_error("[device] give a device or a kind of device");
}

void define_classes(nb::module_& m) {
  nb::enum_<Device::DeviceType>(m, "DeviceType", "The kinds of devices.")
      .value("cpu", Device::cpu)
      .value("gpu", Device::gpu)
      .export_values();
  nb::class_<Device>(m, "Device", "A device: the CPU, or a GPU by its index.")
      .def(nb::init<Device::DeviceType, int>(), nb::arg("type"), nb::arg("index") = 0)
      .def_ro("type", &Device::type, "cpu or gpu.")
      .def("__repr__", printed<Device>)
      .def("__hash__", [](const Device& d) { return 2 * d.index + (d.type == Device::gpu); })
      .def(
          "__eq__",
          [](const Device& d, nb::handle other) {
            if (nb::isinstance<Device>(other)) return *nb::inst_ptr<Device>(other) == d;
            return nb::isinstance<Device::DeviceType>(other) && d == Device(nb::cast<Device::DeviceType>(other));
          },
          nb::arg("other").none());
  nb::class_<Stream>(m, "Stream", "Operations that run one after the other.")
      .def_ro("device", &Stream::device, "The device that runs them.")
      .def("__repr__", printed<Stream>)
      .def("__hash__", [](const Stream& s) { return s.index; })
      .def(
          "__eq__",
          [](const Stream& s, nb::handle other) {
            return nb::isinstance<Stream>(other) && *nb::inst_ptr<Stream>(other) == s;
          },
          nb::arg("other").none());
  nb::class_<ThreadLocalStream>(m, "ThreadLocalStream", "A name under which each thread has a stream of its own.")
      .def_ro("device", &ThreadLocalStream::device, "The device of the streams.")
      .def("__repr__",
           [](const ThreadLocalStream& s) {
             return "ThreadLocalStream(" + printed(s.device) + ", " + std::to_string(s.index) + ")";
           })
      .def("__hash__", [](const ThreadLocalStream& s) { return s.index; })
      .def(
          "__eq__",
          [](const ThreadLocalStream& s, nb::handle other) {
            return nb::isinstance<ThreadLocalStream>(other) && *nb::inst_ptr<ThreadLocalStream>(other) == s;
          },
          nb::arg("other").none());
  nb::class_<StreamScope>(m, "StreamContext", "Makes a stream or device the default one inside a `with` block.")
      .def(nb::init<StreamOrDevice>(), nb::arg("s"))
      .def("__enter__", &StreamScope::enter)
      .def("__exit__", [](StreamScope& s, const nb::args&) { s.exit(); });
}

void define_streams(nb::module_& m) {
  const auto on_device = [&](const char* name, auto function, const char* doc) {
    m.def(
        name, [function](const StreamOrDevice& device) { return function(device_of(device)); }, nb::arg("device"),
        nb::sig((std::string("def ") + name + "(device: Device | DeviceType) -> " +
                 (std::string(name) == "new_thread_local_stream" ? "ThreadLocalStream" : "Stream"))
                    .c_str()),
        doc);
  };
  on_device(
      "default_stream", [](Device d) { return default_stream(d); },
      "Returns the calling thread's default stream on a device.");
  on_device(
      "new_stream", [](Device d) { return new_stream(d); }, "Makes a stream on a device.");
  on_device(
      "new_thread_unsafe_stream", [](Device d) { return new_stream(d); },
      "Makes a stream: every stream may be used from any thread.");
  on_device(
      "new_thread_local_stream", [](Device d) { return new_thread_local_stream(d); },
      "Makes a name under which each thread has a stream of its own.");
  m.def("set_default_stream", &set_default_stream, nb::arg("stream"), "Sets the calling thread's default stream.");
  m.def(
      "stream", [](StreamOrDevice s) { return StreamScope(std::move(s)); }, nb::arg("s"),
      "Returns a context in which a stream or device is the default one.");
  m.def("clear_streams", &clear_streams, nb::call_guard<nb::gil_scoped_release>(),
        "Waits for all streams and ends their threads.");
  m.def(
      "synchronize",
      [](const StreamOrDevice& s) {
        nb::gil_scoped_release released;
        synchronize(to_stream(s));
      },
      nb::arg("stream") = nb::none(), "Waits until everything issued on the stream is done.");
}

void define_memory(nb::module_& m) {
  m.def("get_active_memory", &get_active_memory, "Returns the bytes that arrays use now.");
  m.def("get_peak_memory", &get_peak_memory, "Returns the most bytes that arrays used at once.");
  m.def("reset_peak_memory", &reset_peak_memory, "Sets the peak to what is used now.");
  m.def("get_cache_memory", &get_cache_memory, "Returns the bytes that are kept for new arrays.");
  m.def("get_memory_limit", &get_memory_limit, "Returns the limit of set_memory_limit.");
  m.def("set_memory_limit", &set_memory_limit, nb::arg("limit"), "Sets the most bytes to use; returns the old limit.");
  m.def("set_cache_limit", &set_cache_limit, nb::arg("limit"), "Sets the most bytes to keep; returns the old limit.");
  m.def("set_wired_limit", &set_wired_limit, nb::arg("limit"), "Sets the most pinned bytes; returns the old limit.");
  m.def("clear_cache", &clear_cache, "Gives back what is kept for new arrays.");
}

nb::dict info_of(const Device& d) {
  nb::dict out;
  for (const auto& [name, value] : device_info(d))
    std::visit([&, key = name.c_str()](const auto& v) { out[key] = v; }, value);
  return out;
}

}  // namespace

void define_devices(nb::module_& m) {
  define_classes(m);
  define_streams(m);
  define_memory(m);
  m.def(
      "default_device", [] { return default_device(); }, "Returns the device of operations that name none.");
  m.def(
      "set_default_device", [](const StreamOrDevice& d) { set_default_device(device_of(d)); }, nb::arg("device"),
      nb::sig("def set_default_device(device: Device | DeviceType) -> None"), "Sets the default device.");
  m.def(
      "is_available", [](const StreamOrDevice& d) { return is_available(device_of(d)); }, nb::arg("device"),
      nb::sig("def is_available(device: Device | DeviceType) -> bool"), "Returns whether this machine has the device.");
  m.def("device_count", &device_count, nb::arg("device_type"), "Returns the number of devices of a kind.");
  m.def(
      "device_info", [](const StreamOrDevice& d) { return info_of(device_of(d)); }, nb::arg("d") = nb::none(),
      nb::sig("def device_info(d: Device | DeviceType | None = None) -> dict[str, str | int]"),
      "Returns the properties of a device, by default of the default one.");

  nb::module_ cuda = m.def_submodule("cuda", "NVIDIA's GPUs.");
  cuda.def(
      "is_available", [] { return is_available(Device::gpu); }, "Returns whether there is a GPU with its driver.");
  define_cuda_streams(cuda);
  nb::module_ metal = m.def_submodule("metal", "Apple's GPUs, which Weft does not use; for programs that ask.");
  metal.def(
      "is_available", [] { return false; }, "Returns False.");
  define_memory(metal);
  metal.def(
      "device_info", [] { return info_of(default_device()); }, "Returns the default device's properties.");
}

}  // namespace weft::python
