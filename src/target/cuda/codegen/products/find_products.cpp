// Finds the products of a user's kernel that tensor cores compute, and what each of them reads: tiles that go from
// memory to shared memory without passing registers, ahead of the loop's iteration where it can be; tiles that other
// instructions made; fragments that another product left in registers.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernel/op_info.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Block;
using kernel::DotPrecision;
using kernel::Inst;
using kernel::Op;
using kernel::Type;
using kernel::Value;

namespace {

constexpr int64_t most_ring_bytes = 160 << 10;  // of two stages
constexpr int most_stages = 4;
constexpr int by_fma = 3;  // as a launch says

void visit(const Block& block, Uses& uses) {
  for (const Inst& inst : block.insts) {
    uses.order.push_back({&inst, &block});
    for (const Value v : inst.results) uses.made[v] = {&inst, &block};
    for (const Value v : inst.args)
      if (v != kernel::no_value) uses.readers[v].push_back({&inst, &block});
    const bool elementwise = inst.op == Op::scalar || inst.op == Op::cast || inst.op == Op::bitcast ||
                             inst.op == Op::broadcast || inst.op == Op::reshape;
    const bool same =
        std::all_of(inst.args.begin(), inst.args.end(), [&](Value v) { return uses.uniform.contains(v); });
    if (inst.op == Op::constant || inst.op == Op::program_id || inst.op == Op::symbol || (elementwise && same) ||
        (inst.type.rank() == 0 && inst.results.size() == 1))
      uses.uniform.insert(inst.results[0]);
    for (const Block& inner : inst.blocks) {
      uses.around[&inner] = {&inst, &block};
      if (inst.op == Op::loop) uses.uniform.insert(inner.arguments[0]);
      visit(inner, uses);
    }
  }
}

}  // namespace

Uses::Uses(const kernel::Kernel& kernel) { visit(kernel.body, *this); }

const Inst* Uses::maker(Value v) const {
  const auto found = made.find(v);
  return found == made.end() ? nullptr : found->second.inst;
}

bool Uses::read_once(Value v) const {
  const auto found = readers.find(v);
  return found != readers.end() && found->second.size() == 1;
}

int64_t Operand::chunks() const {
  const int64_t whole = (length + per() - 1) / per();
  if (padded) return whole | 1;
  return whole > 4 ? (whole + 7) / 8 * 8 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(whole)));
}

void Renderer::find_divisors(const Block& block) {
  for (const Inst& inst : block.insts) {
    find_divisor(inst);
    if (inst.op == Op::loop)
      divisors_[static_cast<size_t>(inst.blocks[0].arguments[0])] =
          std::min(divisor(inst.args[0]), divisor(inst.args[2]));
    for (const Block& inner : inst.blocks) find_divisors(inner);
  }
}

void Renderer::note(const Inst& dot, const std::string& text) {
  notes_.push_back(fmt::format("dot %{}: {}", dot.results[0], text));
}

/// Returns why tensor cores do not compute a dot; empty where they do.
std::string Renderer::refusal(const Uses& uses, const Inst& dot) const {
  const Type& a = type(dot.args[0]);
  const bool exact = a.dtype == float32 && dot.precision == DotPrecision::exact;
  if (kernel_.launch.instruction == by_fma && !exact) return "the launch asks for it";
  if (dot.type.rank() != 2) return "it is a batch of products";
  const bool bytes = a.dtype == int8 || a.dtype == uint8;
  if (dot.type.dtype != float32 && !bytes) return fmt::format("it adds in {}", dtype_name(dot.type.dtype));
  if (a.dtype != float32 && a.dtype != float16 && a.dtype != bfloat16 && !is_float8(a.dtype) && !bytes)
    return fmt::format("its operands are {}", dtype_name(a.dtype));
  const int64_t step = 32 / a.dtype.size();
  if (dot.type.dims[0] % 16 != 0 || dot.type.dims[1] % 16 != 0 || a.dims[1] % step != 0)
    return fmt::format("its extents {} x {} x {} are not multiples of 16, 16 and {}", dot.type.dims[0],
                       dot.type.dims[1], a.dims[1], step);
  if (uses.is_uniform(dot.args[0]) || uses.is_uniform(dot.args[1])) return "an operand is one number throughout";
  return "";
}

