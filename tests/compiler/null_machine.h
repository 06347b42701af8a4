#pragma once
// A stated machine that compiles and runs nothing, so that launches and bytes of programs for it can be counted: the
// libraries of its kind take what they take on such a machine.
#include <memory>
#include <string>

#include "target/target.h"

namespace weft::test {

class NullMachine final : public target::Target {
 public:
  explicit NullMachine(std::string_view name) { machine_ = target::stated_machine(name); }
  std::string fingerprint() const override { return "null " + machine_.name; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    return target::null().compile(kernels);
  }
  /// Products of float32 and bfloat16, and on a GPU of float16.
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc& desc) const override {
    kernel::DotDesc asked = desc;
    if (machine_.simt)
      for (Dtype* t : {&asked.a, &asked.b, &asked.c})
        if (*t == float16) *t = bfloat16;
    return target::null().library(asked);
  }
  /// Of 16-bit floats on a GPU.
  std::shared_ptr<const target::LibraryCall> attention(const kernel::AttentionDesc& desc) const override {
    if (!machine_.simt || desc.dtype.size() != 2) return nullptr;
    return target::null().call({});
  }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc& desc) const override {
    return target::null().call(desc);
  }
  target::CompileStats stats() const override { return {}; }
};

}  // namespace weft::test
