// Chooses the layouts of a user's kernel before it is rendered: products on tensor cores leave fragments, and what is
// computed from them element by element, or carried with them through loops, is held in the same way. What is reduced
// from their rows or spread over them is held as rows and columns of fragments. All other tiles are flat.
#include <algorithm>
#include <numeric>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Block;
using kernel::Inst;
using kernel::Op;
using kernel::Type;
using kernel::Value;

namespace {

/// Classes of values that are held alike.
class Classes {
 public:
  explicit Classes(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  Value of(Value v) {
    while (parent_[static_cast<size_t>(v)] != v) v = parent_[static_cast<size_t>(v)];
    return v;
  }
  void join(Value a, Value b) { parent_[static_cast<size_t>(of(a))] = of(b); }

 private:
  std::vector<Value> parent_;
};

/// Returns the extents that are not 1.
std::vector<int64_t> extents(const Type& t) {
  std::vector<int64_t> out = t.dims;
  std::erase(out, 1);
  return out;
}

void join_alike(const kernel::Kernel& kernel, const Uses& uses, Classes& classes) {
  const auto type = [&](Value v) -> const Type& { return kernel.types[static_cast<size_t>(v)]; };
  // Each reader makes what is the same everywhere, or counts elements, in its own layout.
  const auto is_free = [&](Value v) {
    const Inst* maker = uses.maker(v);
    return v == kernel::no_value || uses.is_uniform(v) || (maker && maker->op == Op::arange);
  };
  const auto join = [&](Value a, Value b) {
    if (is_free(a) || is_free(b)) return;
    if (type(a).dims == type(b).dims && type(a).rank() > 0) classes.join(a, b);
  };
  const auto join_block = [&](const Block& block, const Inst& i) {
    const std::vector<Value>& made = block.insts.back().args;
    for (size_t k = 0; k < i.results.size() && k < made.size(); ++k) join(made[k], i.results[k]);
  };
  for (const Uses::Position& position : uses.order) {
    const Inst& i = *position.inst;
    switch (i.op) {
      case Op::scalar:
      case Op::cast:
      case Op::bitcast:
        for (const Value v : i.args) join(v, i.results[0]);
        break;
      case Op::reshape:
        if (extents(type(i.args[0])) == extents(i.type) && extents(i.type).size() == 1 && !is_free(i.args[0]))
          classes.join(i.args[0], i.results[0]);
        break;
      case Op::dot: join(i.args[2], i.results[0]); break;
      case Op::when:
        for (const Value v : i.args)
          for (const Value r : i.results) join(v, r);
        break;
      case Op::loop:
        for (size_t k = 0; k < i.results.size(); ++k) {
          join(i.blocks[0].arguments[k + 1], i.results[k]);
          join(i.args[k + 3], i.results[k]);
        }
        join_block(i.blocks[0], i);
        break;
      case Op::while_loop:
        for (size_t k = 0; k < i.results.size(); ++k) {
          for (const Block& b : i.blocks) join(b.arguments[k], i.results[k]);
          join(i.args[k], i.results[k]);
        }
        join_block(i.blocks[1], i);
        break;
      case Op::branch:
        for (const Block& b : i.blocks) join_block(b, i);
        break;
      default: break;
    }
  }
}

/// Returns whether a slice takes whole fragments of all rows, which stay where they are.
bool slices_fragments(const Layout& s, const Inst& slice) {
  return s.held == Held::fragments && s.column_warps == 1 && slice.type.dims[0] == s.rows && slice.axes[1] % 8 == 0 &&
         slice.type.dims[1] % 16 == 0 && (slice.strides.empty() || slice.strides[1] == 1);
}

}  // namespace

/// Gives values other layouts than the flat one, from the products on.
void Renderer::spread_layouts(const Uses& uses) {
  Classes classes(kernel_.types.size());
  join_alike(kernel_, uses, classes);
  std::map<Value, Layout> held;  // by class
  const auto layout = [&](Value v) -> const Layout* {
    const auto found = held.find(classes.of(v));
    return found == held.end() ? nullptr : &found->second;
  };
  for (const auto& [result, product] : products_) held.emplace(classes.of(result), product.layout);
  for (bool more = true; more;) {
    const size_t before = held.size();
    for (const Uses::Position& position : uses.order) {
      const Inst& i = *position.inst;
      if (i.op == Op::slice) {
        const Layout* const s = layout(i.args[0]);
        if (s && slices_fragments(*s, i))
          held.emplace(classes.of(i.results[0]),
                       fragments_of(s->rows, i.type.dims[1], s->row_warps, 1, s->interleaved));
      }
      if (i.op != Op::reduce && i.op != Op::broadcast) continue;
      const Value wide = i.op == Op::reduce ? i.args[0] : i.results[0],
                  line = i.op == Op::reduce ? i.results[0] : i.args[0];
      const Layout* const s = layout(wide);
      const std::vector<int64_t>& dims = type(line).dims;
      if (!s || s->held != Held::fragments || uses.is_uniform(line) || type(wide).rank() != 2 || dims.empty()) continue;
      const bool rows = i.op == Op::reduce ? i.axis == 1 : dims.size() == 2 && dims[1] == 1;
      if (type(line).size() == (rows ? s->rows : s->columns) && type(line).size() > 1)
        held.emplace(classes.of(line), rows ? rows_of(*s) : columns_of(*s));
    }
    more = held.size() > before;
  }
  for (size_t v = 0; v < kernel_.types.size(); ++v)
    if (const Layout* const s = layout(static_cast<Value>(v)); s && !uses.is_uniform(static_cast<Value>(v)))
      held_.emplace(static_cast<Value>(v), *s);
}

/// Decides how the tiles of a user's kernel are held, and how its products are computed.
void Renderer::choose_layouts() {
  if (!kernel_.any_size || warps_ > 0) return;
  const Uses uses(kernel_);
  find_box_copies(uses);
  find_products(uses);
  if (products_.empty()) return;
  find_divisors(kernel_.body);
  choose_warps(uses);
  hold_operands(uses);
  spread_layouts(uses);
  repeat_in_chunks(uses);
  find_sources(uses);
  for (const auto& [result, product] : products_)
    if (product.sum) sums_[product.sum->results[0]] = result;
}

}  // namespace weft::target::cuda