namespace {

/// Returns how `warps` divide a tile: with the least that a warp has to read; no warps where they cannot.
std::pair<int, int> grid_of(int64_t rows, int64_t columns, int warps, bool whole_rows) {
  std::pair<int, int> best{0, 0};
  for (int i = 1; i <= warps; i *= 2) {
    const int j = warps / i;
    if (rows % (16 * i) != 0 || columns % (16 * j) != 0 || (whole_rows && j > 1)) continue;
    if (best.first == 0 || rows / i + columns / j < rows / best.first + columns / best.second) best = {i, j};
  }
  return best;
}

/// Returns whether a warp had better hold whole rows: they are reduced, or the product is an operand of another one.
bool wants_rows(const Uses& uses, const std::vector<const Inst*>& dots) {
  for (const Uses::Position& position : uses.order) {
    if (position.inst->op != Op::reduce || position.inst->axis != 1 || !position.inst->blocks.empty()) continue;
    const std::vector<int64_t>* dims = nullptr;
    const Inst* maker = uses.maker(position.inst->args[0]);
    if (maker) dims = &maker->type.dims;
    for (const Inst* dot : dots)
      if (dims && *dims == dot->type.dims) return true;
  }
  return std::any_of(dots.begin(), dots.end(), [&](const Inst* dot) {
    const Inst* a = uses.maker(dot->args[0]);
    return a && (a->op == Op::cast || a->op == Op::scalar) && dots.size() > 1;
  });
}

}  // namespace

/// Leaves products of 8-bit floats to fma, where warps have none of them.
void Renderer::drop_float8(std::vector<const Inst*>& dots) {
  std::erase_if(dots, [&](const Inst* dot) {
    if (!is_float8(type(dot->args[0]).dtype)) return false;
    note(*dot, "fma: warps multiply 8-bit floats from sm_89 on, and warpgroups do not as " + no_warpgroups_);
    products_.erase(dot->results[0]);
    return true;
  });
}

/// Chooses the warps of a program, and gives each product that they can divide among themselves its fragments.
void Renderer::choose_warps(const Uses& uses) {
  std::vector<const Inst*> dots;
  for (const auto& [result, product] : products_) dots.push_back(product.dot);
  no_warpgroups_ = choose_warpgroups(uses, dots);
  if (warpgroups_ == 0 && !features_.float8) drop_float8(dots);
  if (dots.empty()) return;
  if (warpgroups_ > 0) {
    threads_ = 128 * warpgroups_;
    for (auto& [result, product] : products_)
      product.layout = fragments_of(product.dot->type.dims[0], product.dot->type.dims[1], 4 * warpgroups_, 1, true);
    return;
  }
  const bool rows = wants_rows(uses, dots);
  const auto larger = [](const Inst* a, const Inst* b) { return a->type.size() < b->type.size(); };
  const kernel::Type& most = (*std::max_element(dots.begin(), dots.end(), larger))->type;
  const int64_t tile_rows = most.dims[0];
  const auto is_exact = [&](const Inst* d) {
    return type(d->args[0]).dtype == float32 && d->precision == DotPrecision::exact;
  };
  exact_ = std::all_of(dots.begin(), dots.end(), is_exact);
  // Each fragment of TF32 is read for half the depth: larger parts of a warp read less.
  const bool wide = !exact_ && std::any_of(dots.begin(), dots.end(),
                                           [&](const Inst* d) { return type(d->args[0]).dtype == float32; });
  int64_t warps = most.size() >= (wide ? 16384 : 32768) ? most.size() / 4096
                  : most.size() >= 16384                ? 8
                                                        : std::max<int64_t>(1, most.size() / 1024);
  if (exact_) warps = std::max<int64_t>(1, most.size() / 2048);
  if (rows) warps = tile_rows >= 128 && most.size() / tile_rows <= 128 ? tile_rows / 32 : tile_rows / 16;
  warps = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(warps, 1, 16))));
  if (kernel_.launch.warps > 0) warps = kernel_.launch.warps;
  while (warps > 1 && kernel_.launch.warps == 0 &&
         grid_of(most.dims[0], most.dims[1], static_cast<int>(warps), rows).first == 0)
    warps /= 2;
  threads_ = 32 * static_cast<int>(warps);
  // Several programs hide the latency of shared memory, where few values are computed beside their sums.
  const auto stores = std::count_if(uses.order.begin(), uses.order.end(),
                                    [](const Uses::Position& x) { return x.inst->op == Op::store; });
  if (exact_ && most.size() <= 64 * threads_ && stores == 1)
    blocks_ = threads_ == 256 ? 2 : threads_ == 128 ? 3 : blocks_;
  for (const Inst* dot : dots) {
    const auto [i, j] = grid_of(dot->type.dims[0], dot->type.dims[1], static_cast<int>(warps), rows);
    if (i > 0) {
      products_.at(dot->results[0]).layout = fragments_of(dot->type.dims[0], dot->type.dims[1], i, j);
      continue;
    }
    products_.erase(dot->results[0]);
    note(*dot, fmt::format("fma: {} warps do not divide its tile", warps));
  }
}

