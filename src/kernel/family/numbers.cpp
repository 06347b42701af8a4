#include "kernel/family/numbers.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/half.h"
#include "kernel/rules.h"

namespace weft::kernel {

namespace {

/// Returns whether argument `at` of an instruction may be any value: targets need no constant there.
bool takes_any(const Inst& inst, size_t at) {
  switch (inst.op) {
    case Op::scalar:
    case Op::broadcast:
    case Op::load:
    case Op::store:
    case Op::gather:
    case Op::scatter: return true;
    case Op::loop: return !inst.parallel && at < 2;  // its ends
    default: return false;
  }
}

/// Returns the unsigned integer whose bits a number of this dtype has; the dtype itself for int64, which arguments are.
Dtype carrier(Dtype dtype) {
  if (dtype == int64) return int64;
  return dtype.size() == 8 ? uint64 : dtype.size() == 4 ? uint32 : dtype.size() == 2 ? uint16 : uint8;
}

bool takes(Dtype dtype) { return dtype != bool_ && !is_float8(dtype); }

/// Returns the bits of a number of this dtype, the rest zeros.
int64_t bits_of(const Number& number, Dtype dtype) {
  if (dtype == float64) return std::bit_cast<int64_t>(number.real());
  if (dtype == float32) return std::bit_cast<uint32_t>(static_cast<float>(number.real()));
  if (dtype == float16) return float_to_f16(static_cast<float>(number.real()));
  if (dtype == bfloat16) return float_to_bf16(static_cast<float>(number.real()));
  const int unused = 64 - 8 * static_cast<int>(dtype.size());
  return static_cast<int64_t>(static_cast<uint64_t>(number.i) << unused >> unused);
}

/// The values of a kernel that are constants, by number.
class Constants {
 public:
  explicit Constants(const Kernel& kernel) { find(kernel.body); }
  const Inst* of(Value v) const {
    const auto found = by_value_.find(v);
    return found == by_value_.end() ? nullptr : found->second;
  }

 private:
  void find(const Block& block) {
    for (const Inst& inst : block.insts) {
      if (inst.op == Op::constant && takes(inst.type.dtype)) by_value_.emplace(inst.results[0], &inst);
      for (const Block& inner : inst.blocks) find(inner);
    }
  }
  std::unordered_map<Value, const Inst*> by_value_;
};

/// Calls visit(constant, argument) for each use of a number, in order.
template <class Instruction, class Visit>
void each_use(Instruction& inst, const Constants& constants, const Visit& visit) {
  for (size_t k = 0; k < inst.args.size(); ++k)
    if (takes_any(inst, k))
      if (const Inst* constant = constants.of(inst.args[k])) visit(*constant, inst.args[k]);
  for (auto& block : inst.blocks)
    for (auto& inner : block.insts) each_use(inner, constants, visit);
}

/// Rewrites a copy of a kernel.
class Generalisation {
 public:
  Generalisation(const Kernel& kernel, std::span<const int> arguments)
      : kernel_(kernel), constants_(kernel), arguments_(arguments), out_(kernel) {}

  Kernel run() {
    declare_symbols();
    for (Inst& inst : out_.body.insts) drop_strides(inst);
    for (Inst& inst : out_.body.insts)
      each_use(inst, constants_, [&](const Inst& constant, Value& used) {
        const int argument = arguments_[next_++];
        if (argument >= 0) used = value_of(argument, constant.type);
      });
    mark(out_.body);
    drop_unused(out_.body);
    out_.body.insts.insert(out_.body.insts.begin(), made_.begin(), made_.end());
    enlarge_locals();
    return std::move(out_);
  }

 private:
  /// Adds an instruction to the beginning of the kernel; returns its result.
  Value define(Inst inst) {
    const auto v = static_cast<Value>(out_.types.size());
    out_.types.push_back(inst.type);
    inst.results = {v};
    made_.push_back(std::move(inst));
    return v;
  }

  void declare_symbols() {
    const int count = arguments_.empty() ? 0 : *std::max_element(arguments_.begin(), arguments_.end()) + 1;
    for (int k = 0; k < count; ++k) {
      Inst symbol{.op = Op::symbol};
      symbol.ref = static_cast<Ref>(out_.symbols.size());
      symbol.type = {int64, {}};
      out_.symbols.push_back("number " + std::to_string(k));
      symbols_.push_back(define(std::move(symbol)));
    }
  }

  Value changed(Op op, Value v, Type type) {
    Inst inst{.op = op};
    inst.type = std::move(type);
    inst.args = {v};
    return define(std::move(inst));
  }

