// Operands that an iteration computes, as weights of few bits, in the registers from which warpgroups multiply A: each
// thread loads what its own fragments are made of, and nothing passes shared memory.
#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;
using kernel::Type;
using kernel::Value;

/// Adds a value and what it is computed from, down to loads, to `members`, held so that no element changes its thread.
/// False: some of it is not computed so.
bool Renderer::hold_as(const Uses& uses, Value v, const Layout& layout, std::map<Value, Layout>& members) const {
  if (uses.is_uniform(v)) return true;
  if (const auto known = members.find(v); known != members.end()) return known->second == layout;
  const Inst* const maker = uses.maker(v);
  if (!maker || held_.contains(v)) return false;
  members.emplace(v, layout);
  const auto hold = [&](Value x) { return hold_as(uses, x, layout, members); };
  if (is_elementwise(maker->op)) return std::all_of(maker->args.begin(), maker->args.end(), hold);
  if (maker->op == Op::reshape) return hold(maker->args[0]);
  if (maker->op == Op::broadcast) {
    if (layout.held != Held::fragments || uses.is_uniform(maker->args[0])) return layout.held == Held::fragments;
    const std::optional<Layout> part = layout_to_repeat(type(maker->args[0]), type(v), layout);
    return part && hold_as(uses, maker->args[0], *part, members);
  }
  // Of an array with an element for each of the operand, fragments read few bytes of many lines: it passes shared
  // memory.
  const bool made_here = maker->op == Op::arange || (maker->op == Op::load && !is_local(maker->ref));
  return made_here && layout.held != Held::fragments;
}

/// Decides which operands A are held as fragments: those of 16 bits that an iteration computes from arrays, and that
/// nothing but the product reads.
void Renderer::hold_operands(const Uses& uses) {
  if (warpgroups_ == 0) return;
  for (const auto& [result, product] : products_) {
    const Value a = product.dot->args[0];
    const Inst* const maker = uses.maker(a);
    const bool computed = maker && is_elementwise(maker->op) && type(a).dtype.size() == 2 && uses.made.contains(a) &&
                          uses.made.at(a).block == uses.made.at(product.dot->results[0]).block;
    if (!computed) continue;
    const std::vector<int64_t>& dims = type(a).dims;
    std::map<Value, Layout> members;
    if (!hold_as(uses, a, fragments_of(dims[0], dims[1], product.layout.row_warps, 1, true), members)) continue;
    const auto reads_alike = [&](const Uses::Position& reader) {
      const Inst& r = *reader.inst;
      const bool dead = is_elementwise(r.op) && !uses.readers.contains(r.results[0]);
      return &r == product.dot || dead || (r.results.size() == 1 && members.contains(r.results[0]));
    };
    const bool alone = std::all_of(members.begin(), members.end(), [&](const auto& m) {
      const std::vector<Uses::Position>& readers = uses.readers.at(m.first);
      return std::all_of(readers.begin(), readers.end(), reads_alike);
    });
    if (!alone) continue;
    made_in_registers_.insert(a);
    for (const auto& [v, layout] : members) {
      held_.emplace(v, layout);
      for (const Uses::Position& reader : uses.readers.at(v))
        if (is_elementwise(reader.inst->op) && type(reader.inst->results[0]).dims == type(v).dims)
          held_.emplace(reader.inst->results[0], layout);  // also what nobody reads
    }
  }
}

/// Counts the registers of operands that are made in registers: two slices, of which one is multiplied while the other
/// is made, and what is loaded for those that follow. One program has an SM where two would have too few.
void Renderer::count_made_registers() {
  for (const auto& [result, product] : products_)
    if (product.a.in_registers && made_in_registers_.contains(product.a.value))
      made_registers_ += 2 * layout_of(product.a.value).registers() * product.a.dtype.size() / 4;
  if (made_registers_ == 0) return;
  for (const auto& [loop, ring] : kept_early_)
    for (const Value v : ring.loads) made_registers_ += layout_of(v).registers();
  for (const auto& [loop, ring] : early_)
    for (const Value v : ring.loads) early_registers_ += (early_iterations(*loop) + 1) * layout_of(v).registers();
  if (!registers_for_copies()) blocks_ = 1;
}

}  // namespace weft::target::cuda
