#pragma once
// The interpreter's memory: the caller's buffers and a program's local scratch. Every access is checked against bounds
// and against the accesses of the launch's other programs. Throws MemoryFault; the interpreter adds the kernel,
// instruction and program.
#include <functional>
#include <stdexcept>
#include <vector>

#include "kernel/interpret.h"

namespace weft::kernel {

struct MemoryFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Number read_element(const void* data, Dtype t, int64_t index);
void write_element(void* data, Dtype t, int64_t index, Number v);

class CheckedMemory {
 public:
  CheckedMemory(const Kernel& kernel, std::span<const HostBuffer> buffers);
  /// Poisons all local buffers. The accesses of earlier programs are kept.
  void begin(int64_t program);
  void poison(Ref local);
  Number load(Ref ref, int64_t index);
  void store(Ref ref, int64_t index, Number v);
  /// Replaces an element by change(element), as an atomic instruction does, and returns what it was.
  Number update(Ref ref, int64_t index, const std::function<Number(Number)>& change);

  /// Throws where an element lies outside of the buffer.
  void check(Ref ref, int64_t index) { at(ref, index); }
  int64_t elements(Ref ref) const { return regions_[static_cast<size_t>(ref)].elements; }
  /// Returns the first element of a parameter that no program has written; -1 where all are.
  int64_t first_unwritten(Ref ref) const;

 private:
  struct Region {
    Dtype dtype;
    char* data;
    int64_t elements;
    // One entry per element, of written parameters only: 0 (none), program + 1, or `many`.
    std::vector<int64_t> writer = {}, adder = {}, reader = {};
    std::vector<char> own = {};  // storage of a local buffer
  };
  static constexpr int64_t many = -1;

  Region& at(Ref ref, int64_t index);
  bool others(int64_t mark) const { return mark != 0 && mark != program_ + 1; }
  void mark(int64_t& entry) const { entry = others(entry) ? many : program_ + 1; }

  std::vector<Region> regions_;
  size_t params_;
  int64_t program_ = 0;
};

}  // namespace weft::kernel
