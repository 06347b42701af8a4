#pragma once
// What every CUDA source begins with: types, the scalar operators that are more than a C++ operator, and exchanges
// between lanes. Includes nothing: NVRTC compiles a kernel ten times faster without the toolkit's headers.
#include <string_view>

namespace weft::target::cuda {

extern const std::string_view prelude;

}  // namespace weft::target::cuda
