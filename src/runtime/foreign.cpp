#include "runtime/foreign.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "runtime/trace.h"

namespace weft::runtime {
namespace {

/// A thread that gives memory back in the order asked for. It is never ended: what it calls may wait for a lock that is
/// not given any more when the process ends.
class Returns {
 public:
  static Returns& get() {
    static Returns* instance = new Returns;
    return *instance;
  }

  void add(std::function<void()> job) {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (!std::exchange(started_, true)) std::thread([this] { work(); }).detach();
    wake_.notify_one();
  }

 private:
  void work() {
    name_thread("returns");
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !jobs_.empty(); });
      std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      job = nullptr;  // destroyed without the lock
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool started_ = false;
};

/// Does something about the order of work that may fail: the memory goes back all the same. Returns whether it worked.
template <class Work>
bool attempt(const Work& work) {
  try {
    work();
    return true;
  } catch (const std::exception&) {  // the stream is captured, or has ended with the process
    return false;
  }
}

/// Orders the end of borrowed memory, under the device's order. Returns what is still to be waited for.
std::function<void()> order_end(ForeignOrder& device, std::optional<void*> stream) {
  if (stream && attempt([&] { device.lead(*stream); })) return {};
  std::function<void()> wait;
  attempt([&] { wait = device.mark(); });
  return wait;
}

void release_after(const std::function<void()>& wait, const std::function<void()>& release) {
  if (wait) attempt(wait);
  release();
}

/// Runs `order` under the device's order: here where nobody else has it and nothing is captured, else on the thread of
/// returns, and `then` with what it returned.
template <class Order, class Then>
void in_order(Accelerator& device, Order order, Then then) {
  ForeignOrder& foreign = foreign_order(device);
  if (std::unique_lock lock(device.order(), std::try_to_lock); lock.owns_lock() && !foreign.capturing()) {
    auto result = order(foreign);
    lock.unlock();
    return then(std::move(result));
  }
  Returns::get().add([&device, &foreign, order, then] {
    std::unique_lock lock(device.order());
    auto result = order(foreign);
    lock.unlock();
    then(std::move(result));
  });
}

}  // namespace

ForeignOrder& foreign_order(Accelerator& device) {
  auto* const foreign = dynamic_cast<ForeignOrder*>(&device);
  if (!foreign) throw_invalid("interop", device.name() + " shares no memory with streams of others");
  return *foreign;
}

void give_back(Accelerator& device, std::optional<void*> stream, std::function<void()> release) {
  in_order(
      device, [stream](ForeignOrder& foreign) { return order_end(foreign, stream); },
      [release = std::move(release)](std::function<void()> wait) {
        if (!wait) return release();
        Returns::get().add([wait = std::move(wait), release] { release_after(wait, release); });
      });
}

void take_back(Accelerator& device, void* stream, std::function<void()> release) {
  in_order(
      device, [stream](ForeignOrder& foreign) { return attempt([&] { foreign.follow(stream); }); },
      [release = std::move(release)](bool) { release(); });
}

BufferRef borrow_memory(Accelerator* device, void* data, size_t bytes, std::optional<void*> stream,
                        std::function<void()> release) {
  if (!release) release = [] {};
  if (!device) return std::make_shared<Buffer>(Buffer::Borrowed{nullptr, data, bytes, [release](void*) { release(); }});
  return std::make_shared<Buffer>(
      Buffer::Borrowed{device, data, bytes, [device, stream, release](void*) { give_back(*device, stream, release); }});
}

}  // namespace weft::runtime
