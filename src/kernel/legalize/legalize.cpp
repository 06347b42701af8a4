// The driver: instructions in order. Scalars are computed where they stand, most tiles where they are read; effects,
// reductions, products and what a loop carries become loops over chunks.
#include "kernel/legalize/legalize.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/code/counterpart.h"
#include "kernel/lanes.h"
#include "kernel/legalize/iterations.h"
#include "kernel/legalize/legalizer.h"
#include "kernel/legalize/plan.h"
#include "kernel/op_info.h"
#include "kernel/rules.h"

namespace weft::kernel {

namespace {

bool has_roles(const Inst& inst) {
  return inst.op == Op::roles || std::any_of(inst.blocks.begin(), inst.blocks.end(), [](const Block& b) {
           return std::any_of(b.insts.begin(), b.insts.end(), has_roles);
         });
}

}  // namespace

Legalizer::Legalizer(const Kernel& kernel, const VectorRegisters& registers)
    : from_(kernel), registers_(registers), b_(kernel.name), is_stored_(stored_values(kernel)),
      held_(kernel.types.size()), uses_(kernel.types.size(), 0) {
  count_uses(kernel.body);
  has_roles_ = std::any_of(kernel.body.insts.begin(), kernel.body.insts.end(), has_roles);
}

Kernel Legalizer::run() {
  if (from_.ordered) b_.ordered();
  b_.clustered(from_.cluster);
  for (const Param& p : from_.params) b_.param(p.name, p.dtype, p.written);
  for (const std::string& s : from_.symbols) b_.symbol(s);
  for (const Local& l : from_.locals)
    if (l.arrivals > 0) b_.barriers(l.elements, l.arrivals);
    else b_.reserve(l.dtype, l.elements);
  block(from_.body);
  Kernel out = b_.finish();
  for (size_t k = 0; k < out.params.size(); ++k) out.params[k].constant = from_.params[k].constant;
  return out;
}

void Legalizer::count_uses(const Block& b) {
  for (const Inst& inst : b.insts) {
    for (const Value v : inst.args)
      if (v != no_value) ++uses_[static_cast<size_t>(v)];
    for (const Block& inner : inst.blocks) count_uses(inner);
  }
}

void Legalizer::block(const Block& b) {
  const Block* const outer = std::exchange(block_, &b);
  for (const Inst& inst : b.insts) {
    if (inst.op == Op::yield) break;
    b_.at(from_.lines[static_cast<size_t>(inst.line)].file, from_.lines[static_cast<size_t>(inst.line)].line);
    visit(inst);
  }
  block_ = outer;
}

void Legalizer::visit(const Inst& inst) {
  if (is_asynchronous(inst.op)) return asynchronous(inst);
  switch (inst.op) {
    case Op::alloc: return;
    case Op::prefetch: return b_.prefetch(inst.ref, scalar(inst.args[0]), inst.number.i);
    case Op::store: return store(inst);
    case Op::scatter:
    case Op::atomic_add: return scatter(inst);
    case Op::atomic:
    case Op::exchange_memory:
    case Op::compare_exchange: return update(inst);
    case Op::wait_until: return wait_until(inst);
    case Op::grid_barrier: return b_.grid_barrier();
    case Op::cluster_barrier: return b_.cluster_barrier();
    case Op::load_neighbour:
    case Op::store_neighbour: return reach(inst);
    case Op::reduce: return reduce(inst);
    case Op::scan: return scan(inst);
    case Op::sort: return sort(inst);
    case Op::histogram: return histogram(inst);
    case Op::dot: return dot(inst);
    case Op::print: return print(inst);
    case Op::assert_: return check_condition(inst);
    case Op::loop: return loop(inst);
    case Op::while_loop: return while_loop(inst);
    case Op::branch: return branch(inst);
    case Op::when:
      if (inst.results.empty()) return when(inst);
      break;
    default: break;
  }
  if (type(inst.results[0]).rank() == 0) return scalar_inst(inst);
  lazy(inst);
}

/// Computes an instruction whose result is a scalar.
void Legalizer::scalar_inst(const Inst& inst) {
  const auto arg = [&](size_t k) { return scalar(inst.args[k]); };
  const auto set = [&](Value v) { held(inst.results[0]).scalar = v; };
  switch (inst.op) {
    case Op::constant: return set(b_.constant(inst.type.dtype, inst.number));
    case Op::program_id: return set(b_.program_id());
    case Op::symbol: return set(b_.symbol(from_.symbols[static_cast<size_t>(inst.ref)]));
    case Op::scalar: return set(shared(inst.scalar_op, scalars(inst.args)));
    case Op::cast: return set(b_.cast(arg(0), inst.type.dtype));
    case Op::bitcast: return set(b_.bitcast(arg(0), inst.type.dtype));
    case Op::load: return set(b_.load(inst.ref, arg(0), {}, {}, {}, inst.number, inst.streaming));
    case Op::gather: return set(b_.gather(inst.ref, arg(0), arg(1), inst.number));
    case Op::reshape: {  // the only element of a tile
      if (type(inst.args[0]).rank() == 0) return set(arg(0));
      const Chunk first{std::vector<Value>(type(inst.args[0]).dims.size() - 1, index(0)), index(0), 1};
      return set(lane(value(inst.args[0], first)));
    }
    case Op::extract: {
      const View& from = stored_whole(inst.args[0]);
      return set(b_.load(from.ref, add(from.offset, index(inst.axis * from.strides[0])), {}, {}));
    }
    case Op::permute:
    case Op::slice: return set(arg(0));
    case Op::when: {
      const std::vector<Value> out = b_.when(arg(0), scalars({inst.args.begin() + 1, inst.args.end()}), [&] {
        in_frame([&] { block(inst.blocks[0]); });
        return scalars(inst.blocks[0].insts.back().args);
      });
      for (size_t k = 0; k < out.size(); ++k) held(inst.results[k]).scalar = out[k];
      return;
    }
    default: throw_internal("legalize", fmt::format("{}: a scalar of an unknown kind", print_inst(from_, inst)));
  }
}

std::vector<Value> Legalizer::scalars(const std::vector<Value>& list) const {
  std::vector<Value> out;
  for (const Value v : list)
    if (v != no_value && type(v).rank() == 0) out.push_back(scalar(v));
  return out;
}

/// Returns whether scratch stays as an instruction loads it, as long as the block runs that may read it.
bool Legalizer::stays(const Inst& load) const {
  if (!is_local(from_, load.ref)) return false;
  const std::function<bool(const Inst&)> keeps = [&](const Inst& inst) {
    if (!std::all_of(inst.blocks.begin(), inst.blocks.end(),
                     [&](const Block& b) { return std::all_of(b.insts.begin(), b.insts.end(), keeps); }))
      return false;
    const Access access = info(inst.op).access;
    if (access == Access::none || access == Access::reads)
      return !is_asynchronous(inst.op) && !waits_for_programs(inst.op);
    return (inst.op == Op::store || inst.op == Op::scatter) && inst.ref != load.ref;
  };
  return std::all_of(&load + 1, block_->insts.data() + block_->insts.size(), keeps);
}

/// Keeps an instruction to be computed where its result is read, or stores its result.
void Legalizer::lazy(const Inst& inst) {
  const Value v = inst.results[0];
  for (size_t k = 0; k < inst.results.size(); ++k) {
    held(inst.results[k]).inst = &inst;
    held(inst.results[k]).result = k;
  }
  const bool moves =
      inst.op == Op::permute || inst.op == Op::slice || inst.op == Op::broadcast || inst.op == Op::reshape;
  if (inst.op == Op::load) {
    View view{.ref = inst.ref,
              .dtype = inst.type.dtype,
              .offset = scalar(inst.args[0]),
              .dims = inst.type.dims,
              .strides = inst.strides,
              .limits = {},
              .other = inst.number,
              .streaming = inst.streaming};
    for (size_t k = 1; k < inst.args.size(); ++k) view.limits.push_back(scalar(inst.args[k]));
    held(v).view = view;
    if (!is_lazy(from_, inst) && !is_continued(inst) && !stays(inst)) {  // memory that may change: as it is now
      const View copy = scratch(view.dtype, view.dims);
      store_to(v, copy);
      held(v).view = copy;
    }
    return;
  }
  if (inst.op == Op::cat) {
    const View whole = scratch(inst.type.dtype, inst.type.dims);
    int64_t at = 0;
    for (const Value part : inst.args) {
      View to = whole;
      to.dims = type(part).dims;
      to.offset = index(at * whole.strides[static_cast<size_t>(inst.axis)]);
      store_to(part, to);
      at += to.dims[static_cast<size_t>(inst.axis)];
    }
    held(v).view = whole;
    return;
  }
  if (inst.op == Op::shift || inst.op == Op::exchange)
    throw_internal("legalize", print_inst(from_, inst) + ": lanes of a register are moved by targets alone");
  if (inst.op == Op::take) stored_whole(inst.args[0]);
  if (inst.op == Op::gather && !is_lazy(from_, inst)) {
    const View copy = scratch(inst.type.dtype, inst.type.dims);
    return store_to(v, copy), void(held(v).view = copy);
  }
  if (moves && type(inst.args[0]).rank() > 0) {
    if (!held(inst.args[0]).view && !keeps_chunks(inst)) stored(inst.args[0]);
    if (const auto& from = held(inst.args[0]).view) held(v).view = moved(inst, *from);
    if (!held(v).view && !keeps_chunks(inst)) {  // a tile with limits that takes another shape
      const View copy = scratch(type(inst.args[0]).dtype, type(inst.args[0]).dims);
      store_to(inst.args[0], copy);
      held(v).view = moved(inst, copy);
    }
    return;
  }
  for (const Value result : inst.results)
    if (is_stored_[static_cast<size_t>(result)]) stored(result);
}

void Legalizer::store(const Inst& inst) {
  if (done_.contains(&inst)) return;
  const Value v = inst.args[0];
  View to{.ref = inst.ref,
          .dtype = type(v).dtype,
          .offset = scalar(inst.args[1]),
          .dims = type(v).dims,
          .strides = inst.strides};
  for (size_t k = 2; k < inst.args.size(); ++k) to.limits.push_back(scalar(inst.args[k]));
  if (to.dims.empty()) return b_.store(to.ref, scalar(v), to.offset, {});
  each_chunk(to.dims, to.limits, [&](const Chunk& at) { write(to, at, value(v, at), inst.streaming); });
}

void Legalizer::scatter(const Inst& inst) {
  const auto put = [&](Value v, Value to, Value mask) {
    if (inst.op == Op::scatter) b_.scatter(inst.ref, v, to, mask);
    else b_.atomic_add(inst.ref, v, to, mask);
  };
  if (type(inst.args[0]).rank() == 0) return put(scalar(inst.args[0]), scalar(inst.args[1]), scalar(inst.args[2]));
  each_chunk(type(inst.args[0]).dims, {}, [&](const Chunk& at) {
    put(value(inst.args[0], at), value(inst.args[1], at),
        inst.args[2] == no_value ? no_value : value(inst.args[2], at));
  });
}

/// An atomic that returns what was there: of a tile, into scratch.
void Legalizer::update(const Inst& inst) {
  const auto apply = [&](const std::vector<Value>& a) {
    if (inst.op == Op::atomic) return b_.atomic(inst.scalar_op, inst.ref, a[0], a[1], a[2], inst.ordering);
    if (inst.op == Op::exchange_memory) return b_.exchange_memory(inst.ref, a[0], a[1], a[2], inst.ordering);
    return b_.compare_exchange(inst.ref, a[0], a[1], a[2], a[3], inst.ordering);
  };
  std::vector<Value> args;
  if (inst.type.rank() == 0) {
    for (const Value v : inst.args) args.push_back(scalar(v));
    held(inst.results[0]).scalar = apply(args);
    return;
  }
  const View to = scratch(inst.type.dtype, inst.type.dims);
  each_chunk(inst.type.dims, {}, [&](const Chunk& at) {
    args.clear();
    for (const Value v : inst.args) args.push_back(v == no_value ? no_value : value(v, at));
    write(to, at, apply(args));
  });
  held(inst.results[0]).view = to;
}

/// Prints scalars: the first elements of tiles, in brackets. The text has {} for each value, the program's number
/// first.
void Legalizer::print(const Inst& inst) {
  constexpr int64_t most = 16;
  std::string text = fmt::format("[kernel {}] program {{}}: {}", from_.name, inst.text);
  std::vector<Value> values{b_.program_id()};
  for (const Value v : inst.args) {
    text += " ";
    if (type(v).rank() == 0) {
      text += "{}", values.push_back(scalar(v));
      continue;
    }
    const View& view = stored(v);
    text += "[";
    int64_t lane = 0;
    Dims at(view.dims.size(), 0);
    for (; lane < std::min(most, type(v).size()); ++lane) {
      Chunk one{{}, index(at.back()), 1};
      for (size_t k = 0; k + 1 < at.size(); ++k) one.index.push_back(index(at[k]));
      text += lane > 0 ? ", {}" : "{}", values.push_back(this->lane(read(view, one)));
      for (size_t k = at.size(); k-- > 0;) {
        if (++at[k] < view.dims[k]) break;
        at[k] = 0;
      }
    }
    text += lane < type(v).size() ? ", …]" : "]";
  }
  b_.print(text, values);
}

void Legalizer::check_condition(const Inst& inst) {
  const Value condition = inst.args[0];
  const SourceLine& source = from_.lines[static_cast<size_t>(inst.line)];
  const std::string where = source.line > 0 ? fmt::format("{}:{}: ", source.file, source.line) : "",
                    text = fmt::format("[kernel {}] {}{}", from_.name, where, inst.text);
  if (type(condition).rank() == 0) return b_.assert_(scalar(condition), text);
  each_chunk(type(condition).dims, {}, [&](const Chunk& at) { b_.assert_(value(condition, at), text); });
}

/// Makes a buffer for each tile among what a loop carries, with its initial value. -1: a scalar.
std::vector<Ref> Legalizer::carried_buffers(std::span<const Value> initial) {
  std::vector<Ref> out;
  std::vector<std::pair<Value, View>> copies;
  for (const Value v : initial) {
    if (type(v).rank() == 0) {
      out.push_back(-1);
      continue;
    }
    const View to = scratch(type(v).dtype, type(v).dims);
    out.push_back(to.ref);
    copies.emplace_back(v, to);
  }
  for (const auto& [v, to] : copies) store_to(v, to);
  return out;
}

/// Lets values stand for the tiles in buffers.
void Legalizer::carry_tiles(std::span<const Value> arguments, const std::vector<Ref>& buffers) {
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (buffers[k] < 0) continue;
    const Type& t = type(arguments[k]);
    View view{
        .ref = buffers[k], .dtype = t.dtype, .offset = index(0), .dims = t.dims, .strides = Dims(t.dims.size(), 1)};
    for (size_t axis = t.dims.size(); axis-- > 1;) view.strides[axis - 1] = view.strides[axis] * t.dims[axis];
    view.limits.assign(t.dims.size(), no_value);
    held(arguments[k]) = {};
    held(arguments[k]).view = view;
  }
}

