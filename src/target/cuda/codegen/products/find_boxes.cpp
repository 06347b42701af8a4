// Finds the boxes of matrices that TMA copies. Where a tile may pass the end of its matrix, the matrix that TMA is told
// of ends there as well, and TMA fills what lies outside with zeros. That is proved from the tile's addresses: they are
// sums of products of integers, and so are the limits of a load, which say how far it is from a tile's beginning to the
// end of an axis.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "kernel/op_info.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::no_value;
using kernel::Op;
using kernel::ScalarOp;
using kernel::Value;

namespace {

/// An integer as a sum of other ones, each times a number.
struct LinearSum {
  std::map<Value, int64_t> terms;
  int64_t constant = 0;

  void add(const LinearSum& other, int64_t times) {
    constant += times * other.constant;
    for (const auto& [v, n] : other.terms)
      if ((terms[v] += times * n) == 0) terms.erase(v);
  }
};

LinearSum linear(const Uses& uses, Value v) {
  const Inst* const maker = uses.maker(v);
  LinearSum out;
  if (maker && maker->op == Op::constant) {
    out.constant = maker->number.i;
    return out;
  }
  if (maker && maker->op == Op::scalar && maker->args.size() == 2) {
    const LinearSum a = linear(uses, maker->args[0]), b = linear(uses, maker->args[1]);
    const bool sum = maker->scalar_op == ScalarOp::add, difference = maker->scalar_op == ScalarOp::sub;
    if (sum || difference) {
      out = a;
      out.add(b, sum ? 1 : -1);
      return out;
    }
    if (maker->scalar_op == ScalarOp::mul && (a.terms.empty() || b.terms.empty())) {
      out.add(a.terms.empty() ? b : a, a.terms.empty() ? a.constant : b.constant);
      return out;
    }
  }
  out.terms[v] = 1;
  return out;
}

/// The numbers that an integer may be.
struct IntegerRange {
  int64_t low = 0, high = 0;
};

std::optional<IntegerRange> range_of(const Uses& uses, const LinearSum& sum);

/// Returns the range of a remainder or quotient by a number, or of a choice; none of other operators.
std::optional<IntegerRange> range_of(const Uses& uses, const Inst& maker) {
  if (maker.op != Op::scalar) return std::nullopt;
  const auto of = [&](size_t k) { return range_of(uses, linear(uses, maker.args[k])); };
  if (maker.scalar_op == ScalarOp::select) {
    const auto x = of(1), y = of(2);
    if (!x || !y) return std::nullopt;
    return IntegerRange{std::min(x->low, y->low), std::max(x->high, y->high)};
  }
  if (maker.scalar_op != ScalarOp::mod && maker.scalar_op != ScalarOp::floordiv) return std::nullopt;
  const LinearSum by = linear(uses, maker.args[1]);
  if (!by.terms.empty() || by.constant <= 0) return std::nullopt;
  const auto divided = of(0);
  if (maker.scalar_op == ScalarOp::mod)
    return divided && divided->low >= 0 && divided->high < by.constant ? *divided : IntegerRange{0, by.constant - 1};
  if (!divided || divided->low < 0) return std::nullopt;
  return IntegerRange{divided->low / by.constant, divided->high / by.constant};
}

/// Returns the range of what an operator makes, or of a counter of a loop.
std::optional<IntegerRange> range_of(const Uses& uses, Value v) {
  if (const Inst* const maker = uses.maker(v)) return range_of(uses, *maker);
  for (const Uses::Position& position : uses.order) {
    const Inst& loop = *position.inst;
    if (loop.op != Op::loop || loop.blocks[0].arguments[0] != v) continue;
    const auto low = range_of(uses, linear(uses, loop.args[0])), high = range_of(uses, linear(uses, loop.args[1]));
    const LinearSum step = linear(uses, loop.args[2]);
    if (!low || !high || !step.terms.empty() || low->low != low->high) return std::nullopt;
    const int64_t last = low->low + (std::max(high->high - low->low, int64_t{1}) - 1) / step.constant * step.constant;
    return IntegerRange{low->low, last};
  }
  return std::nullopt;
}

std::optional<IntegerRange> range_of(const Uses& uses, const LinearSum& sum) {
  IntegerRange out{sum.constant, sum.constant};
  for (const auto& [v, times] : sum.terms) {
    const std::optional<IntegerRange> r = range_of(uses, v);
    if (!r) return std::nullopt;
    out.low += times * (times > 0 ? r->low : r->high);
    out.high += times * (times > 0 ? r->high : r->low);
  }
  return out;
}

/// Returns whether all parts of a sum are multiples of a number.
bool is_multiple(const LinearSum& sum, int64_t of) {
  return sum.constant % of == 0 &&
         std::all_of(sum.terms.begin(), sum.terms.end(), [&](const auto& x) { return x.second % of == 0; });
}

}  // namespace

