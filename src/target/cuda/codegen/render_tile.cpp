// Renders what moves elements between threads: reductions, transpositions, shifts and dots of small tiles.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernel/rules.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Type;

namespace {

// In one step of a reduction between warps; less where rows lie in shared memory.
constexpr int64_t most_exchanged_bytes = 32 << 10, most_exchanged_beside_rows = 8 << 10;

}  // namespace

std::string Renderer::exchange(Dtype dtype, int64_t elements, int64_t offset) {
  exchange_bytes_ = std::max(exchange_bytes_, offset + elements * static_cast<int64_t>(dtype.size()));
  return fmt::format("(({}*)(shared + {}))", type_name(dtype), offset);
}

void Renderer::put(Value v, const std::string& space) { put_text(layout_of(v), space, at(v)); }

void Renderer::put_text(const Layout& s, const std::string& space, const std::string& text) {
  const std::string owner = s.owner("r"), guard = owner.empty() ? "" : fmt::format("if ({}) ", owner);
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {}{}[{}] = {};", s.registers(), guard, space, s.element("r"), text));
}

void Renderer::reduce(const Inst& inst) {
  if (const auto line = partial_row_loads_.find(inst.args[0]); line != partial_row_loads_.end())
    return reduction_of_rows(inst, line->second);
  const Inst* const alone[] = {&inst};
  if (type(inst.args[0]).rank() == 1 ||
      type(inst.args[0]).size() == type(inst.args[0]).dims[static_cast<size_t>(inst.axis)])
    reduce_warps_to_rows(alone);
  else reduce_plane(inst);
}

/// Returns whether the order of the reduction cannot change a bit. (In float64 a NaN keeps its payload, so it can.)
bool Renderer::any_order(kernel::Reducer reducer, Dtype dtype) {
  return !is_float(dtype) || (kernel::info(reducer).kind == kernel::ReducerKind::extreme && dtype != float64);
}

/// Renders reductions of rank-1 tiles as a tree that repeatedly combines the upper half with the lower (kernel/tile.h).
/// An element's index consists of its chunk, its thread and its position in the chunk, from the highest bits down. So
/// registers are combined first, then warps, then lanes, then the registers of one chunk. All threads end with the
/// result. The combining operators commute, so two lanes that swap values get the same bits. Where order cannot change
/// a bit, a thread combines all its registers first.
void Renderer::reduce_warps_to_rows(std::span<const Inst* const> insts) {
  const Layout s = layout_of(insts[0]->args[0]);
  const Dtype dtype = type(insts[0]->args[0]).dtype;
  check(!s.ragged(), "cuda render", "a reduction over a tile that does not fill its threads");
  const Combined combined = [&](const std::string& a, const std::string& b) {
    const std::string args[] = {a, b};
    return expression(kernel::combine(insts[0]->reducer), dtype, args);
  };
  const int kept = s.repeated() || any_order(insts[0]->reducer, dtype) ? 1 : s.vec;
  const auto halve = [&](const std::string& w, int from, int to) {
    for (; from > to; from /= 2)
      add(fmt::format("EACH (int r = 0; r < {0}; ++r) {1}[r] = {2};", from / 2, w,
                      combined(w + "[r]", fmt::format("{}[r + {}]", w, from / 2))));
  };
  for (const Inst* inst : insts) {
    const std::string w = "w" + std::to_string(inst->results[0]);
    add(fmt::format("{} {}[{}];", type_name(dtype), w, s.registers()));
    add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {};", s.registers(), w, at(inst->args[0])));
    halve(w, s.registers(), kept);
  }
  const int64_t lanes = std::min<int64_t>(s.size, threads_);
  std::string all = "w" + std::to_string(insts[0]->results[0]);
  const auto count = static_cast<int>(insts.size());
  if (count > 1) {
    all += "s";
    add(fmt::format("{} {}[{}];", type_name(dtype), all, count * kept));
    for (int k = 0; k < count; ++k)
      add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r + {}] = w{}[r];", kept, all, k * kept,
                      insts[static_cast<size_t>(k)]->results[0]));
  }
  if (lanes > 32) reduce_warps(s, dtype, all, count * kept, combined);
  else reduce_lanes(static_cast<int>(lanes), all, kept, combined);
  for (int k = 0; k < count; ++k) {
    const std::string w = count == 1 ? all : fmt::format("({} + {})", all, k * kept);
    if (lanes > 32) halve(w, kept, 1);
    each(insts[static_cast<size_t>(k)]->results[0], w + "[0]");
  }
}

