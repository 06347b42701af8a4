// DLPack, the exchange format of tensors: https://dmlc.github.io/dlpack/latest/c_api.html
#include <utility>

#include "streams.h"
#include "weft/ops.h"

namespace weft::python {

namespace {

// The structures of DLPack's C interface, versions 0 and 1.
struct DlDevice {
  int32_t type, index;
};
struct DlDtype {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDtype dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
/// What a library offers other programs in C: its class has it in `__dlpack_c_exchange_api__`.
struct DlExchange {
  uint32_t major, minor;
  void* older;
  int (*allocate)(DlTensor*, DlVersioned**, void*, void (*)(void*, const char*, const char*));
  int (*take)(void* object, DlVersioned** tensor);
  int (*make)(DlVersioned* tensor, void** object);
  int (*look)(void* object, DlTensor* tensor);  // may be null; the tensor is the object's
  int (*stream)(int32_t device_type, int32_t device_index, void** stream);
};
constexpr int32_t on_cpu = 1, on_cuda = 2, on_cuda_host = 3, on_cuda_managed = 13;  // types of devices
constexpr uint64_t read_only_flag = 1, copied = 2;  // of a tensor that is not to be written, of one that is a copy
enum Code : uint8_t { signed_int, unsigned_int, floating, handle, bfloat, complex, boolean };

std::optional<Dtype> dtype_of(DlDtype d) {
  if (d.lanes != 1) return std::nullopt;
  const auto sized = [&](Dtype a, Dtype b, Dtype c, Dtype e) -> std::optional<Dtype> {
    return d.bits == 8 ? a : d.bits == 16 ? b : d.bits == 32 ? c : e;
  };
  switch (d.code) {
    case signed_int: return sized(int8, int16, int32, int64);
    case unsigned_int: return sized(uint8, uint16, uint32, uint64);
    case floating: return d.bits == 8 ? std::nullopt : sized(float16, float16, float32, float64);
    case bfloat: return bfloat16;
    case complex:
      return d.bits == 64 ? std::optional(complex64) : d.bits == 128 ? std::optional(complex128) : std::nullopt;
    case boolean: return bool_;
    default: return std::nullopt;
  }
}

DlDtype dl_dtype(Dtype d) {
  const auto bits = static_cast<uint8_t>(8 * d.size());
  if (d == bool_) return {boolean, 8, 1};
  if (d == bfloat16) return {bfloat, 16, 1};
  if (issubdtype(d, complexfloating)) return {complex, bits, 1};
  if (issubdtype(d, weft::floating) && d.size() > 1) return {floating, bits, 1};
  if (issubdtype(d, signedinteger)) return {signed_int, bits, 1};
  if (issubdtype(d, unsignedinteger)) return {unsigned_int, bits, 1};
  throw std::invalid_argument(std::string("[dlpack] DLPack has no dtype ") + dtype_name(d) + "; convert with astype");
}

/// Returns a dtype as DLPack says it; throws for one that Weft lacks.
Dtype known_dtype(DlDtype d) {
  const auto dtype = dtype_of(d);
  if (!dtype) throw std::invalid_argument("[from_dlpack] a tensor of a dtype that Weft lacks");
  return *dtype;
}

bool is_gpu(int type) { return type == on_cuda || type == on_cuda_managed; }

Device device_of_dl(int type, int index) {
  if (type == on_cpu || type == on_cuda_host) return Device::cpu;
  if (is_gpu(type)) return {Device::gpu, index};
  throw std::invalid_argument("[from_dlpack] a tensor in the memory of device type " + std::to_string(type) +
                              "; copy it to the CPU first");
}

std::vector<int64_t> strides_of(const DlTensor& t) {
  if (t.strides) return {t.strides, t.strides + t.ndim};
  return row_major_strides(Shape(t.shape, t.shape + t.ndim));
}

/// The memory of a tensor, which others have written by what the stream holds.
BorrowedMemory memory_of(const DlTensor& t, Dtype dtype, const RawStream& stream, std::function<void()> release) {
  return {static_cast<char*>(t.data) + t.byte_offset,
          Shape(t.shape, t.shape + t.ndim),
          dtype,
          strides_of(t),
          stream,
          std::move(release)};
}

array borrowed(BorrowedMemory memory) {
  nb::gil_scoped_release released;
  return borrow(std::move(memory));
}

/// Tells a tensor's owner that it is no longer used. A thread without the interpreter's lock does not wait for it: it
/// may hold a lock for which a thread with the interpreter's waits.
template <class Managed>
void let_go(Managed* m) {
  if (!m->deleter || !Py_IsInitialized()) return;
  if (PyGILState_Check()) return m->deleter(m);
  const auto later = [](void* tensor) {
    static_cast<Managed*>(tensor)->deleter(static_cast<Managed*>(tensor));
    return 0;
  };
  if (Py_AddPendingCall(later, m) == 0) return;
  nb::gil_scoped_acquire held;
  m->deleter(m);
}

/// Makes the array of a capsule's tensor; the capsule's owner is told when the array's memory is no longer used.
template <class Managed>
array consume(nb::handle capsule, const char* name, const char* used, RawStream stream) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!m) throw nb::python_error();
  const DlTensor& t = m->tensor;
  const Dtype dtype = known_dtype(t.dtype);
  const Device device = device_of_dl(t.device.type, t.device.index);
  if (device != stream.device) stream = {device, nullptr};
  PyCapsule_SetName(capsule.ptr(), used);
  const auto owner = std::make_shared<Managed*>(m);
  const auto release = [owner] {
    if (Managed* const tensor = std::exchange(*owner, nullptr)) let_go(tensor);
  };
  try {
    return borrowed(memory_of(t, dtype, stream, release));
  } catch (...) {  // whose memory was not taken
    release();
    throw;
  }
}

/// A tensor that an array's data are lent to.
template <class Managed>
struct Lent {
  Managed managed = {};
  LentArray held;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
nb::object lend_tensor(const LentArray& a, uint64_t flags, const char* name) {
  auto* lent = new Lent<Managed>{{}, a, {}, std::vector<int64_t>(a.strides().begin(), a.strides().end())};
  for (const Dim& n : a.shape()) lent->shape.push_back(n.bound());
  const bool gpu = a.device().type == Device::gpu;
  DlTensor& t = lent->managed.tensor;
  t = {const_cast<void*>(a.data()),
       {gpu ? on_cuda : on_cpu, a.device().index},
       static_cast<int32_t>(lent->shape.size()),
       dl_dtype(a.dtype()),
       lent->shape.data(),
       lent->strides.data(),
       0};
  lent->managed.context = lent;
  lent->managed.deleter = [](Managed* m) { delete static_cast<Lent<Managed>*>(m->context); };
  if constexpr (std::is_same_v<Managed, DlVersioned>) lent->managed.major = 1, lent->managed.flags = flags;
  return nb::steal(PyCapsule_New(&lent->managed, name, [](PyObject* capsule) {
    for (const char* unused : {"dltensor", "dltensor_versioned"}) {
      if (!PyCapsule_IsValid(capsule, unused)) continue;
      auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, unused));
      m->deleter(m);
    }
  }));
}

