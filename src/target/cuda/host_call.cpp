#include "target/cuda/host_call.h"

#include <vector>

#include "target/cuda/driver/driver.h"

namespace weft::target::cuda {
namespace {

size_t bytes_of(const kernel::CallDesc::Array& array) {
  auto bytes = static_cast<size_t>(array.dtype.size());
  for (const int64_t n : array.extents) bytes *= static_cast<size_t>(n);
  return bytes;
}

class HostCall final : public LibraryCall {
 public:
  HostCall(const kernel::CallDesc& desc, std::shared_ptr<const LibraryCall> call, Context& context)
      : call_(std::move(call)), context_(context), inputs_(desc.inputs.size()) {
    for (const auto* arrays : {&desc.inputs, &desc.outputs})
      for (const kernel::CallDesc::Array& array : *arrays) bytes_.push_back(bytes_of(array));
  }

  std::string name() const override { return call_->name() + " on the host"; }
  bool recordable() const override { return false; }

  void run(std::span<void* const> operands) const override {
    context_.make_current();
    std::vector<std::vector<std::max_align_t>> copies;
    std::vector<void*> host;
    for (const size_t bytes : bytes_) host.push_back(copies.emplace_back(bytes / sizeof(std::max_align_t) + 1).data());
    for (size_t k = 0; k < inputs_; ++k)
      if (bytes_[k] > 0)
        check_result(
            driver().memcpy_dtoh_async(host[k], reinterpret_cast<DevicePtr>(operands[k]), bytes_[k], context_.stream()),
            "cuMemcpyDtoHAsync");
    context_.synchronize();
    call_->run(host);
    for (size_t k = inputs_; k < bytes_.size(); ++k)
      if (bytes_[k] > 0)
        check_result(
            driver().memcpy_htod_async(reinterpret_cast<DevicePtr>(operands[k]), host[k], bytes_[k], context_.stream()),
            "cuMemcpyHtoDAsync");
    context_.synchronize();  // the copies are part of the call
  }

 private:
  std::shared_ptr<const LibraryCall> call_;
  Context& context_;
  size_t inputs_;
  std::vector<size_t> bytes_;  // by operand
};

}  // namespace

std::shared_ptr<const LibraryCall> host_call(const kernel::CallDesc& desc, Context& context) {
  std::shared_ptr<const LibraryCall> call = cpu().call(desc);
  return call ? std::make_shared<HostCall>(desc, std::move(call), context) : nullptr;
}

}  // namespace weft::target::cuda