/// Returns how many consecutive reductions share the same barriers: 2 if both are of the same kind and exchange between
/// warps, else 1.
size_t Renderer::merged_reductions(std::span<const Inst* const> insts) const {
  const auto by_warps = [&](const Inst& inst) {
    return inst.op == kernel::Op::reduce && type(inst.args[0]).rank() == 1 &&
           std::min<int64_t>(type(inst.args[0]).size(), threads_) > 32;
  };
  if (insts.size() < 2 || !by_warps(*insts[0]) || !by_warps(*insts[1])) return 1;
  if (!kernel::is_basic(kernel_, *insts[0]) || !kernel::is_basic(kernel_, *insts[1])) return 1;
  return type(insts[0]->args[0]) == type(insts[1]->args[0]) && insts[0]->reducer == insts[1]->reducer ? 2 : 1;
}

/// Renders the reduction of a plane's rows where each row lies in adjacent lanes, one chunk each. Only results leave a
/// warp.
void Renderer::reduce_rows(const Inst& inst) {
  const Value v = inst.args[0];
  const Type& from = type(v);
  const Layout s = layout_of(v);
  const int64_t rows = from.dims[0], columns = from.dims[1], lanes = columns / s.vec;
  const std::string space = exchange(from.dtype, rows), w = "w" + std::to_string(inst.results[0]);
  sync();
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", s.registers() / s.vec));
  add(fmt::format("{} {}[{}];", type_name(from.dtype), w, s.vec));
  add(fmt::format("EACH (int k = 0; k < {0}; ++k) {1}[k] = {2};", s.vec, w, at(v, fmt::format("(c * {} + k)", s.vec))));
  reduce_lanes(static_cast<int>(lanes), w, s.vec, [&](const std::string& a, const std::string& b) {
    const std::string args[] = {a, b};
    return expression(kernel::combine(inst.reducer), from.dtype, args);
  });
  add(fmt::format("if ((t & {}) == 0) {}[(c * {} + t) / {}] = {}[0];", lanes - 1, space, threads_, lanes, w));
  close();
  sync();
  const Layout to = layout_of(inst.type);
  const std::string guard = to.ragged() ? fmt::format("{} < {} ? ", to.element("r"), to.size) : "";
  each(inst.results[0],
       fmt::format("{}{}[{}]{}", guard, space, to.element("r"), guard.empty() ? "" : fmt::format(" : {}[0]", space)));
}

/// Renders a reduction over the lanes of a warp. While there are several registers, two lanes divide them: each
/// combines half of them, so that each step moves half as many. The register index thus becomes part of the lane index.
void Renderer::reduce_lanes(int lanes, const std::string& w, int registers, const Combined& combined) {
  std::vector<int> shared_out;
  for (int mask = lanes / 2; mask > 0; mask /= 2) {
    if (registers == 1) {
      add(fmt::format("{0}[0] = {1};", w, combined(w + "[0]", fmt::format("lane_xor({}[0], {})", w, mask))));
      continue;
    }
    registers /= 2;
    shared_out.push_back(mask);
    add(
        fmt::format("EACH (int r = 0; r < {0}; ++r) {{ const auto kept = chosen(t & {1}, {2}[r + {0}], {2}[r]), given "
                    "= chosen(t & {1}, {2}[r], {2}[r + {0}]); {2}[r] = {3}; }}",
                    registers, mask, w, combined("kept", fmt::format("lane_xor(given, {})", mask))));
  }
  for (int mask : shared_out)
    add(fmt::format("EACH (int r = 0; r < {0}; ++r) {1}[r] = {2};", registers, w,
                    combined(w + "[r]", fmt::format("lane_xor({}[r], {})", w, mask))));
  for (; registers > 1; registers /= 2)
    add(fmt::format("EACH (int r = 0; r < {0}; ++r) {1}[r] = {2};", registers / 2, w,
                    combined(w + "[r]", fmt::format("{}[r + {}]", w, registers / 2))));
}