/// Returns whether each line of a tile surely lies in one line of the matrix: windows that overlap, or are longer than
/// a line, go on in the next one, where TMA finds zeros.
bool Renderer::stays_in_lines(const Uses& uses, const BoxedTile& x) const {
  LinearSum column = linear(uses, x.offset);
  const auto multiple = [&](int64_t of) {
    return column.constant % of == 0 && std::all_of(column.terms.begin(), column.terms.end(), [&](const auto& term) {
             return term.second * divisor(term.first) % of == 0;
           });
  };
  if (x.pitch % x.length == 0 && multiple(x.length)) return true;
  std::erase_if(column.terms, [&](const auto& term) { return term.second % x.pitch == 0; });
  column.constant %= x.pitch;
  const std::optional<IntegerRange> range = range_of(uses, column);
  return range && range->low >= 0 && range->high + x.length <= x.pitch;
}

/// Returns the boxes in which TMA copies a tile; none, and why, where they cannot be told.
std::optional<Box> Renderer::box_of(const Uses& uses, const BoxedTile& x, std::string& why) const {
  Box box;
  box.line_limit = x.line_limit, box.column_limit = x.column_limit;
  if (x.lines > 256) {
    why = fmt::format("tiles of p{} have {} lines, more than 256", x.ref, x.lines);
    return std::nullopt;
  }
  if (box.line_limit == no_value && box.column_limit == no_value) {
    if (stays_in_lines(uses, x)) return box;
    why = fmt::format("tiles of p{} may pass the ends of its lines", x.ref);
    return std::nullopt;
  }
  // What is left of the address without the lines before the tile is its column.
  LinearSum rest = linear(uses, x.offset);
  const auto begin = [&](Value limit, AxisEnd& end) {
    LinearSum out, left = linear(uses, limit);
    end.number = std::exchange(left.constant, 0);
    for (const auto& [v, times] : left.terms)
      if (const Inst* maker = uses.maker(v); end.number == 0 && times == 1 && maker && maker->op == Op::symbol)
        end.symbol = maker->ref;
    std::erase_if(left.terms, [&](const auto& term) {
      const Inst* maker = uses.maker(term.first);
      return end.symbol >= 0 && maker && maker->op == Op::symbol && maker->ref == end.symbol;
    });
    out.add(left, -1);
    return out;
  };
  if (box.line_limit != no_value) rest.add(begin(box.line_limit, box.lines), -x.pitch);
  if (box.column_limit != no_value) {
    rest.add(begin(box.column_limit, box.columns), -1);
    const bool begins =
        box.line_limit != no_value ? rest.terms.empty() && rest.constant == 0 : is_multiple(rest, x.pitch);
    // A symbol's largest value is not known here: an axis with such an end lies in memory at its bound, which is the
    // pitch of an array that is stored as a whole.
    if (begins && box.columns.exists() && box.columns.number <= x.pitch &&
        (box.line_limit == no_value || box.lines.exists()))
      return box;
  } else {
    const std::optional<IntegerRange> columns = range_of(uses, rest);
    if (columns && columns->low >= 0 && columns->high + x.length <= x.pitch && box.lines.exists()) return box;
  }
  why = fmt::format("where a tile of p{} passes the array's edge is not known before the launch", x.ref);
  return std::nullopt;
}

/// Finds the stores that TMA copies from shared memory: whole rows of fragments, which a program stores at its end to
/// an array that the kernel does not read, where no two of its stores meet.
void Renderer::find_box_stores(const Uses& uses) {
  std::map<kernel::Ref, std::vector<const Inst*>> stores;
  std::set<kernel::Ref> others;
  for (const Uses::Position& position : uses.order) {
    const Inst& i = *position.inst;
    if (i.op == Op::store && position.block == &kernel_.body) stores[i.ref].push_back(&i);
    else if (i.ref >= 0 && i.op != Op::symbol && !box_loads_.contains(&i))
      others.insert(i.ref), others.insert(i.left), others.insert(i.right);
  }
  for (const auto& [ref, all] : stores) {
    if (is_local(ref) || others.contains(ref) || !variant_.aligned) continue;
    std::map<const Inst*, BoxStore> found;
    for (const Inst* const i : all)
      if (const std::optional<BoxStore> store = box_store_of(uses, *i)) found.emplace(i, *store);
    const bool apart = std::all_of(all.begin(), all.end(), [&, &all = all](const Inst* x) {
      return std::all_of(all.begin(), all.end(), [&](const Inst* y) { return x == y || lie_apart(uses, *x, *y); });
    });
    if (found.size() == all.size() && apart) box_stores_.merge(found);
  }
}

