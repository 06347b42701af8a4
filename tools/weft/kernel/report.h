#pragma once
// What is said of a kernel, as JSON and as text.
#include <string>

#include "target/machine.h"
#include "tools/weft/kernel/subjects.h"

namespace weft::tool {

/// Returns, as a JSON object, name, summary, arrays, programs, bytes and operations.
std::string description(const KernelSubject& subject);
/// Returns the description with what the kernel needs of a GPU (registers, spills, shared memory, occupancy; without
/// NVRTC why not) and the shortest time there.
std::string report(const KernelSubject& subject, const target::Machine& gpu);
/// Returns the description with the time, its rates and its share of the shortest one on the default device.
std::string timing(const KernelSubject& subject, double ms);
/// Compares the interpreter's results with the default device's: `equal` means the same bits on a CPU, and on a GPU a
/// small difference relative to the largest result.
std::string comparison(const KernelSubject& subject, uint64_t seed, bool& equal);

/// Returns the rows "name value" of such an object.
std::string text_of_report(const std::string& json);

}  // namespace weft::tool
