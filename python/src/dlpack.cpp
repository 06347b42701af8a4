// DLPack, the exchange format of tensors: https://dmlc.github.io/dlpack/latest/c_api.html
#include "convert.h"

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
constexpr int32_t on_cpu = 1;
constexpr uint64_t copied = 2;  // the flag of a tensor that is a copy
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
    case complex: return d.bits == 64 ? std::optional(complex64) : std::nullopt;
    case boolean: return bool_;
    default: return std::nullopt;
  }
}

DlDtype dl_dtype(Dtype d) {
  const auto bits = static_cast<uint8_t>(8 * d.size());
  if (d == bool_) return {boolean, 8, 1};
  if (d == bfloat16) return {bfloat, 16, 1};
  if (d == complex64) return {complex, 64, 1};
  if (issubdtype(d, weft::floating) && d.size() > 1) return {floating, bits, 1};
  if (issubdtype(d, signedinteger)) return {signed_int, bits, 1};
  if (issubdtype(d, unsignedinteger)) return {unsigned_int, bits, 1};
  throw std::invalid_argument(std::string("[dlpack] DLPack has no dtype ") + dtype_name(d) + "; convert with astype");
}

/// The memory of a tensor: the address of its first element, and how many elements its strides reach.
array whole(const DlTensor& t, Dtype dtype, const std::function<void(void*)>& release) {
  const Shape shape(t.shape, t.shape + t.ndim);
  char* const first = static_cast<char*>(t.data) + t.byte_offset;
  const Strides dense = row_major_strides(shape);
  Strides strides = t.strides ? Strides(t.strides, t.strides + t.ndim) : dense;
  int64_t low = 0, high = 0;
  bool row_major = true;
  for (size_t k = 0; k < shape.size(); ++k) {
    const int64_t reach = strides[k] * (shape[k].bound() - 1);
    (reach < 0 ? low : high) += reach;
    row_major = row_major && (shape[k].bound() == 1 || strides[k] == dense[k]);
  }
  if (row_major || num_elements(shape) == 0) return array(first, shape, dtype, release);
  const array memory(first + low * static_cast<int64_t>(dtype.size()), Shape{high - low + 1}, dtype, release);
  return as_strided(memory, shape, strides, static_cast<size_t>(-low));
}

/// Returns an array of NumPy's complex128 numbers as complex64: their parts are an axis of their own.
array narrowed(DlTensor t, const std::function<void(void*)>& release) {
  std::vector<int64_t> shape(t.shape, t.shape + t.ndim), strides(shape.size());
  for (size_t k = shape.size(), dense = 1; k-- > 0; dense *= static_cast<size_t>(shape[k]))
    strides[k] = 2 * (t.strides ? t.strides[k] : static_cast<int64_t>(dense));
  shape.push_back(2);
  strides.push_back(1);
  t.shape = shape.data(), t.strides = strides.data(), ++t.ndim;
  return squeeze(view(astype(whole(t, float64, release), float32), complex64), -1);
}

/// Makes the array of a capsule's tensor; the capsule's owner is told when the array's memory is no longer used.
template <class Managed>
array consume(nb::handle capsule, const char* name, const char* used) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!m) throw nb::python_error();
  const DlTensor& t = m->tensor;
  const auto dtype = dtype_of(t.dtype);
  const bool wide = t.dtype.code == complex && t.dtype.bits == 128 && t.dtype.lanes == 1;
  if (!dtype && !wide) throw std::invalid_argument("[from_dlpack] a tensor of a dtype that Weft lacks");
  if (t.device.type != on_cpu && t.device.type != 3)  // 3: pinned host memory
    throw std::invalid_argument("[from_dlpack] a tensor in the memory of device type " + std::to_string(t.device.type) +
                                "; copy it to the CPU first");
  PyCapsule_SetName(capsule.ptr(), used);
  const auto release = [m](void*) {
    if (!m->deleter || !Py_IsInitialized()) return;
    nb::gil_scoped_acquire held;
    m->deleter(m);
  };
  return wide ? narrowed(t, release) : whole(t, *dtype, release);
}

/// A tensor that an array's data are lent to.
template <class Managed>
struct Lent {
  Managed managed = {};
  array held;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
nb::object lend(const array& a, uint64_t flags, const char* name) {
  auto* lent = new Lent<Managed>{{}, a, {}, row_major_strides(a.shape())};
  for (const Dim& n : a.shape()) lent->shape.push_back(n.bound());
  DlTensor& t = lent->managed.tensor;
  t = {const_cast<void*>(a.raw_data()),
       {on_cpu, 0},
       static_cast<int32_t>(a.ndim()),
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

}  // namespace

array from_dlpack(nb::handle object, std::optional<bool> copy) {
  if (!nb::hasattr(object, "__dlpack__")) throw nb::type_error("[from_dlpack] the object has no method __dlpack__");
  nb::object capsule;
  try {
    capsule = object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = object.attr("__dlpack__")();  // of before DLPack 1.0
  }
  const array a = PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")
                      ? consume<DlVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned")
                      : consume<DlManaged>(capsule, "dltensor", "used_dltensor");
  if (!copy.value_or(false)) return a;
  return array::from_data(a.raw_data(), a.shape(), a.dtype());
}

nb::object to_dlpack(nb::handle self, nb::handle max_version, nb::handle device, std::optional<bool> copy) {
  if (!device.is_none() && !nb::make_tuple(on_cpu, 0).equal(device))
    throw nb::buffer_error("[dlpack] arrays are lent as the CPU's memory");
  array a = array_of(self);
  {
    nb::gil_scoped_release released;
    a.eval();
  }
  if (copy.value_or(false)) a = array::from_data(a.raw_data(), a.shape(), a.dtype());
  const bool versioned = !max_version.is_none() && nb::cast<int>(nb::object(max_version[0])) >= 1;
  const uint64_t flags = copy.value_or(false) ? copied : 0;
  return versioned ? lend<DlVersioned>(a, flags, "dltensor_versioned") : lend<DlManaged>(a, 0, "dltensor");
}

}  // namespace weft::python
