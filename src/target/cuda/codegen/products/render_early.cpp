// Renders what a loop loads into registers an iteration or two before it computes operands from it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

/// Returns how many iterations ahead a loop loads what it computes operands from. ptxas places loads behind what an
/// iteration computes, as nothing waits for them there: one iteration ahead, the next one waits for memory.
int Renderer::early_iterations(const Inst& loop) const {
  constexpr int64_t most_registers = 32, least_other = 24;
  int64_t registers = 0;
  for (const Value v : early_.at(&loop).loads) registers += layout_of(v).registers();
  const bool fits = made_registers_ == 0 ||
                    registers_ - other_registers + least_other + made_registers_ + 3 * registers <= most_of_three;
  return registers <= most_registers && fits ? 2 : 1;
}

/// Renders loads of a ring as the iteration at `step` makes them, if there is one: into arrays whose names begin with
/// `to`.
void Renderer::load_early(const Inst& loop, const Ring& ring, const std::string& step, const std::string& to) {
  const std::vector<std::string> names = names_;
  open("");
  add(fmt::format("const i64 early = {};", step));
  name(loop.blocks[0].arguments[0], "early");
  open(fmt::format("if (early < {})", at(loop.args[1])));
  for (const Inst* i : ring.scalars) inst(*i);
  early_now_ = to != "kept";
  for (const Inst& i : loop.blocks[0].insts) {
    if (i.results.size() != 1 || std::find(ring.loads.begin(), ring.loads.end(), i.results[0]) == ring.loads.end())
      continue;
    load(i);
    copy_registers(i.results[0], fmt::format("{}{}", to, i.results[0]), names_[static_cast<size_t>(i.results[0])]);
  }
  early_now_ = false;
  close();
  close();
  names_ = names;
  shared_end_ = std::string::npos;
}

/// Returns whether what is loaded early stays in words of four elements: bytes would take a register each.
bool Renderer::is_packed(Value v) const { return type(v).dtype.size() == 1 && layout_of(v).registers() % 4 == 0; }

/// Renders a copy of all registers of a tile between two arrays.
void Renderer::copy_registers(Value v, const std::string& to, const std::string& from) {
  const int registers = layout_of(v).registers();
  if (is_packed(v))
    add(fmt::format("EACH (int r = 0; r < {}; ++r) ((u32*){})[r] = ((const u32*){})[r];", registers / 4, to, from));
  else add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {}[r];", registers, to, from));
}

/// Renders the arrays that loads of a ring go to.
void Renderer::declare_early(const Ring& ring, const std::string& name) {
  for (const Value v : ring.loads)
    add(fmt::format("{}{} {}{}[{}];", is_packed(v) ? "alignas(16) " : "", type_name(type(v).dtype), name, v,
                    layout_of(v).registers()));
}

/// Loads what all iterations compute operands from alike, which stays in registers. A loop without iterations loads
/// nothing: its arrays may be empty.
void Renderer::load_kept(const Inst& loop) {
  const auto found = kept_early_.find(&loop);
  if (found == kept_early_.end()) return;
  declare_early(found->second, "kept");
  load_early(loop, found->second, at(loop.args[0]), "kept");
  for (const Value v : found->second.loads) name(v, fmt::format("kept{}", v));
}

/// Asks the L2 for the lines of memory that fragments are made of two lines' worth of iterations behind `step`, or one
/// line's: registers hold what two iterations read, which does not hide the latency of memory where few rows of B are
/// multiplied. Iterations that begin a line do so.
void Renderer::prefetch_early(const Inst& loop, const std::string& step, int lines) {
  constexpr int64_t line_bytes = 128;
  const Ring& ring = early_.at(&loop);
  std::set<kernel::Ref> asked;
  for (const Inst& i : loop.blocks[0].insts) {
    if (i.results.size() != 1 || std::find(ring.loads.begin(), ring.loads.end(), i.results[0]) == ring.loads.end())
      continue;
    const Layout layout = layout_of(i.results[0]);
    if (layout.held != Held::row_parts || i.type.rank() != 2 || !asked.insert(i.ref).second) continue;
    const int64_t bytes = i.type.dims[1] * i.strides[1] * i.type.dtype.size(), of_line = line_bytes / bytes;
    if (of_line < 1 || bytes < 16) continue;
    const auto iterations = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(of_line)));
    const std::vector<std::string> names = names_;
    open(fmt::format("if ({} / {} % {} == 0)", step, at(loop.args[2]), iterations));
    add(fmt::format("const i64 later = {} + {} * {};", step, lines * iterations, at(loop.args[2])));
    name(loop.blocks[0].arguments[0], "later");
    open(fmt::format("if (later < {})", at(loop.args[1])));
    for (const Inst* scalar : ring.scalars) inst(*scalar);
    prefetch_rows(i);
    close();
    close();
    names_ = names;
    shared_end_ = std::string::npos;
  }
}

/// Begins the first loads of a loop.
void Renderer::begin_early(const Inst& loop) {
  const Ring& ring = early_.at(&loop);
  prefetch_early(loop, at(loop.args[0]), 1);
  declare_early(ring, "early");
  load_early(loop, ring, at(loop.args[0]), "early");
  if (early_iterations(loop) == 1) return;
  declare_early(ring, "later");
  load_early(loop, ring, fmt::format("{} + {}", at(loop.args[0]), at(loop.args[2])), "later");
}

/// Takes what an iteration before has loaded, and begins the next loads. Where two iterations are loaded ahead, their
/// arrays change places: with two iterations unrolled, registers do not.
void Renderer::next_early(const Inst& loop) {
  const bool two = early_iterations(loop) > 1;
  for (const Value v : early_.at(&loop).loads) {
    declare(v);
    copy_registers(v, fresh(v), fmt::format("early{}", v));
    if (two) copy_registers(v, fmt::format("early{}", v), fmt::format("later{}", v));
  }
  load_early(loop, early_.at(&loop),
             fmt::format("{} + {}{}", fresh(loop.blocks[0].arguments[0]), two ? "2 * " : "", at(loop.args[2])),
             two ? "later" : "early");
  prefetch_early(loop, fresh(loop.blocks[0].arguments[0]), 2);
}

}  // namespace weft::target::cuda
