// Renders the producer: a thread of its own warpgroup that copies what warpgroups multiply by TMA, as far ahead as
// there are stages. Each operand of an iteration has a pair of mbarriers a stage: full, which counts the bytes that
// arrive, and empty, at which each warp arrives that has multiplied it. Warpgroups wait for nobody but for their
// operands. Blocks with a producer take programs in turns where programs keep no memory of their own and take equally
// long: the producer copies for the next program while warpgroups finish one.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Op;
using kernel::Value;

/// Returns whether a scalar is made outside of blocks from constants, symbols, the program's number and numbers in
/// arrays that the kernel does not write, and adds what makes it.
bool Renderer::feeds(const Uses& uses, Value v, std::set<const Inst*>& needed) const {
  const auto made = uses.made.find(v);
  if (made == uses.made.end() || made->second.block != &kernel_.body) return false;
  const Inst& i = *made->second.inst;
  const bool read = i.op == Op::load && !is_local(i.ref) && !kernel_.params[static_cast<size_t>(i.ref)].written;
  const bool pure = read || i.op == Op::scalar || i.op == Op::cast || i.op == Op::constant || i.op == Op::program_id ||
                    i.op == Op::symbol;
  if (!pure || i.type.rank() > 0) return false;
  needed.insert(&i);
  return std::all_of(i.args.begin(), i.args.end(),
                     [&](Value x) { return x == kernel::no_value || feeds(uses, x, needed); });
}

BoxedTile boxed_tile(const Operand& x) {
  const kernel::Inst& load = *x.load;
  const size_t line_axis = x.lines_last ? 1 : 0;
  return {load.ref, load.args[0], load.args[1 + line_axis], load.args[2 - line_axis], load.strides[line_axis],
          x.lines,  x.length,     x.panel * x.per()};
}

static constexpr int on = 1, off = 2, where_possible = 3;  // of a launch option

/// Decides whether there is a producer. Returns why not.
std::string Renderer::choose_producer(const Uses& uses) {
  if (kernel_.launch.specialize == off) return "the launch asks for none";
  if (cluster_ > 1) return "its iterations are blocks of a cluster, whose threads all meet";
  if (variant_.segments > 1) return "one launch has several segments";
  if (rings_of_loops_.empty()) return "no loop copies ahead";
  if (blocks_ > 1 && !registers_for_copies()) return "programs share an SM, and leave no registers to another warp";
  if (warpgroups_ > 3) return "its warpgroups leave no registers to another one";
  const Ring* first = nullptr;
  std::vector<std::pair<int64_t, int64_t>> shape;  // of the stages, which all loops share
  std::string why;
  for (const Uses::Position& position : uses.order) {
    const auto found = rings_of_loops_.find(position.inst);
    if (found == rings_of_loops_.end()) continue;
    const Inst& loop = *position.inst;
    if (position.block != &kernel_.body) return "a loop stands in another block";
    std::set<const Inst*> inside(found->second.scalars.begin(), found->second.scalars.end());
    const auto from_outside = [&](Value v) {
      const auto made = uses.made.find(v);
      return v == kernel::no_value || v == loop.blocks[0].arguments[0] ||
             (made != uses.made.end() && inside.contains(made->second.inst)) || feeds(uses, v, produced_);
    };
    bool known = std::all_of(loop.args.begin(), loop.args.begin() + 3, from_outside);
    for (const Inst* i : inside) known = known && std::all_of(i->args.begin(), i->args.end(), from_outside);
    std::vector<std::pair<int64_t, int64_t>> now;
    for (const Value v : found->second.loads) {
      const Operand& x = copied_tiles_.at(v);
      known = known && std::all_of(x.load->args.begin(), x.load->args.end(), from_outside);
      if (!box_of(uses, boxed_tile(x), why)) return why;
      now.emplace_back(x.offset, x.bytes());
    }
    for (const RingVector& v : found->second.vectors) {
      known = known && from_outside(v.load->args[0]);
      now.emplace_back(v.offset, v.bytes());
    }
    if (!known) return "what a loop copies depends on what the program computes";
    if (first && (now != shape || found->second.stages != first->stages || found->second.offset != first->offset))
      return "loops have stages of several kinds";
    first = &found->second, shape = now;
  }
  return "";
}

/// Returns the number of a matrix among those that the entry gets.
int Renderer::number_of(const TensorCopy& map) {
  const auto known = std::find(maps_.begin(), maps_.end(), map);
  const auto number = static_cast<int>(known - maps_.begin());
  if (known == maps_.end()) maps_.push_back(map);
  return number;
}

/// Returns whether a scalar differs from program to program.
static bool depends_on_program(const Uses& uses, Value v) {
  const kernel::Inst* const maker = uses.maker(v);
  if (!maker || maker->op == Op::program_id) return true;
  return std::any_of(maker->args.begin(), maker->args.end(), [&](Value x) { return depends_on_program(uses, x); });
}

