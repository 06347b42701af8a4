// Tiles that products read in all iterations of loops, or outside of them: the producer copies them by TMA once a
// program, at the place of their loads among the loops, into spaces of their own. Warpgroups wait for one where a
// product reads it first, and not where it is loaded: other loads are under way before. Blocks that take programs in
// turns let the producer copy for the next program behind the last product of this one. Tiles whose products do not
// overlap have one space.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;
using kernel::Value;

/// Returns whether an instruction is another one, or has it in its blocks.
static bool holds(const Inst& i, const Inst* sought) {
  return &i == sought || std::any_of(i.blocks.begin(), i.blocks.end(), [&](const kernel::Block& b) {
    return std::any_of(b.insts.begin(), b.insts.end(), [&](const Inst& inner) { return holds(inner, sought); });
  });
}

/// Returns the number of the last instruction of the body that multiplies what is loaded. A product whose sum begins
/// with what is added to it is made where it is added.
size_t Renderer::last_reader(const Inst* load) const {
  size_t last = 0;
  for (const auto& [result, p] : products_) {
    if (p.a.load != load && p.b.load != load) continue;
    for (size_t k = last; k < kernel_.body.insts.size(); ++k)
      if (holds(kernel_.body.insts[k], p.made_by())) last = k;
  }
  return last;
}

/// Gives the tiles that are not copied ahead their spaces. One that is loaded behind the last product of another one
/// has its space.
void Renderer::lay_out_kept() {
  struct Space {
    int64_t offset, bytes;
    size_t last;
    const Inst* tile;
  };
  std::vector<Space> spaces;
  std::map<Value, int64_t> placed;
  const auto place = [&](const Inst* load, int64_t bytes, std::optional<size_t> at) {
    const auto [known, is_new] = placed.try_emplace(load->results[0], stage_bytes_);
    if (!is_new) return known->second;
    for (Space& s : spaces) {
      if (!at || s.bytes < bytes || s.last >= *at) continue;
      kept_before_[load] = s.tile;
      s.tile = load, s.last = last_reader(load);
      return known->second = s.offset;
    }
    if (at) spaces.push_back({stage_bytes_, bytes, last_reader(load), load});
    stage_bytes_ += bytes;
    return known->second;
  };
  std::map<const Inst*, std::vector<Operand*>> operands;
  for (auto& [result, product] : products_)
    for (Operand* x : {&product.a, &product.b})
      if (x->load && !x->ahead && !x->single) operands[x->load].push_back(x);
  for (size_t k = 0; k < kernel_.body.insts.size(); ++k)
    if (const auto own = operands.find(&kernel_.body.insts[k]); own != operands.end())
      for (Operand* x : own->second) x->offset = place(own->first, x->bytes(), k);
  for (auto& [result, product] : products_)
    for (Operand* x : {&product.a, &product.b})
      if (x->load && !x->ahead && !x->single) x->offset = place(x->load, x->bytes(), std::nullopt);
}

/// Finds the tiles that the producer copies once a program: those that it knows the places of, in whole boxes.
void Renderer::find_kept(const Uses& uses) {
  if (sets_ > 1) return;
  for (const Inst& i : kernel_.body.insts) {
    const auto tile = i.op == Op::load ? copied_tiles_.find(i.results[0]) : copied_tiles_.end();
    if (tile == copied_tiles_.end() || tile->second.ahead || tile->second.single) continue;
    // What has the space of another tile waits for that one's mbarrier.
    const auto before = kept_before_.find(&i);
    if (before != kept_before_.end() && !kept_.contains(before->second)) continue;
    Operand& x = tile->second;
    std::string why;
    const std::optional<Box> box = box_of(uses, boxed_tile(x), why);
    std::set<const Inst*> needed;
    if (!box || !std::all_of(i.args.begin(), i.args.end(),
                             [&](Value v) { return v == kernel::no_value || feeds(uses, v, needed); }))
      continue;
    produced_.insert(needed.begin(), needed.end());
    x.box = *box;
    x.map = number_of({x.load->ref, x.dtype, x.load->strides[x.lines_last ? 1 : 0], x.lines, x.panel * x.per(),
                       box->lines, box->columns});
    x.barrier = static_cast<int>(kept_.size());
    kept_.emplace(&i, Kept{x, &kernel_.body.insts[last_reader(&i)]});
  }
  // A space is the producer's for all of its tiles, or for none.
  if (std::any_of(kept_before_.begin(), kept_before_.end(),
                  [&](const auto& x) { return kept_.contains(x.first) != kept_.contains(x.second); }))
    kept_.clear();
}

/// Returns the number of the first mbarrier of kept tiles: those that are full, then those that are empty.
int Renderer::kept_barriers() const {
  return 2 * barriers_ * rings_of_loops_.begin()->second.stages + (box_loads_.empty() ? 0 : 2 * load_spaces_);
}

std::string Renderer::kept_barrier(const Operand& x, bool is_full) const {
  return fmt::format("barriers + {} * 8", kept_barriers() + x.barrier + (is_full ? 0 : static_cast<int>(kept_.size())));
}

/// Returns the load of the last kept tile of a program that has this one's space.
const Inst* Renderer::last_in_space(const Inst* load) const {
  for (const auto& [after, before] : kept_before_)
    if (before == load && kept_.contains(after)) return last_in_space(after);
  return load;
}

/// Renders the copy of a kept tile.
void Renderer::produce_kept(const Inst& i) {
  const auto found = kept_.find(&i);
  if (found == kept_.end()) return;
  const Operand& x = found->second.tile;
  open("");
  if (const auto before = kept_before_.find(&i); before != kept_before_.end())
    add(fmt::format("barrier_wait({}, {});", kept_barrier(kept_.at(before->second).tile, false),
                    persistent_ ? "kept_phase" : "0u"));
  else if (persistent_)
    add(fmt::format("barrier_wait({}, kept_phase ^ 1u);", kept_barrier(kept_.at(last_in_space(&i)).tile, false)));
  produce_tile(x, fmt::format("shared_address(stages) + {}", x.offset), kept_barrier(x, true));
  close();
}

/// Waits for the kept tiles that have been loaded, before an instruction that may multiply them.
void Renderer::wait_for_kept() {
  for (const Inst* load : awaited_)
    add(fmt::format("barrier_wait({}, {});", kept_barrier(kept_.at(load).tile, true),
                    persistent_ ? "kept_phase" : "0u"));
  awaited_.clear();
}

/// Lets the producer copy the tiles of the next program that this instruction was the last one to multiply.
void Renderer::release_kept(const Inst& i) {
  for (const auto& [load, kept] : kept_) {
    if (kept.last != &i || (!persistent_ && last_in_space(load) == load)) continue;
    finish_products(in_flight_.size());
    add(fmt::format("if ((t & 31) == 0) barrier_arrive({});", kept_barrier(kept.tile, false)));
  }
}

}  // namespace weft::target::cuda
