// Renders loads, stores and the barriers between them. Where a thread's chunk is contiguous and aligned to its size, it
// travels in words of up to 16 bytes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/half.h"
#include "kernel/op_info.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Op;
using kernel::Ref;
using kernel::Type;

Dtype Renderer::dtype_of(Ref ref) const {
  const auto k = static_cast<size_t>(ref);
  return is_local(ref) ? kernel_.locals[k - kernel_.params.size()].dtype : kernel_.params[k].dtype;
}

/// Returns the C++ type in memory. A bool is a byte.
std::string Renderer::memory_type(Ref ref) const { return dtype_of(ref) == bool_ ? "u8" : type_name(dtype_of(ref)); }

std::string Renderer::buffer(Ref ref) const {
  if (!is_local(ref))
    return fmt::format("{}{}", arrived_ && !kernel_.params[static_cast<size_t>(ref)].constant ? "q" : "p", ref);
  const int64_t offset = local_offsets_[static_cast<size_t>(ref) - kernel_.params.size()];
  if (!neighbour_.empty()) return fmt::format("(({}*)({} + {}))", memory_type(ref), neighbour_, offset);
  if (!in_shares(ref))
    return fmt::format("(({}*)({} + {}))", memory_type(ref),
                       reaches_first_ && in_first_.contains(ref) ? "first_locals" : "locals", offset);
  return fmt::format("(({}*)(locals + {}) - rank * {})", memory_type(ref), offset,
                     kernel_.locals[static_cast<size_t>(ref) - kernel_.params.size()].share);
}

/// Returns whether each block of a cluster has its own part of this local buffer.
bool Renderer::in_shares(Ref ref) const {
  return cluster_ > 1 && is_local(ref) && kernel_.locals[static_cast<size_t>(ref) - kernel_.params.size()].share > 0;
}

/// Returns the pointer that a store writes to. Within an iteration: its warp's partial row, the block's own share, or
/// the memory of the first block (last loop) or of block `t` (earlier loops).
std::string Renderer::stored_buffer(Ref ref) const {
  if (iteration_ != Iteration::none && partial_rows_.contains(ref)) return row_of_warp(ref);
  if (iteration_ == Iteration::none || !is_local(ref) || in_shares(ref)) return buffer(ref);
  const int64_t offset = local_offsets_[static_cast<size_t>(ref) - kernel_.params.size()];
  return fmt::format("(({}*)(in_block(locals, {}) + {}))", memory_type(ref), iteration_ == Iteration::last ? "0" : "t",
                     offset);
}

/// How a tile is accessed: text of the address and of the bounds check of one element, and whether chunks of `vec`
/// elements are contiguous.
struct Renderer::Slice {
  std::string address, guard;
  bool wide = false;         // chunks travel as words
  bool whole_chunks = true;  // the bound never falls within a chunk
};

std::vector<std::string> positions(const std::string& element, const std::vector<int64_t>& dims) {
  std::vector<std::string> out(dims.size());
  int64_t inner = 1;
  for (size_t k = dims.size(); k-- > 0; inner *= dims[k]) {
    const std::string first = k + 1 < dims.size() ? fmt::format("{} / {}", element, inner) : element;
    out[k] = k > 0 ? fmt::format("({} % {})", first, dims[k]) : fmt::format("({})", first);
  }
  return out;
}

Renderer::Slice Renderer::slice(const Inst& inst, const Type& tile, size_t first_limit, const Layout& s) {
  Slice out;
  const Value offset = inst.args[first_limit - 1];
  const std::string element = s.element("r");
  std::vector<std::string> position{element};
  if (s.register_tiles) position = register_tile_position(element);
  else if (s.held == Held::fragments || (s.held == Held::row_parts && tile.rank() == 2))
    position = {s.row("r"), s.column("r")};
  else if (tile.rank() >= 2) position = positions(element, tile.dims);
  out.address = at(offset);
  bool flat = tile.rank() > 0;  // the tile is contiguous, or every row of it consists of whole chunks
  bool aligned = divisor(offset) % s.vec == 0;
  for (int k = 0; k < tile.rank(); ++k) {
    const auto axis = static_cast<size_t>(k);
    const int64_t stride = inst.strides[axis];
    const bool last = k + 1 == tile.rank();
    if (last) flat = flat && stride == 1 && tile.dims[axis] % s.vec == 0;
    else aligned = aligned && stride % s.vec == 0;
    if (stride != 0 && tile.dims[axis] > 1)
      out.address +=
          stride == 1 ? fmt::format(" + {}", position[axis]) : fmt::format(" + {} * {}ll", position[axis], stride);
    const Value limit = inst.args[first_limit + axis];
    if (limit == kernel::no_value) continue;
    out.guard += fmt::format("{}{} < {}", out.guard.empty() ? "" : " && ", position[axis], at(limit));
    if (last) out.whole_chunks = divisor(limit) % s.vec == 0;
  }
  if (s.ragged()) out.guard += fmt::format("{}{} < {}", out.guard.empty() ? "" : " && ", element, s.size);
  const int64_t bytes = static_cast<int64_t>(s.vec) * dtype_of(inst.ref).size();
  if (swizzle_of(inst.ref) > 0) out.address = placed_at(inst.ref, out.address);
  out.wide = (swizzle_of(inst.ref) == 0 || bytes <= 16) && flat && aligned && s.vec > 1 && bytes >= 4 &&
             !s.repeated() && (variant_.aligned || is_local(inst.ref));
  return out;
}