/// Renders a reduction over warps through shared memory, as many registers at a time as it may take. One warp combines
/// each register.
void Renderer::reduce_warps(const Layout& s, Dtype dtype, const std::string& w, int registers,
                            const Combined& combined) {
  const int64_t lanes = std::min<int64_t>(s.size, threads_), warps = lanes / 32;
  const int64_t most = local_bytes_ > 0 ? most_exchanged_beside_rows : most_exchanged_bytes;
  const auto at_once = std::clamp<int64_t>(most / (lanes * dtype.size()), 1, registers);
  const int64_t owners = std::min(warps, at_once), owned = at_once / owners;
  const std::string space = exchange(dtype, lanes * at_once),
                    totals = exchange(dtype, registers, (lanes * at_once * dtype.size() + 15) / 16 * 16);
  const std::string thread = s.repeated() ? fmt::format("(t & {})", s.size - 1) : "t";
  open(fmt::format("EACH (int first = 0; first < {}; first += {})", registers, at_once));
  sync();
  add(fmt::format("EACH (int r = 0; r < {0}; ++r) {1}[{2} + r * {3}] = {4}[first + r];", at_once, space, thread, lanes,
                  w));
  sync();
  open(owners < warps ? fmt::format("if ({} < {})", thread, owners * 32) : "");
  open(fmt::format("EACH (int k = 0; k < {}; ++k)", owned));
  add(fmt::format("const int r = ({} >> 5) + k * {};", thread, owners));
  add(fmt::format("{} x[{}];", type_name(dtype), warps));
  add(fmt::format("EACH (int j = 0; j < {}; ++j) x[j] = {}[j * 32 + (t & 31) + r * {}];", warps, space, lanes));
  for (int64_t half = warps / 2; half > 0; half /= 2)
    add(fmt::format("EACH (int j = 0; j < {0}; ++j) x[j] = {1};", half,
                    combined("x[j]", fmt::format("x[j + {}]", half))));
  for (int mask = 16; mask > 0; mask /= 2)
    add(fmt::format("x[0] = {};", combined("x[0]", fmt::format("lane_xor(x[0], {})", mask))));
  add(fmt::format("if ((t & 31) == 0) {}[first + r] = x[0];", totals));
  close();
  close();
  close();
  sync();
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {}[r];", registers, w, totals));
}

/// Renders the reduction of a plane's columns where a chunk of all threads holds whole rows. Chunks are combined in
/// registers; the rows of one chunk are combined in two steps through shared memory.
void Renderer::reduce_columns(const Inst& inst) {
  const Value v = inst.args[0];
  const Type& from = type(v);
  const Layout s = layout_of(v);
  const char* t = type_name(from.dtype);
  const int64_t columns = from.dims[1], elements = static_cast<int64_t>(threads_) * s.vec, rows = elements / columns;
  int64_t high = 1;  // rows combined in the first step
  while (high * high < rows) high *= 2;
  const int64_t low = rows / high;
  const std::string space = exchange(from.dtype, elements), w = "w" + std::to_string(inst.results[0]);
  const auto combined = [&](const std::string& a, const std::string& b) {
    const std::string args[] = {a, b};
    return expression(kernel::combine(inst.reducer), from.dtype, args);
  };
  const auto tree = [&](int64_t count) {
    for (int64_t half = count / 2; half > 0; half /= 2)
      add(fmt::format("EACH (int j = 0; j < {0}; ++j) x[j] = {1};", half,
                      combined("x[j]", fmt::format("x[j + {}]", half))));
  };
  int registers = s.registers();
  add(fmt::format("{} {}[{}];", t, w, registers));
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {};", registers, w, at(v)));
  for (; registers > s.vec; registers /= 2)
    add(fmt::format("EACH (int r = 0; r < {0}; ++r) {1}[r] = {2};", registers / 2, w,
                    combined(w + "[r]", fmt::format("{}[r + {}]", w, registers / 2))));
  sync();
  add(fmt::format("EACH (int r = 0; r < {0}; ++r) {1}[t * {0} + r] = {2}[r];", s.vec, space, w));
  sync();
  open(fmt::format("for (int k = t; k < {}; k += {})", low * columns, threads_));
  add(fmt::format("{} x[{}];", t, high));
  add(fmt::format("EACH (int j = 0; j < {}; ++j) x[j] = {}[j * {} + k];", high, space, low * columns));
  tree(high);
  add(fmt::format("{}[k] = x[0];", space));
  close();
  sync();
  const Value result = inst.results[0];
  const Layout to = layout_of(inst.type);
  declare(result);
  open(fmt::format("EACH (int r = 0; r < {}; ++r)", to.registers()));
  add(fmt::format("const int k = {};",
                  to.ragged() ? fmt::format("imin<int>({}, {})", to.element("r"), to.size - 1) : to.element("r")));
  add(fmt::format("{} x[{}];", t, low));
  add(fmt::format("EACH (int j = 0; j < {}; ++j) x[j] = {}[j * {} + k];", low, space, columns));
  tree(low);
  add(fmt::format("{}[r] = x[0];", fresh(result)));
  close();
}