/// Gives what a producer copies its mbarriers and matrices.
void Renderer::find_producer(const Uses& uses) {
  no_producer_ = choose_producer(uses);
  producer_ = no_producer_.empty();
  if (!producer_) return box_stores_.clear(), box_loads_.clear();
  const bool equal = std::all_of(rings_of_loops_.begin(), rings_of_loops_.end(), [&](const auto& x) {
    return !depends_on_program(uses, x.first->args[0]) && !depends_on_program(uses, x.first->args[1]);
  });
  persistent_ = kernel_.launch.persistent != off && kernel_.locals.empty() && !kernel_.ordered && !meets() &&
                (equal || kernel_.launch.persistent == on || kernel_.launch.persistent == where_possible);
  for (auto& [loop, ring] : rings_of_loops_) {
    int number = 0;
    for (const Value v : ring.loads) {
      for (auto& [result, product] : products_)
        for (Operand* x : {&product.a, &product.b}) {
          if (!x->load || x->load->results[0] != v) continue;
          x->box = *box_of(uses, boxed_tile(*x), no_producer_);
          const TensorCopy map{
              x->load->ref, x->dtype,      x->load->strides[x->lines_last ? 1 : 0], x->lines, x->panel * x->per(),
              x->box.lines, x->box.columns};
          x->barrier = number, x->map = number_of(map);
          copied_tiles_[v] = *x;
        }
      ++number;
    }
    for (RingVector& v : ring.vectors) v.barrier = number++;
    barriers_ = number;
  }
  no_producer_ = place_singles(uses);
  producer_ = no_producer_.empty();
  if (!producer_) return;
  place_boxes();
  place_loads(uses);
  find_kept(uses);
  barrier_offset_ = stage_bytes_;
  stage_bytes_ += int64_t{16} * barriers_ * rings_of_loops_.begin()->second.stages + (sets_ > 1 ? 8 * sets_ : 0) +
                  (box_loads_.empty() ? 0 : 16 * load_spaces_) + 16 * static_cast<int64_t>(kept_.size());
}

/// Returns the text of an mbarrier of a slot.
std::string Renderer::ring_barrier(int number, bool is_full, const std::string& slot) const {
  const int stages = rings_of_loops_.begin()->second.stages;
  return fmt::format("barriers + ({} + {}) * 8", ((is_full ? 0 : barriers_) + number) * stages, slot);
}

std::string Renderer::full(const Operand& x, const std::string& slot) const {
  return ring_barrier(x.barrier, true, slot);
}

std::string Renderer::empty(const Operand& x, const std::string& slot) const {
  return ring_barrier(x.barrier, false, slot);
}

/// Renders the begin of a program: the mbarriers, and all that the producer does.
void Renderer::begin_producer() {
  if (!arrived_) arrive();
  const int all = 2 * barriers_ * rings_of_loops_.begin()->second.stages;
  add(fmt::format("const u32 barriers = shared_address(stages) + {};", barrier_offset_));
  open("if (t == 0)");
  add(fmt::format("for (int k = 0; k < {}; ++k) barrier_init(barriers + k * 8, k < {} ? 1 : {});", all, all / 2,
                  4 * warpgroups_));
  if (sets_ > 1)
    add(fmt::format("for (int k = 0; k < {}; ++k) barrier_init(barriers + ({} + k) * 8, {});", sets_, all,
                    4 * warpgroups_));
  if (!box_loads_.empty())
    add(fmt::format("for (int k = 0; k < {}; ++k) barrier_init(barriers + ({} + k) * 8, k < {} ? 1 : {});",
                    2 * load_spaces_, all + (sets_ > 1 ? sets_ : 0), load_spaces_, 4 * warpgroups_));
  if (const size_t kept = kept_.size(); kept > 0)
    add(fmt::format("for (int k = 0; k < {}; ++k) barrier_init(barriers + ({} + k) * 8, k < {} ? 1 : {});", 2 * kept,
                    kept_barriers(), kept, 4 * warpgroups_));
  add("fence_barriers();");
  close();
  add("__syncthreads();");
  open(fmt::format("if (t >= {})", threads_ * sets_));
  if (passes_registers()) add("fewer_registers<40>();");
  open(fmt::format("if (t == {})", threads_ * sets_));
  add("int slot = 0;");
  add("u32 phase = 0;");
  const bool in_phases = persistent_ && !kept_.empty();
  if (in_phases) add("u32 kept_phase = 0;");
  const std::vector<std::string> names = names_;
  const std::vector<bool> splat = splat_;
  if (persistent_) begin_programs(true);
  for (const Inst& i : kernel_.body.insts) {
    if (produced_.contains(&i)) inst(i);
    if (rings_of_loops_.contains(&i)) produce(i);
    produce_kept(i);
    produce_single(i);
  }
  if (in_phases) add("kept_phase ^= 1u;");
  if (persistent_) close();
  names_ = names, splat_ = splat;
  close();
  produce_loads();
  add("return;");
  close();
  if (passes_registers()) add(fmt::format("more_registers<{}>();", warpgroups_ * sets_ == 2 ? 232 : 152));
  if (!box_stores_.empty()) add("int space = 0;");
  begin_loads();
  add("int slot = 0;");
  add("u32 phase = 0;");
  if (in_phases) add("u32 kept_phase = 0;");
  if (sets_ > 1) add("u32 turn_phase = set == 0 ? 1 : 0;");
  shared_end_ = std::string::npos;
}

