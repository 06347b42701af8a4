#pragma once
// Finds runs in computed indices: chunks of a tile whose indices are consecutive, and indices and conditions that are
// equal for all elements of a chunk. A gather or scatter of consecutive elements travels in words, as a load or store
// does; a gather of one element for a chunk is one load. Indices become
// computed where lanes run along several axes that are not one in memory: x / 32 * 64 + x % 32 has runs of 32.
#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/tile.h"

namespace weft::target::cuda {

/// The integers and bools of a kernel, and what it gathers, over chunks of `length` elements that begin at multiples of
/// `length`. `length` is a power of two.
class Runs {
 public:
  Runs(const kernel::Kernel& kernel, int64_t length);

  /// Returns whether the elements of each chunk are first, first + 1, …, and `length` divides the first.
  bool consecutive(kernel::Value v) const { return fact(v).form == Form::consecutive && fact(v).divisor >= length_; }
  /// Returns whether the elements of each chunk are equal.
  bool uniform(kernel::Value v) const { return fact(v).form == Form::uniform; }

 private:
  enum class Form : uint8_t { varying, uniform, consecutive };
  struct Fact {
    Form form = Form::varying;
    int64_t divisor = 1;           // a power of two that divides a chunk's first element
    std::optional<int64_t> known;  // all elements
  };

  const Fact& fact(kernel::Value v) const { return facts_[static_cast<size_t>(v)]; }
  void visit(const kernel::Block& block);
  Fact of(const kernel::Inst& inst) const;
  Fact scalar(const kernel::Inst& inst) const;
  Fact sum(const Fact& a, const Fact& b, bool minus) const;
  Fact quotient(const Fact& a, const Fact& b) const;
  Fact remainder(const Fact& a, const Fact& b) const;
  Fact less(const Fact& a, const Fact& b) const;

  int64_t length_;
  std::vector<Fact> facts_;  // by value
  const kernel::Kernel& kernel_;
};

}  // namespace weft::target::cuda
