// GEMV kernels (rewrite/gemv.h), for GPUs. A program computes a few rows of the matrix together: the vector is read
// once for all of them, and enough loads are in flight to keep memory busy. A program is one warp, so no thread waits
// for another warp's part of a sum.
#include <algorithm>
#include <set>
#include <utility>

#include "compiler/lower/loops/rows.h"

namespace weft::compiler {

namespace {

// Words of the matrix that each lane has in flight.
constexpr int64_t loads_at_once = 16;

}  // namespace

using kernel::no_value;
using kernel::Reducer;
using kernel::ScalarOp;
using kernel::Value;

bool gemv_only(const Ir& ir, const Group& group) {
  bool any = false;
  for (const Root& root : group.roots) {
    if (root.kind == RootKind::full) return false;
    if (root.kind == RootKind::reduce && !ir[root.node].gemv && !ir[root.node].scaled) return false;
    any = any || (root.kind == RootKind::reduce && ir[root.node].gemv);
  }
  return any;
}

/// Returns whether the GEMV form applies: one pass over the matrix, after the sums over the vector alone, and no GEMV
/// reads another's result. The matrix's extents must be static.
bool RowLowering::side_by_side() {
  if (!schedule_.gemv()) return false;
  const auto is_gemv = [&](const Statement& s) { return s.root.kind == RootKind::reduce && cx_.ir[s.root.node].gemv; };
  for (const Statement& s : statements_)
    if (is_gemv(s)) gemv_pass_ = std::max(gemv_pass_, s.pass);
  return std::all_of(statements_.begin(), statements_.end(), [&](const Statement& s) {
    if (is_gemv(s)) return s.pass == gemv_pass_;
    return s.root.kind == RootKind::row ? s.pass > gemv_pass_ || gemv_pass_ == 0 || !cx_.has_buffer[s.root.node]
                                        : s.pass < gemv_pass_ && !cx_.has_buffer[s.root.node];
  });
}

/// Returns whether a sum depends on the vector alone, such as the sum of its squares: one value serves all rows of the
/// matrix.
bool RowLowering::is_same_for_all(const Statement& statement) const {
  const std::vector<NodeId>& factors = cx_.ir[cx_.ir[statement.root.node].inputs[0]].inputs;
  return factors[0] == factors[1] && cx_.ir[factors[0]].op == graph::Op::broadcast;
}

/// Returns the number of sums that multiply rows of the matrix.
size_t RowLowering::gemvs() const {
  return static_cast<size_t>(std::count_if(statements_.begin(), statements_.end(), [&](const Statement& s) {
    return cx_.ir[s.root.node].gemv && !is_same_for_all(s);
  }));
}

/// Returns the arrays that the rows of the matrices are made from: several where their elements are unpacked.
size_t RowLowering::matrix_arrays() {
  std::set<NodeId> arrays;
  for (const Statement& statement : statements_)
    if (cx_.ir[statement.root.node].gemv && !is_same_for_all(statement))
      emit_.walk(cx_.ir[cx_.ir[statement.root.node].inputs[0]].inputs[1], statement.operand,
                 [&](NodeId node, const std::vector<ix::Expr>&) {
                   if (emit_.is_memory(node)) arrays.insert(node);
                   return true;
                 });
  return std::max<size_t>(1, arrays.size());
}

/// Begins to load a tile of every row of the matrix. Returns a scope with the loaded values for each row.
RowLowering::Scopes RowLowering::matrix_tiles(Value at, Value limit, const std::vector<Value>& rows) {
  Scopes tiles;
  emit_.bind_lanes(lane_, at, schedule_.tile(), limit);
  emit_.set_streaming(true);
  for (Value row : rows) {
    emit_.push_scope();
    emit_.bind(program_, row);
    for (const Statement& statement : statements_)
      if (cx_.ir[statement.root.node].gemv && !is_same_for_all(statement))
        emit_.value(cx_.ir[cx_.ir[statement.root.node].inputs[0]].inputs[1], statement.operand);
    tiles.push_back(emit_.leave_scope());
  }
  emit_.set_streaming(false);
  return tiles;
}

/// Computes the sums over the vector that the GEMVs need, tile by tile. The values made on the way are kept in scopes
/// by tile, for the GEMVs.
void RowLowering::norm_of_row(Value row) {
  kernel::Builder& b = emit_.builder();
  emit_.bind(program_, row);
  normed_.resize(static_cast<size_t>((schedule_.lanes.share() + schedule_.tile() - 1) / schedule_.tile()));
  for (int p = 0; p < gemv_pass_; ++p) {
    row_roots(p);
    std::vector<Value> sums = identities(p);
    for (size_t tile = 0; tile < normed_.size(); ++tile) {
      const int64_t at = static_cast<int64_t>(tile) * schedule_.tile();
      emit_.enter_scope(std::move(normed_[tile]));
      emit_.bind_lanes(
          lane_, b.index(at), schedule_.tile(),
          at + schedule_.tile() <= schedule_.lanes.share() ? no_value : b.index(schedule_.lanes.share() - at));
      sums = step(p, sums);
      normed_[tile] = emit_.leave_scope();
    }
    finish_reductions(p, sums);
  }
  row_roots(gemv_pass_);
}

/// Adds a tile of each of the program's rows to the rows' sums. `row`: the known values of the vector's tile.
std::vector<Value> RowLowering::gemv_step(Value at, Value limit, const std::vector<Value>& rows,
                                          std::vector<Value> sums, Scopes tiles, Emitter::Scope row) {
  kernel::Builder& b = emit_.builder();
  const auto each = [&](auto&& body) {  // of each GEMV: its two factors
    for (const Statement& statement : statements_)
      if (cx_.ir[statement.root.node].gemv) body(statement, cx_.ir[cx_.ir[statement.root.node].inputs[0]].inputs);
  };
  emit_.enter_scope(std::move(row));
  emit_.bind_lanes(lane_, at, schedule_.tile(), limit);
  emit_.bind(program_, rows[0]);
  // The vector, which all rows share.
  each([&](const Statement& statement, const std::vector<NodeId>& factors) {
    emit_.value(factors[0], statement.operand);
  });
  const size_t each_row = sums.size() / rows.size();
  size_t k = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    emit_.enter_scope(std::move(tiles[r]));
    emit_.bind(program_, rows[r]);
    each([&](const Statement& statement, const std::vector<NodeId>& factors) {
      if (k >= each_row && is_same_for_all(statement)) {
        ++k;
        return;
      }
      const Value x = b.broadcast(emit_.value(factors[0], statement.operand), {schedule_.tile()}),
                  y = b.broadcast(emit_.value(factors[1], statement.operand), {schedule_.tile()});
      sums[k] = b.scalar(ScalarOp::fma, {x, y, sums[k]});
      ++k;
    });
    emit_.pop_scope();
  }
  emit_.pop_scope();
  return sums;
}

