// weft::array: handles, construction from numbers and memory, access to values.
#include "weft/array.h"

#include <atomic>
#include <cstdlib>

#include "array/handle.h"
#include "array/host.h"
#include "array/realise.h"
#include "base/error.h"
#include "graph/build.h"
#include "runtime/threads.h"

namespace weft {
namespace {

graph::Value literal(Number value, Dtype from, Dtype dtype) {
  if (is_complex(dtype)) return graph::cast(literal(value, from, real_of(dtype)), dtype);
  return graph::literal(dtype, kernel::reference_cast(value, from, dtype));
}

void require_sizes(const Shape& shape) {
  for (const Dim& d : shape)
    if (!d.is_static() || d.bound() < 0)
      throw_invalid("array",
                    "an array of data needs sizes that are numbers and not negative, got shape " + to_string(shape));
}

/// Converts element `index` of host memory to another dtype.
void convert_element(const void* from, Dtype source, void* to, Dtype dtype, int64_t index) {
  const Dtype from_part = real_of(source), part = real_of(dtype);
  const auto converted = [&](int64_t at) {
    return kernel::reference_cast(detail::load_element(from, from_part, at), from_part, part);
  };
  if (is_complex(dtype)) {
    detail::store_element(to, part, 2 * index, converted(is_complex(source) ? 2 * index : index));
    const Number imaginary = is_complex(source) ? converted(2 * index + 1) : Number::of_real(0);
    return detail::store_element(to, part, 2 * index + 1, imaginary);
  }
  if (!is_complex(source)) return detail::store_element(to, dtype, index, converted(index));
  const bool set = dtype == bool_ && converted(2 * index + 1).i != 0;
  detail::store_element(to, dtype, index, set ? Number::of_int(1) : converted(2 * index));
}

std::shared_ptr<graph::Value> handle(graph::Value value) { return std::make_shared<graph::Value>(std::move(value)); }

template <class T>
constexpr bool host_type(Dtype t) {
  if constexpr (std::is_same_v<T, double>) return t == float64;
  else return t == Dtype(TypeToDtype<T>());
}

template <class T>
T convert(Number v, Dtype from) {
  if constexpr (std::is_same_v<T, float16_t> || std::is_same_v<T, bfloat16_t>) {
    return T(static_cast<float>(from == uint64 ? static_cast<double>(static_cast<uint64_t>(v.i)) : v.real()));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(from == uint64 ? static_cast<double>(static_cast<uint64_t>(v.i)) : v.real());
  } else {
    return static_cast<T>(kernel::reference_cast(v, from, TypeToDtype<T>()).i);
  }
}

}  // namespace

array::array(number_tag, bool value, Dtype dtype) : value_(handle(literal(Number::of_int(value), bool_, dtype))) {}
array::array(number_tag, int64_t value, Dtype dtype) : value_(handle(literal(Number::of_int(value), int64, dtype))) {}
array::array(number_tag, uint64_t value, Dtype dtype)
    : value_(handle(literal(Number::of_int(static_cast<int64_t>(value)), uint64, dtype))) {}
array::array(number_tag, double value, Dtype dtype) : value_(handle(literal(Number::of_real(value), float64, dtype))) {}
array::array(number_tag, std::complex<double> value, Dtype dtype) : array(converted(&value, complex128, {}, dtype)) {}

array::array(void* data, Shape shape, Dtype dtype, const std::function<void(void*)>& deleter) : array(0.0f) {
  require_sizes(shape);
  const graph::Type type{std::move(shape), dtype};
  const size_t bytes = static_cast<size_t>(num_elements(type.shape)) * dtype.size();
  if (reinterpret_cast<uintptr_t>(data) % real_of(dtype).size() == 0 && bytes > 0) {
    *this = array(
        graph::data(type, {std::make_shared<runtime::Buffer>(data, bytes, deleter), 0, row_major_strides(type.shape)}));
  } else {
    *this = from_data(data, type.shape, dtype);
    if (deleter) deleter(data);
  }
}

array::array(graph::Value value) : value_(handle(std::move(value))) {}

array::ArrayIterator::ArrayIterator(const array& a, int64_t at) : array_(a), at_(at) {
  if (a.ndim() == 0) throw_invalid("array", "a scalar has no first axis to go along");
  if (!a.shape()[0].is_static())
    throw_invalid("array", "the first axis of " + to_string(a.shape()) +
                               " has no fixed number of elements to go along: use scan");
}

array array::ArrayIterator::operator*() const {
  return array(graph::squeeze(graph::slice_axis(array_.value(), 0, at_, 1), {0}));
}

Shape array::checked(Shape shape, size_t count) {
  if (static_cast<int64_t>(count) != num_elements(shape))
    throw_invalid("array", std::to_string(count) + " values do not fill shape " + to_string(shape));
  return shape;
}

array array::converted(const void* data, Dtype from, Shape shape, Dtype dtype) {
  if (from == dtype) return from_data(data, std::move(shape), dtype);
  require_sizes(shape);
  const graph::Type type{std::move(shape), dtype};
  graph::Storage storage = detail::allocate_storage(type);
  const int64_t count = num_elements(type.shape);
  for (int64_t i = 0; i < count; ++i) convert_element(data, from, storage.buffer->data(), dtype, i);
  return array(graph::data(type, std::move(storage)));
}

array array::from_data(const void* data, Shape shape, Dtype dtype) {
  require_sizes(shape);
  const graph::Type type{std::move(shape), dtype};
  graph::Storage storage = detail::allocate_storage(type);
  const size_t bytes = static_cast<size_t>(num_elements(type.shape)) * dtype.size();
  if (bytes > 0) runtime::parallel_copy(storage.buffer->data(), data, bytes);
  return array(graph::data(type, std::move(storage)));
}

const graph::Value& array::value() const { return *value_; }
Dtype array::dtype() const { return value_->dtype(); }
const Shape& array::shape() const { return value_->shape(); }
size_t array::ndim() const { return value_->shape().size(); }
size_t array::itemsize() const { return dtype().size(); }
size_t array::nbytes() const { return size() * itemsize(); }

Dim array::shape(int axis) const {
  return shape()[static_cast<size_t>(normalize_axis("shape", axis, static_cast<int>(ndim())))];
}

size_t array::size() const {
  if (!is_static(shape()))
    throw_invalid(
        "size", "the number of elements of shape " + to_string(shape()) + " is not known before the program is called");
  return static_cast<size_t>(num_elements(shape()));
}

Strides array::strides() const {
  detail::realise_all(std::span(value_.get(), 1));
  std::shared_lock lock(graph::structure());
  const graph::Storage* storage = value_->node->storage(value_->index);
  if (!storage) throw_invalid("strides", "a value inside a transform has no layout yet");
  return storage->strides;
}

int64_t array::strides(int axis) const {
  return strides()[static_cast<size_t>(normalize_axis("strides", axis, static_cast<int>(ndim())))];
}

size_t array::data_size() const {
  const Strides steps = strides();
  if (size() == 0) return 0;
  int64_t span = 1;
  for (size_t k = 0; k < steps.size(); ++k) span += std::abs(steps[k]) * (shape()[k].bound() - 1);
  return static_cast<size_t>(span);
}

array::Flags array::flags() const {
  const Strides steps = strides();
  const Shape reversed(shape().rbegin(), shape().rend());
  const bool row = detail::is_row_major(shape(), steps),
             column = detail::is_row_major(reversed, Strides(steps.rbegin(), steps.rend()));
  return {data_size() == size(), row, column};
}

void array::eval() const { detail::realise_all(std::span(value_.get(), 1)); }
bool array::is_available() const { return detail::has_data(*value_); }

const void* array::raw_data() const {
  const graph::Storage storage = detail::realise(*value_);  // kept by the node, or by the trace
  return detail::address(storage, dtype());
}

template <class T>
const T* array::data() const {
  if (!host_type<T>(dtype()))
    throw_invalid("data", std::string("the array has dtype ") + dtype_name(dtype()) +
                              ": ask for its own host type, or convert it with astype");
  return static_cast<const T*>(raw_data());
}

template <>
WEFT_API complex128_t array::item<complex128_t>() const {
  if (size() != 1)
    throw_invalid("item", "only an array with one element has an item, this one has shape " + to_string(shape()));
  if (dtype() == complex64) return *static_cast<const complex64_t*>(raw_data());
  if (dtype() == complex128) return *static_cast<const complex128_t*>(raw_data());
  return complex128_t(item<double>(), 0);
}
template <>
WEFT_API complex64_t array::item<complex64_t>() const {
  return item<complex128_t>();
}
template <>
WEFT_API std::complex<float> array::item<std::complex<float>>() const {
  return item<complex64_t>();
}
template <>
WEFT_API std::complex<double> array::item<std::complex<double>>() const {
  return item<complex128_t>();
}

template <class T>
T array::item() const {
  if (size() != 1)
    throw_invalid("item", "only an array with one element has an item, this one has shape " + to_string(shape()));
  if (const Number* known = detail::constant_number(*value_)) return convert<T>(*known, dtype());
  return convert<T>(detail::load_element(raw_data(), dtype(), 0), dtype());
}

template <class T>
std::vector<T> array::to_vector() const {
  const void* from = raw_data();
  std::vector<T> result;
  const auto n = static_cast<int64_t>(size());
  result.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) result.push_back(convert<T>(detail::load_element(from, dtype(), i), dtype()));
  return result;
}

