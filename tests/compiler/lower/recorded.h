#pragma once
// The kernels that a program was compiled to.
#include <utility>
#include <vector>

#include "compiler/compiled_when_run.h"
#include "target/target.h"

namespace weft::compiler::testing {

/// The CPU, which also records the kernels that it is given.
class RecordingTarget : public target::Target {
 public:
  RecordingTarget() { machine_ = target::cpu().machine(); }
  std::string fingerprint() const override { return "recording"; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> all) override {
    kernels.insert(kernels.end(), all.begin(), all.end());
    return weft::test::compile_when_run(all);
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  std::shared_ptr<const target::LibraryCall> call(const kernel::CallDesc&) const override { return nullptr; }
  target::CompileStats stats() const override { return {}; }

  std::vector<kernel::Kernel> kernels;
};

/// Counts the instructions of a block that `is` holds for, and those of the blocks inside of it.
template <class Is>
std::pair<int, int> count(const kernel::Block& block, Is is) {
  std::pair<int, int> found;
  for (const kernel::Inst& inst : block.insts) {
    found.first += is(inst) ? 1 : 0;
    for (const kernel::Block& inner : inst.blocks) {
      const auto [own, deeper] = count(inner, is);
      found.second += own + deeper;
    }
  }
  return found;
}

}  // namespace weft::compiler::testing
