#include "target/cuda/libraries/cufft.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "target/cuda/driver/library.h"
#include "target/cuda/driver/workspace.h"
#include "target/cuda/libraries/cufft_api.h"

namespace weft::target::cuda {

namespace cufft {

const Api* api() {
  static const Api* instance = bind_all<Api>(cufft_library());
  return instance;
}

}  // namespace cufft

namespace {

constexpr size_t grain = 256;  // alignment of parts of the workspace, in bytes

class CufftCall final : public LibraryCall {
 public:
  CufftCall(const kernel::CallDesc& desc, Context& context) : what_(desc.to_string()), context_(context) {
    const bool to_half = desc.name == "rfft", from_half = desc.name == "irfft", wide = desc.inputs[0].dtype == float64;
    const std::vector<int64_t>& extents =
        from_half ? desc.outputs[0].extents : desc.inputs[0].extents;  // with the axis at full length
    const size_t axis = extents.size() - (to_half || from_half ? 1 : 2);
    for (size_t k = 0; k < axis; ++k) rows_ *= extents[k];
    kind_ = to_half     ? (wide ? cufft::d2z : cufft::r2c)
            : from_half ? (wide ? cufft::z2d : cufft::c2r)
            : wide      ? cufft::z2z
                        : cufft::c2c;
    if (!to_half && !from_half && desc.integers[0] != 0) direction_ = cufft::inverse;
    if (from_half) {
      input_bytes_ = static_cast<size_t>(desc.inputs[0].dtype.size());
      for (const int64_t n : desc.inputs[0].extents) input_bytes_ *= static_cast<size_t>(n);
      copy_bytes_ = (input_bytes_ + grain - 1) / grain * grain;
    }
    if (rows_ > 0) make_plan(extents[axis]);
  }
  ~CufftCall() override {
    if (rows_ > 0) cufft::api()->destroy(plan_);
  }
  CufftCall(const CufftCall&) = delete;
  CufftCall& operator=(const CufftCall&) = delete;

  std::string name() const override { return "cufft"; }

  void run(std::span<void* const> operands) const override {
    if (rows_ == 0) return;
    std::lock_guard lock(mutex_);
    context_.make_current();
    void* in = operands[0];
    if (input_bytes_ > 0) {  // transforms to real numbers overwrite their input
      in = reinterpret_cast<void*>(workspace_->address());
      check_result(driver().memcpy_dtod_async(workspace_->address(), reinterpret_cast<DevicePtr>(operands[0]),
                                              input_bytes_, context_.stream()),
                   "cuMemcpyDtoDAsync");
    }
    check_fft(launch(in, operands[1]), "a transform");
  }

 private:
  void make_plan(int64_t length) {
    const cufft::Api& api = *cufft::api();
    context_.make_current();
    check_fft(api.create(&plan_), "cufftCreate");
    check_fft(api.set_auto_allocation(plan_, 0), "cufftSetAutoAllocation");
    size_t bytes = 0;
    long long n = length;
    check_fft(api.make_plan_many(plan_, 1, &n, nullptr, 1, 0, nullptr, 1, 0, kind_, rows_, &bytes),
              "cufftMakePlanMany64");
    workspace_ = shared_workspace(context_, std::max(grain, copy_bytes_ + bytes));
    check_fft(api.set_work_area(plan_, reinterpret_cast<void*>(workspace_->address() + copy_bytes_)),
              "cufftSetWorkArea");
    check_fft(api.set_stream(plan_, context_.stream()), "cufftSetStream");
  }

  int launch(void* in, void* out) const {
    const cufft::Api& api = *cufft::api();
    switch (kind_) {
      case cufft::r2c: return api.run_r2c(plan_, in, out);
      case cufft::c2r: return api.run_c2r(plan_, in, out);
      case cufft::c2c: return api.run_c2c(plan_, in, out, direction_);
      case cufft::d2z: return api.run_d2z(plan_, in, out);
      case cufft::z2d: return api.run_z2d(plan_, in, out);
      case cufft::z2z: return api.run_z2z(plan_, in, out, direction_);
    }
    return 0;
  }

  void check_fft(int status, const char* call) const {
    if (status != 0) throw_failure("fft", fmt::format("cuFFT refused {} with status {} for {}", call, status, what_));
  }

  std::string what_;
  Context& context_;
  cufft::Kind kind_ = cufft::c2c;
  int direction_ = cufft::forward;
  int64_t rows_ = 1;
  size_t input_bytes_ = 0,
         copy_bytes_ = 0;  // the size of a copy that may be overwritten, and its offset in the workspace
  cufft::Plan plan_ = 0;
  std::shared_ptr<const Workspace> workspace_;
  mutable std::mutex mutex_;
};

}  // namespace

std::shared_ptr<const LibraryCall> cufft_call(const kernel::CallDesc& desc, Context& context) {
  if (!cufft::api()) return nullptr;
  static std::mutex mutex;
  static auto& plans =
      *new std::map<std::pair<int, Digest>,
                    std::shared_ptr<const LibraryCall>>;  // never destroyed: the driver may have ended by then
  std::lock_guard lock(mutex);
  auto& plan = plans[{context.ordinal(), desc.digest()}];
  if (!plan) plan = std::make_shared<CufftCall>(desc, context);
  return plan;
}

}  // namespace weft::target::cuda