template WEFT_API bool array::item<bool>() const;
template WEFT_API int8_t array::item<int8_t>() const;
template WEFT_API int16_t array::item<int16_t>() const;
template WEFT_API int32_t array::item<int32_t>() const;
template WEFT_API int64_t array::item<int64_t>() const;
template WEFT_API uint8_t array::item<uint8_t>() const;
template WEFT_API uint16_t array::item<uint16_t>() const;
template WEFT_API uint32_t array::item<uint32_t>() const;
template WEFT_API uint64_t array::item<uint64_t>() const;
template WEFT_API float16_t array::item<float16_t>() const;
template WEFT_API bfloat16_t array::item<bfloat16_t>() const;
template WEFT_API float array::item<float>() const;
template WEFT_API double array::item<double>() const;

template WEFT_API const bool* array::data<bool>() const;
template WEFT_API const int8_t* array::data<int8_t>() const;
template WEFT_API const int16_t* array::data<int16_t>() const;
template WEFT_API const int32_t* array::data<int32_t>() const;
template WEFT_API const int64_t* array::data<int64_t>() const;
template WEFT_API const uint8_t* array::data<uint8_t>() const;
template WEFT_API const uint16_t* array::data<uint16_t>() const;
template WEFT_API const uint32_t* array::data<uint32_t>() const;
template WEFT_API const uint64_t* array::data<uint64_t>() const;
template WEFT_API const float16_t* array::data<float16_t>() const;
template WEFT_API const bfloat16_t* array::data<bfloat16_t>() const;
template WEFT_API const float* array::data<float>() const;
template WEFT_API const double* array::data<double>() const;
template WEFT_API const complex64_t* array::data<complex64_t>() const;
template WEFT_API const complex128_t* array::data<complex128_t>() const;
template WEFT_API const std::complex<double>* array::data<std::complex<double>>() const;
template WEFT_API const std::complex<float>* array::data<std::complex<float>>() const;

