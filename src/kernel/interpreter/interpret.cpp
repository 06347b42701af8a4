// Executes tile IR on vectors of Numbers, one program after another, rounding after every operation as the hardware
// does. The roles of a program take turns, in an order that a seed chooses; what they and asynchronous copies may do at
// the same time is checked by kernel/interpreter/orders.h.
#include "kernel/interpret.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/half.h"
#include "kernel/code/counterpart.h"
#include "kernel/interpreter/fibers.h"
#include "kernel/lanes.h"
#include "kernel/op_info.h"
#include "kernel/rules.h"
#include "kernel/tile_values.h"

namespace weft::kernel {
namespace {

using Tile = TileValue;

/// Returns "1.5" or "[1, 2, …]": at most sixteen elements.
std::string text_of(const Tile& tile, const Type& type) {
  std::string out;
  for (size_t k = 0; k < tile.size() && k < 16; ++k)
    out += (k > 0 ? ", " : "") + (tile[k].integral ? fmt::format("{}", tile[k].i) : fmt::format("{}", tile[k].f));
  if (type.rank() == 0) return out;
  return "[" + out + (tile.size() > 16 ? ", …]" : "]");
}

class Interpreter : public FiberRunner {
 public:
  Interpreter(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols,
              uint64_t seed)
      : FiberRunner(kernel, buffers, seed), symbols_(symbols) {}

 private:
  /// Runs a block that computes values from values, and returns what its yield carries on.
  const std::vector<Value>& block(const Block& b) override {
    for (const Inst& inst : b.insts) {
      if (inst.op == Op::yield) break;
      guarded(&inst, [&] { step(inst); });
    }
    return b.insts.back().args;
  }

  void step(const Inst& inst) override {
    switch (inst.op) {
      case Op::store: return store(inst);
      case Op::load_neighbour:
      case Op::store_neighbour: return reach(inst);
      case Op::scatter:
      case Op::atomic_add: return scatter(inst);
      case Op::prefetch: return;
      case Op::alloc: return memory_.poison(inst.ref);
      case Op::copy_async: return copy_async(inst);
      case Op::commit_copies: return orders_->commit(agent_);
      case Op::wait_copies: return orders_->wait(agent_, inst.number.i);
      case Op::arrive: return orders_->arrive(agent_, inst.ref, whole(inst.args[0]));
      case Op::when: return when(inst);
      case Op::reduce:
      case Op::scan: return combine(inst);
      case Op::sort: return define(inst.results, sort_values(inst, type(inst.args[0]), arguments(inst)));
      case Op::print: return print(inst);
      case Op::assert_: return check_condition(inst);
      default: values_[static_cast<size_t>(inst.results[0])] = compute(inst);
    }
  }

  /// Loads or stores a tile of a neighbour's local buffer.
  void reach(const Inst& inst) {
    const size_t first = inst.op == Op::store_neighbour ? 1 : 0;
    const Type& t = first == 1 ? type(inst.args[0]) : inst.type;
    const int64_t rank = neighbour(inst, inst.args[first]);
    Tile loaded;
    each_element(t.dims, [&](size_t k, const std::vector<int64_t>& position) {
      int64_t at = whole(inst.args[first + 1]);
      for (size_t axis = 0; axis < position.size(); ++axis) at += position[axis] * inst.strides[axis];
      if (first == 1) memory_.store(inst.ref, at, tile(inst.args[0])[k], rank);
      else loaded.push_back(memory_.load(inst.ref, at, rank));
    });
    if (first == 0) define(inst.results, {loaded});
  }

  Tile compute(const Inst& inst) {
    const size_t n = static_cast<size_t>(inst.type.size());
    const auto arg = [&](size_t k) -> const Tile& { return tile(inst.args[k]); };
    switch (inst.op) {
      case Op::constant: return Tile(n, inst.number);
      case Op::program_id: return {Number::of_int(program_)};
      case Op::symbol: return {Number::of_int(symbols_[static_cast<size_t>(inst.ref)])};
      case Op::arange: {
        Tile out;
        for (size_t k = 0; k < n; ++k)
          out.push_back(round_to(Number::of_int(static_cast<int64_t>(k)), inst.type.dtype));
        return out;
      }
      case Op::scalar: return scalar_value(inst, type(inst.args.back()).dtype, arguments(inst));
      case Op::cast: return cast_value(inst, type(inst.args[0]).dtype, arg(0));
      case Op::bitcast: return bitcast_value(inst, type(inst.args[0]).dtype, arg(0));
      case Op::broadcast: return broadcast_value(inst, type(inst.args[0]), arg(0));
      case Op::reshape: return arg(0);
      case Op::permute: return permute_value(inst, type(inst.args[0]), arg(0));
      case Op::slice: return slice_value(inst, type(inst.args[0]), arg(0));
      case Op::cat: {
        std::vector<Type> types;
        for (const Value v : inst.args) types.push_back(type(v));
        return cat_value(inst, types, arguments(inst));
      }
      case Op::shift: return shift_value(inst, arg(0), arg(1));
      case Op::exchange: return exchange_value(inst, arg(0));
      case Op::extract: return {arg(0)[static_cast<size_t>(inst.axis)]};
      case Op::take: return take_value(inst, type(inst.args[0]), arg(0), arg(1));
      case Op::histogram: return histogram_value(inst, arg(0));
      case Op::lanes:
        return lanes_value(inst, type(inst.args[0]).dtype, arg(0), inst.args[1] == no_value ? nullptr : &arg(1));
      case Op::wait_dot: return arg(0);
      case Op::dot:
      case Op::dot_async: return dot_value(inst, type(inst.args[0]), arg(0), arg(1), arg(2));
      case Op::load: return load(inst);
      case Op::gather: return gather(inst);
      case Op::atomic:
      case Op::exchange_memory: return update(inst, 0);
      case Op::compare_exchange: return update(inst, 1);
      default: throw_internal("interpret", "unknown instruction");
    }
  }

