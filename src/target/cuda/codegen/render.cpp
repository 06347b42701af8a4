#include "target/cuda/codegen/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kernel/rules.h"
#include "target/cuda/codegen/renderer.h"
#include "target/cuda/codegen/text/source.h"

namespace weft::target::cuda {

using kernel::Block;
using kernel::Op;
using kernel::Ref;

namespace {

constexpr int64_t most_divisor = int64_t{1} << 30;

int64_t power_of_two_in(int64_t v) { return v == 0 ? most_divisor : std::min(most_divisor, v & -v); }

}  // namespace

Renderer::Renderer(const kernel::Kernel& kernel, const Variant& variant, const Features& features,
                   const Refused& refused)
    : kernel_(kernel), general_(kernel.any_size || !kernel::is_basic(kernel)), variant_(variant), features_(features),
      no_warps_fit_(refused.warps_of_iterations), names_(kernel.types.size()), splat_(kernel.types.size(), false),
      divisors_(kernel.types.size(), 1), no_warpgroups_(refused.warpgroups), no_turns_(refused.turns),
      singles_allowed_(!refused.singles) {
  analyze(kernel.body);
  distribute_iterations();
  choose_iterations();
  for (const kernel::Local& local : kernel.locals) {
    const int64_t period = std::max<int64_t>(16, 8 * local.swizzle);  // after which a swizzle begins anew
    local_bytes_ = (local_bytes_ + period - 1) / period * period;
    local_offsets_.push_back(local_bytes_);
    const auto ref = static_cast<Ref>(kernel.params.size() + local_offsets_.size() - 1);
    const int64_t elements = partial_rows_.contains(ref)       ? row_elements(ref)
                             : cluster_ > 1 && local.share > 0 ? local.share
                                                               : local.elements;
    local_bytes_ += (elements * local.dtype.size() + 15) / 16 * 16;
  }
  choose_threads();
  choose_layouts();
  check_launch();
}

std::string Renderer::at(Value v, const std::string& r) const {
  const std::string& n = names_[static_cast<size_t>(v)];
  if (type(v).rank() == 0 || splat_[static_cast<size_t>(v)]) return n;
  if (n.starts_with("arange:")) return fmt::format("({}){}", type_name(type(v).dtype), layout_of(v).element(r));
  return fmt::format("{}[{}]", n, r);
}

/// The same, as an operand of an elementwise instruction: one that counts elements counts the result's. `bits`: of an
/// operation on bits.
std::string Renderer::at_result(Value v, Value result, bool bits) const {
  if (names_[static_cast<size_t>(v)] != "arange:") return at(v);
  const Layout s = layout_of(result);
  return fmt::format("({}){}", type_name(type(v).dtype), bits ? s.position("r") : s.element("r"));
}

void Renderer::declare(Value v) {
  name(v, fresh(v));
  if (type(v).rank() == 0) add(fmt::format("{} {};", type_name(type(v).dtype), fresh(v)));
  else add(fmt::format("alignas(16) {} {}[{}];", type_name(type(v).dtype), fresh(v), layout_of(v).registers()));
}

void Renderer::each(Value v, const std::string& text) {
  if (type(v).rank() == 0) {
    name(v, fresh(v));
    add(fmt::format("const {} {} = {};", type_name(type(v).dtype), fresh(v), text));
    return;
  }
  declare(v);
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {};", layout_of(v).registers(), fresh(v), text));
}

void Renderer::assign(Value v, const std::string& text) {
  if (type(v).rank() == 0) return add(fmt::format("{} = {};", fresh(v), text));
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {};", layout_of(v).registers(), fresh(v), text));
}

void Renderer::add_before_shared(const std::string& line) {
  if (body_.size() != shared_end_) return add(line);
  const std::string text = std::string(static_cast<size_t>(indent_) * 2, ' ') + line + "\n";
  body_.insert(shared_begin_, text);
  shared_begin_ += text.size(), shared_end_ += text.size();
}

void Renderer::scalar_line(Value v, const std::string& text) {
  name(v, fresh(v));
  add_before_shared(fmt::format("const {} {} = {};", type_name(type(v).dtype), fresh(v), text));
}

void Renderer::arithmetic(Value v, const std::string& text) {
  if (type(v).rank() == 0) return scalar_line(v, text);
  name(v, fresh(v));
  each_register(type_name(type(v).dtype), fresh(v), layout_of(v).registers(), text);
}

/// Declares an array of so many elements, and computes each of them in a loop that neighbours share.
void Renderer::each_register(const std::string& type, const std::string& array, int64_t registers,
                             const std::string& text) {
  const std::string close = std::string(static_cast<size_t>(indent_) * 2, ' ') + "}\n",
                    step = std::string(static_cast<size_t>(indent_ + 1) * 2, ' ') +
                           fmt::format("{}[r] = {};\n", array, text);
  const std::string declaration = fmt::format("alignas(16) {} {}[{}];", type, array, registers);
  if (body_.size() == shared_end_ && shared_registers_ == registers) {
    add_before_shared(declaration);
    body_.insert(body_.size() - close.size(), step);
  } else {
    add(declaration);
    shared_begin_ = body_.size();
    shared_registers_ = registers;
    add(fmt::format("EACH (int r = 0; r < {}; ++r) {{", registers));
    body_ += step + close;
  }
  shared_end_ = body_.size();
}

int64_t Renderer::divisor(Value v) const { return divisors_[static_cast<size_t>(v)]; }

void Renderer::find_divisor(const Inst& inst) {
  if (inst.results.empty() || inst.type.rank() != 0 || !is_integer(inst.type.dtype)) return;
  int64_t& out = divisors_[static_cast<size_t>(inst.results[0])];
  if (inst.op == Op::constant) out = power_of_two_in(inst.number.i), integers_[inst.results[0]] = inst.number.i;
  if (inst.op == Op::cast && is_integer(type(inst.args[0]).dtype)) out = divisor(inst.args[0]);
  if (inst.op != Op::scalar) return;
  switch (inst.scalar_op) {
    case kernel::ScalarOp::add:
    case kernel::ScalarOp::sub:
    case kernel::ScalarOp::min:
    case kernel::ScalarOp::max: out = std::min(divisor(inst.args[0]), divisor(inst.args[1])); break;
    case kernel::ScalarOp::select: out = std::min(divisor(inst.args[1]), divisor(inst.args[2])); break;
    case kernel::ScalarOp::mul: out = std::min(most_divisor, divisor(inst.args[0]) * divisor(inst.args[1])); break;
    case kernel::ScalarOp::floordiv:
      if (const auto by = integers_.find(inst.args[1]);
          by != integers_.end() && power_of_two_in(by->second) == by->second)
        out = std::max<int64_t>(1, divisor(inst.args[0]) / by->second);
      break;
    default: break;
  }
}

void Renderer::block(const Block& block) {
  const auto words_around = std::exchange(words_, {});
  const std::vector<const Inst*> insts = in_order(block);
  for (size_t k = 0; k < insts.size();) {
    const Inst& i = *insts[k];
    const std::span<const Inst* const> here =
        std::span(insts).subspan(k, merged_reductions(std::span(insts).subspan(k)));
    k += here.size();
    if (!arrived_ && (general_ || !distributed(i)) && waits_for_memory(i)) arrive();
    for (const Inst* next : here) finish_products_before(*next);
    if (!i.blocks.empty()) wait_for_kept();
    if (here.size() > 1) reduce_warps_to_rows(here);
    else if (i.op != Op::yield) inst(i);
    release_kept(i);
  }
  finish_products(in_flight_.size());
  words_ = words_around;
}

/// Returns the instructions of a block in the order in which they are rendered. With clusters, which start few at a
/// time, pure instructions that need no data of the preceding kernel (angles of a rotation, masks) come first and run
/// while that kernel ends.
std::vector<const kernel::Inst*> Renderer::in_order(const Block& block) const {
  std::vector<const Inst*> early, late;
  std::set<Value> waiting;
  for (const Inst& i : block.insts) {
    const bool pure = i.op == Op::constant || i.op == Op::program_id || i.op == Op::symbol || i.op == Op::arange ||
                      i.op == Op::scalar || i.op == Op::cast || i.op == Op::bitcast || i.op == Op::broadcast ||
                      i.op == Op::reshape || ((i.op == Op::load || i.op == Op::gather) && !is_local(i.ref)) ||
                      (i.op == Op::when && !i.results.empty());
    const std::vector<Value> read = kernel::reads(i);
    const bool waits = arrived_ || cluster_ == 1 || general_ || !pure || waits_for_memory(i) ||
                       std::any_of(read.begin(), read.end(), [&](Value v) { return waiting.contains(v); });
    (waits ? late : early).push_back(&i);
    if (waits) waiting.insert(i.results.begin(), i.results.end());
  }
  early.insert(early.end(), late.begin(), late.end());
  return early;
}

/// Returns whether the instruction accesses memory that the preceding kernel may still be writing.
bool Renderer::waits_for_memory(const Inst& i) const {
  const auto late = [&](Ref ref) {
    return ref >= 0 && !is_local(ref) && !kernel_.params[static_cast<size_t>(ref)].constant;
  };
  switch (i.op) {
    case Op::load:
    case Op::gather: return late(i.ref);
    case Op::store:
    case Op::scatter:
    case Op::atomic_add:
    case Op::atomic:
    case Op::exchange_memory:
    case Op::compare_exchange:
    case Op::wait_until: return !is_local(i.ref);
    case Op::copy_async: return late(i.left);
    case Op::source: return true;
    default: break;
  }
  return std::any_of(i.blocks.begin(), i.blocks.end(), [&](const Block& b) {
    return std::any_of(b.insts.begin(), b.insts.end(), [&](const Inst& inner) { return waits_for_memory(inner); });
  });
}

/// Waits for the preceding kernel (programmatic dependent launch), in the outermost block, so that everything after it
/// sees the wait. Addresses that are read depend on the wait's result, so that ptxas cannot move loads before it.
/// Written buffers need no such dependence, and the added offset would hide the alignment that wide stores need.
void Renderer::arrive() {
  arrived_ = true;
  add("const i64 arrived = early ? wait_for_previous() : 0;");
  for (size_t k = 0; k < kernel_.params.size(); ++k) {
    const kernel::Param& p = kernel_.params[k];
    if (!p.constant)
      add(fmt::format("{}{}* const q{} = p{}{};", p.written ? "" : "const ", memory_type(static_cast<Ref>(k)), k, k,
                      p.written ? "" : " + arrived"));
  }
}

void Renderer::inst(const Inst& i) {
  find_divisor(i);
  if (kernel_.any_size && placed(i)) return;
  switch (i.op) {
    case Op::constant:
      name(i.results[0], literal(i.number, i.type.dtype));
      splat_[static_cast<size_t>(i.results[0])] = true;
      return;
    case Op::program_id: return name(i.results[0], "program");
    case Op::symbol: return name(i.results[0], fmt::format("s{}", i.ref));
    case Op::arange: return name(i.results[0], "arange:");
    case Op::scalar: return scalar(i);
    case Op::cast:
    case Op::bitcast: return convert(i);
    case Op::broadcast: return kernel::is_basic(kernel_, i) ? broadcast(i) : spread(i);
    case Op::reshape: return alias(i.results[0], i.args[0]);
    case Op::permute: return kernel::is_basic(kernel_, i) ? transpose(i) : permute(i);
    case Op::reduce: return kernel::is_basic(kernel_, i) ? reduce(i) : reduce_along(i);
    case Op::shift: return shift(i);
    case Op::exchange: return exchange_lanes(i);
    case Op::extract: return extract(i);
    case Op::dot: return dot(i);
    case Op::load: return load(i);
    case Op::store: return store(i);
    case Op::gather: return gather(i);
    case Op::scatter: return scatter(i);
    case Op::atomic_add: return atomic_add(i);
    case Op::prefetch: return prefetch(i);
    case Op::alloc: return make_barriers(i);
    case Op::loop: return loop(i);
    case Op::when: return when(i);
    case Op::yield: return;
    default: return general(i);
  }
}

void Renderer::scalar(const Inst& i) {
  const Dtype t = type(i.args.size() == 1 ? i.args[0] : i.args[1]).dtype;
  std::vector<std::string> args;
  bool splat = i.type.rank() > 0;
  const bool bits = i.scalar_op == kernel::ScalarOp::bit_and || i.scalar_op == kernel::ScalarOp::bit_or ||
                    i.scalar_op == kernel::ScalarOp::bit_xor;
  for (Value v : i.args) {
    args.push_back(at_result(v, i.results[0], bits));
    splat = splat && splat_[static_cast<size_t>(v)];
  }
  const Value result = i.results[0];
  const std::string text =
      kernel::is_random_word(i.scalar_op) ? random_word(i, args, splat) : expression(i.scalar_op, t, args);
  if (splat) {  // the same in every lane: one scalar
    splat_[static_cast<size_t>(result)] = true;
    return scalar_line(result, text);
  }
  arithmetic(result, text);
}

void Renderer::convert(const Inst& i) {
  if (unseen_.contains(i.results[0])) return;
  const Value from = i.args[0], result = i.results[0];
  const auto text = [&](const std::string& v) {
    return i.op == Op::cast ? conversion(v, type(from).dtype, i.type.dtype)
                            : reinterpretation(v, type(from).dtype, i.type.dtype);
  };
  if (i.type.rank() > 0 && splat_[static_cast<size_t>(from)]) {
    splat_[static_cast<size_t>(result)] = true;
    return scalar_line(result, text(at(from)));
  }
  if (const auto mask = masks_.find(from);
      mask != masks_.end() && i.op == Op::cast && is_float(i.type.dtype) && i.type.dtype != float64)
    return arithmetic(result, conversion(fmt::format("masked_to_float({}, {}u)", at_result(mask->second.first, result),
                                                     mask->second.second),
                                         float32, i.type.dtype));
  if (in_halves(i))
    return arithmetic(
        result, conversion(fmt::format("from_bf16({}, r)", names_[static_cast<size_t>(from)]), float32, i.type.dtype));
  arithmetic(result, text(at_result(from, result)));
}

/// Returns whether `cast` converts bfloat16 values that lie in registers in pairs. from_bf16 takes one instruction a
/// value to unpack the word; what ptxas makes of the general form takes two or three.
bool Renderer::in_halves(const Inst& cast) const {
  const kernel::Type& from = type(cast.args[0]);
  return cast.op == Op::cast && from.dtype == bfloat16 && from.rank() > 0 &&
         layout_of(cast.args[0]).registers() % 2 == 0;
}

/// Renders a parallel loop of the outermost block. Each block of a cluster takes one iteration. Local stores of every
/// loop but the last go to the shared memory of all blocks, and all blocks continue. Stores of the last loop go to the
/// first block, which continues alone if instructions follow. A barrier comes before the first remote store, because
/// all blocks must have started by then. Where each warp takes an iteration, the warp acts as a program of its own,
/// without block barriers.
void Renderer::parallel(const Inst& i) {
  if (general_) return cluster_ > 1 ? iterations_by_blocks(i) : iterations_by_warps(i);
  const Block& body = i.blocks[0];
  const bool first = iterations_begun_++ == 0, last = iterations_begun_ == parallel_loops_;
  if (first)
    add(fmt::format("const i64 rank = {};", iterations_ == 1 ? "cluster_rank()"
                                            : cluster_ == 1  ? "t >> 5"
                                            : !partial_rows_.empty()
                                                ? fmt::format("cluster_rank() + (t >> 5) * {}", cluster_)
                                                : fmt::format("cluster_rank() * {} + (t >> 5)", iterations_)));
  if (first && cluster_ > 1 && local_bytes_ > 0 && partial_rows_.empty()) add("cluster_wait();");
  name(body.arguments[0], "rank");
  iteration_ = last ? Iteration::last : Iteration::before_others;
  if (iterations_ == 1) block(body);
  else by_warps(body);
  iteration_ = Iteration::none;
  const bool ends = last && &i + 2 == kernel_.body.insts.data() + kernel_.body.insts.size();  // but for the yield
  if (!partial_rows_.empty()) gather_rows();
  else if (!ends) add("cluster_arrive(), cluster_wait();");
  if (last && !ends && partial_rows_.empty()) add("if (cluster_rank() != 0) return;");
  dirty_.clear(), read_.clear();
}

/// Renders an iteration that one warp takes: tiles are distributed over its 32 lanes, and it exchanges through its own
/// part of shared memory. Only scalars come from outside the loop.
void Renderer::by_warps(const Block& body) {
  const int block_threads = std::exchange(threads_, 32);
  const int64_t block_exchange = std::exchange(exchange_bytes_, 0);
  std::string before = std::exchange(body_, {});
  shared_end_ = std::string::npos;
  sync_ = "__syncwarp();";
  block(body);
  sync_ = "SYNC";
  const int64_t bytes = (exchange_bytes_ + 15) / 16 * 16;
  threads_ = block_threads;
  exchange_bytes_ = std::max(block_exchange, bytes * iterations_);
  const std::string inside = std::exchange(body_, std::move(before));
  shared_end_ = std::string::npos;
  add("const int block_t = t;");
  add("u8* const block_shared = shared;");
  add(fmt::format("t = block_t & 31, shared = block_shared + (block_t >> 5) * {};", bytes));
  body_ += inside;
  add("t = block_t, shared = block_shared;");
}

bool Renderer::reads_scratch(const Block& block) const {
  return std::any_of(block.insts.begin(), block.insts.end(), [&](const Inst& inst) {
    return (inst.op == Op::load && is_local(inst.ref)) ||
           std::any_of(inst.blocks.begin(), inst.blocks.end(), [&](const Block& b) { return reads_scratch(b); });
  });
}

void Renderer::loop(const Inst& i) {
  if (distributed(i)) return parallel(i);
  const Block& body = i.blocks[0];
  const Value counter = body.arguments[0];
  const auto carried = std::span(body.arguments).subspan(1);
  begin_carried(carried, std::span(i.args).subspan(3));
  const Hazards before = hazards();
  name(counter, fresh(counter));
  divisors_[static_cast<size_t>(counter)] = std::min(divisor(i.args[0]), divisor(i.args[2]));
  loop_hazards(body);
  if (reads_scratch(body)) finish_copies();
  const bool ahead = rings_of_loops_.contains(&i);
  const bool early = early_.contains(&i);
  load_kept(i);
  if (early) begin_early(i);
  if (ahead) begin_ring(i);
  // Each iteration waits for its copies: unrolled, it would only take registers. Of two that are unrolled, each has
  // registers of its own for an A that is made in them, which tensor cores read while the next iteration makes its own.
  if (early && (early_iterations(i) > 1 || made_registers_ > 0)) add("_Pragma(\"unroll 2\")");
  else if (ahead && producer_) add("_Pragma(\"unroll 1\")");
  open(fmt::format("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", fresh(counter), at(i.args[0]), at(i.args[1]),
                   at(i.args[2])));
  if (ahead) next_stage(i);
  if (early) next_early(i);
  block(body);
  next_carried(carried, body.insts.back().args);
  if (ahead) end_ring(i);
  close();
  if (ahead) finish_ring(i);
  loop_hazards(body);
  add_hazards(before);
  for (size_t k = 0; k < i.results.size(); ++k) name(i.results[k], fresh(carried[k]));
}

/// Declares the values that a loop carries, and sets them to the initial ones.
void Renderer::begin_carried(std::span<const Value> carried, std::span<const Value> initial) {
  for (size_t k = 0; k < carried.size(); ++k) {
    declare(carried[k]);
    assign(carried[k], at(initial[k]));
  }
}

/// Sets carried values to the next ones. What is another carried value, or a view of it, is copied before that one is
/// overwritten.
void Renderer::next_carried(std::span<const Value> carried, std::span<const Value> next) {
  std::vector<std::string> sources;
  for (size_t k = 0; k < next.size(); ++k) {
    const Value to = carried[k];
    std::string from = at(next[k]);
    const bool is_carried = std::any_of(carried.begin(), carried.end(), [&](Value v) {
      return v != to && names_[static_cast<size_t>(next[k])] == fresh(v);
    });
    if (is_carried) {
      const std::string copy = fresh(to) + "_next";
      if (type(to).rank() == 0) {
        add(fmt::format("const {} {} = {};", type_name(type(to).dtype), copy, from));
        from = copy;
      } else {
        add(fmt::format("{} {}[{}];", type_name(type(to).dtype), copy, layout_of(to).registers()));
        add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {};", layout_of(to).registers(), copy, from));
        from = copy + "[r]";
      }
    }
    sources.push_back(from);
  }
  for (size_t k = 0; k < next.size(); ++k)
    if (next[k] != carried[k] && names_[static_cast<size_t>(next[k])] != fresh(carried[k]))
      assign(carried[k], sources[k]);
}

void Renderer::when(const Inst& i) {
  if (!i.results.empty()) return when_with_values(i);
  const Hazards before = hazards();
  loop_hazards(i.blocks[0]);
  open(fmt::format("if ({})", at(i.args[0])));
  block(i.blocks[0]);
  close();
  loop_hazards(i.blocks[0]);
  add_hazards(before);
}

/// Renders a `when` with results. A thread skips the block if none of its registers needs it: one branch for all of
/// them. Operands that are the same in every lane need one scalar.
void Renderer::when_with_values(const Inst& i) {
  const auto uniform = [&](Value v) { return type(v).rank() == 0 || splat_[static_cast<size_t>(v)]; };
  const std::vector<Value> read = kernel::reads(i);
  const bool scalar = std::all_of(read.begin(), read.end(), uniform);
  const int64_t registers = scalar ? 1 : layout_of(i.type).registers();
  for (size_t k = 0; k < i.results.size(); ++k) {
    const Value v = i.results[k];
    if (scalar) {
      name(v, fresh(v));
      splat_[static_cast<size_t>(v)] = type(v).rank() > 0;
      add(fmt::format("{} {} = {};", type_name(type(v).dtype), fresh(v), at(i.args[k + 1])));
    } else {
      declare(v);
      add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {};", registers, fresh(v), at(i.args[k + 1])));
    }
  }
  if (!scalar) {
    add(fmt::format("bool any{} = false;", i.results[0]));
    add(fmt::format("EACH (int r = 0; r < {}; ++r) any{} |= {};", registers, i.results[0], at(i.args[0])));
    open(fmt::format("if (__builtin_expect(any{}, 0)) EACH (int r = 0; r < {}; ++r)", i.results[0], registers));
  }
  open(fmt::format("if ({})", at(i.args[0])));
  std::vector<std::string> targets;
  for (Value v : i.results) targets.push_back(at(v));
  on_lane(i.blocks[0], targets);
  close();
  if (!scalar) close();
}

/// Renders the instructions of a block that works lane by lane as scalars for one lane, and assigns what it yields to
/// `targets`.
void Renderer::on_lane(const Block& block, const std::vector<std::string>& targets) {
  for (const Inst& i : block.insts) {
    const auto define = [&](Value v, const std::string& text) {
      name(v, text);
      splat_[static_cast<size_t>(v)] = true;
    };
    const auto line = [&](const std::string& text) {
      add(fmt::format("const {} {} = {};", type_name(i.type.dtype), fresh(i.results[0]), text));
      define(i.results[0], fresh(i.results[0]));
    };
    const auto argument = [&](size_t k) { return at(i.args[k]); };
    switch (i.op) {
      case Op::constant: define(i.results[0], literal(i.number, i.type.dtype)); break;
      case Op::broadcast: define(i.results[0], argument(0)); break;
      case Op::cast: line(conversion(argument(0), type(i.args[0]).dtype, i.type.dtype)); break;
      case Op::bitcast: line(reinterpretation(argument(0), type(i.args[0]).dtype, i.type.dtype)); break;
      case Op::scalar: {
        std::vector<std::string> args;
        for (Value v : i.args) args.push_back(at(v));
        line(expression(i.scalar_op, type(i.args.size() == 1 ? i.args[0] : i.args[1]).dtype, args));
        break;
      }
      case Op::when: {
        std::vector<std::string> inner;
        for (size_t k = 0; k < i.results.size(); ++k) {
          add(fmt::format("{} {} = {};", type_name(type(i.results[k]).dtype), fresh(i.results[k]), argument(k + 1)));
          inner.push_back(fresh(i.results[k]));
          define(i.results[k], inner.back());
        }
        open(fmt::format("if ({})", argument(0)));
        on_lane(i.blocks[0], inner);
        close();
        break;
      }
      case Op::yield:
        for (size_t k = 0; k < targets.size(); ++k) add(fmt::format("{} = {};", targets[k], argument(k)));
        break;
      default: throw_internal("cuda render", "an instruction that moves lanes, in a block that works lane by lane");
    }
  }
}

Rendered Renderer::run(const std::string& symbol) {
  symbol_ = symbol;
  find_copies(kernel_.body);
  if (producer_) begin_producer();
  if (sets_ > 1) add(fmt::format("t -= set * {};", threads_));
  if (persistent_) begin_programs(false);
  if (kernel_.ordered) exchange_bytes_ = std::max<int64_t>(exchange_bytes_, sizeof(uint32_t));  // for the number
  block(kernel_.body);
  finish_copies();
  skip_loads();
  if (persistent_ && !kept_.empty()) add("kept_phase ^= 1u;");
  if (persistent_ && exchange_bytes_ > 0) sync();
  if (persistent_) close();
  finish_stores();
  exchange_bytes_ = (exchange_bytes_ + 15) / 16 * 16;
  // Programs of at most one warp share a block, because the number of blocks on an SM is limited. With long rows only
  // two warps do, so that blocks end sooner.
  constexpr int64_t box_period = 1024;                // the longest one of TMA's swizzles
  const int64_t line = warpgroups_ > 0 ? 1024 : 128;  // the period of the swizzles
  if (!box_copies_.empty()) exchange_bytes_ = (exchange_bytes_ + box_period - 1) / box_period * box_period;
  if (stage_bytes_ > 0) exchange_bytes_ = (exchange_bytes_ + local_bytes_ + line - 1) / line * line - local_bytes_;
  const int64_t shared_bytes = sets_ * exchange_bytes_ + local_bytes_ + stage_bytes_;
  if (threads_ <= 32 && cluster_ == 1 && shared_bytes <= 4096 && !source_of(kernel_) && !counts() &&
      kernel_.cluster == 0 && box_copies_.empty())
    programs_ = (lines_ && largest_tile_ >= 512 ? 2 : 4) * (32 / threads_);
  std::string text = fmt::format("#define SYNC {}\n", sets_ > 1        ? fmt::format("meet_set<{}>(set);", threads_)
                                                      : producer_      ? fmt::format("meet_first<{}>();", threads_)
                                                      : threads_ <= 32 ? "__syncwarp();"
                                                                       : "__syncthreads();");
  if (!iterations_note_.empty()) text += "// " + iterations_note_ + "\n";
  for (const std::string& note : notes_) text += "// " + note + "\n";
  for (const std::string& form : forms_) text += form;
  if (has_lanes(kernel_.body)) text += cuda_source("target/cuda/codegen/text/lanes.cuh");
  if (adds_neighbours_) text += cuda_source("target/cuda/codegen/text/atomics.cuh");
  if (counts()) text += counters();
  text += functions_ + signature(symbol);
  if (local_bytes_ > 0) text += fmt::format("  u8* const locals = shared + {};\n", exchange_bytes_);
  if (stage_bytes_ > 0)
    text += fmt::format("  u8* const stages = shared + {};\n", sets_ * exchange_bytes_ + local_bytes_);
  if (sets_ > 1) {
    text += fmt::format("  const int set = __shfl_sync(0xffffffffu, t / {}, 0);\n", threads_);
    if (exchange_bytes_ > 0) text += fmt::format("  shared += set * {};\n", exchange_bytes_);
  }
  if (cluster_ > 1 && local_bytes_ > 0) text += "  cluster_begin();\n";
  if (tile_side_ > 0) text += register_tile_origin();
  text += body_ + "}\n" + entry(symbol) + "#undef SYNC\n";
  return {text,
          symbol,
          threads_of_block(),
          programs_,
          shared_bytes * programs_,
          cluster_,
          persistent_ ? std::max(blocks_, 1) : 0,
          maps_,
          kernel_.ordered,
          meets(),
          exact_ && !products_.empty()};
}

}  // namespace weft::target::cuda
