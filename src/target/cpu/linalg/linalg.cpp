#include "target/cpu/linalg/linalg.h"

#include <algorithm>

#include "runtime/threads.h"

namespace weft::target {
namespace {

class OverMatrices final : public LibraryCall {
 public:
  OverMatrices(const kernel::CallDesc& desc, std::function<void(std::span<void* const>)> each)
      : each_(std::move(each)) {
    const size_t batch = desc.inputs[0].extents.size() - (has_pairs(desc) ? 3 : 2);
    for (size_t k = 0; k < batch; ++k) count_ *= desc.inputs[0].extents[k];
    for (const auto* arrays : {&desc.inputs, &desc.outputs})
      for (const kernel::CallDesc::Array& array : *arrays) {
        int64_t bytes = array.dtype.size();
        for (size_t k = batch; k < array.extents.size(); ++k) bytes *= array.extents[k];
        bytes_.push_back(bytes);
      }
  }

  std::string name() const override { return "eigen"; }

  void run(std::span<void* const> operands) const override {
    runtime::parallel_for(count_, [&](int64_t begin, int64_t end) {
      std::vector<void*> one(operands.size());
      for (int64_t k = begin; k < end; ++k) {
        for (size_t i = 0; i < one.size(); ++i) one[i] = static_cast<char*>(operands[i]) + k * bytes_[i];
        each_(one);
      }
    });
  }

 private:
  std::function<void(std::span<void* const>)> each_;
  int64_t count_ = 1;
  std::vector<int64_t> bytes_;  // of one matrix, by operand
};

}  // namespace

bool has_pairs(const kernel::CallDesc& desc) { return desc.name.starts_with("complex_"); }

std::shared_ptr<const LibraryCall> over_matrices(const kernel::CallDesc& desc,
                                                 std::function<void(std::span<void* const>)> each) {
  return std::make_shared<OverMatrices>(desc, std::move(each));
}

MatrixSize matrix_size(const kernel::CallDesc& desc) {
  const std::vector<int64_t>& extents = desc.inputs[0].extents;
  const size_t last = extents.size() - (has_pairs(desc) ? 2 : 1);
  return {extents[last - 1], extents[last]};
}

}  // namespace weft::target