/// Returns whether computing a value reads a buffer; `elsewhere`: at other elements than its own.
bool Legalizer::reads(Value v, Ref buffer, bool elsewhere) const {
  if (v == no_value || type(v).rank() == 0) return false;
  const Held& h = held(v);
  if (h.view) {
    if (h.view->ref != buffer) return false;
    if (!elsewhere) return true;
    int64_t behind = 1;
    for (size_t k = h.view->dims.size(); k-- > 0;) {
      if (h.view->strides[k] != behind) return true;
      behind *= h.view->dims[k];
    }
    int64_t offset = -1;
    return !(b_.known(h.view->offset, offset) && offset == 0);
  }
  if (!h.inst) return false;
  const bool moves = h.inst->op == Op::broadcast || h.inst->op == Op::permute || h.inst->op == Op::slice ||
                     h.inst->op == Op::reshape || h.inst->op == Op::take || h.inst->op == Op::gather;
  std::vector<Value> list = kernel::reads(*h.inst);
  return std::any_of(list.begin(), list.end(), [&](Value arg) { return reads(arg, buffer, elsewhere && !moves); });
}

/// Stores the next values of tiles that a loop carries into their buffers. A value may overwrite what it is computed
/// from element by element; what others still read is overwritten after them, or put aside.
void Legalizer::next_tiles(const std::vector<Value>& next, const std::vector<Ref>& buffers) {
  std::vector<size_t> left;
  const auto target = [&](size_t k) {
    View to{.ref = buffers[k], .dtype = type(next[k]).dtype, .offset = index(0), .dims = type(next[k]).dims};
    to.strides.assign(to.dims.size(), 1), to.limits.assign(to.dims.size(), no_value);
    for (size_t axis = to.dims.size(); axis-- > 1;) to.strides[axis - 1] = to.strides[axis] * to.dims[axis];
    return to;
  };
  for (size_t k = 0; k < next.size(); ++k) {
    if (buffers[k] < 0) continue;
    const auto& view = held(next[k]).view;
    if (view && view->ref == buffers[k] && !reads(next[k], buffers[k], true)) continue;  // it stays as it is
    if (reads(next[k], buffers[k], true)) {
      const View aside = scratch(type(next[k]).dtype, type(next[k]).dims);
      store_to(next[k], aside);
      keep(next[k], aside);
    }
    left.push_back(k);
  }
  while (!left.empty()) {
    auto free = std::find_if(left.begin(), left.end(), [&](size_t k) {
      return std::none_of(left.begin(), left.end(),
                          [&](size_t other) { return other != k && reads(next[other], buffers[k], false); });
    });
    if (free == left.end()) {  // they read each other: one is put aside
      const Value v = next[left[0]];
      const View aside = scratch(type(v).dtype, type(v).dims);
      store_to(v, aside);
      keep(v, aside);
      continue;
    }
    store_to(next[*free], target(*free));
    left.erase(free);
  }
}