int64_t int_of(nb::handle number) { return nb::cast<int64_t>(nb::object(nb::int_(number))); }

/// Returns the type and the index of the device of an object with `__dlpack__`.
std::pair<int, int> dl_device_of(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__")) throw nb::type_error("[from_dlpack] the object has no method __dlpack__");
  if (!nb::hasattr(object, "__dlpack_device__")) return {on_cpu, 0};
  const nb::object pair = object.attr("__dlpack_device__")();
  return {static_cast<int>(int_of(nb::object(pair[0]))), static_cast<int>(int_of(nb::object(pair[1])))};
}

/// Asks for a capsule. The owner of a GPU's tensor makes the stream wait for its data; -1: it makes nobody wait.
nb::object capsule_of(nb::handle object, std::optional<int64_t> stream) {
  nb::dict options;
  if (stream) options["stream"] = *stream;
  try {
    nb::dict versioned;
    versioned.update(options);
    versioned["max_version"] = nb::make_tuple(1, 0);
    return object.attr("__dlpack__")(**versioned);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    return object.attr("__dlpack__")(**options);  // of before DLPack 1.0
  }
}

/// Returns a stream as the protocol names it: it has no 0, and the default stream is 1.
int64_t stream_number(void* handle) { return handle ? static_cast<int64_t>(reinterpret_cast<intptr_t>(handle)) : 1; }

/// Returns the stream that a consumer names; nothing where it wants no order.
std::optional<RawStream> consumer_stream(Device device, nb::handle stream) {
  if (stream.is_none()) return RawStream{device, nullptr};
  const int64_t number = int_of(stream);
  if (number == 0)
    throw std::invalid_argument("[dlpack] the stream 0 is ambiguous: 1 is the default stream, 2 that of each thread");
  if (number < -1) throw std::invalid_argument("[dlpack] there is no stream " + std::to_string(number));
  if (number == -1) return std::nullopt;
  return RawStream{device, reinterpret_cast<void*>(static_cast<intptr_t>(number))};
}

