// Maps that read along one axis and write along another.
//
// On a CPU a program computes a panel of the result: a block of columns through many rows. If an operand is contiguous
// along the other axis, a tile of it is read along that axis, transposed in registers and put into scratch, from which
// the rows are computed like those of any map. Reads continue for a panel's length, so that the hardware prefetches; a
// row of the block is two cache lines.
//
// On a GPU a program is one tile with two axes, at least as wide as a cache line on both sides, and such operands are
// transposed as whole tiles.
#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "compiler/lower/emit.h"
#include "compiler/schedule/rows.h"

namespace weft::compiler {

using ix::Expr;
using kernel::no_value;
using kernel::ScalarOp;
using kernel::Value;

namespace {

constexpr int64_t line_bytes = 64, panel_bytes = 4096;
constexpr int64_t least_extent = 16;  // of both axes
constexpr int64_t least_points = 4096;
constexpr int64_t enough_tiles = 256;  // so that every SM has two of them
// Adjacent tiles, along what is read, that run next to each other, so that they share cache lines.
constexpr int64_t most_beside = 4;

/// A load that is contiguous along u: element (u, v) is at base + u + stride · v.
struct Across {
  NodeId node;
  Expr offset;
  int64_t stride;
  kernel::Ref scratch = -1;
};

class TransposedLowering {
 public:
  TransposedLowering(const LowerContext& cx, Group& group)
      : cx_(cx), group_(group), emit_(cx, group, "transposed_" + std::to_string(group.roots.back().node)) {}

  std::optional<Lowered> run();

 private:
  using Visit = std::function<void(int, Expr)>;
  void loads(const Visit& visit);
  bool choose_axes();
  void choose_sizes();
  void bind_programs();
  int64_t tiles(int64_t side) const;
  bool is_plain();
  bool fits() const;
  void plane();
  void stage(Value u);
  Value line(const Across& a, Value at, int64_t column, Value row_limit);
  void row(Value u);