void Legalizer::loop(const Inst& inst) {
  const std::span<const Value> initial = std::span(inst.args).subspan(3);
  const std::vector<Ref> buffers = carried_buffers(initial);
  const Block& body = inst.blocks[0];
  pack_invariant(body);
  const std::vector<Value> arguments(body.arguments.begin() + 1, body.arguments.end());
  const std::vector<Value> last =
      b_.loop(scalar(inst.args[0]), scalar(inst.args[1]), scalar(inst.args[2]),
              scalars({initial.begin(), initial.end()}), [&](Value i, const std::vector<Value>& carried) {
                std::vector<Value> next;
                in_frame([&] {
                  held(body.arguments[0]) = {.scalar = i};
                  size_t at = 0;
                  for (size_t k = 0; k < arguments.size(); ++k)
                    if (buffers[k] < 0) held(arguments[k]) = {.scalar = carried[at++]};
                  carry_tiles(arguments, buffers);
                  for (size_t k = 0; k < arguments.size(); ++k)
                    if (buffers[k] >= 0) carried_[arguments[k]] = &body;
                  block(body);
                  next_tiles(body.insts.back().args, buffers);
                  next = scalars(body.insts.back().args);
                });
                return next;
              });
  carry_tiles(inst.results, buffers);
  size_t at = 0;
  for (size_t k = 0; k < inst.results.size(); ++k)
    if (buffers[k] < 0) held(inst.results[k]) = {.scalar = last[at++]};
}

