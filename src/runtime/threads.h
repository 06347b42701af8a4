#pragma once
// The only thread team of the process, for generated kernels and for library calls that are cut into pieces. CPU
// libraries with a team of their own (libgomp) are called with one thread: two teams would compete for the cores, and
// results would depend on how a library splits its work.
#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft::runtime {

/// Returns the team's size: OMP_NUM_THREADS, or the number of processors that this process may use. `set_num_threads`
/// changes it for later calls (n >= 1).
int num_threads();
void set_num_threads(int n);
/// Calls body(begin, end) on disjoint ranges that cover [0, n), several ranges a thread; returns when all are done. A
/// nested call runs on the calling thread. The first exception of a body is rethrown on the calling thread.
void parallel_for(int64_t n, const std::function<void(int64_t, int64_t)>& body);
/// Copies like memcpy, with several threads if there is enough to copy.
void parallel_copy(void* to, const void* from, size_t bytes);

/// While it lives, OpenMP libraries called on this thread run single-threaded.
class LibraryScope {
 public:
  LibraryScope();
  ~LibraryScope();
  LibraryScope(const LibraryScope&) = delete;
  LibraryScope& operator=(const LibraryScope&) = delete;

 private:
  int before_ = 1;
};

}  // namespace weft::runtime
