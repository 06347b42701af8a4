#pragma once
// What tests of values leave out under a sanitizer, which makes them some five times as long: it looks at memory and
// undefined behaviour, which a part of the combinations reaches, and values are what the other builds check.
#include <cstdint>

extern "C" {
// The sanitizers' runtimes begin with these; null where there is none.
void __asan_init() __attribute__((weak));
void __tsan_init() __attribute__((weak));
}

namespace weft::test {

/// Whether the program is linked with a sanitizer. The tests' own code may have been compiled without one.
inline const bool sanitized = __asan_init || __tsan_init;

/// Returns how many of `n` random cases a test takes: all, or a quarter of them under a sanitizer.
inline int64_t some_of(int64_t n) { return sanitized ? (n + 3) / 4 : n; }

/// Tells whether a test takes its combination number `turn`: each, or every fourth under a sanitizer.
inline bool taken(int64_t turn) { return !sanitized || turn % 4 == 0; }

}  // namespace weft::test