std::string words(const std::string& to, const std::string& from, int64_t bytes, const std::string& read) {
  const int64_t word = std::min<int64_t>(bytes, 16);
  std::string text;
  for (int64_t k = 0; k < bytes / word; ++k)
    text += read.empty()
                ? fmt::format("((W{0}*)({1}))[{3}] = ((const W{0}*)({2}))[{3}]; ", word, to, from, k)
                : fmt::format("((W{0}*)({1}))[{3}] = {4}((const W{0}*)({2}) + {3}); ", word, to, from, k, read);
  return text;
}

static std::string put_words(const std::string& to, const std::string& from, int64_t bytes) {
  const int64_t word = std::min<int64_t>(bytes, 16);
  std::string text;
  for (int64_t k = 0; k < bytes / word; ++k)
    text += fmt::format("put_word((W{0}*)({1}) + {3}, ((const W{0}*)({2}))[{3}]); ", word, to, from, k);
  return text;
}

std::optional<uint32_t> filling(Number number, Dtype t) {
  if (t == float32) return std::bit_cast<uint32_t>(static_cast<float>(number.real()));
  if (is_low_float(t))
    return float_to_low(static_cast<float>(number.real()), t) * (t.size() == 1 ? 0x1010101u : 0x10001u);
  if (is_float(t) || t.size() > 4) return {};
  const auto v = static_cast<uint32_t>(number.integral ? number.i : static_cast<int64_t>(number.f));
  return t.size() == 4 ? v : t.size() == 2 ? (v & 0xffffu) * 0x10001u : (v & 0xffu) * 0x1010101u;
}

