#pragma once
// The one thread team of the process, for generated kernels and for the pieces into which library calls are cut. CPU
// libraries with a team of their own (libgomp) are entered on one thread at a time: two teams would fight for the
// processors, and results would depend on how a library divides its work.
#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft::runtime {

/// OMP_NUM_THREADS, or the processors this process may use. `set_num_threads` changes it for calls that follow (n >=
/// 1).
int num_threads();
void set_num_threads(int n);
/// Calls body(begin, end) on disjoint ranges that cover [0, n), several ranges a thread; returns when all are done. A
/// nested call runs on the calling thread. The first exception of a body is rethrown on the calling thread.
void parallel_for(int64_t n, const std::function<void(int64_t, int64_t)>& body);
/// memcpy; several threads take part where there is enough to copy.
void parallel_copy(void* to, const void* from, size_t bytes);

/// While it lives, OpenMP libraries that the calling thread enters use this thread alone.
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
