#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/array.h"
#include "weft/c.h"
#include "weft/distributed.h"
#include "weft/export.h"
#include "weft/fft.h"
#include "weft/transforms.h"

struct weft_array_handle {
  weft::array value;
};
struct weft_arrays_handle {
  std::vector<weft::array> values;
};
struct weft_map_handle {
  std::map<std::string, weft::array> arrays;
  std::map<std::string, std::string> texts;
};
struct weft_function_handle {
  weft::ArrayFunction value;
};
struct weft_exporter_handle {
  weft::FunctionExporter value;
};
struct weft_group_handle {
  weft::distributed::Group value;
};

/// C's types as C++'s, and errors as numbers: what functions of the C interface are made of.
namespace weft::c {

/// Is thrown where a callback failed; `status` is what it returned.
struct CallbackFailed {
  weft_status status;
};

/// Notes the exception that is handled, and returns its number.
weft_status failed() noexcept;

/// Calls `body`; exceptions become numbers.
template <class Body>
weft_status guarded(const Body& body) noexcept {
  try {
    body();
    return WEFT_OK;
  } catch (...) {
    return failed();
  }
}

/// Returns what a handle stands for. Throws std::invalid_argument for NULL.
const array& in(weft_array a);
std::vector<array>& in(weft_arrays list);
const ArrayFunction& in(weft_function f);
weft_map_handle& in(weft_map map);
FunctionExporter& in(weft_exporter exporter);
Dtype in(weft_dtype dtype);
StreamOrDevice in(weft_stream stream);
fft::FFTNorm in(weft_fft_norm norm);
std::string in(const char* text);
/// Returns the array of a handle that may be NULL.
inline std::optional<array> optional(weft_array a) { return a ? std::optional(a->value) : std::nullopt; }
/// Returns the value behind a pointer that may be NULL.
template <class T>
std::optional<T> optional(const T* value) {
  return value ? std::optional(*value) : std::nullopt;
}
inline std::optional<Dtype> optional(const weft_dtype* dtype) {
  return dtype ? std::optional(in(*dtype)) : std::nullopt;
}
/// Returns a list of C's.
template <class T>
std::vector<T> list(const T* values, size_t count) {
  return {values, values + (values ? count : 0)};
}
std::vector<array> list(const weft_array* values, size_t count);
Shape lengths(const int64_t* values, size_t count);

/// Gives results to the caller, through handles of its own.
void out(weft_array* to, array value);
void out(weft_arrays* to, std::vector<array> values);
void out(weft_function* to, ArrayFunction value);
void out(weft_exporter* to, FunctionExporter value);
void out(weft_group* to, const distributed::Group& value);
void out(bool* to, bool value);
template <class... To, class... A, size_t... K>
void out_each(std::tuple<To...> to, const std::tuple<A...>& from, std::index_sequence<K...>) {
  (out(std::get<K>(to), std::get<K>(from)), ...);
}
template <class... A, class... To>
void out_all(const std::tuple<A...>& from, To... to) {
  out_each(std::tuple(to...), from, std::index_sequence_for<A...>());
}
inline void out_all(const std::pair<array, array>& from, weft_array* first, weft_array* second) {
  out(first, from.first);
  out(second, from.second);
}

}  // namespace weft::c
