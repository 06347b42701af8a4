#pragma once
// A device that is none: memory of its own, which the host never reads by accident because it is given back poisoned,
// work in order, recordings. Its kernels are the CPU's.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/peer.h"
#include "target/target.h"

namespace weft::test {

class FakeDevice final : public runtime::Accelerator, public runtime::Peer {
 public:
  using Work = std::function<void()>;
  /// `reached`: the host's memory is not needed for copies from other fakes.
  explicit FakeDevice(int number = 0, bool reached = true) : number_(number), reached_(reached) {}
  ~FakeDevice() override {
    for (const auto& [bytes, list] : free_)
      for (void* data : list) std::free(data);
  }
  std::string name() const override { return "fake:" + std::to_string(number_); }
  void* allocate(size_t bytes) override {
    std::lock_guard lock(mutex_);
    check(!capturing_, "fake device", "memory is allocated while work is written down");
    auto& list = free_[bytes];
    void* data = list.empty() ? std::aligned_alloc(256, (bytes + 256) / 256 * 256) : list.back();
    if (!list.empty()) list.pop_back();
    std::memset(data, 0xa5, bytes);
    ++blocks;
    memory_.active += block_bytes(bytes);
    memory_.peak = std::max(memory_.peak, memory_.active);
    return data;
  }
  size_t block_bytes(size_t bytes) const override { return (bytes + 255) / 256 * 256; }
  void release(void* data, size_t bytes) noexcept override {
    std::lock_guard lock(mutex_);
    free_[bytes].push_back(data), --blocks;
    memory_.active -= block_bytes(bytes);
  }
  void to_device(void* to, const void* from, size_t bytes) override {
    std::lock_guard lock(order());
    check(!capturing_, "fake device", "the host is read while work is written down");
    std::memcpy(to, from, bytes);
  }
  void to_host(void* to, const void* from, size_t bytes) override {
    std::lock_guard lock(order());
    check(!capturing_, "fake device", "the host waits while work is written down");
    std::memcpy(to, from, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    give([=] { std::memcpy(to, from, bytes); });
  }
  bool reaches(const runtime::Accelerator& other) const override {
    return reached_ && dynamic_cast<const FakeDevice*>(&other);
  }
  bool copy_from(runtime::Accelerator& other, void* to, const void* from, size_t bytes) override {
    if (!reaches(other)) return false;
    copy(to, from, bytes);
    return true;
  }
  void synchronize() override { ++waits; }
  void begin_capture() override { capturing_ = std::make_shared<Written>(); }
  std::shared_ptr<const runtime::CapturedGraph> end_capture() override { return std::exchange(capturing_, nullptr); }
  void abandon_capture() noexcept override { capturing_ = nullptr; }
  std::unique_ptr<runtime::Timestamps> timestamps(size_t count) override {
    return std::make_unique<Noted>(*this, count);
  }
  runtime::DeviceMemory memory() const override { return memory_; }
  void reset_peak() override { memory_.peak = memory_.active; }
  size_t set_limit(size_t) override { return 0; }
  size_t set_cache_limit(size_t) override { return 0; }
  void clear_cache() override {}

  bool recording() const { return capturing_ != nullptr; }
  void give(const Work& work) {
    if (capturing_) capturing_->work.push_back(work);
    else work();
  }
  int64_t blocks = 0;  // in use
  int64_t waits = 0;   // for all work

 private:
  struct Written final : runtime::CapturedGraph {
    void run() const override {
      for (const Work& w : work) w();
    }
    std::vector<Work> work;
  };
  struct Noted final : runtime::Timestamps {
    Noted(FakeDevice& owner, size_t count) : device(owner), at(std::make_shared<std::vector<double>>(count, -1)) {}
    void note(size_t k) override {
      device.give([k, list = at] {
        list->at(k) =
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
      });
    }
    std::vector<double> times() override { return *at; }
    FakeDevice& device;
    std::shared_ptr<std::vector<double>> at;
  };
  const int number_;
  const bool reached_;
  std::mutex mutex_;
  runtime::DeviceMemory memory_;
  std::map<size_t, std::vector<void*>> free_;
  std::shared_ptr<Written> capturing_;
};

class FakeTarget final : public target::Target {
 public:
  explicit FakeTarget(int number = 0, bool reached = true) : device_(number, reached) {
    machine_ = target::cpu().machine();
  }
  runtime::Accelerator* device() override { return &device_; }
  FakeDevice& fake() { return device_; }
  std::string fingerprint() const override { return "fake " + target::cpu().fingerprint(); }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    std::vector<std::shared_ptr<const target::Executable>> out;
    for (auto& code : target::cpu().compile(kernels)) out.push_back(std::make_shared<Later>(device_, std::move(code)));
    return out;
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  /// The CPU's Cholesky, for which the host waits.
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    return desc.name == "cholesky" ? std::make_shared<Waits>(device_, target::cpu().call(desc)) : nullptr;
  }
  target::CompileStats stats() const override { return {}; }

 private:
  class Waits final : public target::LibraryCall {
   public:
    Waits(FakeDevice& device, std::shared_ptr<const target::LibraryCall> call)
        : device_(device), call_(std::move(call)) {}
    std::string name() const override { return "fake " + call_->name(); }
    bool recordable() const override { return false; }
    void run(std::span<void* const> operands) const override {
      check(!device_.recording(), "fake device", "the host waits while work is written down");
      call_->run(operands);
    }

   private:
    FakeDevice& device_;
    std::shared_ptr<const target::LibraryCall> call_;
  };
  class Later final : public target::Executable {
   public:
    Later(FakeDevice& device, std::shared_ptr<const target::Executable> code)
        : device_(device), code_(std::move(code)) {}
    void run(std::span<const target::Segment> segments, double work) const override {
      struct Copy {
        std::vector<void*> buffers;
        std::vector<int64_t> symbols;
        int64_t grid;
      };
      std::vector<Copy> copies;
      for (const target::Segment& s : segments)
        copies.push_back({{s.buffers.begin(), s.buffers.end()}, {s.symbols.begin(), s.symbols.end()}, s.grid});
      device_.give([copies, work, code = code_] {
        std::vector<target::Segment> own;
        for (const Copy& c : copies) own.push_back({c.buffers, c.symbols, c.grid});
        code->run(own, work);
      });
    }

   private:
    FakeDevice& device_;
    std::shared_ptr<const target::Executable> code_;
  };
  mutable FakeDevice device_;  // calls give it work
};

}  // namespace weft::test