/// Returns whether chunks of 16 bytes of a loaded tile are copied from memory as they are.
bool Renderer::copied_whole(const Uses& uses, const Inst& load, std::string& why) const {
  const std::string name = is_local(load.ref) ? "" : kernel_.params[static_cast<size_t>(load.ref)].name;
  const std::string array = name.empty() ? fmt::format("p{}", load.ref) : name;
  const int64_t per = 16 / load.type.dtype.size();
  const bool last = load.strides[1] != 1;
  const size_t inner = last ? 0 : 1, outer = 1 - inner;
  if (is_local(load.ref)) why = "an operand lies in scratch memory";
  else if (kernel_.params[static_cast<size_t>(load.ref)].written) why = array + " is written";
  else if (!only_multiplied(uses, load.results[0]))
    why = fmt::format("what is loaded of {} has other readers than products", array);
  else if (load.strides[inner] != 1) why = fmt::format("rows of {} are not contiguous", array);
  else if (!variant_.aligned || load.strides[outer] % per != 0 || divisor(load.args[0]) % per != 0 ||
           load.type.dims[inner] % per != 0)
    why = fmt::format("rows of {} are not 16-byte aligned", array);
  else if (!(filling(load.number, load.type.dtype) == 0u))
    why = fmt::format("{} is filled up with other than 0", array);
  return why.empty();
}

/// Returns what argument 0 or 1 of a product is made of. Tensor cores read 8 bits along the contracted axis alone:
/// others pass registers, and are staged so.
Operand Renderer::operand_of(const Uses& uses, const Product& product, size_t argument) const {
  Operand out;
  out.value = product.dot->args[argument];
  out.dtype = type(out.value).dtype;
  bool turned = false;
  const Inst* maker = uses.maker(out.value);
  if (maker && maker->op == Op::permute && type(out.value).rank() == 2 && are_products(uses, out.value)) {
    turned = maker->axes[0] == 1;
    out.value = maker->args[0];
    maker = uses.maker(out.value);
  }
  std::string why;
  const std::vector<int64_t>& dims = type(out.value).dims;
  out.lines = dims[0], out.length = dims[1];
  out.depth_inside = (argument == 0) != turned;
  if (maker && maker->op == Op::load && maker->type.rank() == 2 && copied_whole(uses, *maker, why)) {
    out.load = maker;
    out.lines_last = maker->strides[1] != 1;
    if (out.lines_last) std::swap(out.lines, out.length), out.depth_inside = !out.depth_inside;
  }
  if (out.dtype.size() == 1 && !out.depth_inside) {
    out.load = nullptr, out.lines_last = false, out.depth_inside = true;
    out.lines = dims[0], out.length = dims[1];
    out.transposed = (argument == 0) == turned;
    if (out.transposed) std::swap(out.lines, out.length);
  }
  const int64_t chunks = out.length / out.per();
  out.padded = exact_;
  if (warpgroups_ > 0) out.panel = chunks >= 8 ? 8 : chunks >= 4 ? 4 : 2;
  return out;
}