  const LowerContext& cx_;
  Group& group_;
  Emitter emit_;
  std::vector<Across> across_;
  DomainVariable u_, v_;
  std::vector<DomainVariable> outer_;
  int64_t rows_ = 1, width_ = 1, panel_ = 1;  // extents of a tile; rows of a program
  int64_t pitch_ = 1;                         // between the rows of a tile in scratch
  int64_t grid_ = 1;
  bool plane_ = false;
  Value first_row_ = no_value, first_lane_ = no_value, lane_limit_ = no_value, row_limit_ = no_value;
};

/// Visits every load that each point of the domain needs unconditionally, with its address.
void TransposedLowering::loads(const Visit& visit) {
  auto each = [&](NodeId node, const std::vector<Expr>& index) {
    emit_.walk(node, index, [&](NodeId id, const std::vector<Expr>& at) {
      if (!emit_.is_memory(id)) return true;
      visit(id, ix::linear(*group_.cx, at, cx_.grouping.strides[id]));
      return false;
    });
  };
  for (const Root& root : group_.roots) {
    const IrNode& node = cx_.ir[root.node];
    if (is_elementwise(node.op)) {
      for (NodeId input : node.inputs) each(input, root.index);
    } else if (is_movement(node.op) && node.op != graph::Op::concat) {
      Access access = push(*group_.cx, cx_.ir, root.node, root.index);
      if (!access.valid) each(access.node, access.index);
    }
  }
}

/// Chooses the axes: v is the innermost axis, along which all results are stored, and u an axis along which some
/// operand is contiguous. Returns false if there are none, or the domain is too small.
bool TransposedLowering::choose_axes() {
  const auto& domain = group_.domain;
  if (domain.size() < 2) return false;
  int64_t points = 1;
  for (const DomainVariable& d : domain) {
    if (d.inner || !d.extent.is_static()) return false;
    points *= d.extent.bound();
  }
  v_ = domain.back();
  if (points < least_points || v_.extent.bound() < least_extent) return false;
  for (const Root& root : group_.roots) {
    if (root.kind != RootKind::full) return false;
    auto form = ix::affine(ix::linear(*group_.cx, root.index, cx_.grouping.strides[root.node]),
                           std::span<const Expr>(&v_.var, 1));
    if (!form || form->coefficients[0] != 1) return false;
  }
  for (size_t k = domain.size() - 1; k-- > 0 && across_.empty();) {
    if (domain[k].extent.bound() < least_extent) continue;
    u_ = domain[k];
    std::set<std::pair<NodeId, const ix::Node*>> seen;
    loads([&](NodeId node, Expr offset) {
      const Expr both[] = {u_.var, v_.var};
      auto form = ix::affine(offset, both);
      if (form && form->coefficients[0] == 1 && form->coefficients[1] > 1 && seen.insert({node, offset.get()}).second)
        across_.push_back({node, offset, form->coefficients[1]});
    });
    outer_.assign(domain.begin(), domain.end() - 1);
    outer_.erase(outer_.begin() + static_cast<std::ptrdiff_t>(k));
  }
  return !across_.empty();
}

/// Returns the number of square tiles that cover the domain.
int64_t TransposedLowering::tiles(int64_t side) const {
  int64_t count = ((v_.extent.bound() + side - 1) / side) * ((u_.extent.bound() + side - 1) / side);
  for (const DomainVariable& d : outer_) count *= d.extent.bound();
  return count;
}

/// Returns whether the group is elementwise and every address is affine in u and v.
bool TransposedLowering::is_plain() {
  bool plain = true;
  const Expr both[] = {u_.var, v_.var};
  const auto each = [&](NodeId node, const std::vector<Expr>& index) {
    emit_.walk(node, index, [&](NodeId id, const std::vector<Expr>& at) {
      const graph::Op op = cx_.ir[id].op;
      if (emit_.is_memory(id)) {
        plain = plain && ix::affine(ix::linear(*group_.cx, at, cx_.grouping.strides[id]), both);
        return false;
      }
      if (is_movement(op) && op != graph::Op::concat) plain = plain && !push(*group_.cx, cx_.ir, id, at).valid;
      else plain = plain && (is_elementwise(op) || op == graph::Op::constant);
      return plain;
    });
  };
  for (const Root& root : group_.roots) {
    if (is_elementwise(cx_.ir[root.node].op)) {
      for (NodeId input : cx_.ir[root.node].inputs) each(input, root.index);
    } else if (is_movement(cx_.ir[root.node].op) && cx_.ir[root.node].op != graph::Op::concat) {
      const Access access = push(*group_.cx, cx_.ir, root.node, root.index);
      plain = plain && !access.valid;
      if (plain) each(access.node, access.index);
    } else {
      plain = false;
    }
  }
  return plain;
}

/// Chooses the extents of tiles and panels, the pitch of scratch, and the grid.
void TransposedLowering::choose_sizes() {
  int64_t least = 8, widest = 1;
  for (const Across& a : across_) least = std::min<int64_t>(least, cx_.ir[a.node].type.dtype.size());
  for (const Root& root : group_.roots) widest = std::max<int64_t>(widest, cx_.ir[root.node].type.dtype.size());
  if (cx_.target.machine().transposes_in_shared_memory()) {
    rows_ = width_ = panel_ = 32;
    if (plane_ && widest <= 4 && tiles(64) >= enough_tiles) rows_ = width_ = panel_ = 64;
    if (plane_ && least == 2 && widest == 2 && group_.reads.size() == 1 && tiles(128) >= enough_tiles)
      rows_ = width_ = panel_ = 128;
    pitch_ = width_ + 1;  // odd, so that lanes that transpose a row write to different banks
    grid_ = tiles(width_);
    return;
  }
  rows_ = std::min<int64_t>(32, line_bytes / least);
  width_ = std::min<int64_t>(64, 2 * line_bytes / widest);
  while (width_ / 2 >= v_.extent.bound()) width_ /= 2;
  pitch_ = width_;
  panel_ = std::max(rows_, panel_bytes / least);
  const int64_t blocks = (v_.extent.bound() + width_ - 1) / width_;
  int64_t others = 1;
  for (const DomainVariable& d : outer_) others *= d.extent.bound();
  while (panel_ > rows_ && others * blocks * (u_.extent.bound() / panel_) < 16) panel_ /= 2;
  grid_ = others * blocks * ((u_.extent.bound() + panel_ - 1) / panel_);
}

/// Binds the program id to the outer axes, a panel of rows and a block of columns.
void TransposedLowering::bind_programs() {
  kernel::Builder& b = emit_.builder();
  Value rest = b.program_id();
  auto digit = [&](int64_t n) {
    Value count = b.index(n), d = b.scalar(ScalarOp::mod, {rest, count});
    rest = b.scalar(ScalarOp::floordiv, {rest, count});
    return d;
  };
  const int64_t u = u_.extent.bound(), v = v_.extent.bound(), panels = (u + panel_ - 1) / panel_;
  // A few adjacent tiles run along the direction of reads, then the order continues along writes, so that both access
  // long runs of memory.
  int64_t beside = 1;
  for (int64_t n = 2; plane_ && n <= most_beside; ++n)
    if (panels % n == 0) beside = n;
  const Value within = digit(beside);
  first_lane_ = b.mul(digit((v + width_ - 1) / width_), b.index(width_));
  first_row_ = b.mul(b.add(b.mul(digit(panels / beside), b.index(beside)), within), b.index(panel_));
  for (size_t k = outer_.size(); k-- > 0;) emit_.bind(outer_[k].var, digit(outer_[k].extent.bound()));
  if (v % width_) lane_limit_ = b.sub(b.index(v), first_lane_);
  if (u % rows_) row_limit_ = b.sub(b.index(u), first_row_);
}

/// Loads one column of an operand as `rows_` adjacent elements. Past the last column it repeats that one, which is not
/// stored.
Value TransposedLowering::line(const Across& a, Value at, int64_t column, Value row_limit) {
  kernel::Builder& b = emit_.builder();
  Value n = b.index(column);
  if (lane_limit_ != no_value) n = b.min(n, b.sub(lane_limit_, b.index(1)));
  return b.load(emit_.param(a.node, false), b.add(at, b.mul(n, b.index(a.stride))), {rows_}, {1}, {row_limit});
}

/// Copies the tiles of transposed operands for rows u … u + rows_ of the result into scratch.
void TransposedLowering::stage(Value u) {
  kernel::Builder& b = emit_.builder();
  const Expr both[] = {u_.var, v_.var};
  Value row_limit = u_.extent.bound() % rows_ ? b.sub(b.index(u_.extent.bound()), u) : no_value;
  for (const Across& a : across_) {
    auto form = ix::affine(a.offset, both);
    Value at = b.add(b.add(emit_.index_value(form->base), u), b.mul(first_lane_, b.index(a.stride)));
    if (cx_.target.machine().transposes_in_shared_memory()) {
      std::vector<Value> lines;
      for (int64_t column = 0; column < width_; ++column) lines.push_back(line(a, at, column, row_limit));
      for (int64_t column = 0; column < width_; ++column)
        b.store(a.scratch, lines[static_cast<size_t>(column)], b.index(column), {pitch_});
      continue;
    }
    // A register's lanes of columns at a time: square blocks fill registers without needing many.
    const int64_t part = std::min({rows_, width_, cx_.target.machine().lanes(cx_.ir[a.node].type.dtype.size())});
    for (int64_t column = 0; column < width_; column += part) {
      Value limit = lane_limit_ == no_value ? no_value : b.sub(lane_limit_, b.index(column));
      Value tile = b.load(emit_.param(a.node, false), b.add(at, b.index(column * a.stride)), {rows_, part},
                          {1, a.stride}, {row_limit, limit});
      b.store(a.scratch, tile, b.index(column), {pitch_, 1});
    }
  }
}

/// Computes and stores row r of the tile, from scratch.
void TransposedLowering::row(Value r) {
  kernel::Builder& b = emit_.builder();
  for (const Across& a : across_) emit_.take_staged(a.node, a.offset, a.scratch, b.mul(r, b.index(pitch_)));
  emit_.bind_lanes(v_.var, first_lane_, width_, lane_limit_);
  std::vector<Value> values;  // stores come last: they may overwrite operands in place
  for (const Root& root : group_.roots) {
    values.push_back(emit_.rounded(root.node, emit_.make(root.node, root.index)));
    emit_.define(root.node, values.back());
  }
  for (size_t k = 0; k < values.size(); ++k) {
    const Root& root = group_.roots[k];
    auto at = static_cast<size_t>(root.node);
    if (cx_.has_buffer[at]) emit_.store(root.node, root.index, values[k], cx_.streamed[at]);
  }
}

/// Loads the program's tile [rows, lanes] of every operand, and computes and stores every result from them.
void TransposedLowering::plane() {
  kernel::Builder& b = emit_.builder();
  emit_.bind(u_.var, first_row_);
  emit_.bind_lanes(v_.var, first_lane_, width_, lane_limit_);
  const Expr both[] = {u_.var, v_.var};
  std::set<std::pair<NodeId, const ix::Node*>> seen;
  std::set<NodeId> made;  // here, and not loaded
  for (const Root& root : group_.roots) made.insert(root.node);
  loads([&](NodeId node, Expr offset) {
    if (made.contains(node)) return;
    const auto form = ix::affine(offset, both);
    const int64_t along_u = form->coefficients[0], along_v = form->coefficients[1];
    if ((along_u == 0 && along_v == 0) || !seen.insert({node, offset.get()}).second) return;
    const Value at = b.add(emit_.index_value(form->base),
                           b.add(b.mul(first_row_, b.index(along_u)), b.mul(first_lane_, b.index(along_v))));
    const kernel::Ref ref = emit_.param(node, false);
    const bool across = along_u == 1 && along_v > 1;
    emit_.take_tile(node, offset,
                    across
                        ? b.transpose(b.load(ref, at, {width_, rows_}, {along_v, along_u}, {lane_limit_, row_limit_}))
                        : b.load(ref, at, {rows_, width_}, {along_u, along_v}, {row_limit_, lane_limit_}));
  });
  std::vector<Value> values;  // stores come last: they may overwrite operands in place
  for (const Root& root : group_.roots) {
    values.push_back(b.broadcast(emit_.rounded(root.node, emit_.make(root.node, root.index)), {rows_, width_}));
    emit_.define(root.node, values.back());
  }
  for (size_t k = 0; k < values.size(); ++k) {
    const Root& root = group_.roots[k];
    const auto node = static_cast<size_t>(root.node);
    if (!cx_.has_buffer[node]) continue;
    const auto form = ix::affine(ix::linear(*group_.cx, root.index, cx_.grouping.strides[node]), both);
    const Value at =
        b.add(emit_.index_value(form->base), b.add(b.mul(first_row_, b.index(form->coefficients[0])), first_lane_));
    b.store(emit_.param(root.node, true), b.cast(values[k], cx_.ir[root.node].type.dtype), at,
            {form->coefficients[0], 1}, {row_limit_, lane_limit_}, cx_.streamed[node]);
  }
}

/// Returns whether the staged tiles fit into shared memory.
bool TransposedLowering::fits() const {
  if (plane_ || !cx_.target.machine().transposes_in_shared_memory()) return true;
  int64_t bytes = 0;
  for (const Across& a : across_) bytes += rows_ * pitch_ * cx_.ir[a.node].type.dtype.size();
  return bytes <= most_kept_bytes(cx_.target);
}

std::optional<Lowered> TransposedLowering::run() {
  if (!choose_axes()) return {};
  plane_ = cx_.target.machine().transposes_in_shared_memory() && is_plain();
  choose_sizes();
  if (!fits()) return {};
  kernel::Builder& b = emit_.builder();
  for (const Root& root : group_.roots)
    if (cx_.has_buffer[root.node]) emit_.param(root.node, true);
  for (NodeId node : group_.reads) emit_.param(node, false);  // all of them come before the scratch
  double points = static_cast<double>(u_.extent.bound()) * static_cast<double>(v_.extent.bound());
  for (const DomainVariable& d : outer_) points *= static_cast<double>(d.extent.bound());
  const double work = points * 4 * static_cast<double>(group_.reads.size() + group_.roots.size());
  if (plane_) {
    bind_programs();
    plane();
    return emit_.finish(grid_, work);
  }
  for (Across& a : across_) a.scratch = b.local(cx_.ir[a.node].type.dtype, rows_ * pitch_);
  bind_programs();
  Value extent = b.index(u_.extent.bound()), end = b.min(extent, b.add(first_row_, b.index(panel_)));
  b.loop(first_row_, end, b.index(rows_), {}, [&](Value u, const std::vector<Value>&) {
    emit_.push_scope();
    stage(u);
    b.loop(b.index(0), b.min(b.index(rows_), b.sub(extent, u)), b.index(1), {},
           [&](Value r, const std::vector<Value>&) {
             emit_.push_scope();
             emit_.bind(u_.var, b.add(u, r));
             row(r);
             emit_.pop_scope();
             return std::vector<Value>{};
           });
    emit_.pop_scope();
    return std::vector<Value>{};
  });
  return emit_.finish(grid_, work);
}

}  // namespace

std::optional<Lowered> lower_transposed(const LowerContext& cx, Group& group) {
  return TransposedLowering(cx, group).run();
}

}  // namespace weft::compiler
