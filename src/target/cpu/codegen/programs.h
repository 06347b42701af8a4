#pragma once
// What generated code calls where programs of a launch wait for each other, and how such programs are run.
#include <cstdint>
#include <functional>

namespace weft::target {

/// Lets others go on: the program waits for what one of them has not done yet.
void wait_for_programs();

/// Runs body(0) … body(count - 1), each in a fiber of its own, in turns on this thread, until all have ended. Where all
/// wait for each other it notes a failure and gives up.
void run_programs(int64_t count, const std::function<void(int64_t)>& body);

/// Says where local buffer `index` of the body lies that runs, and returns where that of body `rank` does. A rank that
/// none has is noted as a failure, and stands for the body itself.
void share_local(int64_t index, void* local);
void* neighbour_local(int64_t index, int64_t rank);

/// Returns when all bodies that `run_programs` runs have come here; if nobody is left who could come, it is noted as a
/// failure that begins with `where`.
void meet_programs(const char* where);

}  // namespace weft::target
