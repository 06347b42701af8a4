// Renders what gives the elements of tiles other places: broadcasts, permutations, slices, joins and takes of any rank.
// A tile is written to the exchange space in the order of its elements, and read where an index expression says.
#include <fmt/format.h>

#include "target/cuda/codegen/general/index.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Type;

/// Lets a result stand for a value with the same elements in the same order. A scalar stands for a tile of itself.
void Renderer::alias(Value result, Value from) {
  if (type(result).rank() == 0) return each(result, at(from, "0"));
  if (kernel_.any_size && type(from).rank() > 0 && !splat_[static_cast<size_t>(from)] &&
      !names_[static_cast<size_t>(from)].starts_with("arange:") && layout_of(result) != layout_of(from))
    return convert_layout(result, from);
  name(result, names_[static_cast<size_t>(from)]);
  splat_[static_cast<size_t>(result)] = type(from).rank() == 0 || splat_[static_cast<size_t>(from)];
}

/// Writes all elements of a tile to `space`, element e at `index`.
void Renderer::put_at(Value v, const std::string& space, const std::string& index) {
  const Layout s = layout_of(v);
  open(fmt::format("EACH (int r = 0; r < {}; ++r)", s.registers()));
  add(fmt::format("const int e = {};", s.element("r")));
  const std::string guard = s.ragged()             ? fmt::format("if (e < {}) ", s.size)
                            : s.owner("r").empty() ? ""
                                                   : fmt::format("if ({}) ", s.owner("r"));
  add(fmt::format("{}{}[{}] = {};", guard, space, index, at(v)));
  close();
}

/// Makes element e of a value from `text`, for every register; past the end of the tile e is the last element.
void Renderer::each_element(Value v, const std::string& text) {
  const bool tile = type(v).rank() > 0;
  declare(v);
  open(tile ? fmt::format("EACH (int r = 0; r < {}; ++r)", layout_of(v).registers()) : "");
  add(fmt::format("const int e = {};", layout_of(v).inside("r")));
  add(fmt::format("{}{} = {};", fresh(v), tile ? "[r]" : "", text));
  close();
}

/// Renders a result whose elements are those of the first argument that `source` says.
void Renderer::rearrange(const Inst& inst, const Strided& source) {
  const Value from = inst.args[0], result = inst.results[0];
  if (type(from).rank() == 0 || splat_[static_cast<size_t>(from)]) {
    name(result, at(from));
    splat_[static_cast<size_t>(result)] = inst.type.rank() > 0;
    return;
  }
  if (source.in_order() && type(from).size() == inst.type.size()) return alias(result, from);
  if (names_[static_cast<size_t>(from)].starts_with("arange:"))
    return each_element(result, fmt::format("({})({})", type_name(inst.type.dtype), source.text("e")));
  const std::string space = exchange(inst.type.dtype, type(from).size());
  sync();
  put(from, space);
  sync();
  each_element(result, fmt::format("{}[{}]", space, source.text("e")));
}

void Renderer::spread(const Inst& inst) {
  const std::vector<int64_t>& from = type(inst.args[0]).dims;
  const std::vector<int64_t> own = row_major(from);
  Strided source{inst.type.dims, std::vector<int64_t>(inst.type.dims.size(), 0)};
  const size_t missing = inst.type.dims.size() - from.size();
  for (size_t k = 0; k < from.size(); ++k) source.strides[missing + k] = from[k] == 1 ? 0 : own[k];
  rearrange(inst, source);
}

void Renderer::permute(const Inst& inst) {
  const std::vector<int64_t> own = row_major(type(inst.args[0]).dims);
  Strided source{inst.type.dims, {}};
  for (const int64_t axis : inst.axes) source.strides.push_back(own[static_cast<size_t>(axis)]);
  rearrange(inst, source);
}

void Renderer::slice_tile(const Inst& inst) {
  Strided source{inst.type.dims, row_major(type(inst.args[0]).dims)};
  for (size_t k = 0; k < inst.axes.size(); ++k) {
    source.offset += inst.axes[k] * source.strides[k];
    source.strides[k] *= inst.strides[k];
  }
  rearrange(inst, source);
}

/// Renders a join: each tile is written to its part of the result.
void Renderer::cat(const Inst& inst) {
  const Lines all(inst.type.dims, inst.axis);
  const std::string space = exchange(inst.type.dtype, inst.type.size());
  sync();
  int64_t before = 0;
  for (const Value v : inst.args) {
    const Lines part(type(v).dims, inst.axis);
    const int64_t block = part.extent * part.step;
    put_at(v, space, fmt::format("e / {0} * {1} + e % {0} + {2}", block, all.extent * all.step, before));
    before += block;
  }
  sync();
  each_element(inst.results[0], space + "[e]");
}

void Renderer::take(const Inst& inst) {
  const Value from = inst.args[0], index = inst.args[1], result = inst.results[0];
  if (splat_[static_cast<size_t>(from)]) {
    name(result, at(from));
    splat_[static_cast<size_t>(result)] = true;
    return;
  }
  const Lines source(type(from).dims, inst.axis), to(inst.type.dims, inst.axis);
  const std::string space = exchange(inst.type.dtype, type(from).size());
  sync();
  put(from, space);
  sync();
  const std::string place = fmt::format("(int)imin<i64>(imax<i64>({}, 0), {})", at(index), source.extent - 1);
  each_element(result, fmt::format("{}[{} + {} * {}]", space, source.start(fmt::format("({})", to.line("e"))), place,
                                   source.step));
}

}  // namespace weft::target::cuda
