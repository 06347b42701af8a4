// Executes tile IR on vectors of Numbers, one program after another, rounding after every operation as the hardware
// does.
#include "kernel/interpret.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/half.h"
#include "kernel/checked_memory.h"
#include "kernel/rules.h"

namespace weft::kernel {
namespace {

using Tile = std::vector<Number>;  // row-major

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols)
      : kernel_(kernel), symbols_(symbols), memory_(kernel, buffers), values_(kernel.types.size()) {}

  void run(int64_t program) {
    program_ = program;
    memory_.begin(program);
    block(kernel_.body);
  }

 private:
  const Tile& tile(Value v) const { return values_[static_cast<size_t>(v)]; }
  const Type& type(Value v) const { return kernel_.types[static_cast<size_t>(v)]; }
  int64_t whole(Value v) const { return tile(v)[0].i; }

  /// Runs a block and returns the values that its yield carries on.
  const std::vector<Value>& block(const Block& b) {
    for (const Inst& inst : b.insts) {
      if (inst.op == Op::yield) break;
      try {
        step(inst);
      } catch (const MemoryFault& fault) {
        throw_failure("kernel " + kernel_.name,
                      fmt::format("program {}: {}: {}", program_, print_inst(kernel_, inst), fault.what()));
      }
    }
    return b.insts.back().args;
  }

  void step(const Inst& inst) {
    switch (inst.op) {
      case Op::store: return store(inst);
      case Op::scatter:
      case Op::atomic_add: return scatter(inst);
      case Op::matmul: return matmul(inst);
      case Op::prefetch: return;
      case Op::alloc: return memory_.poison(inst.ref);
      case Op::loop: return loop(inst);
      case Op::when: return when(inst);
      default: values_[static_cast<size_t>(inst.results[0])] = compute(inst);
    }
  }

