#pragma once
// What matters of a function's type to its caller: the size of each parameter and whether it is a pointer. Weft's
// declarations and those of a header agree where these texts do.
#include <string>
#include <type_traits>

namespace weft::test {

template <class T>
std::string abi_of_type() {
  if constexpr (std::is_void_v<T>) return "v";
  else if constexpr (std::is_pointer_v<T>) return "p";
  else if constexpr (std::is_floating_point_v<T>) return "f" + std::to_string(sizeof(T));
  else return "i" + std::to_string(sizeof(T));
}

template <class R, class... Args>
std::string abi(R (*)(Args...)) {
  std::string out = abi_of_type<R>() + "(";
  ((out += abi_of_type<Args>() + " "), ...);
  return out + ")";
}

}  // namespace weft::test

// The header's name of a function with its macros expanded ("cuMemAlloc_v2"), and its type.
#define WEFT_EXPANDED_TEXT(name) #name
#define WEFT_EXPANDED(name) WEFT_EXPANDED_TEXT(name)
#define WEFT_ABI(name) \
  { WEFT_EXPANDED(name), weft::test::abi(static_cast<decltype(&name)>(nullptr)) }