/// Renders the reduction of a tile of two axes; the general case halves the axis repeatedly in shared memory.
void Renderer::reduce_plane(const Inst& inst) {
  const Value v = inst.args[0];
  const Type& from = type(v);
  const Layout whole = layout_of(v);
  const int64_t neighbours = from.dims[1] / whole.vec;
  if (inst.axis == 1 && !whole.ragged() && !whole.repeated() && from.dims[1] % whole.vec == 0 && neighbours > 1 &&
      neighbours <= 32 && (neighbours & (neighbours - 1)) == 0 && !splat_[static_cast<size_t>(v)])
    return reduce_rows(inst);
  if (inst.axis == 0 && !whole.ragged() && !whole.repeated() &&
      static_cast<int64_t>(threads_) * whole.vec % from.dims[1] == 0 && !splat_[static_cast<size_t>(v)])
    return reduce_columns(inst);
  const Dtype dtype = from.dtype;
  const int64_t rows = from.dims[0], columns = from.dims[1];
  const std::string space = exchange(dtype, from.size());
  sync();
  put(v, space);
  const bool last = inst.axis == 1;
  for (int64_t half = from.dims[static_cast<size_t>(inst.axis)] / 2; half > 0; half /= 2) {
    sync();
    const int64_t wide = last ? half : columns;  // of the half that remains
    const std::string here = fmt::format("{}[k / {} * {} + k % {}]", space, wide, columns, wide);
    const std::string there =
        fmt::format("{}[k / {} * {} + k % {} + {}]", space, wide, columns, wide, last ? half : half * columns);
    const std::string args[] = {here, there};
    add(fmt::format("for (int k = t; k < {}; k += {}) {} = {};", last ? rows * half : half * columns, threads_, here,
                    expression(kernel::combine(inst.reducer), dtype, args)));
  }
  sync();
  const Layout s = layout_of(inst.type);
  const std::string guard = s.ragged() ? fmt::format("{} < {} ? ", s.element("r"), s.size) : "";
  each(inst.results[0],
       fmt::format("{}{}[{}{}]{}", guard, space, s.element("r"), last ? fmt::format(" * {}", columns) : "",
                   guard.empty() ? "" : fmt::format(" : {}[0]", space)));
}

void Renderer::broadcast(const Inst& inst) {
  const Value from = inst.args[0], result = inst.results[0];
  if (type(from).rank() == 0 || splat_[static_cast<size_t>(from)]) {
    name(result, at(from));
    splat_[static_cast<size_t>(result)] = inst.type.rank() > 0;
    return;
  }
  const Type& source = type(from);
  if (source.size() == inst.type.size()) return each(result, at(from));
  const std::string space = exchange(source.dtype, source.size());
  sync();
  put(from, space);
  sync();
  const bool along_rows = source.rank() == 2 && source.dims[1] == 1;
  const Layout s = layout_of(inst.type);
  std::string index = fmt::format("{} {} {}", s.element("r"), along_rows ? "/" : "%", inst.type.dims[1]);
  if (s.ragged()) index = fmt::format("imin<int>({}, {})", index, source.size() - 1);
  each(result, fmt::format("{}[{}]", space, index));
}

