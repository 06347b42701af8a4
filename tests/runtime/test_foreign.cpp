// Memory that passes between a device and streams of others: what is ordered before it is given back, on which thread,
// and what happens while work is captured. The device is none: it notes what it is asked for.
#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/foreign.h"

using namespace weft::runtime;

namespace {

class NotingDevice final : public Accelerator, public ForeignOrder {
 public:
  std::string name() const override { return "noting:0"; }
  void* allocate(size_t bytes) override { return ++allocated, ::operator new(bytes); }
  size_t block_bytes(size_t bytes) const override { return bytes; }
  void release(void* data, size_t) noexcept override { --allocated, ::operator delete(data); }
  void to_device(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void to_host(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void synchronize() override {}
  void begin_capture() override { captures = true; }
  std::shared_ptr<const CapturedGraph> end_capture() override { return captures = false, nullptr; }
  void abandon_capture() noexcept override { captures = false; }
  std::unique_ptr<Timestamps> timestamps(size_t) override { return nullptr; }
  DeviceMemory memory() const override { return {}; }
  void reset_peak() override {}
  size_t set_limit(size_t) override { return 0; }
  size_t set_cache_limit(size_t) override { return 0; }
  void clear_cache() override {}

  void* entry() override { return &captures; }
  void follow(void* stream) override { note("follow", stream); }
  void lead(void* stream) override { note("lead", stream); }
  std::function<void()> mark() override {
    note("mark", nullptr);
    return [this] { done.get_future().wait(); };
  }
  bool capturing() const override { return captures; }

  std::vector<std::string> seen() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }
  bool captures = false, refuses = false;
  int allocated = 0;
  std::promise<void> done;  // the work before a mark

 private:
  void note(const std::string& what, void* stream) {
    if (refuses && stream) throw std::runtime_error("the stream is being captured");
    const std::lock_guard lock(mutex_);
    notes_.push_back(what);
  }
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

using Notes = std::vector<std::string>;

/// Something that is released, and the thread on which it was.
struct Returned {
  std::promise<std::thread::id> where;
  std::function<void()> release() {
    return [this] { where.set_value(std::this_thread::get_id()); };
  }
  bool here() { return where.get_future().get() == std::this_thread::get_id(); }
};

int stream = 0;

}  // namespace

TEST_CASE("borrowed memory goes back at once when its stream follows the device") {
  NotingDevice device;
  Returned returned;
  give_back(device, &stream, returned.release());
  CHECK(device.seen() == Notes{"lead"});
  CHECK(returned.here());
}

TEST_CASE("borrowed memory without a stream goes back when the device's work is done") {
  NotingDevice device;
  Returned returned;
  auto where = returned.where.get_future();
  give_back(device, std::nullopt, returned.release());
  CHECK(device.seen() == Notes{"mark"});
  CHECK(where.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  device.done.set_value();
  CHECK(where.get() != std::this_thread::get_id());
}

TEST_CASE("a stream that is captured does not follow: its memory goes back when the device's work is done") {
  NotingDevice device;
  device.refuses = true;
  device.done.set_value();
  Returned returned;
  give_back(device, &stream, returned.release());
  CHECK(!returned.here());
  CHECK(device.seen() == Notes{"mark"});
  Returned lent;
  take_back(device, &stream, lent.release());  // nothing can be ordered, and the memory goes back all the same
  CHECK(lent.here());
}

TEST_CASE("lent memory comes back behind the stream that used it") {
  NotingDevice device;
  Returned returned;
  take_back(device, &stream, returned.release());
  CHECK(device.seen() == Notes{"follow"});
  CHECK(returned.here());
}

TEST_CASE("memory goes back on another thread while work is captured, or the device's order is another thread's") {
  NotingDevice device;
  Returned captured, busy;
  {
    const std::lock_guard order(device.order());
    device.begin_capture();
    take_back(device, &stream, captured.release());
    CHECK(device.seen().empty());
    device.end_capture();
  }
  CHECK(!captured.here());
  std::promise<void> locked, over;
  std::thread other([&] {
    const std::lock_guard order(device.order());
    locked.set_value();
    over.get_future().wait();
  });
  locked.get_future().wait();
  give_back(device, &stream, busy.release());  // does not wait for the other thread
  over.set_value();
  other.join();
  CHECK(!busy.here());
  CHECK(device.seen() == Notes{"follow", "lead"});
}

TEST_CASE("a buffer of borrowed memory reads it where it lies, and gives it back once") {
  NotingDevice device;
  std::vector<float> elements{1, 2, 3};
  int released = 0;
  {
    const BufferRef buffer = borrow_memory(&device, elements.data(), 12, &stream, [&] { ++released; });
    CHECK(buffer->is_borrowed());
    CHECK(buffer->is_on(&device));
    CHECK(!buffer->is_on(nullptr));
    CHECK(buffer->on(&device) == elements.data());
    CHECK(static_cast<const float*>(buffer->data())[2] == 3);  // a copy on the host
    CHECK(buffer->data() != elements.data());
    CHECK(released == 0);
  }
  CHECK(released == 1);
  CHECK(device.allocated == 0);
  {
    const BufferRef buffer = borrow_memory(nullptr, elements.data(), 12, std::nullopt, [&] { ++released; });
    CHECK(buffer->data() == elements.data());
    CHECK(buffer->on(&device) != elements.data());
    CHECK(device.allocated == 1);
  }
  CHECK(released == 2);
  CHECK(device.allocated == 0);
}