/// Returns whether `v` depends on nothing that an iteration of the loop computes but integers, which are added to
/// `needed`.
bool Renderer::known_ahead(const Uses& uses, const Inst& loop, Value v, std::set<const Inst*>& needed) const {
  const std::vector<Value>& arguments = loop.blocks[0].arguments;
  if (v == kernel::no_value || v == arguments[0]) return true;
  const auto made = uses.made.find(v);
  if (made == uses.made.end()) return std::find(arguments.begin(), arguments.end(), v) == arguments.end();
  if (made->second.block != &loop.blocks[0]) return true;
  const Inst& i = *made->second.inst;
  if (i.type.rank() > 0 || (i.op != Op::scalar && i.op != Op::cast && i.op != Op::constant)) return false;
  needed.insert(&i);
  return std::all_of(i.args.begin(), i.args.end(), [&](Value x) { return known_ahead(uses, loop, x, needed); });
}

/// Finds what an operand is computed from that an iteration can load while the one before it multiplies.
void Renderer::find_early_loads(const Uses& uses, const Inst& loop, Value v) {
  const auto made = uses.made.find(v);
  if (made == uses.made.end() || made->second.block != &loop.blocks[0]) return;
  const Inst& i = *made->second.inst;
  if (i.op != Op::load) {
    if (is_elementwise(i.op) || i.op == Op::broadcast || i.op == Op::reshape || i.op == Op::permute)
      for (const Value x : i.args)
        if (x != kernel::no_value) find_early_loads(uses, loop, x);
    return;
  }
  std::set<const Inst*> needed;
  const bool read_only = !is_local(i.ref) && !kernel_.params[static_cast<size_t>(i.ref)].written;
  const bool known =
      std::all_of(i.args.begin(), i.args.end(), [&](Value x) { return known_ahead(uses, loop, x, needed); });
  const auto counts = [&](const std::vector<Value>& args) {
    return std::find(args.begin(), args.end(), loop.blocks[0].arguments[0]) != args.end();
  };
  const bool changes =
      counts(i.args) || std::any_of(needed.begin(), needed.end(), [&](const Inst* x) { return counts(x->args); });
  constexpr int most_kept = 16;  // registers
  if (!read_only || !known || i.type.rank() == 0 || early_loads_.contains(v)) return;
  if (!changes && layout_of(v).registers() > most_kept) return;
  early_loads_.insert(v);
  Ring& ring = changes ? early_[&loop] : kept_early_[&loop];
  ring.loads.push_back(v);
  add_scalars(loop, needed, ring);
}

/// Adds what addresses are made of to the scalars of a ring, in the order of the loop's body.
void Renderer::add_scalars(const Inst& loop, const std::set<const Inst*>& needed, Ring& ring) {
  for (const Inst& scalar : loop.blocks[0].insts)
    if (needed.contains(&scalar) && std::find(ring.scalars.begin(), ring.scalars.end(), &scalar) == ring.scalars.end())
      ring.scalars.push_back(&scalar);
}

/// Decides that the loop around a product copies its operands ahead. Returns why it does not.
std::string Renderer::copy_ahead(const Uses& uses, Product& product) {
  const Block* const block = uses.made.at(product.dot->results[0]).block;
  const auto around = uses.around.find(block);
  if (around == uses.around.end() || around->second.inst->op != Op::loop) return "it stands in no loop";
  const Inst& loop = *around->second.inst;
  Ring& ring = rings_of_loops_[&loop];
  std::string why;
  for (Operand* x : {&product.a, &product.b}) {
    const Inst* maker = uses.maker(x->value);
    if (maker && uses.made.at(x->value).block != block) continue;  // the same in all iterations
    if (!x->load) {
      if (!x->in_registers || made_in_registers_.contains(x->value)) find_early_loads(uses, loop, x->value);
      if (why.empty() && maker && maker->op == Op::load && maker->type.rank() == 2) copied_whole(uses, *maker, why);
      continue;
    }
    std::set<const Inst*> needed;
    const auto known = [&](Value v) { return known_ahead(uses, loop, v, needed); };
    if (!std::all_of(x->load->args.begin(), x->load->args.end(), known)) {
      why = fmt::format("where p{} is read depends on what an iteration computes", x->load->ref);
      continue;
    }
    x->ahead = true;
    product.loop = &loop;
    if (std::find(ring.loads.begin(), ring.loads.end(), x->load->results[0]) == ring.loads.end())
      ring.loads.push_back(x->load->results[0]);
    add_scalars(loop, needed, ring);
  }
  return product.loop ? "" : why.empty() ? "its operands are computed, or the same in all iterations" : why;
}

