// Tiles that one product outside of the loops multiplies, and that are like those of the loops: the first or the last
// of what a program takes. They have stages of the loops' ring for themselves, one each, so that the producer copies
// them as far ahead, for the next program too.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;
using kernel::Value;

/// Returns the load of a tile of a loop's stage that lies there as an operand would; null where there is none.
const Inst* Renderer::tile_like(const Operand& x) const {
  for (const auto& [result, product] : products_)
    for (const Operand* y : {&product.a, &product.b})
      if (y->ahead && y->dtype == x.dtype && y->lines == x.lines && y->length == x.length && y->panel == x.panel &&
          y->lines_last == x.lines_last)
        return y->load;
  return nullptr;
}

/// Finds the tiles that have a stage for themselves: products take them in the order of their loads, and no loop and no
/// other one of them stands between.
void Renderer::find_singles(const Uses& uses) {
  if (!singles_allowed_ || sets_ > 1 || rings_of_loops_.empty()) return;
  const Inst* load = nullptr;  // the last one, which nothing has separated from its product
  for (const Inst& i : kernel_.body.insts) {
    if (i.op == Op::load) load = &i;
    if (!i.blocks.empty()) load = nullptr;
    const auto found =
        std::find_if(products_.begin(), products_.end(), [&](const auto& p) { return p.second.made_by() == &i; });
    if (found == products_.end()) continue;
    Product& p = found->second;
    for (Operand* x : {&p.a, &p.b}) {
      if (!x->load || x->ahead || x->load != load || !uses.read_once(load->results[0]) ||
          (x->value != load->results[0] && !uses.read_once(x->value)))
        continue;
      const Inst* const like = tile_like(*x);
      if (!like) continue;
      x->single = true, singles_.emplace(load, like);
      load = nullptr;
    }
  }
}

/// Gives the tiles their matrices, and the places that the loops' tiles have in a stage. Returns why the producer
/// cannot copy them.
std::string Renderer::place_singles(const Uses& uses) {
  std::string why;
  for (auto& [result, product] : products_)
    for (Operand* x : {&product.a, &product.b}) {
      if (!x->single) continue;
      const Operand& like = copied_tiles_.at(singles_.at(x->load)->results[0]);
      const std::optional<Box> box = box_of(uses, boxed_tile(*x), why);
      if (!box) return why;
      if (!std::all_of(x->load->args.begin(), x->load->args.end(),
                       [&](Value v) { return v == kernel::no_value || feeds(uses, v, produced_); }))
        return "what is copied depends on what the program computes";
      x->box = *box, x->offset = like.offset, x->barrier = like.barrier;
      x->map = number_of({x->load->ref, x->dtype, x->load->strides[x->lines_last ? 1 : 0], x->lines,
                          x->panel * x->per(), box->lines, box->columns});
      copied_tiles_[x->load->results[0]] = *x;
    }
  return "";
}

/// Renders the copy of a tile into a stage, of which nothing else is copied.
void Renderer::produce_single(const Inst& i) {
  if (!singles_.contains(&i)) return;
  const Ring& ring = rings_of_loops_.begin()->second;
  const Operand& x = copied_tiles_.at(i.results[0]);
  open("");
  for (int k = 0; k < barriers_; ++k) {
    add(fmt::format("barrier_wait({}, phase ^ 1u);", ring_barrier(k, false, "slot")));
    if (k != x.barrier) add(fmt::format("barrier_arrive({});", ring_barrier(k, true, "slot")));
  }
  produce_tile(x, fmt::format("shared_address(stages) + {} + slot * {}", ring.offset + x.offset, ring.stage_bytes),
               full(x, "slot"));
  add(fmt::format("if (++slot == {}) slot = 0, phase ^= 1u;", ring.stages));
  close();
}

/// Lets the producer refill the stage of a tile that has been multiplied, and goes on to the next one.
void Renderer::release_single(const Product& p) {
  if (!p.a.single && !p.b.single) return;
  add(
      fmt::format("if ((t & 31) == 0) EACH (int k = 0; k < {}; ++k) barrier_arrive(barriers + (({} + k) * {} + slot) * "
                  "8);",
                  barriers_, barriers_, rings_of_loops_.begin()->second.stages));
  add(fmt::format("if (++slot == {}) slot = 0, phase ^= 1u;", rings_of_loops_.begin()->second.stages));
}

}  // namespace weft::target::cuda
