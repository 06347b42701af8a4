# Language level, warnings, sanitizers, linker and compiler cache: everything that is true of every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

if(WEFT_PORTABLE)
  set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
  set(CMAKE_BUILD_RPATH "$ORIGIN")
  add_link_options(-Wl,--gc-sections)  # libstdc++ stays shared: libraries that are opened later bring it as well
endif()

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${WEFT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WEFT_CCACHE})
  if(WEFT_TEST_HEADERS)  # what ccache asks for before it caches objects that use a precompiled header
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${WEFT_CCACHE})
  endif()
endif()
find_program(WEFT_MOLD mold)
if(WEFT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# -ffp-contract=off: host code (interpreter, reference) must round exactly where the generated code does.
add_library(weft_options INTERFACE)
target_compile_options(weft_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
# Clang's -Wbraced-scalar-init is off: a list of axes with one element, {0}, may choose the overload for one axis, which
# means the same.
target_compile_options(weft_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-braced-scalar-init>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False on "literal" + std::string at -O2 (GCC bug 105329).
  target_compile_options(weft_options INTERFACE -Wno-restrict)
endif()
if(WEFT_WERROR)
  target_compile_options(weft_options INTERFACE -Werror)
endif()

set(WEFT_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined or thread")
if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)  # false on std::optional under sanitizers, as GCC's manual warns
  endif()
  add_link_options(-fsanitize=${WEFT_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND WEFT_SANITIZE MATCHES "undefined")
    # With these, g++ no longer takes "this function is not null" for a constant, which the operator table's
    # static_asserts need (GCC bug 71962). What they would find crashes under the address sanitizer anyway.
    add_compile_options(-fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()
