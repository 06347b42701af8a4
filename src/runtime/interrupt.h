#pragma once
// Work that ends early because somebody asks for it, as Ctrl-C does in Python. It ends between the steps of a program,
// where an exception leaves nothing half-written. Who waits for other threads, or for a device, ends waiting alone:
// what they do goes on.
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace weft::runtime {

/// Sets a function that throws where work is to end; null, as at first: it never does. It is called on the thread that
/// computes, at most every 20 ms.
void set_interrupt_check(void (*check)());

/// Calls it where the calling thread's work may end.
void check_interrupt();

/// Returns whether somebody is asked where the calling thread waits.
bool ends_waits();

/// Says whether the calling thread's work may end early while this lives; what is inside work that may not, may not
/// either.
class MayEnd {
 public:
  explicit MayEnd(bool may);
  ~MayEnd();
  MayEnd(const MayEnd&) = delete;
  MayEnd& operator=(const MayEnd&) = delete;

 private:
  int before_;
};

/// Waits until `done` says so under the lock, or throws what the interrupt check throws, without the lock.
template <class Done>
void wait_or_end(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, const Done& done) {
  constexpr std::chrono::milliseconds between_checks{25};
  if (!ends_waits()) return changed.wait(lock, done);
  const MayEnd may_end(true);
  while (!changed.wait_for(lock, between_checks, done)) {
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
}

}  // namespace weft::runtime