  std::vector<const Tile*> arguments(const Inst& inst) const {
    std::vector<const Tile*> out;
    for (const Value v : inst.args) out.push_back(&tile(v));
    return out;
  }

  /// Reduces or scans. Low floats are combined in float32 by a reducer, and rounded at the end.
  void combine(const Inst& inst) {
    const Type from = type(inst.args[0]);
    const Dtype t = inst.blocks.empty() && is_low_float(from.dtype) ? float32 : from.dtype;
    const CombineValues combined = [&](const std::vector<Number>& low, const std::vector<Number>& high) {
      if (inst.blocks.empty()) {
        const Number pair[] = {low[0], high[0]};
        return std::vector<Number>{round_to(reference(kernel::combine(inst.reducer), t, pair), t)};
      }
      const Block& body = inst.blocks[0];
      for (size_t k = 0; k < body.arguments.size(); ++k)
        values_[static_cast<size_t>(body.arguments[k])] = {k < low.size() ? low[k] : high[k - low.size()]};
      std::vector<Number> out;
      for (const Value v : block(body)) out.push_back(tile(v)[0]);
      return out;
    };
    std::vector<Tile> out = inst.op == Op::reduce ? reduce_values(inst, from, arguments(inst), combined)
                                                  : scan_values(inst, from, arguments(inst), combined);
    if (!(t == from.dtype))
      for (Number& n : out[0]) n = round_to(n, from.dtype);
    define(inst.results, std::move(out));
  }

  /// Calls visit(lane, address) for each lane of a load's or store's tile that is within the limits.
  template <class Visit>
  void slice(const Inst& inst, const Type& of, Visit visit) const {
    const size_t limits = first_limit(inst.op);
    const int64_t offset = whole(inst.args[limits - 1]);
    each_element(of.dims, [&](size_t lane, const std::vector<int64_t>& position) {
      uint64_t address = static_cast<uint64_t>(offset);
      bool inside = true;
      for (size_t k = 0; k < position.size(); ++k) {
        const Value limit = inst.args[limits + k];
        inside = inside && (limit == no_value || position[k] < whole(limit));
        address += static_cast<uint64_t>(position[k]) * static_cast<uint64_t>(inst.strides[k]);
      }
      if (inside) visit(lane, static_cast<int64_t>(address));
    });
  }

  Tile load(const Inst& inst) {
    Tile out(static_cast<size_t>(inst.type.size()), inst.number);
    slice(inst, inst.type, [&](size_t lane, int64_t address) { out[lane] = load_element(inst, inst.ref, address); });
    return out;
  }

  void store(const Inst& inst) {
    const Tile& value = tile(inst.args[0]);
    slice(inst, type(inst.args[0]), [&](size_t lane, int64_t address) { store_element(inst, address, value[lane]); });
  }

  bool masked(Value mask, size_t lane) const { return mask != no_value && tile(mask)[lane].i == 0; }

  Tile gather(const Inst& inst) {
    Tile out(static_cast<size_t>(inst.type.size()), inst.number);
    for (size_t k = 0; k < out.size(); ++k)
      if (!masked(inst.args[1], k)) out[k] = load_element(inst, inst.ref, tile(inst.args[0])[k].i);
    return out;
  }

  void scatter(const Inst& inst) {
    const Tile &value = tile(inst.args[0]), &index = tile(inst.args[1]);
    for (size_t k = 0; k < value.size(); ++k) {
      if (masked(inst.args[2], k)) continue;
      if (inst.op == Op::scatter) store_element(inst, index[k].i, value[k]);
      else
        update_element(inst, index[k].i, [&](Number old) {
          const Number pair[] = {old, value[k]};
          const Dtype t = ref_dtype(kernel_, inst.ref);
          return round_to(reference(ScalarOp::add, t, pair), t);
        });
    }
  }

