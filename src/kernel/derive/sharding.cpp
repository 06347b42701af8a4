#include "kernel/derive/sharding.h"

#include <algorithm>
#include <set>

#include "kernel/derive/footprint.h"
#include "kernel/op_info.h"

namespace weft::kernel {

namespace {

using Which = Footprints::Which;
using Division = Footprints::Division;

/// Returns whether programs touch arrays by loads, stores, gathers and scatters alone, and each for itself.
bool works_alone(const Block& block) {
  return std::all_of(block.insts.begin(), block.insts.end(), [](const Inst& i) {
    const bool apart = i.op != Op::source && !is_asynchronous(i.op) && !waits_for_programs(i.op) &&
                       info(i.op).access != Access::updates;
    return apart && std::all_of(i.blocks.begin(), i.blocks.end(), works_alone);
  });
}

const Division* division_by(const std::vector<Division>& all, const Atom& digit) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Division& d) { return d.digit == digit; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

ArrayFactors array_factors(const Kernel& kernel, const std::vector<std::vector<int64_t>>& dims, int64_t programs,
                           bool exact, const std::vector<int64_t>& bounds) {
  ArrayFactors out;
  for (const std::vector<int64_t>& d : dims) {
    out.of_axes.emplace_back(d.size(), -1);
    out.blocks.emplace_back(d.size(), 0);
  }
  if (kernel.ordered || kernel.cluster > 0 || !works_alone(kernel.body)) return out;
  const Footprints footprints(kernel, programs, exact, bounds);
  std::vector<std::vector<Division>> divisions;
  std::set<Atom> digits;
  for (size_t k = 0; k < dims.size(); ++k) {
    const bool written = kernel.params[k].written;
    divisions.push_back(footprints.divisions(static_cast<Ref>(k), dims[k], written ? Which::both : Which::loads));
    if (written)
      for (const Division& d : divisions.back()) digits.insert(d.digit);
  }
  int next = 0;
  for (const Atom& digit : digits) {
    bool divides = true;
    for (size_t k = 0; k < dims.size(); ++k)
      divides = divides && (!kernel.params[k].written || division_by(divisions[k], digit));
    if (!divides) continue;
    for (size_t k = 0; k < dims.size(); ++k)
      if (const Division* const d = division_by(divisions[k], digit); d && out.of_axes[k][d->axis] < 0)
        out.of_axes[k][d->axis] = next, out.blocks[k][d->axis] = d->block;
    ++next;
  }
  return out;
}

}  // namespace weft::kernel
