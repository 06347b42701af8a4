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

void check_params(const std::string& name, const std::vector<Param>& params, const Grid& grid) {
  const std::string where = "kernel " + name;
  for (size_t k = 0; k < params.size(); ++k) {
    int64_t elements = 1;
    for (const int64_t d : params[k].dims)
      if (d < 0 || __builtin_mul_overflow(elements, std::max<int64_t>(d, 1), &elements))
        throw_invalid(where, fmt::format("array {} has extents [{}]: give none that is negative, and fewer than 2^63 "
                                         "elements",
                                         k, fmt::join(params[k].dims, ",")));
    if (params[k].dtype == complex64)
      throw_invalid(where, fmt::format("array {} is complex64: pass its real and imaginary parts", k));
  }
  if (grid.empty()) throw_invalid(where, "the grid has no axis: give one, of extent 1 for a single program");
  int64_t programs = 1;
  for (size_t k = 0; k < grid.size(); ++k) {
    if (grid[k].extent < 0)
      throw_invalid(where, fmt::format("axis {} of the grid has the extent {}: give 0 or more", k, grid[k].extent));
    constexpr int64_t most_of_cluster = 8;  // that every GPU with clusters has
    if (grid[k].order == Order::cluster && (k + 1 < grid.size() || grid[k].extent > most_of_cluster))
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

}  // namespace

void Trace::declare_ids(std::span<const Value> loops) {
  kernel::Builder& b = builder;
  ids.assign(grid.size(), kernel::no_value);
  int64_t behind = 1, all_programs = 1;
  for (const GridAxis& axis : grid)
    if (axis.order != Order::sequential) all_programs *= std::max<int64_t>(axis.extent, 1);
  size_t next = loops.size();
  for (size_t k = grid.size(); k-- > 0;) {
    const GridAxis& axis = grid[k];
    if (axis.order == Order::sequential) {
      ids[k] = loops[--next];
      continue;
    }
    const int64_t extent = std::max<int64_t>(axis.extent, 1);
    Value id = b.program_id();
    if (behind > 1) id = b.scalar(ScalarOp::floordiv, {id, b.index(behind)});
    if (behind * extent < all_programs) id = b.scalar(ScalarOp::mod, {id, b.index(extent)});
    if (extent == 1) id = b.index(0);
    learn(id, {0, extent - 1, 1});
    ids[k] = id;
    behind *= extent;
  }
}

Program trace(const std::string& name, std::vector<Param> params, const Grid& grid,
              const std::function<void(std::span<const AnyRef>)>& body) {
  check_params(name, params, grid);
  Trace t(name, std::move(params), grid);
  const TraceScope scope(t);
  if (t.ordered()) t.builder.ordered();
  t.builder.clustered(t.cluster());
  std::vector<AnyRef> refs;
  for (const Param& p : t.params) {
    AnyRef ref{t.builder.param(p.name, p.dtype, p.use != Use::in),
               t.serial,
               p.dtype,
               0,
               p.dims,
               std::vector<int64_t>(p.dims.size(), 1)};
    for (size_t k = p.dims.size(); k-- > 1;) ref.strides[k - 1] = ref.strides[k] * std::max<int64_t>(p.dims[k], 1);
    refs.push_back(std::move(ref));
  }
  std::vector<int64_t> sequential;
  for (const GridAxis& axis : grid)
    if (axis.order == Order::sequential) sequential.push_back(axis.extent);
  // One loop for each sequential axis, outermost first, around the body.
  std::vector<Value> ids;
  const std::function<void()> nest = [&] {
    if (ids.size() == sequential.size()) {
      t.declare_ids(ids);
      return t.in_body([&] { body(refs); });
    }
    const int64_t extent = sequential[ids.size()];
    loop(t.any(t.index(0)), t.any(t.index(extent)), 1, [&](Any i) {
      ids.push_back(t.value(i, {}));
      t.learn(ids.back(), {0, extent - 1, 1});
      nest();
      ids.pop_back();
    });
  };
  nest();
  int64_t programs = 1;
  for (const GridAxis& axis : grid) programs *= axis.order != Order::sequential || axis.extent == 0 ? axis.extent : 1;
  auto data = std::make_shared<Program::Data>();
  data->names = t.names;
  data->kernel = without_unchanged(t.builder.finish(), data->names);
  data->kernel.any_size = true;
  if (const auto wrong = kernel::wrong_waits(data->kernel)) {
    const kernel::SourceLine& line = data->kernel.lines[static_cast<size_t>(wrong->line)];
    t.refuse({line.file, line.line}, wrong->text);
  }
  data->params = t.params;
  data->programs = programs;
  return Program(std::move(data));
}

const std::string& Program::name() const { return data_->kernel.name; }
const std::vector<Param>& Program::params() const { return data_->params; }
int64_t Program::programs() const { return data_->programs; }
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
    if (data.params[k].use == Use::out) results.push_back(static_cast<kernel::Ref>(k));
  }
  return out;
}

void Program::interpret(std::span<void* const> arrays) const {
  std::vector<kernel::Ref> results;
  const std::vector<kernel::HostBuffer> buffers = buffers_of(*this, arrays, results);
  kernel::interpret(data_->kernel, buffers, {}, data_->programs, results);
}

}  // namespace weft::k
