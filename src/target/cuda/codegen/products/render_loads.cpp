// Loads of tiles that follow products, as epilogues make them: a second thread of the producer copies them by TMA while
// the program multiplies, or while programs before it do. They come in boxes of 128 bytes of all the tile's lines, in
// the order in which the program reads them, into a ring of spaces of their own.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/op_info.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Op;
using kernel::Value;

namespace {

constexpr int64_t line_bytes = 128;

/// Returns the bytes of the stages that hide the latency of copies: four, or three large ones.
int64_t least_bytes_of_stages(int64_t stage) {
  constexpr int64_t large = 40 << 10;
  return (stage > large ? 3 : 4) * stage;
}

std::optional<int64_t> constant_of(const Uses& uses, Value v) {
  const Inst* const maker = uses.maker(v);
  return maker && maker->op == Op::constant ? std::optional(maker->number.i) : std::nullopt;
}

}  // namespace

/// Returns whether what a load reads may be written before it: by its own program, or by another one that its program
/// waits for, by a barrier, a flag or a lock.
bool Renderer::written_before(const Uses& uses, const Inst& load) const {
  bool behind = false, written = false, waits = kernel_.ordered;
  for (const Uses::Position& position : uses.order) {
    const Inst& i = *position.inst;
    behind = behind || &i == &load;
    waits = waits || kernel::waits_for_programs(i.op) ||
            (i.op != Op::store && kernel::info(i.op).access == kernel::Access::updates);
    if (i.op == Op::symbol || i.op == Op::load) continue;
    if (i.ref != load.ref && i.left != load.ref && i.right != load.ref) continue;
    written = true;
    const bool apart = i.op == Op::store && position.block == &kernel_.body && lie_apart(uses, i, load);
    if (!behind && !apart) return true;
  }
  return written && waits;
}

/// Returns how TMA copies a load; nothing where it does not.
std::optional<BoxLoad> Renderer::box_load_of(const Uses& uses, const Inst& i) const {
  const auto held = held_.find(i.results[0]);
  const bool whole = held != held_.end() && held->second.held == Held::fragments && held->second.interleaved &&
                     held->second.column_warps == 1 && i.type.rank() == 2;
  const Dtype dtype = i.type.dtype;
  const bool known = dtype == float32 || dtype == bfloat16 || dtype == float16;
  if (!whole || !known || is_local(i.ref) || !variant_.aligned || filling(i.number, dtype) != 0u) return std::nullopt;
  const int64_t across = line_bytes / dtype.size(), columns = i.type.dims[1];
  if (columns % across != 0 || i.strides[1] != 1 || i.strides[0] % (16 / dtype.size()) != 0) return std::nullopt;
  std::string why;
  const std::optional<Box> box =
      box_of(uses, {i.ref, i.args[0], i.args[1], i.args[2], i.strides[0], i.type.dims[0], columns, across}, why);
  if (!box || written_before(uses, i)) return std::nullopt;
  return BoxLoad{*box, static_cast<int>(columns / across), -1};
}

/// Returns whether so many bytes of a program's loads are worth the stages that their spaces take: not beside a long
/// loop.
bool Renderer::worth_loading_ahead(const Uses& uses, int64_t bytes, int64_t stage) const {
  constexpr int64_t least_part = 16;  // of what the loop copies
  const Inst& loop = *rings_of_loops_.begin()->first;
  const std::optional<int64_t> from = constant_of(uses, loop.args[0]), to = constant_of(uses, loop.args[1]),
                               step = constant_of(uses, loop.args[2]);
  return from && to && step && least_part * bytes >= (*to - *from) / *step * stage;
}

/// Finds the loads behind the loop that copies ahead which TMA copies: all have as many lines, and their spaces leave
/// room for enough stages.
void Renderer::find_box_loads(const Uses& uses) {
  if (rings_of_loops_.size() != 1 || blocks_ > 1) return;
  int64_t stage = 0, lines = 0;
  for (const auto& [result, product] : products_)
    for (const Operand* x : {&product.a, &product.b}) stage += x->load && x->ahead ? x->bytes() : 0;
  bool behind = false;
  std::map<const Inst*, BoxLoad> found;
  for (const Inst& i : kernel_.body.insts) {
    behind = behind || rings_of_loops_.contains(&i);
    if (!behind || i.op != Op::load) continue;
    std::optional<BoxLoad> load = box_load_of(uses, i);
    if (!load || (lines > 0 && i.type.dims[0] != lines)) continue;
    lines = i.type.dims[0], boxes_of_program_ += load->boxes;
    found.emplace(&i, *load);
  }
  if (found.empty() || !worth_loading_ahead(uses, boxes_of_program_ * lines * line_bytes, stage)) return;
  load_space_bytes_ = lines * line_bytes;
  load_spaces_ = sets_ > 1 || boxes_of_program_ > 2 ? 4 : 2;
  const int64_t stored = 2 * BoxStore::bytes * warpgroups_ * sets_;
  while (load_spaces_ > 1 &&
         bytes_of_stages() < stored + load_spaces_ * load_space_bytes_ + least_bytes_of_stages(stage))
    load_spaces_ /= 2;
  if (load_spaces_ > 1) box_loads_ = std::move(found);
}

/// Returns whether the producer knows what a load copies, and adds what makes that.
bool Renderer::feeds_load(const Uses& uses, const Inst& load) {
  return std::all_of(load.args.begin(), load.args.end(),
                     [&](Value v) { return v == kernel::no_value || feeds(uses, v, produced_); });
}