/// Emits the whole GEMV kernel: early loads, the sums over the vector, the loop over the matrix, and the results of
/// each row.
void RowLowering::gemv_rows() {
  kernel::Builder& b = emit_.builder();
  const int64_t count = extent_of(outer_), width = schedule_.tile(), length = schedule_.lanes.share();
  const auto rows = std::min(schedule_.programs.count(Level::unroll), count);
  grid_ = (count + rows - 1) / rows;
  const Value first = b.mul(b.program_id(), b.index(rows));
  std::vector<Value> row_indices, sums;
  for (int64_t r = 0; r < rows; ++r) {
    const Value row = b.add(first, b.index(r));
    // Past the end: repeat the last row, and do not store it.
    row_indices.push_back(count % rows == 0 ? row : b.min(row, b.index(count - 1)));
    for (Value v : identities(gemv_pass_)) sums.push_back(v);
  }
  for (NodeId node : group_.reads) emit_.param(node, false);
  // The matrix is loaded first, since no earlier kernel writes it: `unroll` tiles of each row. The first of them have
  // arrived when the vector has.
  const int64_t unroll = std::max<int64_t>(
                    1, loads_at_once / static_cast<int64_t>(row_indices.size() * std::max(gemvs(), matrix_arrays()))),
                step = unroll * width, first_part = std::min(step, length);
  const auto limit_at = [&](int64_t at) { return at + width <= length ? no_value : b.index(length - at); };
  std::vector<Scopes> ahead;
  for (int64_t at = 0; at < first_part; at += width)
    ahead.push_back(matrix_tiles(b.index(at), limit_at(at), row_indices));
  // Other operands of the results are loaded early as well.
  std::vector<Emitter::Scope> scopes;
  for (Value row : row_indices) {
    emit_.push_scope();
    emit_.bind(program_, row);
    for (const Statement& statement : statements_)
      if (statement.root.kind == RootKind::row)
        for (const auto& [node, index] : reads_of(statement)) emit_.value(node, index);
    scopes.push_back(emit_.leave_scope());
  }
  if (gemv_pass_ > 0) norm_of_row(row_indices[0]);
  normed_.resize(std::max(normed_.size(), ahead.size()));
  for (size_t u = 0; u < ahead.size(); ++u) {
    const int64_t at = static_cast<int64_t>(u) * width;
    sums = gemv_step(b.index(at), limit_at(at), row_indices, sums, std::move(ahead[u]), std::move(normed_[u]));
  }
  const int64_t whole = std::max(first_part, length / step * step);
  sums = b.loop(b.index(first_part), b.index(whole), b.index(step), sums, [&](Value at, std::vector<Value> next) {
    std::vector<Scopes> tiles;
    for (int64_t u = 0; u < unroll; ++u)
      tiles.push_back(matrix_tiles(b.add(at, b.index(u * width)), no_value, row_indices));
    for (int64_t u = 0; u < unroll; ++u)
      next = gemv_step(b.add(at, b.index(u * width)), no_value, row_indices, next,
                       std::move(tiles[static_cast<size_t>(u)]));
    return next;
  });
  std::vector<Scopes> last;
  for (int64_t at = whole; at < length; at += width)
    last.push_back(matrix_tiles(b.index(at), limit_at(at), row_indices));
  for (int64_t at = whole; at < length; at += width)
    sums = gemv_step(b.index(at), limit_at(at), row_indices, sums, std::move(last[(at - whole) / width]));
  const size_t reductions = sums.size() / row_indices.size();
  size_t which = 0;
  for (const Statement& statement : statements_) {
    if (!cx_.ir[statement.root.node].gemv) continue;
    for (size_t r = 0; r < row_indices.size(); ++r) {
      Value& sum = sums[r * reductions + which];
      sum = r > 0 && is_same_for_all(statement) ? sums[which] : b.reduce(Reducer::sum, sum, 0);
    }
    ++which;
  }
  for (size_t r = 0; r < row_indices.size(); ++r) {
    const auto finish_row = [&] {
      size_t k = r * reductions;
      emit_.enter_scope(std::move(scopes[r]));
      emit_.bind(program_, row_indices[r]);
      if (gemv_pass_ == 0) row_roots(0);
      for (const Statement& statement : statements_)
        if (cx_.ir[statement.root.node].gemv) finish_root(statement, sums[k++]);
      for (int p = gemv_pass_ + 1; p <= passes_; ++p) row_roots(p);
      emit_.pop_scope();
    };
    if (count % rows == 0 || r == 0) finish_row();
    else b.when(b.lt(b.add(first, b.index(static_cast<int64_t>(r))), b.index(count)), finish_row);
  }
}

}  // namespace weft::compiler
