// Tracing as a whole: from a function to a verified kernel, and what can be done with it on the host.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/interpret.h"
#include "kernel/language/check_waits.h"
#include "kernel/language/trace.h"

namespace weft::k {

using kernel::ScalarOp;
using kernel::Value;

namespace {

void check_params(const std::string& name, const std::vector<Param>& params) {
  const std::string where = "kernel " + name;
  for (size_t k = 0; k < params.size(); ++k) {
    const Param& p = params[k];
    int64_t elements = 1;
    for (const int64_t d : p.dims)
      if (d < 0 || __builtin_mul_overflow(elements, std::max<int64_t>(d, 1), &elements))
        throw_invalid(where, fmt::format("array {} has extents [{}]: give none that is negative, and fewer than 2^63 "
                                         "elements",
                                         k, fmt::join(p.dims, ",")));
    for (size_t axis = 0; axis < p.symbols.size(); ++axis)
      if (p.symbols.size() != p.dims.size() || (p.symbols[axis] && p.symbols[axis]->bound != p.dims[axis]))
        throw_invalid(where, fmt::format("array {} has extents [{}] and other bounds of its symbols: give a symbol or "
                                         "null for each axis, and its bound as the extent",
                                         k, fmt::join(p.dims, ",")));
    if (is_complex(p.dtype))
      throw_invalid(where, fmt::format("array {} is {}: pass its real and imaginary parts", k, dtype_name(p.dtype)));
  }
}

void check_grid(const std::string& name, const Grid& grid) {
  const std::string where = "kernel " + name;
  if (grid.empty()) throw_invalid(where, "the grid has no axis: give one, of extent 1 for a single program");
  int64_t programs = 1;
  for (size_t k = 0; k < grid.size(); ++k) {
    if (grid[k].extent < 0)
      throw_invalid(where, fmt::format("axis {} of the grid has the extent {}: give 0 or more", k, grid[k].extent));
    constexpr int64_t most_of_cluster = 8;  // that every GPU with clusters has
    if (grid[k].order == Order::cluster && (k + 1 < grid.size() || grid[k].extent > most_of_cluster || grid[k].count))
      throw_invalid(where,
                    fmt::format("axis {} of {} of the grid is a cluster of {} programs: make it the last axis, of "
                                "1 to {}",
                                k, grid.size(), grid[k].extent, most_of_cluster));
    if (grid[k].order == Order::ordered && grid.back().order == Order::cluster)
      throw_invalid(where, "the grid has clusters and an ordered axis, which do not mix: choose one of them");
    if (__builtin_mul_overflow(programs, std::max<int64_t>(grid[k].extent, 1), &programs))
      throw_invalid(where, "the grid has more than 2^63 programs: give smaller extents");
  }
}

/// Gives axes with run-time numbers of programs their largest ones; those that are numbers after all become numbers.
void bound_grid(Trace& t) {
  for (size_t k = 0; k < t.grid.size(); ++k) {
    GridAxis& axis = t.grid[k];
    if (!axis.count) continue;
    const Value count = t.value(axis.count, {});
    const kernel::Length length = t.builder.type(count) == kernel::Type{int64, {}} ? t.length(count) : kernel::Length{};
    const Known known = t.known(count);
    if (!length || known.low < 0 || known.high == INT64_MAX)
      t.refuse({}, fmt::format("axis {} of the grid is no expression of extents that lies between known bounds: give a "
                               "number, or compute it from extent() by +, -, *, cdiv, floordiv, mod, minimum and "
                               "maximum",
                               k));
    axis.extent = known.high;
    if (length.is_number() || known.low == known.high) axis.count = {};
  }
}

Value count_of(Trace& t, const GridAxis& axis) {
  return axis.count ? t.value(axis.count, {}) : t.index(std::max<int64_t>(axis.extent, 1));
}

}  // namespace

void Trace::declare_ids(std::span<const Value> loops) {
  kernel::Builder& b = builder;
  ids.assign(grid.size(), kernel::no_value);
  int64_t outside = 1;  // programs along the axes in front of one, at most
  for (const GridAxis& axis : grid)
    if (axis.order != Order::sequential) outside *= std::max<int64_t>(axis.extent, 1);
  Value behind = index(1);
  bool several_behind = false;
  size_t next = loops.size();
  for (size_t k = grid.size(); k-- > 0;) {
    const GridAxis& axis = grid[k];
    if (axis.order == Order::sequential) {
      ids[k] = loops[--next];
      continue;
    }
    const int64_t extent = std::max<int64_t>(axis.extent, 1);
    outside /= extent;
    const Value count = count_of(*this, axis);
    Value id = b.program_id();
    if (several_behind) id = b.scalar(ScalarOp::floordiv, {id, behind});
    if (outside > 1) id = b.scalar(ScalarOp::mod, {id, count});
    if (extent == 1) id = b.index(0);
    learn(id, {0, extent - 1, 1});
    if (axis.count && extent > 1) learn(id, {0, extent - 1, 1, count});
    ids[k] = id;
    behind = b.mul(behind, count);
    several_behind = several_behind || extent > 1;
  }
}

namespace {

/// Returns the number of programs: at most, and as an expression where it depends on symbols.
void count_programs(const Trace& t, Program::Data& data) {
  data.programs = 1;
  kernel::Length count = kernel::Length::number(1);
  for (const GridAxis& axis : t.grid) {
    if (axis.order == Order::sequential && axis.extent != 0) continue;
    data.programs *= axis.extent;
    const kernel::Length own = axis.count ? t.length(t.value(axis.count, {})) : kernel::Length::number(axis.extent);
    if (!(own == kernel::Length::number(1)))
      count = count == kernel::Length::number(1) ? own : kernel::Length::apply(ScalarOp::mul, count, own);
  }
  if (!count.is_number()) data.count = count;
}

/// Returns a reference to a parameter as a whole.
AnyRef reference_to(Trace& t, const Param& p) {
  AnyRef ref{t.builder.param(p.name, p.dtype, p.use != Use::in),
             t.serial,
             p.dtype,
             0,
             p.dims,
             std::vector<int64_t>(p.dims.size(), 1)};
  for (size_t k = p.dims.size(); k-- > 1;) ref.strides[k - 1] = ref.strides[k] * std::max<int64_t>(p.dims[k], 1);
  for (size_t k = 0; k < p.symbols.size(); ++k) {
    if (!p.symbols[k]) continue;
    ref.extents.resize(p.dims.size());
    ref.extents[k] = t.any(t.symbol(p.symbols[k]));
  }
  return ref;
}

/// Runs the body in a loop for each sequential axis, outermost first.
void run_body(Trace& t, const std::vector<AnyRef>& refs, const std::function<void(std::span<const AnyRef>)>& body) {
  std::vector<GridAxis> sequential;
  for (const GridAxis& axis : t.grid)
    if (axis.order == Order::sequential) sequential.push_back(axis);
  std::vector<Value> ids;
  const std::function<void()> nest = [&] {
    if (ids.size() == sequential.size()) {
      t.declare_ids(ids);
      return t.in_body([&] { body(refs); });
    }
    const GridAxis& axis = sequential[ids.size()];
    loop(t.any(t.index(0)), axis.count ? axis.count : t.any(t.index(axis.extent)), 1, [&](Any i) {
      ids.push_back(t.value(i, {}));
      t.learn(ids.back(), {0, axis.extent - 1, 1});
      nest();
      ids.pop_back();
    });
  };
  nest();
}

}  // namespace

Program trace_with(const std::string& name, std::vector<Param> params,
                   const std::function<Grid(std::span<const AnyRef>)>& grid,
                   const std::function<void(std::span<const AnyRef>)>& body) {
  check_params(name, params);
  Trace t(name, std::move(params));
  const TraceScope scope(t);
  std::vector<AnyRef> refs;
  for (const Param& p : t.params) refs.push_back(reference_to(t, p));
  t.choose_grid([&] { return grid(refs); });
  bound_grid(t);
  check_grid(name, t.grid);
  if (t.ordered()) t.builder.ordered();
  t.builder.clustered(t.cluster());
  run_body(t, refs, body);
  auto data = std::make_shared<Program::Data>();
  count_programs(t, *data);
  data->names = t.names;
  data->kernel = without_unchanged(t.builder.finish(), data->names);
  data->kernel.any_size = true;
  if (const auto wrong = kernel::wrong_waits(data->kernel)) {
    const kernel::SourceLine& line = data->kernel.lines[static_cast<size_t>(wrong->line)];
    t.refuse({line.file, line.line}, wrong->text);
  }
  data->params = t.params;
  data->symbols = t.symbols;
  return Program(std::move(data));
}

Program trace(const std::string& name, std::vector<Param> params, const Grid& grid,
              const std::function<void(std::span<const AnyRef>)>& body) {
  return trace_with(
      name, std::move(params), [&](std::span<const AnyRef>) { return grid; }, body);
}

const std::string& Program::name() const { return data_->kernel.name; }
const std::vector<Param>& Program::params() const { return data_->params; }
int64_t Program::programs() const { return data_->programs; }
const std::vector<const Symbol*>& Program::symbols() const { return data_->symbols; }

int64_t Program::programs(std::span<const int64_t> extents) const {
  const std::vector<const Symbol*>& symbols = data_->symbols;
  if (extents.size() != symbols.size())
    throw_invalid("kernel " + name(), fmt::format("has {} run-time extents, and {} values are given: give one for each "
                                                  "symbol",
                                                  symbols.size(), extents.size()));
  for (size_t k = 0; k < symbols.size(); ++k)
    if (extents[k] < 1 || extents[k] > symbols[k]->bound)
      throw_invalid("kernel " + name(), fmt::format("the extent {} is {}: it lies in 1 to {}", symbols[k]->name,
                                                    extents[k], symbols[k]->bound));
  return data_->count ? data_->count.value(extents) : data_->programs;
}
std::string Program::to_string() const { return kernel::print(data_->kernel); }

std::vector<kernel::HostBuffer> buffers_of(const Program& program, std::span<void* const> arrays,
                                           std::vector<kernel::Ref>& results) {
  const Program::Data& data = program.data();
  std::vector<kernel::HostBuffer> out;
  if (arrays.size() != data.params.size())
    throw_invalid("kernel " + program.name(),
                  fmt::format("takes {} arrays, not {}", data.params.size(), arrays.size()));
  for (size_t k = 0; k < arrays.size(); ++k) {
    int64_t elements = 1;
    for (const int64_t d : data.params[k].dims) elements *= d;
    if (elements > 0 && !arrays[k])
      throw_invalid("kernel " + program.name(), fmt::format("the pointer of array {} is null: give its memory", k));
    out.push_back({arrays[k], elements});
    // Behind a run-time extent nothing is written.
    if (data.params[k].use == Use::out && data.params[k].symbols.empty())
      results.push_back(static_cast<kernel::Ref>(k));
  }
  return out;
}

void Program::interpret(std::span<void* const> arrays, std::span<const int64_t> extents) const {
  const int64_t count = programs(extents);
  std::vector<kernel::Ref> results;
  const std::vector<kernel::HostBuffer> buffers = buffers_of(*this, arrays, results);
  kernel::interpret(data_->kernel, buffers, extents, count, results);
}

}  // namespace weft::k