/// Returns the text that defines the line and the column of the element `first`, where a box begins.
std::string Renderer::first_of(const Box& box, int64_t pitch) const {
  const auto from = [&](const AxisEnd& end, Value limit) {
    const std::string extent = end.symbol >= 0 ? fmt::format("s{}", end.symbol) : fmt::format("{}", end.number);
    return fmt::format("(int)({} - ({}))", extent, at(limit));
  };
  if (box.line_limit == kernel::no_value && box.column_limit == kernel::no_value)
    return fmt::format("line = (int)(first / {0}), column = (int)(first % {0})", pitch);
  if (box.line_limit == kernel::no_value)
    return fmt::format("column = {}, line = (int)((first - column) / {})", from(box.columns, box.column_limit), pitch);
  return fmt::format("line = {}, column = {}", from(box.lines, box.line_limit),
                     box.column_limit == kernel::no_value ? fmt::format("(int)(first - (i64)line * {})", pitch)
                                                          : from(box.columns, box.column_limit));
}

/// Renders the copy of a tile to `to`, which arrives at a barrier.
void Renderer::produce_tile(const Operand& x, const std::string& to, const std::string& arrives) {
  const TensorCopy& map = maps_[static_cast<size_t>(x.map)];
  add(fmt::format("const i64 first = {};", at(x.load->args[0])));
  add(fmt::format("const int {};", first_of(x.box, map.pitch)));
  add(fmt::format("const u32 to = {}, arrives = {};", to, arrives));
  add(fmt::format("barrier_expect(arrives, {});", x.lines * x.copied_length() * x.dtype.size()));
  add(fmt::format("EACH (int k = 0; k < {}; ++k) copy_box(to + k * {}, map{}, column + k * {}, line, arrives);",
                  x.copied_length() / map.across, x.lines * x.panel * 16, x.map, map.across));
}

/// Renders the copies of a loop's iterations.
void Renderer::produce(const Inst& loop) {
  const Ring& ring = rings_of_loops_.at(&loop);
  const Value counter = loop.blocks[0].arguments[0];
  name(counter, fresh(counter));
  add("_Pragma(\"unroll 1\")");
  open(fmt::format("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", fresh(counter), at(loop.args[0]), at(loop.args[1]),
                   at(loop.args[2])));
  for (const Inst* i : ring.scalars) inst(*i);
  for (const Value v : ring.loads) {
    const Operand& x = copied_tiles_.at(v);
    open("");
    add(fmt::format("barrier_wait({}, phase ^ 1u);", empty(x, "slot")));
    produce_tile(x, fmt::format("shared_address(stages) + {} + slot * {}", ring.offset + x.offset, ring.stage_bytes),
                 full(x, "slot"));
    close();
  }
  produce_vectors(ring);
  add(fmt::format("if (++slot == {}) slot = 0, phase ^= 1u;", ring.stages));
  close();
  shared_end_ = std::string::npos;
}

std::string Renderer::before_slot(const Inst& loop) const {
  return fmt::format("(slot == 0 ? {} : slot - 1)", rings_of_loops_.at(&loop).stages - 1);
}

/// Lets the producer refill what a product of the iteration before has read.
void Renderer::release_before(const Product& p) {
  if (!producer_) return;
  open(fmt::format("if ({} != {})", fresh(p.loop->blocks[0].arguments[0]), at(p.loop->args[0])));
  release(p, before_slot(*p.loop));
  close();
}

/// Lets the producer refill what a product has read, and no product reads after it.
void Renderer::release(const Product& p, const std::string& slot) {
  std::string arrivals;
  for (const Operand* x : {&p.a, &p.b})
    if (x->last) arrivals += fmt::format("{}barrier_arrive({})", arrivals.empty() ? "" : ", ", empty(*x, slot));
  if (!arrivals.empty()) add(fmt::format("if ((t & 31) == 0) {};", arrivals));
}

}  // namespace weft::target::cuda