  Tile compute(const Inst& inst) {
    const size_t n = static_cast<size_t>(inst.type.size());
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
      case Op::scalar: return elementwise(inst);
      case Op::cast: {
        Tile out = tile(inst.args[0]);
        for (Number& v : out) v = reference_cast(v, type(inst.args[0]).dtype, inst.type.dtype);
        return out;
      }
      case Op::bitcast: {
        Tile out = tile(inst.args[0]);
        for (Number& v : out) {
          char bytes[8] = {};
          write_element(bytes, type(inst.args[0]).dtype, 0, v);
          v = read_element(bytes, inst.type.dtype, 0);
        }
        return out;
      }
      case Op::broadcast: return broadcast(inst);
      case Op::reshape: return tile(inst.args[0]);
      case Op::transpose: {
        const Tile& from = tile(inst.args[0]);
        const size_t rows = static_cast<size_t>(inst.type.dims[0]), columns = static_cast<size_t>(inst.type.dims[1]);
        Tile out(n);
        for (size_t k = 0; k < n; ++k) out[k] = from[(k % columns) * rows + k / columns];
        return out;
      }
      case Op::reduce: return reduce(inst);
      case Op::shift: {
        const Tile &from = tile(inst.args[0]), &into = tile(inst.args[1]);
        Tile out = into;
        for (int64_t k = 0; k < inst.type.size(); ++k)
          if (k - inst.axis >= 0 && k - inst.axis < inst.type.size())
            out[static_cast<size_t>(k)] = from[static_cast<size_t>(k - inst.axis)];
        return out;
      }
      case Op::exchange: {
        const Tile& from = tile(inst.args[0]);
        Tile out = from;
        for (size_t k = 0; k < out.size(); ++k) out[k] = from[k ^ static_cast<size_t>(inst.axis)];
        return out;
      }
      case Op::extract: return {tile(inst.args[0])[static_cast<size_t>(inst.axis)]};
      case Op::dot: return dot(inst);
      case Op::load: return load(inst);
      case Op::gather: return gather(inst);
      default: throw_internal("interpret", "unknown instruction");
    }
  }

  Tile elementwise(const Inst& inst) const {
    Tile out(static_cast<size_t>(inst.type.size()));
    const Dtype t = type(inst.args.back()).dtype;
    Number args[most_arguments];
    for (size_t k = 0; k < out.size(); ++k) {
      for (size_t a = 0; a < inst.args.size(); ++a) args[a] = tile(inst.args[a])[k];
      out[k] = reference(inst.scalar_op, t, args);
      if (is_float(inst.type.dtype)) out[k] = round_to(out[k], inst.type.dtype);
    }
    return out;
  }

  Tile broadcast(const Inst& inst) const {
    const Tile& from = tile(inst.args[0]);
    const auto& dims = type(inst.args[0]).dims;
    const size_t columns = static_cast<size_t>(inst.type.dims.back());
    const bool along_rows = dims.size() == 2 && dims[0] == inst.type.dims[0] && dims[1] == 1;  // [m,1]
    Tile out(static_cast<size_t>(inst.type.size()));
    for (size_t k = 0; k < out.size(); ++k)
      out[k] = from[from.size() == 1 ? 0 : along_rows ? k / columns : k % columns];
    return out;
  }

  Tile reduce(const Inst& inst) const {
    Tile work = tile(inst.args[0]);
    const Type& from = type(inst.args[0]);
    const bool narrow = is_low_float(from.dtype);
    const Dtype t = narrow ? float32 : from.dtype;
    const size_t extent = static_cast<size_t>(from.dims[static_cast<size_t>(inst.axis)]), rest = work.size() / extent;
    const bool last = inst.axis + 1 == from.rank();
    // Element i along the axis of line j.
    auto at = [&](size_t i, size_t j) -> Number& { return work[last ? j * extent + i : i * rest + j]; };
    Tile out;
    for (size_t j = 0; j < rest; ++j) {
      for (size_t half = extent / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; ++i) {
          const Number pair[] = {at(i, j), at(i + half, j)};
          at(i, j) = round_to(reference(combine(inst.reducer), t, pair), t);
        }
      out.push_back(round_to(at(0, j), from.dtype));
    }
    return out;
  }

  Tile dot(const Inst& inst) const {
    const Tile &a = tile(inst.args[0]), &b = tile(inst.args[1]);
    Tile c = tile(inst.args[2]);
    const bool wide = inst.type.dtype == float64;
    const size_t columns = static_cast<size_t>(inst.type.dims[1]),
                 depth = static_cast<size_t>(type(inst.args[0]).dims[1]);
    for (size_t k = 0; k < c.size(); ++k) {
      if (inst.type.dtype == int32) {
        for (size_t d = 0; d < depth; ++d)
          c[k] =
              round_to(Number::of_int(c[k].i + a[k / columns * depth + d].i * b[d * columns + k % columns].i), int32);
        continue;
      }
      double sum = c[k].f;
      for (size_t d = 0; d < depth; ++d) {
        const double x = a[k / columns * depth + d].f, y = b[d * columns + k % columns].f;
        sum = wide ? std::fma(x, y, sum)
                   : std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(sum));
      }
      c[k] = round_to(Number::of_real(sum), inst.type.dtype);
    }
    return c;
  }

  /// Returns an operand of a matmul as a dense matrix of rows (of B columns) by k, rounded as tensor cores read it.
  std::vector<float> side(const Inst& inst, bool right, int64_t k) {
    int64_t lines = inst.type.dims[right ? 1 : 0];
    std::vector<float> out(static_cast<size_t>(lines * k), 0.f);
    if (const Value limit = inst.args[right ? 3 : 2]; limit != no_value) lines = std::min(lines, whole(limit));
    const bool tf32 = matmul_dtype(kernel_, inst, right) == float32, computed = computed_side(inst, right) != nullptr;
    const int64_t first = whole(inst.args[right ? 1 : 0]), stride = inst.strides[right ? 3 : 0],
                  depth_stride = inst.strides[right ? 2 : 1];
    for (int64_t i = 0; i < lines; ++i)
      for (int64_t d = 0; d < k; ++d) {
        const Number n = computed ? element(inst, right, first + i, d)
                                  : memory_.load(right ? inst.right : inst.left, first + i * stride + d * depth_stride);
        const auto v = static_cast<float>(n.f);
        out[static_cast<size_t>(i * k + d)] = tf32 ? float_to_tf32(v) : v;
      }
    return out;
  }

  /// Computes an element of a side from one of each of its sources.
  Number element(const Inst& inst, bool right, int64_t i, int64_t k) {
    const Block& body = *computed_side(inst, right);
    auto argument = body.arguments.begin();
    for (size_t n = 0; n < inst.sources.size(); ++n) {
      const MatmulSource& s = inst.sources[n];
      if (s.right != right) continue;
      const int64_t at =
          whole(inst.args[5 + n]) + i * s.stride + s.jump.at(i) + k * s.depth_stride + s.depth_jump.at(k);
      values_[static_cast<size_t>(*argument++)] = {memory_.load(s.ref, at)};
    }
    return tile(block(body)[0])[0];
  }

  void matmul(const Inst& inst) {
    const int64_t rows = inst.type.dims[0], columns = inst.type.dims[1], k = std::max<int64_t>(0, whole(inst.args[4]));
    const auto a = side(inst, false, k), b = side(inst, true, k);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (int64_t d = 0; d < k; ++d)
          sum = std::fma(a[static_cast<size_t>(i * k + d)], b[static_cast<size_t>(j * k + d)], sum);
        memory_.store(inst.ref, i * inst.strides[4] + j, Number::of_real(sum));
      }
  }

  /// Calls visit(lane, address) for each lane of a load's or store's tile that is within the limits.
  template <class Visit>
  void slice(const Inst& inst, const Type& of, Visit visit) const {
    const size_t limits = first_limit(inst.op), rank = of.dims.size();
    const int64_t offset = whole(inst.args[limits - 1]), columns = rank > 0 ? of.dims.back() : 1;
    for (int64_t lane = 0; lane < of.size(); ++lane) {
      const int64_t position[] = {rank == 2 ? lane / columns : lane, lane % columns};
      uint64_t address = static_cast<uint64_t>(offset);
      bool inside = true;
      for (size_t k = 0; k < rank; ++k) {
        const Value limit = inst.args[limits + k];
        inside = inside && (limit == no_value || position[k] < whole(limit));
        address += static_cast<uint64_t>(position[k]) * static_cast<uint64_t>(inst.strides[k]);
      }
      if (inside) visit(static_cast<size_t>(lane), static_cast<int64_t>(address));
    }
  }

  Tile load(const Inst& inst) {
    Tile out(static_cast<size_t>(inst.type.size()), inst.number);
    slice(inst, inst.type, [&](size_t lane, int64_t address) { out[lane] = memory_.load(inst.ref, address); });
    return out;
  }

  void store(const Inst& inst) {
    const Tile& value = tile(inst.args[0]);
    slice(inst, type(inst.args[0]),
          [&](size_t lane, int64_t address) { memory_.store(inst.ref, address, value[lane]); });
  }

  bool masked(Value mask, size_t lane) const { return mask != no_value && tile(mask)[lane].i == 0; }

  Tile gather(const Inst& inst) {
    Tile out(static_cast<size_t>(inst.type.size()), inst.number);
    for (size_t k = 0; k < out.size(); ++k)
      if (!masked(inst.args[1], k)) out[k] = memory_.load(inst.ref, tile(inst.args[0])[k].i);
    return out;
  }

  void scatter(const Inst& inst) {
    const Tile &value = tile(inst.args[0]), &index = tile(inst.args[1]);
    for (size_t k = 0; k < value.size(); ++k) {
      if (masked(inst.args[2], k)) continue;
      if (inst.op == Op::scatter) memory_.store(inst.ref, index[k].i, value[k]);
      else memory_.atomic_add(inst.ref, index[k].i, value[k]);
    }
  }

  void loop(const Inst& inst) {
    const int64_t hi = whole(inst.args[1]), by = whole(inst.args[2]);
    if (by <= 0) throw MemoryFault(fmt::format("the step is {}: it must be positive", by));
    const Block& body = inst.blocks[0];
    std::vector<Tile> carried;
    for (size_t k = 3; k < inst.args.size(); ++k) carried.push_back(tile(inst.args[k]));
    for (int64_t i = whole(inst.args[0]); i < hi;) {
      values_[static_cast<size_t>(body.arguments[0])] = {Number::of_int(i)};
      for (size_t k = 0; k < carried.size(); ++k)
        values_[static_cast<size_t>(body.arguments[k + 1])] = std::move(carried[k]);
      const std::vector<Value>& next = block(body);
      for (size_t k = 0; k < carried.size(); ++k) carried[k] = tile(next[k]);
      if (__builtin_add_overflow(i, by, &i)) break;
    }
    for (size_t k = 0; k < carried.size(); ++k) values_[static_cast<size_t>(inst.results[k])] = std::move(carried[k]);
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

  const Kernel& kernel_;
  std::span<const int64_t> symbols_;
  CheckedMemory memory_;
  std::vector<Tile> values_;
  int64_t program_ = 0;
};

}  // namespace

void interpret(const Kernel& kernel, std::span<const HostBuffer> buffers, std::span<const int64_t> symbols,
               int64_t grid) {
  verify(kernel);
  const std::string where = "kernel " + kernel.name;
  if (buffers.size() != kernel.params.size())
    throw_failure(where, fmt::format("takes {} buffers, not {}", kernel.params.size(), buffers.size()));
  if (symbols.size() != kernel.symbols.size())
    throw_failure(where, fmt::format("takes {} symbols, not {}", kernel.symbols.size(), symbols.size()));
  for (const HostBuffer& b : buffers)
    if (b.elements < 0 || (b.elements > 0 && b.data == nullptr)) throw_failure(where, "a buffer has no memory");
  Interpreter interpreter(kernel, buffers, symbols);
  for (int64_t program = 0; program < grid; ++program) interpreter.run(program);
}

}  // namespace weft::kernel
