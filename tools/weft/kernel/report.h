#pragma once
// What is said of a kernel, as JSON and as text.
#include <nlohmann/json.hpp>
#include <string>

#include "target/machine.h"
#include "tools/weft/kernel/subjects.h"

namespace weft::tool {

/// Returns name, summary, arrays, programs, bytes and operations.
nlohmann::ordered_json description(const Subject& subject);
/// Adds what the kernel needs of a GPU (registers, spills, shared memory, occupancy; without NVRTC why not) and the
/// shortest time there.
nlohmann::ordered_json report(const Subject& subject, const target::Machine& gpu);
/// Adds the time, its rates and its share of the shortest one on the default device.
nlohmann::ordered_json timing(const Subject& subject, double ms);
/// Compares the interpreter's results with the default device's: "equal" means the same bits on a CPU, and on a GPU a
/// small difference relative to the largest result.
nlohmann::ordered_json comparison(const Subject& subject, uint64_t seed);

/// Returns the rows "name value" of a report.
std::string text_of_report(const nlohmann::ordered_json& report);

}  // namespace weft::tool
