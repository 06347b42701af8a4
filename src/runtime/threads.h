#pragma once
// The one thread team of the process, shared by generated kernels and CPU libraries (libgomp; a std::thread team where thread
// sanitizers need one). Nested calls run on the calling thread.
#include <cstdint>
#include <functional>

namespace weft::runtime {

/// OMP_NUM_THREADS, or the processors this process may use. `set_num_threads` changes it for calls that follow (n >= 1).
int num_threads();
void set_num_threads(int n);
/// Calls body(begin, end) on disjoint ranges that cover [0, n), one contiguous range a thread; returns when all are done. The first exception
/// of a body is rethrown on the calling thread.
void parallel_for(int64_t n, const std::function<void(int64_t, int64_t)>& body);

/// Called on a thread that is about to enter a CPU library: how many threads the library will find. 1 inside a body of `parallel_for`, else
/// `num_threads()`; libgomp is told so for the calling thread (its setting is one a thread), so that library and kernels use the same team.
int library_threads();

}  // namespace weft::runtime
