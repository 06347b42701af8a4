#pragma once
// What tests of values leave out under a sanitizer, which makes them some five times as long: it looks at memory and
// undefined behaviour, which a part of the combinations reaches, and values are what the other builds check.
#include <cstdint>

namespace weft::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

/// Returns how many of `n` random cases a test takes: all, or a quarter of them under a sanitizer.
constexpr int64_t some_of(int64_t n) { return sanitized ? (n + 3) / 4 : n; }

/// Tells whether a test takes its combination number `turn`: each, or every fourth under a sanitizer.
constexpr bool taken(int64_t turn) { return !sanitized || turn % 4 == 0; }

}  // namespace weft::test