template WEFT_API std::vector<bool> array::to_vector<bool>() const;
template WEFT_API std::vector<int8_t> array::to_vector<int8_t>() const;
template WEFT_API std::vector<int16_t> array::to_vector<int16_t>() const;
template WEFT_API std::vector<int32_t> array::to_vector<int32_t>() const;
template WEFT_API std::vector<int64_t> array::to_vector<int64_t>() const;
template WEFT_API std::vector<uint8_t> array::to_vector<uint8_t>() const;
template WEFT_API std::vector<uint16_t> array::to_vector<uint16_t>() const;
template WEFT_API std::vector<uint32_t> array::to_vector<uint32_t>() const;
template WEFT_API std::vector<uint64_t> array::to_vector<uint64_t>() const;
template WEFT_API std::vector<float16_t> array::to_vector<float16_t>() const;
template WEFT_API std::vector<bfloat16_t> array::to_vector<bfloat16_t>() const;
template WEFT_API std::vector<float> array::to_vector<float>() const;
template WEFT_API std::vector<double> array::to_vector<double>() const;

void eval(const std::vector<array>& arrays) {
  graph::Values values;
  values.reserve(arrays.size());
  for (const array& a : arrays) values.push_back(a.value());
  detail::realise_all(values);
}

void async_eval(const std::vector<array>& arrays) {
  graph::Values values;
  values.reserve(arrays.size());
  for (const array& a : arrays) values.push_back(a.value());
  detail::realise_later(values);
}

namespace {

/// Orders the accesses of former owners before what follows, once use_count has shown that they are gone.
template <class... Shared>
void see_former_owners(const Shared&... pointers) {
#ifdef __SANITIZE_THREAD__
  (static_cast<void>(Shared(pointers)), ...);  // the thread sanitizer understands counts of references, but no fences
#else
  (static_cast<void>(pointers), ...);
  std::atomic_thread_fence(std::memory_order_acquire);  // they released their references
#endif
}

}  // namespace

bool arrays::sole_owner(const array& a, const graph::Storage& storage) {
  const graph::Value& value = *a.value_;
  if (a.value_.use_count() != 1 || value.node.use_count() != 1) return false;
  if (storage.buffer.use_count() != 1 || storage.offset != 0 || storage.buffer->is_borrowed()) return false;
  see_former_owners(a.value_, value.node, storage.buffer);
  return true;
}

}  // namespace weft