  Value value_of(int argument, const Type& type) {
    const auto [found, fresh] = values_.try_emplace({argument, type.dtype.val(), type.dims}, no_value);
    if (!fresh) return found->second;
    Value v = symbols_[static_cast<size_t>(argument)];
    if (const Dtype bits = carrier(type.dtype); bits != int64) v = changed(Op::cast, v, {bits, {}});
    if (carrier(type.dtype) != type.dtype) v = changed(Op::bitcast, v, {type.dtype, {}});
    if (!type.dims.empty()) v = changed(Op::broadcast, v, type);
    return found->second = v;
  }

  void mark(const Block& block) {
    for (const Inst& inst : block.insts) {
      for (Value v : inst.args)
        if (constants_.of(v)) used_[v] = true;
      for (const Block& inner : inst.blocks) mark(inner);
    }
  }
  void drop_unused(Block& block) {
    std::erase_if(block.insts, [&](const Inst& inst) {
      return inst.op == Op::constant && takes(inst.type.dtype) && !used_[inst.results[0]];
    });
    for (Inst& inst : block.insts)
      for (Block& inner : inst.blocks) drop_unused(inner);
  }

  /// Where a tile has one element along an axis, or no more than one is loaded or stored, none has a neighbour.
  void drop_strides(Inst& inst) const {
    if (inst.op == Op::load || inst.op == Op::store) {
      const Type& tile = inst.op == Op::load ? inst.type : out_.types[static_cast<size_t>(inst.args[0])];
      for (size_t k = 0; k < inst.strides.size(); ++k) {
        const size_t at = first_limit(inst.op) + k;
        const Inst* const limit = at < inst.args.size() ? constants_.of(inst.args[at]) : nullptr;
        if (tile.dims[k] == 1 || (limit && limit->number.i == 1)) inst.strides[k] = 1;
      }
    }
    for (Block& block : inst.blocks)
      for (Inst& inner : block.insts) drop_strides(inner);
  }

  void enlarge_locals() {
    constexpr int64_t most_bytes = 32 * 1024;  // more may be too much for the shared memory of a GPU
    int64_t bytes = 0;
    std::vector<int64_t> sizes;
    for (const Local& local : out_.locals) {
      const bool plain = local.share == 0 && local.arrivals == 0 && local.swizzle == 0 && local.elements > 0;
      sizes.push_back(plain ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(local.elements)))
                            : local.elements);
      bytes += sizes.back() * local.dtype.size();
    }
    if (bytes > most_bytes) return;
    for (size_t k = 0; k < sizes.size(); ++k) out_.locals[k].elements = sizes[k];
    for (Inst& inst : out_.body.insts)
      if (inst.op == Op::alloc) inst.number = Number::of_int(sizes[static_cast<size_t>(inst.ref) - out_.params.size()]);
  }

  const Kernel& kernel_;
  const Constants constants_;
  std::span<const int> arguments_;
  size_t next_ = 0;
  Kernel out_;
  std::vector<Inst> made_;
  std::vector<Value> symbols_;
  std::map<std::tuple<int, Dtype::Val, std::vector<int64_t>>, Value> values_;  // of an argument as a tile of a type
  std::unordered_map<Value, bool> used_;
};

bool is_plain(const Block& block) {
  return std::all_of(block.insts.begin(), block.insts.end(), [](const Inst& inst) {
    switch (inst.op) {
      case Op::copy_async:
      case Op::dot_async:
      case Op::roles:
      case Op::grid_barrier:
      case Op::cluster_barrier:
      case Op::wait_until:
      case Op::inline_code:
      case Op::source: return false;
      default: return std::all_of(inst.blocks.begin(), inst.blocks.end(), is_plain);
    }
  });
}

}  // namespace

bool takes_numbers(const Kernel& kernel) {
  return !kernel.any_size && !kernel.ordered && kernel.cluster == 0 && kernel.launch == LaunchOptions{} &&
         is_plain(kernel.body);
}

std::vector<int64_t> numbers(const Kernel& kernel) {
  const Constants constants(kernel);
  std::vector<int64_t> out;
  for (const Inst& inst : kernel.body.insts)
    each_use(inst, constants,
             [&](const Inst& constant, Value) { out.push_back(bits_of(constant.number, constant.type.dtype)); });
  return out;
}

Kernel with_arguments(const Kernel& kernel, std::span<const int> arguments) {
  return Generalisation(kernel, arguments).run();
}

}  // namespace weft::kernel