/// Returns how TMA copies a store; nothing where it does not.
std::optional<BoxStore> Renderer::box_store_of(const Uses& uses, const Inst& i) const {
  const auto held = held_.find(i.args[0]);
  const Dtype dtype = dtype_of(i.ref);
  const int64_t per = 16 / dtype.size();
  const bool whole = held != held_.end() && held->second.held == Held::fragments && held->second.interleaved &&
                     held->second.column_warps == 1 && type(i.args[0]).rank() == 2;
  const bool known = dtype == float32 || dtype == bfloat16 || dtype == float16;
  if (!whole || !known || i.strides[1] != 1 || i.strides[0] % per != 0) return std::nullopt;
  BoxStore out;
  const int64_t chunks = held->second.columns / per;
  if (chunks % out.panel != 0) return std::nullopt;
  out.boxes = static_cast<int>(held->second.row_fragments() * (chunks / out.panel));
  std::string why;
  const BoxedTile tile{i.ref, i.args[1], i.args[2], i.args[3], i.strides[0], 64, held->second.columns, out.panel * per};
  const std::optional<Box> box = box_of(uses, tile, why);
  // A line that ends within 16 bytes is stored to the end of them, whatever lies there.
  if (!box || box->columns.symbol >= 0 || box->columns.number % per != 0) return std::nullopt;
  out.box = *box;
  return out;
}

/// Gives boxes that are stored their matrices, and their spaces behind the stages: as many as there is room for.
void Renderer::place_boxes() {
  if (box_stores_.empty()) return;
  int64_t most = 2;
  for (auto& [inst, store] : box_stores_) {
    const Dtype dtype = dtype_of(inst->ref);
    most = std::max<int64_t>(most, sets_ * store.boxes);
    store.map = number_of(
        {inst->ref, dtype, inst->strides[0], 64, store.panel * 16 / dtype.size(), store.box.lines, store.box.columns});
  }
  box_store_offset_ = (stage_bytes_ + 1023) / 1024 * 1024;
  const int64_t of_space = BoxStore::bytes * warpgroups_ * sets_, left = bytes_of_stages() - box_store_offset_;
  box_spaces_ = static_cast<int>(std::clamp<int64_t>(least_spaces() + left / of_space, 2, most));
  stage_bytes_ = box_store_offset_ + box_spaces_ * of_space;
}

/// Returns the spaces that are worth a stage: two, or four where a program that multiplies in turns has several stores
/// of two boxes, so that one store is written while another one is copied.
int64_t Renderer::least_spaces() const {
  const bool small =
      std::all_of(box_stores_.begin(), box_stores_.end(), [](const auto& x) { return x.second.boxes <= 2; });
  return sets_ > 1 && box_stores_.size() > 1 && small && box_loads_.empty() ? 4 : 2;
}

/// Returns the spaces of a store, where warpgroups write all its boxes before TMA copies them; 0: one after the other.
int Renderer::spaces_of_store() const {
  int most = 0;
  for (const auto& [inst, store] : box_stores_) most = std::max(most, store.boxes);
  return most <= box_spaces_ ? most : 0;
}

/// Returns whether two stores to an array, or a store and a load, surely have no element in common: their tiles begin
/// in the same row, and one ends before the other.
bool Renderer::lie_apart(const Uses& uses, const Inst& x, const Inst& y) const {
  const auto offset = [](const Inst& i) { return i.op == Op::load ? i.args[0] : i.args[1]; };
  const auto columns = [&](const Inst& i) {
    const std::vector<int64_t>& dims = i.op == Op::load ? i.type.dims : type(i.args[0]).dims;
    return dims.size() == 2 ? dims[1] : i.strides.empty() ? 0 : i.strides[0] + 1;  // of other ranks: more than fit
  };
  LinearSum between = linear(uses, offset(x));
  between.add(linear(uses, offset(y)), -1);
  const int64_t by = between.constant, width = columns(by < 0 ? x : y), far = columns(by < 0 ? y : x);
  return between.terms.empty() && x.strides == y.strides && x.strides.size() == 2 && std::abs(by) >= width &&
         std::abs(by) + far <= x.strides[0];
}

/// Returns whether threads exchange elements through shared memory otherwise than by stores of boxes.
bool Renderer::exchanges(const Uses& uses) const {
  const auto copied = [&](Value v) {
    const Inst* maker = uses.maker(v);
    if (maker && maker->op == Op::permute) maker = uses.maker(maker->args[0]);
    return maker && maker->op == Op::load;
  };
  return std::any_of(uses.order.begin(), uses.order.end(), [&](const Uses::Position& position) {
    const Inst& i = *position.inst;
    switch (i.op) {
      case Op::constant:
      case Op::arange:
      case Op::scalar:
      case Op::cast:
      case Op::bitcast:
      case Op::broadcast:
      case Op::reshape:
      case Op::permute:
      case Op::slice:
      case Op::load:
      case Op::loop:
      case Op::program_id:
      case Op::symbol:
      case Op::yield: return false;
      case Op::dot: return !copied(i.args[0]) || !copied(i.args[1]);
      case Op::store: return !box_stores_.contains(&i);
      default: return true;
    }
  });
}

}  // namespace weft::target::cuda