std::string words_if(const std::string& to, const std::string& from, const std::string& at, uint32_t other,
                     int64_t bytes, const std::string& read) {
  const int64_t word = std::min<int64_t>(bytes, 16);
  std::string text;
  for (int64_t k = 0; k < bytes / word; ++k) {
    std::string source = fmt::format("(const W{}*)({} + index_if(there, {})) + {}", word, from, at, k);
    if (!read.empty()) {
      text += fmt::format("const W{} read{} = {}({}); ", word, k, read, source);
      source = fmt::format("&read{}", k);
    }
    text += fmt::format("((W{}*)({}))[{}] = word_if(there, {}, {:#x}u); ", word, to, k, source, other);
  }
  return text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Returns the text of what register `r` has, of a tile held so, for another register.
static std::string in_register(const std::string& text, const Layout& layout, const std::string& other) {
  if (layout.held != Held::row_parts) return replaced(text, layout.element("r"), layout.element(other));
  return replaced(replaced(text, layout.row("r"), layout.row(other)), layout.column("r"), layout.column(other));
}

/// Returns whether the load is volatile assembly: otherwise the compiler delays loads and serialises them.
bool Renderer::reads_now(const Inst& inst) const { return (inst.streaming || early_now_) && !is_local(inst.ref); }

/// Returns the function by which a load reads words; empty: none. Four threads read each word of parts of rows, and
/// lines in turns: the L1 has them.
std::string Renderer::reader_of_words(const Inst& inst, const Layout& layout) const {
  return !reads_now(inst) ? "" : layout.held == Held::row_parts ? "read_cached" : "read_now";
}

/// Returns whether single elements are read so: not those of 8 bytes, nor signed ones.
static bool read_alone(Dtype t) {
  return t == float32 || t == uint32 || t == bfloat16 || t == float16 || t == uint16 || t == uint8 || is_float8(t);
}

/// Finds loads whose only use is a store to a local buffer of this block: they become asynchronous copies. Also finds
/// casts that have no reader.
void Renderer::find_copies(const kernel::Block& block) {
  std::map<Value, int> uses;
  const std::function<void(const kernel::Block&)> count = [&](const kernel::Block& b) {
    for (const Inst& inst : b.insts) {
      for (Value v : inst.args) ++uses[v];
      for (const kernel::Block& inner : inst.blocks) count(inner);
    }
  };
  count(block);
  const std::function<void(const kernel::Block&)> forget_unused =
      [&](const kernel::Block& b) {  // a cast without a reader does not count as one
        for (const Inst& inst : b.insts) {
          if (inst.op == Op::cast && uses[inst.results[0]] == 0) unseen_.insert(inst.results[0]), --uses[inst.args[0]];
          for (const kernel::Block& inner : inst.blocks) forget_unused(inner);
        }
      };
  forget_unused(block);
  const std::function<void(const kernel::Block&)> find = [&](const kernel::Block& b) {
    std::map<Value, const Inst*> loads;
    for (const Inst& inst : b.insts) {
      if (inst.op == Op::load && inst.type.rank() == 1 && !is_local(inst.ref) && uses[inst.results[0]] == 1)
        loads[inst.results[0]] = &inst;
      if (inst.op == Op::store && is_local(inst.ref) && (cluster_ == 1 || in_shares(inst.ref)) &&
          loads.contains(inst.args[0]) && dtype_of(inst.ref) == dtype_of(loads[inst.args[0]]->ref) &&
          copies_words(*loads[inst.args[0]]) &&
          std::all_of(inst.args.begin() + 2, inst.args.end(), [](Value limit) { return limit == kernel::no_value; }))
        copied_[inst.args[0]] = loads[inst.args[0]];
      for (const kernel::Block& inner : inst.blocks) find(inner);
    }
  };
  if (!general_) find(block);
}

/// Returns whether a load copies words of 16 bytes that are in bounds as a whole or zero.
bool Renderer::copies_words(const Inst& load) {
  const Layout layout = layout_of(load.type);
  const bool filled = load.args[1] == kernel::no_value || filling(load.number, load.type.dtype) == 0u;
  return load.strides[0] == 1 && filled && !layout.ragged() && !layout.repeated() &&
         layout.vec * load.type.dtype.size() % 16 == 0 && load.type.dtype != bool_;
}

/// Renders an asynchronous copy from global to shared memory, without registers. Each thread waits for its own copies
/// before it reads (finish_copies).
void Renderer::copy_row(const Inst& load, const Inst& store) {
  before_read(load.ref);
  before_write(store.ref);
  const Layout layout = layout_of(load.type);
  const Slice from = slice(load, load.type, 1, layout), to = slice(store, load.type, 2, layout);
  const auto first = [&](const std::string& text) {
    return in_register(text, layout, fmt::format("(c * {})", layout.vec));
  };
  const int64_t words = layout.vec * load.type.dtype.size() / 16, each = 16 / load.type.dtype.size();
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", layout.registers() / layout.vec));
  if (!from.guard.empty()) add(fmt::format("const bool there = {};", first(from.guard)));
  for (int64_t k = 0; k < words; ++k) {
    const std::string at =
        from.guard.empty() ? first(from.address) : fmt::format("index_if(there, {})", first(from.address));
    add(fmt::format("copy_async(shared_address({} + {} + {}), {} + {} + {}{});", buffer(store.ref), first(to.address),
                    k * each, buffer(load.ref), at, k * each, from.guard.empty() ? "" : ", there ? 16 : 0"));
  }
  close();
  copies_ = true;
}

void Renderer::finish_copies() {
  if (copies_) add("commit_copies(); wait_copies<0>();");
  copies_ = false;
}

void Renderer::load(const Inst& inst) {
  const Value result = inst.results[0];
  if (partial_row_loads_.contains(result)) return;  // loaded where it is reduced
  if (load_boxes(inst) || load_vector(inst)) return;
  if (copied_.contains(result)) {
    const Slice s = slice(inst, inst.type, 1, layout_of(inst.type));
    if (s.wide && (s.guard.empty() || s.whole_chunks)) return;  // copied by the store
    copied_.erase(result);
  }
  if (is_local(inst.ref)) finish_copies();
  before_read(inst.ref);
  const bool flag = inst.type.dtype == bool_;
  const std::string p = buffer(inst.ref);
  const Layout layout = layout_of(result);
  const Slice s = slice(inst, inst.type, 1, layout);
  if (in_pairs(inst, layout)) return load_pairs(inst, s.address, s.guard);
  const std::string element = fmt::format("{}[{}]{}", p, s.address, flag ? " != 0" : "");
  const std::string other = literal(inst.number, inst.type.dtype);
  if (!s.wide && reads_now(inst) && s.guard.empty() && read_alone(inst.type.dtype))
    return each(result, fmt::format("read_now({} + {})", p, s.address));
  if (!s.wide)
    return each(result, s.guard.empty()
                            ? element
                            : fmt::format("{} ? {} : {}", s.guard, flag ? "(" + element + ")" : element, other));
  if (flag) {  // any byte but 0 is true: bytes are read as words, and compared
    const std::string bytes = fmt::format("bytes{}", result);
    add(fmt::format("alignas(16) u8 {}[{}];", bytes, layout.registers()));
    load_chunks(inst, s, layout, bytes);
    return each(result, bytes + "[r] != 0");
  }
  declare(result);
  load_chunks(inst, s, layout, fresh(result));
}

/// Renders a load of whole chunks to the array `into`, whose elements are as they lie in memory.
void Renderer::load_chunks(const Inst& inst, const Slice& s, const Layout& layout, const std::string& into) {
  const std::string p = buffer(inst.ref), to = fmt::format("{} + c * {}", into, layout.vec),
                    other = inst.type.dtype == bool_ ? fmt::format("{}", inst.number.i != 0 ? 1 : 0)
                                                     : literal(inst.number, inst.type.dtype);
  const int64_t bytes = layout.vec * static_cast<int64_t>(inst.type.dtype.size());
  const auto first = [&](const std::string& text) {
    return in_register(text, layout, fmt::format("(c * {})", layout.vec));
  };
  const std::string whole =
      words(to, fmt::format("{} + {}", p, first(s.address)), bytes, reader_of_words(inst, layout));
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", layout.registers() / layout.vec));
  if (s.guard.empty()) {
    add(whole);
  } else {
    const std::string last = in_register(s.guard, layout, fmt::format("(c * {} + {})", layout.vec, layout.vec - 1));
    if (const auto filled = filling(inst.number, inst.type.dtype); s.whole_chunks && filled && !is_local(inst.ref)) {
      add(fmt::format("const bool there = {};", first(s.guard)));
      add(words_if(to, p, first(s.address), *filled, bytes, reader_of_words(inst, layout)));
      return close();
    }
    add(fmt::format("if ({}) {{ {}}}", s.whole_chunks ? first(s.guard) : last, whole));
    if (s.whole_chunks)
      add(fmt::format("else EACH (int j = 0; j < {}; ++j) {}[c * {} + j] = {};", layout.vec, into, layout.vec, other));
    else
      add(fmt::format("else EACH (int r = c * {0}; r < c * {0} + {0}; ++r) {1}[r] = {2} ? {3}[{4}] : {5};", layout.vec,
                      into, s.guard, p, s.address, other));
  }
  close();
}

/// Returns the name of an array with a tile's elements: a value without registers of its own is written to a new one.
std::string Renderer::in_array(Value v, const std::string& element, int64_t registers) {
  const std::string own = names_[static_cast<size_t>(v)];
  if (at(v) == own + "[r]") return own;
  const std::string array = fmt::format("w{}", body_.size());
  add(fmt::format("alignas(16) {} {}[{}];", element, array, registers));
  add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {};", registers, array, at(v)));
  return array;
}

void Renderer::store(const Inst& inst) {
  if (const auto copied = copied_.find(inst.args[0]); copied != copied_.end()) return copy_row(*copied->second, inst);
  before_write(inst.ref);
  const Value value = inst.args[0];
  const Type& tile = type(value);
  const std::string p = stored_buffer(inst.ref);
  const Layout layout = layout_of(value);
  const Slice s = slice(inst, tile, 2, layout);
  const bool for_all = iteration_ == Iteration::before_others && is_local(inst.ref) && !in_shares(inst.ref);
  check(!for_all || tile.rank() == 0, "cuda render",
        "an iteration leaves more than a number to the iterations of the next loop");
  if (tile.rank() == 0)
    return add(fmt::format("if (t {} {}) {}[{}] = {};", for_all ? "<" : "==", for_all ? cluster_ : 0, p, s.address,
                           at(value)));
  std::string guard = s.guard;
  if (layout.repeated()) guard = fmt::format("t < {}{}{}", layout.size, guard.empty() ? "" : " && ", guard);
  else if (!layout.flat() && !layout.owner("r").empty())
    guard = layout.owner("r") + (guard.empty() ? "" : " && ") + guard;
  if (store_boxes(inst) || store_fragments(inst) || store_columns(inst)) return;
  const std::string one = fmt::format("{}[{}] = {};", p, s.address, at(value));
  if (!s.wide)
    return add(fmt::format("EACH (int r = 0; r < {}; ++r) {}{}", layout.registers(),
                           guard.empty() ? "" : fmt::format("if ({}) ", guard), one));
  const std::string from = in_array(value, memory_type(inst.ref), layout.registers());
  const auto first = [&](const std::string& text) {
    return in_register(text, layout, fmt::format("(c * {})", layout.vec));
  };
  std::string whole = words(fmt::format("{} + {}", p, first(s.address)), fmt::format("{} + c * {}", from, layout.vec),
                            layout.vec * static_cast<int64_t>(dtype_of(inst.ref).size()));
  if (!is_local(inst.ref) && layout.register_tiles)
    whole = put_words(fmt::format("{} + {}", p, first(s.address)), fmt::format("{} + c * {}", from, layout.vec),
                      layout.vec * static_cast<int64_t>(dtype_of(inst.ref).size()));
  open(fmt::format("EACH (int c = 0; c < {}; ++c)", layout.registers() / layout.vec));
  if (guard.empty()) {
    add(whole);
  } else {
    const std::string last = in_register(guard, layout, fmt::format("(c * {} + {})", layout.vec, layout.vec - 1));
    add(fmt::format("if ({}) {{ {}}}", s.whole_chunks ? first(guard) : last, whole));
    if (!s.whole_chunks)
      add(fmt::format("else EACH (int r = c * {0}; r < c * {0} + {0}; ++r) if ({1}) {2}", layout.vec, guard, one));
  }
  close();
}

/// Renders prefetching of where the rows begin that a load of parts of rows reads.
void Renderer::prefetch_rows(const Inst& load) {
  const Layout layout = layout_of(load.results[0]);
  const Slice s = slice(load, load.type, 1, layout);
  add(fmt::format("EACH (int r = 0; r < {}; r += {}) {}prefetch_line({} + {});", layout.registers(),
                  layout.parts_of_row(), s.guard.empty() ? "" : fmt::format("if ({}) ", s.guard), buffer(load.ref),
                  s.address));
}

/// Renders prefetching to the L2, one cache line a thread.
void Renderer::prefetch(const Inst& inst) {
  constexpr int64_t line = 128;
  const int64_t lines = (inst.number.i * dtype_of(inst.ref).size() + line - 1) / line;
  add(fmt::format("for (int l = t; l < {}; l += {}) prefetch_line((const u8*)({} + {}) + l * {});", lines, threads_,
                  buffer(inst.ref), at(inst.args[0]), line));
}

/// Renders atomic additions of integers, whose sum is the same in any order: each thread adds its elements.
void Renderer::add_integers(const Inst& inst) {
  const Layout s = layout_of(inst.args[0]);
  std::string guard = inst.args[2] != kernel::no_value ? at(inst.args[2]) : "true";
  if (type(inst.args[0]).rank() == 0) guard += " && t == 0";
  else if (s.repeated()) guard += fmt::format(" && t < {}", s.size);
  else if (s.ragged()) guard += fmt::format(" && {} < {}", s.element("r"), s.size);
  before_write(inst.ref);
  sync();  // what other threads stored there comes first
  add(fmt::format("EACH (int r = 0; r < {}; ++r) if ({}) atomic_sum({} + {}, {});", s.registers(), guard,
                  buffer(inst.ref), placed_at(inst.ref, at(inst.args[1])), at(inst.args[0])));
}

/// Renders an atomic addition. Of floats, one thread adds the lanes in ascending order, so that the sums of a program
/// are the same in every run.
void Renderer::atomic_add(const Inst& inst) {
  const Dtype t = type(inst.args[0]).dtype;
  if (is_integer(t)) return add_integers(inst);
  const int64_t n = type(inst.args[0]).size();
  before_write(inst.ref);
  sync();
  const std::string values = exchange(t, n), positions = exchange(int64, n, (n * t.size() + 15) / 16 * 16);
  put(inst.args[0], values);
  if (inst.args[2] == kernel::no_value) {
    put(inst.args[1], positions);
  } else {
    const Layout s = layout_of(inst.args[1]);
    add(fmt::format("EACH (int r = 0; r < {}; ++r) {}{}[{}] = {} ? {} : -1;", s.registers(),
                    s.ragged() ? fmt::format("if ({} < {}) ", s.element("r"), n) : "", positions, s.element("r"),
                    at(inst.args[2]), at(inst.args[1])));
  }
  sync();
  const std::string args[] = {"old", fmt::format("{}[k]", values)};
  add(
      fmt::format("if (t == 0) for (int k = 0; k < {}; ++k) {{ const i64 place = {}[k]; if (place >= 0) "
                  "atomic_update({} + {}, [&]({} old) {{ return ({}){}; }}); }}",
                  n, positions, buffer(inst.ref), placed_at(inst.ref, "place"), memory_type(inst.ref),
                  memory_type(inst.ref), low_sum(t, args)));
  sync();
}

/// Returns the text of a sum; 8- and 16-bit floats are added in float32.
std::string Renderer::low_sum(Dtype t, std::span<const std::string> args) {
  if (!is_low_float(t)) return expression(kernel::ScalarOp::add, t, args);
  const std::string wide[] = {conversion(args[0], t, float32), conversion(args[1], t, float32)};
  return conversion("(" + expression(kernel::ScalarOp::add, float32, wide) + ")", float32, t);
}

static bool is_read(Op op) { return op == Op::load || op == Op::gather; }
static bool is_written(Op op) {
  const kernel::Access access = kernel::info(op).access;
  return access == kernel::Access::writes || access == kernel::Access::updates;
}
static bool is_write(const std::string& pattern) { return pattern.starts_with("write "); }

/// Records how a buffer is accessed. If all accesses are the same, threads only read what they wrote themselves, and no
/// barrier is needed.
void Renderer::note_pattern(const Inst& inst) {
  const bool reads = is_read(inst.op), writes = is_written(inst.op);
  if (!reads && !writes) return;
  std::string pattern = reads ? "read " : "write ";
  if (inst.op == Op::load || inst.op == Op::store) {
    const Type& tile = reads ? inst.type : type(inst.args[0]);
    pattern += fmt::format("{} by", tile.size());
    for (size_t k = 0; k < inst.strides.size(); ++k) pattern += fmt::format(" {}:{}", tile.dims[k], inst.strides[k]);
  } else {
    pattern += "indexed";
  }
  patterns_[inst.ref].insert(pattern);
}

bool Renderer::shared_pattern(Ref ref) const {
  const auto found = patterns_.find(ref);
  if (found == patterns_.end()) return false;
  // Of any kernel, patterns say too little: equal ones may begin at different offsets.
  if (general_) return std::any_of(found->second.begin(), found->second.end(), is_write);
  std::set<std::string> reads, writes;
  for (const std::string& p : found->second) {
    if (p.starts_with("read ")) reads.insert(p.substr(5));
    else writes.insert(p.substr(6));
  }
  if (reads.empty() || writes.empty()) return false;
  const bool one = reads == writes && reads.size() == 1 && *reads.begin() != "indexed";
  return !one || std::stoll(*reads.begin()) < threads_;
}

void Renderer::before_read(Ref ref) {
  if (!shared_pattern(ref)) return;
  if (dirty_.contains(ref)) {
    sync();
    dirty_.clear();
    read_.clear();
  }
  read_.insert(ref);
}

void Renderer::before_write(Ref ref) {
  if (!shared_pattern(ref)) return;
  if (read_.contains(ref) || (general_ && dirty_.contains(ref))) {
    sync();
    dirty_.clear();
    read_.clear();
  }
  dirty_.insert(ref);
}

/// Adds what came before a block that may not run.
void Renderer::add_hazards(const Hazards& before) {
  if (!general_) return;
  dirty_.insert(before.first.begin(), before.first.end());
  read_.insert(before.second.begin(), before.second.end());
}

/// Treats a loop's accesses as made before its body begins again and before what follows the loop.
void Renderer::loop_hazards(const kernel::Block& block) {
  for (const Inst& inst : block.insts) {
    const bool reads = is_read(inst.op), writes = is_written(inst.op);
    if ((reads || writes) && shared_pattern(inst.ref)) (reads ? read_ : dirty_).insert(inst.ref);
    for (const kernel::Block& inner : inst.blocks) loop_hazards(inner);
  }
}

}  // namespace weft::target::cuda