/// Returns how many stages a loop has. Two programs share an SM where that leaves each of them as many as it needs:
/// what is multiplied beside the copies takes two.
int Renderer::stages_of(const Inst& loop, const Ring& ring) {
  constexpr int64_t least = 2;
  const int64_t asked = loop.axis > 0 ? loop.axis : kernel_.launch.stages, most = asked > 0         ? asked
                                                                                  : warpgroups_ > 0 ? 2 * most_stages
                                                                                                    : most_stages;
  const auto room = [&] { return (bytes_of_stages() - ring.offset) / ring.stage_bytes; };
  const bool beside = std::any_of(products_.begin(), products_.end(),
                                  [&](const auto& p) { return p.second.loop == &loop && p.second.in_place; });
  const int64_t needed = asked > 0 ? asked : beside ? 2 * least : least;
  if (blocks_ > 2 && room() < needed) blocks_ = 2;
  if (blocks_ > 1 && room() < needed) blocks_ = 1;
  return static_cast<int>(std::clamp(room(), least, std::max(most, least)));
}

/// Gives copied operands their space: those that are the same in all iterations, then the stages of each loop, as many
/// as there is room for.
void Renderer::lay_out_stages(const Uses& uses) {
  std::map<Value, int64_t> placed;  // by what is loaded: products share it
  const auto append = [&](Operand& x, int64_t& end) {
    const auto [at, fresh] = placed.try_emplace(x.load->results[0], end);
    x.offset = at->second;
    if (fresh) end += x.bytes();
  };
  const auto not_in_place = [](Product& p) { p.in_place = p.a.in_turns = p.b.in_turns = false; };
  const auto ring_bytes = [](const Operand& x) { return x.ahead ? x.bytes() : 0; };
  for (auto& [result, product] : products_)
    if (product.loop && 2 * (ring_bytes(product.a) + ring_bytes(product.b)) > most_ring_bytes) {
      const Inst* const loop = product.loop;
      rings_of_loops_.erase(loop);
      for (auto& [other, same] : products_)
        if (same.loop == loop) same.loop = nullptr, same.a.ahead = same.b.ahead = false, not_in_place(same);
    }
  lay_out_kept();
  for (auto& [result, product] : products_)
    for (Operand* x : {&product.a, &product.b})
      if (x->in_turns) x->offset = stage_bytes_, stage_bytes_ += 2 * x->bytes();
  // A loop inside another one has stages behind that one's; loops that follow each other have the same.
  const int64_t first = stage_bytes_;
  for (const Uses::Position& position : uses.order) {
    const auto found = rings_of_loops_.find(position.inst);
    if (found == rings_of_loops_.end()) continue;
    Ring& ring = found->second;
    for (auto& [result, product] : products_)
      for (Operand* x : {&product.a, &product.b})
        if (x->ahead && product.loop == position.inst) append(*x, ring.stage_bytes);
    if (ring.stage_bytes == 0) continue;
    lay_out_vectors(ring);
    ring.offset = first;
    for (auto around = uses.around.find(position.block); around != uses.around.end();
         around = uses.around.find(around->second.block))
      if (const auto outer = rings_of_loops_.find(around->second.inst);
          outer != rings_of_loops_.end() && outer->second.stages > 0)
        ring.offset = std::max(ring.offset, outer->second.offset + outer->second.stages * outer->second.stage_bytes);
    ring.stages = stages_of(*position.inst, ring);
    for (auto& [result, product] : products_)
      if (product.loop == position.inst && product.in_place) {
        if (ring.stages == 2) not_in_place(product);
        else ring.read = 2;
      }
    stage_bytes_ = std::max(stage_bytes_, ring.offset + ring.stages * ring.stage_bytes);
  }
  std::erase_if(rings_of_loops_, [](const auto& x) { return x.second.stage_bytes == 0; });
}