Device device_asked_for(nb::handle device) {
  const auto type = int_of(nb::object(device[0])), index = int_of(nb::object(device[1]));
  const bool known = type == on_cpu ? index == 0 : type == on_cuda && is_available({Device::gpu, int(index)});
  if (!known)
    throw nb::buffer_error(("[dlpack] there is no device (" + std::to_string(type) + ", " + std::to_string(index) +
                            ") here: arrays are lent in the memory of the CPU, (1, 0), or of a GPU, (2, index)")
                               .c_str());
  return type == on_cpu ? Device(Device::cpu) : Device(Device::gpu, static_cast<int>(index));
}

nb::object to_dlpack(nb::handle self, nb::handle stream, nb::handle max_version, nb::handle device,
                     std::optional<bool> copy) {
  array a = array_of(self);
  dl_dtype(a.dtype());  // refuses what DLPack lacks
  const Device own = device_of(a), target = device.is_none() ? own : device_asked_for(device);
  if (target != own && copy == false)
    throw nb::buffer_error("[dlpack] the array lies on another device, and copy is False");
  const auto order = target.type == Device::gpu ? consumer_stream(target, stream) : std::nullopt;
  const bool versioned = !max_version.is_none() && int_of(nb::object(max_version[0])) >= 1;
  const uint64_t flags = copy.value_or(false) ? copied : 0;
  const LentArray lent = [&] {
    nb::gil_scoped_release released;
    if (copy.value_or(false)) a = duplicate(a, target);
    return order ? lend(a, *order) : lend(a, target);
  }();
  return versioned ? lend_tensor<DlVersioned>(lent, flags, "dltensor_versioned")
                   : lend_tensor<DlManaged>(lent, 0, "dltensor");
}

}  // namespace

array from_dlpack(nb::handle object, std::optional<bool> copy) {
  const auto [type, index] = dl_device_of(object);
  RawStream stream;
  if (is_gpu(type)) {
    nb::gil_scoped_release released;
    stream = borrowing_stream({Device::gpu, index});
  }
  const nb::object capsule =
      capsule_of(object, is_gpu(type) ? std::optional(stream_number(stream.handle)) : std::nullopt);
  const array a = PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")
                      ? consume<DlVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned", stream)
                      : consume<DlManaged>(capsule, "dltensor", "used_dltensor", stream);
  if (!copy.value_or(false)) return a;
  nb::gil_scoped_release released;
  return duplicate(a, device_of(a));
}

namespace {

/// Returns the C functions of an object's class; null where it has none that are known.
const DlExchange* exchange_of(nb::handle object) {
  constexpr const char* attribute = "__dlpack_c_exchange_api__";
  const nb::handle type = object.type();
  if (!nb::hasattr(type, attribute)) return nullptr;
  const nb::object capsule = type.attr(attribute);
  const auto* const found = static_cast<const DlExchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (!found) PyErr_Clear();
  return found && found->major == 1 && found->look ? found : nullptr;
}

}  // namespace

RawTensor::RawTensor(nb::handle object) {
  if (const DlExchange* const exchange = exchange_of(object)) {
    DlTensor t = {};
    if (exchange->look(object.ptr(), &t) != 0) throw nb::python_error();
    void* current = nullptr;
    if (is_gpu(t.device.type)) {
      if (exchange->stream(t.device.type, t.device.index, &current) != 0) throw nb::python_error();
      stream = current;
    }
    take(&t);
    return;
  }
  const auto [type, index] = dl_device_of(object);
  capsule_ = capsule_of(object, is_gpu(type) ? std::optional<int64_t>(-1) : std::nullopt);
  const bool versioned = PyCapsule_IsValid(capsule_.ptr(), "dltensor_versioned");
  void* const managed = PyCapsule_GetPointer(capsule_.ptr(), versioned ? "dltensor_versioned" : "dltensor");
  if (!managed) throw nb::python_error();
  read_only = versioned && (static_cast<DlVersioned*>(managed)->flags & read_only_flag) != 0;
  take(versioned ? &static_cast<DlVersioned*>(managed)->tensor : &static_cast<DlManaged*>(managed)->tensor);
}

void RawTensor::take(const void* tensor) {
  const auto& t = *static_cast<const DlTensor*>(tensor);
  device = device_of_dl(t.device.type, t.device.index);
  data = static_cast<char*>(t.data) + t.byte_offset;
  dtype = known_dtype(t.dtype);
  shape = Shape(t.shape, t.shape + t.ndim);
  strides = strides_of(t);
}

void define_dlpack(nb::class_<array>& c) {
  c.def("__dlpack__", to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
        nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
        "Returns a capsule with the array's elements, in the memory of the device where they lie. What follows in "
        "`stream`, of a GPU, waits for them; the host does not.");
  c.def("__dlpack_device__", [](const array& a) {
    const Device device = device_of(a);
    return nb::make_tuple(device.type == Device::gpu ? on_cuda : on_cpu, device.index);
  });
}

}  // namespace weft::python
