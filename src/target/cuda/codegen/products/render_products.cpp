// Renders products on tensor cores: operands come from swizzled lines in shared memory by ldmatrix, or from the
// registers that another product left; and what happens where tiles of different layouts meet.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernel/rules.h"
#include "target/cuda/codegen/renderer.h"
#include "target/cuda/codegen/text/wgmma.h"

namespace weft::target::cuda {

using kernel::Op;
using kernel::Type;

/// Renders what layouts and products change of an instruction. False: it is rendered as it is of other kernels.
bool Renderer::placed(const Inst& i) {
  if (i.results.size() == 1) {
    const Value result = i.results[0];
    if (replaced_.contains(result) || early_loads_.contains(result)) return true;
    if (const auto sum = sums_.find(result); sum != sums_.end()) return product(products_.at(sum->second)), true;
    if (const auto p = products_.find(result); p != products_.end()) {
      if (!p->second.sum) product(p->second);
      return true;
    }
    if (const auto tile = copied_tiles_.find(result); tile != copied_tiles_.end()) {
      if (kept_.contains(&i)) awaited_.push_back(&i);
      else if (!tile->second.ahead && !tile->second.single) copy_now(tile->second);
      return true;
    }
  }
  const auto held = [&](Value v) { return v != kernel::no_value && held_.contains(v); };
  if (std::none_of(i.args.begin(), i.args.end(), held) && std::none_of(i.results.begin(), i.results.end(), held))
    return false;
  switch (i.op) {
    case Op::constant:
    case Op::arange:
    case Op::scalar:
    case Op::cast:
    case Op::bitcast:
    case Op::reshape:
    case Op::load:
    case Op::store:
    case Op::loop:
    case Op::when:
    case Op::branch:
    case Op::while_loop:
    case Op::print:
    case Op::assert_:
    case Op::yield: return false;
    case Op::broadcast: return spread_in_fragments(i);
    case Op::reduce: return reduce_in_fragments(i);
    case Op::slice: return slice_in_fragments(i), true;
    case Op::permute: return permute(i), true;
    default: return flatly(i), true;
  }
}

/// Renders an instruction over flat tiles: arguments of other layouts are converted before, and results after it.
void Renderer::flatly(const Inst& i) {
  const std::map<Value, Layout> before = held_;
  const std::vector<std::string> names = names_;
  std::vector<Value> converted;
  for (const Value v : i.args) {
    if (v == kernel::no_value || !before.contains(v) || splat_[static_cast<size_t>(v)]) continue;
    if (std::find(converted.begin(), converted.end(), v) != converted.end()) continue;
    converted.push_back(v);
    const std::string space = exchange(type(v).dtype, type(v).size()), flat = fmt::format("flat{}_{}", v, body_.size());
    sync();
    put(v, space);
    sync();
    held_.erase(v);
    const Layout s = layout_of(v);
    add(fmt::format("alignas(16) {} {}[{}];", type_name(type(v).dtype), flat, s.registers()));
    add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {}[{}];", s.registers(), flat, space, s.inside("r")));
    name(v, flat);
  }
  for (const Value v : i.results) held_.erase(v);
  inst(i);
  for (const Value v : converted) name(v, names[static_cast<size_t>(v)]);
  for (const Value v : i.results) {
    const auto to = before.find(v);
    if (to == before.end() || splat_[static_cast<size_t>(v)]) continue;
    const std::string space = exchange(type(v).dtype, type(v).size()), held = fmt::format("held{}", v);
    sync();
    put(v, space);
    sync();
    const Layout& s = to->second;
    add(fmt::format("alignas(16) {} {}[{}];", type_name(type(v).dtype), held, s.registers()));
    add(fmt::format("EACH (int r = 0; r < {}; ++r) {}[r] = {}[{}];", s.registers(), held, space, s.element("r")));
    name(v, held);
  }
  held_ = before;
}

/// Renders a result with the elements of a tile that is held in another way, in their order.
void Renderer::convert_layout(Value result, Value from) {
  const std::string space = exchange(type(from).dtype, type(from).size());
  sync();
  put(from, space);
  sync();
  each_element(result, space + "[e]");
}

/// Writes a tile that lies in registers to shared memory, as lines of swizzled chunks: its rows, or its columns.
void Renderer::stage(const Operand& x, const std::string& space) {
  const Layout s = layout_of(x.value);
  const int64_t columns = type(x.value).dims[1], per = x.per(), size = x.dtype.size();
  const std::string name = type_name(x.dtype);
  const bool wide = s.flat() && s.vec == per && !s.ragged() && !s.repeated() && columns % per == 0 && !x.transposed;
  if (wide) {
    const std::string array = in_array(x.value, name, s.registers());
    open(fmt::format("EACH (int c = 0; c < {}; ++c)", s.registers() / s.vec));
    add(fmt::format("const int e = {};", s.element(fmt::format("(c * {})", s.vec))));
    add(fmt::format("store_shared({} + {}, ((const W16*){})[c]);", space,
                    x.position(fmt::format("e / {}", columns), fmt::format("e % {} / {}", columns, per)), array));
    return close();
  }
  // Of known bits of a thread's number most of an address is a constant, which else takes a register for each byte.
  const bool known = x.transposed && std::has_single_bit(static_cast<unsigned>(threads_));
  if (known) open(""), add("const int all = t;"), open(""), add(fmt::format("const int t = all & {};", threads_ - 1));
  open(fmt::format("EACH (int r = 0; r < {}; ++r)", s.registers()));
  if (s.held == Held::fragments) add(fmt::format("const int i = {}, j = {};", s.row("r"), s.column("r")));
  else add(fmt::format("const int e = {0}, i = e / {1}, j = e % {1};", s.element("r"), columns));
  const std::string owner = s.owner("r");
  const char *const line = x.transposed ? "j" : "i", *const along = x.transposed ? "i" : "j";
  add(fmt::format("{}*({}*)(shared + ({} - shared_address(shared)) + {} + {} % {} * {}) = {};",
                  owner.empty() ? "" : fmt::format("if ({}) ", owner), name, space,
                  x.position(line, fmt::format("{} / {}", along, per)), along, per, size, at(x.value)));
  close();
  if (known) close(), close();
}

/// Returns the text of the address of an operand's lines. A tile in registers is staged at byte `offset` of the
/// exchange space.
std::string Renderer::operand_address(const Product& p, const Operand& x, int64_t offset) {
  if (x.ahead)
    return fmt::format("shared_address(stages) + {} + {} * {}", rings_of_loops_.at(p.loop).offset + x.offset,
                       slot_of(*p.loop), rings_of_loops_.at(p.loop).stage_bytes);
  if (x.single) {
    const Ring& ring = rings_of_loops_.begin()->second;
    return fmt::format("shared_address(stages) + {} + slot * {}", ring.offset + x.offset, ring.stage_bytes);
  }
  if (x.load) return fmt::format("shared_address(stages) + {}", x.offset);
  if (x.in_turns)
    return fmt::format("shared_address(stages) + {} + (u32)(({} - {}) / {} & 1) * {}", x.offset,
                       fresh(p.loop->blocks[0].arguments[0]), at(p.loop->args[0]), at(p.loop->args[2]), x.bytes());
  exchange(uint8, x.bytes(), offset);
  return fmt::format("shared_address(shared) + {}", offset);
}

/// Writes operands that lie in registers to shared memory, and then `fence`; returns the texts of the addresses of A
/// (empty where it stays in registers) and B.
std::pair<std::string, std::string> Renderer::stage_operands(const Product& p, const char* fence) {
  const bool staged_a = !p.a.load && !p.a.in_registers, staged_b = !p.b.load;
  const std::string b = operand_address(p, p.b, staged_a ? p.a.bytes() : 0);
  const std::string a = p.a.in_registers ? "" : operand_address(p, p.a, 0);
  if (p.a.in_turns || p.b.in_turns) {
    if (staged_a) stage(p.a, a);
    if (staged_b) stage(p.b, b);
    add("wgmma_wait<0>();");
    release_before(p);
    add(fence);
    sync();
  } else if (staged_a || staged_b) {
    sync();
    if (staged_a) stage(p.a, a);
    if (staged_b) stage(p.b, b);
    if (*fence) add(fence);
    sync();
  }
  return {a, b};
}

/// Renders the fragments of A for one step along k: x[i].
void Renderer::fragments_of_a(const Product& p) {
  const Operand& a = p.a;
  const int64_t fragments = p.layout.row_fragments();
  const int64_t warp_rows = p.layout.rows / p.layout.row_warps;
  open(fmt::format("EACH (int i = 0; i < {}; ++i)", fragments));
  const std::string row = p.layout.row_warps == 1 ? "i * 16"
                          : p.layout.column_warps == 1
                              ? fmt::format("(t >> 5) * {} + i * 16", warp_rows)
                              : fmt::format("(t >> 5) / {} * {} + i * 16", p.layout.column_warps, warp_rows);
  if (a.in_registers) {
    const Value seen = p.dot->args[0];
    const Layout& s = held_.at(a.value);
    const Value from = replaced_.contains(seen) ? casts_.at(seen) : seen;
    for (int q = 0; q < 4; ++q) {
      const std::string r = fmt::format("((i * {} + k * 2 + {}) * 4 + {})", s.column_fragments(), q / 2, q % 2 * 2),
                        next = fmt::format("({} + 1)", r);
      add(from == seen ? fmt::format("x[i][{}] = (u32){} | (u32){} << 16;", q, at(from, r), at(from, next))
                       : fmt::format("x[i][{}] = to_{}_pair({}, {});", q, a.dtype == bfloat16 ? "bf16" : "f16",
                                     at(from, r), at(from, next)));
    }
  } else if (a.depth_inside) {
    add(fmt::format("ldmatrix(x[i], a + swizzled<{}>({} + (t & 15), k * 2 + (t >> 4 & 1)));", a.chunks(), row));
  } else if (a.dtype != float32) {
    add(fmt::format(
        "ldmatrix_turned(x[i], a + swizzled<{}>(k * 16 + (t & 7) + (t >> 4 & 1) * 8, ({}) / 8 + (t >> 3 & 1)));",
        a.chunks(), row));
  } else {
    add(fmt::format("const int row = {} + (t >> 2 & 7), line = k * 8 + (t & 3);", row));
    for (int q = 0; q < 4; ++q)
      add(fmt::format("x[i][{0}] = load_shared(a + swizzled<{1}>(line + {2}, (row + {3}) / 4) + (row + {3}) % 4 * 4);",
                      q, a.chunks(), q / 2 * 4, q % 2 * 8));
  }
  close();
}

/// Renders the fragments of B for one step along k: y[j], two at a time.
void Renderer::fragments_of_b(const Product& p) {
  const Operand& b = p.b;
  const int64_t pairs = p.layout.column_fragments() / 2;
  const int64_t warp_columns = p.layout.columns / p.layout.column_warps;
  const std::string column = p.layout.column_warps == 1 ? "j * 16"
                             : p.layout.row_warps == 1
                                 ? fmt::format("(t >> 5) * {} + j * 16", warp_columns)
                                 : fmt::format("(t >> 5) % {} * {} + j * 16", p.layout.column_warps, warp_columns);
  open(fmt::format("EACH (int j = 0; j < {}; ++j)", pairs));
  if (b.depth_inside) {
    add(fmt::format("ldmatrix(y[j], b + swizzled<{}>({} + (t & 7) + (t >> 4 & 1) * 8, k * 2 + (t >> 3 & 1)));",
                    b.chunks(), column));
  } else if (b.dtype != float32) {
    add(fmt::format("ldmatrix_turned(y[j], b + swizzled<{}>(k * 16 + (t & 15), ({}) / 8 + (t >> 4 & 1)));", b.chunks(),
                    column));
  } else {
    add(fmt::format("const int column = {} + (t >> 2 & 7), line = k * 8 + (t & 3);", column));
    for (int q = 0; q < 4; ++q)
      add(fmt::format(
          "y[j][{0}] = load_shared(b + swizzled<{1}>(line + {2}, (column + {3}) / 4) + (column + {3}) % 4 * 4);", q,
          b.chunks(), q % 2 * 4, q / 2 * 8));
  }
  close();
}

/// Renders a product: the accumulators begin as C, or as what is added to the product. A step along k multiplies all
/// fragments of the warp. Of float32, what TF32 keeps of both numbers is multiplied; then, for three products, what it
/// keeps of the rest.
void Renderer::product(const Product& p) {
  if (warpgroups_ > 0) return product_by_warpgroups(p);
  if (p.exact()) return product_by_fma(p);
  const Value result = p.result();
  each(result, at(p.start()));
  const auto [a, b] = stage_operands(p, "");
  const int64_t step = 32 / p.a.dtype.size(), depth = type(p.dot->args[0]).dims[1];
  open("");
  if (!a.empty()) add(fmt::format("const u32 a = {};", a));
  add(fmt::format("const u32 b = {};", b));
  const int64_t rows = p.layout.row_fragments(), columns = p.layout.column_fragments();
  open(fmt::format("EACH (int k = 0; k < {}; ++k)", depth / step));
  add(fmt::format("u32 x[{}][4], y[{}][4];", rows, columns / 2));
  fragments_of_a(p);
  fragments_of_b(p);
  const std::string accumulator = fmt::format("{} + (i * {} + j) * 4", fresh(result), columns);
  const std::string each_fragment =
      fmt::format("EACH (int i = 0; i < {}; ++i) EACH (int j = 0; j < {}; ++j) ", rows, columns);
  const auto multiply = [&](const std::string& function, const char* x, const char* y) {
    add(fmt::format("{0}{1}({2}, {3}[i], {4}[j / 2][j % 2 * 2], {4}[j / 2][j % 2 * 2 + 1]);", each_fragment, function,
                    accumulator, x, y));
  };
  if (p.a.dtype != float32) {
    multiply(fmt::format("mma_{}", operand_name(p.a.dtype)), "x", "y");
  } else {
    const bool three = p.dot->precision == kernel::DotPrecision::tf32x3;
    if (three) add(fmt::format("u32 xs[{}][4], ys[{}][4];", rows, columns / 2));
    for (const auto& [tile, count] : {std::pair{"x", rows}, std::pair{"y", columns / 2}}) {
      open(fmt::format("EACH (int i = 0; i < {}; ++i) EACH (int q = 0; q < 4; ++q)", count));
      add(fmt::format("const u32 whole = {}[i][q];", tile));
      add(fmt::format("{}[i][q] = to_tf32(whole);", tile));
      if (three) add(fmt::format("{0}s[i][q] = to_tf32(bits(real(whole) - real({0}[i][q])));", tile));
      close();
    }
    if (three) multiply("mma_tf32", "xs", "y"), multiply("mma_tf32", "x", "ys");
    multiply("mma_tf32", "x", "y");
  }
  close();
  close();
}

}  // namespace weft::target::cuda