/// Finds where the operands of all products come from, and says so.
void Renderer::find_sources(const Uses& uses) {
  std::map<Value, std::string> whys;
  for (auto& [result, product] : products_) {
    product.a = operand_of(uses, product, 0);
    product.b = operand_of(uses, product, 1);
    const auto& a = held_.find(product.a.value);
    if (product.a.value == product.dot->args[0] && a != held_.end() && a->second.held == Held::fragments &&
        a->second.column_warps == 1 && a->second.row_warps == product.layout.row_warps && product.a.dtype.size() == 2)
      product.a.in_registers = true;
    whys[result] = copy_ahead(uses, product);
    product.a.in_registers = product.a.in_registers && !product.a.load;
  }
  count_made_registers();
  if (exact_ && !early_.empty()) blocks_ = 0;  // what is loaded early takes registers as well
  if (warpgroups_ > 0) {
    find_in_place(uses);
    share_by_three();
    find_vectors(uses);
    find_singles(uses);
    find_box_loads(uses);
    find_box_stores(uses);
    exchanged_bytes_ = exchanges(uses) ? int64_t{64} * threads_ * sets_ : 0;
  }
  lay_out_stages(uses);
  find_last_readers(uses);
  for (const auto& [result, product] : products_)
    for (const Operand* x : {&product.a, &product.b})
      if (x->load) copied_tiles_[x->load->results[0]] = *x;
  if (warpgroups_ > 0) find_producer(uses), find_flights();
  for (const auto& [result, product] : products_) {
    const std::string why = product.loop || !whys[result].empty() ? whys[result] : "its stages take too much memory";
    const std::string kind = product.exact()                                ? "float32"
                             : product.a.dtype != float32                   ? std::string(dtype_name(product.a.dtype))
                             : product.dot->precision == DotPrecision::tf32 ? "tf32"
                                                                            : "three times tf32";
    const std::string copies = why.empty() ? "copied ahead" : "not pipelined: " + why;
    if (warpgroups_ > 0)
      note(*product.dot,
           fmt::format("wgmma of {} by {} warpgroup{}{}{}{}; {}", kind, warpgroups_, warpgroups_ > 1 ? "s" : "",
                       sets_ > 1           ? ", two programs in turns"
                       : no_turns_.empty() ? ""
                                           : "; not in turns: " + no_turns_,
                       made_in_registers_.contains(product.a.value) ? ", A made in registers" : "",
                       product.in_place ? ", beside the copies" : "",
                       producer_ ? "copied by TMA, by a warpgroup of its own" : copies + "; no TMA: " + no_producer_));
    else
      note(*product.dot,
           fmt::format("{} of {} by {} x {} warps; {}; no wgmma: {}", product.exact() ? "fma" : "mma.sync", kind,
                       product.layout.row_warps, product.layout.column_warps, copies, no_warpgroups_));
  }
  for (auto& [result, product] : products_)
    for (const Operand* x : {&product.a, &product.b}) {
      const Value seen = product.dot->args[x == &product.b];
      if (x->value != seen) replaced_.insert(seen);
      const Inst* maker = uses.maker(seen);
      if (x->in_registers && maker && maker->op == Op::cast && type(maker->args[0]).dtype == float32 &&
          uses.read_once(seen))
        replaced_.insert(seen), casts_[seen] = maker->args[0];
    }
}

/// Finds the products, and the additions that their accumulators absorb.
void Renderer::find_products(const Uses& uses) {
  for (const Uses::Position& position : uses.order) {
    const Inst& dot = *position.inst;
    if (dot.op != Op::dot) continue;
    if (const std::string why = refusal(uses, dot); !why.empty()) {
      note(dot, "fma: " + why);
      continue;
    }
    Product& product = products_[dot.results[0]];
    product.dot = &dot;
    const Inst* c = uses.maker(dot.args[2]);
    if (!c || c->op != Op::constant || c->number.real() != 0 || !uses.read_once(dot.results[0])) continue;
    if (type(dot.args[0]).dtype == float32 && dot.precision == DotPrecision::exact) continue;  // it is rounded before
    const Uses::Position& reader = uses.readers.at(dot.results[0])[0];
    if (reader.block == position.block && reader.inst->op == Op::scalar &&
        reader.inst->scalar_op == kernel::ScalarOp::add)
      product.sum = reader.inst;
  }
}

}  // namespace weft::target::cuda
