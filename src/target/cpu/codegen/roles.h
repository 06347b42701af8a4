#pragma once
// What generated code calls to run the roles of a program: fibers of one thread, which change where one waits.
#include <cstdint>

namespace weft::target {

using RoleBody = void (*)(void* frame);

/// Runs `count` bodies on one frame, each in a fiber of its own, until all have ended. Where all wait for each other it
/// notes a failure and gives up.
void run_roles(const RoleBody* bodies, int64_t count, void* frame);

/// Counts an arrival at a barrier whose phases end with `arrivals` of them. A barrier is one word: the phase times 2^32
/// and the arrivals so far; 0 at the beginning.
void arrive_at_barrier(int64_t* barrier, int64_t arrivals);

/// Returns when a phase has ended, or when nobody can end it any more, which it notes as a failure, beginning with
/// `where`.
void await_phase(const int64_t* barrier, int64_t phase, const char* where);

}  // namespace weft::target