/// Renders a transposition through shared memory. Rows of the result are padded, so that threads that write one column
/// use different banks. Chunks are read back in words of four bytes.
void Renderer::transpose(const Inst& inst) {
  const Value from = inst.args[0], result = inst.results[0];
  if (splat_[static_cast<size_t>(from)]) {
    name(result, at(from));
    splat_[static_cast<size_t>(result)] = true;
    return;
  }
  if (tile_side_ > 0) return transpose_register_tiles(inst);
  const int64_t rows = inst.type.dims[0], columns = inst.type.dims[1], size = inst.type.dtype.size(),
                pitch = columns + std::max<int64_t>(1, 4 / size);
  const std::string space = exchange(inst.type.dtype, rows * pitch);
  const Layout given = layout_of(from), s = layout_of(inst.type);
  std::string guard;
  if (given.repeated()) guard = fmt::format("if (t < {}) ", given.size);
  else if (given.ragged()) guard = fmt::format("if ({} < {}) ", given.element("r"), given.size);
  const std::string element = given.element("r");
  sync();
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {}{}[{} % {} * {} + {} / {}] = {};", given.registers(), guard, space,
                  element, rows, pitch, element, rows, at(from)));
  sync();
  if (!s.ragged() && !s.repeated() && s.vec > 1 && columns % s.vec == 0 && pitch * size % 4 == 0 &&
      s.vec * size % 4 == 0 && inst.type.dtype != bool_) {
    declare(result);
    const std::string first = s.element(fmt::format("(c * {})", s.vec));
    open(fmt::format("EACH (int c = 0; c < {}; ++c)", s.registers() / s.vec));
    add(fmt::format("const W4* const line = (const W4*)({} + {} / {} * {} + {} % {});", space, first, columns, pitch,
                    first, columns));
    add(fmt::format("EACH (int k = 0; k < {}; ++k) ((W4*)({} + c * {}))[k] = line[k];", s.vec * size / 4, fresh(result),
                    s.vec));
    return close();
  }
  const std::string to = s.ragged() ? fmt::format("imin<int>({}, {})", s.element("r"), s.size - 1) : s.element("r");
  each(result, fmt::format("{}[{} / {} * {} + {} % {}]", space, to, columns, pitch, to, columns));
}

void Renderer::shift(const Inst& inst) {
  const int64_t n = inst.type.size();
  const std::string space = exchange(inst.type.dtype, n);
  sync();
  put(inst.args[0], space);
  sync();
  const Layout s = layout_of(inst.type);
  const std::string source = fmt::format("({} - ({}))", s.element("r"), inst.axis);
  each(inst.results[0], fmt::format("{0} >= 0 && {0} < {1} ? {2}[{0}] : {3}", source, n, space, at(inst.args[1])));
}

/// Renders an exchange of elements whose indices differ in one bit. That bit belongs to the register, the lane or the
/// warp; only the last case needs shared memory.
void Renderer::exchange_lanes(const Inst& inst) {
  const Value from = inst.args[0], result = inst.results[0];
  if (splat_[static_cast<size_t>(from)]) {
    name(result, at(from));
    splat_[static_cast<size_t>(result)] = true;
    return;
  }
  const Layout s = layout_of(from);
  const int threads = s.repeated() ? static_cast<int>(s.size) : s.threads, vec = s.repeated() ? 1 : s.vec;
  const int thread_bits = inst.axis / vec % threads, register_bits = inst.axis / vec / threads * vec + inst.axis % vec;
  const std::string other = register_bits == 0 ? "r" : fmt::format("(r ^ {})", register_bits);
  if (thread_bits == 0) return each(result, at(from, other));
  if (thread_bits < 32) return each(result, fmt::format("lane_xor({}, {})", at(from, other), thread_bits));
  const std::string space = exchange(inst.type.dtype, static_cast<int64_t>(s.registers()) * s.threads);
  sync();
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r * {} + t] = {};", s.registers(), space, s.threads, at(from)));
  sync();
  each(result, fmt::format("{}[{} * {} + (t ^ {})]", space, other, s.threads, thread_bits));
}