  /// Updates elements lane by lane and returns what was there; `first`: the argument that is the value.
  Tile update(const Inst& inst, size_t first) {
    const Tile &value = tile(inst.args[first]), &index = tile(inst.args[first + 1]);
    Tile out(value.size(), round_to(Number::of_int(0), inst.type.dtype));
    for (size_t k = 0; k < value.size(); ++k) {
      if (masked(inst.args[first + 2], k)) continue;
      out[k] = update_element(inst, index[k].i, [&](Number old) {
        if (inst.op == Op::exchange_memory) return value[k];
        if (inst.op == Op::compare_exchange) return old == tile(inst.args[0])[k] ? value[k] : old;
        const Number pair[] = {old, value[k]};
        return round_to(reference(inst.scalar_op, inst.type.dtype, pair), inst.type.dtype);
      });
    }
    return out;
  }

  void print(const Inst& inst) const {
    std::string line = inst.text;
    for (const Value v : inst.args) line += " " + text_of(tile(v), type(v));
    std::fprintf(stdout, "[kernel %s] program %lld: %s\n", kernel_.name.c_str(), static_cast<long long>(program_),
                 line.c_str());
  }

  void check_condition(const Inst& inst) const {
    const Tile& condition = tile(inst.args[0]);
    const auto fails = std::find_if(condition.begin(), condition.end(), [](const Number& n) { return n.i == 0; });
    if (fails != condition.end())
      throw MemoryFault(fmt::format("{} (element {})", inst.text, fails - condition.begin()));
  }

  void when(const Inst& inst) {
    const Tile& condition = tile(inst.args[0]);
    for (size_t k = 0; k < inst.results.size(); ++k)
      values_[static_cast<size_t>(inst.results[k])] = tile(inst.args[1 + k]);
    const auto holds = [](const Number& lane) { return lane.i != 0; };
    if (std::none_of(condition.begin(), condition.end(), holds)) return;
    const std::vector<Value>& yielded = block(inst.blocks[0]);
    for (size_t k = 0; k < inst.results.size(); ++k)
      for (size_t lane = 0; lane < condition.size(); ++lane)
        if (holds(condition[lane])) values_[static_cast<size_t>(inst.results[k])][lane] = tile(yielded[k])[lane];
  }

  std::span<const int64_t> symbols_;
};

/// Runs all programs, and checks that they write what is wanted.
void run_all(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols, int64_t grid,
             std::span<const Ref> results, uint64_t seed, Observer* observer = nullptr) {
  Interpreter interpreter(kernel, buffers, symbols, seed);
  interpreter.observe(observer);
  constexpr int64_t under_way = 3;  // for each seed
  if (kernel.cluster > 0) interpreter.run_clusters(grid);
  else if (has_op(kernel.body, waits_for_programs))
    interpreter.run_at_once(grid, programs_meet(kernel) ? grid : 1 + under_way * static_cast<int64_t>(seed));
  else
    for (int64_t program = 0; program < grid; ++program) interpreter.run(program);
  for (const Ref ref : results)
    if (const int64_t at = interpreter.memory().first_unwritten(ref); at >= 0)
      throw_failure("kernel " + kernel.name, fmt::format("no program writes element {} of parameter {}", at, ref));
}

/// Throws unless a kernel is well-formed and gets what it takes.
void check_call(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols) {
  verify(kernel);
  const std::string where = "kernel " + kernel.name;
  if (buffers.size() != kernel.params.size())
    throw_failure(where, fmt::format("takes {} buffers, not {}", kernel.params.size(), buffers.size()));
  if (symbols.size() != kernel.symbols.size())
    throw_failure(where, fmt::format("takes {} symbols, not {}", kernel.symbols.size(), symbols.size()));
  for (const HostBuffer& b : buffers)
    if (b.elements < 0 || (b.elements > 0 && b.data == nullptr)) throw_failure(where, "a buffer has no memory");
}

}  // namespace

void interpret(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols,
               int64_t grid, std::span<const Ref> results) {
  if (has_code(kernel.body)) return interpret(with_counterparts(kernel), buffers, symbols, grid, results);
  check_call(kernel, buffers, symbols);
  constexpr uint64_t orders = 3;  // of roles and programs, that are tried
  if (has_op(kernel.body, [](Op op) { return op == Op::roles || waits_for_programs(op) || reaches_neighbour(op); })) {
    std::vector<std::vector<char>> before;
    for (size_t k = 0; k < buffers.size(); ++k) {
      const char* const data = static_cast<const char*>(buffers[k].data);
      before.emplace_back(data, data + buffers[k].elements * kernel.params[k].dtype.size());
    }
    for (uint64_t seed = 1; seed < orders; ++seed) {
      run_all(kernel, buffers, symbols, grid, results, seed);
      for (size_t k = 0; k < buffers.size(); ++k)
        if (kernel.params[k].written)
          std::copy(before[k].begin(), before[k].end(), static_cast<char*>(buffers[k].data));
    }
  }
  run_all(kernel, buffers, symbols, grid, results, 0);
}

void interpret_observed(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols,
                        int64_t grid, std::span<const Ref> results, Observer& observer) {
  if (has_code(kernel.body))
    return interpret_observed(with_counterparts(kernel), buffers, symbols, grid, results, observer);
  check_call(kernel, buffers, symbols);
  run_all(kernel, buffers, symbols, grid, results, 0, &observer);
}

}  // namespace weft::kernel