/// Gives the loads their matrices, spaces and mbarriers.
void Renderer::place_loads(const Uses& uses) {
  std::erase_if(box_loads_, [&](const auto& x) { return !feeds_load(uses, *x.first); });
  boxes_of_program_ = 0;
  for (auto& [inst, load] : box_loads_) {
    const Dtype dtype = inst->type.dtype;
    boxes_of_program_ += load.boxes;
    load.map = number_of({inst->ref, dtype, inst->strides[0], inst->type.dims[0], line_bytes / dtype.size(),
                          load.box.lines, load.box.columns});
  }
  if (box_loads_.empty()) return;
  load_offset_ = (stage_bytes_ + 1023) / 1024 * 1024;
  stage_bytes_ = load_offset_ + load_spaces_ * load_space_bytes_;
}

std::string Renderer::load_barrier(bool full) const {
  const int before = 2 * barriers_ * rings_of_loops_.begin()->second.stages + (sets_ > 1 ? sets_ : 0);
  return fmt::format("barriers + ({} + load_space) * 8", before + (full ? 0 : load_spaces_));
}

void Renderer::next_load_space() {
  add(fmt::format("if (++load_space == {}) load_space = 0, load_phase ^= 1u;", load_spaces_));
}

/// Renders the copies of a program's loads, by a thread that does nothing else.
void Renderer::produce_loads() {
  if (box_loads_.empty()) return;
  const std::vector<std::string> names = names_;
  const std::vector<bool> splat = splat_;
  open(fmt::format("if (t == {})", threads_ * sets_ + 32));
  add("int load_space = 0;");
  add("u32 load_phase = 0;");
  if (persistent_) begin_programs(true);
  for (const Inst& i : kernel_.body.insts) {
    if (produced_.contains(&i)) inst(i);
    const auto found = box_loads_.find(&i);
    if (found == box_loads_.end()) continue;
    const TensorCopy& map = maps_[static_cast<size_t>(found->second.map)];
    open("");
    add(fmt::format("const i64 first = {};", at(i.args[0])));
    add(fmt::format("const int {};", first_of(found->second.box, map.pitch)));
    open(fmt::format("for (int g = 0; g < {}; ++g)", found->second.boxes));
    add(fmt::format("barrier_wait({}, load_phase ^ 1u);", load_barrier(false)));
    add(fmt::format("barrier_expect({}, {});", load_barrier(true), load_space_bytes_));
    add(fmt::format("copy_box(shared_address(stages) + {} + load_space * {}, map{}, column + g * {}, line, {});",
                    load_offset_, load_space_bytes_, found->second.map, map.across, load_barrier(true)));
    next_load_space();
    close();
    close();
  }
  if (persistent_) close();
  close();
  names_ = names, splat_ = splat;
}

/// Renders what warpgroups know of the ring before their first program.
void Renderer::begin_loads() {
  if (box_loads_.empty()) return;
  add(fmt::format("int load_space = {};",
                  sets_ > 1 ? fmt::format("set * {} % {}", boxes_of_program_, load_spaces_) : "0"));
  add(fmt::format("u32 load_phase = {};",
                  sets_ > 1 ? fmt::format("(u32)(set * {} / {}) & 1u", boxes_of_program_, load_spaces_) : "0"));
}

/// Passes by the boxes of the programs that the other sets take.
void Renderer::skip_loads() {
  if (box_loads_.empty() || sets_ == 1) return;
  add(fmt::format("load_phase ^= (u32)((load_space + {0}) / {1}) & 1u, load_space = (load_space + {0}) % {1};",
                  (sets_ - 1) * boxes_of_program_, load_spaces_));
}

/// Renders a load of what TMA has copied: threads read their fragments, and the space is free for the next box.
bool Renderer::load_boxes(const Inst& i) {
  const auto found = box_loads_.find(&i);
  if (found == box_loads_.end()) return false;
  const Layout s = layout_of(i.results[0]);
  const int64_t size = i.type.dtype.size(), across = line_bytes / size;
  declare(i.results[0]);
  open(fmt::format("EACH (int g = 0; g < {}; ++g)", found->second.boxes));
  add(fmt::format("barrier_wait({}, load_phase);", load_barrier(true)));
  add(fmt::format("const u8* const box = stages + {} + load_space * {};", load_offset_, load_space_bytes_));
  open(fmt::format("EACH (int i = 0; i < {}; ++i) EACH (int j = 0; j < {}; ++j) EACH (int h = 0; h < 2; ++h)",
                   s.row_fragments(), across / 8));
  add(fmt::format("const int byte = (j * 8 + (t & 3) * 2) * {};", size));
  add(fmt::format(
      "((W{0}*){1})[((i * {2} + g * {3} + j) * 4 + h * 2) / 2] = *(const W{0}*)(box + swizzled<8>((t >> 2 & "
      "7) + {4} + h * 8, byte / 16) + byte % 16);",
      2 * size, fresh(i.results[0]), s.column_fragments(), across / 8, s.first_row("i")));
  close();
  add("__syncwarp();");
  add(fmt::format("if ((t & 31) == 0) barrier_arrive({});", load_barrier(false)));
  next_load_space();
  close();
  return true;
}

}  // namespace weft::target::cuda