void Legalizer::while_loop(const Inst& inst) {
  const std::vector<Ref> buffers = carried_buffers(inst.args);
  const auto enter = [&](const Block& body, const std::vector<Value>& carried) {
    size_t at = 0;
    for (size_t k = 0; k < body.arguments.size(); ++k)
      if (buffers[k] < 0) held(body.arguments[k]) = {.scalar = carried[at++]};
    carry_tiles(body.arguments, buffers);
    block(body);
  };
  const std::vector<Value> last = b_.while_loop(
      scalars(inst.args),
      [&](const std::vector<Value>& carried) {
        Value holds = no_value;
        in_frame([&] {
          enter(inst.blocks[0], carried);
          holds = scalar(inst.blocks[0].insts.back().args[0]);
        });
        return holds;
      },
      [&](const std::vector<Value>& carried) {
        std::vector<Value> next;
        in_frame([&] {
          enter(inst.blocks[1], carried);
          next_tiles(inst.blocks[1].insts.back().args, buffers);
          next = scalars(inst.blocks[1].insts.back().args);
        });
        return next;
      });
  carry_tiles(inst.results, buffers);
  size_t at = 0;
  for (size_t k = 0; k < inst.results.size(); ++k)
    if (buffers[k] < 0) held(inst.results[k]) = {.scalar = last[at++]};
}

