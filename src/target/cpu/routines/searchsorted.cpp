// The call `searchsorted` (defined in graph/calls/call_sort.cpp): a binary search for each value.
#include <algorithm>
#include <memory>

#include "kernel/routines/sort_key.h"
#include "runtime/threads.h"
#include "target/cpu/routines/calls.h"

namespace weft::target {
using kernel::by_width;
using kernel::key_of;
using kernel::key_rule;
using kernel::KeyRule;

namespace {

template <class U>
class Search final : public LibraryCall {
 public:
  Search(Dtype dtype, int64_t n, int64_t per_row, int64_t values, bool right)
      : rule_(key_rule(dtype)), n_(n), per_row_(per_row), values_(values), right_(right) {}
  std::string name() const override { return "binary search"; }

  void run(std::span<void* const> operands) const override {
    const U *sorted = static_cast<const U*>(operands[0]), *values = static_cast<const U*>(operands[1]);
    uint32_t* out = static_cast<uint32_t*>(operands[2]);
    constexpr int64_t grain = 1024;
    runtime::parallel_for((values_ + grain - 1) / grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin * grain; k < std::min(end * grain, values_); ++k) {
        const U* row = sorted + k / per_row_ * n_;
        const U key = key_of(values[k], rule_);
        const U* found = right_ ? std::upper_bound(row, row + n_, key, [&](U a, U b) { return a < key_of(b, rule_); })
                                : std::lower_bound(row, row + n_, key, [&](U a, U b) { return key_of(a, rule_) < b; });
        out[k] = static_cast<uint32_t>(found - row);
      }
    });
  }

 private:
  KeyRule rule_;
  int64_t n_, per_row_, values_;
  bool right_;
};

template <class U>
std::shared_ptr<const LibraryCall> make_search(const kernel::CallDesc& d) {
  int64_t rows = 1, values = 1;
  for (size_t k = 0; k + 1 < d.inputs[0].extents.size(); ++k) rows *= d.inputs[0].extents[k];
  for (int64_t n : d.inputs[1].extents) values *= n;
  return std::make_shared<Search<U>>(d.inputs[0].dtype, d.inputs[0].extents.back(), values == 0 ? 1 : values / rows,
                                     values, d.integers[0] != 0);
}

}  // namespace

std::shared_ptr<const LibraryCall> cpu_searchsorted(const kernel::CallDesc& desc) {
  return by_width(desc.inputs[0].dtype, [&]<class U>(U) { return make_search<U>(desc); });
}

}  // namespace weft::target