void Renderer::extract(const Inst& inst) {
  const Value from = inst.args[0];
  if (splat_[static_cast<size_t>(from)]) return each(inst.results[0], at(from));
  const std::string space = exchange(inst.type.dtype, type(from).size());
  sync();
  put(from, space);
  sync();
  each(inst.results[0], fmt::format("{}[{}]", space, inst.axis));
}

/// Renders a dot of small tiles, of a matrix or a batch of them. Both operands lie in shared memory; each thread
/// computes its own elements, k ascending, one fma each.
void Renderer::dot(const Inst& inst) {
  const Type &a = type(inst.args[0]), &b = type(inst.args[1]);
  const Dtype dtype = inst.type.dtype;
  const size_t rank = inst.type.dims.size();
  const int64_t depth = a.dims[rank - 1], columns = inst.type.dims[rank - 1],
                left_bytes = (a.size() * a.dtype.size() + 15) / 16 * 16;
  const std::string left = exchange(a.dtype, a.size()), right = exchange(b.dtype, b.size(), left_bytes);
  sync();
  put(inst.args[0], left);
  put(inst.args[1], right);
  sync();
  const Value result = inst.results[0];
  const Layout s = layout_of(result);
  each(result, at(inst.args[2]));
  const auto next = [&](const std::string& x, const std::string& y, const std::string& sum) {
    const std::string args[] = {conversion(x, a.dtype, dtype), conversion(y, b.dtype, dtype), sum};
    if (inst.precision == kernel::DotPrecision::tf32) return fmt::format("fma_tf32({}, {}, {})", x, y, sum);
    if (inst.precision == kernel::DotPrecision::tf32x3) return fmt::format("fma_tf32x3({}, {}, {})", x, y, sum);
    if (is_float(dtype)) return expression(kernel::ScalarOp::fma, dtype, args);
    const std::string product[] = {expression(kernel::ScalarOp::mul, dtype, std::span(args, 2)), sum};
    return expression(kernel::ScalarOp::add, dtype, product);
  };
  const int64_t chunk = static_cast<int64_t>(threads_) * s.vec;
  if (rank == 2 && s.flat() && !s.ragged() && !s.repeated() && chunk % columns == 0 && columns % s.vec == 0) {
    // A thread's chunks lie in the same columns, so it reads its columns of the right operand once, and one element of
    // the left operand per chunk.
    const std::string column = "c" + std::to_string(result), row = "r" + std::to_string(result);
    add(fmt::format("const int {} = t * {} % {}, {} = t * {} / {};", column, s.vec, columns, row, s.vec, columns));
    add("_Pragma(\"unroll 4\")");
    open(fmt::format("for (int k = 0; k < {}; ++k)", depth));
    add(fmt::format("{} y[{}];", type_name(b.dtype), s.vec));
    add(fmt::format("EACH (int j = 0; j < {}; ++j) y[j] = {}[k * {} + {} + j];", s.vec, right, columns, column));
    open(fmt::format("EACH (int c = 0; c < {}; ++c)", s.registers() / s.vec));
    add(fmt::format("const {} x = {}[({} + c * {}) * {} + k];", type_name(a.dtype), left, row, chunk / columns, depth));
    const std::string sum = fmt::format("{}[c * {} + j]", fresh(result), s.vec);
    add(fmt::format("EACH (int j = 0; j < {}; ++j) {} = {};", s.vec, sum, next("x", "y[j]", sum)));
    close();
    close();
    return;
  }
  const std::string element =
      s.ragged() ? fmt::format("imin<int>({}, {})", s.element("r"), s.size - 1) : s.element("r");
  open(fmt::format("for (int k = 0; k < {}; ++k)", depth));
  const std::string sum = fresh(result) + "[r]";
  std::string batch;  // where its matrix of the right operand begins
  if (rank > 2) batch = fmt::format("{} / {} * {} + ", element, inst.type.dims[rank - 2] * columns, depth * columns);
  const std::string x = fmt::format("{}[{} / {} * {} + k]", left, element, columns, depth),
                    y = fmt::format("{}[{}k * {} + {} % {}]", right, batch, columns, element, columns);
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {} = {};", s.registers(), sum, next(x, y, sum)));
  close();
}

}  // namespace weft::target::cuda