void Legalizer::branch(const Inst& inst) {
  std::vector<Ref> buffers;
  for (const Value v : inst.results)
    buffers.push_back(type(v).rank() == 0 ? -1 : b_.reserve(type(v).dtype, type(v).size()));
  const auto arm = [&](const Block& body) {
    std::vector<Value> out;
    in_frame([&] {
      block(body);
      next_tiles(body.insts.back().args, buffers);
      out = scalars(body.insts.back().args);
    });
    return out;
  };
  const std::vector<Value> out = b_.branch(
      scalar(inst.args[0]), [&] { return arm(inst.blocks[0]); }, [&] { return arm(inst.blocks[1]); });
  carry_tiles(inst.results, buffers);
  size_t at = 0;
  for (size_t k = 0; k < inst.results.size(); ++k)
    if (buffers[k] < 0) held(inst.results[k]).scalar = out[at++];
}

void Legalizer::when(const Inst& inst) {
  b_.when(scalar(inst.args[0]), [&] { in_frame([&] { block(inst.blocks[0]); }); });
}

Kernel legalize(const Kernel& kernel, const VectorRegisters& registers) {
  const Kernel plain = lanes_as_tiles(with_counterparts(kernel));
  return with_overlapped_stores(with_prefetches(Legalizer(plain, registers).run()));
}

}  // namespace weft::kernel
